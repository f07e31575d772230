/* SPDX-License-Identifier: Apache-2.0 */
/* What the network of a cluster tells. */
#include <stdio.h>
#include <string.h>

#include "agent_process.h"
#include "base/clock.h"
#include "cluster_state.h"
#include "ledger.h"
#include "liar.h"
#include "metad_process.h"
#include "operators.h"
#include "refusals.h"
#include "schema/table.h"
#include "trace.h"
#include "cluster.h"

/* What a suspended host had to send comes so long after that, and what its device had accepted is
 * carried out. */
enum { LATE_S = 10, ACCEPTED_S = 1 };

uint32_t play_cluster_lanes(void)
{
    const struct play_cluster_settings *s = &cluster.settings;
    return s->lanes == 0 ? 1 : s->lanes;
}

void cluster_gid(uint32_t number, uint8_t gid[16])
{
    memset(gid, 0, 16);
    gid[0] = 0xfd;
    gid[14] = (uint8_t)((number + 1) >> 8);
    gid[15] = (uint8_t)(number + 1);
}

static void on_ready(void *user, uint32_t node, int fd)
{
    (void)user;
    struct node *n = cluster_node(node);
    if (n->agent != NULL)
        play_agent_device_ready(n->agent, fd);
    if (n->metad != NULL)
        play_metad_device_ready(n->metad, fd);
}

static uint64_t on_host_ns(void *user, uint32_t node, uint64_t now_ns)
{
    (void)user;
    return play_host_ns(&cluster_node(node)->host, now_ns);
}

static void on_accessed(void *user, const struct sim_access *access)
{
    (void)user;
    play_ledger_accessed(access);
    if (access->remote && cluster_doubts_clock(cluster_node(access->initiator)) &&
        play_ledger_is_lease_only(access->at, access->bytes))
        play_violation(cluster_node(access->initiator)->host.name,
                       "its agent doubts its clock, and uses memory of node %u that is lent by its "
                       "lease alone",
                       access->node);
}

static void on_registered(void *user, const struct sim_region *region)
{
    (void)user;
    play_ledger_registered(region);
}

/* Who ends, or is told by operators to use force, waits for nobody. */
static void on_deregistered(void *user, const struct sim_region *region)
{
    (void)user;
    const struct play_agent *a = cluster_node(region->node)->agent;
    const bool ends = a == NULL || a->agent == NULL || a->agent->stopping;
    play_refusals_deregistered(region,
                               ends || (cluster.operators != NULL &&
                                        play_operators_may_force(cluster.operators, region->node)));
}

static bool was_suspended(uint32_t node, uint64_t seconds)
{
    const uint64_t until_ns = cluster_node(node)->suspended_ns;
    return until_ns != 0 && play_now_ns() < until_ns + seconds * BASE_NS_PER_S;
}

static void on_refused(void *user, const struct sim_access *access, enum sim_refusal why)
{
    (void)user;
    if (play_liar_is(access->initiator) || play_liar_is(access->node))
        return; /* what it may have said and asked for */
    play_refusals_refused(access, why,
                          was_suspended(access->initiator, LATE_S) ||
                              was_suspended(access->node, ACCEPTED_S));
}

static void on_crowded(void *user, uint32_t node, uint32_t places, uint32_t owed)
{
    (void)user;
    play_violation(cluster_node(node)->host.name,
                   "%u completions may come to a completion queue that has room for %u", owed,
                   places);
}

static void on_broke(void *user, uint32_t node)
{
    (void)user, (void)node;
    cluster.broke_ns = play_now_ns();
}

/* Somebody READs a table: what is in it may change just now. */
static void on_stalled(void *user, uint32_t node, uint32_t bytes)
{
    const struct node *n = cluster_node(node);
    (void)user;
    for (uint32_t i = 0; i < cluster.settings.workers && bytes == SCHEMA_TABLE_SPAN_BYTES; i++)
        if (n->worker[i] != NULL)
            play_worker_call(n->worker[i]);
}

static void on_told(void *user, uint32_t node, const char *line)
{
    char who[PLAY_NAME + 8];
    (void)user;
    (void)snprintf(who, sizeof who, "%s/device", cluster_node(node)->host.name);
    play_trace(who, "%s", line);
}

struct sim_hooks cluster_hooks(void)
{
    return (struct sim_hooks){.ready = on_ready,
                              .host_ns = on_host_ns,
                              .accessed = on_accessed,
                              .refused = on_refused,
                              .registered = on_registered,
                              .deregistered = on_deregistered,
                              .crowded = on_crowded,
                              .stalled = on_stalled,
                              .broke = on_broke,
                              .sends = play_liar_sends,
                              .told = on_told};
}
