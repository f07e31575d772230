/* SPDX-License-Identifier: Apache-2.0 */
/* What is so of nearly all requests, in one look each. Private to agent/lane, and the lane
 * thread's.
 *
 * Each of these asks for no more than the function that it stands before: where it says no that
 * one looks closely, and decides. So each may say no for any reason, and yes only where that
 * function would let the request go on and change nothing. */
#ifndef LANE_USUAL_H
#define LANE_USUAL_H

#include <string.h>

#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"
#include "resolve/lease.h"
#include "resolve/path.h"
#include "schedule/window.h"
#include "session_state.h"
#include "transmit/physical_qp.h"
#include "vqp_state.h"

#define USUAL_INLINE inline __attribute__((always_inline))

/* It has answered, and a way to it is there. */
static USUAL_INLINE bool flow_is_usual(const struct lane *l, const struct flow *f)
{
    const struct flow usual = {.used = 1, .liveness = LIVE_PROVEN, .path = PATH_THERE};
    static_assert(offsetof(struct flow, pathless) == 4, "four bytes in one look");
    return memcmp(f, &usual, offsetof(struct flow, pathless)) == 0 && l->now_ns >= f->dead_until_ns;
}

/* q goes on to the endpoint that it used last, whose record is fresh. */
static USUAL_INLINE bool peer_is_usual(struct lane *l, const struct vqp *q)
{
    const struct flow *f = q->flow;
    if (f == NULL) /* so that its peer's slot may be none */
        return false;
    const struct peer *p = &l->peers[q->peer_slot];
    const struct schema_peer *shared = lane_peer_shared(l, q->peer_slot);
    return (p->flow == f || flow_is_sibling_of(f, p->flow, q->pin)) && p->used && shared->valid &&
           shared->gen == q->peer_gen && (l->tenants_quarantined | l->tenants_resting) == 0 &&
           flow_is_usual(l, f) && p->expires_ns > l->now_ns + p->renew_us * 1000ull &&
           q->path_ns == 0;
}

/* A flow that is usual is not stuck: it is not silent, or, where nothing is out to it, its
 * initiator has nothing out either, and is one of those that endpoints have that are known to live.
 */
static USUAL_INLINE bool flow_goes(const struct lane *l, const struct flow *f)
{
    if (l->config.rc)
        return true;
    if (f->outstanding > 0)
        return l->now_ns - f->since_ns <= l->config.suspect_ns;
    const struct physical_qp *p = &l->phys[l->dci[f->dci]];
    return !f->apart && f->dci < l->narrow.ordinary - l->narrow.ordinary / 2 &&
           p->head == p->tail && physical_qp_works(p);
}

/* It waits for nothing, and goes on to where it was. */
static USUAL_INLINE bool vqp_is_usual(struct lane *l, const struct vqp *q)
{
    return q->state == VQP_CONNECTED && q->queue.head == NULL && peer_is_usual(l, q) &&
           flow_goes(l, q->flow);
}

/* The region that q used last is that one too, and lets it. */
static USUAL_INLINE bool region_is_usual(const struct lane *l, const struct vqp *q, uint32_t vkey,
                                         const struct operation *op)
{
    const struct cached *e = q->region;
    const struct schema_mr_record *r = &e->record;
    static_assert(offsetof(struct cached, peer_gen) == offsetof(struct cached, peer_slot) + 4 &&
                      offsetof(struct flow, peer_gen) == offsetof(struct flow, peer_slot) + 4,
                  "both in one look");
    return r->vkey == vkey &&
           memcmp(&e->peer_slot, &q->flow->peer_slot, 2 * sizeof(uint32_t)) == 0 &&
           lease_is_sure(l, e) && r->tenant == q->session->tenant && (r->flags & op->access) != 0;
}

#endif
