/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <stdlib.h>

#include "agent_process.h"
#include "base/assert.h"
#include "base/clock.h"
#include "calls.h"
#include "cluster_state.h"
#include "common_store.h"
#include "disk.h"
#include "fabric/sim.h"
#include "intruder.h"
#include "kept.h"
#include "lives.h"
#include "ledger.h"
#include "metad_judge.h"
#include "metad_process.h"
#include "operators.h"
#include "trace.h"
#include "transfers.h"

enum { SLOW_MOST_S = 5, BOOT_MOST_S = 60, STEER_MOST_PPM = 80000 };

/* A host that has no clock with a battery of its own is in 1970 until somebody tells it. */
static const uint64_t WALL_MOST_MS = 2 * 1750000000000ull;

/* One that is to happen, or lasts. */
struct happening {
    struct play_fault fault;
    uint32_t number;
    struct play_event due, begin, end;
};

static struct {
    struct happening *at;
    uint32_t count;
} all;

static const struct play_calls_network GOOD_CALLS = {.delay_ns = 200000, .jitter_ns = 100000};

/* ---- processes that go and come */

static void kill_agent(struct node *n)
{
    if (n->agent == NULL)
        return;
    play_agent_kill(n->agent);
    n->agent = NULL;
}

static void kill_metad(struct node *n)
{
    if (n->metad == NULL)
        return;
    play_metad_kill(n->metad);
    n->metad = NULL;
}

static void kill_worker(struct node *n, uint32_t number)
{
    if (n->worker[number] == NULL)
        return;
    cluster_note_worker(n->worker[number]);
    play_worker_kill(n->worker[number]);
    n->worker[number] = NULL;
}

/* In half of the cases it has forgotten the time of day, or has an old one. */
static void boot_host(struct node *n, const struct play_fault *f)
{
    play_host_boot(&n->host, f->amount % (BOOT_MOST_S * BASE_NS_PER_S));
    if (f->amount % 2 == 0)
        play_host_step_wall(&n->host, -(int64_t)(f->amount / 2 % WALL_MOST_MS));
    cluster_start_all(n);
}

static void begin_again(struct node *n, const struct play_fault *f)
{
    n->off -= f->kind == FAULT_POWER_OFF;
    if (n->off > 0)
        return;
    if (f->kind == FAULT_KILL_METAD && n->metad == NULL)
        cluster_start_metad(n);
    else if (f->kind == FAULT_KILL_WORKER && f->worker < cluster.settings.workers &&
             n->worker[f->worker] == NULL)
        cluster_start_worker(n, f->worker);
    else if (f->kind == FAULT_STOP_AGENT)
        kill_agent(n); /* it has had its time to end */
    else if (f->kind == FAULT_POWER_OFF)
        boot_host(n, f);
    if ((f->kind == FAULT_STOP_AGENT || f->kind == FAULT_KILL_AGENT) && n->agent == NULL)
        cluster_start_agent(n);
}

static void cut_power(struct node *n)
{
    n->off++;
    kill_agent(n);
    kill_metad(n);
    for (uint32_t i = 0; i < cluster.settings.workers; i++)
        kill_worker(n, i);
    if (n->intruder != NULL)
        play_intruder_kill(n->intruder);
    play_disk_power_cut(n->host.disk);
}

/* An agent's goes with its incarnation, a metaserver's with the nodes that it knew and all that
 * operators have set there. */
static void lose_disk(const struct node *n)
{
    uint8_t gid[16];
    cluster_gid(n->host.number, gid);
    play_trace("fate", "%s loses its disk", n->host.name);
    play_disk_lose(n->host.disk);
    play_kept_forget(n->host.name);
    if (n->host.number < cluster.settings.nodes) {
        play_lives_lost(gid);
        return;
    }
    if (cluster.settings.shared) /* it is elsewhere */
        return;
    play_lives_forgotten(n->host.name);
    if (cluster.operators != NULL)
        play_operators_lost(cluster.operators, n->host.number - cluster.settings.nodes);
}

