/* SPDX-License-Identifier: Apache-2.0 */
/* Peers' regions: virtual keys resolved by one READ of the owner's MR table, then believed for the
 * lease (docs/leases.md#the-rule; KRCore's ValidMR and MRStore).
 *
 * A record that was READ at t, a time taken before the READ was posted, may be posted under until t
 * + lease - bound - slack: the lease is its owner's, who says it in the record, and bound and slack
 * are this device's. One that is in use is READ again before that, so that a worker that goes on
 * never waits for it. */
#include "resolve/region_cache.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"
#include "resolve/flow_news.h"
#include "resolve/grants.h"
#include "resolve/lease.h"
#include "resolve/liveness.h"
#include "resolve/path.h"
#include "session_state.h"
#include "transmit/operation.h"
#include "transmit/own_read.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"
#include "vqp_state.h"

enum {
    WAYS = 4,
    TRIES = 3,
    RENEW_PART = 3 /* of the time that may be posted under a record, the last third renews it: a
                      READ takes far less */
};

/* A worker that lives for long meets keys that are gone: it is to be told from one that guesses. */
static const uint64_t GUESS_REFILL_NS = 1000000000;

static bool is_entry(const struct cached *e, const struct flow *f, uint32_t vkey)
{
    return (e->state != CACHED_FREE || e->reading) && e->record.vkey == vkey &&
           e->peer_slot == f->peer_slot && e->peer_gen == f->peer_gen;
}

void lane_remote_init(struct lane *l)
{
    l->cache_sets = (l->config.mr_cache - 1) & ~(uint64_t)(WAYS - 1);
}

/* Nobody can tell which of his keys has the place of whose. */
static struct cached *set_of(struct lane *l, const struct flow *f, uint32_t vkey)
{
    const uint64_t hash = base_hash_u64((uint64_t)vkey << 32 | f->peer_slot, l->seed);
    return &l->cache[hash & l->cache_sets];
}

static uint32_t count_of(const struct lane *l, const struct cached *e)
{
    return e->tenant != 0 ? l->tenant_cached[e->tenant - 1] : 0;
}

static void assign_tenant(struct lane *l, struct cached *e, uint32_t tenant_slot)
{
    if (e->tenant != 0)
        l->tenant_cached[e->tenant - 1]--;
    e->tenant = (uint16_t)(tenant_slot + 1);
    l->tenant_cached[tenant_slot]++;
}

/* Whoever uses it too, and has fewer, keeps it from those that have many. */
static void adopt_entry(struct lane *l, struct cached *e, uint32_t tenant_slot)
{
    if (e->tenant != tenant_slot + 1 && l->tenant_cached[tenant_slot] < count_of(l, e))
        assign_tenant(l, e, tenant_slot);
}

/* Whether a goes before b: one that nothing may be posted under any more, else one of who has most;
 * of these the one that was READ longest ago. */
static bool goes_before(const struct lane *l, const struct cached *a, const struct cached *b)
{
    const bool a_is_over = l->now_ns >= a->post_until_ns, b_is_over = l->now_ns >= b->post_until_ns;
    if (a_is_over != b_is_over)
        return a_is_over;
    if (!a_is_over && count_of(l, a) != count_of(l, b))
        return count_of(l, a) > count_of(l, b);
    return a->post_until_ns < b->post_until_ns;
}

/* Of those that are not being READ. */
static struct cached *choose_victim(const struct lane *l, struct cached *set)
{
    struct cached *victim = NULL;
    for (int i = 0; i < WAYS; i++)
        if (!set[i].reading && (victim == NULL || goes_before(l, &set[i], victim)))
            victim = &set[i];
    return victim;
}

/* The entry of (peer, key), else one to be used for it, else NULL: all of the set are being READ.
 */
