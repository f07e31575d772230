/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual queue pairs: their queues, and what goes from them to the physical ones. Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_VQP_H
#define LANE_VQP_H

#include "lane_state.h"
#include "resolve/flow.h"
#include "schedule/fair_queue.h"
#include "schedule/wait.h"
#include "session_state.h"
#include "transmit/wr.h"

enum vqp_state { VQP_FREE, VQP_CONNECTED, VQP_ERROR };

/* A virtual queue pair: requests go to the fabric in order, from `queue`. */
struct vqp {
    uint8_t state;  /* enum vqp_state, moved by vqp_move() alone */
    uint8_t lost;   /* only while its queue pair breaks */
    uint8_t denied; /* enum schema_reason: why the last bind of a free one failed */
    uint8_t begun;  /* something was posted since it was bound */
    uint8_t in;     /* how many windows its head is in, while that waits at the next */
    uint8_t wait;   /* enum vqp_wait, moved by vqp_wait_move() alone */
    uint16_t gen;
    uint32_t index;
    uint32_t peer_slot, peer_gen;
    uint32_t outstanding; /* posted, not completed */
    struct flow *flow;    /* its peer's while that says so too (flow_take) */
    struct session *session;
    struct wr_queue queue;
    TAILQ_ENTRY(vqp) waiting; /* in a list */
    struct window *window;    /* WAIT_WINDOW: where */
    struct physical_qp *room; /* WAIT_ROOM: where */
    struct turn turn;         /* at either */
    uint64_t wait_ns;         /* since when */
    uint64_t served; /* the round in which it has had something: in the lane's list of those
                        (rounds.c) */
    uint64_t wants;  /* bytes */
    /* Since when its head has had no path, or no flow, whatever it waited for meanwhile: so long is
     * that tried. 0: it has one. */
    uint64_t path_ns, flowless_ns;
};

/* Whether requests of it are out, or wait. */
static inline bool vqp_is_busy(const struct vqp *q)
{
    return q->outstanding > 0 || q->queue.head != NULL;
}

/* Whether it is in a list, and not at a window or for room. */
static inline bool vqp_is_listed(const struct vqp *q)
{
    return vqp_wait_places[q->wait] == PLACE_ENDPOINT || vqp_wait_places[q->wait] == PLACE_LANE;
}

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
/* What is queued goes to its session's list of what is to be flushed. */
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
