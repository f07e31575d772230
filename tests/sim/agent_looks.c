/* SPDX-License-Identifier: Apache-2.0 */
#include "agent_looks.h"

#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "arenas.h"
#include "base/clock.h"
#include "control/lane_choice.h"
#include "events.h"
#include "lane_state.h"
#include "ledger.h"
#include "limit_watch.h"
#include "pool_lanes.h"
#include "pools.h"
#include "quotas.h"
#include "windows.h"

enum {
    SECONDS = 3,     /* by then lanes have been told what has changed, and have heard it */
    LEFT_MOST_S = 60 /* memory that sessions have left counts for no longer than that */
};

struct tenant_has {
    struct play_limit sessions, memory;
    uint64_t sessions_there, bytes_there;
    uint64_t left_ns; /* since when more is counted than its sessions have; 0: it is not */
};

struct play_agent_looks {
    uint32_t high; /* places of tenants that may be taken */
    struct tenant_has tenant[AGENT_TENANT_SLOTS];
    /* all lanes together, and the window that they share */
    struct agent_limits device;
    uint32_t pools, settling;
    struct play_limit bytes, ops;
    uint32_t untold; /* looks on end at which a lane had other windows */
};

struct play_agent_looks *play_agent_looks_new(void)
{
    return calloc(1, sizeof(struct play_agent_looks));
}

void play_agent_looks_free(struct play_agent_looks *looks)
{
    free(looks);
}

/* ---- what tenants have */

/* One that was ended is there until its worker closes it. */
static void count_session(struct tenant_has *t, const struct agent_session *s)
{
    t->sessions_there += s->stage == STAGE_LIVE || s->connection != NULL;
    for (uint32_t i = 0; i < s->arenas; i++)
        t->bytes_there += s->arena[i]->bytes;
    t->bytes_there += s->arena_asked != NULL ? s->arena_asked->bytes : 0;
}

static void count_sessions(struct play_agent_looks *k, const struct agent *a)
{
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        for (uint64_t i = 0; p->sessions != NULL && i < p->config->max_sessions; i++)
            if (agent_session_has_tenant(&p->sessions[i]))
                count_session(&k->tenant[p->sessions[i].tenant - 1], &p->sessions[i]);
}

static void look_at_memory(struct tenant_has *t, const struct agent_tenant *is, const char *who)
{
    if (!play_limit_holds(&t->memory, is->config.memory, is->arena_bytes))
        play_violation(who, "tenant %s has %llu bytes of arenas, and a quota of %llu",
                       is->config.name, (unsigned long long)is->arena_bytes,
                       (unsigned long long)is->config.memory);
    if (is->arena_bytes < t->bytes_there)
        play_violation(who, "tenant %s has %llu bytes of arenas, and %llu are counted",
                       is->config.name, (unsigned long long)t->bytes_there,
                       (unsigned long long)is->arena_bytes);
    if (is->arena_bytes == t->bytes_there)
        t->left_ns = 0;
    else if (t->left_ns == 0)
        t->left_ns = play_now_ns();
    else if (play_now_ns() - t->left_ns > LEFT_MOST_S * BASE_NS_PER_S)
        play_violation(who, "for %d s more memory of tenant %s is counted than its sessions have",
                       LEFT_MOST_S, is->config.name);
}

static void look_at_sessions(struct tenant_has *t, const struct agent_tenant *is, const char *who)
{
    if (!play_limit_holds(&t->sessions, is->config.sessions, t->sessions_there))
        play_violation(who, "tenant %s has %llu sessions, and a quota of %llu", is->config.name,
                       (unsigned long long)t->sessions_there,
                       (unsigned long long)is->config.sessions);
}

/* Tenants have the first places that are free when they come. */
static uint32_t find_high(const struct agent *a, uint32_t high)
{
    while (high < AGENT_TENANT_SLOTS && a->tenants.at[high].state != AGENT_TENANT_FREE)
        high++;
    return high;
}

void play_agent_look(struct play_agent_looks *looks, const struct agent *a, const char *who)
{
    looks->high = find_high(a, looks->high);
    count_sessions(looks, a);
    for (uint32_t i = 0; i < looks->high; i++) {
        struct tenant_has *t = &looks->tenant[i];
        const struct agent_tenant *is = &a->tenants.at[i];
        if (is->state == AGENT_TENANT_FREE) {
            *t = (struct tenant_has){.left_ns = 0};
            continue;
        }
        look_at_sessions(t, is, who);
        look_at_memory(t, is, who);
        t->sessions_there = t->bytes_there = 0;
    }
}

