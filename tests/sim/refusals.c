/* SPDX-License-Identifier: Apache-2.0 */
#include "refusals.h"

#include <stdlib.h>

#include "base/assert.h"
#include "ledger.h"

enum { BUCKETS = 4096 };

/* A registration that is gone. */
struct gone {
    struct gone *next;
    struct sim_region was;
    bool politely; /* whoever believed in it has been waited for */
};

static struct gone *buckets[BUCKETS];

static struct gone **bucket_of(uint32_t key)
{
    return &buckets[(key ^ key >> 16) % BUCKETS];
}

void play_refusals_init(void)
{
    play_refusals_fini();
}

void play_refusals_fini(void)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct gone *g; (g = buckets[i]) != NULL;) {
            buckets[i] = g->next;
            free(g);
        }
}

void play_refusals_deregistered(const struct sim_region *region, bool at_once)
{
    struct gone **first = bucket_of(region->key), *g = malloc(sizeof *g);
    BASE_ASSERT(g != NULL);
    *g = (struct gone){.next = *first,
                       .was = *region,
                       .politely = !at_once && play_ledger_waits(region->at, region->length)};
    *first = g;
}

static const struct gone *find_gone(const struct sim_access *a)
{
    const struct gone *g = *bucket_of(a->key);
    while (g != NULL && (g->was.node != a->node || g->was.key != a->key || a->addr < g->was.addr ||
                         a->addr - g->was.addr >= g->was.length))
        g = g->next;
    return g;
}

void play_refusals_refused(const struct sim_access *a, enum sim_refusal why, bool suspended)
{
    const struct gone *g = find_gone(a);
    if (why == SIM_REFUSED_FORM)
        play_violation("device", "a request of node %u to node %u is refused for its form",
                       a->initiator, a->node);
    else if (why == SIM_REFUSED_MANY)
        play_violation("device", "node %u has more READs out than node %u told that it takes",
                       a->initiator, a->node);
    else if (why == SIM_REFUSED_ACCESS && g == NULL)
        play_violation("device",
                       "a request of node %u names memory of node %u that was never registered "
                       "so: key 0x%x",
                       a->initiator, a->node, a->key);
    else if (why == SIM_REFUSED_ACCESS && g->politely && !suspended)
        play_violation("device",
                       "a request of node %u comes to node %u after an ordinary region was given "
                       "back there: key 0x%x",
                       a->initiator, a->node, a->key);
}
