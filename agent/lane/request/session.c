/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: what a worker writes into its ring becomes requests here, and their ends become
 * completions.
 *
 * The lane trusts its private indices alone. A worker whose indices or descriptors make no sense
 * loses its session; one whose request is wrong loses that VQP. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "internal.h"
#include "transmit/events.h"

/* A worker that lives for long meets keys that are gone: it is to be told from one that guesses. */
static const uint64_t GUESS_REFILL_NS = 1000000000;

/* ---- life
 * -------------------------------------------------------------------------------------------- */

/* A power of two. */
static uint32_t buckets_for(uint32_t n)
{
    uint32_t buckets = 16;
    while (buckets < n)
        buckets *= 2;
    return buckets;
}

static int make_buckets(struct lane_memory *m, uint32_t max_grants, uint32_t max_mrs)
{
    m->region_mask = buckets_for(max_mrs) - 1;
    m->grant_mask = buckets_for(max_grants) - 1;
    m->regions_taken = calloc(max_mrs / 64 + 1, sizeof m->regions_taken[0]);
    m->region_first = calloc(m->region_mask + 1, sizeof m->region_first[0]);
    m->region_next = calloc(max_mrs, sizeof m->region_next[0]);
    m->grant_first = calloc(m->grant_mask + 1, sizeof m->grant_first[0]);
    m->grant_next = calloc(max_grants, sizeof m->grant_next[0]);
    return m->regions_taken == NULL || m->region_first == NULL || m->region_next == NULL ||
                   m->grant_first == NULL || m->grant_next == NULL
               ? -ENOMEM
               : 0;
}

struct lane_memory *lane_memory_new(uint32_t max_grants, uint32_t max_inflight, uint32_t max_vqps,
                                    uint32_t max_mrs)
{
    struct lane_memory *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->wrs = calloc(max_inflight, sizeof m->wrs[0]);
    m->vqps = calloc(max_vqps, sizeof m->vqps[0]);
    m->regions = calloc(max_mrs, sizeof m->regions[0]);
    m->grants = calloc(max_grants, sizeof m->grants[0]);
    if (m->wrs == NULL || m->vqps == NULL || m->regions == NULL || m->grants == NULL ||
        make_buckets(m, max_grants, max_mrs) != 0) {
        lane_memory_free(m);
        return NULL;
    }
    for (uint32_t i = max_inflight; i > 0; i--) {
        m->wrs[i - 1].next = m->free_wr;
        m->free_wr = &m->wrs[i - 1];
    }
    for (uint32_t i = 0; i < max_vqps; i++)
        m->vqps[i].index = i;
    return m;
}

void lane_memory_free(struct lane_memory *m)
{
    if (m == NULL)
        return;
    free(m->wrs);
    free(m->vqps);
    free(m->regions);
    free(m->grants);
    free(m->regions_taken);
    free(m->region_first);
    free(m->region_next);
    free(m->grant_first);
    free(m->grant_next);
    free(m);
}

int session_add(struct lane *l, const struct lane_session *add)
{
    if (add->memory == NULL || add->id >= l->config.max_sessions ||
        add->tenant_slot >= l->config.max_tenants || l->sessions[add->id].state != SESSION_NONE)
        return -EINVAL;
    struct session *s = &l->sessions[add->id];
    *s = (struct session){
        .state = SESSION_LIVE,
        .id = add->id,
        .rw = add->rw,
        .ro = add->ro,
        .ring = (const uint8_t *)add->rw + SCHEMA_SQ_OFFSET,
        .cqes = (struct schema_cqe *)((uint8_t *)add->ro + SCHEMA_CQ_OFFSET),
        .sq_mask = add->ro->sq_slots - 1,
        .cq_mask = add->ro->cq_slots - 1,
        .max_inflight = add->max_inflight,
        .tenant = add->tenant,
        .tenant_slot = add->tenant_slot,
        .quarantined = l->culprits[add->tenant_slot].quarantined,
        .window = &l->tenant_windows[add->tenant_slot],
        .max_vqps = add->max_vqps,
        .max_regions = add->max_mrs,
        .quota = add->quota,
        .memory = add->memory,
        .arenas = 1,
        .caps = &l->res.fab->caps,
    };
    s->arena[0] = add->arena;
    s->free_wr = add->memory->free_wr;
    s->vqps = add->memory->vqps;
    s->regions = add->memory->regions;
    s->grants = add->memory->grants;
    COUNT(l, sessions, 1);
    session_activate(l, s);
    return 0;
}

