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

/* q, of which nothing is out on another way to the endpoint, is to go on by another flow, of which
 * `present` is one. The flow that it had may be another endpoint's by now, or none: it waits for
 * the next pass, and in no list of a flow. */
static inline bool vqp_is_unseen(const struct lane *l, struct vqp *q, struct flow *present)
{
    const struct flow *f = q->flow;
    const bool leaves = vqp_names_flow(q) ? f->quarantined != q->session->quarantined ||
                                                flow_is_other_way(q->flow, present)
                                          : l->now_ns - l->gone_ns < SEEN_NS;
    if (q->begun == BEGUN && leaves) {
        q->begun = BEGUN_LEAVES;
        q->leaves_ns = l->now_ns;
    }
    return q->begun == BEGUN_LEAVES && l->now_ns - q->leaves_ns < SEEN_NS;
}

/* Whether a message of q may be heard before what it has WRITTEN is seen: its flow has another
 * initiator since then, or a queue pair broke. */
static inline bool message_is_ahead(const struct lane *l, const struct vqp *q)
{
    return q->begun == BEGUN && q->flow != NULL &&
           (l->now_ns - q->flow->moved_ns < SEEN_NS || l->now_ns - l->broke_ns < SEEN_NS);
}

/* The device was given one of q's, which leaves it so when it is the last. One that is answered is
 * carried out behind all before it on its queue pair, and shows nothing of what took another one.
 */
static inline void vqp_posted(const struct lane *l, struct vqp *q, enum vqp_begun begun)
{
    if (q->begun == BEGUN && begun != BEGUN && message_is_ahead(l, q))
        return;
    q->begun = (uint8_t)begun;
}

#endif
