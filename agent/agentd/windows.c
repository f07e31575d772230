/* SPDX-License-Identifier: Apache-2.0 */
/* Windows as the settings want them: told to the lane at the start, and again on SIGHUP. */
#include <stdlib.h>
#include <string.h>

#include "daemon.h"

static void tell_lanes(struct agent *a, enum kedge_window_scope scope, uint32_t tenant,
                       const struct agentd_limits *window)
{
    struct kedge_command command = {
        .kind = KEDGE_COMMAND_WINDOW,
        .window = {.scope = scope, .tenant = tenant, .bytes = window->bytes, .ops = window->ops}};
    for (struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
        lane_thread_command(p, &command);
}

/* Lanes count for themselves: so that all together hold it, each has its part of the device's. */
static uint64_t part(uint64_t most, uint64_t lanes)
{
    return most == 0 ? 0 : most < lanes ? 1 : most / lanes;
}

static struct agentd_limits part_of(const struct agent *a, struct agentd_limits all)
{
    uint64_t lanes = 0;
    for (const struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
        lanes++;
    return (struct agentd_limits){.bytes = part(all.bytes, lanes), .ops = part(all.ops, lanes)};
}

struct agentd_limits windows_device(const struct agent *a)
{
    return agentd_narrower(a->config.window, a->follow.window);
}

struct agentd_limits windows_destination(const struct agent *a)
{
    return agentd_narrower(a->config.destination_window, a->follow.destination_window);
}

void windows_apply(struct agent *a)
{
    const struct agentd_limits device = part_of(a, windows_device(a)),
                               each = windows_destination(a);
    tell_lanes(a, KEDGE_WINDOW_DEVICE, 0, &device);
    tell_lanes(a, KEDGE_WINDOW_DESTINATION, 0, &each);
    for (uint32_t i = 0; i < AGENTD_TENANTS; i++)
        tell_lanes(a, KEDGE_WINDOW_TENANT, i, &a->tenants.at[i].config.window);
}

void windows_forget_tenant(struct agent *a, uint32_t tenant)
{
    struct kedge_command command = {
        .kind = KEDGE_COMMAND_WINDOW,
        .window = {.scope = KEDGE_WINDOW_TENANT, .tenant = tenant - 1, .anew = true}};
    for (struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
        lane_thread_command(p, &command);
}

/* What the metaservers say of a tenant stands above the file. */
static void take_tenant(struct agentd_tenant *t, const struct agentd_config *fresh)
{
    for (uint32_t i = 0; i < fresh->tenants; i++)
        if (strcmp(fresh->tenant[i].name, t->own.name) == 0) {
            t->own.window = fresh->tenant[i].window;
            agentd_take_tokens(&t->own, &fresh->tenant[i]);
        }
    if (t->central)
        return;
    t->config.window = t->own.window;
    agentd_take_tokens(&t->config, &t->own);
}

void windows_reload(struct agent *a)
{
    struct agentd_config *fresh = malloc(sizeof *fresh);
    struct kedge_errbuf err = {"out of memory"};
    if (fresh == NULL || agentd_configure(a->config_path, fresh, &err) != 0) {
        kedge_log(KEDGE_LOG_ERROR, "the settings stay as they were", "why=\"%s\"", err.text);
        free(fresh);
        return;
    }
    if (agentd_config_update(&a->config, fresh))
        kedge_log(KEDGE_LOG_WARN,
                  "only windows and tokens change while the agent runs: restart it for the other "
                  "settings",
                  "file=\"%s\"", a->config_path);
    for (int i = 0; i < AGENTD_TENANTS; i++)
        if (a->tenants.at[i].own.name[0] != '\0')
            take_tenant(&a->tenants.at[i], fresh);
    free(fresh);
    windows_apply(a);
    const struct agentd_limits device = windows_device(a);
    kedge_log(KEDGE_LOG_INFO, "windows are as the settings say", "bytes=%llu ops=%llu",
              (unsigned long long)device.bytes, (unsigned long long)device.ops);
}
