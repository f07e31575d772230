/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker writes into its ring becomes requests here.
 *
 * The lane trusts its private indices alone. A worker whose indices or descriptors make no sense
 * loses its session; one whose request is wrong loses that VQP. */
#include "request/intake.h"

#include <errno.h>
#include <string.h>

#include "lane_state.h"
#include "request/active.h"
#include "request/batch.h"
#include "request/batch_run.h"
#include "request/check.h"
#include "request/control_ops.h"
#include "request/raises.h"
#include "request/cutting.h"
#include "request/ending.h"
#include "request/reg_mr.h"
#include "request/messages.h"
#include "request/region.h"
#include "request/reply.h"
#include "request/returns.h"
#include "request/ring_copy.h"
#include "request/session.h"
#include "request/withdraw.h"
#include "resolve/grants.h"
#include "resolve/lookup.h"
#include "resolve/name_lookup.h"
#include "schedule/quota.h"
#include "schedule/vqp.h"
#include "session_state.h"
#include "transmit/operation.h"
#include "transmit/wr.h"

/* It is more than goes as one. */
static __attribute__((noinline)) void take_long(struct lane *l, struct wr *w,
                                                const struct schema_sq_desc *d, const void *extra)
{
    if (w->length > l->res.fab->caps.max_msg_size)
        w->refused = SCHEMA_REASON_LOCAL_RANGE;
    else
        lane_cut_begin(l, w, d, extra);
}

static void take_post(struct lane *l, struct session *s, const struct operation *op,
                      const struct schema_sq_desc *d, const void *extra)
{
    struct vqp *q = &s->vqps[d->vqp];
    struct wr *w = s->free_wr;
    s->free_wr = w->next;
    session_count(&s->inflight, 1);
    active_count_out(s->of, 1);
    w->session = s;
    w->flow = NULL;
    wr_part(w); /* of its former life */
    w->kind = WR_WORKER;
    w->wr_id = d->post.wr_id;
    w->remote_addr = d->post.remote_addr;
    w->vkey = d->post.vkey;
    w->vqp = d->vqp;
    w->vqp_gen = d->vqp_gen;
    w->signaled = d->flags & SCHEMA_OP_SIGNALED;
    w->length = 0;
    w->refused = (uint8_t)lane_check_post(s, op, d, extra, w);
    if (w->refused == 0 && w->length > l->config.cut_bytes)
        take_long(l, w, d, extra);
    if (q->state == VQP_FREE || d->vqp_gen != q->gen) {
        /* Nothing can be before it on a VQP that does not exist. */
        q->gen = q->state == VQP_FREE ? d->vqp_gen : q->gen;
        COUNT(l, refused, 1);
        lane_session_complete(l, w, IBV_WC_LOC_QP_OP_ERR,
                              q->denied != 0 ? q->denied : SCHEMA_REASON_NOT_CONNECTED);
        return;
    }
    lane_vqp_submit(l, q, w);
}

/* What the tenant's control operations per second do not refuse. A worker must always be able to
 * withdraw what peers reach, and libkedge does not wait for the answer to an import. Both count all
 * the same, so that what comes after them waits for the longer, and both have a bound of their own:
 * the regions and imports of a session. */
static bool is_always_done(const struct lane *l, const struct session *s,
                           const struct schema_sq_desc *d)
{
    const bool ends = d->op == SCHEMA_OP_BATCH_READY || d->op == SCHEMA_OP_BATCH_CANCEL ||
                      d->op == SCHEMA_OP_BATCH_FREE || d->op == SCHEMA_OP_COUNTER_FREE;
    return ends || (d->op == SCHEMA_OP_PORT_REVOKE && lane_port_has_guest(l, s, d)) ||
           (d->op == SCHEMA_OP_DEREG_MR && lane_region_status(s, d->dereg_mr.vkey) != -ENOENT) ||
           (d->op == SCHEMA_OP_IMPORT && s->grants_used < l->config.max_grants &&
            !lane_grant_is_there(s, d->import.vkey, d->import.secret));
}

