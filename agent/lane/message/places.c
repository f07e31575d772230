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

bool lane_places_take(struct places *p, uint32_t tenant)
{
    if (!lane_places_may_take(p, tenant))
        return false;
    p->having += p->of[tenant] == 0;
    p->used++;
    p->of[tenant]++;
    return true;
}

void lane_places_give(struct places *p, uint32_t tenant)
{
    BASE_ASSERT(p->of[tenant] > 0);
    p->used--;
    p->having -= --p->of[tenant] == 0;
}
