/* SPDX-License-Identifier: Apache-2.0 */
/* VQPs that wait for room in a queue pair: private to agent/lane, and the lane thread's. */
#ifndef LANE_ROOM_H
#define LANE_ROOM_H

#include "lane_state.h"
#include "schedule/vqp.h"
#include "transmit/physical_qp.h"

void lane_rooms_init(struct lane *l);
static inline bool room_passes(const struct physical_qp *p, uint64_t length)
{
    return p != NULL && physical_qp_works(p) && p->tail - p->head < p->pass_ops &&
           p->bytes + length <= p->pass_bytes;
}
/* Where that says no. NOTHING: w may be posted all the same, since it is q's turn or there is room
 * again. ROOM: q waits for it there. Else what q is to wait for. */
enum vqp_wait lane_room_enter(struct lane *l, struct vqp *q, struct physical_qp *p,
                              const struct wr *w);
/* Whether q's turn at a room is what its request is tried for. */
static inline bool room_is_turn(const struct lane *l, const struct vqp *q)
{
    return l->turn_vqp == q;
}
/* In its turn q is done with a request of that length. Of a tenant's VQPs the one that has only had
 * a record READ has had nothing yet: it comes first again, before others of that tenant, which may
 * want theirs, have the place of that record. */
void lane_room_charge(const struct lane *l, struct vqp *q, uint64_t length);
/* q waits for room no more. */
void lane_room_quit(struct lane *l, struct vqp *q);

/* A round (rounds.c). The least served tenant's least served VQP that waits there, or NULL. */
struct vqp *lane_room_first(const struct lane *l, const struct physical_qp *p);
/* It waits there no more, and may go on: it is its turn until lane->turn_vqp is set to NULL. False:
 * its request does not fit. A smaller one behind it may not overtake it, which would wait for ever.
 */
bool lane_room_begin_turn(struct lane *l, struct physical_qp *p, struct vqp *q);

#endif
