/* SPDX-License-Identifier: Apache-2.0 */
/* A node of the world whose DCIs have streams, and take their time to go to ERR. */
#ifndef UNIT_AGENT_LANE_WORLD_STREAMS_H
#define UNIT_AGENT_LANE_WORLD_STREAMS_H

#include "world.h"

/* Of a world with DC whose lanes were told so (world_streams); one node at a time. */
void world_streams_begin(struct world_node *n, uint64_t seed);
/* From now on: a DCI of which one stream has failed goes to ERR only when it is told to, and until
 * then nothing of it goes on. */
void world_streams_stand_still(void);
/* Nothing is out on it. */
void world_streams_end(struct world_node *n);

#endif
