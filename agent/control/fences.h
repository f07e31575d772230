/* SPDX-License-Identifier: Apache-2.0 */
/* Fences: what tells a lane that the device carries out nothing of a region any more. Control
 * thread. */
#ifndef CONTROL_FENCES_H
#define CONTROL_FENCES_H

#include <stdint.h>

struct lane_event;
struct pool;

/* A lane wants one (LANE_EVENT_WANT_FENCE), and hears when it is over. */
void agent_fence_begin(struct pool *p, const struct lane_event *e);
/* Now and then: those that the device did not carry out are asked again. */
void agent_fences_again(struct pool *p);
uint64_t agent_fences_due_ns(const struct pool *p);
/* The pool ends: nobody wants these any more. */
void agent_fences_forget(struct pool *p);

#endif
