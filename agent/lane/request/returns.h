/* SPDX-License-Identifier: Apache-2.0 */
/* What the queue pairs give back goes to whom it concerns. Private to agent/lane, and the lane
 * thread's.
 *
 * Queue pairs call nobody above them. They leave lists: requests that have ended, or that were not
 * carried out and go again; flows whose connection broke; tenants whose flows are to be looked at.
 * Lookups leave the sessions whose CONNECT is answered, and VQPs requests that end unposted.
 * A caller that has rung, polled, or given up a queue pair takes these lists before it does
 * anything else. */
#ifndef LANE_RETURNS_H
#define LANE_RETURNS_H

#include "lane_state.h"

static inline bool returns_wait(const struct lane *l)
{
    return l->returned.first != NULL || l->lost_links != NULL || l->silenced ||
           lookups_have_ended(&l->lookups);
}

void lane_returns_take(struct lane *l);
enum { LANE_POLLED = 64 /* completions at a time */ };
/* Takes completions from the device, each with what it brings. Returns how many, LANE_POLLED at the
 * most. */
uint32_t lane_returns_poll(struct lane *l);
/* After so many: of a tenant that is alone as many as a pass takes of its requests, and no longer
 * than until a message has come. Returns how many with those. */
uint32_t lane_returns_poll_more(struct lane *l);
/* Posts what is chained, and takes what that brings. */
void lane_returns_ring(struct lane *l);
/* So that what is over counts no more, also after a pause: posts what is chained, and takes all
 * completions that there are. Bounded by what is out. */
void lane_returns_poll_all(struct lane *l);

#endif
