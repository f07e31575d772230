/* SPDX-License-Identifier: Apache-2.0 */
/* Flows: one for each endpoint to which requests are out or wait, with its path and its window.
 *
 * A VQP does not keep one by being connected: it names the flow that it used last, which is its
 * peer's still or is taken anew. So as many endpoints can be connected as are known, and flows
 * bound only how many are in use at a time.
 *
 * A tenant may have its share of them: as many as would be left for one more tenant that came, if
 * all had as many. So there is one for whoever comes, whatever the others do.
 *
 * A tenant in quarantine (quarantine.c) has flows of its own, one for each endpoint
 * that it uses, and so an own connection with RC: they are found by their peer's slot and their
 * tenant. A VQP goes from one flow to another only when nothing of it is out, which keeps its
 * order.
 *
 * Invariant: what is out on a flow, waits with it, or is asked about it keeps it where it is. */
#include "resolve/flow.h"

#include "base/assert.h"
#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow_news.h"
#include "resolve/hybrid.h"
#include "resolve/liveness.h"
#include "resolve/path.h"
#include "resolve/peer_room.h"
#include "transmit/lane_events.h"
#include "transmit/quarantine.h"
#include "vqp_state.h"
#include "window_state.h"

enum {
    LOOKS = 64, /* at flows for an idle one, each time that one is wanted and none is free */
    SWEPT = 64  /* each time */
};
static const uint64_t QUARANTINE_IDLE_NS =
    1000000000; /* unused for so long, one in quarantine goes */
static const uint64_t SIBLING_IDLE_NS = 10000000000; /* likewise one of several connections */
static const uint64_t BARRED_NS = 1000000000; /* none is made again before, where one failed */

uint32_t lane_destinations(const struct lane *l)
{
    return atomic_load_explicit(&l->flows_high, memory_order_acquire);
}

/* ---- of tenants in quarantine */

static struct flow *find_quarantined(struct lane *l, const struct vqp *q)
{
    struct flow *f = *quarantined_bucket(&l->quarantined, q->peer_slot);
    while (f != NULL && (f->peer_slot != q->peer_slot || f->peer_gen != q->peer_gen ||
                         f->tenant_slot != q->session->tenant_slot))
        f = f->next_quarantined;
    return f;
}

/* It counts in the endpoint's one window, and holds that one's flow for it. */
static void link_quarantined(struct lane *l, struct flow *f, struct flow *own)
{
    f->quarantined = f->apart = 1;
    f->rc = own->rc;
    f->own = own;
    lane_flow_inherit(l, f, own);
    f->dci = (uint16_t)lane_quarantine_dci(l, f);
    lane_quarantined_flow_link(l, f);
}

static void unlink_quarantined(struct lane *l, struct flow *f)
{
    lane_quarantined_flow_unlink(l, f);
    f->own->holds--;
    if (!flow_is_distrusted(f->own) && f->heard_ns > f->own->heard_ns) {
        if (flow_is_proven(f)) /* so that nobody proves it again and again */
            lane_flow_vouch(l, f->own);
        f->own->heard_ns = f->heard_ns;
    }
}

/* ---- all */

/* ---- several connections for each endpoint */

static void unlink_sibling(struct lane *l, struct flow *f)
{
    struct flow **at = &f->lead->siblings;
    while (*at != f)
        at = &(*at)->siblings;
    *at = f->siblings;
    f->lead->holds--;
    if (!flow_is_distrusted(f->lead) && f->heard_ns > f->lead->heard_ns) {
        if (flow_is_proven(f))
            lane_flow_vouch(l, f->lead);
        f->lead->heard_ns = f->heard_ns;
    }
}

/* It is idle. */
static void drop_flow(struct lane *l, struct flow *f)
{
    lane_flow_drop_path(l, f);
    if (l->config.hybrid)
        lane_hybrid_dropped(l, f);
    if (l->peers[f->peer_slot].flow == f)
        l->peers[f->peer_slot].flow = NULL;
    if (f->quarantined)
        unlink_quarantined(l, f);
    if (flow_is_suspect(f))
        COUNT(l, suspects, -1);
    if (f->lead != NULL)
        unlink_sibling(l, f);
    else if (!f->quarantined && !f->second && f->window != NULL)
        window_close(f->window);
    BASE_ASSERT(f->parked.count == 0);
    lane_flow_take_news(l, f);
    COUNT(l, flows, -1);
    l->flow_tenants -= --l->tenant_flows[f->tenant_slot] == 0;
    *f = (struct flow){.next_free = l->free_flow};
    l->gone_ns = l->now_ns;
    l->free_flow = f;
}

