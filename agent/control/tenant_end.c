/* SPDX-License-Identifier: Apache-2.0 */
/* The end of tenants that nobody says any more. */
#include "agent.h"
#include "arenas.h"
#include "due.h"
#include "names.h"
#include "pools.h"
#include "quotas.h"
#include "tenant_end.h"
#include "windows.h"

static bool has_arenas(const struct agent *a, uint32_t tenant)
{
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        if (p->arenas_of[tenant - 1] != NULL)
            return true;
    return false;
}

static bool has_no_session(const struct agent *a, uint32_t tenant)
{
    return a->tenants.at[tenant - 1].state == AGENT_TENANT_LEAVING &&
           a->of_sessions[tenant - 1].places == 0;
}

uint64_t agent_tenants_due_ns(const struct agent *a)
{
    for (uint32_t i = 0; a->tenants.leaving > 0 && i < AGENT_TENANT_SLOTS; i++)
        if (has_no_session(a, i + 1) && (a->tenants.at[i].arenas == 0 || has_arenas(a, i + 1)))
            return DUE_NOW;
    return DUE_NEVER;
}

/* Their memory goes when the last session is over, and the place when the memory is gone. */
void agent_tenants_tick(struct agent *a)
{
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        if (!has_no_session(a, i + 1))
            continue;
        for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
            agent_arenas_forget(p, i + 1);
        agent_tenants_release(&a->tenants, i);
        if (a->tenants.at[i].state != AGENT_TENANT_FREE)
            continue;
        a->quotas_before[i] = (struct quota_counts){.control_ops = 0};
        for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
            lane_quota_forget(&p->quota[i]);
            world_lane_channels_forget(a->world, &p->stepping, i + 1);
        }
        agent_windows_forget_tenant(a, i + 1);
        agent_unread_end_tenant(&a->unread, i + 1);
    }
}
