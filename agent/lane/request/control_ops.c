/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations: a few of all in a pass, one of a session, whatever workers ask, so that those
 * who READ and WRITE are not held up by those who connect, register or import. Where one tenant
 * alone is active they are some more, several of a session in a row: hundreds of workers that all
 * connect to each other have their queue pairs in a few passes, and what they post on them
 * completes together, and not in a pass and with a wake each.
 *
 * A session whose next descriptor is one waits for its turn, and its ring is not looked at
 * meanwhile. Tenants take turns, and of a tenant its sessions. Beside others a tenant also has a
 * budget; when it is used up its sessions wait until there is more. Nothing is refused for that:
 * honest workers ask for much when they begin, and get it a little later when others work, at once
 * when nobody does. (What operators set, control_ops_per_s, refuses: quota.c.)
 *
 * Where one tenant alone is active and nobody waits, the turn of who asks has come when it asks: it
 * is of those of the pass, and is paid for, but its ring is not read twice.
 *
 * A lookup costs many times what other operations do, in turns and of the budget. */
#include "request/control_ops.h"

#include <stddef.h>

#include "base/assert.h"
#include "lane_state.h"
#include "request/active.h"
#include "schedule/fair_queue.h"
#include "session_state.h"

#define OWNER(type, member, at) ((type *)(void *)((char *)(at)-offsetof(type, member)))

enum {
    IN_A_PASS_SHARED = 2,
    IN_A_PASS = 32,
    IN_A_TURN = 16, /* of one session, in a row */
    UNIT_NS = 5000, /* for each unit of its budget, beside others */
    BURST = 20000,  /* units, which may be used at once */
    LOOKUP_UNITS = 16
};
static const uint64_t BURST_NS = (uint64_t)BURST * UNIT_NS;

void lane_controls_init(struct lane *l)
{
    TAILQ_INIT(&l->paused);
}

static struct control_tenant *tenant_of(const struct lane *l, const struct session *s)
{
    return &l->control_tenants[s->tenant_slot];
}

static uint64_t count_lookups(const struct lane *l)
{
    return atomic_load_explicit(&l->counters.endpoint_reads, memory_order_relaxed) +
           atomic_load_explicit(&l->counters.name_reads, memory_order_relaxed);
}

/* The turns of a pass, once. */
static void give_turns(struct lane *l)
{
    const uint64_t pass = atomic_load_explicit(&l->counters.passes, memory_order_relaxed);
    if (l->control_pass != pass)
        l->control_turns = lane_is_shared(l) ? IN_A_PASS_SHARED : IN_A_PASS;
    l->control_pass = pass;
}

static void begin_turn(struct lane *l)
{
    l->control_turns--;
    l->control_units = 1;
    l->control_in_row = 0;
    l->control_lookups = count_lookups(l);
}

/* One more of the session whose turn it is, behind what it has had. */
static bool may_go_on(struct lane *l)
{
    if (l->control_in_row == 0)
        return true; /* its first, which its turn began with */
    if (lane_is_shared(l) || l->control_turns == 0 || l->control_units >= IN_A_TURN)
        return false;
    l->control_turns--;
    l->control_units++;
    return true;
}

/* One of a session in a pass, also of one whose turn it is: that has control_units already. */
static bool may_go_at_once(struct lane *l, const struct session *s)
{
    if (lane_is_shared(l) || l->control_units != 0 || s->control_ns == l->now_ns ||
        fair_queue_first(&l->controls) != NULL || !TAILQ_EMPTY(&l->paused))
        return false;
    give_turns(l);
    return l->control_turns > 0;
}

bool lane_control_enter(struct lane *l, struct session *s, bool *at_once)
{
    struct control_tenant *t = tenant_of(l, s);
    *at_once = false;
    if (l->control_session == s && may_go_on(l)) {
        l->control_in_row++;
        return true;
    }
    if (l->control_session == s)
        l->control_session = NULL; /* this one waits again */
    BASE_ASSERT(s->control_op == 0);
    if (may_go_at_once(l, s)) {
        *at_once = true;
        s->control_ns = l->now_ns;
        begin_turn(l);
        l->control_in_row = 1;
        return true;
    }
    session_hold(s, LANE_CONTROL_WAITS);
    s->control_ns = l->now_ns;
    lane_fair_queue_join(&t->sessions, &s->control_turn);
    if (!t->paused && !t->turn.waits)
        lane_fair_queue_join(&l->controls, &t->turn);
    return false;
}

