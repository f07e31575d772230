/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "agent/reserve.h"
#include "control/unread.h"
#include "schema/control.h"

static uint32_t count_lacking(const struct unread *u, uint32_t index, uint32_t reserved)
{
    return lane_reserve_lacks(u->of[index].count, reserved);
}

/* If so many may be unread at a time. */
static bool would_allow(const struct unread *u, uint32_t most, const bool live[AGENT_TENANT_SLOTS],
                        uint32_t tenant, uint32_t count)
{
    uint32_t tenants = 1; /* that is to come */
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        tenants += live[i];
    const uint32_t reserved = lane_reserve_each(most, tenants);
    uint64_t kept = reserved;
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (live[i] && i != tenant - 1)
            kept += count_lacking(u, i, reserved);
    const uint64_t then = (uint64_t)u->all + count;
    return then <= most && (count_lacking(u, tenant - 1, reserved) >= count || then + kept <= most);
}

bool agent_unread_allows(const struct unread *u, const bool live[AGENT_TENANT_SLOTS],
                         uint32_t tenant, uint32_t count)
{
    return would_allow(u, u->most, live, tenant, count);
}

bool agent_unread_allows_but_kernel(const struct unread *u, const bool live[AGENT_TENANT_SLOTS],
                                    uint32_t tenant, uint32_t count)
{
    return would_allow(u, u->wanted, live, tenant, count);
}

static void link_newest(struct unread_tenant *t, struct unread_item *item)
{
    item->newer = NULL;
    item->older = t->newest;
    *(t->newest != NULL ? &t->newest->newer : &t->oldest) = item;
    t->newest = item;
    t->items++;
}

static void unlink_item(struct unread_tenant *t, struct unread_item *item)
{
    *(item->older != NULL ? &item->older->newer : &t->oldest) = item->newer;
    *(item->newer != NULL ? &item->newer->older : &t->newest) = item->older;
    t->items--;
}

void agent_unread_add(struct unread *u, struct unread_item *item, uint32_t tenant, uint32_t count)
{
    const bool first = item->count == 0;
    const uint32_t more = first && count < SCHEMA_FD_COUNT ? SCHEMA_FD_COUNT : count;
    if (first) {
        item->tenant = tenant;
        link_newest(&u->of[tenant - 1], item);
    }
    item->count += more;
    u->of[item->tenant - 1].count += more;
    u->all += more;
}

void agent_unread_forget(struct unread *u, struct unread_item *item)
{
    if (item->count == 0)
        return;
    struct unread_tenant *t = &u->of[item->tenant - 1];
    unlink_item(t, item);
    t->count -= item->count;
    u->all -= item->count;
    item->count = 0;
}

void agent_unread_end_tenant(struct unread *u, uint32_t tenant)
{
    struct unread_tenant *t = &u->of[tenant - 1];
    for (struct unread_item *item; (item = t->oldest) != NULL;) {
        const uint32_t count = item->count;
        agent_unread_forget(u, item);
        agent_unread_add(u, item, UNREAD_OWNERS, count);
    }
}

struct unread_item *agent_unread_next(struct unread *u, uint32_t tenant)
{
    struct unread_tenant *t = &u->of[tenant - 1];
    struct unread_item *item = t->oldest;
    if (item == NULL)
        return NULL;
    unlink_item(t, item);
    link_newest(t, item);
    return item;
}
