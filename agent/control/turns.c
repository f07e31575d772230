/* SPDX-License-Identifier: Apache-2.0 */
#include "control/turns.h"

#include "base/assert.h"

void turns_join(struct turns *t, struct turns_item *item, uint32_t owner, bool soon)
{
    struct turns_owner *o = &t->of[owner];
    BASE_ASSERT(!item->waits);
    struct turns_item *before = soon ? o->last_soon : o->last;
    *item = (struct turns_item){.before = before, .owner = owner, .soon = soon, .waits = true};
    item->next = before != NULL ? before->next : o->first;
    *(before != NULL ? &before->next : &o->first) = item;
    *(item->next != NULL ? &item->next->before : &o->last) = item;
    if (soon)
        o->last_soon = item;
    o->waiting++;
    t->waiting++;
}

void turns_leave(struct turns *t, struct turns_item *item)
{
    struct turns_owner *o = &t->of[item->owner];
    BASE_ASSERT(item->waits);
    *(item->before != NULL ? &item->before->next : &o->first) = item->next;
    *(item->next != NULL ? &item->next->before : &o->last) = item->before;
    if (o->last_soon == item) /* before it stands nothing that is not to be done soon */
        o->last_soon = item->before;
    item->waits = false;
    o->waiting--;
    t->waiting--;
}

struct turns_item *turns_next(const struct turns *t, turns_may may, const void *user)
{
    for (uint32_t i = 1; t->waiting > 0 && i <= TURNS_OWNERS; i++) {
        const uint32_t owner = (t->last + i) % TURNS_OWNERS;
        if (t->of[owner].first != NULL && may(user, owner))
            return t->of[owner].first;
    }
    return NULL;
}

void turns_take(struct turns *t, struct turns_item *item)
{
    t->last = item->owner;
    turns_leave(t, item);
}

/* ---- a bound on what has begun */

struct bounded {
    const struct turns *turns;
    const struct turns_bound *bound;
};

static bool is_within_bound(const void *user, uint32_t owner)
{
    const struct bounded *b = user;
    const uint32_t running = b->turns->of[owner].running;
    if (owner == 0)
        return running < b->bound->of_agent;
    return running < b->bound->of_tenant && b->turns->tenants_running < b->bound->of_tenants;
}

struct turns_item *turns_begin(struct turns *t, const struct turns_bound *bound)
{
    const struct bounded b = {.turns = t, .bound = bound};
    struct turns_item *item = turns_next(t, is_within_bound, &b);
    if (item == NULL)
        return NULL;
    turns_take(t, item);
    t->of[item->owner].running++;
    t->tenants_running += item->owner != 0;
    return item;
}

void turns_end(struct turns *t, uint32_t owner)
{
    BASE_ASSERT(t->of[owner].running > 0);
    t->of[owner].running--;
    t->tenants_running -= owner != 0;
}
