/* SPDX-License-Identifier: Apache-2.0 */
#include "request/ending.h"

#include <errno.h>
#include <stdlib.h>

#include "base/device_order.h"
#include "lane_state.h"
#include "request/active.h"
#include "request/batch.h"
#include "request/batch_run.h"
#include "request/messages.h"
#include "request/region.h"
#include "request/reply.h"
#include "request/withdraw.h"
#include "schedule/vqp.h"
#include "session_state.h"
#include "transmit/lane_events.h"

enum {
    STEPS = 64,        /* in a pass */
    STEPS_SHARED = 16, /* in a pass where several tenants are active */
    TURN = 8,          /* of one tenant at a time */
    TOLD = 8,          /* what it takes to wake a worker, in steps */
    FORGOTTEN = 8      /* and to clear its place */
};

/* Of one tenant: the session that is being ended first. */
struct ending_tenant {
    TAILQ_HEAD(, session) sessions;
    TAILQ_ENTRY(ending_tenant) by_turn; /* while there are any */
};

int lane_endings_new(struct lane *l)
{
    TAILQ_INIT(&l->ending_tenants);
    TAILQ_INIT(&l->due);
    TAILQ_INIT(&l->revoking);
    STAILQ_INIT(&l->dirty);
    l->endings = calloc(l->config.max_tenants, sizeof l->endings[0]);
    if (l->endings == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < l->config.max_tenants; i++)
        TAILQ_INIT(&l->endings[i].sessions);
    return 0;
}

void lane_endings_free(struct lane *l)
{
    free(l->endings);
}

void lane_ending_join(struct lane *l, struct session *s)
{
    struct ending_tenant *t = &l->endings[s->tenant_slot];
    if (s->in_endings)
        return;
    s->in_endings = 1;
    if (TAILQ_EMPTY(&t->sessions))
        TAILQ_INSERT_TAIL(&l->ending_tenants, t, by_turn);
    TAILQ_INSERT_TAIL(&t->sessions, s, by_ending);
}

static void leave_endings(struct lane *l, struct session *s)
{
    struct ending_tenant *t = &l->endings[s->tenant_slot];
    s->in_endings = 0;
    TAILQ_REMOVE(&t->sessions, s, by_ending);
    if (TAILQ_EMPTY(&t->sessions))
        TAILQ_REMOVE(&l->ending_tenants, t, by_turn);
}

static void enter_stage(struct session *s, enum end_stage stage)
{
    s->end = (uint8_t)stage;
    s->end_at = 0;
}

/* ---- steps */

/* Nobody sees how they end. */
static uint32_t flush_requests(struct lane *l, struct session *s, uint32_t most)
{
    uint32_t n = 0;
    for (; n < most && s->flushing.head != NULL; n++) {
        struct wr *w = queue_pop(&s->flushing);
        w->back = BACK_ENDED; /* it may have been held */
        w->ended = IBV_WC_SUCCESS;
        batch_or_complete(l, w, IBV_WC_WR_FLUSH_ERR, 0);
    }
    return n;
}

static uint32_t tell_end(struct lane *l, struct session *s)
{
    lane_session_deactivate(l, s);
    lane_withdrawals_forget(s);
    atomic_store_explicit(&s->ro->ended, s->ends_for, memory_order_release);
    atomic_fetch_add_explicit(&s->ro->wake, 1, memory_order_release);
    l->wake(l->wake_user, &s->ro->wake);
    l->tell(l->tell_user, s->id);
    if (s->ends_by_fault)
        lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_SESSION_FAULT,
                                                .session = s->id,
                                                .reason = s->ends_for});
    enter_stage(s, END_VQPS);
    return TOLD;
}

static uint32_t destroy_vqps(struct lane *l, struct session *s, uint32_t most)
{
    uint32_t n = 0;
    for (; n < most && s->end_at < s->vqps_high; n++) {
        lane_receives_flush(l, &s->vqps[s->end_at]);
        lane_vqp_destroy(l, &s->vqps[s->end_at++]);
    }
    if (s->end_at == s->vqps_high)
        enter_stage(s, END_RECORDS);
    return n;
}

static uint32_t withdraw_records(struct lane *l, struct session *s, uint32_t most)
{
    uint32_t n = 0;
    for (; n < most && s->end_at < lane_region_places(s); n++)
        lane_region_end(l, s, &s->regions[s->end_at++]);
    if (s->end_at == lane_region_places(s)) {
        base_device_show(); /* to peers' READs, before the clock is read */
        enter_stage(s, END_CLOCK);
        lane_session_await(l, s);
    }
    return n;
}

