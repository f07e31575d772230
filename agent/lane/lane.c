/* SPDX-License-Identifier: Apache-2.0 */
/* The lane itself: its making, its pass, its sleep, and its two rings with the control side. */
#include "agent/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "commands.h"
#include "lane_state.h"
#include "message_state.h"
#include "receive/arrivals.h"
#include "receive/message_datagrams.h"
#include "resolve/endpoint.h"
#include "request/active.h"
#include "request/batch_pool.h"
#include "request/batch_run.h"
#include "request/control_ops.h"
#include "request/ending.h"
#include "request/handover.h"
#include "request/intake.h"
#include "request/reply.h"
#include "request/returns.h"
#include "request/revoke.h"
#include "request/session.h"
#include "resolve/flow.h"
#include "resolve/hybrid.h"
#include "resolve/lookup.h"
#include "resolve/prove.h"
#include "resolve/readdress.h"
#include "resolve/region_cache.h"
#include "schedule/room.h"
#include "schedule/rounds.h"
#include "schedule/wait_queue.h"
#include "schedule/window.h"
#include "schedule/window_find.h"
#include "session_state.h"
#include "transmit/cut.h"
#include "transmit/inflight_timeout.h"
#include "transmit/initiators.h"
#include "transmit/timing.h"
#include "transmit/own_read.h"
#include "transmit/physical_qp.h"
#include "transmit/quarantine.h"
#include "transmit/small.h"

enum {
    HOUSEKEEPING_NS = 1000000,
    ARM_LOOKS = 64 /* at queue pairs, before a sleep */
};

/* ---- making */

static bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static bool config_is_sound(const struct lane_config *c, const struct lane_device_objects *r)
{
    return is_power_of_two(c->sq_depth) && is_power_of_two(c->mr_cache) && c->mr_cache >= 4 &&
           c->max_sessions > 0 && c->max_peers > 0 && c->max_flows > 0 && c->max_tenants > 0 &&
           (c->rc ? c->max_links > 0 && !c->hybrid : r->dcis > 0) &&
           (!c->hybrid || c->max_links > 0) && c->connections_per_peer <= 8 &&
           r->dcis <= LANE_MAX_DCIS && r->spares <= LANE_MAX_DCIS &&
           r->max_spares <= LANE_MAX_DCIS && c->mr_lease_ns > c->bound_ns + c->slack_ns &&
           c->merge_sges <= LANE_MERGE_SGES &&
           (c->cut_bytes == 0 || c->cut_bytes >= CUT_AT_LEAST) &&
           r->scratch.size / LANE_SCRATCH_BYTES > c->max_tenants + 1;
}

static uint32_t most_spares(const struct lane_device_objects *r)
{
    return r->max_spares > r->spares ? r->max_spares : r->spares;
}

/* With rc, for each endpoint's connection and two for each metaserver: when one is replaced, both
 * are there for a moment. */
static uint32_t room_for_phys(const struct lane *l)
{
    return l->config.rc ? l->config.max_links + 2 * LANE_MAX_METASERVERS
                        : 1 + l->res.dcis + most_spares(&l->res) +
                              (l->config.hybrid ? l->config.max_links : 0);
}

static int make_phys(struct lane *l)
{
    l->phys_room = room_for_phys(l);
    l->phys = calloc(l->phys_room, sizeof l->phys[0]);
    l->phys_free = calloc(l->phys_room, sizeof l->phys_free[0]);
    if (l->phys == NULL || l->phys_free == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < l->phys_room; i++) {
        l->phys_free[l->phys_free_count++] =
            l->phys_room - 1 - i; /* the first one is taken first */
        l->phys[i].broken = 1;
        l->phys[i].ring = calloc(l->config.sq_depth, sizeof l->phys[i].ring[0]);
        if (l->phys[i].ring == NULL)
            return -ENOMEM;
    }
    return 0;
}

static uint32_t add_phys(struct lane *l, struct fab_qp *qp)
{
    struct physical_qp *p = lane_physical_qp_open(l, qp, NULL);
    if (l->res.rest_until_ns != 0)
        p->broken = BROKEN;
    return (uint32_t)(p - l->phys);
}

