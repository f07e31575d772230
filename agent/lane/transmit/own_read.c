/* SPDX-License-Identifier: Apache-2.0 */
#include "transmit/own_read.h"

#include <errno.h>
#include <stdlib.h>

#include "lane_state.h"
#include "schema/table.h"
#include "transmit/wr.h"

static_assert(SCHEMA_NAME_SPAN_BYTES <= LANE_SCRATCH_BYTES &&
                  SCHEMA_TABLE_SPAN_BYTES <= LANE_SCRATCH_BYTES,
              "room for a span");

int lane_own_reads_new(struct lane *l)
{
    struct scratch *s = &l->scratch;
    const uint32_t count = (uint32_t)(l->res.scratch.size / LANE_SCRATCH_BYTES);
    const int status = lane_places_init(&s->places, count, l->config.max_tenants);
    s->free = calloc(count, sizeof s->free[0]);
    s->owner = calloc(count, sizeof s->owner[0]);
    if (status != 0 || s->free == NULL || s->owner == NULL)
        return -ENOMEM;
    while (s->count < count) {
        s->free[s->count] = s->count;
        s->count++;
    }
    for (int i = 0; i < LANE_OWN_WRS; i++)
        lane_own_read_give(l, &l->own[i]);
    return 0;
}

void lane_own_reads_free(struct lane *l)
{
    lane_places_free(&l->scratch.places);
    free(l->scratch.free);
    free(l->scratch.owner);
}

struct wr *lane_own_read_take(struct lane *l)
{
    struct wr *w = l->free_own;
    if (w != NULL)
        l->free_own = w->next;
    return w;
}

void lane_own_read_give(struct lane *l, struct wr *w)
{
    w->next = l->free_own;
    l->free_own = w;
}

int64_t lane_scratch_take(struct lane *l, uint32_t tenant)
{
    struct scratch *s = &l->scratch;
    if (!lane_places_take(&s->places, tenant))
        return -EAGAIN;
    const uint32_t place = s->free[--s->count];
    s->owner[place] = tenant;
    return place;
}

void *lane_scratch_at(const struct lane *l, uint32_t place)
{
    return (uint8_t *)l->res.scratch.addr + (size_t)place * LANE_SCRATCH_BYTES;
}

void lane_scratch_give(struct lane *l, uint32_t place)
{
    struct scratch *s = &l->scratch;
    lane_places_give(&s->places, s->owner[place]);
    s->free[s->count++] = place;
}
