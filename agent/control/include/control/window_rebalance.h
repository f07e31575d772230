/* SPDX-License-Identifier: Apache-2.0 */
/* How a window of the device is shared by the lanes of an agent's pools, each of which counts for
 * itself. No I/O, no clock; one thread.
 *
 * A lane's part is equal to the others', but while one has nothing to do it keeps a little and
 * lends the rest to those that have. What one lane gives up another gets only after the first was
 * seen to keep to less, so that all together never have more in flight than the window. Three
 * exceptions: each lane may have one request in flight, however narrow the window and in its first
 * moments; a request that is larger than its lane's part goes alone there
 * (agent/lane/schedule/window.h); and what was in flight before there was a window at all is seen
 * out. */
#ifndef CONTROL_WINDOW_REBALANCE_H
#define CONTROL_WINDOW_REBALANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"
#include "control/config.h"

enum {
    AGENT_SHARE_IDLE = 8,  /* an idle lane keeps this part of an equal one */
    AGENT_SHARE_LOOKS = 50 /* for so many looks it counts as busy after it was */
};

/* A lane's; zeroed at its start. */
struct agent_share {
    struct agent_limits told; /* 0: no limit */
    struct agent_limits held; /* it may have so much in flight as long as nobody looks again */
    bool pending;             /* it has not been seen to have taken what it was told */
    uint64_t waits;           /* as it was seen last */
    uint32_t busy;            /* looks that are left */
};

/* now: how each lane's window of the device stands; all: the window, 0: no limit. What each is to
 * be told, so that all come nearer to what they should have, which takes several calls while it
 * changes: in `told` of those that the answer has a bit for, from bit 0 for at[0]. count: 1 to 64.
 */
uint64_t agent_rebalance_turn(struct agent_share *const at[], const struct lane_window now[],
                              uint32_t count, struct agent_limits all);

/* Whether that would change nothing, now and as long as no lane takes anything up; idle: none can,
 * since there are no workers. */
bool agent_rebalance_rests(const struct agent_share *const at[], uint32_t count,
                           struct agent_limits all, bool idle);

#endif
