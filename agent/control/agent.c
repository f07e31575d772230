/* SPDX-License-Identifier: Apache-2.0 */
/* What the world's loop calls of all parts. */
#include <stddef.h>

#include "address_change.h"
#include "agent.h"
#include "agent/connector.h"
#include "clock_watch.h"
#include "connection.h"
#include "device_events.h"
#include "due.h"
#include "follow.h"
#include "node.h"
#include "peer_setup.h"
#include "pool_lanes.h"
#include "pools.h"
#include "proofs.h"
#include "publications.h"
#include "query_streams.h"
#include "sessions.h"
#include "table_initiators.h"
#include "tenant_end.h"
#include "windows.h"

void agent_run_fabric(struct agent *a)
{
    const uint64_t now_ns = world_now_ns(a->world);
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        if (p->device.connector != NULL)
            connector_note_time(p->device.connector, now_ns);
    (void)fab_run(a->fab);
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_peer_setup_step(p);
    agent_pools_step_starting(a);
}

/* ---- what is looked at now and then: by which function, and when it has to be next */

static const struct pool_part {
    void (*tick)(struct pool *p);
    uint64_t (*due_ns)(const struct pool *p);
} POOL_PARTS[] = {
    {agent_sessions_tick, agent_sessions_due_ns},
    {agent_dci_repairs_tick, agent_dci_repairs_due_ns},
    {agent_messages_tick, agent_messages_due_ns},
    {agent_table_initiators_tick, agent_table_initiators_due_ns},
};

static void tick_pools(struct agent *a)
{
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        for (size_t i = 0; i < sizeof POOL_PARTS / sizeof POOL_PARTS[0]; i++)
            POOL_PARTS[i].tick(p);
}

static uint64_t pool_parts_due_ns(const struct agent *a)
{
    uint64_t due_ns = DUE_NEVER;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        for (size_t i = 0; i < sizeof POOL_PARTS / sizeof POOL_PARTS[0]; i++)
            due_ns = due_first(due_ns, POOL_PARTS[i].due_ns(p));
    return due_ns;
}

static const struct part {
    void (*tick)(struct agent *a);
    uint64_t (*due_ns)(const struct agent *a);
} PARTS[] = {
    {agent_tenants_tick, agent_tenants_due_ns},
    {agent_unread_tick, agent_unread_due_ns},
    {tick_pools, pool_parts_due_ns},
    {agent_device_tick, agent_device_due_ns},
    {agent_address_tick, agent_address_due_ns},
    {agent_clock_watch_tick, agent_clock_watch_due_ns},
    {agent_node_tick, agent_node_due_ns},
    {agent_proofs_tick, agent_proofs_due_ns},
    {agent_pools_step, agent_pools_due_ns},
    {agent_windows_rebalance, agent_windows_due_ns},
    {agent_lanes_tick, agent_lanes_due_ns},
    {agent_follow_tick, agent_follow_due_ns},
    {agent_query_streams_tick, agent_query_streams_due_ns},
    {agent_publications_tick, agent_publications_due_ns},
};

uint64_t agent_due_ns(const struct agent *a)
{
    uint64_t due_ns = DUE_NEVER;
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++)
        due_ns = due_first(due_ns, PARTS[i].due_ns(a));
    return due_ns;
}

void agent_tick(struct agent *a)
{
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++)
        PARTS[i].tick(a);
}

/* ---- when */

static void on_tick(void *user)
{
    struct agent *a = user;
    a->ticked_ns = world_now_ns(a->world);
    agent_tick(a);
}

void agent_begin_ticks(struct agent *a)
{
    a->tick = (struct world_timer){.fired = on_tick, .user = a};
}

void agent_end_ticks(struct agent *a)
{
    world_timer_clear(a->world, &a->tick);
    a->tick.fired = NULL;
}

void agent_turned(struct agent *a)
{
    if (a->tick.fired == NULL)
        return;
    const uint64_t due_ns = agent_due_ns(a);
    const uint64_t at_ns =
        due_ns == DUE_NEVER ? DUE_NEVER : due_last(due_ns, a->ticked_ns + a->world->tick_ns);
    if (at_ns == world_timer_due_ns(&a->tick))
        return;
    if (at_ns == DUE_NEVER)
        world_timer_clear(a->world, &a->tick);
    else
        world_timer_at(a->world, &a->tick, at_ns);
}