void session_count_batch(struct lane *l)
{
    l->batch = LANE_BATCH;
    if (l->active_count > LANE_TAKEN / LANE_BATCH)
        l->batch = l->active_count < LANE_TAKEN ? LANE_TAKEN / l->active_count : 1;
}

void session_activate(struct lane *l, struct session *s)
{
    s->worked_ns = l->now_ns;
    l->stalled_count -= s->stalled;
    s->stalled = 0;
    if (s->active || s->state != SESSION_LIVE)
        return;
    s->active = 1;
    l->control_tenants[s->tenant_slot].active++;
    l->active[l->active_count++] = s;
    session_count_batch(l);
    atomic_store_explicit(&s->ro->doorbell, 0, memory_order_relaxed);
}

void session_await(struct lane *l, struct session *s)
{
    s->due_ns = 0; /* the clock is read in the next pass, after what was withdrawn */
    if (s->in_due)
        return;
    s->in_due = 1;
    s->next_due = l->due;
    l->due = s;
}

void session_end(struct lane *l, struct session *s, uint32_t reason, bool fault)
{
    if (s->state != SESSION_LIVE)
        return;
    s->state = SESSION_ENDING;
    control_forget(l, s);
    s->control_op = 0;
    lookups_forget(s);
    for (uint32_t i = 0; i < s->max_vqps; i++)
        vqp_destroy(l, &s->vqps[i]);
    revocations_forget(l, s);
    fenced_forget(l, s);
    withdrawals_forget(s);
    regions_remove_all(l, s);
    atomic_store_explicit(&s->ro->ended, reason, memory_order_release);
    atomic_fetch_add_explicit(&s->ro->wake, 1, memory_order_release);
    l->wake(l->wake_user, &s->ro->wake);
    if (fault)
        lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_SESSION_FAULT,
                                                .session = s->id,
                                                .reason = reason});
    session_await(l, s);
}

static void session_over(struct lane *l, struct session *s)
{
    l->stalled_count -= s->stalled;
    for (struct session **at = &l->dirty; *at != NULL; at = &(*at)->next_dirty)
        if (*at == s) {
            *at = s->next_dirty;
            break;
        }
    for (uint32_t i = 0; i < l->active_count; i++)
        if (l->active[i] == s) {
            l->active[i] = l->active[--l->active_count];
            l->control_tenants[s->tenant_slot].active--;
            break;
        }
    COUNT(l, sessions, -1);
    regions_free_all(s);
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_SESSION_OVER, .session = s->id});
    *s = (struct session){.id = s->id};
}

/* Deregistrations and ends whose time has come; in a pass of the lane the first thing, so that the
 * clock was read after what was withdrawn in the one before. */
void sessions_due(struct lane *l)
{
    for (struct session **at = &l->due; *at != NULL;) {
        struct session *s = *at;
        const bool ending = s->state == SESSION_ENDING;
        if (ending && s->due_ns == 0) {
            s->due_ns = l->now_ns + (s->exported ? region_wait_ns(l) : 0);
            regions_show_due(s, s->due_ns);
        }
        if (l->now_ns < s->due_ns || (ending && s->inflight > 0) ||
            (!ending && withdrawals_go_on(l, s))) {
            at = &s->next_due;
            continue;
        }
        *at = s->next_due;
        s->in_due = 0;
        l->did++;
        if (ending)
            session_over(l, s);
    }
}

/* ---- towards the worker
 * -------------------------------------------------------------------------------- */

void session_tell(struct lane *l, struct session *s)
{
    if (s->dirty)
        return;
    s->dirty = 1;
    s->next_dirty = l->dirty;
    l->dirty = s;
}

