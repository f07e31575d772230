/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors for arenas beside each session's first one, which all sessions share: without a bound
 * one tenant's workers could have all that the agent may open, and nobody would be accepted. */
#include <errno.h>

#include "agent.h"
#include "agent/reserve.h"
#include "arenas.h"
#include "bounds.h"
#include "pools.h"
#include "quotas.h"

/* Of each tenant, by index: those that are being freed or kept for its next worker too. */
static void count_more(const struct agent *a, uint32_t more[AGENT_TENANT_SLOTS])
{
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        more[i] = a->tenants.at[i].arenas - (uint32_t)a->of_sessions[i].firsts;
}

/* Of that tenant: no session has them, and they are not kept for its next one. */
static uint32_t count_left(const struct agent *a, uint32_t tenant)
{
    uint32_t left = a->tenants.at[tenant - 1].arenas - (uint32_t)a->of_sessions[tenant - 1].arenas;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        left -= agent_arenas_kept(p, tenant);
    return left;
}

int agent_arena_check_room(const struct agent *a, uint32_t tenant, struct base_errbuf *why)
{
    const uint64_t capacity = MORE_ARENAS_OF(a->config.max_sessions);
    uint32_t more[AGENT_TENANT_SLOTS], reserved[AGENT_TENANT_SLOTS];
    count_more(a, more);
    agent_quotas_reserve(a, NULL, capacity, reserved);
    if (lane_reserve_allows(capacity, more, reserved, AGENT_TENANT_SLOTS, tenant - 1))
        return 0;
    const uint32_t left = count_left(a, tenant), had = more[tenant - 1];
    more[tenant - 1] = had > left ? had - left : 0;
    if (left > 0 && lane_reserve_allows(capacity, more, reserved, AGENT_TENANT_SLOTS, tenant - 1))
        return base_err(why, -EAGAIN,
                        "%u arenas that sessions of tenant %s have left are being given back, and "
                        "count until then: try again in a moment",
                        left, agent_quota_tenant(a, tenant)->name);
    return base_err(why, -EDQUOT,
                    "tenant %s has %u arenas beside its sessions' first ones, and of the %llu that "
                    "all tenants may have others have theirs or a part: ask for larger ones (or "
                    "raise max_sessions)",
                    agent_quota_tenant(a, tenant)->name, had, (unsigned long long)capacity);
}