static bool has_its_share(const struct lane *l, uint32_t tenant_slot)
{
    const uint32_t has = l->tenant_flows[tenant_slot];
    const uint32_t share = l->config.max_flows / (l->flow_tenants + (has == 0) + 1);
    return has >= (share > 0 ? share : 1);
}

static struct flow *take_unused(struct lane *l)
{
    const uint32_t high = flows_ever(l);
    struct flow *f = l->free_flow;
    if (f != NULL) {
        l->free_flow = f->next_free;
        return f;
    }
    if (high == l->config.max_flows)
        return NULL;
    atomic_store_explicit(&l->flows_high, high + 1, memory_order_release);
    return &l->flows[high];
}

/* An idle one goes: of anybody, or of this tenant alone. Bounded; the next try goes on where this
 * one ends. */
static bool make_room(struct lane *l, uint32_t tenant_slot, bool of_anybody)
{
    const uint32_t high = flows_ever(l);
    for (uint32_t i = 0; i < LOOKS && i < high && lane_may_tell(l); i++) {
        struct flow *f = &l->flows[l->flow_hand < high ? l->flow_hand : 0];
        l->flow_hand = (uint32_t)(f - l->flows) + 1;
        if (!f->used || !flow_is_idle(f) || (!of_anybody && f->tenant_slot != tenant_slot))
            continue;
        drop_flow(l, f);
        return true;
    }
    return false;
}

static struct flow *new_flow(struct lane *l, uint32_t tenant_slot)
{
    const bool full = has_its_share(l, tenant_slot);
    struct flow *f = full ? NULL : take_unused(l);
    if (f == NULL && make_room(l, tenant_slot, !full))
        f = take_unused(l);
    return f;
}

/* Without a window, and nobody's yet. */
static struct flow *make_flow(struct lane *l, uint32_t slot, uint32_t gen, uint32_t tenant_slot)
{
    struct flow *f = new_flow(l, tenant_slot);
    if (f == NULL)
        return NULL;
    *f = (struct flow){.used = 1,
                       .rc = peer_needs_link(l, slot),
                       .peer_slot = slot,
                       .peer_gen = gen,
                       .tenant_slot = tenant_slot};
    vqp_list_init(&f->parked);
    l->flow_tenants += l->tenant_flows[tenant_slot]++ == 0;
    COUNT(l, flows, 1);
    return f;
}

static struct flow *take_own(struct lane *l, const struct vqp *q)
{
    struct peer *p = &l->peers[q->peer_slot];
    struct flow *f = p->flow;
    lane_peer_room_use(l, p, q->session->tenant_slot + 1); /* whoever made its flow */
    if (f != NULL && f->peer_gen == q->peer_gen)
        return f;
    if (f != NULL && flow_is_idle(f) && lane_may_tell(l)) /* of a life of its peer that is over */
        drop_flow(l, f);
    f = make_flow(l, q->peer_slot, q->peer_gen, q->session->tenant_slot);
    if (f == NULL)
        return NULL;
    f->dci = (uint16_t)(q->peer_slot % l->narrow.ordinary);
    return p->flow = f;
}

/* Beside the first, with the first's window. None is made where connections may become short:
 * it takes no other endpoint's. */
static struct flow *make_sibling(struct lane *l, struct flow *first, uint32_t pin,
                                 uint32_t tenant_slot)
{
    if (2 * l->links >= l->config.max_links)
        return NULL;
    first->holds++;
    struct flow *f = make_flow(l, first->peer_slot, first->peer_gen, tenant_slot);
    if (f == NULL) {
        first->holds--;
        return NULL;
    }
    f->rc = 1; /* hybrid: whatever else leads there */
    f->lead = first;
    f->pin = pin;
    f->siblings = first->siblings;
    first->siblings = f;
    f->window = first->window;
    lane_flow_inherit(l, f, first);
    return f;
}

