/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/clock.h"
#include "faults.h"
#include "fabric/sim.h"
#include "random.h"

/* One kind: how often it comes in an hour of a cluster, at most, and for how long, at most. */
static const struct {
    const char *name;
    uint32_t an_hour;
    uint32_t lasts_ms;
} KINDS[FAULT_KINDS] = {
    [FAULT_KILL_AGENT] = {"kill_agent", 120, 50000},
    [FAULT_STOP_AGENT] = {"stop_agent", 60, 20000},
    [FAULT_KILL_METAD] = {"kill_metad", 60, 20000},
    [FAULT_KILL_WORKER] = {"kill_worker", 240, 5000},
    [FAULT_POWER_OFF] = {"power_off", 120, 20000},
    [FAULT_PAUSE_AGENT] = {"pause_agent", 480, 12000},
    [FAULT_PAUSE_METAD] = {"pause_metad", 60, 20000},
    [FAULT_PAUSE_WORKER] = {"pause_worker", 120, 8000},
    [FAULT_SUSPEND_HOST] = {"suspend_host", 180, 20000},
    [FAULT_CUT_LINK] = {"cut_link", 240, 10000},
    [FAULT_CUT_CALLS] = {"cut_calls", 120, 30000},
    [FAULT_BAD_LINK] = {"bad_link", 240, 20000},
    [FAULT_BAD_CALLS] = {"bad_calls", 60, 20000},
    [FAULT_PORT_DOWN] = {"port_down", 60, 8000},
    [FAULT_BREAK_QP] = {"break_qp", 240, 0},
    [FAULT_OVERFLOW_CQ] = {"overflow_cq", 60, 0},
    [FAULT_BAD_DEVICE] = {"bad_device", 240, 10000},
    [FAULT_CLOCK_SPEED] = {"clock_speed", 60, 0},
    [FAULT_CLOCK_STEER] = {"clock_steer", 60, 30000},
    [FAULT_CLOCK_STEP] = {"clock_step", 120, 0},
    [FAULT_DISK_FULL] = {"disk_full", 60, 10000},
    [FAULT_DISK_SLOW] = {"disk_slow", 120, 20000},
    [FAULT_BREAK_TARGET] = {"break_target", 40, 0},
    [FAULT_CUT_STORE] = {"cut_store", 240, 30000},
    [FAULT_DEAF] = {"deaf", 120, 20000},
    [FAULT_SLOW_STORE] = {"slow_store", 240, 20000},
    [FAULT_LOSE_ANSWERS] = {"lose_answers", 120, 30000},
    [FAULT_COMPACT] = {"compact", 120, 0},
    [FAULT_NO_QUORUM] = {"no_quorum", 40, 20000},
    [FAULT_PUT_BACK] = {"put_back", 20, 40000},
};

const char *play_fault_name(enum play_fault_kind kind)
{
    return KINDS[kind].name;
}

static bool is_of_metad(enum play_fault_kind kind)
{
    return kind == FAULT_KILL_METAD || kind == FAULT_PAUSE_METAD;
}

/* Of disks as often of a metaserver's as of an agent's. */
static bool is_of_disk(enum play_fault_kind kind)
{
    return kind == FAULT_POWER_OFF || kind == FAULT_DISK_FULL || kind == FAULT_DISK_SLOW ||
           kind == FAULT_CLOCK_STEP;
}

/* What any host has: each is hit as often as any other one. */
static bool is_of_host(enum play_fault_kind kind)
{
    return kind == FAULT_SUSPEND_HOST || kind == FAULT_CUT_LINK || kind == FAULT_BAD_LINK ||
           kind == FAULT_PORT_DOWN || kind == FAULT_BREAK_QP || kind == FAULT_OVERFLOW_CQ ||
           kind == FAULT_BAD_DEVICE || kind == FAULT_CLOCK_SPEED || kind == FAULT_CLOCK_STEER;
}

static bool has_other_node(enum play_fault_kind kind)
{
    return kind == FAULT_CUT_LINK || kind == FAULT_BAD_LINK;
}

/* Between a metaserver and the store that all share. */
static bool is_of_store(enum play_fault_kind kind)
{
    return kind >= FAULT_CUT_STORE;
}

