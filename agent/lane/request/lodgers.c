/* SPDX-License-Identifier: Apache-2.0 */
#include "request/lodgers.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "request/active.h"
#include "request/ending.h"
#include "request/reply.h"
#include "request/session.h"
#include "resolve/endpoint.h"
#include "resolve/lookup.h"
#include "schedule/unseen_writes.h"
#include "schedule/vqp.h"
#include "session_state.h"
#include "transmit/lane_events.h"

enum { LEAVE_NS = 20000000 /* what is out longer keeps it where it is */ };

/* ---- what goes */

/* One that is filled, or ready, stays at home, and what is asked of it is. */
static bool has_batch_out(const struct session *s)
{
    for (uint32_t i = 0; i < SCHEMA_BATCHES; i++)
        if (s->memory->batches[i].state == BATCH_POSTED)
            return true;
    return false;
}

/* Nothing is asked for that is to be answered, by its worker or by the operator. */
static bool is_settled(const struct session *s)
{
    return s->control_op == 0 && s->waits_for == NULL && !s->in_revoking && s->revoke_tag == 0 &&
           s->reregistering == 0 && s->forced_arenas == 0 && s->registering.place == NULL &&
           s->deregging == 0 && s->own_withdrawn == 0 && s->lent_places == 0 && s->fence_tag == 0 &&
           s->lookup_group == NULL;
}

/* One that has posted nothing is bound to no life of its endpoint yet; one that has sent a message,
 * or is to hear some, is known by its lane alone. */
static bool vqp_may_move(const struct vqp *q)
{
    if (q->messages != NULL)
        return false;
    return q->state == VQP_FREE || q->state == VQP_ERROR ||
           ((q->state == VQP_CONNECTED || q->state == VQP_CUTTING) && q->begun);
}

/* What large messages were sent from is lent, or is to be: of that the lane hears that asked. */
static bool session_lends(const struct session *s)
{
    const struct lending *n = &s->lending;
    bool any = n->tag != 0 || n->wants != 0 || n->ends || n->withdraws;
    for (uint32_t i = 0; i < s->arenas; i++)
        any |= n->region[i] != NULL;
    return any;
}

/* Messages come to its lane alone, which must find what is told of them there. */
static bool may_hear(const struct lane *l, const struct session *s)
{
    if (l->messages == NULL)
        return false;
    bool may = s->vqps_high > s->max_vqps || /* it has READ large ones */
               session_lends(s);
    for (uint32_t i = 0; i < SCHEMA_COUNTERS; i++)
        may |= s->memory->counters[i].name != 0;
    return may;
}

static bool may_leave(const struct lane *l, const struct session *s)
{
    if (s->state != SESSION_LIVE || s->lodger || may_hear(l, s) || s->vqps_high > LANE_MOVED_VQPS ||
        !is_settled(s) || has_batch_out(s) || (s->in_due && !s->leaves) ||
        atomic_load_explicit(&s->rw->armed, memory_order_relaxed) != 0)
        return false;
    for (uint32_t i = 0; i < s->vqps_high; i++)
        if (!vqp_may_move(&s->vqps[i]))
            return false;
    return true;
}

static bool is_drained(const struct session *s)
{
    return session_inflight(s) == 0 && !s->dirty && !s->in_wakes && s->flushing.head == NULL &&
           !s->in_endings && (s->state != SESSION_DOOMED || s->lodger_fault != 0);
}

/* ---- handing over */

static int64_t count_vqps(const struct session *s)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < s->vqps_high; i++)
        count += s->vqps[i].state != VQP_FREE;
    return count;
}

/* Whom it is connected to, as far as that is known. */
static void name_endpoint(struct lane *l, const struct vqp *q, struct vqp_endpoint *out)
{
    *out = (struct vqp_endpoint){.incarnation = 0};
    if (q->state != VQP_CONNECTED)
        return;
    const struct schema_peer *p = lane_peer_shared(l, q->peer_slot);
    if (p->gen != q->peer_gen || !p->valid)
        return;
    memcpy(out->gid, p->gid, sizeof out->gid);
    out->incarnation = p->incarnation;
}

