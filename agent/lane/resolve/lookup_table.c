/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/lookup_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "lane_state.h"
#include "session_state.h"

enum { TOLD = 8 /* sessions, in a pass */ };

static void put_in_lists(struct lane *l, uint32_t lookups)
{
    struct lookups *all = &l->lookups;
    for (uint32_t i = 0; i < lookups; i++)
        LIST_INSERT_HEAD(&all->free, &all->all[i], in_use);
    for (uint32_t i = 0; i < all->reads; i++)
        LIST_INSERT_HEAD(&all->free_reads, &all->all_reads[i], one);
    for (uint32_t i = 0; i < l->config.max_sessions; i++) {
        all->groups[i].next_free = all->free_group;
        all->free_group = &all->groups[i];
    }
    for (uint32_t i = 0; i < l->config.max_tenants; i++)
        TAILQ_INIT(&all->tenants[i].answered);
}

int lane_lookups_init(struct lane *l)
{
    struct lookups *all = &l->lookups;
    const uint32_t lookups = LANE_LOOKUPS + l->config.max_tenants + 1;
    const int status = lane_places_init(&all->places, lookups, l->config.max_tenants);
    all->reads = 2 * lookups;
    all->all = calloc(lookups, sizeof all->all[0]);
    all->names = calloc(lookups, sizeof all->names[0]);
    all->all_reads = calloc(all->reads, sizeof all->all_reads[0]);
    all->groups = calloc(l->config.max_sessions, sizeof all->groups[0]);
    all->tenants = calloc(l->config.max_tenants, sizeof all->tenants[0]);
    all->relays.of = calloc(l->config.max_tenants + 1, sizeof all->relays.of[0]);
    TAILQ_INIT(&all->turns);
    if (status != 0 || all->all == NULL || all->names == NULL || all->all_reads == NULL ||
        all->groups == NULL || all->tenants == NULL || all->relays.of == NULL)
        return -ENOMEM;
    put_in_lists(l, lookups);
    return 0;
}

void lane_lookups_free(struct lane *l)
{
    lane_places_free(&l->lookups.places);
    free(l->lookups.all);
    free(l->lookups.names);
    free(l->lookups.all_reads);
    free(l->lookups.groups);
    free(l->lookups.tenants);
    free(l->lookups.relays.of);
}

static struct lookup_list *bucket_of(struct lane *l, const uint8_t key[16])
{
    return &l->lookups.bucket[base_hash_gid(key, l->config.pool, l->seed) % LANE_LOOKUP_BUCKETS];
}

struct lookup *lane_lookup_find(struct lane *l, const uint8_t key[16], bool of_name)
{
    struct lookup *k;
    LIST_FOREACH(k, bucket_of(l, key), in_bucket) {
        COUNT(l, lookups_compared, 1);
        if (memcmp(k->key, key, sizeof k->key) == 0 && (k->name != NULL) == of_name)
            return k;
    }
    return NULL;
}

struct lookup *lane_lookup_begin(struct lane *l, const uint8_t key[16],
                                 const struct lookup_name *name, uint32_t tenant)
{
    struct lookup *k = LIST_FIRST(&l->lookups.free);
    if (!lane_places_take(&l->lookups.places, tenant))
        return NULL;
    BASE_ASSERT(k != NULL);
    LIST_REMOVE(k, in_use);
    memset(k, 0, offsetof(struct lookup, key));
    k->tenant = tenant;
    TAILQ_INIT(&k->groups);
    memcpy(k->key, key, sizeof k->key);
    if (name != NULL) {
        k->name = &l->lookups.names[k - l->lookups.all];
        memcpy(k->name, name, offsetof(struct lookup_name, name) + name->length + 1);
    }
    LIST_INSERT_HEAD(&l->lookups.used, k, in_use);
    LIST_INSERT_HEAD(bucket_of(l, key), k, in_bucket);
    return k;
}

static void free_lookup(struct lane *l, struct lookup *k)
{
    lane_places_give(&l->lookups.places, k->tenant);
    LIST_INSERT_HEAD(&l->lookups.free, k, in_use);
}

