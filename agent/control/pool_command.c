/* SPDX-License-Identifier: Apache-2.0 */
#include "control/lanes.h"
#include "lane_setup.h"
#include "pool.h"

void agent_pool_command(struct pool *p, const struct lane_command *command)
{
    world_lane_command(p->world, &p->stepping, command);
}