static void take_queue_pairs(struct lane *l)
{
    const struct lane_device_objects *r = &l->res;
    if (l->config.rc)
        return;
    l->system_phys = add_phys(l, r->system_dci);
    for (uint32_t i = 0; i < r->dcis; i++)
        l->dci[i] = add_phys(l, r->dci[i]);
    for (uint32_t i = 0; i < r->spares; i++) {
        const uint32_t number = add_phys(l, r->spare[i]);
        if (r->rest_until_ns == 0) /* else it becomes one with its QP_READY */
            l->spare[l->spare_count++] = number;
    }
}

static int make_arrays(struct lane *l)
{
    const struct lane_config *c = &l->config;
    l->sessions = calloc(lane_session_places(l), sizeof l->sessions[0]);
    l->peers = calloc(c->max_peers, sizeof l->peers[0]);
    l->flows = calloc(c->max_flows, sizeof l->flows[0]);
    l->control_tenants = calloc(c->max_tenants, sizeof l->control_tenants[0]);
    l->tenant_flows = calloc(c->max_tenants, sizeof l->tenant_flows[0]);
    l->culprits = calloc(c->max_tenants, sizeof l->culprits[0]);
    l->evictor.hands = calloc(c->max_tenants, sizeof(struct evict_hand));
    l->quarantine_evictor.hands = calloc(c->max_tenants, sizeof(struct evict_hand));
    l->rests = calloc(c->max_tenants, sizeof l->rests[0]);
    l->cache = calloc(c->mr_cache, sizeof l->cache[0]);
    l->tenant_cached = calloc(c->max_tenants, sizeof l->tenant_cached[0]);
    if (l->sessions == NULL || l->peers == NULL || l->flows == NULL || l->tenant_flows == NULL ||
        l->culprits == NULL || l->rests == NULL || l->evictor.hands == NULL ||
        l->quarantine_evictor.hands == NULL || l->control_tenants == NULL || l->cache == NULL ||
        l->tenant_cached == NULL || lane_peer_room_init(l) != 0 || lane_own_reads_new(l) != 0 ||
        lane_quarantined_flows_new(l) != 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < lane_session_places(l); i++)
        l->sessions[i].id = i;
    int status = base_spsc_new(c->max_sessions * 2 + LANE_LODGERS + 64, sizeof(struct lane_command),
                               &l->commands);
    if (status == 0) /* so many that it cannot be full: what each session and queue pair may have
                        pending, paths that are wanted, those that flows drop (flow.c), those that
                        are given back as they come (endpoint.c), metaservers' handles, of which
                        the control side gives none in the place of one that it waits for, and READs
                        that other lanes post for this one and this one for others */
        status = base_spsc_new(
            c->max_sessions * (9 + LANE_SESSION_MAX_ARENAS + LANE_DEREGS + 3) + LANE_LODGERS +
                3 * LANE_PATHS + 2 * l->phys_room + LANE_PROOF_EVENTS + LANE_MAX_METASERVERS +
                2 * l->res.messages.peers + LANE_RELAYS_OF_LANE + LANE_RELAYS + 1,
            sizeof(struct lane_event), &l->events);
    return status;
}

static uint64_t no_wake(void *user, _Atomic uint32_t *word)
{
    (void)user;
    (void)word;
    return 0;
}

static void tell_nobody(void *user, uint32_t session)
{
    (void)user;
    (void)session;
}

static const _Atomic uint32_t clock_is_trusted = 0;