static bool may_ask(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    if (!is_always_done(l, s, d))
        return lane_quota_ask(s->quota, l->now_ns);
    lane_quota_charge(s->quota, l->now_ns);
    return true;
}

static void refuse_ask(struct lane *l, struct session *s)
{
    lane_session_reply(l, s, -EDQUOT, SCHEMA_REASON_QUOTA_CONTROL_OPS,
                       atomic_load_explicit(&s->quota->control_ops_per_s, memory_order_relaxed), 0,
                       NULL);
}

/* Each is an IMPORT of its own, but for its turn and the answer, which they have in common: of
 * those that are not done the first one's. */
static void take_imports(struct lane *l, struct session *s, uint32_t count, const void *grants)
{
    int status = 0;
    uint32_t reason = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct schema_grant g;
        memcpy(&g, (const uint8_t *)grants + i * sizeof g, sizeof g);
        struct schema_sq_desc one = {.op = SCHEMA_OP_IMPORT, .import = {.vkey = g.vkey}};
        memcpy(one.import.secret, g.secret, sizeof one.import.secret);
        const uint32_t refused = !may_ask(l, s, &one) ? SCHEMA_REASON_QUOTA_CONTROL_OPS
                                 : !lane_grant_add(l, s, g.vkey, g.secret) ? SCHEMA_REASON_QUOTA
                                                                           : 0;
        if (refused != 0 && reason == 0) {
            status = -EDQUOT;
            reason = refused;
        }
    }
    l->control_units += count - 1;
    if (reason == SCHEMA_REASON_QUOTA_CONTROL_OPS)
        refuse_ask(l, s);
    else
        lane_session_reply(l, s, status, reason, s->grants_used, 0, NULL);
}

/* Control requests: answered now, or later with nothing more taken until then. */
static void take_control(struct lane *l, struct session *s, const struct schema_sq_desc *d,
                         const void *extra)
{
    uint32_t slot = 0, gen = 0;
    int status;
    session_hold(s, d->op);
    s->control_tag = d->connect.tag;
    if (d->op == SCHEMA_OP_IMPORT_MANY) {
        take_imports(l, s, d->import_many.count, extra);
        return;
    }
    if (!may_ask(l, s, d)) {
        refuse_ask(l, s);
        return;
    }
    switch (d->op) {
    case SCHEMA_OP_CONNECT:
        status = d->connect.pool != l->config.pool
                     ? -EINVAL
                     : lane_peer_connect(l, s, d->connect.gid, &slot, &gen);
        if (status != -EINPROGRESS)
            lane_session_reply_lookup(
                l, s, &(struct lookup_answer){.status = status, .slot = slot, .gen = gen});
        return;
    case SCHEMA_OP_REG_MR:
        lane_region_register(l, s, d);
        return;
    case SCHEMA_OP_BIND_PORT:
        lane_session_reply(l, s, lane_port_ask(l, s, d), 0, 0, 0, NULL);
        return;
    case SCHEMA_OP_PORT_GRANT:
    case SCHEMA_OP_PORT_REVOKE:
        lane_session_reply(l, s, lane_port_guest_ask(l, s, d), 0, 0, 0, NULL);
        return;
    case SCHEMA_OP_BATCH_NEW:
    case SCHEMA_OP_BATCH_READY:
    case SCHEMA_OP_BATCH_CANCEL:
    case SCHEMA_OP_BATCH_FREE:
        lane_batch_ask(l, s, d);
        return;
    case SCHEMA_OP_COUNTER_NEW:
    case SCHEMA_OP_COUNTER_FREE:
        lane_counter_ask(l, s, d);
        return;
    case SCHEMA_OP_DEREG_MR:
        session_hold(s, 0); /* what stands behind it goes on */
        if (!lane_withdrawal_begin(l, s, d))
            lane_session_end(l, s, SCHEMA_REASON_DESCRIPTOR, true);
        return;
    case SCHEMA_OP_LOOKUP:
        status = lane_name_lookup(l, s, extra, d->lookup.owner, d->lookup.length);
        if (status != -EINPROGRESS)
            lane_session_reply_lookup(l, s,
                                      &(struct lookup_answer){.of_name = true, .status = status});
        return;
    case SCHEMA_OP_UNIMPORT:
        l->control_units += s->grants_used / SCHEMA_IMPORTS_AT_ONCE;
        status = lane_grant_remove(s, d->import.vkey) ? 0 : -ENOENT;
        l->control_units -= s->grants_used / SCHEMA_IMPORTS_AT_ONCE;
        lane_session_reply(l, s, status, 0, s->grants_used, 0, NULL);
        return;
    case SCHEMA_OP_MR_STATUS:
        status = lane_region_status(s, d->dereg_mr.vkey);
        lane_session_reply(l, s, status, status == -EACCES ? SCHEMA_REASON_REVOKED : 0, 0, 0, NULL);
        return;
    default:
        status = lane_grant_add(l, s, d->import.vkey, d->import.secret) ? 0 : -EDQUOT;
        lane_session_reply(l, s, status, status != 0 ? SCHEMA_REASON_QUOTA : 0, 0, 0, NULL);
        return;
    }
}

