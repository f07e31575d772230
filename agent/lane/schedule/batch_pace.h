/* SPDX-License-Identifier: Apache-2.0 */
/* How much of batches is out at a time, of all of a lane's together: what others post stands behind
 * it, on the same queue pair or at the same port. Private to agent/lane, and the lane thread's.
 *
 * Others are whoever posts anything else. For a while after their last request they stand behind
 * what the port carries in the time that a piece takes to the peer and back, so that a request of
 * theirs takes twice as long as alone and no more. That is also as much as keeps the port busy:
 * with less it would be idle until a piece is back, and more would only queue there. The time is
 * measured, as TCP BBR has it: the least of late, from when the port has carried it. It is each
 * peer's own. What is out to a peer counts as the part that it is of what the port carries in that
 * peer's time: so near and far peers together have as much as keeps the port busy, and the far ones
 * no less of it.
 * Where there are no others as much is out as the port carries in 20 us, and two pieces at least,
 * which somebody who comes stands behind once. One piece is out in any case; where the port's rate
 * is not known, one of 1 KiB beside others.
 *
 * Pieces go at the end of a pass, when what others had in it is told to them. So on a device that
 * carries out what is posted at its doorbell, as soft does, a piece goes while they make up their
 * next request, and that one is taken before anything is done about the piece that is over.
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
/* How many bytes they have at the most then, and how many of all to a peer (its place in the table
 * of peers) are made at a time. */
uint64_t lane_batch_pace_piece(const struct lane *l);
uint64_t lane_batch_pace_ahead(struct lane *l, uint32_t peer);
/* At the end of a pass: pieces go until it is closed. Whether they are short. */
bool lane_batch_pace_open(struct lane *l);
static inline void batch_pace_close(struct lane *l)
{
    l->batches.pace.opens = 0;
}
/* Somebody waits with a batch, and nothing of batches is out that would let him go on. */
static inline bool batch_pace_goes_on(const struct lane *l)
{
    return l->batching.count > 0 && l->batches.pace.out == 0;
}
/* What is out leaves room for w, a piece or a marker. False: its tenant waits for that. */
bool lane_batch_pace_has_room(struct lane *l, const struct wr *w);
/* NOTHING: w may be posted. */
enum vqp_wait lane_batch_pace_ask(struct lane *l, const struct wr *w);
/* It is; and is out no more, `well` when it was carried out. */
void lane_batch_pace_posted(struct lane *l, const struct wr *w);
void lane_batch_pace_back(struct lane *l, const struct wr *w, bool well);

#endif