int lane_new(const struct lane_config *config, const struct lane_device_objects *resources,
             struct lane **out)
{
    if (!config_is_sound(config, resources))
        return -EINVAL;
    struct lane *l = calloc(1, sizeof *l);
    if (l == NULL)
        return -ENOMEM;
    l->config = *config;
    if (config->cut_bytes == 0 || config->cut_bytes > resources->fab->caps.max_msg_size)
        l->config.cut_bytes = resources->fab->caps.max_msg_size; /* what is longer is refused */
    if (l->config.clock_doubted == NULL)
        l->config.clock_doubted = &clock_is_trusted;
    l->res = *resources;
    l->res.caps = resources->fab->caps;
    if (!config->rc)
        l->res.caps.atomics &= l->res.caps.dc_atomics;
    l->wake = no_wake;
    l->tell = tell_nobody;
    l->returned.last = &l->returned.first;
    lane_wait_queue_init(l);
    lane_controls_init(l);
    lane_remote_init(l);
    int status = make_phys(l);
    if (status == 0)
        status = make_arrays(l);
    if (status == 0)
        status = lane_lookups_init(l);
    if (status == 0)
        status = lane_windows_new(l);
    if (status == 0)
        lane_windows_choose(l, config->window_policy);
    if (status == 0)
        status = lane_inflight_new(l);
    if (status == 0)
        status = lane_smalls_new(l);
    if (status == 0)
        status = lane_actives_new(l);
    if (status == 0)
        status = lane_endings_new(l);
    if (status == 0)
        status = lane_batch_pool_init(&l->batches, config->batch_bytes, config->max_tenants);
    if (status == 0)
        status = lane_messages_new(l);
    if (status == 0 && config->hybrid)
        status = lane_hybrid_new(l);
    if (status != 0) {
        lane_free(l);
        return status;
    }
    l->away_ns = config->suspect_ns / 4;
    l->batch = LANE_BATCH;
    l->evictor.culprits = l->culprits;
    l->quarantine_evictor.of_quarantine = 1;
    lane_rooms_init(l);
    lane_initiators_init(l);
    take_queue_pairs(l);
    *out = l;
    return 0;
}

void lane_free(struct lane *l)
{
    if (l == NULL)
        return;
    for (uint32_t i = 0; l->phys != NULL && i < l->phys_room; i++)
        free(l->phys[i].ring);
    free(l->phys);
    free(l->phys_free);
    free(l->sessions);
    lane_actives_free(l);
    lane_endings_free(l);
    lane_batch_pool_fini(&l->batches);
    free(l->peers);
    lane_peer_room_free(l);
    free(l->flows);
    free(l->tenant_flows);
    free(l->culprits);
    lane_quarantined_flows_free(l);
    free(l->evictor.hands);
    free(l->quarantine_evictor.hands);
    free(l->rests);
    free(l->control_tenants);
    free(l->cache);
    free(l->tenant_cached);
    lane_own_reads_free(l);
    lane_lookups_free(l);
    lane_windows_free(l);
    lane_inflight_free(l);
    lane_smalls_free(l);
    lane_messages_free(l);
    lane_hybrid_free(l);
    base_spsc_free(l->commands);
    base_spsc_free(l->events);
    free(l);
}

/* One that the control side gave and the lane has not taken, or gave back and was not heard of. */
static struct fab_ah *take_ah_under_way(struct lane *l)
{
    struct lane_command c;
    struct lane_event e;
    while (base_spsc_pop(l->commands, &c) == 0)
        if (c.kind == LANE_COMMAND_PATH_READY && c.path.path.ah != NULL)
            return c.path.path.ah;
        else if (c.kind == LANE_COMMAND_AH_READY && c.ah.ah != NULL)
            return c.ah.ah;
    while (lane_event(l, &e))
        if (e.kind == LANE_EVENT_DROP_PATH && e.path.ah != NULL)
            return e.path.ah;
    return NULL;
}

struct fab_ah *lane_take_ah(struct lane *l)
{
    struct fab_ah *under_way = take_ah_under_way(l);
    if (under_way == NULL)
        under_way = lane_datagrams_give_ah(l);
    if (under_way != NULL)
        return under_way;
    for (uint32_t i = 0; i < flows_ever(l); i++) {
        struct fab_ah *ah = l->flows[i].ah;
        l->flows[i].ah = NULL;
        if (ah != NULL)
            return ah;
    }
    struct fab_ah *ah = l->proof.flow.ah;
    l->proof.flow.ah = NULL;
    return ah;
}