static void destroy_vqp(struct lane *l, struct session *s, struct vqp *q)
{
    lane_receives_flush(l, q);
    lane_vqp_destroy(l, q);
    if (s->flushing.head != NULL)
        lane_ending_join(l, s);
}

/* False: it cannot be taken now, and so nothing behind it. */
static bool take_descriptor(struct lane *l, struct session *s, const struct operation *op,
                            const struct schema_sq_desc *d, const void *extra)
{
    struct vqp *q = &s->vqps[d->vqp];
    bool at_once;
    if (op->kind == OPERATION_POST) {
        take_post(l, s, op, d, extra);
        return true;
    }
    if (s->lodger) { /* its own lane takes it */
        lane_session_leave_soon(l, s);
        return false;
    }
    if (op->kind == OPERATION_SEND || op->kind == OPERATION_RECEIVE) {
        if (op->kind == OPERATION_SEND)
            lane_send_take(l, s, op, d, extra);
        else
            lane_receive_take(l, s, op, d, extra);
        return true;
    }
    if (op->kind == OPERATION_BATCH) {
        lane_batch_post(l, s, op, d);
        return true;
    }
    if ((op->kind == OPERATION_BIND || op->kind == OPERATION_ADDRESS) && vqp_is_busy(q)) {
        s->waits_for = q; /* what it was connected to before comes to its end first */
        atomic_store_explicit(&s->memory->shown.held, SCHEMA_WAIT_BIND, memory_order_relaxed);
        return false;
    }
    if (!lane_control_enter(l, s, &at_once))
        return false;
    s->waits_for = NULL;
    if (op->kind == OPERATION_CONTROL)
        take_control(l, s, d, extra);
    else if (op->kind == OPERATION_BIND)
        lane_vqp_bind(l, s, q, d);
    else if (op->kind == OPERATION_ADDRESS)
        lane_send_address(l, s, d);
    else if (op->kind == OPERATION_FILL)
        lane_batch_fill(l, s, d, extra);
    else if (q->gen == d->vqp_gen)
        destroy_vqp(l, s, q);
    if (at_once)
        lane_control_end_turn(l, s);
    return true;
}

/* Copies the first request out of `avail` slots, once: its descriptor, and what is behind that.
 * Returns how many slots it takes; 0: it is none that a library of ours would write. */
static inline uint32_t copy_request(const struct session *s, uint32_t head, uint32_t avail,
                                    struct schema_sq_desc *d, uint8_t extra[SCHEMA_MAX_EXTRA])
{
    copy_slot(s, head, d);
    d->slots = (uint8_t)slot_count(d);
    const uint32_t slots = check_slots(operation_of(d->op), d);
    if (slots > avail || d->vqp >= s->max_vqps)
        return 0;
    for (uint32_t i = 1; i < slots; i++)
        copy_slot(s, head + i, extra + (i - 1) * SCHEMA_LINE);
    return slots;
}

