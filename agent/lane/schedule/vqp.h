/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual queue pairs: their queues, and what goes from them to the physical ones. Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_VQP_H
#define LANE_VQP_H

#include "lane_state.h"
#include "resolve/flow.h"
#include "schedule/fair_queue.h"
#include "session_state.h"
#include "transmit/wr.h"

enum vqp_state { VQP_FREE, VQP_CONNECTED, VQP_ERROR };

/* A virtual queue pair: requests go to the fabric in order, from `queue`. */
struct vqp {
    uint8_t state;  /* enum vqp_state, moved by vqp_move() alone */
    uint8_t lost;   /* only within break_phys() */
    uint8_t denied; /* enum schema_reason: why the last bind of a free one failed */
    uint8_t begun;  /* something was posted since it was bound */
    uint8_t in;     /* how many windows its head is in, while that waits at the next */
    uint16_t gen;
    uint32_t index;
    uint32_t peer_slot, peer_gen;
    uint32_t outstanding; /* posted, not completed */
    struct flow *flow;    /* its peer's while that says so too (flow_take) */
    struct session *session;
    struct wr_queue queue;
    struct vqp_list *waits; /* where its head waits: the lane's list, or that of its flow */
    TAILQ_ENTRY(vqp) waiting;
    struct window *window;    /* where its head waits, instead */
    struct physical_qp *room; /* where its head waits for room, instead */
    struct turn turn;         /* at either */
    uint64_t wait_ns;         /* since when */
    uint64_t path_ns;         /* since when its head waits for a path; 0: it does not */
    uint64_t wants;           /* bytes */
    uint64_t flowless_ns;     /* since when its head waits for a flow; 0: it does not */
};

/* Of a worker's request, or NULL. */
static inline struct vqp *vqp_of(const struct wr *w)
{
    return w->kind == WR_WORKER ? &w->session->vqps[w->vqp] : NULL;
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

void vqp_bind(struct lane *l, struct session *s, struct vqp *q, const struct schema_sq_desc *d);
void vqp_destroy(struct lane *l, struct vqp *q);
/* Takes a checked request; posts it, or queues it. */
void vqp_submit(struct lane *l, struct vqp *q, struct wr *w);
/* Posts what it can of its queue. */
void vqp_go_on(struct lane *l, struct vqp *q);
/* What it had posted, and is out no more, comes before its queue again. */
void vqp_take_back(struct lane *l, struct vqp *q, struct wr *w);
/* What it had posted has failed. */
void vqp_fail(struct lane *l, struct vqp *q);

#endif
