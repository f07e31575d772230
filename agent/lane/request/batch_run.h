/* SPDX-License-Identifier: Apache-2.0 */
/* A batch that is posted (docs/batches.md). Private to agent/lane, and the lane thread's.
 *
 * A marker stands for it in its VQP's queue, and is over when the batch is. In front of the marker
 * its pieces come, some at a time, each a request as any other: it waits for what they wait for and
 * is refused for what they are. A piece is of one descriptor or more, that go on where the former
 * one ends at the peer. Pieces are relaxed, but for the first one of a batch.
 *
 * Invariant: while the marker is in its VQP's queue, nothing but pieces of its own has come in
 * front of it since it was posted. */
#ifndef LANE_BATCH_RUN_H
#define LANE_BATCH_RUN_H

#include "lane_state.h"
#include "message_state.h"
#include "request/reply.h"
#include "session_state.h"
#include "transmit/wr.h"

/* BATCH: a completion comes in any case. */
void lane_batch_post(struct lane *l, struct session *s, const struct operation *op,
                     const struct schema_sq_desc *d);
/* At the end of a pass, behind what others had in it: pieces that may go are chained. While a VQP
 * waits with a batch. */
void lane_batches_go_on(struct lane *l);
/* What of it is not out goes no more. */
void lane_batch_cancel(struct lane *l, struct session *s, struct batch *b);
/* A piece, or a marker, is over: it is neither queued nor out. */
void lane_batch_request_over(struct lane *l, struct wr *w, enum ibv_wc_status status,
                             uint32_t reason);

/* Of any request of a worker's, or a READ for one. */
static inline void batch_or_complete(struct lane *l, struct wr *w, enum ibv_wc_status status,
                                     uint32_t reason)
{
    if (w->special & SPECIAL_PULL)
        messages_pulled(l, w, status);
    else if (w->special & (SPECIAL_PIECE | SPECIAL_BATCH))
        lane_batch_request_over(l, w, status, reason);
    else
        lane_session_complete(l, w, status, reason);
}

#endif
