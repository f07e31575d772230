/* SPDX-License-Identifier: Apache-2.0 */
#include "pool_end.h"

#include <stdlib.h>

#include "agent.h"
#include "agent/connector.h"
#include "arenas.h"
#include "control/world_log.h"
#include "lane_setup.h"
#include "peer_setup.h"
#include "pools.h"
#include "qp_end.h"
#include "quotas.h"
#include "register.h"
#include "sessions.h"
#include "windows.h"

/* ---- the end of one, in steps: each when nothing that the ones before have begun is under way */

static void end_talks(struct pool *p)
{
    p->stopping = true;
    agent_registrations_stop(p);
    agent_peer_setup_stop(p);
}

static void end_lane(struct pool *p)
{
    const bool served = p->lane != NULL;
    agent_dci_repairs_stop(p);
    agent_pool_stop_lane(p);
    agent_qp_ends_stop(p);
    if (served && p->device.connector != NULL)
        connector_leave(p->device.connector);
    agent_sessions_stop(p);
}

/* Some may have been registering when their sessions ended. */
static void end_arenas(struct pool *p)
{
    agent_arenas_stop(p);
}

static void end_objects(struct pool *p)
{
    agent_sessions_free(p);
    if (p->start.stage != START_RETIRING) /* else that is done */
        (void)world_device(p->world, WORLD_DEVICE_RETIRE, p, NULL);
}

static void end_memory(struct pool *p)
{
    (void)world_device(p->world, WORLD_DEVICE_CLOSE, p, NULL);
    agent_pool_start_fini(p);
    struct world_task release = {.work = WORLD_FREE_PEERS, .peers = &p->peers};
    world_run_here(p->world, &release);
}

static void (*const END[])(struct pool *p) = {end_talks, end_lane, end_arenas, end_objects,
                                              end_memory};
enum { ENDS = sizeof END / sizeof END[0] };

/* As many as can be done without waiting. False: some are left. */
static bool end_on(struct pool *p)
{
    while (p->ended < ENDS && p->fab_ops == 0)
        END[p->ended++](p);
    return p->ended == ENDS;
}

/* All but its memory. Blocks, for the agent's end. */
static void give_back(struct pool *p)
{
    while (!end_on(p))
        world_settle(p->world, p);
}

/* What is counted for ever is not less for its end. */
static void keep_counts(struct pool *p)
{
    agent_session_counts_add(&p->agent->gone, &p->count);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        agent_quotas_add(&p->agent->quotas_before[i], &p->quota[i]);
}

static bool has_work(const struct pool *endpoint)
{
    bool any = false;
    for (const struct pool *p = endpoint; p != NULL; p = agent_pools_next_part(endpoint, p))
        any |= p->works > 0 || p->calls > 0;
    return any;
}

/* The others before the first, whose protection domains they have. */
static bool end_lanes_on(struct pool *endpoint)
{
    struct agent *a = endpoint->agent;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_part(endpoint, p))
        if (p->ended == 0 && p->fab_ops == 0)
            END[p->ended++](p);
    for (uint32_t i = POOLS; i-- > 0;)
        if (a->pools[i] != NULL && pool_endpoint(a->pools[i]) == endpoint && !end_on(a->pools[i]))
            return false;
    return true;
}

static void free_lanes(struct pool *endpoint)
{
    struct agent *a = endpoint->agent;
    for (uint32_t i = POOLS; i-- > 0;) {
        struct pool *p = a->pools[i];
        if (p == NULL || pool_endpoint(p) != endpoint)
            continue;
        keep_counts(p);
        a->pools[i] = NULL;
        free(p);
    }
}

/* A lane carries out sessions of others (session_moves.h), and may wait long for what it has out of
 * them: so no lane of a pool is stepped any more before memory of any session of it goes. */
static void stop_stepping(struct pool *p)
{
    p->stopping = true;
    world_lane_stop(p->world, &p->stepping);
}

void agent_pool_close(struct pool *endpoint)
{
    struct agent *a = endpoint->agent;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_part(endpoint, p)) {
        p->stage = POOL_ENDING;
        p->stopping = true;
    }
    if (has_work(endpoint))
        return;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_part(endpoint, p))
        stop_stepping(p);
    if (!end_lanes_on(endpoint))
        return;
    if (endpoint->left_ns != 0) /* else it never was one */
        world_log(a->world, BASE_LOG_INFO, "pool closed", "pool=%s", endpoint->name);
    free_lanes(endpoint);
    agent_windows_apply(a);
}

void agent_pools_end_sessions(struct agent *a, uint32_t reason)
{
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        for (uint64_t i = 0; p->sessions != NULL && i < a->config.max_sessions; i++)
            agent_session_release(p, (uint32_t)i, reason);
}

void agent_pools_stop(struct agent *a)
{
    for (uint32_t i = 0; i < POOLS; i++)
        if (a->pools[i] != NULL)
            stop_stepping(a->pools[i]);
    for (uint32_t i = POOLS; i-- > 0;) {
        struct pool *p = a->pools[i];
        if (p == NULL)
            continue;
        give_back(p);
        free(p);
        a->pools[i] = NULL;
    }
}
