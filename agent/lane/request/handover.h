/* SPDX-License-Identifier: Apache-2.0 */
/* The processor is handed over to a worker that runs where the lane does. Private to agent/lane,
 * and the lane thread's.
 *
 * A worker's page says where it runs. Where that is the lane's own processor, a lane that polls on
 * after it has answered keeps it from the worker, which alone could give it something to do. So
 * the lane sleeps then, at once: whatever comes wakes it.
 *
 * The page may lie, or say what was so a while ago. So nobody is handed the processor while another
 * session is polled whose worker runs elsewhere, or has not said where: this one would have to wake
 * the lane, where it is awake for it. Who has been silent for longer than silent_ns is not polled,
 * and rings a doorbell whether the lane sleeps or not. */
#ifndef LANE_HANDOVER_H
#define LANE_HANDOVER_H

#include "lane_state.h"
#include "session_state.h"

enum { HANDOVER_LOOKS = 16 /* at other sessions that are polled: with more none gets it */ };

/* What was published to it was for a worker on this processor, or not. */
void lane_handover_answered(struct lane *l, struct session *s);
/* The lane sleeps now: until then it is to try again, where something kept it from its sleep. */
void lane_handover_slept(struct lane *l);
/* Its worker is told where the lane runs. */
static inline void handover_show(const struct lane *l, struct session *s)
{
    if (s->shown_cpu == l->handover.cpu)
        return;
    s->shown_cpu = l->handover.cpu;
    atomic_store_explicit(&s->ro->lane_cpu, l->handover.cpu, memory_order_relaxed);
}

#endif