static bool loses_disk(const struct play_fault *f)
{
    return f->hard && (f->kind == FAULT_KILL_AGENT || f->kind == FAULT_KILL_METAD ||
                       f->kind == FAULT_POWER_OFF);
}

static void kill_process(struct node *n, const struct play_fault *f)
{
    if (f->kind == FAULT_KILL_AGENT)
        kill_agent(n);
    if (f->kind == FAULT_STOP_AGENT && n->agent != NULL)
        play_agent_stop(n->agent);
    if (f->kind == FAULT_KILL_METAD)
        kill_metad(n);
    if (f->kind == FAULT_KILL_WORKER)
        kill_worker(n, f->worker);
    if (f->kind == FAULT_POWER_OFF)
        cut_power(n);
    if (loses_disk(f))
        lose_disk(n);
}

/* ---- processes and hosts that stand still */

static struct fab *device_of(const struct node *n)
{
    if (n->agent != NULL)
        return n->agent->agent != NULL ? n->agent->agent->fab : NULL;
    return n->metad != NULL ? n->metad->endpoint.fab : NULL;
}

/* A hypervisor that stops a machine stops its clocks, in half of the cases here; the device's go
 * on, as those of a virtual function do. */
static void suspend_host(struct node *n, const struct play_fault *f, uint64_t until_ns)
{
    const bool stops_clock = f->amount / 8 % 2 == 0;
    if (stops_clock) {
        play_trace("fate", "the clocks of %s stand still meanwhile", n->host.name);
        cluster_note_stop(n, until_ns);
    }
    play_host_suspend(&n->host, until_ns, stops_clock);
    if (until_ns > n->suspended_ns)
        n->suspended_ns = until_ns;
    play_ledger_suspended(n->host.number, n->suspended_ns);
    if (device_of(n) != NULL)
        sim_device_suspend(device_of(n), true);
}

static void pause_processes(struct node *n, const struct play_fault *f)
{
    const uint64_t until_ns = play_now_ns() + f->lasts_ns;
    const bool whole = f->kind == FAULT_SUSPEND_HOST;
    if (whole)
        suspend_host(n, f, until_ns);
    if ((whole || f->kind == FAULT_PAUSE_AGENT) && n->agent != NULL) {
        play_agent_stand_still(n->agent, until_ns);
        play_ledger_suspended(n->host.number, until_ns);
    }
    if (f->kind == FAULT_PAUSE_METAD && n->metad != NULL)
        play_process_pause(n->metad->process, until_ns);
    for (uint32_t i = 0; i < CLUSTER_WORKERS; i++)
        if (n->worker[i] != NULL && f->kind == FAULT_PAUSE_WORKER && i == f->worker)
            play_process_pause(play_worker_process(n->worker[i]), until_ns);
}

/* ---- the network */

static void set_links(const struct play_fault *f, const struct sim_link *link)
{
    int status = sim_link_set(cluster.net, f->node, f->other, link);
    if (status == 0 && f->hard)
        status = sim_link_set(cluster.net, f->other, f->node, link);
    BASE_ASSERT(status == 0);
}

/* Requests alone get lost, answers alone, or both. */
static void cut_calls(const struct play_fault *f, bool cut)
{
    const struct play_host *node = &cluster_node(f->node)->host,
                           *metad = &cluster_node(f->other)->host;
    const bool requests = f->hard || f->amount % 2 == 0, answers = f->hard || !requests;
    if (requests)
        play_calls_cut(node, metad, cut);
    if (answers)
        play_calls_cut(metad, node, cut);
}

static struct sim_link bad_link(uint64_t amount)
{
    struct sim_link l = cluster.good_link;
    l.loss_ppm = (uint32_t)(amount % 100000);
    l.repeat_ppm = (uint32_t)(amount / 7 % 50000);
    l.late_ppm = (uint32_t)(amount / 11 % 100000);
    l.late_ns = amount / 13 % (20 * BASE_NS_PER_MS);
    l.jitter_ns = amount / 17 % BASE_NS_PER_MS;
    return l;
}

