/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of sessions leaves to be done, a little of it in each pass. Private to agent/lane,
 * and the lane thread's.
 *
 * A session may have hundreds of VQPs, regions and requests that wait, and a tenant hundreds of
 * sessions that end at once. What must not wait is done at once (lane_session_end()): nothing more
 * is taken from its rings, and nothing of it is posted. The rest has no haste, since its memory is
 * free only a lease after the last of its records has gone, and after the last request that is out.
 * A pass does so many steps of it, each one VQP, region or request; tenants take turns, and of a
 * tenant one session ends after the other. */
#ifndef LANE_ENDING_H
#define LANE_ENDING_H

#include "lane_state.h"

/* How far a session's end has come. */
enum end_stage {
    END_NONE,    /* it lives; requests of VQPs that it has destroyed may be left to be flushed */
    END_BEGUN,   /* it is to hear of its end, and the control side of a fault */
    END_VQPS,    /* they go, with what is queued there */
    END_RECORDS, /* no peer finds its regions any more */
    END_CLOCK,   /* waits: the clock is read in a later pass than the last record went */
    END_SHOWN,   /* its regions show when their leases are over */
    END_LEASE,   /* waits: for that, and for what is out */
    END_REGIONS  /* they are free, and then it is over */
};

/* -ENOMEM. */
int lane_endings_new(struct lane *l);
void lane_endings_free(struct lane *l);
/* s has something to be done: it ends, or has requests to be flushed. */
void lane_ending_join(struct lane *l, struct session *s);
/* An operator revokes what s, which ends, has lent: no peer finds any of it any more. */
void lane_ending_withdraw(struct lane *l, struct session *s);
/* s, which waits, is looked at. False: it goes on waiting. */
bool lane_ending_is_due(struct lane *l, struct session *s);
static inline bool endings_wait(const struct lane *l)
{
    return !TAILQ_EMPTY(&l->ending_tenants);
}
/* As much as a pass may do. */
void lane_endings_go_on(struct lane *l);

#endif
