/* SPDX-License-Identifier: Apache-2.0 */
/* What the world's loop calls of all parts. */
#include "address_change.h"
#include "agent.h"
#include "agent/connector.h"
#include "clock_watch.h"
#include "connection.h"
#include "device_events.h"
#include "node.h"
#include "peer_setup.h"
#include "pools.h"
#include "proofs.h"
#include "sessions.h"
#include "table_initiators.h"
#include "tenant_end.h"
#include "windows.h"

void agent_run_fabric(struct agent *a)
{
    const uint64_t now_ns = world_now_ns(a->world);
    for (struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
        if (p->device.connector != NULL)
            connector_note_time(p->device.connector, now_ns);
    (void)fab_run(a->fab);
    for (struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
        peer_setup_step(p);
    pools_step_starting(a);
}

void agent_tick(struct agent *a)
{
    tenants_rest(a);
    unread_tick(a);
    for (struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p)) {
        sessions_tick(p);
        dci_repairs_tick(p);
        table_initiators_tick(p);
    }
    device_tick(a);
    address_tick(a);
    clock_watch_tick(a);
    node_tick(a);
    proofs_tick(a);
    pools_step(a);
    windows_rebalance(a);
}