static void begin_network_fault(struct node *n, const struct play_fault *f)
{
    (void)n;
    const struct sim_link bad = bad_link(f->amount),
                          none = {.delay_ns = cluster.good_link.delay_ns, .cut = true};
    const struct play_calls_network calls = {.delay_ns = f->amount % (200 * BASE_NS_PER_MS),
                                             .jitter_ns = f->amount / 3 % (50 * BASE_NS_PER_MS),
                                             .lost_ppm = (uint32_t)(f->amount / 5 % 200000),
                                             .reset_ppm = (uint32_t)(f->amount / 7 % 200000)};
    if (f->kind == FAULT_CUT_LINK)
        set_links(f, &none);
    else if (f->kind == FAULT_BAD_LINK)
        set_links(f, &bad);
    else if (f->kind == FAULT_CUT_CALLS)
        cut_calls(f, true);
    else
        play_calls_set_network(&calls);
}

static void end_network_fault(struct node *n, const struct play_fault *f)
{
    (void)n;
    if (f->kind == FAULT_CUT_CALLS)
        cut_calls(f, false);
    else if (f->kind == FAULT_BAD_CALLS)
        play_calls_set_network(&GOOD_CALLS);
    else
        set_links(f, &cluster.good_link);
}

/* ---- devices, clocks, disks */

static void overflow_cq(struct node *n, struct fab *fab)
{
    if (sim_device_overflow_cq(fab) && n->overflowed_ns == 0)
        n->overflowed_ns = play_now_ns();
}

static void begin_device_fault(struct node *n, const struct play_fault *f)
{
    struct fab *fab = device_of(n);
    const struct sim_faults bad = {.control_ns = f->amount % (5 * BASE_NS_PER_MS),
                                   .control_slow_ppm = (uint32_t)(f->amount / 3 % 100000),
                                   .control_slow_ns = f->amount / 5 % BASE_NS_PER_S,
                                   .create_refused_ppm = (uint32_t)(f->amount / 7 % 100000),
                                   .control_error_ppm = (uint32_t)(f->amount / 11 % 100000),
                                   .post_refused_ppm = (uint32_t)(f->amount / 13 % 1000),
                                   .break_ppm = (uint32_t)(f->amount / 17 % 50000),
                                   .flush_late_ppm = (uint32_t)(f->amount / 19 % 1000000),
                                   .flush_late_ns = f->amount / 23 % (5 * BASE_NS_PER_S)};
    if (fab == NULL)
        return;
    if (f->kind == FAULT_PORT_DOWN)
        sim_device_set_port(fab, false);
    else if (f->kind == FAULT_BREAK_QP)
        (void)sim_device_break_qp(fab);
    else if (f->kind == FAULT_BREAK_TARGET)
        (void)sim_device_break_target(fab, f->amount % 2 == 0);
    else if (f->kind == FAULT_OVERFLOW_CQ)
        overflow_cq(n, fab);
    else
        sim_device_set_faults(fab, &bad);
}

static void end_device_fault(struct node *n, const struct play_fault *f)
{
    struct fab *fab = device_of(n);
    const struct sim_faults none = {.control_ns = 0};
    if (fab != NULL && f->kind == FAULT_PORT_DOWN)
        sim_device_set_port(fab, true);
    if (fab != NULL && f->kind == FAULT_BAD_DEVICE)
        sim_device_set_faults(fab, &none);
}

/* A little, as whoever keeps it in step does; or as far as somebody who sets it by hand. */
static void step_clock(struct node *n, const struct play_fault *f)
{
    static const int64_t MOST_MS[] = {1000, 60000, 86400000, 31536000000};
    const int64_t most = MOST_MS[f->amount % 4];
    play_host_step_wall(&n->host, (int64_t)(f->amount / 4 % (uint64_t)(2 * most + 1)) - most);
}

