/* SPDX-License-Identifier: Apache-2.0 */
/* Completions that a node's device holds back. One node at a time. */
#ifndef UNIT_AGENT_LANE_WORLD_HELD_H
#define UNIT_AGENT_LANE_WORLD_HELD_H

#include "world.h"

/* Those of that completion queue, or of all (NULL), from now on until they are given. */
void world_hold(struct world_node *n, const struct fab_cq *cq);
/* So many of them; the others are held. */
void world_give_some(int count);
/* Those that ended well; with an error they are held. Of one completion queue. */
void world_give_well(void);
void world_give(void);
/* The device is what it was. */
void world_held_end(void);

#endif
