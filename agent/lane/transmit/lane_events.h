/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane tells the control side. Private to agent/lane, and the lane thread's. */
#ifndef LANE_EVENTS_H
#define LANE_EVENTS_H

#include "lane_state.h"

/* There is room: the ring is made for all that can be pending at a time (lane.c). */
void lane_event_push(struct lane *l, const struct lane_event *event);

/* Whether the control side keeps up. What need not be told at once waits until it does. */
static inline bool lane_may_tell(const struct lane *l)
{
    return base_spsc_count(l->events) < LANE_PATHS;
}

#endif
