/* SPDX-License-Identifier: Apache-2.0 */
/* VQPs whose head waits, other than at a window (window.h) or for room in a queue pair (room.h).
 * Private to agent/lane, and the lane thread's.
 *
 * What others have too (a place to READ into, a connection) is waited for in the lane's one list,
 * which is looked at as a whole when some of that comes back. A VQP that waits for its own endpoint
 * alone (its record, a path, a region's record, that it answers, its own completions) waits in that
 * flow's list: thousands that wait for silent endpoints cost nobody else anything. Only news of the
 * endpoint (lane_flow_notify()) let those go on; that some are tried now and then all the same is
 * for what time alone changes, as when an endpoint becomes suspect.
 *
 * Invariant: a VQP with a queue is in one of these lists, or waits at a window or for room, or its
 * session is to end. Of a round no more is left than are blocked: a VQP that leaves by another way
 * leaves it too. */
#ifndef LANE_WAIT_QUEUE_H
#define LANE_WAIT_QUEUE_H

#include "lane_state.h"
#include "schedule/vqp.h"

void lane_wait_queue_init(struct lane *l);
/* Of one in the lane's list: it has had something in this round, and waits to its end, for the
 * same.
 */
void lane_wait_queue_serve(struct lane *l, struct vqp *q);
/* Those who have had something wait behind those who have not, all at once, however many they are.
 */
void lane_wait_queue_end_round(struct lane *l);
/* For something of PLACE_ENDPOINT, of the flow that it has, or of PLACE_LANE. It waits for nothing
 * else any more. */
void lane_vqp_wait_for(struct lane *l, struct vqp *q, enum vqp_wait why);
/* Something of its own is over: it waits, and is tried in the next round. */
void lane_vqp_wake(struct lane *l, struct vqp *q);
/* It is in none of these lists. */
void lane_vqp_unblock(struct lane *l, struct vqp *q);
/* It waits for nothing, and its head is in no window. */
void lane_vqp_stop_waiting(struct lane *l, struct vqp *q);

#endif
