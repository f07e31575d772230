/* SPDX-License-Identifier: Apache-2.0 */
/* What workers give back: each DEREG_MR names some regions, and several are under way.
 *
 * All regions of one request are withdrawn in the same pass and wait for the same lease. After it
 * those that are in one registration wait for the same fence, and those with registrations of their
 * own for the ends of these, a few at a time. Fenced regions, and those that the operator takes by
 * force, wait for no lease. */
#include "request/withdraw.h"

#include <errno.h>

#include "base/assert.h"
#include "base/device_order.h"
#include "lane_state.h"
#include "request/active.h"
#include "request/dedicated_mr.h"
#include "request/lending.h"
#include "request/lease_moves.h"
#include "request/region.h"
#include "request/reply.h"
#include "schedule/quota.h"
#include "session_state.h"
#include "transmit/lane_events.h"

enum { PLACES_A_UNIT = 64 /* looks at regions, of a tenant's budget (control_ops.c) */ };

static struct withdrawal *withdrawal_of(struct session *s, const struct region *region)
{
    return &s->memory->withdrawals[region->by - 1];
}

static void finish_one(struct lane *l, struct session *s, struct withdrawal *w)
{
    if (--w->left > 0)
        return;
    if (w == &s->memory->withdrawals[WITHDRAWAL_OF_LENT])
        lane_lending_gone(l, s);
    else
        lane_session_answer(l, s, w->tag, w->status);
}

/* True: it was there, and its worker gave it back only now. */
static bool remove_one(struct lane *l, struct session *s, uint32_t vkey, uint32_t place)
{
    struct region *region = lane_region_find(s, vkey);
    if (region == NULL || region->by != 0)
        return false;
    lane_region_remove(l, s, region, place);
    return true;
}

void lane_withdrawals_let_go(struct lane *l, struct session *s)
{
    for (uint32_t i = 0;
         s->own_withdrawn > 0 && i < lane_region_places(s) && s->deregging <= LANE_DEREGS; i++) {
        COUNT(l, walked, 1);
        struct region *region = &s->regions[i];
        if (region->by != 0 && region->lease.own && !region_waits(region) &&
            region->lease.state == LANE_LEASE_WITHDRAWING)
            lane_dedicated_let_go(l, s, region);
    }
}

/* Whoever READs from here on finds nothing: the device that reads the table for him sees that
 * before the clock is read (next pass). */
static void await_leases(struct lane *l, struct session *s, uint32_t place)
{
    struct withdrawal *w = &s->memory->withdrawals[place];
    base_device_show();
    if (w->lent > 0) {
        s->lent_places |= 1ull << place;
        lane_session_await(l, s);
    }
    lane_withdrawals_let_go(l, s);
    finish_one(l, s, w);
}

bool lane_withdrawal_begin(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    const uint32_t place = d->dereg_mr.tag % SCHEMA_REPLIES;
    struct withdrawal *w = &s->memory->withdrawals[place];
    if (w->left > 0 || d->dereg_mr.more > SCHEMA_DEREG_MORE)
        return false;
    *w = (struct withdrawal){.tag = d->dereg_mr.tag, .left = 1}; /* ours, so that it lasts */
    uint32_t missing = !remove_one(l, s, d->dereg_mr.vkey, place);
    for (uint32_t i = 0; i < d->dereg_mr.more; i++) {
        missing += !remove_one(l, s, d->dereg_mr.vkeys[i], place);
        lane_quota_charge(s->quota, l->now_ns); /* the first was counted when it was taken */
        l->control_units++;
    }
    w->status = missing > 0 ? -ENOENT : 0;
    if (s->own_withdrawn > 0)
        l->control_units += lane_region_places(s) / PLACES_A_UNIT;
    await_leases(l, s, place);
    return true;
}

void lane_withdrawal_of_lent(struct lane *l, struct session *s)
{
    struct withdrawal *w = &s->memory->withdrawals[WITHDRAWAL_OF_LENT];
    *w = (struct withdrawal){.left = 1};
    for (uint32_t i = 0; i < s->arenas; i++) {
        struct region *region = s->lending.region[i];
        /* Who has guessed the key of its own may have given it back, and harms itself. */
        if (region != NULL && region->vkey == s->lending.vkey[i] && region->by == 0)
            lane_region_remove(l, s, region, WITHDRAWAL_OF_LENT);
    }
    await_leases(l, s, WITHDRAWAL_OF_LENT);
}

void lane_withdrawal_hurry(struct session *s, struct region *region)
{
    struct withdrawal *w = withdrawal_of(s, region);
    if (!region_waits(region))
        return;
    region->hurried = true;
    if (--w->lent == 0)
        s->lent_places &= ~(1ull << (region->by - 1));
}

void lane_withdrawal_done(struct lane *l, struct session *s, struct region *region)
{
    struct withdrawal *w = withdrawal_of(s, region);
    lane_withdrawal_hurry(s, region);
    lane_region_free(s, region);
    finish_one(l, s, w);
}

