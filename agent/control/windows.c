/* SPDX-License-Identifier: Apache-2.0 */
/* Windows as the agent's file and metaservers say: told to lanes when they start, on SIGHUP, and
 * whenever metaservers say something else. */
#include <string.h>

#include "agent.h"
#include "control/lane_choice.h"
#include "control/world_log.h"
#include "due.h"
#include "lane_setup.h"
#include "names.h"
#include "pool.h"
#include "pool_lanes.h"
#include "pools.h"
#include "windows.h"

static void tell_lane(struct pool *p, enum lane_window_scope scope, uint32_t tenant,
                      const struct agent_limits *window)
{
    const struct lane_command command = {
        .kind = LANE_COMMAND_WINDOW,
        .window = {.scope = scope, .tenant = tenant, .bytes = window->bytes, .ops = window->ops}};
    agent_pool_command(p, &command);
}

/* What several lanes of a pool post to one destination is theirs together. */
static struct agent_limits part_of_lane(const struct pool *p, struct agent_limits all)
{
    return agent_limits_part(all, agent_lanes_count(p), p->lane_number);
}

static void tell_destinations(struct agent *a, struct agent_limits each)
{
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        const struct agent_limits part = part_of_lane(p, each);
        tell_lane(p, LANE_WINDOW_DESTINATION, 0, &part);
    }
}

/* Lanes where a tenant has sessions have a part of its window each; those where it has none have
 * one as well, until it has. */
static void share_tenant(struct pool *endpoint, uint32_t tenant)
{
    const struct agent_limits all = endpoint->agent->tenants.at[tenant - 1].config.window;
    uint32_t parts = 0, number = 0;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        parts += p->sessions_of[tenant - 1] > 0;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p)) {
        const bool has = p->sessions_of[tenant - 1] > 0;
        const struct agent_limits part =
            agent_limits_part(all, parts > 0 ? parts : 1, has ? number : 0);
        number += has;
        tell_lane(p, LANE_WINDOW_TENANT, tenant - 1, &part);
    }
}

void agent_windows_share_tenant(struct pool *endpoint, uint32_t tenant)
{
    const struct agent_limits all = endpoint->agent->tenants.at[tenant - 1].config.window;
    if (agent_lanes_count(endpoint) > 1 && !endpoint->stopping && (all.bytes | all.ops) != 0)
        share_tenant(endpoint, tenant);
}

struct agent_limits agent_windows_device(const struct agent *a)
{
    return agent_limits_narrower(a->config.window, a->follow.window);
}

struct agent_limits agent_windows_destination(const struct agent *a)
{
    return agent_limits_narrower(a->config.destination_window, a->follow.destination_window);
}

/* ---- of the device */

/* Lanes do not tell how much they have to do: as long as there are workers it is looked at. */
uint64_t agent_windows_due_ns(const struct agent *a)
{
    const struct agent_share *share[POOLS];
    uint32_t count = 0;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        share[count++] = &p->share;
    return due_if(
        !agent_rebalance_rests(share, count, agent_windows_device(a), agent_pools_are_idle(a)),
        DUE_NOW);
}

void agent_windows_rebalance(struct agent *a)
{
    struct agent_share *share[POOLS];
    struct lane_window now[POOLS];
    struct pool *of[POOLS];
    uint32_t count = 0;
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        of[count] = p;
        share[count] = &p->share;
        (void)lane_window(p->lane, LANE_WINDOW_DEVICE, 0, &now[count++]);
    }
    if (count == 0)
        return;
    const uint64_t changed = agent_rebalance_turn(share, now, count, agent_windows_device(a));
    for (uint32_t i = 0; i < count; i++)
        if ((changed >> i & 1) != 0)
            tell_lane(of[i], LANE_WINDOW_DEVICE, 0, &share[i]->told);
}

/* ---- of one destination */