/* ---- who waits */

/* That of the tenant, or a new one behind the others'. */
static struct lookup_group *find_group(struct lane *l, struct lookup *k, const struct session *s)
{
    struct lookup_group *g;
    TAILQ_FOREACH(g, &k->groups, one) {
        COUNT(l, walked, 1);
        if (TAILQ_FIRST(&g->sessions)->tenant_slot == s->tenant_slot)
            return g;
    }
    g = l->lookups.free_group;
    BASE_ASSERT(g != NULL);
    l->lookups.free_group = g->next_free;
    g->lookup = k;
    TAILQ_INIT(&g->sessions);
    TAILQ_INSERT_TAIL(&k->groups, g, one);
    k->untold++;
    return g;
}

void lane_lookup_wait(struct lane *l, struct lookup *k, struct session *s)
{
    struct lookup_group *g = find_group(l, k, s);
    TAILQ_INSERT_TAIL(&g->sessions, s, by_lookup);
    s->lookup_group = g;
}

/* Its lookup has ended: it is that tenant's now. */
static bool is_answered(const struct lookup_group *g)
{
    return TAILQ_EMPTY(&g->lookup->groups);
}

static void release_group(struct lane *l, struct lookup_group *g, struct lookup_tenant *t)
{
    struct lookup *k = g->lookup;
    const bool answered = is_answered(g);
    TAILQ_REMOVE(answered ? &t->answered : &k->groups, g, one);
    if (answered && TAILQ_EMPTY(&t->answered))
        TAILQ_REMOVE(&l->lookups.turns, t, by_turn);
    g->next_free = l->lookups.free_group;
    l->lookups.free_group = g;
    if (--k->untold == 0 && answered)
        free_lookup(l, k);
}

void lane_lookup_wait_no_more(struct lane *l, struct session *s)
{
    struct lookup_group *g = s->lookup_group;
    if (g == NULL)
        return;
    s->lookup_group = NULL;
    TAILQ_REMOVE(&g->sessions, s, by_lookup);
    if (TAILQ_EMPTY(&g->sessions))
        release_group(l, g, &l->lookups.tenants[s->tenant_slot]);
}

void lane_lookup_end(struct lane *l, struct lookup *k)
{
    struct lookup_read *r;
    struct lookup_group *g;
    while ((r = LIST_FIRST(&k->reads)) != NULL) {
        LIST_REMOVE(r, one);
        r->lookup = NULL;
    }
    LIST_REMOVE(k, in_bucket);
    LIST_REMOVE(k, in_use);
    while ((g = TAILQ_FIRST(&k->groups)) != NULL) {
        struct lookup_tenant *t = &l->lookups.tenants[TAILQ_FIRST(&g->sessions)->tenant_slot];
        TAILQ_REMOVE(&k->groups, g, one);
        if (TAILQ_EMPTY(&t->answered))
            TAILQ_INSERT_TAIL(&l->lookups.turns, t, by_turn);
        TAILQ_INSERT_TAIL(&t->answered, g, one);
    }
    if (k->untold == 0)
        free_lookup(l, k);
}

/* One of its sessions, and then it is the next tenant's turn. */
struct session *lane_lookup_tell_next(struct lane *l, struct lookup_answer *out)
{
    struct lookups *all = &l->lookups;
    const uint64_t pass = atomic_load_explicit(&l->counters.passes, memory_order_relaxed);
    struct lookup_tenant *t = TAILQ_FIRST(&all->turns);
    if (all->told_pass != pass)
        all->told_left = TOLD;
    all->told_pass = pass;
    if (t == NULL || all->told_left == 0)
        return NULL;
    struct lookup_group *g = TAILQ_FIRST(&t->answered);
    struct session *s = TAILQ_FIRST(&g->sessions);
    COUNT(l, walked, 1);
    all->told_left--;
    *out = g->lookup->answer;
    TAILQ_REMOVE(&all->turns, t, by_turn);
    TAILQ_INSERT_TAIL(&all->turns, t, by_turn);
    lane_lookup_wait_no_more(l, s);
    return s;
}
