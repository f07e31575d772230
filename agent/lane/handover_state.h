/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane keeps of hand-overs of its processor (request/handover.h). Private to agent/lane,
 * and the lane thread's. */
#ifndef LANE_HANDOVER_STATE_H
#define LANE_HANDOVER_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct handover {
    uint32_t cpu;   /* where the lane's thread runs, + 1; 0: nobody has said */
    uint32_t wants; /* whose worker was answered there since, + 1; 0: nobody's */
    bool given;     /* and the lane is to sleep for it */
};

#endif
