/* SPDX-License-Identifier: Apache-2.0 */
/* Regions with registrations of their own. Private to agent/lane, and the lane thread's. */
#ifndef LANE_DEDICATED_MR_H
#define LANE_DEDICATED_MR_H

#include "lane_state.h"

/* Asks for the registration of the region that d asks for, whose place that is. */
void lane_dedicated_want(struct lane *l, struct session *s, struct region *place,
                         const struct schema_sq_desc *d);
/* Asks for a registration; MR_READY has the tag that this returns. */
uint32_t lane_dedicated_ask(struct lane *l, const struct session *s,
                            const struct schema_sq_desc *d);
/* MR_READY. */
void lane_dedicated_ready(struct lane *l, const struct lane_command *c);
/* The region, withdrawn already, is WAITING until its registration has gone (MR_GONE). */
void lane_dedicated_let_go(struct lane *l, struct session *s, struct region *region);
/* The session ends: what is awaited is the control side's. */
void lane_dedicated_forget(struct lane *l, struct session *s);

#endif
