/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions whose requests another lane of the pool carries out, so that lanes which have become
 * uneven are even again. Private to agent/lane, and the lane thread's.
 *
 * A session has one lane for as long as it lives, its home, which has its memory, its regions and
 * what peers believe of them. What moves is the ring, and the doorbell with it: another lane takes
 * READs, WRITEs and atomics from it as a lodger's, and posts them by its own queue pairs. Anything
 * else that a worker asks for takes the lodger home; there it is done. One that falls silent sleeps
 * where it lodges, and wakes there.
 *
 * It goes when nothing of it is out, so that what a virtual queue pair has posted before is over
 * before anything is posted by another queue pair: the transfer of KRCore's Algorithm 1, as in
 * resolve/hybrid.h. In between nobody takes from the ring, and nothing is lost: the indices are
 * handed over. At any time one lane alone writes what the worker reads. */
#ifndef LANE_LODGERS_H
#define LANE_LODGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "lane_state.h"

/* At home. Nothing more is taken of it, and SESSION_LEFT follows. */
void lane_session_leave(struct lane *l, struct session *s);
/* It is here again, and goes on, or ends if the other lane has said so. */
void lane_session_back(struct lane *l, struct session *s);
/* Elsewhere. */
void lane_lodger_add(struct lane *l, const struct lane_session *add);
void lane_lodger_return(struct lane *l, uint32_t lodger, bool hurry);

/* Of one that leaves: whether it has, or does not any more. */
bool lane_session_has_left(struct lane *l, struct session *s);
/* It is to end. A lodger does so at home, and what it has queued goes no more. */
void lane_session_leave_is_off(struct lane *l, struct session *s, uint32_t reason);

#endif