static struct cached *find_entry(struct lane *l, const struct flow *f, uint32_t vkey,
                                 uint32_t tenant_slot)
{
    struct cached *set = set_of(l, f, vkey);
    for (int i = 0; i < WAYS; i++)
        if (is_entry(&set[i], f, vkey))
            return &set[i];
    struct cached *victim = choose_victim(l, set);
    if (victim != NULL) {
        assign_tenant(l, victim, tenant_slot);
        *victim = (struct cached){
            .tenant = victim->tenant, .peer_slot = f->peer_slot, .peer_gen = f->peer_gen};
        victim->record.vkey = vkey;
    }
    return victim;
}

static struct schema_table_desc table_of(struct lane *l, const struct flow *f)
{
    const struct peer *p = &l->peers[f->peer_slot];
    const struct schema_peer *shared = lane_peer_shared(l, f->peer_slot);
    struct schema_endpoint_record r = {
        .pool = shared->pool,
        .incarnation = shared->incarnation,
        .udqpn_slots = (uint32_t)p->mr_log2 << 24,
        .mr_table_addr_hi = (uint16_t)(p->mr_addr >> 32),
        .mr_table_addr_lo = (uint32_t)p->mr_addr,
        .mr_table_rkey = p->mr_rkey,
    };
    memcpy(r.gid, shared->gid, sizeof r.gid);
    return schema_mr_table_desc(&r);
}

/* tenant: its place + 1 that needs it. */
static bool start_read(struct lane *l, struct flow *f, struct cached *e, uint32_t tenant)
{
    struct physical_qp *p = flow_phys(l, f);
    if (l->peers[f->peer_slot].mr_log2 == 0) { /* a node without regions */
        e->state = CACHED_UNKNOWN;
        e->post_until_ns = l->now_ns + l->config.mr_lease_ns / 4;
        return true;
    }
    if (!lane_physical_qp_has_room(p))
        return false;
    int64_t scratch = lane_scratch_take(l, tenant);
    if (scratch < 0)
        return false;
    struct wr *w = lane_own_read_take(l);
    if (w == NULL) {
        lane_scratch_give(l, (uint32_t)scratch);
        return false;
    }
    const struct peer *peer = &l->peers[f->peer_slot];
    struct schema_table_desc d = table_of(l, f);
    e->reading = 1;
    e->scratch = (uint32_t)scratch;
    e->read_ns = l->now_ns;
    w->op = operation_of(SCHEMA_OP_READ);
    w->kind = WR_MR_READ;
    w->flow = f;
    w->index = (uint32_t)(e - l->cache);
    w->sge[0] = (struct ibv_sge){.addr = (uintptr_t)lane_scratch_at(l, e->scratch),
                                 .length = SCHEMA_TABLE_SPAN_BYTES,
                                 .lkey = l->res.scratch_lkey};
    w->fab = (struct fab_wr){.sg_list = w->sge,
                             .num_sge = 1,
                             .opcode = w->op->opcode,
                             .key.rkey = d.rkey,
                             .remote_addr = d.addr + (uint64_t)schema_mr_home(&d, e->record.vkey) *
                                                         SCHEMA_RECORD_BYTES,
                             .ah = f->ah,
                             .dest_qpn = peer->dctn,
                             .dc_key = peer->dc_key};
    w->signaled = 1;
    flow_posted(l, f, 1);
    lane_physical_qp_chain(l, p, w);
    COUNT(l, mr_reads, 1);
    return true;
}

/* Of an owner whose lease is shorter than a request may take here nothing may be posted at all. */
static bool is_too_short(const struct lane *l, const struct cached *e)
{
    return schema_record_lease_ns(e->record.flags) <= l->config.bound_ns + l->config.slack_ns;
}

static void believe_record(const struct lane *l, struct cached *e)
{
    const uint64_t lease_ns = schema_record_lease_ns(e->record.flags);
    const uint64_t usable_ns = is_too_short(l, e)
                                   ? l->config.mr_lease_ns / 4
                                   : lease_ns - l->config.bound_ns - l->config.slack_ns;
    e->post_until_ns = e->read_ns + usable_ns;
    e->sure_until_ns = is_too_short(l, e) ? 0 : e->post_until_ns - usable_ns / RENEW_PART;
    e->key.rkey = e->record.rkey;
    e->key.not_after_ns = l->config.deadlines       ? e->post_until_ns + l->config.slack_ns
                          : l->config.posts_in_time ? e->post_until_ns
                                                    : 0;
}

