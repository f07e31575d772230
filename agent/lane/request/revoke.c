/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's hold on regions, whose workers live on and learn of it when they ask.
 *
 * Revoked regions are withdrawn by the rule of the leases, as if their worker had done it. By force
 * nothing of that is waited for: a registration of their own goes at once; else the arena that they
 * are in gets another one, and the control side deregisters the former one as soon as the worker's
 * own requests, whose local memory it is, name it no more. So its worker's requests go on, and so
 * do all others on the same physical queue pairs. What the worker registers there meanwhile waits
 * for the other registration, not for ever, since peers that had READ its record under the former
 * one would be refused with those that the operator means. */
#include "request/revoke.h"

#include <errno.h>

#include "base/device_order.h"
#include "lane_state.h"
#include "message_state.h"
#include "schedule/vqp.h"
#include "request/dedicated_mr.h"
#include "request/ending.h"
#include "request/lease_moves.h"
#include "request/reg_mr.h"
#include "request/region.h"
#include "request/reply.h"
#include "request/withdraw.h"
#include "session_state.h"
#include "transmit/lane_events.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

enum {
    DUE_LOOKS = 64, /* at sessions with revoked regions, in a pass */
    DUE = 4,        /* of these sessions, that have something to do */
    DUE_SHARED = 1
};
static_assert(LANE_SESSION_MAX_ARENAS <= 16, "the bits of wr.stale");

/* Its regions are at home, be it away or not: nobody waits until it is back. */
static struct session *live_session(struct lane *l, uint32_t id)
{
    struct session *s = id < l->config.max_sessions ? &l->sessions[id] : NULL;
    return s != NULL && (s->state == SESSION_LIVE || s->state == SESSION_AWAY) ? s : NULL;
}

/* Nobody finds it from now on. Its worker hears of it when it looks, or sleeps. */
static void take_region(struct lane *l, struct session *s, struct region *region)
{
    lane_region_withdraw(l, s, region);
    region->lease.revoked = true;
    region->lease.due_ns = 0;
    lane_region_show(region);
    base_device_show(); /* to peers' READs, before its worker hears of it and the clock is read */
    atomic_fetch_add_explicit(&s->ro->revoked, 1, memory_order_release);
    if (s->state == SESSION_AWAY) /* its completions are another lane's to show */
        lane_session_wake(l, s);
    else
        lane_session_tell_now(l, s);
}

static bool is_named(const struct lane_command *c, const struct lane_lease *e)
{
    if (c->revoke.number != 0)
        return e->number == c->revoke.number;
    return e->own ? c->revoke.own : (c->revoke.arenas >> e->arena & 1) != 0;
}

static void join_revoking(struct lane *l, struct session *s)
{
    if (s->in_revoking)
        return;
    s->in_revoking = 1;
    TAILQ_INSERT_TAIL(&l->revoking, s, by_revoking);
    l->revoking_count++;
}

static void leave_revoking(struct lane *l, struct session *s)
{
    if (!s->in_revoking)
        return;
    s->in_revoking = 0;
    TAILQ_REMOVE(&l->revoking, s, by_revoking);
    l->revoking_count--;
}

/* One that ends is none any more to who asks, so that no peer may find anything of it either. */
static struct session *session_to_revoke(struct lane *l, uint32_t id)
{
    if (id < l->config.max_sessions && l->sessions[id].state == SESSION_ENDING)
        lane_ending_withdraw(l, &l->sessions[id]);
    return live_session(l, id);
}

void lane_regions_revoke(struct lane *l, const struct lane_command *c)
{
    struct session *s = session_to_revoke(l, c->session);
    uint32_t found = 0, taken = 0;
    for (uint32_t i = 0; s != NULL && i < lane_region_places(s); i++) {
        struct region *region = &s->regions[i];
        const struct lane_lease *e = &region->lease;
        if (e->state == LANE_LEASE_NONE || !is_named(c, e))
            continue;
        found++;
        if (c->revoke.force && e->own && region->by != 0)
            lane_withdrawal_hurry(s, region);
        region->hurried |= c->revoke.force && e->own;
        if (e->state != LANE_LEASE_LIVE)
            continue;
        take_region(l, s, region);
        taken++;
    }
    if (s != NULL && c->revoke.force)
        s->forced_arenas |= c->revoke.arenas;
    if (found > 0)
        lane_withdrawals_let_go(l, s);
    if (found > 0 && (taken > 0 || c->revoke.force)) {
        s->revoke_ns = 0; /* the clock is read in the next pass, after what was withdrawn */
        join_revoking(l, s);
    }
    bool none = s == NULL || (c->revoke.number != 0 && found == 0);
    lane_event_push(
        l, &(struct lane_event){
               .kind = LANE_EVENT_REVOKED,
               .session = c->session,
               .answer = {.tag = c->revoke.tag, .status = none ? -ENOENT : 0, .taken = taken}});
}

/* ---- by the rule of the leases */

static bool is_withdrawing(const struct region *region)
{
    return region->lease.revoked && region->lease.state == LANE_LEASE_WITHDRAWING &&
           region->by == 0;
}

