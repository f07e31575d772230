/* SPDX-License-Identifier: Apache-2.0 */
/* What the control side asks of the lane. Private to agent/lane, and the lane thread's. */
#ifndef LANE_COMMANDS_H
#define LANE_COMMANDS_H

#include "lane_state.h"

/* All that have come. */
void lane_commands_take(struct lane *l);

#endif