static void disbelieve_record(struct cached *e, enum cached_state state, uint64_t until_ns)
{
    e->state = (uint8_t)state;
    e->post_until_ns = until_ns;
    e->sure_until_ns = 0;
}

void lane_remote_done(struct lane *l, struct wr *w, enum ibv_wc_status answer)
{
    struct cached *e = &l->cache[w->index];
    struct schema_mr_record record;
    const struct lane_config *c = &l->config;
    e->reading = e->guessed = 0;
    lane_flow_notify(l, w->flow);
    if (w->flow->twin != NULL)
        lane_flow_notify(l, w->flow->twin);
    if (l->quarantined.count > 0 ||
        l->config.connections_per_peer > 1) /* others of the same peer may wait for it too */
        lane_flows_notify(l, w->flow->peer_slot);
    if (answer != IBV_WC_SUCCESS) { /* the owner does not answer: unless it is another by now, those
                                       that wait fail; it is asked again soon */
        disbelieve_record(e, CACHED_FREE, 0);
        if (answer != IBV_WC_WR_FLUSH_ERR) /* else it was another's fault */
            lane_flow_doubt(l, w->flow, c->suspect_ns);
        lane_scratch_give(l, e->scratch);
        return;
    }
    const void *span = lane_scratch_at(l, e->scratch);
    struct schema_table_desc d = table_of(l, w->flow);
    int status = schema_mr_find(&d, span, e->record.vkey, &record);
    lane_scratch_give(l, e->scratch);
    if (status == 0) {
        e->state = CACHED_VALID;
        e->tries = 0;
        e->record = record;
        believe_record(l, e);
        return;
    }
    if (status == -EAGAIN && e->state == CACHED_VALID) /* and it is, until its time is over */
        return;
    /* Torn: the next try READs again. Not there, or torn for good: unknown, and that is believed
     * for a while too. */
    const bool again = status == -EAGAIN && ++e->tries < TRIES;
    disbelieve_record(e, CACHED_UNKNOWN, again ? 0 : l->now_ns + c->mr_lease_ns / 4);
    e->record.flags = 0;
    if (!again)
        e->tries = 0;
}

void lane_remote_doubt(struct lane *l, const struct wr *w)
{
    struct cached *set = set_of(l, w->flow, w->vkey);
    for (int i = 0; i < WAYS; i++)
        if (is_entry(&set[i], w->flow, w->vkey) && set[i].state == CACHED_VALID)
            disbelieve_record(&set[i], CACHED_VALID, l->now_ns);
}

/* Who guesses too often loses its session. */
static void count_wrong_key(struct lane *l, struct session *s)
{
    const uint64_t seconds = (l->now_ns - s->wrong_ns) / GUESS_REFILL_NS;
    COUNT(l, wrong_keys, 1);
    s->wrong_keys -= seconds < s->wrong_keys ? (uint32_t)seconds : s->wrong_keys;
    s->wrong_ns += seconds * GUESS_REFILL_NS;
    if (++s->wrong_keys > l->config.guess_budget)
        session_doom(l, s, SCHEMA_REASON_GUESSES);
}

/* Another tenant's key is answered like an unknown one. Of unknown ones it is the READ that counts
 * as a guess, not the requests that are refused by what it brought: a region may be gone, and who
 * used it not know. */
static enum remote_answer refuse_key(struct lane *l, struct cached *e, struct wr *w,
                                     uint32_t *reason)
{
    *reason = SCHEMA_REASON_VKEY;
    if (w->special & SPECIAL_PULL) /* its worker has not said it */
        return REMOTE_REFUSED;
    if (!e->guessed || e->state == CACHED_VALID) {
        e->guessed = 1;
        count_wrong_key(l, w->session);
    }
    return REMOTE_REFUSED;
}