void lane_set_random(struct lane *l, int (*fill)(void *user, void *bytes, size_t n), void *user)
{
    l->random_fill = fill;
    l->random_user = user;
    (void)fill(user, &l->seed, sizeof l->seed);
    if (l->messages != NULL)
        lane_messages_begin(l);
}

void lane_set_wake(struct lane *l, uint64_t (*wake)(void *user, _Atomic uint32_t *word), void *user)
{
    l->wake = wake;
    l->wake_user = user;
}

void lane_set_tell(struct lane *l, void (*tell)(void *user, uint32_t session), void *user)
{
    l->tell = tell;
    l->tell_user = user;
}

/* ---- commands and events */

int lane_command(struct lane *l, const struct lane_command *command)
{
    return base_spsc_push(l->commands, command);
}

/* ---- the pass */

/* Whether this host's clock can be trusted. That a lane hears of it a millisecond later is little
 * beside the time that it took to find out. */
static void look_at_clock(struct lane *l)
{
    const bool was_doubted = l->lease_doubt != 0;
    const bool doubted = atomic_load_explicit(l->config.clock_doubted, memory_order_acquire) != 0;
    l->lease_doubt = doubted ? LANE_NEVER : 0;
    if (was_doubted && !doubted)
        lane_remote_clock_is_back(l);
}

/* Requests of workers that are not over. */
static uint32_t count_taken(const struct lane *l)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < l->config.max_tenants; i++)
        taken += active_out(&l->actives[i]);
    return taken;
}

/* Whether one of two lists has something, by one branch: most often neither has. */
static inline bool has_either(const void *a, const void *b)
{
    return ((uintptr_t)a | (uintptr_t)b) != 0;
}

static void keep_house(struct lane *l)
{
    if (l->waiting > 0 && l->lets_go > 0)
        lane_rounds_retry(l);
    if (l->now_ns >= l->housekeeping_ns) {
        l->housekeeping_ns = l->now_ns + HOUSEKEEPING_NS;
        lane_session_count_batch(l);
        look_at_clock(l);
        schema_peers_live(l->res.peers);
        lane_lookups_due(l);
        if (lane_proof_is_due(l))
            lane_proof_go_on(l);
        if (l->config.hybrid)
            lane_hybrid_look(l);
        lane_flows_sweep(l);
        if (l->readdressing > 0) {
            lane_returns_ring(l);
            /* What that has chained goes now: nothing is behind the request for an end. */
            lane_physical_qp_ring(l);
            lane_readdress_go_on(l);
        }
        lane_sessions_unstall(l);
        if (l->messages != NULL)
            lane_arrivals_look(l);
        if (lane_inflight_check(l)) {
            lane_returns_poll_all(l);
            lane_physical_qp_ring(l); /* likewise */
            lane_inflight_end_overdue(l);
        }
        if (l->now_ns >= l->await_due_ns) {
            lane_returns_poll_all(l);
            lane_inflight_give_up(l);
        }
        if (l->tenants_quarantined + l->tenants_resting > 0 || l->has_quarantine_dci ||
            l->quarantine_untold)
            lane_quarantine_look(l);
        if (returns_wait(l))
            lane_returns_take(l);
        if (l->search.policy->finds)
            lane_windows_find(l, count_taken(l));
        lane_latency_want(l);
        if (l->look_due_ns < l->housekeeping_ns) /* one time to compare in each pass */
            l->housekeeping_ns = l->look_due_ns;
    }
    if (has_either(TAILQ_FIRST(&l->crowd), STAILQ_FIRST(&l->due_windows)) && l->lets_go > 0)
        lane_rounds_serve(l);
    if (l->doomed != NULL)
        lane_sessions_end_doomed(l);
    if (endings_wait(l))
        lane_endings_go_on(l);
    if (l->counters.latencies.timing)
        lane_latency_go_on(l);
}

/* What comes behind all that workers wait for in a pass. */
static __attribute__((noinline)) void end_pass(struct lane *l)
{
    if (l->batching.count > 0 && l->lets_go > 0) {
        lane_batches_go_on(l);
        lane_returns_ring(l); /* no window comes or goes while its count is of what is not out */
    }
    if (l->refreshes > 0) {
        lane_remote_refresh(l);
        lane_physical_qp_ring(l);
        lane_returns_take(l);
    }
}

