/* SPDX-License-Identifier: Apache-2.0 */
/* Which sessions are polled, and which sleep. Private to agent/lane, and the lane thread's. */
#ifndef LANE_ACTIVE_H
#define LANE_ACTIVE_H

#include "lane_state.h"
#include "session_state.h"

/* A tenant's sessions that are polled, the one whose turn it is first. */
struct active_tenant {
    struct session_list sessions;
    uint32_t count;
    _Atomic uint32_t out; /* requests of all its sessions that were taken and are not over */
    /* intake.c: how much was left in the ring that was looked at last; from which turn of busy
     * tenants on it is preferred again. */
    uint32_t left;
    uint64_t due_turn;
    struct session_list sleepers;        /* whose workers are to be woken (reply.c) */
    uint64_t wakes_rest_ns;              /* before which none of these is */
    struct session_list stalled;         /* that sleep without room, for the longest first */
    TAILQ_ENTRY(active_tenant) by_turn;  /* while there are any */
    TAILQ_ENTRY(active_tenant) by_wakes; /* while there are sleepers */
    TAILQ_ENTRY(active_tenant) by_stall; /* while some are stalled */
};

static inline uint32_t active_out(const struct active_tenant *t)
{
    return atomic_load_explicit(&t->out, memory_order_relaxed);
}

static inline void active_count_out(struct active_tenant *t, int more)
{
    atomic_store_explicit(&t->out, active_out(t) + (uint32_t)more, memory_order_relaxed);
}

/* -ENOMEM. */
int lane_actives_new(struct lane *l);
void lane_actives_free(struct lane *l);
/* The tenant's place is another's from now on; it has no sessions. */
void lane_active_forget(struct lane *l, uint32_t tenant_slot);
void lane_session_activate(struct lane *l, struct session *s);
/* It is not among those that sleep without room any more. */
void lane_session_unstall(struct lane *l, struct session *s);
/* Some of these are polled again, by tenants' turns. */
void lane_sessions_unstall(struct lane *l);
/* It is polled no more. */
void lane_session_deactivate(struct lane *l, struct session *s);
/* Stops polling it, unless there is something to take: then false. */
bool lane_session_sleep(struct lane *l, struct session *s);
void lane_sessions_sleep(struct lane *l);
/* What is taken of each in a pass while one tenant alone is active, so that those of many do not
 * keep others' waiting: after more are active, and now and then. */
void lane_session_count_batch(struct lane *l);
/* Its leases are looked at in a later pass, after what was withdrawn in this one. */
void lane_session_await(struct lane *l, struct session *s);
/* In the list of those with something to wait for; or not any more. */
void lane_session_join_due(struct lane *l, struct session *s);
void lane_session_leave_due(struct lane *l, struct session *s);

/* It goes to another lane, or home from this one, when nothing of it is out (lodgers.h). Now: and
 * nothing more is taken; else nothing that it could not take anyway. */
void lane_session_leave_soon(struct lane *l, struct session *s);
void lane_session_leave_now(struct lane *l, struct session *s);

/* Room for one more request and its completion. A worker that never polls stops here, and sees a
 * full ring. */
static inline bool session_has_room(const struct session *s)
{
    return s->free_wr != NULL && s->cq_tail - s->cq_head + session_inflight(s) <= s->cq_mask;
}

/* Slots of its ring that by the tail are published and were not taken. What was taken by its phase,
 * a slot, may be ahead of the tail (schema/phase.h). */
static inline uint32_t session_waiting(const struct session *s)
{
    const uint32_t tail = atomic_load_explicit(&s->rw->sq_tail, memory_order_acquire);
    return s->sq_head - tail <= 1 ? 0 : tail - s->sq_head;
}

/* Looks anew at how far the worker has polled. False: it says what cannot be. */
static inline bool session_look_at_cq_head(struct session *s)
{
    s->cq_head = atomic_load_explicit(&s->rw->cq_head, memory_order_acquire);
    return s->cq_tail - s->cq_head <= s->cq_mask + 1;
}

#endif
