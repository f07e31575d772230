/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane keeps for messages (docs/messages.md). Private to agent/lane, and the lane
 * thread's. What is done with it is in schedule/sends.h (SENDs) and receive/ (what comes). */
#ifndef LANE_MESSAGE_STATE_H
#define LANE_MESSAGE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "agent/lane_messages.h"
#include "message/message_exchange.h"
#include "message/ports.h"
#include "lane_state.h"
#include "transmit/wr.h"

struct fab_ah;
struct vqp;

/* Of a VQP that sends messages, or hears some. */
struct vqp_messages {
    struct stream_sender sender;
    struct vqp *q;   /* NULL: it was destroyed, and some of its SENDs are out yet */
    uint32_t out;    /* SENDs that the device has */
    uint8_t rewinds; /* when none is, those that are kept come before the queue again */
    uint8_t failed;  /* enum schema_reason: its SENDs end so */
    uint8_t active;  /* in the list of those that wait for a word */
    /* Whom its SENDs are for; to_kind: enum schema_send_to, 0: nobody. */
    uint8_t to_kind;
    uint32_t to_tenant;
    uint64_t to;
    struct wr_queue kept;     /* SENDs that are back, and not acknowledged: by their numbers */
    struct wr_queue receives; /* posted, and not taken */
    uint32_t ports;           /* that it hears */
    uint32_t next_free;       /* place + 1 */
    TAILQ_ENTRY(vqp_messages) by_active;
};

/* What the device has given back of receives and datagrams. */
struct arrival {
    uint32_t what; /* enum arrival_kind << 24 | place */
    uint32_t bytes;
    bool ended_well, has_grh;
};

enum arrival_kind { ARRIVAL_RECEIVE, ARRIVAL_DATAGRAM, ARRIVAL_SENT };
#define ARRIVAL_WR_ID(kind, place)                                                                 \
    ((uint64_t)UINT32_MAX << 32 | (uint64_t)(kind) << 24 | (uint64_t)(place))

TAILQ_HEAD(active_vqps, vqp_messages);

struct messages {
    struct exchange exchange;
    struct ports ports;
    struct vqp_messages *vqps;
    uint32_t vqp_room, free_vqp;
    struct active_vqps actives;
    struct arrival *arrivals;
    uint32_t arrived, arrival_room;
    uint32_t *header_free, header_count; /* places for headers of SENDs that are out */
    uint32_t send_free[LANE_DATAGRAMS_OUT], send_count;
    struct fab_ah **ah; /* of each peer's place; the lane's until its end */
    uint8_t *ah_asked;
    uint64_t look_ns; /* at those that wait */
};

/* Of messages there is something to do in the next pass. */
static inline void messages_wait(struct lane *l)
{
    if (!l->messages_due)
        l->housekeeping_due_ns = l->housekeeping_ns;
    l->messages_due = 1;
    l->housekeeping_ns = 0;
    l->did++;
}

/* A completion whose wr_id is one of those. */
static inline void messages_take(struct messages *m, const struct ibv_wc *wc)
{
    m->arrivals[m->arrived++] = (struct arrival){.what = (uint32_t)wc->wr_id,
                                                 .bytes = wc->byte_len,
                                                 .ended_well = wc->status == IBV_WC_SUCCESS,
                                                 .has_grh = (wc->wc_flags & IBV_WC_GRH) != 0};
}

#endif
