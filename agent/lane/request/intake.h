/* SPDX-License-Identifier: Apache-2.0 */
/* From a worker's ring into the lane. Private to agent/lane, and the lane thread's. */
#ifndef LANE_INTAKE_H
#define LANE_INTAKE_H

#include "lane_state.h"

/* Takes some of what is in its ring. Returns how much; 1 too when its session ended for it. */
uint32_t session_poll(struct lane *l, struct session *s);
/* Takes the control operations whose turn it is, and what stands behind them. */
void intake_controls(struct lane *l);

#endif