static void set_clock_speed(struct node *n, const struct play_fault *f)
{
    const uint32_t most = cluster_clock_ppm(f->node);
    play_host_set_speed(&n->host, (int32_t)(f->amount % (2 * (uint64_t)most + 1)) - (int32_t)most);
}

/* As far as chrony may. */
static void steer_clock(struct node *n, const struct play_fault *f)
{
    const int32_t ppm = (int32_t)(f->amount % (2 * STEER_MOST_PPM + 1)) - STEER_MOST_PPM;
    play_trace("fate", "the clock of %s is slewed by %d ppm", n->host.name, ppm);
    play_host_steer(&n->host, ppm);
}

static void let_clock_be(struct node *n, const struct play_fault *f)
{
    (void)f;
    play_host_steer(&n->host, 0);
}

static void fill_disk(struct node *n, const struct play_fault *f)
{
    (void)f;
    play_disk_set_full(n->host.disk, true);
}

static void empty_disk(struct node *n, const struct play_fault *f)
{
    (void)f;
    play_disk_set_full(n->host.disk, false);
}

static void slow_disk(struct node *n, const struct play_fault *f)
{
    play_disk_set_slow(n->host.disk, f->amount % (SLOW_MOST_S * BASE_NS_PER_S));
}

static void speed_disk(struct node *n, const struct play_fault *f)
{
    (void)f;
    play_disk_set_slow(n->host.disk, 0);
}

static void resume_device(struct node *n, const struct play_fault *f)
{
    (void)f;
    if (device_of(n) != NULL && n->suspended_ns <= play_now_ns())
        sim_device_suspend(device_of(n), false);
}

/* ---- the store that all metaservers share */

static void set_road(uint32_t number, const struct play_fault *f, bool wrong)
{
    enum { SLOW_MS = 4000, LOST_PERCENT = 40 };
    struct play_common_road r = *play_common_road(number);
    const uint64_t amount = wrong ? f->amount : 0;
    switch (f->kind) {
    case FAULT_CUT_STORE:
        r.cut_there = wrong && (f->hard || amount % 2 == 0);
        r.cut_back = wrong && (f->hard || amount % 2 != 0);
        break;
    case FAULT_NO_QUORUM:
        r.cut_there = r.cut_back = wrong;
        break;
    case FAULT_DEAF:
        r.deaf = wrong;
        break;
    case FAULT_SLOW_STORE:
        r.slow_ns = amount % (SLOW_MS * BASE_NS_PER_MS);
        break;
    default:
        r.lost_percent = (uint32_t)(amount % LOST_PERCENT);
    }
    play_common_set_road(number, &r);
}

static void set_roads(const struct play_fault *f, bool wrong)
{
    for (uint32_t i = 0; i < cluster.settings.metaservers; i++)
        if (f->kind == FAULT_NO_QUORUM || f->node - cluster.settings.nodes == i)
            set_road(i, f, wrong);
}

static void begin_store_fault(struct node *n, const struct play_fault *f)
{
    (void)n;
    if (f->kind == FAULT_COMPACT)
        play_common_compact(f->node - cluster.settings.nodes);
    else
        set_roads(f, true);
}

static void keep_store(struct node *n, const struct play_fault *f)
{
    (void)n, (void)f;
    play_common_keep();
}

/* An operator restores it from a snapshot of his. */
static void put_store_back(struct node *n, const struct play_fault *f)
{
    (void)n, (void)f;
    struct meta_store *store = play_common_put_back();
    if (store == NULL)
        return;
    play_metad_judge_put_back(store);
    if (cluster.operators != NULL)
        play_operators_lost(cluster.operators, 0);
}

static void end_store_fault(struct node *n, const struct play_fault *f)
{
    (void)n;
    if (f->kind != FAULT_COMPACT)
        set_roads(f, false);
}

/* ---- each at its time */

