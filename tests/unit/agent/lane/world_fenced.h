/* SPDX-License-Identifier: Apache-2.0 */
/* The control side of fenced regions, in a world of nodes (world.h). */
#ifndef UNIT_AGENT_LANE_WORLD_FENCED_H
#define UNIT_AGENT_LANE_WORLD_FENCED_H

#include "world.h"

void world_fenced_event(struct world *w, struct world_node *n, const struct lane_event *e);
/* The test holds no more: what waits is carried out, in order. */
void world_fenced_go_on(struct world *w, struct world_node *n);
/* The session is over: all that it has goes. */
void world_fenced_over(struct world_node *n, uint32_t session);
uint32_t world_fenced_count(const struct world_node *n);
/* Ends all workers, checks that no region's own registration and none of the tenant's regions is
 * left, and closes. */
void world_close_empty(struct world *w, uint32_t tenant);

#endif
