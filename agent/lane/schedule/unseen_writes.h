/* SPDX-License-Identifier: Apache-2.0 */
/* WRITEs that have ended, and that their responder may not see yet (docs/messages.md#order): its
 * NIC has them. What goes behind them on their queue pair makes them seen. What takes another one,
 * and is to be seen behind them, waits. Private to agent/lane, and the lane thread's. */
#ifndef LANE_UNSEEN_WRITES_H
#define LANE_UNSEEN_WRITES_H

#include "flow_state.h"
#include "lane_state.h"
#include "schedule/vqp.h"
#include "session_state.h"
#include "vqp_state.h"

/* Whether what q has WRITTEN may not be seen yet, where all of it has ended not long ago: a WRITE
 * was the last, or a SEND whose receiver has not said that it has it. */
static inline bool vqp_may_be_unseen(const struct vqp *q)
{
    return q->begun == BEGUN || (q->begun >= BEGUN_BY_SEND && q->kept > 0);
}

/* q, of which nothing is out on another way to the endpoint, is to go on by another flow, of which
 * `present` is one. The flow that it had may be another endpoint's by now, or none: it waits for
 * the next pass, and in no list of a flow. */
static inline bool vqp_is_unseen(const struct lane *l, struct vqp *q, struct flow *present)
{
    const struct flow *f = q->flow;
    const bool leaves = vqp_names_flow(q) ? f->quarantined != q->session->quarantined ||
                                                flow_is_other_way(q->flow, present)
                                          : l->now_ns - l->gone_ns < SEEN_NS;
    if (vqp_may_be_unseen(q) && leaves) {
        q->begun = BEGUN_LEAVES;
        q->leaves_ns = l->now_ns;
    }
    return q->begun == BEGUN_LEAVES && l->now_ns - q->leaves_ns < SEEN_NS;
}

/* Whether what goes to f goes by another queue pair than not long ago. */
static inline bool flow_has_moved(const struct lane *l, const struct flow *f)
{
    return l->now_ns - f->moved_ns < SEEN_NS ||
           (!f->rc && l->now_ns - l->narrow.lost_ns[f->dci] < SEEN_NS);
}

/* Whether q goes by another queue pair; then it waits. */
static inline bool vqp_has_moved(struct lane *l, const struct vqp *q)
{
    struct flow *f = q->flow;
    if (f == NULL || !flow_has_moved(l, f))
        return false;
    struct unseen_wait *wait = f->rc ? &f->waits : &l->narrow.waits[f->dci];
    const bool soon = l->now_ns - wait->ns < SEEN_NS;
    const uint32_t tenant = q->session->tenant_slot;
    wait->tenant = soon && wait->tenant != tenant ? LANE_SEVERAL_WAIT : tenant;
    wait->ns = l->now_ns;
    return true;
}

/* Whether a message of q may be heard before what it has WRITTEN is seen: its flow has another
 * queue pair since then. The messages before it are heard before it in any case. While something of
 * q is out, this was asked before. */
static inline bool message_is_ahead(struct lane *l, const struct vqp *q)
{
    return q->begun == BEGUN && q->outstanding == 0 && vqp_has_moved(l, q);
}

/* Whether a READ, WRITE or atomic of q may be carried out before what it has WRITTEN is seen. What
 * is out may be a message that went ahead of that, behind one that is not acknowledged. Nobody
 * else's is asked: a queue pair to which some came has all looked at closely (room.c). */
static inline bool request_is_ahead(struct lane *l, const struct vqp *q)
{
    return vqp_may_be_unseen(q) && (q->outstanding == 0 || q->begun != BEGUN) &&
           vqp_has_moved(l, q);
}

/* The device was given one of q's, which leaves it so when it is the last. One that is answered is
 * carried out behind all before it on its queue pair, and shows nothing of what took another one.
 */
static inline void vqp_posted(const struct lane *l, struct vqp *q, enum vqp_begun begun)
{
    if (q->begun == BEGUN && begun != BEGUN && flow_has_moved(l, q->flow))
        return;
    q->begun = (uint8_t)begun;
}

#endif