uint32_t play_agent_looks_tenants(const struct play_agent_looks *looks)
{
    return looks->high;
}

static void compare_quotas(struct play_agent_looks *k, const struct agent *a, const char *who)
{
    struct quota_used used[AGENT_TENANT_SLOTS];
    agent_quotas_used(a, used);
    count_sessions(k, a);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        struct tenant_has *t = &k->tenant[i];
        if (t->sessions_there != used[i].sessions)
            play_violation(who, "tenant %s has %llu sessions, and %llu are counted",
                           a->tenants.at[i].config.name, (unsigned long long)t->sessions_there,
                           (unsigned long long)used[i].sessions);
        t->sessions_there = t->bytes_there = 0;
    }
}

/* ---- windows */

static bool are_same(struct agent_limits a, struct lane_window b)
{
    return a.bytes == b.limit_bytes && a.ops == b.limit_ops;
}

/* Of a pool's lanes those where the tenant has sessions have a part each. */
static struct agent_limits part_of_tenant(const struct agent *a, const struct pool *p, uint32_t i)
{
    struct pool *const first = pool_endpoint(p);
    const bool has = p->sessions_of[i] > 0;
    uint32_t parts = 0, number = 0;
    for (const struct pool *l = first; l != NULL; l = agent_pools_next_lane(first, l)) {
        number += has && l->sessions_of[i] > 0 && l->lane_number < p->lane_number;
        parts += l->sessions_of[i] > 0;
    }
    return agent_limits_part(a->tenants.at[i].config.window, parts > 0 ? parts : 1, number);
}

static bool is_told(const struct agent *a, const struct pool *p)
{
    const struct agent_limits each =
        agent_limits_part(agent_windows_destination(a), agent_lanes_count(p), p->lane_number);
    struct lane_window w;
    (void)lane_window(p->lane, LANE_WINDOW_DEVICE, 0, &w);
    bool told = are_same(p->share.told, w) && each.bytes == p->lane->destination_limit.bytes &&
                each.ops == p->lane->destination_limit.ops;
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        if (a->tenants.at[i].state != AGENT_TENANT_LIVE)
            continue;
        (void)lane_window(p->lane, LANE_WINDOW_TENANT, i, &w);
        told &= are_same(part_of_tenant(a, p, i), w);
    }
    return told;
}

void play_agent_look_at_told(struct play_agent_looks *looks, const struct agent *a, const char *who)
{
    bool told = true;
    looks->high = AGENT_TENANT_SLOTS;
    while (looks->high > 0 && a->tenants.at[looks->high - 1].state == AGENT_TENANT_FREE)
        looks->high--;
    compare_quotas(looks, a, who);
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        told &= is_told(a, p);
    looks->settling -= looks->settling > 0;
    looks->untold = told ? 0 : looks->untold + 1;
    if (looks->untold == SECONDS + 1)
        play_violation(who, "a lane has other windows than the agent says, for %d s", SECONDS);
}

/* Each lane may have one request in flight, and one that is larger than its part goes alone
 * (control/window_rebalance.h). */
void play_agent_look_at_device(struct play_agent_looks *looks, const struct agent *a,
                               const char *who)
{
    const struct agent_limits all = agent_windows_device(a);
    uint64_t bytes = 0, ops = 0;
    uint32_t pools = 0;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        const struct window *n = p->lane->device_window;
        pools++;
        ops += WINDOW_GET(n->ops);
        bytes += WINDOW_GET(n->ops) > 1 ? WINDOW_GET(n->bytes) : 0;
    }
    if (pools != looks->pools || memcmp(&all, &looks->device, sizeof all) != 0) {
        looks->pools = pools;
        looks->device = all;
        looks->settling = SECONDS + 1;
        looks->bytes = looks->ops = (struct play_limit){.limit = PLAY_NO_LIMIT_SEEN};
    }
    if (looks->settling > 0)
        return;
    const uint64_t most_ops = all.ops == 0      ? PLAY_UNLIMITED
                              : all.ops < pools ? pools
                                                : all.ops,
                   most_bytes = all.bytes == 0 ? PLAY_UNLIMITED : all.bytes;
    if (!play_limit_holds(&looks->ops, most_ops, ops) ||
        !play_limit_holds(&looks->bytes, most_bytes, bytes))
        play_violation(who,
                       "%llu requests and %llu bytes are in flight in %u lanes, and the device's "
                       "window is of %llu and %llu",
                       (unsigned long long)ops, (unsigned long long)bytes, pools,
                       (unsigned long long)all.ops, (unsigned long long)all.bytes);
}
