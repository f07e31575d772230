/* SPDX-License-Identifier: Apache-2.0 */
#include "control/tenant_queue.h"

#include "base/assert.h"

void agent_tenant_queue_join(struct tenant_queue *t, struct tenant_queue_item *item, uint32_t owner,
                             bool soon)
{
    struct tenant_queue_owner *o = &t->of[owner];
    BASE_ASSERT(!item->waits);
    struct tenant_queue_item *before = soon ? o->last_soon : o->last;
    *item =
        (struct tenant_queue_item){.before = before, .owner = owner, .soon = soon, .waits = true};
    item->next = before != NULL ? before->next : o->first;
    *(before != NULL ? &before->next : &o->first) = item;
    *(item->next != NULL ? &item->next->before : &o->last) = item;
    if (soon)
        o->last_soon = item;
    o->waiting++;
    t->waiting++;
}

void agent_tenant_queue_leave(struct tenant_queue *t, struct tenant_queue_item *item)
{
    struct tenant_queue_owner *o = &t->of[item->owner];
    BASE_ASSERT(item->waits);
    *(item->before != NULL ? &item->before->next : &o->first) = item->next;
    *(item->next != NULL ? &item->next->before : &o->last) = item->before;
    if (o->last_soon == item) /* before it stands nothing that is not to be done soon */
        o->last_soon = item->before;
    item->waits = false;
    o->waiting--;
    t->waiting--;
}

struct tenant_queue_item *agent_tenant_queue_next(const struct tenant_queue *t,
                                                  tenant_queue_may may, const void *user)
{
    for (uint32_t i = 1; t->waiting > 0 && i <= TENANT_QUEUE_OWNERS; i++) {
        const uint32_t owner = (t->last + i) % TENANT_QUEUE_OWNERS;
        if (t->of[owner].first != NULL && may(user, owner))
            return t->of[owner].first;
    }
    return NULL;
}

void agent_tenant_queue_take(struct tenant_queue *t, struct tenant_queue_item *item)
{
    t->last = item->owner;
    agent_tenant_queue_leave(t, item);
}

/* ---- a bound on what has begun */

struct bounded {
    const struct tenant_queue *by_tenant;
    const struct tenant_queue_bound *bound;
};

static bool is_within_bound(const void *user, uint32_t owner)
{
    const struct bounded *b = user;
    const uint32_t running = b->by_tenant->of[owner].running;
    if (owner == 0)
        return running < b->bound->of_agent;
    return running < b->bound->of_tenant && b->by_tenant->tenants_running < b->bound->of_tenants;
}

static struct tenant_queue_item *find_next(const struct tenant_queue *t,
                                           const struct tenant_queue_bound *bound)
{
    const struct bounded b = {.by_tenant = t, .bound = bound};
    return agent_tenant_queue_next(t, is_within_bound, &b);
}

bool agent_tenant_queue_may_begin(const struct tenant_queue *t,
                                  const struct tenant_queue_bound *bound)
{
    return find_next(t, bound) != NULL;
}

struct tenant_queue_item *agent_tenant_queue_begin(struct tenant_queue *t,
                                                   const struct tenant_queue_bound *bound)
{
    struct tenant_queue_item *item = find_next(t, bound);
    if (item == NULL)
        return NULL;
    agent_tenant_queue_take(t, item);
    t->of[item->owner].running++;
    t->tenants_running += item->owner != 0;
    return item;
}

void agent_tenant_queue_end(struct tenant_queue *t, uint32_t owner)
{
    BASE_ASSERT(t->of[owner].running > 0);
    t->of[owner].running--;
    t->tenants_running -= owner != 0;
}
