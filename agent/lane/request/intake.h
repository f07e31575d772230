/* SPDX-License-Identifier: Apache-2.0 */
/* From workers' rings into the lane. Private to agent/lane, and the lane thread's.
 *
 * A tenant that is alone has some of each of its sessions taken in a pass. Where several tenants
 * are active a pass takes little, of each of them as much, and of a tenant's sessions by turns: so
 * a request waits for as long as a few of others take, however many sessions they come from. Where
 * one of them is sparse, which waits for each of its requests, it takes one. */
#ifndef LANE_INTAKE_H
#define LANE_INTAKE_H

#include "lane_state.h"
#include "request/active.h"
#include "request/ring_copy.h"
#include "request/session.h"

/* Takes some of the `avail` slots that its ring has, so many requests at most; avail: not 0, and as
 * its worker says. Returns how much; 1 too when its session ended for it. In post_run.c. */
uint32_t lane_session_take(struct lane *l, struct session *s, uint32_t avail, uint32_t most);
/* Takes the request at `head`, of `avail` slots, whatever it is. Returns how many slots it has. 0:
 * it cannot be taken now, or its session has ended for it. */
uint32_t lane_request_take(struct lane *l, struct session *s, uint32_t head, uint32_t avail);
/* Takes the control operations whose turn it is, and what stands behind them. */
void lane_intake_controls(struct lane *l);

/* How many slots of its ring are published and were not taken. The tail is not looked at while
 * there is none, or one with nothing behind it: then its line is the only one that comes from the
 * worker's processor. A library of before phases publishes by the tail alone, and what looks like a
 * phase of its worker's is not one, until something is published that has one. */
static inline uint32_t intake_avail(struct session *s)
{
    const uint32_t slots = slot_published(s, s->sq_head);
    if (s->look == LOOK_SLOT) {
        if (slots == 0)
            return 0;
        if ((slots & SCHEMA_SLOTS_MORE) == 0 && slot_published(s, s->sq_head + 1) == 0)
            return 1;
    }
    const uint32_t avail = session_waiting(s);
    s->phased |= avail > 0 && slots != 0;
    s->look = avail > 0 || !s->phased ? LOOK_TAIL : LOOK_SLOT;
    return avail > 0 ? avail : slots != 0 && s->phased;
}

/* Takes `most` requests at the most of what its ring has, as lane_session_take() does. */
static inline uint32_t intake_look(struct lane *l, struct session *s, uint32_t most)
{
    const uint32_t avail = intake_avail(s);
    return avail == 0 ? 0 : lane_session_take(l, s, avail, most);
}

/* A session's turn. One that has been silent for long goes to sleep. */
static inline uint32_t intake_turn(struct lane *l, struct session *s, uint32_t most)
{
    const uint32_t taken = intake_look(l, s, most);
    l->did += taken;
    if (l->doomed != NULL)
        lane_sessions_end_doomed(l);
    if (taken > 0 || session_inflight(s) > 0)
        s->worked_ns = l->now_ns;
    else if (l->now_ns - s->worked_ns > l->config.silent_ns)
        (void)lane_session_sleep(l, s);
    return taken;
}

void lane_intake_poll_shared(struct lane *l);

/* Takes some of what is in the rings of sessions that are polled. */
static inline void intake_poll(struct lane *l)
{
    if (lane_is_shared(l)) {
        lane_intake_poll_shared(l);
        return;
    }
    l->lets_go = LANE_TAKEN;
    const struct active_tenant *t = TAILQ_FIRST(&l->active_tenants);
    struct session *s = t != NULL ? TAILQ_FIRST(&t->sessions) : NULL;
    for (struct session *next; s != NULL; s = next) {
        next = TAILQ_NEXT(s, by_active); /* s alone may go to sleep */
        (void)intake_turn(l, s, l->batch);
    }
}

#endif
