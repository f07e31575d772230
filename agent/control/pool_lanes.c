/* SPDX-License-Identifier: Apache-2.0 */
#include "pool_lanes.h"

#include "agent.h"
#include "base/clock.h"
#include "control/lane_choice.h"
#include "due.h"
#include "pools.h"

enum { LOOK_MS = 100 };

uint32_t agent_lanes_count(const struct pool *p)
{
    const bool several = pool_is_own(p) && p->config->lanes > 1;
    return several ? (uint32_t)p->config->lanes : 1;
}

struct pool *agent_lanes_choose(struct pool *endpoint, uint32_t tenant)
{
    struct lane_load load[LANE_POOL_LANES];
    struct pool *lane[LANE_POOL_LANES];
    uint32_t count = 0;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p)) {
        const struct tenant_queue *waiting = &p->queue.by_tenant;
        load[count] = (struct lane_load){.sessions = p->count.live + waiting->waiting,
                                         .of_tenant = p->sessions_of[tenant - 1] +
                                                      waiting->of[tenant].waiting,
                                         .rate = p->lane_rate.per_s};
        lane[count++] = p;
    }
    return lane[agent_lane_choose(load, count)];
}

/* One that is late has seen more; what was of late weighs as much as all before. */
static void look_at(struct pool *p, uint64_t now_ns)
{
    struct lane_rate *r = &p->lane_rate;
    struct lane_stats s;
    lane_stats(p->lane, &s);
    const uint64_t ms = (now_ns - r->looked_ns) / BASE_NS_PER_MS;
    const uint64_t now = ms > 0 ? (s.posted - r->posted) * 1000 / ms : 0;
    r->per_s = r->looked_ns == 0 ? 0 : (r->per_s + now) / 2;
    r->posted = s.posted;
    r->looked_ns = now_ns;
}

static uint64_t look_due_ns(const struct agent *a)
{
    return a->pools[0]->lane_rate.looked_ns + LOOK_MS * BASE_NS_PER_MS;
}

void agent_lanes_tick(struct agent *a)
{
    const uint64_t now_ns = world_now_ns(a->world);
    if (a->config.lanes <= 1 || now_ns < look_due_ns(a))
        return;
    for (struct pool *p = a->pools[0]; p != NULL; p = agent_pools_next_lane(a->pools[0], p))
        look_at(p, now_ns);
}

/* Without workers nobody asks. */
uint64_t agent_lanes_due_ns(const struct agent *a)
{
    if (a->config.lanes <= 1 || a->stopping || agent_pools_are_idle(a))
        return DUE_NEVER;
    return look_due_ns(a);
}
