/* SPDX-License-Identifier: Apache-2.0 */
/* The list of requests that come back (request/returns.h takes it). Private to agent/lane, and the
 * lane thread's. */
#ifndef LANE_RETURNED_H
#define LANE_RETURNED_H

#include "lane_state.h"
#include "transmit/wr.h"

static inline void returned_put(struct lane *l, struct wr *w)
{
    w->next = NULL;
    *l->returned.last = w;
    l->returned.last = &w->next;
}

/* What the completion of one that was out says beside its status: a flush leaves open whether it
 * was carried out. */
static inline uint32_t reason_of_end(enum ibv_wc_status status)
{
    return status == IBV_WC_WR_FLUSH_ERR ? SCHEMA_REASON_UNDER_WAY : 0;
}

/* A worker's request, which is not out, is over: it completes so. */
static inline void request_over(struct lane *l, struct wr *w, enum ibv_wc_status status,
                                uint32_t reason)
{
    w->ended = (uint8_t)status;
    w->refused = (uint8_t)reason;
    w->back = BACK_UNPOSTED;
    returned_put(l, w);
}

static inline struct wr *returned_take_all(struct lane *l)
{
    struct wr *first = l->returned.first;
    l->returned = (struct returned){.last = &l->returned.first};
    return first;
}

#endif
