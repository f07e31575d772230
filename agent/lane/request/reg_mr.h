/* SPDX-License-Identifier: Apache-2.0 */
/* REG_MR: a worker asks for a region. Private to agent/lane, and the lane thread's. */
#ifndef LANE_REG_MR_H
#define LANE_REG_MR_H

#include "lane_state.h"

/* Registers the region that d asks for, and answers, now or later. */
void lane_region_register(struct lane *l, struct session *s, const struct schema_sq_desc *d);
/* The same without an answer: 0, *vkey and secret. -EINPROGRESS: it gets a registration of its own,
 * and lane_dedicated_ready() answers; or its arena is to have another one, and lane_force_over()
 * does. */
int lane_region_add(struct lane *l, struct session *s, const struct schema_sq_desc *d,
                    uint32_t *vkey, uint8_t secret[16]);

#endif
