/* SPDX-License-Identifier: Apache-2.0 */
/* The world's DC targets and initiators by what packets they take and send. */
#ifndef UNIT_AGENT_LANE_WORLD_NARROW_H
#define UNIT_AGENT_LANE_WORLD_NARROW_H

#include "world.h"

/* Of the nodes' targets, by their records; 0: 4096, which all initiators are made with. */
extern enum ibv_mtu world_mtu[WORLD_NODES];
/* An initiator that broke is brought up, with that at most (LANE_EVENT_QP_BROKEN). May be NULL. */
extern void (*world_raised)(struct fab_qp *qp, enum ibv_mtu most);

enum ibv_mtu world_mtu_of(const struct world *w, const struct world_node *n);
/* What a node's control side does for QP_BROKEN, and the command that it gives then. */
void world_bring_back(struct world_node *n, const struct lane_event *e, struct lane_command *out);

#endif