/* The connection that q is pinned to, of as many as an endpoint may have: workers and VQPs are
 * spread over them. The first one where there is no other, or it cannot be made. */
static struct flow *choose_sibling(struct lane *l, struct vqp *q, struct flow *first)
{
    const uint32_t pin = (q->session->id + q->index) % l->config.connections_per_peer;
    struct flow *f = first->siblings;
    q->pin = (uint8_t)pin;
    if (pin == 0 || !first->rc)
        return first;
    while (f != NULL && f->pin != pin)
        f = f->siblings;
    if (f == NULL)
        f = make_sibling(l, first, pin, q->session->tenant_slot);
    return f != NULL && !f->barred ? f : first;
}

void lane_flow_bar(struct lane *l, struct flow *f)
{
    f->barred = 1;
    f->asked_ns = l->now_ns;
    lane_flow_notify(l, f); /* they go on with the first */
    l->changed = 1;
}

struct flow *lane_flow_take(struct lane *l, struct vqp *q)
{
    struct flow *f = q->session->quarantined ? find_quarantined(l, q) : NULL;
    if (f != NULL)
        return f;
    struct flow *own = take_own(l, q);
    if (own != NULL && !q->session->quarantined && l->config.connections_per_peer > 1)
        return choose_sibling(l, q, own);
    if (own == NULL || !q->session->quarantined)
        return own;
    own = flow_first(own);
    own->holds++;
    f = make_flow(l, q->peer_slot, q->peer_gen, q->session->tenant_slot);
    if (f == NULL)
        own->holds--;
    else
        link_quarantined(l, f, own);
    return f;
}

struct flow *lane_flow_make_second(struct lane *l, struct flow *first, uint32_t tenant_slot)
{
    first->holds++; /* so that it does not make room for it */
    struct flow *f = make_flow(l, first->peer_slot, first->peer_gen, tenant_slot);
    if (f == NULL) {
        first->holds--;
        return NULL;
    }
    f->rc = f->second = 1;
    f->twin = first;
    first->twin = f;
    f->window = first->window;
    lane_flow_inherit(l, f, first);
    return f;
}

static bool leave_flow(struct lane *l, struct flow *f)
{
    if (!flow_is_idle(f) || !lane_may_tell(l))
        return false;
    drop_flow(l, f);
    return true;
}

/* Those beside it hold it. */
static bool leave_with_siblings(struct lane *l, struct flow *f)
{
    while (f->siblings != NULL)
        if (!leave_flow(l, f->siblings))
            return false;
    return leave_flow(l, f);
}

bool lane_flows_leave(struct lane *l, uint32_t slot)
{
    struct flow *f = l->quarantined.count > 0 ? *quarantined_bucket(&l->quarantined, slot) : NULL;
    for (struct flow *next; f != NULL; f = next) {
        next = f->next_quarantined;
        if (f->peer_slot == slot && !leave_flow(l, f))
            return false;
    }
    f = l->peers[slot].flow;
    if (f == NULL)
        return true;
    f = flow_first(f);
    if (f->twin != NULL && !leave_with_siblings(l, f->twin))
        return false;
    return leave_with_siblings(l, f);
}

/* Nobody will use it any more. */
static bool is_stray(struct lane *l, const struct flow *f)
{
    if (f->lead != NULL)
        return l->peers[f->peer_slot].flow != f->lead ||
               l->now_ns - f->used_ns > (f->barred ? BARRED_NS : SIBLING_IDLE_NS);
    if (!f->quarantined)
        return l->peers[f->peer_slot].flow != f;
    return !l->culprits[f->tenant_slot].quarantined ||
           lane_peer_shared(l, f->peer_slot)->gen != f->peer_gen ||
           l->now_ns - f->used_ns > QUARANTINE_IDLE_NS;
}

void lane_flows_sweep(struct lane *l)
{
    const uint32_t high = flows_ever(l);
    for (uint32_t i = 0; i < SWEPT && i < high && lane_may_tell(l); i++) {
        struct flow *f = &l->flows[l->flow_broom < high ? l->flow_broom : 0];
        l->flow_broom = (uint32_t)(f - l->flows) + 1;
        if (f->used && flow_is_distrusted(f))
            lane_flow_forgive(l, f);
        if (f->used && flow_is_idle(f) && is_stray(l, f))
            drop_flow(l, f);
    }
}
