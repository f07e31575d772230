/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations of workers in the lane: how many are done in a pass, and whose. Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_CONTROL_OPS_H
#define LANE_CONTROL_OPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "schedule/fair_queue.h"

struct lane;
struct session;

/* A tenant at the lane's control operations (control_ops.c). */
struct control_tenant {
    struct turn turn;
    struct fair_queue sessions;
    uint64_t due_ns; /* what it was given so far is paid for then */
    uint8_t paused;
    TAILQ_ENTRY(control_tenant) by_pause;
};
TAILQ_HEAD(control_list, control_tenant);

void lane_controls_init(struct lane *l);
/* Whether the control operation that is next in s's ring may be taken: once in its turn. Else s
 * waits for that, and its ring is not looked at. *at_once: its turn has come with that, and ends
 * (lane_control_end_turn()) when it was taken. */
bool lane_control_enter(struct lane *l, struct session *s, bool *at_once);
/* In a pass some take their turn: it is that session's until its end, and what it takes is paid for
 * then. One, and what stands behind it in the ring up to the next one. NULL: no more in this pass.
 */
void lane_control_begin_pass(struct lane *l);
struct session *lane_control_begin_turn(struct lane *l);
void lane_control_end_turn(struct lane *l, struct session *s);
/* s has ended. */
void lane_control_forget(struct lane *l, struct session *s);
/* The tenant's place is another's from now on, with a whole budget; it has no sessions. */
void lane_control_forget_tenant(struct lane *l, uint32_t tenant_slot);
/* When a lane that sleeps has to go on with them. */
uint64_t lane_controls_due(const struct lane *l);

#endif
