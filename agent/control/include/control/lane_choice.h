/* SPDX-License-Identifier: Apache-2.0 */
/* Which lane of its pool a worker gets, and what part of a bound a lane has. Pure. */
#ifndef CONTROL_LANE_CHOICE_H
#define CONTROL_LANE_CHOICE_H

#include <stdint.h>

#include "control/config.h"

enum {
    /* Workers of one tenant stay together, so that what they send to one node can be merged, until
     * their lane has so many sessions more than another one. */
    LANE_TOGETHER = 4,
    /* Requests in a second that are no reason to leave a lane, and what it has more than another
     * one's is. */
    LANE_LITTLE = 20000,
    LANE_TIMES_MORE = 2,
};

/* What a lane has to do. */
struct lane_load {
    uint32_t sessions;  /* that it has, and workers that wait for one */
    uint32_t of_tenant; /* of these, those of the tenant whose worker comes */
    uint64_t rate;      /* requests in a second, of late */
};

/* The number of the lane for one more worker of that tenant; count: 1 or more. */
uint32_t agent_lane_choose(const struct lane_load *lane, uint32_t count);

/* The part that number `number` of `parts` has of a bound: together they have all of it, and more
 * only where each would have less than one. 0 is no bound. */
struct agent_limits agent_limits_part(struct agent_limits all, uint32_t parts, uint32_t number);

#endif
