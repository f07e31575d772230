/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_state.h"
#include "resolve/flow.h"
#include "resolve/hybrid.h"
#include "session_state.h"
#include "transmit/physical_qp.h"
#include "vqp_state.h"
#include "world_hybrid.h"

uint32_t world_max_links, world_connections_per_peer;

void world_hybrid_configure(const struct world *w, struct world_node *n)
{
    n->config.rc = w->rc;
    n->config.hybrid = w->hybrid;
    n->config.connections_per_peer = world_connections_per_peer;
    n->config.max_links = world_max_links != 0 ? world_max_links : WORLD_LINKS;
}

void world_transfer(struct world *w, uint32_t node, uint32_t number)
{
    struct lane *l = w->node[node].lane;
    const uint32_t high = flows_ever(l);
    if (high == 0)
        return;
    struct flow *f = &l->flows[number % high];
    if (!f->used || f->quarantined)
        return;
    if (f->twin == NULL)
        lane_hybrid_begin(l, f, f->tenant_slot);
    else
        lane_hybrid_leave(l, f->second ? f : f->twin, false);
}

void world_transfer_of(struct world *w, uint32_t node, uint32_t session, uint32_t vqp)
{
    struct lane *l = w->node[node].lane;
    struct flow *f = l->sessions[session].vqps[vqp].flow;
    world_transfer(w, node, (uint32_t)(flow_first(f) - l->flows));
}

bool world_flows_leave(struct world *w, uint32_t node, uint32_t session, uint32_t vqp)
{
    struct lane *l = w->node[node].lane;
    return lane_flows_leave(l, l->sessions[session].vqps[vqp].peer_slot);
}

struct fab_qp *world_link(struct world *w, uint32_t node, uint32_t number)
{
    const struct lane *l = w->node[node].lane;
    for (uint32_t i = 0; i < l->phys_room; i++) {
        const struct physical_qp *p = &l->phys[(number + i) % l->phys_room];
        if (p->qp != NULL && p->flow != NULL)
            return p->qp;
    }
    return NULL;
}

struct fab_qp *world_link_of(struct world *w, uint32_t node, uint32_t session, uint32_t vqp)
{
    const struct flow *f = w->node[node].lane->sessions[session].vqps[vqp].flow;
    return f != NULL && f->link != NULL ? f->link->qp : NULL;
}
