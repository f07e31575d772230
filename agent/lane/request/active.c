/* SPDX-License-Identifier: Apache-2.0 */
#include "request/active.h"

#include <errno.h>
#include <stdlib.h>

#include "lane_state.h"
#include "request/handover.h"
#include "schedule/vqp.h"
#include "session_state.h"

enum { UNSTALLS = 32 /* sessions, in a millisecond */ };

static void active_init(struct active_tenant *t)
{
    TAILQ_INIT(&t->sessions);
    TAILQ_INIT(&t->sleepers);
    TAILQ_INIT(&t->stalled);
}

int lane_actives_new(struct lane *l)
{
    TAILQ_INIT(&l->active_tenants);
    TAILQ_INIT(&l->stalled);
    TAILQ_INIT(&l->wakes);
    l->actives = calloc(l->config.max_tenants, sizeof l->actives[0]);
    if (l->actives == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < l->config.max_tenants; i++)
        active_init(&l->actives[i]);
    return 0;
}

void lane_actives_free(struct lane *l)
{
    free(l->actives);
}

void lane_active_forget(struct lane *l, uint32_t tenant_slot)
{
    struct active_tenant *t = &l->actives[tenant_slot];
    t->left = 0;
    t->due_turn = 0;
    t->wakes_rest_ns = 0;
}

void lane_session_count_batch(struct lane *l)
{
    l->batch = LANE_BATCH;
    if (l->active_count > LANE_TAKEN / LANE_BATCH)
        l->batch = l->active_count < LANE_TAKEN ? LANE_TAKEN / l->active_count : 1;
}

static void stall_session(struct lane *l, struct session *s)
{
    struct active_tenant *t = s->of;
    s->stalled = 1;
    if (TAILQ_EMPTY(&t->stalled))
        TAILQ_INSERT_TAIL(&l->stalled, t, by_stall);
    TAILQ_INSERT_TAIL(&t->stalled, s, by_stalled);
}

void lane_session_unstall(struct lane *l, struct session *s)
{
    struct active_tenant *t = s->of;
    if (!s->stalled)
        return;
    s->stalled = 0;
    TAILQ_REMOVE(&t->stalled, s, by_stalled);
    if (TAILQ_EMPTY(&t->stalled))
        TAILQ_REMOVE(&l->stalled, t, by_stall);
}

/* One of each tenant in turn. */
void lane_sessions_unstall(struct lane *l)
{
    for (uint32_t n = 0; n < UNSTALLS && !TAILQ_EMPTY(&l->stalled); n++) {
        struct active_tenant *t = TAILQ_FIRST(&l->stalled);
        COUNT(l, walked, 1);
        TAILQ_REMOVE(&l->stalled, t, by_stall);
        TAILQ_INSERT_TAIL(&l->stalled, t, by_stall);
        lane_session_activate(l, TAILQ_FIRST(&t->stalled));
    }
}

void lane_session_activate(struct lane *l, struct session *s)
{
    s->worked_ns = l->now_ns;
    s->look = LOOK_TAIL;
    lane_session_unstall(l, s);
    if (s->active || s->leaves || s->state != SESSION_LIVE)
        return;
    struct active_tenant *t = &l->actives[s->tenant_slot];
    s->active = 1;
    TAILQ_INSERT_TAIL(&t->sessions, s, by_active);
    if (t->count++ == 0) {
        TAILQ_INSERT_TAIL(&l->active_tenants, t, by_turn);
        l->active_tenant_count++;
    }
    l->active_count++;
    lane_session_count_batch(l);
    handover_show(l, s);
    atomic_store_explicit(&s->ro->doorbell, 0, memory_order_relaxed);
}

void lane_session_deactivate(struct lane *l, struct session *s)
{
    struct active_tenant *t = &l->actives[s->tenant_slot];
    if (!s->active)
        return;
    s->active = 0;
    l->active_count--;
    TAILQ_REMOVE(&t->sessions, s, by_active);
    if (--t->count > 0)
        return;
    TAILQ_REMOVE(&l->active_tenants, t, by_turn);
    l->active_tenant_count--;
}

void lane_session_await(struct lane *l, struct session *s)
{
    s->due_ns = 0; /* the clock is read in a later pass, after what was withdrawn */
    lane_session_join_due(l, s);
}

void lane_session_join_due(struct lane *l, struct session *s)
{
    if (s->in_due)
        return;
    s->in_due = 1;
    TAILQ_INSERT_TAIL(&l->due, s, by_due);
    l->due_count++;
}

void lane_session_leave_due(struct lane *l, struct session *s)
{
    if (!s->in_due)
        return;
    s->in_due = 0;
    TAILQ_REMOVE(&l->due, s, by_due);
    l->due_count--;
}

void lane_session_leave_soon(struct lane *l, struct session *s)
{
    s->leaves = 1;
    lane_session_await(l, s);
}

void lane_session_leave_now(struct lane *l, struct session *s)
{
    lane_session_unstall(l, s);
    lane_session_deactivate(l, s);
    lane_session_leave_soon(l, s);
}

/* Flag, barrier, one more look (session.h; held to tests/model/doorbell.pml). A worker that does
 * not poll its completions, and so has requests for which there is no room, is looked at again now
 * and then: it need not ring when it polls at last. */
bool lane_session_sleep(struct lane *l, struct session *s)
{
    if (s->leaves) { /* a lodger: what is in its ring is taken at home */
        lane_session_deactivate(l, s);
        return true;
    }
    atomic_store_explicit(&s->ro->doorbell, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (s->state == SESSION_LIVE && s->control_op == 0 && session_waiting(s) != 0) {
        const bool waits = s->waits_for != NULL && vqp_is_busy(s->waits_for);
        if (!session_look_at_cq_head(s) || (session_has_room(s) && !waits)) {
            atomic_store_explicit(&s->ro->doorbell, 0, memory_order_relaxed);
            s->look = LOOK_TAIL; /* what it has published may not say so at its head */
            return false;
        }
        stall_session(l, s);
    }
    lane_session_deactivate(l, s);
    return true;
}

void lane_sessions_sleep(struct lane *l)
{
    struct active_tenant *t = TAILQ_FIRST(&l->active_tenants), *next_tenant;
    for (; t != NULL; t = next_tenant) {
        next_tenant = TAILQ_NEXT(t, by_turn);
        for (struct session *s = TAILQ_FIRST(&t->sessions), *next; s != NULL; s = next) {
            next = TAILQ_NEXT(s, by_active);
            (void)lane_session_sleep(l, s);
        }
    }
}
