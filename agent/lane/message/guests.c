/* SPDX-License-Identifier: Apache-2.0 */
#include "message/guests.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

enum { MOST = 1 << 20 };

int lane_guests_init(struct guests *g, uint32_t most)
{
    BASE_ASSERT(most > 0 && most <= MOST);
    *g = (struct guests){.most = most, .free = 1};
    g->all = calloc(most, sizeof g->all[0]);
    if (g->all == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i + 1 < most; i++)
        g->all[i].next = i + 2;
    return 0;
}

void lane_guests_free(struct guests *g)
{
    free(g->all);
    *g = (struct guests){.most = 0};
}

/* Where the list names it, or its end. */
static uint32_t *find_link(const struct guests *g, uint32_t *list, uint32_t tenant,
                           uint32_t *before)
{
    for (*before = 0; *list != 0 && g->all[*list - 1].tenant != tenant; ++*before)
        list = &g->all[*list - 1].next;
    return list;
}

uint32_t lane_guest_find(const struct guests *g, uint32_t list, uint32_t tenant)
{
    uint32_t unused;
    return *find_link(g, &list, tenant, &unused);
}

int lane_guest_add(struct guests *g, uint32_t *list, uint32_t tenant)
{
    uint32_t count;
    uint32_t *link = find_link(g, list, tenant, &count);
    BASE_ASSERT(tenant != 0);
    if (*link != 0)
        return -EALREADY;
    if (count >= GUESTS_EACH || g->free == 0)
        return -EDQUOT;
    const uint32_t place = g->free;
    struct guest *added = &g->all[place - 1];
    g->free = added->next;
    g->used++;
    *added = (struct guest){.tenant = tenant};
    *link = place;
    return 0;
}

static void free_link(struct guests *g, uint32_t *link)
{
    const uint32_t place = *link;
    struct guest *gone = &g->all[place - 1];
    *link = gone->next;
    *gone = (struct guest){.next = g->free};
    g->free = place;
    g->used--;
}

int lane_guest_remove(struct guests *g, uint32_t *list, uint32_t tenant)
{
    uint32_t unused;
    uint32_t *link = find_link(g, list, tenant, &unused);
    if (*link == 0)
        return -ENOENT;
    free_link(g, link);
    return 0;
}

uint32_t lane_guests_remove_all(struct guests *g, uint32_t *list)
{
    uint32_t count = 0;
    for (; *list != 0; count++)
        free_link(g, list);
    return count;
}
