/* SPDX-License-Identifier: Apache-2.0 */
/* Places of sessions, of which there are max_sessions. One that has ended keeps its own until what
 * peers believe of its regions is over and it is taken back, and its tenant's quota of sessions has
 * another one come meanwhile: without a bound one tenant's workers, which come and go, would have
 * all. */
#include <errno.h>

#include "agent.h"
#include "agent/reserve.h"
#include "pools.h"
#include "quotas.h"
#include "sessions.h"

/* Of each tenant, by index: those of workers that wait for one too. Of these so many come back
 * without its workers' doing. */
static void count_places(const struct agent *a, uint32_t has[AGENT_TENANT_SLOTS],
                         uint32_t coming[AGENT_TENANT_SLOTS])
{
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        has[i] = (uint32_t)a->of_sessions[i].places;
        coming[i] = has[i] - (uint32_t)a->of_sessions[i].sessions;
    }
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
            has[i] += p->unmaking[i] + p->queue.by_tenant.of[i + 1].waiting;
            coming[i] += p->unmaking[i];
        }
}

/* No more than it may have is kept for a tenant. */
static void reserve_places(const struct agent *a, uint32_t reserved[AGENT_TENANT_SLOTS])
{
    agent_quotas_reserve(a, NULL, a->config.max_sessions, reserved);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (reserved[i] > a->tenants.at[i].config.sessions)
            reserved[i] = (uint32_t)a->tenants.at[i].config.sessions;
}

int agent_session_check_room(const struct agent *a, uint32_t tenant, bool *soon,
                             struct base_errbuf *why)
{
    uint32_t has[AGENT_TENANT_SLOTS], coming[AGENT_TENANT_SLOTS], reserved[AGENT_TENANT_SLOTS];
    const uint64_t capacity = a->config.max_sessions;
    count_places(a, has, coming);
    reserve_places(a, reserved);
    if (lane_reserve_allows(capacity, has, reserved, AGENT_TENANT_SLOTS, tenant - 1))
        return 0;
    const uint32_t had = has[tenant - 1];
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        has[i] -= coming[i];
    *soon = lane_reserve_allows(capacity, has, reserved, AGENT_TENANT_SLOTS, tenant - 1);
    if (*soon)
        return base_err(why, -EAGAIN,
                        "the agent's other sessions are in use or another tenant's part, and some "
                        "that have ended are being taken back: try again in a moment");
    return base_err(why, -EAGAIN,
                    "the agent has no session left for tenant %s, which has %u, since of the %llu "
                    "that all tenants may have others have theirs or a part (raise max_sessions)",
                    agent_quota_tenant(a, tenant)->name, had, (unsigned long long)capacity);
}
