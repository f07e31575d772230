/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane keeps of a virtual queue pair. Private to agent/lane, and the lane thread's. What
 * is done with it is in schedule/; other layers ask whose a request is. */
#ifndef LANE_VQP_STATE_H
#define LANE_VQP_STATE_H

#include "schedule/fair_queue.h"
#include "session_state.h"
#include "transmit/wr.h"

struct cached;
struct flow;
struct physical_qp;
struct vqp_messages;
struct window;

/* CUTTING: connected, and a piece of a request is out of which more is to come (transmit/cut.h).
 * ADDRESSED: connected, and its SENDs are addressed. */
enum vqp_state { VQP_FREE, VQP_CONNECTED, VQP_ERROR, VQP_ADDRESSED, VQP_CUTTING, VQP_STATES };

/* What a device was given of a VQP's since it was bound. LEAVES: nothing of it is out, and it waits
 * to go by another flow. BY_ANSWERED: a READ or an atomic was the last, which is carried out behind
 * all before it. From BY_SEND on SENDs were: one more each time, up to many. */
enum vqp_begun {
    BEGUN_NOT,
    BEGUN_LEAVES,
    BEGUN_BY_ANSWERED,
    BEGUN,
    BEGUN_BY_SEND,
    BEGUN_BY_SENDS = BEGUN_BY_SEND + 16
};

/* Of BEGUN, and of no other operation's: in flow->wrote. */
#define BEGUN_WROTE (BEGUN & ~BEGUN_BY_ANSWERED)

/* A virtual queue pair: requests go to the fabric in order, from `queue`. */
struct vqp {
    uint8_t state;       /* enum vqp_state, moved by lane_vqp_move() alone */
    uint8_t lost;        /* only while its queue pair breaks */
    uint8_t denied;      /* enum schema_reason: why the last bind of a free one failed */
    uint8_t begun;       /* enum vqp_begun */
    uint8_t in;          /* how many windows its head is in, while that waits at the next */
    uint8_t cut;         /* a piece is out of which more is to come: what is behind it waits */
    uint8_t wait;        /* enum vqp_wait, moved by lane_vqp_wait_move() alone */
    uint8_t list_status; /* enum ibv_wc_status: what has failed first of a list (request/lists.h) */
    uint8_t pin;         /* of several connections of its endpoint, which it is to have (flow.c) */
    uint16_t gen;
    uint8_t list_reason; /* and its enum schema_reason */
    uint32_t index;
    uint32_t peer_slot, peer_gen;
    uint32_t outstanding; /* posted, not completed */
    struct flow *flow;    /* its peer's while that says so too (lane_flow_take) */
    struct session *session;
    const struct cached *region; /* that it used last, or any other (schedule/usual.h) */
    struct wr_queue queue;
    TAILQ_ENTRY(vqp) waiting; /* in a list */
    struct window *window;    /* PLACE_WINDOW: where */
    struct physical_qp *room; /* PLACE_ROOM: where */
    struct turn turn;         /* at either */
    uint64_t wait_ns;         /* since when */
    uint64_t served; /* the round in which it has had something: in the lane's list of those
                        (rounds.c) */
    uint64_t wants;  /* bytes */
    /* Since when its head has had no path, or no flow, whatever it waited for meanwhile: so long is
     * that tried. 0: it has one. */
    uint64_t path_ns, flowless_ns;
    uint64_t leaves_ns;            /* BEGUN_LEAVES: since when (schedule/unseen_writes.h) */
    struct vqp_messages *messages; /* NULL: it has no messages */
    uint32_t kept; /* that the device has given back, and that wait for SENDs to be acknowledged */
    uint32_t behind; /* of those that are out, how many went behind SENDs: SPECIAL_BEHIND */
};

/* Whether requests of it are out, or wait. */
static inline bool vqp_is_busy(const struct vqp *q)
{
    return q->outstanding > 0 || q->kept > 0 || q->queue.head != NULL;
}

/* The device has so many SENDs of it, and nothing behind. */
static inline void vqp_sent(struct vqp *q, uint32_t count)
{
    const uint32_t begun = (q->begun < BEGUN ? BEGUN : q->begun) + count;
    q->begun = (uint8_t)(begun < BEGUN_BY_SENDS ? begun : BEGUN_BY_SENDS);
}

/* One of those SENDs did not arrive: no receive has ended behind what the device had before it. */
static inline void vqp_lost_send(struct vqp *q)
{
    q->begun = q->begun > BEGUN ? BEGUN : q->begun;
}

/* One that is answered was not carried out, and goes again: what was before it is not seen for its
 * sake. */
static inline void vqp_lost_answered(struct vqp *q)
{
    q->begun = q->begun == BEGUN_BY_ANSWERED ? BEGUN : q->begun;
}

/* Of a worker's request, or NULL. */
static inline struct vqp *vqp_of(const struct wr *w)
{
    return w->kind == WR_WORKER ? &w->session->vqps[w->vqp] : NULL;
}

#endif
