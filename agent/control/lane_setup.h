/* SPDX-License-Identifier: Apache-2.0 */
/* A pool's lane: made, ended, and told. Control thread. */
#ifndef CONTROL_LANE_SETUP_H
#define CONTROL_LANE_SETUP_H

#include <stdint.h>

struct base_errbuf;
struct lane_command;
struct pool;

/* Makes the lane, and has it stepped. 0; or -errno and a sentence. */
int agent_pool_start_lane(struct pool *p, struct base_errbuf *err);
/* Where the settings have it stepped, or AGENT_ANY_CPU: lane_cpu names the own pool's lanes. */
uint64_t agent_lane_cpu(const struct pool *p);
/* When its device objects are still there. */
void agent_pool_stop_lane(struct pool *p);
/* Gives the lane a command, and wakes it. */
void agent_pool_command(struct pool *p, const struct lane_command *command);

#endif