/* One fence at a time, of one registration, for all whose time is over. */
static void want_fence(struct lane *l, struct session *s, uint32_t rkey)
{
    l->did++; /* so that the control side hears of it */
    s->revoke_tag = ++l->fences;
    for (uint32_t i = 0; i < lane_region_places(s); i++) {
        struct region *region = &s->regions[i];
        if (!is_withdrawing(region) || region->rkey != rkey || region->lease.due_ns == 0 ||
            region->lease.due_ns > l->now_ns)
            continue;
        lane_lease_move(&region->lease, LEASE_LET_GO);
        region->tag = s->revoke_tag;
        lane_region_show(region);
    }
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_WANT_FENCE,
                                            .session = s->id,
                                            .fence = {rkey, s->revoke_tag}});
}

/* False: nothing is left to do. */
static bool go_on(struct lane *l, struct session *s)
{
    bool left = s->revoke_tag != 0;
    if (l->now_ns < s->revoke_ns)
        return true;
    s->revoke_ns = LANE_NEVER;
    for (uint32_t i = 0; i < lane_region_places(s); i++) {
        struct region *region = &s->regions[i];
        if (!is_withdrawing(region))
            continue;
        const bool waits = region_waits(region);
        if (waits && region->lease.due_ns == 0) {
            region->lease.due_ns = l->now_ns + lane_region_wait_ns(l);
            lane_region_show(region);
        }
        if (region->lease.own && (!waits || l->now_ns >= region->lease.due_ns)) {
            /* It waits for nothing but its turn: lane_withdrawals_gone(). */
            if (s->deregging < LANE_DEREGS)
                lane_dedicated_let_go(l, s, region);
            else
                left = true;
            continue;
        }
        left = true;
        if (l->now_ns >= region->lease.due_ns && s->revoke_tag == 0)
            want_fence(l, s, region->rkey);
        else if (s->revoke_tag == 0 && region->lease.due_ns < s->revoke_ns)
            s->revoke_ns = region->lease.due_ns;
    }
    if (s->revoke_tag != 0) /* its end is when to look again */
        s->revoke_ns = LANE_NEVER;
    return left;
}

void lane_revocations_due(struct lane *l)
{
    uint32_t left = lane_is_shared(l) ? DUE_SHARED : DUE;
    uint32_t n = l->revoking_count < DUE_LOOKS ? l->revoking_count : DUE_LOOKS;
    for (; n > 0 && left > 0; n--) {
        struct session *s = TAILQ_FIRST(&l->revoking);
        left -= l->now_ns >= s->revoke_ns;
        leave_revoking(l, s);
        if (go_on(l, s))
            join_revoking(l, s);
        else
            l->did++;
    }
    l->did += left == 0; /* others may be due too */
}

void lane_revocation_fenced(struct session *s, uint32_t tag)
{
    for (uint32_t i = 0; i < lane_region_places(s); i++) {
        struct region *region = &s->regions[i];
        if (region->lease.state != LANE_LEASE_WAITING || region->tag != tag)
            continue;
        lane_lease_move(&region->lease, LEASE_GONE);
        lane_region_show(region);
    }
    if (s->revoke_tag == tag) {
        s->revoke_tag = 0;
        s->revoke_ns = 0;
    }
}

void lane_revocations_forget(struct lane *l, struct session *s)
{
    leave_revoking(l, s);
}

/* ---- by force: another registration */

static void answer_reregister(struct lane *l, uint32_t session, const struct lane_command *c,
                              int status)
{
    lane_event_push(l,
                    &(struct lane_event){.kind = LANE_EVENT_ARENA_REREGISTERED,
                                         .session = session,
                                         .answer = {.tag = c->reregister.tag, .status = status}});
}

static void tell_reregistered(struct lane *l, struct session *s, uint32_t arena)
{
    s->reregistering &= ~(1u << arena);
    lane_event_push(l,
                    &(struct lane_event){.kind = LANE_EVENT_ARENA_REREGISTERED,
                                         .session = s->id,
                                         .answer = {.tag = s->reregistration[arena].tag,
                                                    .taken = s->reregistration[arena].taken,
                                                    .fence_tag = s->reregistration[arena].fence_tag,
                                                    .last = s->reregistration[arena].last}});
}

static bool names_old(const struct session *s, uint32_t arena, const struct wr *w)
{
    for (int i = 0; i < wr_pieces(w); i++)
        if (w->sge[i].lkey == s->reregistration[arena].old_lkey)
            return true;
    return false;
}

static void rekey_request(const struct session *s, uint32_t arena, struct wr *w)
{
    for (int i = 0; i < wr_pieces(w); i++)
        if (w->sge[i].lkey == s->reregistration[arena].old_lkey) {
            w->sge[i].lkey = s->arena[arena].lkey;
            w->sge[i].addr += s->arena[arena].iova - s->reregistration[arena].old_iova;
        }
}

/* What the device has is waited for; what is still here gets the new key. What it has posted
 * elsewhere is not looked at from here. */
