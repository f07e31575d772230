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
#include "schedule/room.h"
#include "schedule/window.h"
#include "session_state.h"
#include "transmit/physical_qp.h"
#include "vqp_state.h"

/* So small that it is not counted in its session's turn. */
enum { TURN_FREE = 1024 };

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
    return p->flow == f && p->used && shared->valid && shared->gen == q->peer_gen &&
           (l->tenants_quarantined | l->tenants_resting) == 0 && flow_is_usual(l, f) &&
           p->expires_ns > l->now_ns + p->renew_us * 1000ull && q->path_ns == 0;
}

/* Where nothing is out to it, its initiator has nothing out either, and is one of those that
 * endpoints have that are known to live. */
static USUAL_INLINE bool flow_goes(const struct lane *l, const struct flow *f)
{
    if (l->config.rc)
        return true;
    if (f->outstanding > 0)
        return !flow_is_suspect(f) && l->now_ns - f->since_ns <= l->config.suspect_ns;
    const struct physical_qp *p = &l->phys[l->dci[f->dci]];
    return flow_is_proven(f) && !flow_is_suspect(f) && !f->apart &&
           f->dci < l->narrow.ordinary - l->narrow.ordinary / 2 && physical_qp_works(p) &&
           p->head == p->tail;
}

/* The region that q used last is w's too, and lets it: its key is w's then. */
static USUAL_INLINE bool region_is_usual(const struct lane *l, const struct vqp *q, struct wr *w)
{
    const struct cached *e = q->region;
    const struct schema_mr_record *r = &e->record;
    const uint64_t at = w->remote_addr - r->vaddr;
    if (r->vkey != w->vkey || e->peer_slot != q->flow->peer_slot ||
        e->peer_gen != q->flow->peer_gen || !lease_is_sure(l, e) ||
        r->tenant != w->session->tenant || !(r->flags & w->op->access) ||
        w->remote_addr < r->vaddr || w->length > r->length || at > r->length - w->length)
        return false;
    lease_stamp(w, e);
    w->fab.remote_addr = r->raddr + at;
    return true;
}

/* It has entered all that it had to. */
static USUAL_INLINE void vqp_post(struct lane *l, struct vqp *q, struct physical_qp *p,
                                  struct wr *w)
{
    const struct peer *peer = &l->peers[q->peer_slot];
    w->flow = q->flow;
    w->fab.ah = q->flow->ah;
    w->fab.dest_qpn = peer->dctn;
    w->fab.dc_key = peer->dc_key;
    flow_posted(l, q->flow);
    q->outstanding++;
    q->begun = 1;
    if (w->length > TURN_FREE)
        q->session->turn_bytes += w->length;
    session_count_posted(&q->session->memory->shown, w->length);
    physical_qp_chain(l, p, w);
    COUNT(l, posted, 1);
}

/* Posts w, the next request of q, for which nothing is to be looked at closely. again: it has done
 * so with one of q's before, and nothing has happened in the lane since. False: nothing is done,
 * and lane_vqp_submit() finds out what to do. */
static USUAL_INLINE bool vqp_post_usual(struct lane *l, struct vqp *q, struct wr *w, bool again)
{
    if (!again && (q->state != VQP_CONNECTED || q->queue.head != NULL || !peer_is_usual(l, q) ||
                   !flow_goes(l, q->flow) || WINDOW_GET(l->windows_on)))
        return false;
    struct physical_qp *p = flow_phys(l, q->flow);
    if ((w->special | w->refused) != 0 || w->length > TURN_FREE || !room_passes(p, w->length) ||
        !region_is_usual(l, q, w))
        return false;
    vqp_post(l, q, p, w);
    return true;
}

#endif
