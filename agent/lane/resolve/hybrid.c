/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/hybrid.h"

#include <errno.h>
#include <stdlib.h>

#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"
#include "resolve/flow_news.h"
#include "resolve/link_choice.h"
#include "resolve/liveness.h"
#include "resolve/path.h"
#include "transmit/lane_events.h"
#include "transmit/physical_qp.h"
#include "vqp_state.h"

enum { LOOKED_AT = 32 /* places of queue pairs, for connections, each time */ };

struct hybrid {
    struct link_choice choice; /* by the place of the first twin among lane->flows */
    uint32_t hand;             /* the next place of phys */
    uint64_t random;
};

int lane_hybrid_new(struct lane *l)
{
    l->hybrid = calloc(1, sizeof *l->hybrid);
    if (l->hybrid == NULL)
        return -ENOMEM;
    /* Where an endpoint may have several: the others are made while fewer than half of all are in
     * use (make_sibling()), so that they keep none from its first. */
    const uint32_t links = l->config.max_links;
    const uint32_t most = l->config.connections_per_peer > 1 ? (links + 1) / 2 : links;
    return lane_link_choice_init(&l->hybrid->choice, l->config.max_flows, l->config.max_tenants,
                                 most);
}

void lane_hybrid_free(struct lane *l)
{
    if (l->hybrid != NULL)
        lane_link_choice_fini(&l->hybrid->choice);
    free(l->hybrid);
}

static uint32_t now_ms(const struct lane *l)
{
    return (uint32_t)(l->now_ns / 1000000);
}

static uint32_t place_of(const struct lane *l, struct flow *f)
{
    return (uint32_t)(flow_first(f) - l->flows);
}

/* ---- one comes and goes */

void lane_hybrid_linked(struct lane *l, struct flow *second)
{
    struct flow *first = second->twin;
    struct peer *p = &l->peers[second->peer_slot];
    const uint8_t state = l->hybrid->choice.of[place_of(l, second)].state;
    if (state == LINK_LEAVES /* it is wanted no more */ || state == LINK_HELD /* it is back */)
        return;
    lane_link_choice_linked(&l->hybrid->choice, place_of(l, second), now_ms(l));
    if (p->flow != first) { /* its endpoint is in another life, or gone: nobody will use it */
        lane_hybrid_leave(l, second, false);
        return;
    }
    p->flow = second;
    COUNT(l, links_taken, 1);
    lane_flow_notify(l, first);
}

void lane_hybrid_leave(struct lane *l, struct flow *second, bool failed)
{
    struct peer *p = &l->peers[second->peer_slot];
    lane_link_choice_leave(&l->hybrid->choice, place_of(l, second), failed, now_ms(l));
    if (p->flow != second)
        return;
    p->flow = second->twin;
    COUNT(l, links_left, 1);
    lane_flows_notify(l, second->peer_slot);
}

void lane_hybrid_lost(struct lane *l, struct flow *second)
{
    if (second->siblings == NULL)
        lane_hybrid_leave(l, second, true);
}

void lane_hybrid_dropped(struct lane *l, struct flow *f)
{
    struct flow *first = f->twin;
    if (!f->second) { /* its place is another's */
        lane_link_choice_forget(&l->hybrid->choice, (uint32_t)(f - l->flows));
        return;
    }
    lane_hybrid_leave(l, f, false);
    lane_link_choice_over(&l->hybrid->choice, place_of(l, f), now_ms(l));
    if (!flow_is_distrusted(first) && f->heard_ns > first->heard_ns) {
        if (flow_is_proven(f))
            lane_flow_vouch(l, first);
        first->heard_ns = f->heard_ns;
    }
    first->holds--;
    first->twin = NULL;
}

/* ---- who gets one */

/* Whether one could be made now, and would be of use. */
static bool may_link(struct lane *l, const struct flow *first, uint32_t tenant_slot)
{
    const struct peer *p = &l->peers[first->peer_slot];
    return first->twin == NULL && !first->rc && p->flow == first && p->has_rc &&
           first->path == PATH_THERE && flow_is_proven(first) && !flow_is_suspect(first) &&
           lane_peer_shared(l, first->peer_slot)->gen == first->peer_gen &&
           p->expires_ns > l->now_ns && l->links < l->config.max_links &&
           l->paths_asked < LANE_PATHS && l->readdressing == 0 &&
           !l->culprits[tenant_slot].quarantined && lane_may_tell(l);
}

void lane_hybrid_begin(struct lane *l, struct flow *first, uint32_t tenant_slot)
{
    struct link_choice *c = &l->hybrid->choice;
    if (c->held == c->most || !may_link(l, first, tenant_slot))
        return;
    lane_link_choice_sample(c, place_of(l, first), tenant_slot, 0,
                            now_ms(l)); /* it is somebody's */
    struct flow *second = lane_flow_make_second(l, first, tenant_slot);
    if (second == NULL) /* the tenant has its share of flows */
        return;
    lane_link_choice_begin(c, place_of(l, first), now_ms(l));
    lane_flow_count_link(l, second, tenant_slot);
    lane_flow_ask_for_path(l, second);
}

/* One of what is out on p: whose it is says where most goes to. */
static void take_sample(struct lane *l, const struct physical_qp *p, uint32_t weight)
{
    const uint32_t out = p->tail - p->head;
    if (out == 0)
        return;
    l->hybrid->random = l->hybrid->random * 6364136223846793005ull + (l->seed | 1);
    const struct wr *w = *ring_at(l, p, p->head + (uint32_t)(l->hybrid->random >> 33) % out);
    if (w == NULL || w->kind != WR_WORKER || w->flow == NULL || w->flow->quarantined)
        return;
    struct link_choice *c = &l->hybrid->choice;
    struct flow *first = flow_first(w->flow);
    const uint32_t tenant_slot = w->session->tenant_slot, place = (uint32_t)(first - l->flows);
    uint32_t victim;
    lane_link_choice_sample(c, place, tenant_slot, weight, now_ms(l));
    const uint32_t owner = c->of[place].tenant;
    if (owner == LINK_NOBODY || !may_link(l, first, owner) ||
        !lane_link_choice_wants(c, place, now_ms(l), &victim))
        return;
    if (victim != LINK_NONE)
        lane_hybrid_leave(l, l->flows[victim].twin, false);
    else
        lane_hybrid_begin(l, first, owner);
}

void lane_hybrid_look(struct lane *l)
{
    struct hybrid *h = l->hybrid;
    const uint32_t weight = (l->phys_room + LOOKED_AT - 1) / LOOKED_AT;
    for (uint32_t i = 0; i < l->res.dcis; i++)
        take_sample(l, &l->phys[l->dci[i]], 1);
    for (uint32_t i = 0; i < LOOKED_AT && i < l->phys_room; i++) {
        h->hand = h->hand + 1 < l->phys_room ? h->hand + 1 : 0;
        const struct physical_qp *p = &l->phys[h->hand];
        if (p->flow != NULL && flow_is_beside_dc(p->flow))
            take_sample(l, p, weight);
    }
    const uint32_t unused = lane_link_choice_unused(&h->choice, now_ms(l));
    if (unused != LINK_NONE)
        lane_hybrid_leave(l, l->flows[unused].twin, false);
}