static const struct {
    void (*begin)(struct node *n, const struct play_fault *f);
    void (*end)(struct node *n, const struct play_fault *f); /* NULL: there is nothing to do */
} WHAT[FAULT_KINDS] = {
    [FAULT_KILL_AGENT] = {kill_process, begin_again},
    [FAULT_STOP_AGENT] = {kill_process, begin_again},
    [FAULT_KILL_METAD] = {kill_process, begin_again},
    [FAULT_KILL_WORKER] = {kill_process, begin_again},
    [FAULT_POWER_OFF] = {kill_process, begin_again},
    [FAULT_PAUSE_AGENT] = {pause_processes, NULL},
    [FAULT_PAUSE_METAD] = {pause_processes, NULL},
    [FAULT_PAUSE_WORKER] = {pause_processes, NULL},
    [FAULT_SUSPEND_HOST] = {pause_processes, resume_device},
    [FAULT_CUT_LINK] = {begin_network_fault, end_network_fault},
    [FAULT_CUT_CALLS] = {begin_network_fault, end_network_fault},
    [FAULT_BAD_LINK] = {begin_network_fault, end_network_fault},
    [FAULT_BAD_CALLS] = {begin_network_fault, end_network_fault},
    [FAULT_PORT_DOWN] = {begin_device_fault, end_device_fault},
    [FAULT_BREAK_QP] = {begin_device_fault, NULL},
    [FAULT_OVERFLOW_CQ] = {begin_device_fault, NULL},
    [FAULT_BAD_DEVICE] = {begin_device_fault, end_device_fault},
    [FAULT_CLOCK_SPEED] = {set_clock_speed, NULL},
    [FAULT_CLOCK_STEER] = {steer_clock, let_clock_be},
    [FAULT_CLOCK_STEP] = {step_clock, NULL},
    [FAULT_DISK_FULL] = {fill_disk, empty_disk},
    [FAULT_DISK_SLOW] = {slow_disk, speed_disk},
    [FAULT_BREAK_TARGET] = {begin_device_fault, NULL},
    [FAULT_CUT_STORE] = {begin_store_fault, end_store_fault},
    [FAULT_DEAF] = {begin_store_fault, end_store_fault},
    [FAULT_SLOW_STORE] = {begin_store_fault, end_store_fault},
    [FAULT_LOSE_ANSWERS] = {begin_store_fault, end_store_fault},
    [FAULT_COMPACT] = {begin_store_fault, end_store_fault},
    [FAULT_NO_QUORUM] = {begin_store_fault, end_store_fault},
    [FAULT_PUT_BACK] = {keep_store, put_store_back},
};

/* A metaserver goes, or hears nothing of the store any more, when that has just done something for
 * it. */
static bool waits_for_commit(struct happening *h)
{
    const struct play_fault *f = &h->fault;
    struct node *n = cluster_node(f->node);
    const bool waits = cluster.settings.shared && n->metad != NULL && n->metad->at_commit == NULL &&
                       f->amount / 3 % 4 != 0 &&
                       (f->kind == FAULT_KILL_METAD || f->kind == FAULT_PAUSE_METAD ||
                        f->kind == FAULT_POWER_OFF || f->kind == FAULT_CUT_STORE);
    if (waits)
        n->metad->at_commit = &h->begin;
    return waits;
}

/* What an agent, its host or its links can have happens while a connection beside DC comes or goes:
 * some microseconds after it was begun, or some milliseconds. */
static bool waits_for_transfer(struct happening *h)
{
    enum { DOUBLINGS = 13 };
    const struct play_fault *f = &h->fault;
    return cluster.settings.hybrid && f->amount / 3 % 4 != 0 &&
           (f->kind <= FAULT_STOP_AGENT || f->kind == FAULT_POWER_OFF ||
            f->kind == FAULT_CUT_LINK || f->kind == FAULT_PORT_DOWN ||
            f->kind == FAULT_PAUSE_AGENT || f->kind == FAULT_BREAK_TARGET) &&
           play_transfers_await(f->node, &h->begin,
                                f->amount / 5 % (BASE_NS_PER_US << f->amount / 7 % DOUBLINGS));
}