uint32_t lane_request_take(struct lane *l, struct session *s, uint32_t head, uint32_t avail)
{
    struct schema_sq_desc d;
    _Alignas(8) uint8_t extra[SCHEMA_MAX_EXTRA];
    const uint32_t slots = copy_request(s, head, avail, &d, extra);
    if (slots == 0) {
        lane_session_end(l, s, SCHEMA_REASON_DESCRIPTOR, true);
        return 0;
    }
    const bool taken = take_descriptor(l, s, operation_of(d.op), &d, extra);
    if (l->returned.first != NULL)
        lane_returns_take(l);
    return taken && s->state == SESSION_LIVE ? slots : 0;
}

/* ---- turns */

enum {
    BEHIND_SHARED = 4,   /* requests, behind a control operation, where there are several tenants */
    SPARSE_OUT = 4,      /* requests, with what is in its ring; who has more is busy */
    SPARSE_TENANTS = 16, /* of the active ones that a pass goes through for a sparse one */
    SPARSE_LOOKS = 8,    /* of that pass, at the rings of these */
    LOOKS_EACH = 4,      /* of these looks, at the rings of one */
    SPARSE_TAKEN = 4     /* requests of that pass, one of each */
};

/* Whose turn it is of the tenant's sessions: it comes behind the others. */
static struct session *next_session(struct active_tenant *t)
{
    struct session *s = TAILQ_FIRST(&t->sessions);
    TAILQ_REMOVE(&t->sessions, s, by_active);
    TAILQ_INSERT_TAIL(&t->sessions, s, by_active);
    return s;
}

/* So many requests of it at the most. Returns how many were taken. */
static uint32_t give_turn(struct lane *l, struct active_tenant *t, uint32_t most)
{
    struct session *s = next_session(t);
    const uint32_t taken = intake_turn(l, s, most);
    t->left = session_waiting(s);
    return taken;
}

/* The tenant comes behind the others, if it is still active. */
static void end_turn(struct lane *l, struct active_tenant *t)
{
    if (t->count == 0)
        return;
    TAILQ_REMOVE(&l->active_tenants, t, by_turn);
    TAILQ_INSERT_TAIL(&l->active_tenants, t, by_turn);
}

/* Its sessions in turn, each once at most. A look where there is nothing counts as a request: of
 * many silent sessions it takes as long. Returns how many. */
static uint32_t poll_some(struct lane *l, struct active_tenant *t, uint32_t most)
{
    uint32_t left = most;
    for (uint32_t n = t->count; n > 0 && left > 0; n--) {
        const uint32_t taken = give_turn(l, t, left < LANE_BATCH ? left : LANE_BATCH);
        left -= taken > 0 ? taken : 1;
    }
    end_turn(l, t);
    return most - left;
}

/* Each tenant has an equal part of a pass, and of more tenants than a pass can serve the others
 * have the next one. */
static void poll_equally(struct lane *l)
{
    uint32_t left = LANE_TAKEN_SHARED;
    const uint32_t tenants = l->active_tenant_count;
    const uint32_t each = tenants < left ? left / tenants : 1;
    l->lets_go = LANE_TAKEN_SHARED;
    for (uint32_t n = tenants; n > 0 && left > 0; n--)
        left -= poll_some(l, TAILQ_FIRST(&l->active_tenants), each < left ? each : left);
}

/* ---- beside a sparse tenant
 *
 * Who has little out waits for each of its requests, and what it waits for is the pass. So while
 * such a tenant is active a pass takes one request of a busy one and lets one go, and what comes
 * from sparse ones has a pass of its own, in which nothing of others is carried out. They are
 * preferred as in FQ-CoDel (RFC 8290, 4.2): once, and then again when each busy tenant has had a
 * turn, so that who keeps little out on purpose has no more than its part. */

static bool is_sparse(const struct active_tenant *t)
{
    return t->left <= SPARSE_OUT && active_out(t) + t->left <= SPARSE_OUT;
}