static uint32_t show_leases(struct lane *l, struct session *s, uint32_t most)
{
    uint32_t n = 0;
    for (; n < most && s->end_at < lane_region_places(s); n++)
        lane_region_show_end(&s->regions[s->end_at++], s->due_ns);
    if (s->end_at == lane_region_places(s)) {
        enter_stage(s, END_LEASE);
        lane_session_join_due(l, s);
    }
    return n;
}

static void forget_session(struct lane *l, struct session *s)
{
    lane_session_unstall(l, s);
    lane_session_leave_wakes(l, s);
    if (s->dirty)
        STAILQ_REMOVE(&l->dirty, s, session, by_dirty);
    leave_endings(l, s);
    lane_batches_forget(l, s);
    COUNT(l, sessions, -1);
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_SESSION_OVER, .session = s->id});
    session_fill(s, &(struct session){.id = s->id});
}

static uint32_t free_regions(struct lane *l, struct session *s, uint32_t most)
{
    uint32_t n = 0;
    for (; n < most && s->end_at < lane_region_places(s); n++) {
        struct region *region = &s->regions[s->end_at++];
        if (region->lease.state != LANE_LEASE_NONE)
            lane_region_free(s, region);
    }
    if (s->end_at < lane_region_places(s))
        return n;
    forget_session(l, s);
    return n + FORGOTTEN;
}

/* ---- turns */

static bool has_steps(const struct session *s)
{
    return s->flushing.head != NULL ||
           (s->end != END_NONE && s->end != END_CLOCK && s->end != END_LEASE);
}

/* Some steps of one kind. Returns how many, or more where one takes longer. */
static uint32_t take_steps(struct lane *l, struct session *s, uint32_t most)
{
    if (s->flushing.head != NULL)
        return flush_requests(l, s, most);
    switch ((enum end_stage)s->end) {
    case END_BEGUN:
        return tell_end(l, s);
    case END_VQPS:
        return destroy_vqps(l, s, most);
    case END_RECORDS:
        return withdraw_records(l, s, most);
    case END_SHOWN:
        return show_leases(l, s, most);
    case END_REGIONS:
        return free_regions(l, s, most);
    case END_NONE:
    case END_CLOCK:
    case END_LEASE:
        break;
    }
    return 0;
}

/* Returns how many steps that were. */
static uint32_t take_turn(struct lane *l, struct session *s, uint32_t most)
{
    uint32_t steps = 1; /* that it was looked at */
    while (steps < most && has_steps(s))
        steps += take_steps(l, s, most - steps);
    if (s->in_endings && !has_steps(s))
        leave_endings(l, s);
    return steps;
}

/* Whose turn the end of the pass has cut short goes on with the next one: else a tenant could be
 * left the last steps of each, by others whose sessions have the sizes for that. */
void lane_endings_go_on(struct lane *l)
{
    uint32_t left = lane_is_shared(l) ? STEPS_SHARED : STEPS;
    while (left > 0 && endings_wait(l)) {
        struct ending_tenant *t = TAILQ_FIRST(&l->ending_tenants);
        const uint32_t most = left < TURN ? left : TURN;
        const uint32_t steps = take_turn(l, TAILQ_FIRST(&t->sessions), most);
        left -= steps < left ? steps : left;
        if (TAILQ_EMPTY(&t->sessions) || (most < TURN && steps >= most))
            continue;
        TAILQ_REMOVE(&l->ending_tenants, t, by_turn);
        TAILQ_INSERT_TAIL(&l->ending_tenants, t, by_turn);
    }
    l->did++;
}

/* ---- at once, and later */

void lane_ending_withdraw(struct lane *l, struct session *s)
{
    if (s->end > END_RECORDS)
        return;
    for (uint32_t i = 0; i < lane_region_places(s); i++)
        lane_region_end(l, s, &s->regions[i]);
    base_device_show(); /* as in withdraw_records() */
}

bool lane_ending_is_due(struct lane *l, struct session *s)
{
    if (s->end == END_CLOCK) {
        s->due_ns = l->now_ns + (s->exported ? lane_region_wait_ns(l) : 0);
        enter_stage(s, END_SHOWN);
    } else if (l->now_ns >= s->due_ns && session_inflight(s) == 0) {
        enter_stage(s, END_REGIONS);
    } else {
        return false;
    }
    lane_ending_join(l, s);
    return true;
}
