/* SPDX-License-Identifier: Apache-2.0 */
/* Taking turns by what each has had: of those that wait, the one that was served least goes first
 * (start-time fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996). Large and small requests are served
 * in proportion to their cost, not to their number, and no one saves up for later: who comes
 * (again) begins where the others are.
 *
 * The lane thread's. Members are their owner's memory and stay where they are while they wait.
 * Joining is O(1), and leaving O(log n) on the average (base/heap.h).
 *
 * Invariant: nobody that waits was served less than `now`, nor more than that and its own last
 * cost. */
#ifndef LANE_FAIR_QUEUE_H
#define LANE_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"

/* A member, which may wait. Zeroed to begin with. */
struct turn {
    /* Its key is what it was served, and its order is kept until it was served. 0: none yet. */
    struct base_heap_node node;
    const struct fair_queue *of; /* where it was served so much */
    bool waits;
};

/* Where they wait. Zeroed to begin with. */
struct fair_queue {
    struct base_heap waiting;
    uint64_t now; /* what the last one had been served when its turn came; never falls */
    uint64_t orders;
};

/* Whose turn it is; NULL: nobody waits. */
static inline struct turn *fair_queue_first(const struct fair_queue *q)
{
    return (struct turn *)q->waiting.first;
}
/* It waits nowhere. */
void lane_fair_queue_join(struct fair_queue *q, struct turn *t);
/* It waits here. Its place is kept if it comes back unserved. */
void lane_fair_queue_leave(struct fair_queue *q, struct turn *t);
/* t, first of those that waited here or the only one, is served. It may wait meanwhile. */
void lane_fair_queue_serve(struct fair_queue *q, struct turn *t, uint64_t cost);

#endif
