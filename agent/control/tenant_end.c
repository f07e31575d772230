/* SPDX-License-Identifier: Apache-2.0 */
/* The end of tenants that nobody says any more. */
#include "agent.h"
#include "arenas.h"
#include "names.h"
#include "pools.h"
#include "quotas.h"
#include "tenant_end.h"
#include "windows.h"

static bool has_sessions(const struct pool *p, uint32_t tenant)
{
    for (uint64_t i = 0; i < p->config->max_sessions; i++)
        if (session_has_tenant(&p->sessions[i]) && p->sessions[i].tenant == tenant)
            return true;
    return false;
}

static bool is_left_in(const struct agent *a, uint32_t tenant)
{
    for (const struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
        if (has_sessions(p, tenant))
            return true;
    return false;
}

/* Their memory goes when the last session is over, and the place when the memory is gone. */
void tenants_rest(struct agent *a)
{
    for (uint32_t i = 0; i < AGENTD_TENANT_SLOTS; i++) {
        if (a->tenants.at[i].state != AGENTD_TENANT_LEAVING || is_left_in(a, i + 1))
            continue;
        for (struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
            arenas_forget(p, i + 1);
        agentd_tenant_rest(&a->tenants, i);
        if (a->tenants.at[i].state != AGENTD_TENANT_FREE)
            continue;
        a->quotas_before[i] = (struct quota_counts){.control_ops = 0};
        for (struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
            lane_quota_forget(&p->quota[i]);
        windows_forget_tenant(a, i + 1);
        unread_end_tenant(&a->unread, i + 1);
    }
}
