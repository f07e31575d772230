/* SPDX-License-Identifier: Apache-2.0 */
/* What operators say of this node: while it is cordoned it takes no new workers; while it drains
 * those that it has go, by themselves or when their time is over. */
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "due.h"
#include "node.h"
#include "pools.h"
#include "prefer.h"
#include "sessions.h"

/* That metaservers may be asked in another order. */
static void tell_lanes(struct agent *a)
{
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_prefer_tell_lane(p);
}

void agent_node_apply(struct agent *a, const struct agent_node_config *desired)
{
    struct node_state *n = &a->node;
    const struct agent_node_config before = n->desired;
    const bool ends = desired->draining && desired->grace_ms != RESOURCE_UNSAID;
    char grace[32] = "";
    n->desired = *desired;
    if (!desired->draining)
        n->end_ns = UINT64_MAX;
    else if (!before.draining || before.grace_ms != desired->grace_ms)
        n->end_ns = ends ? world_now_ns(a->world) + desired->grace_ms * BASE_NS_PER_MS : UINT64_MAX;
    if (ends)
        snprintf(grace, sizeof grace, " grace_ms=%llu", (unsigned long long)desired->grace_ms);
    if (before.cordoned != desired->cordoned || before.draining != desired->draining)
        world_log(a->world, BASE_LOG_INFO,
                  desired->draining   ? "draining: no new workers, and those that are here go"
                  : desired->cordoned ? "cordoned: no new workers"
                                      : "taking workers again",
                  "node=%s reason=\"%s\"%s workers=%u", a->config.node, desired->reason, grace,
                  agent_pools_workers_left(a));
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_sessions_drain(p, agent_pools_drains(p));
    if (strcmp(before.zone, desired->zone) != 0)
        tell_lanes(a);
}

uint64_t agent_node_due_ns(const struct agent *a)
{
    return due_if(a->node.desired.draining, a->node.end_ns);
}

void agent_node_tick(struct agent *a)
{
    struct node_state *n = &a->node;
    if (!n->desired.draining || world_now_ns(a->world) < n->end_ns)
        return;
    n->end_ns = UINT64_MAX;
    world_log(a->world, BASE_LOG_WARN, "draining: the workers that are left have had their time",
              "node=%s workers=%u", a->config.node, agent_pools_workers_left(a));
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_sessions_end_all(p, SCHEMA_REASON_NODE_DRAINED);
}