/* Of those whose turn is near, how many are busy, and the first of these. */
static uint32_t find_busy(struct lane *l, struct active_tenant **first)
{
    struct active_tenant *t;
    uint32_t n = 0, busy = 0;
    *first = NULL;
    TAILQ_FOREACH(t, &l->active_tenants, by_turn) {
        if (!is_sparse(t) && busy++ == 0)
            *first = t;
        if (++n == SPARSE_TENANTS)
            break;
    }
    l->has_sparse = busy < n;
    return busy;
}

/* One request of its sessions, with so many looks at the most. Returns the looks. */
static uint32_t poll_one(struct lane *l, struct active_tenant *t, uint32_t most, uint32_t *taken)
{
    uint32_t looks = 0, got = 0;
    for (uint32_t n = t->count < most ? t->count : most; looks < n && got == 0; looks++)
        got = give_turn(l, t, 1);
    end_turn(l, t);
    *taken += got;
    return looks;
}

static bool is_preferred(const struct lane *l, const struct active_tenant *t, uint32_t busy)
{
    return is_sparse(t) && (busy == 0 || l->busy_turns >= t->due_turn);
}

/* Returns how many requests it took. */
static uint32_t poll_sparse(struct lane *l, uint32_t busy)
{
    uint32_t looks = SPARSE_LOOKS, taken = 0, n = l->active_tenant_count;
    struct active_tenant *t = TAILQ_FIRST(&l->active_tenants), *next;
    for (n = n < SPARSE_TENANTS ? n : SPARSE_TENANTS; n > 0 && looks > 0 && taken < SPARSE_TAKEN;
         n--, t = next) {
        const uint32_t before = taken;
        next = TAILQ_NEXT(t, by_turn);
        if (!is_preferred(l, t, busy))
            continue;
        looks -= poll_one(l, t, looks < LOOKS_EACH ? looks : LOOKS_EACH, &taken);
        if (taken > before)
            t->due_turn = l->busy_turns + busy;
    }
    return taken;
}

/* What its next turn needs, most of which nobody has touched since the last one. */
static void prefetch_turn(const struct active_tenant *t)
{
    const struct session *s = TAILQ_FIRST(&t->sessions);
    if (s == NULL)
        return;
    __builtin_prefetch(&s->rw->sq_tail);
    __builtin_prefetch(s->ring + (size_t)(s->sq_head & s->sq_mask) * SCHEMA_LINE);
    if (s->free_wr != NULL)
        wr_prefetch(s->free_wr);
}

static uint64_t count_posted(const struct lane *l)
{
    return atomic_load_explicit(&l->counters.posted, memory_order_relaxed);
}

/* Where all that sparse ones had is posted already nothing else goes, if something did in the pass
 * before. */
static void poll_beside_sparse(struct lane *l, uint32_t busy, struct active_tenant *first)
{
    const uint64_t posted = count_posted(l);
    uint32_t taken = poll_sparse(l, busy);
    if (taken > 0) {
        const uint64_t went = count_posted(l) - posted;
        l->lets_go = l->lets_go == 0 ? 1 : went < taken ? taken - (uint32_t)went : 0;
        return;
    }
    l->lets_go = 1;
    if (first == NULL)
        return;
    l->busy_turns++;
    (void)poll_one(l, first, LOOKS_EACH, &taken);
    prefetch_turn(first);
}

void lane_intake_poll_shared(struct lane *l)
{
    struct active_tenant *first;
    const uint32_t busy = find_busy(l, &first);
    if (l->has_sparse)
        poll_beside_sparse(l, busy, first);
    else
        poll_equally(l);
}

/* ---- control operations, in turn */

void lane_intake_controls(struct lane *l)
{
    struct session *s;
    lane_control_begin_pass(l);
    while ((s = lane_control_begin_turn(l)) != NULL) {
        lane_session_activate(l, s);
        l->did += intake_look(l, s, lane_is_shared(l) ? BEHIND_SHARED : l->batch);
        lane_control_end_turn(l, s);
        lane_sessions_end_doomed(l);
    }
}