/* The request is over: its completion, if it has one, into the slot that was reserved for it. */
void session_complete(struct lane *l, struct wr *w, enum ibv_wc_status status, uint32_t vendor_err)
{
    struct session *s = w->session;
    bool seen = s->state == SESSION_LIVE && s->vqps[w->vqp].gen == w->vqp_gen;
    if (w->stale)
        arena_unused(l, w);
    s->cq_reserved--;
    s->inflight--;
    COUNT(l, inflight, -1);
    if (status == IBV_WC_SUCCESS)
        COUNT(l, completed, 1);
    else
        COUNT(l, failed, 1);
    if (seen && (w->signaled || status != IBV_WC_SUCCESS)) {
        __builtin_prefetch(&s->cqes[(s->cq_tail + 8) & s->cq_mask], 1);
        s->cqes[s->cq_tail++ & s->cq_mask] = (struct schema_cqe){.wr_id = w->wr_id,
                                                                 .byte_len = (uint32_t)w->length,
                                                                 .vqp = w->vqp,
                                                                 .vqp_gen = w->vqp_gen,
                                                                 .status = (uint8_t)status,
                                                                 .opcode = w->op->completion,
                                                                 .vendor_err = vendor_err};
        session_tell(l, s);
    }
    w->next = s->free_wr;
    s->free_wr = w;
}

static struct schema_reply *reply_of(const struct session *s, uint32_t tag, int status,
                                     uint32_t reason)
{
    struct schema_reply *r = &s->ro->reply[tag % SCHEMA_REPLIES];
    r->status = status;
    r->reason = reason;
    return r;
}

void session_answer(struct lane *l, struct session *s, uint32_t tag, int status)
{
    struct schema_reply *r = reply_of(s, tag, status, 0);
    atomic_store_explicit(&r->tag, tag, memory_order_release);
    session_tell(l, s);
}

void session_reply(struct lane *l, struct session *s, int status, uint32_t reason, uint64_t a,
                   uint64_t b, const uint8_t *secret)
{
    struct schema_reply *r = reply_of(s, s->control_tag, status, reason);
    r->value[0] = a;
    r->value[1] = b;
    if (secret != NULL)
        memcpy(r->secret, secret, sizeof r->secret);
    atomic_store_explicit(&r->tag, s->control_tag, memory_order_release);
    s->control_op = 0;
    session_tell(l, s);
    session_activate(l, s); /* what stands behind the question */
}