uint32_t lane_step(struct lane *l, uint64_t now_ns)
{
    /* A lane that was not scheduled for long must look at its completions before it blames a peer
     * for the pause. */
    if (now_ns - l->now_ns > l->away_ns)
        l->trust_ns = now_ns + l->config.suspect_ns;
    l->now_ns = now_ns;
    l->lease_now_ns = now_ns | l->lease_doubt;
    l->did = 0;
    COUNT(l, passes, 1);
    if ((l->due_count | l->revoking_count) != 0) {
        lane_sessions_due(l);
        lane_revocations_due(l);
    }
    if (!base_spsc_is_empty(l->commands))
        lane_commands_take(l);
    intake_poll(l);
    if (has_either(fair_queue_first(&l->controls), TAILQ_FIRST(&l->paused)))
        lane_intake_controls(l);
    keep_house(l);
    if (l->chained != NULL) {
        if (l->counters.latencies.wanted)
            lane_latency_follow(l);
        lane_physical_qp_ring(l);
    }
    if (l->returned.first != NULL || lookups_have_ended(&l->lookups))
        lane_returns_take(l);
    const uint32_t polled = lane_returns_poll(l);
    l->did += polled == LANE_POLLED ? lane_returns_poll_more(l) : polled;
    if (l->messages_due) {
        lane_arrivals_go_on(l);
        lane_returns_ring(l); /* READs of large messages */
    }
    if (sessions_have_news(l))
        lane_sessions_publish(l);
    if ((l->batching.count | l->refreshes) != 0)
        end_pass(l);
    if (l->did == 0)
        COUNT(l, empty_polls, 1);
    return l->did;
}

/* ---- sleeping */

static uint64_t next_due(const struct lane *l)
{
    uint64_t due = !TAILQ_EMPTY(&l->stalled) || l->readdressing > 0 || l->silenced
                       ? l->now_ns + HOUSEKEEPING_NS
                       : lane_rounds_due(l);
    const uint64_t wakes_ns = lane_wakes_due(l);
    due = wakes_ns < due ? wakes_ns : due;
    /* Who finds sizes sees that nothing ends, too. */
    const bool looks = l->search.on && WINDOW_GET(l->device_window->ops) > 0;
    if ((l->messages != NULL || looks) && l->now_ns + HOUSEKEEPING_NS < due)
        due = l->now_ns + HOUSEKEEPING_NS;
    const struct session *s;
    TAILQ_FOREACH(s, &l->due, by_due) {
        uint64_t at =
            s->due_ns == 0 || session_inflight(s) > 0 ? l->now_ns + HOUSEKEEPING_NS : s->due_ns;
        due = at < due ? at : due;
    }
    TAILQ_FOREACH(s, &l->revoking, by_revoking) {
        uint64_t at = s->revoke_ns == 0 ? l->now_ns + HOUSEKEEPING_NS : s->revoke_ns;
        due = at < due ? at : due;
    }
    if (lane_proof_is_due(l) && l->now_ns + HOUSEKEEPING_NS < due)
        due = l->now_ns + HOUSEKEEPING_NS;
    const uint64_t lookup_ns = lane_lookups_next(l), control_ns = lane_controls_due(l);
    due = lookup_ns < due ? lookup_ns : due;
    due = control_ns < due ? control_ns : due;
    const uint64_t look_ns = lane_inflight_next(l);
    return look_ns < due ? look_ns : due;
}

/* Whether a completion may come: of what is out, or of a message. Of many queue pairs it is not
 * asked, which would take longer than an event for nothing. */
static bool may_complete(const struct lane *l)
{
    bool out = l->messages != NULL || l->phys_room > ARM_LOOKS;
    for (uint32_t i = 0; !out && i < l->phys_room; i++)
        out = l->phys[i].head != l->phys[i].tail;
    return out;
}