/* A large message's region is nobody's: who READs it was told of it by its owner's agent. */
static bool is_for(const struct wr *w, const struct schema_mr_record *r)
{
    return r->tenant == w->session->tenant || (w->special & SPECIAL_PULL) ||
           lane_grant_is_there(w->session, r->vkey, r->secret);
}

static void refresh_later(struct lane *l, struct cached *e)
{
    for (uint32_t i = 0; i < l->refreshes; i++)
        if (l->refresh[i] == e)
            return;
    if (l->refreshes < LANE_REFRESHES) /* else with a later request */
        l->refresh[l->refreshes++] = e;
}

void lane_remote_refresh(struct lane *l)
{
    for (uint32_t i = 0; i < l->refreshes; i++) {
        struct cached *e = l->refresh[i];
        struct flow *f = l->peers[e->peer_slot].flow;
        /* Its place may be another's by now, or its peer have gone. */
        if (e->state != CACHED_VALID || e->reading || l->now_ns < e->sure_until_ns || f == NULL ||
            f->peer_gen != e->peer_gen || (f->ah == NULL && f->link == NULL))
            continue;
        if (start_read(l, f, e, e->tenant)) /* no room: with a later request */
            COUNT(l, mr_renewals, 1);
    }
    l->refreshes = 0;
}

/* Of a record that is not sure. OK: it may be posted under all the same, and is being renewed. */
static enum remote_answer look_closely(struct lane *l, struct flow *f, struct cached *e,
                                       struct wr *w, uint32_t *reason)
{
    if (e->state == CACHED_FREE || l->now_ns >= e->post_until_ns) {
        disbelieve_record(e, CACHED_FREE, 0);
        if (!e->reading && !start_read(l, f, e, w->session->tenant_slot + 1))
            return REMOTE_WAIT;
        if (e->reading)
            return REMOTE_READING;
    }
    if (e->state == CACHED_UNKNOWN || !is_for(w, &e->record))
        return refuse_key(l, e, w, reason);
    if (is_too_short(l, e)) {
        *reason = SCHEMA_REASON_LEASE;
        return REMOTE_REFUSED;
    }
    if (l->lease_now_ns == LANE_NEVER && !(e->record.flags & SCHEMA_RECORD_BACKED)) {
        *reason = SCHEMA_REASON_CLOCK;
        return REMOTE_REFUSED;
    }
    adopt_entry(l, e, w->session->tenant_slot);
    if (!e->reading && l->now_ns >= e->sure_until_ns)
        refresh_later(l, e);
    return REMOTE_OK;
}

void lane_remote_clock_is_back(struct lane *l)
{
    for (uint32_t i = 0; i < l->config.mr_cache; i++) {
        struct cached *e = &l->cache[i];
        if (e->state == CACHED_VALID && !(e->record.flags & SCHEMA_RECORD_BACKED))
            disbelieve_record(e, CACHED_FREE, 0);
        e->read_ns = 0; /* nor what is under way */
    }
}

enum remote_answer lane_remote_resolve(struct lane *l, struct vqp *q, struct wr *w,
                                       uint32_t *reason)
{
    struct flow *f = q->flow;
    struct cached *e = find_entry(l, f, w->vkey, w->session->tenant_slot);
    if (e == NULL)
        return REMOTE_WAIT;
    if (!lease_is_sure(l, e)) {
        const enum remote_answer answer = look_closely(l, f, e, w, reason);
        if (answer != REMOTE_OK)
            return answer;
    }
    const struct schema_mr_record *r = &e->record;
    if (!is_for(w, r))
        return refuse_key(l, e, w, reason);
    if (!(r->flags & w->op->access)) {
        *reason = SCHEMA_REASON_ACCESS;
        return REMOTE_REFUSED;
    }
    if (w->remote_addr < r->vaddr || w->length > r->length ||
        w->remote_addr - r->vaddr > r->length - w->length) {
        *reason = SCHEMA_REASON_REMOTE_RANGE;
        return REMOTE_REFUSED;
    }
    lease_stamp(w, e);
    w->fab.remote_addr = r->raddr + (w->remote_addr - r->vaddr);
    q->region = e;
    return REMOTE_OK;
}