/* Between two, one way or both. */
static bool has_direction(enum play_fault_kind kind)
{
    return has_other_node(kind) || kind == FAULT_CUT_CALLS || kind == FAULT_CUT_STORE;
}

static uint32_t draw_node(struct base_prng *r, enum play_fault_kind kind, uint32_t nodes,
                          uint32_t metaservers)
{
    if (is_of_host(kind))
        return (uint32_t)base_prng_below(r, nodes + metaservers);
    if (is_of_metad(kind) || is_of_store(kind) || (is_of_disk(kind) && base_prng_below(r, 2) == 0))
        return nodes + (uint32_t)base_prng_below(r, metaservers);
    return (uint32_t)base_prng_below(r, nodes);
}

/* Long ones are rare: half of them are over in a tenth of the most. */
static uint64_t draw_length(struct base_prng *r, uint64_t most_ns)
{
    if (most_ns == 0)
        return 0;
    const uint64_t part = base_prng_below(r, 2) == 0 ? most_ns / 10 : most_ns;
    return base_prng_below(r, part) + BASE_NS_PER_MS;
}

static struct play_fault draw_fault(struct base_prng *r, enum play_fault_kind kind, uint32_t nodes,
                                    uint32_t metaservers, uint32_t workers)
{
    struct play_fault f = {.kind = kind, .other = SIM_ANY_NODE};
    f.node = draw_node(r, kind, nodes, metaservers);
    if (has_other_node(kind) && base_prng_below(r, 4) != 0)
        f.other = (uint32_t)base_prng_below(r, nodes + metaservers);
    else if (kind == FAULT_CUT_CALLS)
        f.other = nodes + (uint32_t)base_prng_below(r, metaservers);
    f.worker = (uint32_t)base_prng_below(r, workers > 0 ? workers : 1);
    f.hard = base_prng_below(r, has_direction(kind) ? 2 : 8) == 0;
    f.amount = base_prng_next(r);
    f.lasts_ns = draw_length(r, KINDS[kind].lasts_ms * BASE_NS_PER_MS);
    return f;
}

static int compare_faults(const void *a, const void *b)
{
    const struct play_fault *x = a, *y = b;
    return x->at_ns != y->at_ns ? (x->at_ns < y->at_ns ? -1 : 1) : (int)x->kind - (int)y->kind;
}

struct play_fault *play_faults_plan(uint64_t seed, uint32_t nodes, uint32_t metaservers,
                                    uint32_t workers, bool shared, uint64_t from_ns,
                                    uint64_t until_ns, uint32_t *count)
{
    const uint64_t span_ns = until_ns - from_ns, hour_ns = 3600 * BASE_NS_PER_S;
    struct base_prng others = play_random_of(seed, "faults", 0),
                     targets = play_random_of(seed, "broken targets", 0),
                     stores = play_random_of(seed, "store", 0);
    uint32_t of[FAULT_KINDS], all = 0;
    for (int kind = 0; kind < FAULT_KINDS; kind++) { /* a third of the kinds do not come at all */
        struct base_prng *r = is_of_store(kind)            ? &stores
                              : kind == FAULT_BREAK_TARGET ? &targets
                                                           : &others;
        const uint64_t most =
            KINDS[kind].an_hour * (span_ns / BASE_NS_PER_MS) / (hour_ns / BASE_NS_PER_MS);
        of[kind] = base_prng_below(r, 3) == 0 ? 0 : (uint32_t)base_prng_below(r, most + 2);
        if (is_of_store(kind) && !shared)
            of[kind] = 0;
        all += of[kind];
    }
    struct play_fault *faults = calloc(all + 1, sizeof *faults), *next = faults;
    if (faults == NULL)
        return NULL;
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        for (uint32_t i = 0; i < of[kind]; i++) {
            struct base_prng *r = is_of_store(kind)            ? &stores
                                  : kind == FAULT_BREAK_TARGET ? &targets
                                                               : &others;
            *next = draw_fault(r, (enum play_fault_kind)kind, nodes, metaservers, workers);
            next->at_ns = from_ns + base_prng_below(r, span_ns);
            if (next->lasts_ns > until_ns - next->at_ns)
                next->lasts_ns = until_ns - next->at_ns;
            next++;
        }
    qsort(faults, all, sizeof *faults, compare_faults);
    *count = all;
    return faults;
}
