/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of a control core, in its world's time. Control thread. */
#ifndef CONTROL_TIMER_H
#define CONTROL_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"

struct world;

/* A timer, embedded in what it is for. All zero is one that is not set. It must be cleared before
 * its memory goes. */
struct world_timer {
    struct base_heap_node node; /* private: by when it is due, and in which order it was set */
    void (*fired)(void *user);  /* the timer is not set any more, and may be set again */
    void *user;
    bool set; /* private */
};

/* Fires once, at that time or soon after; one that is set already is set anew. */
void world_timer_at(struct world *w, struct world_timer *t, uint64_t due_ns);
void world_timer_after(struct world *w, struct world_timer *t, uint64_t ns);
/* Nothing if it is not set. */
void world_timer_clear(struct world *w, struct world_timer *t);
/* UINT64_MAX: it is not set. */
uint64_t world_timer_due_ns(const struct world_timer *t);
/* For the world: fires all that are due, in the order of their times and then of their setting.
 * What is set meanwhile fires in another run at the earliest. */
void world_timers_run(struct world *w);

#endif
