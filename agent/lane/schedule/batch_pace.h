/* SPDX-License-Identifier: Apache-2.0 */
/* How much of batches is out at a time, of all of a lane's together: what others post stands behind
 * it, on the same queue pair or at the same port. Private to agent/lane, and the lane thread's.
 *
 * Others are whoever posts anything else. For a while after their last request they stand behind
 * what the port carries in 8 us, and pieces are short; pieces go in no pass in which something of
 * theirs went, but for every second, so that they are never without a part. Where there are no
 * others as much is out as keeps the port busy, what it carries in 20 us and two pieces at least,
 * which somebody who comes stands behind once. One piece is out in any case.
 *
 * What is out is on the wire for a round trip, 5 to 10 us, and nobody stands behind that: less than
 * is carried in a round trip shortens nobody's wait, and leaves the port idle.
 *
 * Where as much is out as may be, the tenant that waits and has had no piece for longest has the
 * next one, however many batches others have. */
#ifndef LANE_BATCH_PACE_H
#define LANE_BATCH_PACE_H

#include "lane_state.h"
#include "schedule/wait.h"
#include "transmit/wr.h"

/* A batch begins, and its first pieces are made now. */
void lane_batch_pace_begin(struct lane *l);
/* Whether pieces are short. */
static inline bool batch_pace_is_beside(const struct lane *l)
{
    return l->now_ns < l->batches.pace.beside_until_ns;
}
/* NOTHING: w, a piece, may be posted. */
enum vqp_wait lane_batch_pace_ask(struct lane *l, const struct wr *w);
/* It is; and is out no more. */
void lane_batch_pace_posted(struct lane *l, const struct wr *w);
void lane_batch_pace_back(struct lane *l, const struct wr *w);

#endif
