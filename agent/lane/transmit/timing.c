/* SPDX-License-Identifier: Apache-2.0 */
#include "transmit/timing.h"

#include "lane_state.h"
#include "transmit/physical_qp.h"

static void note_timing(struct lane *l)
{
    const struct latencies *t = &l->counters.latencies;
    l->counters.latencies.timing = t->followed.on != NULL || t->ended_count > 0;
}

static void record_latency(struct lane *l, enum lane_latency which, uint64_t begun_ns)
{
    base_latency_record(&l->counters.latencies.of[which],
                        l->now_ns > begun_ns ? l->now_ns - begun_ns : 0);
}

/* What comes beyond LATENCY_ENDED in a pass, as the answers to a lookup for which many wait, has
 * waited for longer than a pass. */
void lane_latency_ended(struct lane *l, enum lane_latency which, uint64_t begun_ns)
{
    struct latencies *t = &l->counters.latencies;
    if (t->ended_count == LATENCY_ENDED) {
        record_latency(l, which, begun_ns);
        return;
    }
    t->ended[t->ended_count].which = which;
    t->ended[t->ended_count].begun_ns = begun_ns;
    t->ended[t->ended_count++].ended_ns = l->now_ns;
    l->counters.latencies.timing = 1;
}

void lane_latency_want(struct lane *l)
{
    l->counters.latencies.wanted = 1;
}

static void record_ended(struct lane *l)
{
    struct latencies *t = &l->counters.latencies;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->ended_count; i++) {
        if (t->ended[i].ended_ns < l->now_ns)
            record_latency(l, t->ended[i].which, t->ended[i].begun_ns);
        else
            t->ended[kept++] = t->ended[i];
    }
    t->ended_count = kept;
}

static uint64_t count_breaks(const struct lane *l)
{
    return atomic_load_explicit(&l->counters.qp_broken, memory_order_relaxed);
}

/* It may not have ended well: a queue pair broke, which may be in order again by now, or its place
 * is another one's, or the device did not take it. */
static bool is_lost(const struct lane *l)
{
    const struct latencies *t = &l->counters.latencies;
    const struct physical_qp *p = t->followed.on;
    return p->qp != t->followed.qp || count_breaks(l) != t->followed.breaks ||
           (int32_t)(p->tail - t->followed.index) <= 0;
}

static void look_at_followed(struct lane *l)
{
    struct latencies *t = &l->counters.latencies;
    const struct physical_qp *p = t->followed.on;
    if (is_lost(l)) {
        t->followed.on = NULL;
    } else if ((int32_t)(p->head - t->followed.index) > 0) {
        record_latency(l, LANE_LATENCY_OPERATION, t->followed.begun_ns);
        t->followed.on = NULL;
    }
}

/* The first of what is chained, if it is a worker's. */
void lane_latency_follow(struct lane *l)
{
    struct latencies *t = &l->counters.latencies;
    const struct physical_qp *p = l->chained;
    if (p->chain == NULL || t->followed.on != NULL)
        return;
    const uint32_t index = (uint32_t)p->chain->wr_id;
    if ((*ring_at(l, p, index))->kind != WR_WORKER)
        return;
    t->wanted = 0;
    t->timing = 1;
    t->followed.on = p;
    t->followed.qp = p->qp;
    t->followed.index = index;
    t->followed.breaks = count_breaks(l);
    t->followed.begun_ns = l->now_ns;
}

void lane_latency_go_on(struct lane *l)
{
    if (l->counters.latencies.ended_count > 0)
        record_ended(l);
    if (l->counters.latencies.followed.on != NULL)
        look_at_followed(l);
    note_timing(l);
}

const struct base_latency *lane_latency(const struct lane *l, enum lane_latency which)
{
    return &l->counters.latencies.of[which];
}
