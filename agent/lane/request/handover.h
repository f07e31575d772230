/* SPDX-License-Identifier: Apache-2.0 */
/* The processor is handed over to a worker that runs where the lane does. Private to agent/lane,
 * and the lane thread's.
 *
 * A worker's page says where it runs. Where that is the lane's own processor, a lane that polls on
 * after it has answered keeps it from the worker, which alone could give it something to do. So
 * the lane sleeps then, at once: whatever comes wakes it.
 *
 * The page may lie, or say what was so a while ago. Whoever is polled and runs elsewhere has to
 * wake the lane then, where it would have found it awake: that is counted as harm, whether the page
 * lied or not, and pays for itself: for a while nobody is handed the processor, and the session
 * that it was handed to for longer with each time. Of 20,000 requests a second, below which a lane
 * sleeps between them anyway, it is one in 200 that meets such a sleep. */
#ifndef LANE_HANDOVER_H
#define LANE_HANDOVER_H

#include "lane_state.h"
#include "session_state.h"

enum {
    HANDOVER_REST_MS = 10,         /* after harm, to anybody */
    HANDOVER_SESSION_REST_MS = 20, /* to that session, and twice as long each time */
    HANDOVER_MOST_DOUBLED = 9,
    HANDOVER_RIGHTS = 256 /* on end, to its own doorbell alone: what was is forgotten */
};

/* What was published to it was for a worker on this processor, or not. */
void lane_handover_answered(struct lane *l, struct session *s);
/* It has rung, with something new. */
void lane_handover_rung(struct lane *l, struct session *s);
/* The lane sleeps now: until then it is to try again, where something kept it from its sleep. */
void lane_handover_slept(struct lane *l);
/* Its worker is told where the lane runs. */
static inline void handover_show(const struct lane *l, struct session *s)
{
    if (s->handover.shown_cpu == l->handover.cpu)
        return;
    s->handover.shown_cpu = l->handover.cpu;
    atomic_store_explicit(&s->ro->lane_cpu, l->handover.cpu, memory_order_relaxed);
}

#endif