/* Held to tests/model/doorbell.pml. An armed queue tells of the first completion that comes, also
 * of a request that is posted after the lane was woken, and polled for: so it is armed only for
 * what is out. */
uint64_t lane_prepare_sleep(struct lane *l, uint64_t now_ns)
{
    l->now_ns = now_ns;
    if (l->counters.latencies.timing)
        lane_latency_go_on(l);
    if (fab_is_busy(l->res.cq)) /* only polling it makes it go on */
        return 0;
    lane_sessions_sleep(l);
    if (may_complete(l))
        (void)fab_arm(l->res.cq, false);
    atomic_thread_fence(memory_order_seq_cst);
    if (l->active_count > 0 || lane_returns_poll(l) > 0 || base_spsc_count(l->commands) > 0 ||
        endings_wait(l) || !STAILQ_EMPTY(&l->dirty) || l->messages_due ||
        l->returned.first != NULL || lane_wakes_due(l) <= l->now_ns ||
        lookups_have_ended(&l->lookups) || lane_rounds_due(l) <= l->now_ns ||
        lane_controls_due(l) <= l->now_ns) {
        lane_sessions_publish(l);
        return 0;
    }
    COUNT(l, sleeps, 1);
    lane_handover_slept(l);
    return next_due(l);
}

void lane_note_wake(struct lane *l)
{
    COUNT(l, wakes, 1);
}

bool lane_doorbell(struct lane *l, uint32_t session)
{
    struct session *s = session < lane_session_places(l) ? &l->sessions[session] : NULL;
    if (s == NULL || s->state != SESSION_LIVE)
        return false;
    const uint32_t tail = atomic_load_explicit(&s->rw->sq_tail, memory_order_acquire);
    if (tail == s->rung_tail)
        return false;
    s->rung_tail = tail;
    lane_session_activate(l, s);
    return true;
}

void lane_stats(const struct lane *l, struct lane_stats *out)
{
#define COPY(what) out->what = atomic_load_explicit(&l->counters.what, memory_order_relaxed)
    COPY(passes), COPY(empty_polls), COPY(sleeps), COPY(wakes), COPY(handovers), COPY(posted),
        COPY(completed), COPY(failed), COPY(refused), COPY(doorbells);
    COPY(endpoint_reads), COPY(name_reads), COPY(mr_reads), COPY(mr_renewals), COPY(lookups_again),
        COPY(lookups_failed), COPY(lookups_awaited), COPY(lookups_compared), COPY(relays),
        COPY(shares_compared), COPY(proofs), COPY(proofs_failed), COPY(wrong_keys), COPY(qp_broken);
    COPY(merged), COPY(merged_failed), COPY(batches), COPY(batches_refused), COPY(pieces);
    COPY(control_pauses), COPY(qp_overdue), COPY(posts_refused), COPY(reposted), COPY(retried),
        COPY(walked), COPY(paths_failed), COPY(links_evicted), COPY(links_taken), COPY(links_left),
        COPY(transfers), COPY(links), COPY(sessions), COPY(vqps), COPY(peers), COPY(flows),
        COPY(mrs), COPY(suspects), COPY(quarantined), COPY(tenants_quarantined),
        COPY(tenants_resting);
    COPY(messages_sent), COPY(messages_received), COPY(messages_rnr), COPY(messages_refused),
        COPY(messages_stray), COPY(datagrams_sent), COPY(receives_posted), COPY(credits_granted),
        COPY(message_peers), COPY(messages_large), COPY(messages_near), COPY(messages_unadmitted),
        COPY(port_guests);
    for (int i = 0; i < LANE_WINDOW_SCOPES; i++)
        COPY(window_waits[i]), COPY(window_waited_ns[i]);
#undef COPY
    /* Of what only grows, so that it does too, whenever somebody looks. */
    out->work_requests =
        out->doorbells + atomic_load_explicit(&l->counters.chained_behind, memory_order_relaxed);
    out->inflight = count_taken(l);
}

uint64_t lane_lookups_failed(const struct lane *l)
{
    return atomic_load_explicit(&l->counters.lookups_failed, memory_order_relaxed);
}
