/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual queue pairs: what goes from their queues to the physical ones. Private to agent/lane, and
 * the lane thread's. */
#ifndef LANE_VQP_H
#define LANE_VQP_H

#include "base/assert.h"
#include "flow_state.h"
#include "lane_state.h"
#include "schedule/wait.h"
#include "vqp_state.h"

/* Whether it is in a list, and not at a window or for room. */
static inline bool vqp_is_listed(const struct vqp *q)
{
    return vqp_wait_places[q->wait] == PLACE_ENDPOINT || vqp_wait_places[q->wait] == PLACE_LANE;
}

/* q waits with its flow, if it has one; and does no more. */
static inline void flow_hold(const struct vqp *q)
{
    if (q->flow != NULL)
        q->flow->holds++;
}

static inline void flow_release(const struct vqp *q)
{
    if (q->flow != NULL)
        q->flow->holds--;
}

/* Whether the flow that it names is its peer's, and not one that has gone, or is another endpoint's
 * now: which it may be where nothing of it is out and it waits for nothing, also while SENDs of it
 * are kept. */
static inline bool vqp_names_flow(const struct vqp *q)
{
    const struct flow *f = q->flow;
    return f != NULL && f->used && f->peer_slot == q->peer_slot && f->peer_gen == q->peer_gen;
}

/* Where it goes next is asked anew. */
static inline void vqp_forget_flow(struct vqp *q)
{
    BASE_ASSERT(q->wait == WAIT_NOTHING);
    q->flow = NULL;
}

/* ---- what it is (vqp_binding.c) */

/* The one function that moves its state. */
void lane_vqp_move(struct vqp *q, enum vqp_state to);
void lane_vqp_bind(struct lane *l, struct session *s, struct vqp *q,
                   const struct schema_sq_desc *d);
/* One that no worker names (LANE_OWN_VQPS), and that is not busy, whatever it was before: it goes
 * to that life of an endpoint. It is in nobody's quota. */
void lane_vqp_open_own(struct lane *l, struct session *s, struct vqp *q, uint32_t slot,
                       uint32_t gen);
static inline bool vqp_is_own(const struct vqp *q)
{
    return q->index >= q->session->max_vqps;
}
/* SEND_TO: nothing of it is queued, out or kept. False: there is no room. */
bool lane_vqp_address(struct lane *l, struct vqp *q, const struct schema_sq_desc *d);
/* What is queued goes to its session's list of what is to be flushed. */
void lane_vqp_destroy(struct lane *l, struct vqp *q);

/* ---- what it posts (vqp.c) */

/* Takes a checked request; posts it, or queues it. vqp_post_usual() posts most (usual.h). */
void lane_vqp_submit(struct lane *l, struct vqp *q, struct wr *w);
/* Posts what it can of its queue. */
void lane_vqp_go_on(struct lane *l, struct vqp *q);
/* What it had posted, and is out no more, comes before its queue again. */
void lane_vqp_take_back(struct lane *l, struct vqp *q, struct wr *w);
/* The piece that was out of it is out no more: what is behind that may go. */
void lane_vqp_piece_is_back(struct vqp *q);
/* What it had posted has failed. */
void lane_vqp_fail(struct lane *l, struct vqp *q);

#endif
