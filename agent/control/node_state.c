/* SPDX-License-Identifier: Apache-2.0 */
/* What operators say of this node, as it is asked for and shown. */
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "node.h"
#include "pools.h"

bool agent_node_refuses(const struct agent *a, char *text, size_t size)
{
    const struct agent_node_config *desired = &a->node.desired;
    if (!desired->cordoned)
        return false;
    snprintf(text, size,
             "node %s is %s and takes no new workers (%s): try another host, or ask its operators",
             a->config.node, desired->draining ? "draining" : "cordoned",
             desired->reason[0] != '\0' ? desired->reason : "no reason is given");
    return true;
}

void agent_node_status(const struct agent *a, struct base_text *t)
{
    const struct node_state *n = &a->node;
    const uint64_t now = world_now_ns(a->world);
    base_json_object(t, "node_state");
    base_json_bool(t, "cordoned", n->desired.cordoned);
    base_json_bool(t, "draining", n->desired.draining);
    base_json_u64(t, "workers_left", agent_pools_workers_left(a));
    if (!n->desired.draining || n->end_ns == UINT64_MAX)
        base_json_null(t, "ends_in_ms");
    else
        base_json_u64(t, "ends_in_ms", n->end_ns > now ? (n->end_ns - now) / BASE_NS_PER_MS : 0);
    base_json_string(t, "reason", n->desired.reason);
    base_json_object_end(t);
}

void agent_node_metrics(const struct agent *a, struct base_text *t)
{
    base_metric_one(t, "kedge_agent_cordoned", BASE_METRIC_GAUGE,
                    "Whether this node takes no new workers.", a->node.desired.cordoned);
    base_metric_one(t, "kedge_agent_draining", BASE_METRIC_GAUGE,
                    "Whether those that it has are to go.", a->node.desired.draining);
}