static void rekey_all(struct lane *l, struct session *s, uint32_t arena)
{
    for (uint32_t i = 0; i < l->phys_room; i++) {
        const struct physical_qp *p = &l->phys[i];
        for (uint32_t n = p->head; n != p->tail; n++) {
            struct wr *w = p->ring[n & (l->config.sq_depth - 1)];
            if (w == NULL || w->kind != WR_WORKER || w->session != s || !names_old(s, arena, w))
                continue;
            w->stale |= (uint16_t)(1u << arena);
            s->reregistration[arena].stale++;
        }
    }
    for (uint32_t i = 0; i < s->vqp_places; i++) {
        const struct vqp *q = &s->vqps[i];
        for (struct wr *w = q->queue.head; w != NULL; w = w->next)
            rekey_request(s, arena, w);
        /* SENDs that are not acknowledged may go again. */
        for (struct wr *w = q->kept > 0 ? q->messages->kept.head : NULL; w != NULL; w = w->next)
            rekey_request(s, arena, w);
    }
}

/* Those arenas have a registration that stays: a region that waited for that is registered. */
static void release_arenas(struct lane *l, struct session *s, uint32_t arenas)
{
    s->forced_arenas &= ~arenas;
    if (!s->registering.held || (s->forced_arenas >> s->registering.asked.reg_mr.arena & 1) != 0)
        return;
    s->registering.held = false;
    const struct schema_sq_desc asked = s->registering.asked; /* which may be written anew */
    lane_region_register(l, s, &asked);
}

void lane_force_late(struct lane *l, const struct lane_command *c)
{
    struct session *s = live_session(l, c->session);
    if (s == NULL || !s->registering.held)
        return;
    s->registering.held = false;
    lane_session_reply(l, s, -EAGAIN, SCHEMA_REASON_FORCED, 0, 0, NULL);
}

void lane_force_over(struct lane *l, const struct lane_command *c)
{
    struct session *s = live_session(l, c->session);
    if (s != NULL)
        release_arenas(l, s, UINT32_MAX);
}

/* A lodger's requests get the new key here, before its regions are taken at home. One that is to
 * end there lives on at home, where nothing of it is out: so what is out here is waited for. */
static struct session *session_to_rekey(struct lane *l, uint32_t id)
{
    struct session *s = id < lane_session_places(l) ? &l->sessions[id] : NULL;
    return s != NULL && s->lodger ? s : live_session(l, id);
}

static void take_arena(struct lane *l, struct session *s, uint32_t number)
{
    for (uint32_t i = 0; i < lane_region_places(s); i++) {
        struct region *region = &s->regions[i];
        if (region->lease.arena != number || region->lease.own)
            continue;
        if (region->lease.state == LANE_LEASE_LIVE) {
            take_region(l, s, region);
            s->reregistration[number].taken++;
        }
        if (is_withdrawing(region))
            lane_lease_move(&region->lease, LEASE_LET_GO);
        if (region->lease.state != LANE_LEASE_WAITING)
            continue;
        region->tag = s->reregistration[number].fence_tag;
        lane_region_show(region);
    }
}

void lane_arena_reregister(struct lane *l, const struct lane_command *c)
{
    struct session *s = session_to_rekey(l, c->session);
    const uint32_t number = c->reregister.number;
    if (s == NULL || number >= s->arenas || (s->reregistering >> number & 1) != 0) {
        answer_reregister(l, c->session, c, s == NULL || number >= s->arenas ? -ENOENT : -EBUSY);
        return;
    }
    struct lane_arena *arena = &s->arena[number];
    s->reregistering |= 1u << number;
    s->reregistration[number].tag = c->reregister.tag;
    s->reregistration[number].old_lkey = arena->lkey;
    s->reregistration[number].old_iova = arena->iova;
    s->reregistration[number].fence_tag = ++l->fences;
    s->reregistration[number].stale = s->reregistration[number].taken = 0;
    s->reregistration[number].last = s->registered;
    arena->lkey = c->reregister.lkey;
    arena->rkey = c->reregister.rkey;
    arena->iova = c->reregister.iova;
    if (!s->lodger)
        take_arena(l, s, number);
    if (s->state != SESSION_AWAY)
        rekey_all(l, s, number);
    if (s->reregistration[number].stale == 0)
        tell_reregistered(l, s, number);
    release_arenas(l, s, 1u << number);
}

/* The device has it no more. */
static void count_out(struct lane *l, struct wr *w, bool goes_again)
{
    struct session *s = w->session;
    for (; w->stale != 0; w->stale &= (uint16_t)(w->stale - 1)) {
        const uint32_t arena = (uint32_t)__builtin_ctzll(w->stale);
        if (goes_again)
            rekey_request(s, arena, w);
        if (--s->reregistration[arena].stale == 0)
            tell_reregistered(l, s, arena);
    }
}

void lane_arena_unused(struct lane *l, struct wr *w)
{
    count_out(l, w, false);
}

void lane_arena_rekey(struct lane *l, struct wr *w)
{
    count_out(l, w, true);
}