void lane_withdrawals_forget(struct session *s)
{
    for (uint32_t i = 0; i < WITHDRAWALS; i++)
        s->memory->withdrawals[i].left = 0;
    s->lent_places = 0;
    s->fence_tag = 0;
}

/* ---- the lease, and after it a fence */

/* Of all these requests at once, in one walk. */
static void count_leases(struct lane *l, struct session *s, uint64_t places)
{
    const uint64_t due_ns = l->now_ns + lane_region_wait_ns(l);
    for (uint32_t place = 0; place < WITHDRAWALS; place++)
        if (places >> place & 1)
            s->memory->withdrawals[place].due_ns = due_ns;
    for (uint32_t i = 0; i < lane_region_places(s); i++) {
        struct region *region = &s->regions[i];
        COUNT(l, walked, 1);
        if (region->by == 0 || (places >> (region->by - 1) & 1) == 0 || !region_waits(region))
            continue;
        region->lease.due_ns = due_ns;
        lane_region_show(region);
    }
}

/* Of one registration for all whose time is over, one at a time: nothing begins in them any more,
 * and what a lane that stood still has begun is waited for. The tag is the lane's own: the session
 * may be another one's when the answer comes. */
static void want_fence(struct lane *l, struct session *s, uint64_t places)
{
    uint32_t rkey = 0;
    for (uint32_t i = 0; i < lane_region_places(s); i++) {
        struct region *region = &s->regions[i];
        if (region->by == 0 || (places >> (region->by - 1) & 1) == 0 || region->lease.own)
            continue;
        if (s->fence_tag == 0) {
            s->fence_tag = ++l->fences;
            rkey = region->rkey;
        }
        if (region->rkey == rkey)
            region->tag = s->fence_tag;
    }
    if (s->fence_tag == 0)
        return;
    l->did++; /* so that the control side hears of it */
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_WANT_FENCE,
                                            .session = s->id,
                                            .fence = {rkey, s->fence_tag}});
}

/* Their leases are over: the registrations of their own go, in turns. */
static void hurry_own(struct lane *l, struct session *s, uint64_t places)
{
    for (uint32_t i = 0; i < lane_region_places(s); i++) {
        struct region *region = &s->regions[i];
        if (region->by != 0 && (places >> (region->by - 1) & 1) != 0 && region->lease.own)
            lane_withdrawal_hurry(s, region);
    }
    lane_withdrawals_let_go(l, s);
}

bool lane_withdrawals_go_on(struct lane *l, struct session *s)
{
    uint64_t due = 0, begin = 0;
    s->due_ns = LANE_NEVER; /* a fence's end is when to look again */
    for (uint32_t place = 0; place < WITHDRAWALS; place++)
        if ((s->lent_places >> place & 1) != 0 && s->memory->withdrawals[place].due_ns == 0)
            begin |= 1ull << place;
    if (begin != 0)
        count_leases(l, s, begin);
    for (uint32_t place = 0; place < WITHDRAWALS; place++) {
        struct withdrawal *w = &s->memory->withdrawals[place];
        if ((s->lent_places >> place & 1) == 0)
            continue;
        if (l->now_ns >= w->due_ns)
            due |= 1ull << place;
        else if (w->due_ns < s->due_ns)
            s->due_ns = w->due_ns;
    }
    if (due != 0)
        hurry_own(l, s, due);
    if (due != 0 && s->fence_tag == 0)
        want_fence(l, s, due);
    return s->lent_places != 0;
}

bool lane_withdrawals_fenced(struct lane *l, struct session *s, uint32_t tag)
{
    if (s->fence_tag != tag)
        return false;
    s->fence_tag = 0;
    s->due_ns = 0;
    for (uint32_t i = 0; i < lane_region_places(s); i++) {
        struct region *region = &s->regions[i];
        if (region->by != 0 && !region->lease.own && region->tag == tag)
            lane_withdrawal_done(l, s, region);
    }
    return true;
}

/* ---- registrations of their own */

void lane_withdrawals_gone(struct lane *l, const struct lane_command *c)
{
    struct session *s = &l->sessions[c->session];
    if (s->state != SESSION_LIVE && s->state != SESSION_AWAY)
        return;
    BASE_ASSERT(s->deregging > 0);
    s->deregging--;
    s->revoke_ns = 0; /* another one's turn, perhaps */
    for (uint32_t i = 0; i < lane_region_places(s); i++) {
        struct region *region = &s->regions[i];
        if (!region->lease.own || region->lease.state != LANE_LEASE_WAITING ||
            region->tag != c->mr.tag)
            continue;
        if (region->by != 0) {
            lane_withdrawal_done(l, s, region);
        } else {
            lane_lease_move(&region->lease, LEASE_GONE);
            lane_region_show(region);
        }
        break;
    }
    lane_withdrawals_let_go(l, s);
}
