/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/peer_room.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"
#include "schema/peers.h"

enum { ROOMS = 4, ROOMS_SHARED = 1 /* of a tenant, of which a pass looks for so many */ };

int lane_peer_room_init(struct lane *l)
{
    struct peer_room *r = &l->peer_room;
    r->free = calloc(l->config.max_peers, sizeof r->free[0]);
    r->of = calloc(l->config.max_tenants + 1, sizeof r->of[0]);
    r->each = calloc(l->config.max_tenants + 1, sizeof r->each[0]);
    if (r->free == NULL || r->of == NULL || r->each == NULL)
        return -ENOMEM;
    for (uint32_t slot = l->config.max_peers; slot > 0; slot--)
        r->free[r->frees++] = slot - 1;
    return 0;
}

void lane_peer_room_free(struct lane *l)
{
    free(l->peer_room.free);
    free(l->peer_room.of);
    free(l->peer_room.each);
}

/* Nobody's go first. */
static uint32_t count_of(const struct peer_room *r, uint32_t tenant)
{
    return tenant != 0 ? r->of[tenant] : UINT32_MAX;
}

/* Whether a worker of that tenant may have its place. */
static bool may_go(const struct peer_room *r, const struct peer *p, uint32_t tenant)
{
    return p->used && !p->refreshing && (p->flow == NULL || flow_is_idle(p->flow)) &&
           (p->tenant == 0 || tenant == 0 || p->tenant == tenant ||
            r->of[p->tenant] > r->of[tenant]);
}

static uint32_t next_slot(const struct lane *l, uint32_t slot)
{
    return slot + 1 < l->config.max_peers ? slot + 1 : 0;
}

/* Of a few, one of who has most. The next look begins behind it: its place is the new one's, which
 * so comes last, and those that were only looked at come first. */
static void make_room(struct lane *l, uint32_t tenant)
{
    struct peer_room *r = &l->peer_room;
    const struct peer *victim = NULL;
    for (uint32_t i = 0; i < PEER_LOOKS && i < l->config.max_peers; i++) {
        const struct peer *p = &l->peers[r->hand];
        r->hand = next_slot(l, r->hand);
        COUNT(l, lookups_compared, 1);
        if (may_go(r, p, tenant) &&
            (victim == NULL || count_of(r, p->tenant) > count_of(r, victim->tenant)))
            victim = p;
    }
    if (victim == NULL)
        return;
    const uint32_t slot = (uint32_t)(victim - l->peers);
    r->hand = next_slot(l, slot);
    if (lane_flows_leave(l, slot))
        lane_peer_room_leave(l, slot);
}

static bool take_look(struct peer_room_pass *p, uint64_t pass, uint32_t most)
{
    if (p->pass != pass)
        *p = (struct peer_room_pass){.pass = pass};
    return p->looks < most && ++p->looks;
}

static bool may_look(struct lane *l, uint32_t tenant)
{
    struct peer_room *r = &l->peer_room;
    const uint64_t pass = atomic_load_explicit(&l->counters.passes, memory_order_relaxed);
    return take_look(&r->each[tenant], pass, lane_is_shared(l) ? ROOMS_SHARED : ROOMS) &&
           take_look(&r->all, pass, ROOMS);
}

int64_t lane_peer_room_find(struct lane *l, uint32_t tenant)
{
    struct peer_room *r = &l->peer_room;
    if (r->frees == 0) {
        if (!may_look(l, tenant))
            return -EINPROGRESS;
        make_room(l, tenant);
    }
    return r->frees > 0 ? (int64_t)r->free[r->frees - 1] : -EAGAIN;
}

void lane_peer_room_take(struct lane *l, uint32_t slot, uint32_t tenant)
{
    struct peer_room *r = &l->peer_room;
    BASE_ASSERT(r->frees > 0 && r->free[r->frees - 1] == slot);
    r->frees--;
    r->of[tenant]++;
    l->peers[slot].tenant = (uint16_t)tenant;
    COUNT(l, peers, 1);
}

void lane_peer_room_leave(struct lane *l, uint32_t slot)
{
    struct peer_room *r = &l->peer_room;
    r->of[l->peers[slot].tenant]--;
    r->free[r->frees++] = slot;
    l->peers[slot].used = 0;
    schema_peers_remove(l->res.peers, slot);
    COUNT(l, peers, -1);
}

void lane_peer_room_use(struct lane *l, struct peer *p, uint32_t tenant)
{
    struct peer_room *r = &l->peer_room;
    if (!p->used || p->tenant == tenant || (p->tenant != 0 && r->of[p->tenant] <= r->of[tenant]))
        return;
    r->of[p->tenant]--;
    r->of[tenant]++;
    p->tenant = (uint16_t)tenant;
}

void lane_peer_room_forget(struct lane *l, uint32_t tenant)
{
    struct peer_room *r = &l->peer_room;
    for (uint32_t slot = 0; slot < l->config.max_peers && r->of[tenant] > 0; slot++) {
        struct peer *p = &l->peers[slot];
        if (!p->used || p->tenant != tenant)
            continue;
        p->tenant = 0;
        r->of[tenant]--;
        r->of[0]++;
    }
}