static void hand_over(struct lane *l, struct session *s)
{
    struct session_handed *h = s->memory->handed;
    h->sq_head = s->sq_head;
    h->cq_head = s->cq_head;
    h->cq_tail = s->cq_tail;
    h->cq_published = s->cq_published;
    h->told_head = s->told_head;
    h->told_armed = s->told_armed;
    h->wrong_keys = s->wrong_keys;
    h->wrong_ns = s->wrong_ns;
    h->vqps_high = s->vqps_high;
    h->grants_used = s->grants_used;
    h->free_wr = s->free_wr;
    h->fault = s->lodger_fault;
    h->arenas = s->arenas;
    memcpy(h->arena, s->arena, sizeof h->arena);
    for (uint32_t i = 0; i < s->vqps_high; i++)
        name_endpoint(l, &s->vqps[i], &h->endpoint[i]);
    COUNT(l, vqps, -count_vqps(s));
}

/* This lane knows the same life of it. */
static bool find_endpoint(struct lane *l, const struct vqp_endpoint *e, uint32_t *slot,
                          uint32_t *gen)
{
    return schema_peers_find(l->res.peers, e->gid, l->config.pool, slot, gen) == 0 &&
           lane_peer_shared(l, *slot)->incarnation == e->incarnation;
}

/* It goes on by another queue pair. When it left the other lane's is that lane's time: it is
 * counted from now on. */
static void take_unseen(const struct lane *l, struct vqp *q)
{
    if (!vqp_may_be_unseen(q) && q->begun != BEGUN_LEAVES)
        return;
    q->begun = BEGUN_LEAVES;
    q->leaves_ns = l->now_ns;
}

/* Generation 0 is none's: what is posted there fails as to an endpoint that is forgotten. */
static void take_vqp(struct lane *l, struct session *s, struct vqp *q, const struct vqp_endpoint *e)
{
    BASE_ASSERT(!vqp_is_busy(q));
    vqp_forget_flow(q);
    q->session = s;
    q->region = l->cache;
    q->window = NULL;
    q->room = NULL;
    q->turn = (struct turn){.waits = false};
    q->served = 0;
    q->path_ns = q->flowless_ns = 0;
    take_unseen(l, q);
    if (q->state == VQP_CONNECTED &&
        (e->incarnation == 0 || !find_endpoint(l, e, &q->peer_slot, &q->peer_gen)))
        q->peer_slot = q->peer_gen = 0;
}

static void take_over(struct lane *l, struct session *s)
{
    const struct session_handed *h = s->memory->handed;
    s->sq_head = h->sq_head;
    s->cq_head = h->cq_head;
    s->cq_tail = h->cq_tail;
    s->cq_published = h->cq_published;
    s->told_head = h->told_head;
    s->told_armed = h->told_armed;
    s->rung_tail = h->sq_head - 1; /* none that it can ring for: it may have rung elsewhere */
    s->wrong_keys = h->wrong_keys;
    s->wrong_ns = h->wrong_ns;
    s->free_wr = h->free_wr;
    for (uint32_t i = 0; i < s->vqps_high; i++)
        take_vqp(l, s, &s->vqps[i], &h->endpoint[i]);
    atomic_store_explicit(&s->memory->shown.inflight, &s->inflight, memory_order_release);
    COUNT(l, vqps, count_vqps(s));
}

/* ---- at home */

static void say_left(struct lane *l, const struct session *s, int status)
{
    lane_event_push(l, &(struct lane_event){
                           .kind = LANE_EVENT_SESSION_LEFT, .session = s->id, .status = status});
}

void lane_session_leave(struct lane *l, struct session *s)
{
    if (!may_leave(l, s)) {
        say_left(l, s, s->state == SESSION_LIVE ? -EBUSY : -ECANCELED);
        return;
    }
    s->leave_ns = l->now_ns + LEAVE_NS;
    lane_session_leave_now(l, s);
}

