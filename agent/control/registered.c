/* SPDX-License-Identifier: Apache-2.0 */
/* Which metaservers have which of the node's pools: each pool registers by itself, and one that is
 * not registered looks nobody up, however well the others are. And which are asked before their
 * time. */
#include "agent.h"
#include "pool.h"
#include "pools.h"
#include "register_private.h"

uint32_t agent_registrations_count(const struct pool *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        n += p->registration[i].state == REGISTRATION_DONE;
    return n;
}

/* One that is on its way for the first time is not missed: its workers wait for it. */
static bool is_missed(const struct pool *p, uint32_t metaserver)
{
    const struct registration *r = &p->registration[metaserver];
    return p->stage == POOL_RUNS && r->state != REGISTRATION_DONE && r->why[0] != '\0';
}

const struct registration *agent_registrations_find(const struct agent *a, uint32_t metaserver)
{
    const struct registration *first = &a->pools[0]->registration[metaserver];
    if (first->state != REGISTRATION_DONE)
        return first;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        if (is_missed(p, metaserver))
            return &p->registration[metaserver];
    return first;
}

uint32_t agent_registrations_done(const struct agent *a)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        n += agent_registrations_find(a, i)->state == REGISTRATION_DONE;
    return n;
}

const struct pool *agent_registrations_missed(const struct agent *a)
{
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        uint32_t missed = 0;
        for (uint32_t i = 0; i < p->config->metaservers; i++)
            missed += is_missed(p, i);
        if (missed > 0 && missed == p->config->metaservers)
            return p;
    }
    return NULL;
}

void agent_registrations_doubt(struct agent *a, uint32_t metaserver)
{
    struct registration *r = &a->pools[0]->registration[metaserver];
    if (r->state == REGISTRATION_DONE)
        world_timer_after(a->world, &r->timer, 0);
}
