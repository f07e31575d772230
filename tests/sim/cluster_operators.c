/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of a cluster: their beginning and end. */
#include "cluster.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "agent_process.h"
#include "base/assert.h"
#include "base/clock.h"
#include "calls.h"
#include "clients.h"
#include "cluster_state.h"
#include "device_provider.h"
#include "disk.h"
#include "faults.h"
#include "intruder.h"
#include "ledger.h"
#include "lives.h"
#include "metad_process.h"
#include "operators.h"
#include "os.h"
#include "os_calls.h"
#include "random.h"
#include "refusals.h"
#include "trace.h"

static void begin_clients(void)
{
    const struct play_cluster_settings *s = &cluster.settings;
    const struct play_clients_settings c = {.seed = s->seed,
                                            .metaservers = s->metaservers,
                                            .metaserver = cluster.name + s->nodes,
                                            .until_ns =
                                                s->duration_ns - CLUSTER_CALM_S * BASE_NS_PER_S};
    if (s->shared)
        cluster.clients = play_clients_start(&c);
}

void cluster_begin_operators(void)
{
    const struct play_cluster_settings *s = &cluster.settings;
    struct base_prng r = play_random_of(s->seed, "people", 1);
    const bool operators = base_prng_below(&r, 2) != 0 && s->faults;
    if (s->duration_ns <= (CLUSTER_FIRST_S + CLUSTER_CALM_S) * BASE_NS_PER_S)
        return;
    cluster.name = calloc(cluster.count, sizeof *cluster.name);
    BASE_ASSERT(cluster.name != NULL);
    for (uint32_t i = 0; i < cluster.count; i++)
        memcpy(cluster.name[i], cluster.node[i].host.name, PLAY_NAME);
    begin_clients();
    if (!operators)
        return;
    const struct play_operators_settings o = {.seed = s->seed,
                                              .nodes = s->nodes,
                                              .metaservers = s->shared ? 1 : s->metaservers,
                                              .node = cluster.name,
                                              .metaserver = cluster.name + s->nodes,
                                              .gid = cluster_gid,
                                              .shared = s->shared ? s->metaservers : 0,
                                              .tenants = cluster.tenants,
                                              .lanes = s->pool_lanes,
                                              .until_ns =
                                                  s->duration_ns - CLUSTER_CALM_S * BASE_NS_PER_S};
    cluster.operators = play_operators_start(&o);
    BASE_ASSERT(cluster.operators != NULL);
}

void cluster_end_operators(void)
{
    play_clients_kill(cluster.clients);
    cluster.clients = NULL;
    if (cluster.operators != NULL) {
        cluster.changes = play_operators_changes(cluster.operators);
        play_operators_kill(cluster.operators);
    }
    cluster.operators = NULL;
    free(cluster.name);
    cluster.name = NULL;
}

/* Several tenants in half of all clusters, and hostile workers in a third of them. */
void cluster_choose_people(void)
{
    struct base_prng r = play_random_of(cluster.settings.seed, "people", 0);
    const uint32_t tenants = base_prng_below(&r, 2) == 0 ? 1 : 2;
    cluster.tenants = cluster.settings.workers <= 1 ? 1 : tenants;
    cluster.intruders = base_prng_below(&r, 3) == 0 && cluster.settings.faults;
    cluster.batches = base_prng_below(&r, 2) == 0;
}
