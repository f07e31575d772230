/* SPDX-License-Identifier: Apache-2.0 */
#include "message/places.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

int lane_places_init(struct places *p, uint32_t places, uint32_t tenants)
{
    BASE_ASSERT(places > tenants + 1);
    *p = (struct places){.common = places - tenants - 1};
    p->of = calloc(tenants + 1, sizeof p->of[0]);
    return p->of == NULL ? -ENOMEM : 0;
}

void lane_places_free(struct places *p)
{
    free(p->of);
}

bool lane_places_are_short(const struct places *p)
{
    return p->used - p->having >= p->common;
}

/* The first one of each is not among the common ones. */
bool lane_places_may_take(const struct places *p, uint32_t tenant)
{
    const uint32_t has = p->of[tenant];
    return has == 0 || (has <= p->common / p->having && !lane_places_are_short(p));
}

uint32_t lane_places_left(const struct places *p, uint32_t tenant)
{
    const uint32_t has = p->of[tenant], having = p->having + (has == 0);
    const uint32_t part = 1 + p->common / having; /* with the one that is not common */
    const uint32_t free = p->common - (p->used - p->having) + (has == 0);
    const uint32_t more = part > has ? part - has : 0;
    return more < free ? more : free;
}

bool lane_places_take(struct places *p, uint32_t tenant)
{
    if (!lane_places_may_take(p, tenant))
        return false;
    p->having += p->of[tenant] == 0;
    p->used++;
    p->of[tenant]++;
    return true;
}

static uint32_t lower_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t lane_places_take_some(struct places *p, uint32_t tenant, uint32_t most)
{
    const uint32_t first = most > 0 && p->of[tenant] == 0 && lane_places_take(p, tenant);
    if (first == most)
        return first;
    const uint32_t part = p->common / p->having + 1, has = p->of[tenant];
    const uint32_t left = lane_places_are_short(p) ? 0 : p->common - (p->used - p->having);
    const uint32_t more = lower_of(lower_of(most - first, left), has < part ? part - has : 0);
    p->used += more;
    p->of[tenant] += more;
    return first + more;
}

void lane_places_give_some(struct places *p, uint32_t tenant, uint32_t count)
{
    BASE_ASSERT(p->of[tenant] >= count);
    p->used -= count;
    p->of[tenant] -= count;
    p->having -= count > 0 && p->of[tenant] == 0;
}

void lane_places_give(struct places *p, uint32_t tenant)
{
    lane_places_give_some(p, tenant, 1);
}
