/* SPDX-License-Identifier: Apache-2.0 */
/* This node's address is another. Private to agent/lane, and the lane thread's. */
#ifndef LANE_READDRESS_H
#define LANE_READDRESS_H

#include "lane_state.h"

/* READDRESS; so many regions were lost by it. */
void lane_readdress(struct lane *l, const struct lane_command *c, uint32_t lost);
void lane_readdress_go_on(struct lane *l);

#endif
