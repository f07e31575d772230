/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/quarantined_flows.h"

#include <errno.h>
#include <stdlib.h>

#include "lane_state.h"
#include "resolve/flow_news.h"

enum { BUCKETS_LEAST = 64 };

int lane_quarantined_flows_new(struct lane *l)
{
    struct quarantined_flows *all = &l->quarantined;
    all->buckets = BUCKETS_LEAST;
    while (all->buckets < l->config.max_peers / QUARANTINED_SLOTS)
        all->buckets *= 2;
    all->bucket = calloc(all->buckets, sizeof(struct flow *));
    all->of = calloc(l->config.max_tenants, sizeof all->of[0]);
    if (all->bucket == NULL || all->of == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < l->config.max_tenants; i++)
        TAILQ_INIT(&all->of[i].flows);
    return 0;
}

void lane_quarantined_flows_free(struct lane *l)
{
    free(l->quarantined.bucket);
    free(l->quarantined.of);
}

void lane_quarantined_flow_link(struct lane *l, struct flow *f)
{
    struct flow **bucket = quarantined_bucket(&l->quarantined, f->peer_slot);
    struct quarantined_tenant *t = &l->quarantined.of[f->tenant_slot];
    f->next_quarantined = *bucket;
    *bucket = f;
    TAILQ_INSERT_TAIL(&t->flows, f, by_tenant);
    t->count++;
    l->quarantined.count++;
}

void lane_quarantined_flow_unlink(struct lane *l, struct flow *f)
{
    struct flow **at = quarantined_bucket(&l->quarantined, f->peer_slot);
    struct quarantined_tenant *t = &l->quarantined.of[f->tenant_slot];
    while (*at != f)
        at = &(*at)->next_quarantined;
    *at = f->next_quarantined;
    TAILQ_REMOVE(&t->flows, f, by_tenant);
    t->count--;
    if (t->left > t->count)
        t->left = t->count;
    l->quarantined.count--;
}

static void rejoin_first(struct lane *l, struct quarantined_tenant *t)
{
    struct flow *f = TAILQ_FIRST(&t->flows);
    COUNT(l, walked, 1);
    TAILQ_REMOVE(&t->flows, f, by_tenant);
    TAILQ_INSERT_TAIL(&t->flows, f, by_tenant);
    t->left--;
    lane_flow_notify(l, f);
}

void lane_quarantined_flows_rejoin(struct lane *l)
{
    struct quarantined_flows *all = &l->quarantined;
    uint32_t looks = QUARANTINED_LOOKS;
    l->rejoins = 0;
    all->hand = (all->hand + 1) % l->config.max_tenants;
    for (uint32_t i = 0; i < l->config.max_tenants; i++) {
        const uint32_t slot = (all->hand + i) % l->config.max_tenants;
        struct quarantined_tenant *t = &all->of[slot];
        if (l->culprits[slot].rejoins)
            t->left = t->count;
        l->culprits[slot].rejoins = 0;
        for (uint32_t n = 0; n < QUARANTINED_OF_EACH && t->left > 0 && looks > 0; n++, looks--)
            rejoin_first(l, t);
        l->rejoins |= t->left > 0;
    }
}