void agent_windows_take(struct agent *a, const struct agent_desired *s)
{
    struct follow *f = &a->follow;
    f->own_window_count = 0;
    for (uint32_t i = 0; i < s->windows; i++)
        if (s->window[i].one)
            f->own_windows[f->own_window_count++] = s->window[i];
}

static void tell_destination(struct pool *p, const struct agent_destination *to,
                             struct agent_limits all)
{
    const struct agent_limits most = part_of_lane(p, all);
    struct lane_command command = {
        .kind = LANE_COMMAND_WINDOW,
        .window = {.scope = LANE_WINDOW_DESTINATION, .bytes = most.bytes, .ops = most.ops}};
    memcpy(command.window.gid, to->gid, sizeof command.window.gid);
    agent_pool_command(p, &command);
}

static const struct agent_destination *find_destination(const struct agent_destination *list,
                                                        uint32_t count, const uint8_t gid[16])
{
    for (uint32_t i = 0; i < count; i++)
        if (memcmp(list[i].gid, gid, sizeof list[i].gid) == 0)
            return &list[i];
    return NULL;
}

/* What has changed, and first what goes: a lane has room for no more than all of them. */
static void tell_own_windows(struct pool *p)
{
    const struct follow *f = &p->agent->follow;
    struct agent_destination wanted[AGENT_DESTINATIONS];
    const uint32_t count = agent_desired_destinations(f->own_windows, f->own_window_count, p->name,
                                                      wanted, &p->own_windows_left);
    for (uint32_t i = 0; i < p->own_window_count; i++)
        if (find_destination(wanted, count, p->own_windows[i].gid) == NULL)
            tell_destination(p, &p->own_windows[i], (struct agent_limits){0});
    for (uint32_t i = 0; i < count; i++) {
        const struct agent_destination *had =
            find_destination(p->own_windows, p->own_window_count, wanted[i].gid);
        if (had == NULL || memcmp(&had->most, &wanted[i].most, sizeof had->most) != 0)
            tell_destination(p, &wanted[i], wanted[i].most);
    }
    memcpy(p->own_windows, wanted, count * sizeof wanted[0]);
    p->own_window_count = count;
}

/* ---- all of them */

void agent_windows_apply(struct agent *a)
{
    const struct agent_limits each = agent_windows_destination(a);
    agent_windows_rebalance(a);
    tell_destinations(a, each);
    for (struct pool *p = agent_pools_next_endpoint(a, NULL); p != NULL;
         p = agent_pools_next_endpoint(a, p))
        for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
            share_tenant(p, i + 1);
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        tell_own_windows(p);
}

void agent_windows_forget_tenant(struct agent *a, uint32_t tenant)
{
    struct lane_command command = {
        .kind = LANE_COMMAND_WINDOW,
        .window = {.scope = LANE_WINDOW_TENANT, .tenant = tenant - 1, .anew = true}};
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_pool_command(p, &command);
}

static void tell_policy(struct agent *a)
{
    const struct lane_command c = {.kind = LANE_COMMAND_WINDOW_POLICY,
                                   .window_policy = a->config.window_policy};
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_pool_command(p, &c);
}

int agent_windows_reload(struct agent *a, const struct agent_config *fresh, struct base_errbuf *err)
{
    const enum lane_window_policy before = a->config.window_policy;
    const int status = agent_tenants_reload(&a->tenants, fresh, err);
    if (status != 0)
        return status;
    if (agent_config_update(&a->config, fresh))
        world_log(a->world, BASE_LOG_WARN,
                  "only windows and tokens change while the agent runs: restart it for the other "
                  "settings",
                  "file=\"%s\"", a->config_path);
    if (a->config.window_policy != before)
        tell_policy(a);
    agent_windows_apply(a);
    const struct agent_limits device = agent_windows_device(a);
    world_log(a->world, BASE_LOG_INFO, "windows are as the settings say",
              "policy=%s bytes=%llu ops=%llu", lane_window_policy_name(a->config.window_policy),
              (unsigned long long)device.bytes, (unsigned long long)device.ops);
    return 0;
}
