/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane keeps of a session's counter (request/raises.h). Private to agent/lane, and the
 * lane thread's. */
#ifndef LANE_COUNTER_STATE_H
#define LANE_COUNTER_STATE_H

#include <stdint.h>

struct counter {
    uint64_t name; /* 0: there is none */
    uint64_t secret, value;
};

#endif