static void leave_turns(struct lane *l, struct session *s)
{
    struct control_tenant *t = tenant_of(l, s);
    session_hold(s, 0);
    lane_fair_queue_leave(&t->sessions, &s->control_turn);
    if (fair_queue_first(&t->sessions) != NULL)
        return;
    if (t->paused)
        TAILQ_REMOVE(&l->paused, t, by_pause);
    else
        lane_fair_queue_leave(&l->controls, &t->turn);
    t->paused = 0;
}

void lane_control_forget(struct lane *l, struct session *s)
{
    if (s->control_op == LANE_CONTROL_WAITS)
        leave_turns(l, s);
}

void lane_control_forget_tenant(struct lane *l, uint32_t tenant_slot)
{
    struct control_tenant *t = &l->control_tenants[tenant_slot];
    BASE_ASSERT(fair_queue_first(&t->sessions) == NULL && !t->paused && !t->turn.waits);
    *t = (struct control_tenant){.due_ns = 0};
}

/* Nobody is there whom it would hold up. */
static bool is_alone(const struct lane *l, const struct control_tenant *t)
{
    return l->active_count <= l->actives[t - l->control_tenants].count;
}

static bool has_budget(const struct lane *l, const struct control_tenant *t)
{
    return t->due_ns <= l->now_ns + BURST_NS || is_alone(l, t);
}

static void pause_tenant(struct lane *l, struct control_tenant *t)
{
    lane_fair_queue_leave(&l->controls, &t->turn);
    t->paused = 1;
    COUNT(l, control_pauses, 1);
    TAILQ_INSERT_TAIL(&l->paused, t, by_pause);
}

static void unpause_tenants(struct lane *l)
{
    struct control_tenant *t = TAILQ_FIRST(&l->paused), *next;
    for (; t != NULL; t = next) {
        next = TAILQ_NEXT(t, by_pause);
        if (!has_budget(l, t))
            continue;
        t->paused = 0;
        TAILQ_REMOVE(&l->paused, t, by_pause);
        lane_fair_queue_join(&l->controls, &t->turn);
    }
}

static void pay_units(struct lane *l, struct control_tenant *t, uint64_t units)
{
    t->due_ns = (t->due_ns > l->now_ns ? t->due_ns : l->now_ns) + units * UNIT_NS;
    if (is_alone(l, t) && t->due_ns > l->now_ns + BURST_NS)
        t->due_ns = l->now_ns + BURST_NS;
}

void lane_control_begin_pass(struct lane *l)
{
    give_turns(l);
    if (!TAILQ_EMPTY(&l->paused))
        unpause_tenants(l);
}

struct session *lane_control_begin_turn(struct lane *l)
{
    while (l->control_turns > 0 && fair_queue_first(&l->controls) != NULL) {
        struct control_tenant *t =
            OWNER(struct control_tenant, turn, fair_queue_first(&l->controls));
        if (!has_budget(l, t)) {
            pause_tenant(l, t);
            continue;
        }
        struct session *s = OWNER(struct session, control_turn, fair_queue_first(&t->sessions));
        leave_turns(l, s);
        l->control_session = s;
        begin_turn(l);
        return s;
    }
    return NULL;
}

void lane_control_end_turn(struct lane *l, struct session *s)
{
    struct control_tenant *t = tenant_of(l, s);
    l->control_session = NULL;
    s->worked_ns = l->now_ns;
    const uint64_t looked_up = count_lookups(l) != l->control_lookups ? LOOKUP_UNITS - 1 : 0;
    const uint64_t units = l->control_units + looked_up;
    /* What one of many imports has done beside them is of the pass too. */
    const uint32_t beyond =
        l->control_units > l->control_in_row ? l->control_units - l->control_in_row : 0;
    l->control_turns -= beyond < l->control_turns ? beyond : l->control_turns;
    l->control_units = 0;
    pay_units(l, t, units);
    lane_fair_queue_serve(&l->controls, &t->turn, units);
    lane_fair_queue_serve(&t->sessions, &s->control_turn, units);
}

uint64_t lane_controls_due(const struct lane *l)
{
    uint64_t due = fair_queue_first(&l->controls) != NULL ? l->now_ns : LANE_NEVER;
    const struct control_tenant *t;
    TAILQ_FOREACH(t, &l->paused, by_pause)
        due = t->due_ns - BURST_NS < due ? t->due_ns - BURST_NS : due;
    return due;
}
