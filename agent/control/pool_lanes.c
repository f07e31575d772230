/* SPDX-License-Identifier: Apache-2.0 */
#include "pool_lanes.h"

#include <assert.h>

#include "agent.h"
#include "base/clock.h"
#include "control/lane_choice.h"
#include "due.h"
#include "message_receives.h"
#include "pools.h"
#include "register.h"
#include "session_moves.h"

enum { LOOK_MS = 100 };

static_assert(LANE_POOL_LANES == 8, "schema/resources/pool.h says that number");

uint32_t agent_lanes_count(const struct pool *p)
{
    const uint64_t lanes = pool_is_own(p) ? p->config->lanes : pool_endpoint(p)->lanes;
    return lanes > 1 ? (uint32_t)lanes : 1;
}

bool agent_lanes_have_homes(const struct pool *p)
{
    return p->first == NULL || agent_messages_receives(p->first) == 0;
}

/* With RC, whether some metaserver has the lane, so that it can look up whom its workers talk to:
 * an older one knows first lanes alone, and one whose device has few queue pairs has none for
 * others. Where the first one has none either, none is better. */
static bool can_look_up(const struct pool *p)
{
    return p->first == NULL || pool_registered(p) != p || agent_registrations_count(p) > 0 ||
           agent_registrations_count(p->first) == 0;
}

struct pool *agent_lanes_choose(struct pool *endpoint, uint32_t tenant)
{
    if (agent_messages_receives(endpoint) != 0)
        return endpoint;
    struct lane_load load[LANE_POOL_LANES];
    struct pool *lane[LANE_POOL_LANES];
    uint32_t count = 0;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p)) {
        if (!can_look_up(p))
            continue;
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

/* DUE_NEVER: it has no lanes to be looked at. */
static uint64_t look_due_ns(const struct pool *endpoint)
{
    return due_if(agent_lanes_count(endpoint) > 1 && pool_has_begun(endpoint),
                  endpoint->lane_rate.looked_ns + LOOK_MS * BASE_NS_PER_MS);
}

/* ---- sessions that go to another lane */

/* What it has posted since the last look. */
static uint64_t rate_of(struct agent_session *s, uint64_t since_ns)
{
    uint64_t operations, bytes;
    const uint64_t before = s->operations, ms = since_ns / BASE_NS_PER_MS;
    lane_posted_of(s->rings.memory, &operations, &bytes);
    s->operations = operations;
    return ms > 0 ? (operations - before) * 1000 / ms : 0;
}

/* A lodger goes nowhere but home. */
static bool may_go(const struct agent_session *s, const struct pool *to, uint64_t now_ns)
{
    return (s->move == NULL || s->pool == to) && now_ns > s->rest.until_ns;
}

/* Of all sessions what they have posted is known from then on; the one that evens both lanes best
 * goes. */
static void even_lanes(struct pool *endpoint, struct lane_balance *b, struct pool *const lane[],
                       bool uneven, uint64_t now_ns)
{
    struct agent_session *best = NULL;
    uint64_t best_rate = 0;
    const uint64_t since_ns = now_ns - b->looked_ns;
    b->looked_ns = now_ns;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        for (uint64_t i = 0; i < p->config->max_sessions; i++) {
            struct agent_session *s = &p->sessions[i];
            if (s->stage != STAGE_LIVE)
                continue;
            const uint64_t rate = rate_of(s, since_ns);
            if (!uneven || agent_session_is_at(s) != lane[b->from] ||
                !may_go(s, lane[b->to], now_ns) || !agent_lanes_would_be_even(b, rate, best_rate))
                continue;
            best = s;
            best_rate = rate;
        }
    if (best == NULL)
        return;
    b->looks = 0;
    if (best->move == NULL)
        agent_session_move(best, lane[b->to]);
    else
        agent_session_call_home(best, false);
}

static void balance_lanes(struct pool *endpoint, uint64_t now_ns)
{
    struct lane_load load[LANE_POOL_LANES];
    struct pool *lane[LANE_POOL_LANES];
    uint32_t count = 0;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p)) {
        if (!can_look_up(p))
            continue;
        load[count] = (struct lane_load){.rate = p->lane_rate.per_s};
        lane[count++] = p;
    }
    const bool uneven = agent_lanes_are_uneven(&endpoint->balance, load, count);
    if (endpoint->balance.looks > 0 && !endpoint->agent->stopping)
        even_lanes(endpoint, &endpoint->balance, lane, uneven, now_ns);
}

/* Those that are there, since it could look up when they came. */
static void send_home(struct pool *p)
{
    for (uint32_t i = 0; i < LANE_LODGERS; i++)
        if (p->moves.lodger[i] != NULL)
            agent_session_call_home(p->moves.lodger[i], false);
}

static void look_at_lanes(struct pool *endpoint, uint64_t now_ns)
{
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        look_at(p, now_ns);
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        if (can_look_up(p))
            agent_session_moves_look(p, now_ns);
        else
            send_home(p);
    balance_lanes(endpoint, now_ns);
}

void agent_lanes_tick(struct agent *a)
{
    const uint64_t now_ns = world_now_ns(a->world);
    for (struct pool *p = agent_pools_next_endpoint(a, NULL); p != NULL;
         p = agent_pools_next_endpoint(a, p))
        if (now_ns >= look_due_ns(p))
            look_at_lanes(p, now_ns);
}

/* Without workers nobody asks. */
uint64_t agent_lanes_due_ns(const struct agent *a)
{
    uint64_t due_ns = DUE_NEVER;
    if (a->stopping || agent_pools_are_idle(a))
        return DUE_NEVER;
    for (const struct pool *p = agent_pools_next_endpoint(a, NULL); p != NULL;
         p = agent_pools_next_endpoint(a, p))
        due_ns = due_first(due_ns, look_due_ns(p));
    return due_ns;
}