/* Publishes completions; the fence orders them before the look at who sleeps (session.h). */
void sessions_publish(struct lane *l)
{
    if (l->dirty == NULL)
        return;
    for (struct session *s = l->dirty; s != NULL; s = s->next_dirty)
        atomic_store_explicit(&s->ro->cq_tail, s->cq_tail, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    for (struct session *s = l->dirty, *next; s != NULL; s = next) {
        next = s->next_dirty;
        s->dirty = 0;
        if (atomic_load_explicit(&s->rw->want_wake, memory_order_relaxed) != 0) {
            atomic_fetch_add_explicit(&s->ro->wake, 1, memory_order_release);
            l->wake(l->wake_user, &s->ro->wake);
        }
    }
    l->dirty = NULL;
}

void session_wrong_key(struct lane *l, struct session *s)
{
    const uint64_t seconds = (l->now_ns - s->wrong_ns) / GUESS_REFILL_NS;
    COUNT(l, wrong_keys, 1);
    s->wrong_keys -= seconds < s->wrong_keys ? (uint32_t)seconds : s->wrong_keys;
    s->wrong_ns += seconds * GUESS_REFILL_NS;
    if (++s->wrong_keys > l->config.guess_budget)
        session_end(l, s, SCHEMA_REASON_GUESSES, true);
}

/* ---- from the worker
 * ----------------------------------------------------------------------------------- */

/* Word by word and once: what the worker changes after this is not seen. */
static void copy_slot(const struct session *s, uint32_t index, void *to)
{
    const uint64_t *from =
        (const uint64_t *)(const void *)(s->ring + (size_t)(index & s->sq_mask) * SCHEMA_LINE);
    for (int i = 0; i < SCHEMA_LINE / 8; i++) {
        uint64_t word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
        memcpy((uint8_t *)to + i * 8, &word, 8);
    }
}

static void take_post(struct lane *l, struct session *s, const struct operation *op,
                      const struct schema_sq_desc *d, const void *extra)
{
    struct vqp *q = &s->vqps[d->vqp];
    struct wr *w = s->free_wr;
    s->free_wr = w->next;
    s->inflight++;
    s->cq_reserved++;
    COUNT(l, inflight, 1);
    w->session = s;
    w->flow = NULL;
    w->kind = WR_WORKER;
    w->wr_id = d->post.wr_id;
    w->remote_addr = d->post.remote_addr;
    w->vkey = d->post.vkey;
    w->vqp = d->vqp;
    w->vqp_gen = d->vqp_gen;
    w->signaled = d->flags & SCHEMA_OP_SIGNALED;
    w->length = 0;
    w->refused = (uint8_t)check_post(s, op, d, extra, w);
    if (w->refused == 0 && w->length > l->res.fab->caps.max_msg_size)
        w->refused = SCHEMA_REASON_LOCAL_RANGE;
    if (q->state == VQP_FREE || d->vqp_gen != q->gen) {
        /* Nothing can be before it on a VQP that does not exist. */
        q->gen = q->state == VQP_FREE ? d->vqp_gen : q->gen;
        COUNT(l, refused, 1);
        session_complete(l, w, IBV_WC_LOC_QP_OP_ERR,
                         q->denied != 0 ? q->denied : SCHEMA_REASON_NOT_CONNECTED);
        return;
    }
    vqp_submit(l, q, w);
}

/* Why region_add() failed. */
static uint32_t reason_of(const struct session *s, int status)
{
    if (status == -EDQUOT)
        return s->regions_used == s->max_regions ? SCHEMA_REASON_QUOTA : SCHEMA_REASON_QUOTA_MRS;
    return status == -ENOSPC       ? SCHEMA_REASON_MRS
           : status == -EOPNOTSUPP ? SCHEMA_REASON_ATOMICS
           : status == -EFAULT     ? SCHEMA_REASON_ALIGNMENT
                                   : 0;
}

void session_register(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    uint32_t vkey = 0;
    uint8_t secret[16] = {0};
    const int status = region_add(l, s, d, &vkey, secret);
    if (status != -EINPROGRESS)
        session_reply(l, s, status, reason_of(s, status), vkey, 0, secret);
}

/* What the tenant's control operations per second do not refuse. A worker must always be able to
 * withdraw what peers reach, and libkedge does not wait for the answer to an import. Both count all
 * the same, so that what comes after them waits for the longer, and both have a bound of their own:
 * the regions and imports of a session. */
static bool is_always_done(const struct lane *l, const struct session *s,
                           const struct schema_sq_desc *d)
{
    return (d->op == SCHEMA_OP_DEREG_MR && region_status(s, d->dereg_mr.vkey) != -ENOENT) ||
           (d->op == SCHEMA_OP_IMPORT && s->grants_used < l->config.max_grants &&
            !grant_is_there(l, s, d->import.vkey, d->import.secret));
}

static bool may_ask(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    if (!is_always_done(l, s, d))
        return lane_quota_ask(s->quota, l->now_ns);
    quota_charge(s->quota, l->now_ns);
    return true;
}

/* Control requests: answered now, or later with nothing more taken until then. */
static void take_control(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    uint32_t slot = 0, gen = 0;
    int status;
    s->control_op = d->op;
    s->control_tag = d->connect.tag;
    if (!may_ask(l, s, d)) {
        session_reply(l, s, -EDQUOT, SCHEMA_REASON_QUOTA_CONTROL_OPS, 0, 0, NULL);
        return;
    }
    switch (d->op) {
    case SCHEMA_OP_CONNECT:
        status = d->connect.pool != l->config.pool
                     ? -EINVAL
                     : peer_connect(l, s, d->connect.gid, &slot, &gen);
        if (status != -EINPROGRESS)
            session_reply(l, s, status, status == -EHOSTUNREACH ? SCHEMA_REASON_LOOKUP : 0, slot,
                          gen, NULL);
        return;
    case SCHEMA_OP_REG_MR:
        session_register(l, s, d);
        return;
    case SCHEMA_OP_DEREG_MR:
        s->control_op = 0; /* what stands behind it goes on */
        if (!withdrawal_begin(l, s, d))
            session_end(l, s, SCHEMA_REASON_DESCRIPTOR, true);
        return;
    case SCHEMA_OP_MR_STATUS:
        status = region_status(s, d->dereg_mr.vkey);
        session_reply(l, s, status, status == -EACCES ? SCHEMA_REASON_REVOKED : 0, 0, 0, NULL);
        return;
    default:
        status = grant_add(l, s, d->import.vkey, d->import.secret) ? 0 : -EDQUOT;
        session_reply(l, s, status, status != 0 ? SCHEMA_REASON_QUOTA : 0, 0, 0, NULL);
        return;
    }
}

/* False: it cannot be taken now, and so nothing behind it. */
static bool take_descriptor(struct lane *l, struct session *s, const struct operation *op,
                            const struct schema_sq_desc *d, const void *extra)
{
    struct vqp *q = &s->vqps[d->vqp];
    if (op->kind == OPERATION_POST) {
        take_post(l, s, op, d, extra);
        return true;
    }
    if (op->kind == OPERATION_BIND && (q->outstanding > 0 || q->queue.head != NULL))
        return false; /* what it was connected to before comes to its end first */
    if (!control_enter(l, s))
        return false;
    if (op->kind == OPERATION_CONTROL)
        take_control(l, s, d);
    else if (op->kind == OPERATION_BIND)
        vqp_bind(l, s, q, d);
    else if (q->gen == d->vqp_gen)
        vqp_destroy(l, q);
    return true;
}

/* Room for one more request and its completion. A worker that never polls stops here, and sees a
 * full ring. */
static bool has_room(const struct session *s)
{
    return s->free_wr != NULL && s->cq_tail - s->cq_head + s->cq_reserved <= s->cq_mask;
}

/* Looks anew at how far the worker has polled. False: it says what cannot be. */
static bool look_at_cq_head(struct session *s)
{
    s->cq_head = atomic_load_explicit(&s->rw->cq_head, memory_order_acquire);
    return s->cq_tail - s->cq_head <= s->cq_mask + 1;
}

uint32_t session_poll(struct lane *l, struct session *s)
{
    uint32_t head = s->sq_head, left = l->batch;
    uint32_t avail = atomic_load_explicit(&s->rw->sq_tail, memory_order_acquire) - head;
    if (avail == 0 || s->control_op != 0 || s->state != SESSION_LIVE)
        return 0;
    /* Lines that will be written: ask for them while the descriptor is on its way. */
    __builtin_prefetch(&s->cqes[s->cq_tail & s->cq_mask], 1);
    __builtin_prefetch(&s->ro->cq_tail, 1);
    if (avail > s->sq_mask + 1 || (!has_room(s) && !look_at_cq_head(s))) {
        session_end(l, s, SCHEMA_REASON_RING, true);
        return 1;
    }
    while (avail > 0 && left > 0 && s->control_op == 0 && has_room(s)) {
        struct schema_sq_desc d;
        _Alignas(8) uint8_t extra[2 * SCHEMA_LINE];
        copy_slot(s, head, &d);
        const struct operation *op = operation_of(d.op);
        uint32_t slots = check_slots(op, &d);
        if (slots == 0 || slots > avail || d.vqp >= s->max_vqps) {
            session_end(l, s, SCHEMA_REASON_DESCRIPTOR, true);
            return 1;
        }
        for (uint32_t i = 1; i < slots; i++)
            copy_slot(s, head + i, extra + (i - 1) * SCHEMA_LINE);
        if (!take_descriptor(l, s, op, &d, extra) || s->state != SESSION_LIVE)
            break;
        head += slots;
        avail -= slots;
        left--;
    }
    if (head != s->sq_head && s->state == SESSION_LIVE) {
        s->sq_head = head;
        atomic_store_explicit(&s->ro->sq_head, head, memory_order_release);
    }
    return l->batch - left;
}

/* Flag, fence, one more look (session.h). A worker that does not poll its completions, and so has
 * requests for which there is no room, is looked at again now and then: it need not ring when it
 * polls at last. */
bool session_sleep(struct lane *l, struct session *s)
{
    atomic_store_explicit(&s->ro->doorbell, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (s->state == SESSION_LIVE && s->control_op == 0 &&
        atomic_load_explicit(&s->rw->sq_tail, memory_order_acquire) != s->sq_head) {
        if (!look_at_cq_head(s) || has_room(s)) {
            atomic_store_explicit(&s->ro->doorbell, 0, memory_order_relaxed);
            return false;
        }
        s->stalled = 1;
        l->stalled_count++;
    }
    s->active = 0;
    l->control_tenants[s->tenant_slot].active--;
    return true;
}
