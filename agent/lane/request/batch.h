/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: what a worker asks about them (docs/batches.md). Private to agent/lane, and the lane
 * thread's.
 *
 * A batch is filled from the ring, a few descriptors a turn, each copied once and checked against
 * the session's arenas then; a worker cannot change what is there. What may go when it is posted
 * (lease, key, incarnation, revocation) is looked at then, for each piece. */
#ifndef LANE_BATCH_H
#define LANE_BATCH_H

#include "lane_state.h"
#include "session_state.h"

/* BATCH_NEW, BATCH_READY, BATCH_CANCEL, BATCH_FREE: each is answered at once. */
void lane_batch_ask(struct lane *l, struct session *s, const struct schema_sq_desc *d);
/* BATCH_FILL; entries: batch.fill.count of them. */
void lane_batch_fill(struct lane *l, struct session *s, const struct schema_sq_desc *d,
                     const void *entries);
/* All that the session has, of which nothing is queued or out: it is over. */
void lane_batches_forget(struct lane *l, struct session *s);
/* Whether there is such a batch; else NULL. */
struct batch *lane_batch_find(const struct session *s, uint32_t number, uint32_t gen);
/* Another of enum batch_state. */
void lane_batch_move(struct batch *b, enum batch_state to);

#endif
