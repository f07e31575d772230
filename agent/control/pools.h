/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of the agent: which there are (pool.c, pool_list.c, pool_choice.c). Control thread. */
#ifndef CONTROL_POOLS_H
#define CONTROL_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/config.h"
#include "control/desired.h"
#include "sessions.h"

struct agent;
struct agent_desired;
struct agent_pool_config;
struct base_errbuf;
struct pool;

/* By metaservers, of this node. */
struct desired_pool {
    struct agent_pool_config is;
    char why[160];     /* it could not be made */
    uint64_t again_ns; /* when that is tried again */
};

/* The agent's own, of which that is said, before anything else runs the loop. */
int agent_pools_start(struct agent *a, const struct agent_pool_config *desired,
                      struct base_errbuf *err);
/* Whether some of what the own one keeps ready is still being made; then: whether it can begin. */
bool agent_pools_are_starting(const struct agent *a);
int agent_pools_check(struct agent *a, struct base_errbuf *err);
/* What metaservers say of this node's pools, of which the own one is only adjusted. */
void agent_pools_apply(struct agent *a, const struct agent_desired *s);
/* Now and then, and after that: begins and ends those that are or are not said any more. */
void agent_pools_step(struct agent *a);
uint64_t agent_pools_due_ns(const struct agent *a);
/* Whenever the device has answered: those that are starting go on. */
void agent_pools_step_starting(struct agent *a);
/* The ones that have a lane, one after another, with every further lane of each: NULL is before the
 * first and after the last. */
struct pool *agent_pools_next(const struct agent *a, const struct pool *p);
/* Likewise: of those each pool once, by its first lane; and all lanes of one such. */
struct pool *agent_pools_next_endpoint(const struct agent *a, const struct pool *p);
struct pool *agent_pools_next_lane(const struct pool *endpoint, const struct pool *p);
/* Likewise, also of those that have no lane yet or any more. */
struct pool *agent_pools_next_part(const struct pool *endpoint, const struct pool *p);
/* How many more lanes of pools there may be, of any of them. */
uint32_t agent_pools_room(const struct agent *a);
/* The first lane, by name, in whatever stage; NULL: there is none. */
struct pool *agent_pools_find(const struct agent *a, const char *name);
/* Whether one of that name, which does not run, is said and on its way: it did not fail, and no
 * device has kept it waiting for long. */
bool agent_pools_pending(const struct agent *a, const char *name);
/* Whether any is. */
bool agent_pools_any_pending(const struct agent *a);
/* Where a tenant's (its index + 1) workers belong. -EAGAIN: nowhere yet, since it is being made;
 * -EBUSY: nowhere. */
int agent_pools_of_tenant(const struct agent *a, uint32_t tenant, struct pool **out,
                          struct base_errbuf *why);
/* Whether no worker has anything of any of them, and none comes or goes. */
bool agent_pools_are_idle(const struct agent *a);
/* "running": a literal. */
const char *agent_pools_state(struct pool *p);
/* Whether its workers are to go, since the node drains or the pool is taken away. */
bool agent_pools_drains(const struct pool *p);
/* Workers of all pools that anything is left of; sessions, in whatever stage, and what they count.
 */
uint32_t agent_pools_workers_left(const struct agent *a);
uint32_t agent_pools_sessions(const struct agent *a);
struct session_counts agent_pools_count(const struct agent *a);
/* Likewise, of all lanes of one pool. */
struct session_counts agent_pools_count_lanes(const struct pool *endpoint);
/* What of said pools is not so: appended to why. */
void agent_pools_why(const struct agent *a, char *why, size_t size);
/* While the loop runs; then what they have is given back. */
void agent_pools_end_sessions(struct agent *a, uint32_t reason);
void agent_pools_stop(struct agent *a);

#endif