static bool leave_home(struct lane *l, struct session *s)
{
    const bool may = may_leave(l, s);
    if (may && is_drained(s)) {
        s->leaves = 0;
        hand_over(l, s);
        s->state = SESSION_AWAY;
        say_left(l, s, 0);
        return true;
    }
    if (may && l->now_ns < s->leave_ns)
        return false;
    s->leaves = 0;
    say_left(l, s, may ? -EAGAIN : -EBUSY);
    lane_session_activate(l, s);
    return true;
}

void lane_session_back(struct lane *l, struct session *s)
{
    BASE_ASSERT(s->state == SESSION_AWAY);
    s->state = SESSION_LIVE;
    s->quarantined = l->culprits[s->tenant_slot].quarantined;
    take_over(l, s);
    lane_session_activate(l, s);
    lane_session_tell_now(l, s); /* it may have armed its channel */
    if (s->memory->handed->fault != 0)
        lane_session_end(l, s, s->memory->handed->fault, true);
}

/* ---- elsewhere */

static void say_lodger_left(struct lane *l, uint32_t lodger, int status)
{
    lane_event_push(l, &(struct lane_event){
                           .kind = LANE_EVENT_LODGER_LEFT, .session = lodger, .status = status});
}

/* Those that it does not know are looked up: the session may come when that is over. */
static bool knows_endpoints(struct lane *l, const struct lane_session *add)
{
    const struct session_handed *h = add->memory->handed;
    bool knows = true;
    for (uint32_t i = 0; i < h->vqps_high; i++) {
        uint32_t slot, gen;
        if (h->endpoint[i].incarnation == 0 || find_endpoint(l, &h->endpoint[i], &slot, &gen))
            continue;
        knows = false;
        (void)lane_lookup_start(l, NULL, h->endpoint[i].gid, NULL, add->tenant_slot + 1);
    }
    return knows;
}

void lane_lodger_add(struct lane *l, const struct lane_session *add)
{
    struct session *s = &l->sessions[l->config.max_sessions + add->id];
    const struct session_handed *h = add->memory->handed;
    BASE_ASSERT(add->id < l->config.lodgers && s->state == SESSION_NONE);
    if (!knows_endpoints(l, add)) {
        say_lodger_left(l, add->id, -EAGAIN);
        return;
    }
    lane_session_fill(l, s, add);
    s->lodger = 1;
    s->vqps_high = h->vqps_high;
    s->grants_used = h->grants_used;
    s->arenas = h->arenas;
    memcpy(s->arena, h->arena, sizeof s->arena);
    take_over(l, s);
    lane_session_activate(l, s);
}

static void leave_lodger(struct lane *l, struct session *s)
{
    lane_session_unstall(l, s);
    lane_session_deactivate(l, s);
    hand_over(l, s);
    say_lodger_left(l, s->id - l->config.max_sessions, 0);
    session_fill(s, &(struct session){.id = s->id});
}

static void drop_requests(struct lane *l, struct session *s)
{
    for (uint32_t i = 0; i < s->vqps_high; i++)
        lane_vqp_destroy(l, &s->vqps[i]);
    if (s->flushing.head != NULL)
        lane_ending_join(l, s);
}

void lane_lodger_return(struct lane *l, uint32_t lodger, bool hurry)
{
    struct session *s = &l->sessions[l->config.max_sessions + lodger];
    BASE_ASSERT(lodger < l->config.lodgers);
    if (s->state == SESSION_NONE)
        return;
    if (hurry)
        drop_requests(l, s);
    lane_session_leave_now(l, s);
}

/* ---- both */

bool lane_session_has_left(struct lane *l, struct session *s)
{
    if (!s->lodger)
        return leave_home(l, s);
    if (!is_drained(s))
        return false;
    leave_lodger(l, s);
    return true;
}

void lane_session_leave_is_off(struct lane *l, struct session *s, uint32_t reason)
{
    if (!s->lodger) {
        s->leaves = 0;
        say_left(l, s, -ECANCELED);
        return;
    }
    s->state = SESSION_DOOMED; /* its worker sees nothing more of what is out */
    if (s->lodger_fault == 0)
        s->lodger_fault = reason;
    drop_requests(l, s);
    lane_session_leave_now(l, s);
}
