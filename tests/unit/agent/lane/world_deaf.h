/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that do not put queue pairs to ERR: these are destroyed under their lane, as
 * agent/control/qp_end.c does. */
#ifndef UNIT_AGENT_LANE_WORLD_DEAF_H
#define UNIT_AGENT_LANE_WORLD_DEAF_H

#include "world.h"

/* Of all nodes. */
extern bool world_deaf;

/* QP_OVERDUE, QP_RETIRED: it goes to ERR, or is destroyed. */
void world_end_qp(struct world *w, struct world_node *n, struct fab_qp *qp);
/* Whether it was; then another has its place. */
bool world_is_destroyed(struct world_node *n, const struct lane_event *e);

#endif
