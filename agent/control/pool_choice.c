/* SPDX-License-Identifier: Apache-2.0 */
/* Which pool a tenant's workers are in, and whether it takes them yet. */
#include <errno.h>

#include "agent.h"
#include "pool.h"
#include "pools.h"
#include "register.h"

static struct pool *own_pool(const struct agent *a)
{
    return a->pools[0];
}

/* Until its lane can ask a metaserver its workers would reach nobody: unless there is none to wait
 * for. */
static bool is_ready(struct pool *p)
{
    if (p->ready_ns != 0 &&
        (agent_registrations_count(p) > 0 || agent_registrations_count(own_pool(p->agent)) == 0 ||
         world_now_ns(p->world) >= p->ready_ns))
        p->ready_ns = 0;
    return p->ready_ns == 0;
}

const char *agent_pools_state(struct pool *p)
{
    static const char *const states[] = {"running", "leaving", "closing", "closing", "starting"};
    return p->stage == POOL_RUNS && !is_ready(p) ? "starting" : states[p->stage];
}

int agent_pools_of_tenant(const struct agent *a, uint32_t tenant, struct pool **out,
                          struct base_errbuf *why)
{
    const struct agent_tenant_config *t = &a->tenants.at[tenant - 1].config;
    struct pool *p = t->pool[0] == '\0' ? own_pool(a) : agent_pools_find(a, t->pool);
    const bool runs = p != NULL && p->stage == POOL_RUNS;
    if (runs && is_ready(p)) {
        *out = p;
        return 0;
    }
    if (runs || agent_pools_pending(a, t->pool))
        return base_err(why, -EAGAIN,
                        "tenant %s belongs to pool %s, which node %.60s is just making: try again "
                        "in a moment, or say wait_ms",
                        t->name, t->pool, a->config.node);
    if (p == NULL || p->stage == POOL_STARTING)
        return base_err(why, -EBUSY,
                        "tenant %s belongs to pool %s, which node %.60s does not have (rdmactl "
                        "agent status says why): give the node a label that the pool selects, or "
                        "go to another host",
                        t->name, t->pool, a->config.node);
    return base_err(why, -EBUSY,
                    "tenant %s belongs to pool %s, which node %.60s is giving up: go to another "
                    "host",
                    t->name, t->pool, a->config.node);
}
