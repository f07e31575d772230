/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of a pool that has several (docs/control.md#lanes): which one a worker gets, and how
 * much each has to do. Control thread. */
#ifndef CONTROL_POOL_LANES_H
#define CONTROL_POOL_LANES_H

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct base_text;
struct pool;

/* How many lanes the pool of this one has. */
uint32_t agent_lanes_count(const struct pool *p);
/* Whether it may be the home of sessions: with messages, which one lane sends and hears, the first
 * one alone. */
bool agent_lanes_have_homes(const struct pool *p);
/* Of that pool's, the one for one more worker of a tenant (its index + 1). */
struct pool *agent_lanes_choose(struct pool *endpoint, uint32_t tenant);
/* Now and then, while workers are there: looks at how much each lane has to do. */
void agent_lanes_tick(struct agent *a);
uint64_t agent_lanes_due_ns(const struct agent *a);

#endif