/* Who stands still does so in the middle of something, more often than at rest; and what breaks
 * does so when it is used, with requests out. */
static void on_due(void *user)
{
    enum { MOST_MS = 2000, OUT_NS = 30000, SOME = 12 };
    struct happening *h = user;
    const struct play_fault *f = &h->fault;
    const struct node *n = cluster_node(f->node);
    const bool waits = (f->kind == FAULT_PAUSE_AGENT || f->kind == FAULT_SUSPEND_HOST ||
                        f->kind == FAULT_BREAK_QP) &&
                       n->agent != NULL && n->agent->at_work == NULL && f->amount % 4 != 0;
    if (waits) {
        n->agent->at_work = &h->begin;
        n->agent->at_inflight = f->kind == FAULT_BREAK_QP ? f->amount / 7 % SOME : 0;
        n->agent->at_work_ns = f->kind == FAULT_BREAK_QP ? f->amount / 5 % OUT_NS : 0;
        n->agent->at_read = f->kind != FAULT_BREAK_QP && f->amount % 8 > 3;
    }
    play_event_after(&h->begin, waits || waits_for_commit(h) || waits_for_transfer(h)
                                    ? MOST_MS * BASE_NS_PER_MS
                                    : 0);
}

/* Others do something while it lasts, or what has broken is wanted again at once. */
static void call_herd(const struct play_fault *f)
{
    const uint64_t most_ms = f->kind == FAULT_BREAK_QP                                       ? 20
                             : f->kind == FAULT_PAUSE_AGENT || f->kind == FAULT_SUSPEND_HOST ? 200
                                                                                             : 0;
    if (cluster.herds && most_ms > 0)
        play_event_after(&cluster.herd, f->amount / 3 % (most_ms * BASE_NS_PER_MS));
}

static void on_begin(void *user)
{
    struct happening *h = user;
    struct node *n = cluster_node(h->fault.node);
    if (n->agent != NULL && n->agent->at_work == &h->begin)
        n->agent->at_work = NULL;
    if (n->metad != NULL && n->metad->at_commit == &h->begin)
        n->metad->at_commit = NULL;
    play_transfers_forget(h->fault.node, &h->begin);
    play_trace("fate", "%u: %s: %s, for %llu ms", h->number, play_fault_name(h->fault.kind),
               n->host.name, (unsigned long long)(h->fault.lasts_ns / BASE_NS_PER_MS));
    cluster.faults++;
    BASE_ASSERT(WHAT[h->fault.kind].begin != NULL);
    WHAT[h->fault.kind].begin(n, &h->fault);
    call_herd(&h->fault);
    play_event_after(&h->end, h->fault.lasts_ns);
}

static void on_end(void *user)
{
    const struct happening *h = user;
    play_trace("fate", "%u: %s is over", h->number, play_fault_name(h->fault.kind));
    if (WHAT[h->fault.kind].end != NULL)
        WHAT[h->fault.kind].end(cluster_node(h->fault.node), &h->fault);
}

void play_faults_begin(const struct play_fault *faults, uint32_t count)
{
    play_transfers_begin();
    all.count = count;
    all.at = calloc(count + 1, sizeof *all.at);
    BASE_ASSERT(all.at != NULL);
    for (uint32_t i = 0; i < count; i++) {
        struct happening *h = &all.at[i];
        h->fault = faults[i];
        h->number = i;
        h->due = (struct play_event){.happen = on_due, .user = h};
        h->begin = (struct play_event){.happen = on_begin, .user = h};
        h->end = (struct play_event){.happen = on_end, .user = h};
        if (!faults[i].left_out)
            play_event_at(&h->due, faults[i].at_ns);
    }
}

void play_faults_end(void)
{
    for (uint32_t i = 0; i < all.count; i++) {
        play_event_cancel(&all.at[i].due);
        play_event_cancel(&all.at[i].begin);
        play_event_cancel(&all.at[i].end);
    }
    free(all.at);
    all.at = NULL;
    all.count = 0;
}
