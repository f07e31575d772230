/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of a control core, ordered by time and then by the order of setting, so that the same
 * calls always fire the same way. */
#include "base/assert.h"
#include "control/world.h"

/* The earliest; NULL: none is set. */
static struct world_timer *first_timer(const struct world *w)
{
    return (struct world_timer *)w->timers.first;
}

static void unset_timer(struct world *w, struct world_timer *t)
{
    base_heap_take_out(&w->timers, &t->node);
    t->set = false;
}

static uint64_t first_due_ns(const struct world *w)
{
    const struct world_timer *first = first_timer(w);
    return first != NULL ? first->node.key : UINT64_MAX;
}

static void set_alarm(struct world *w)
{
    w->ops->alarm(w, first_due_ns(w));
}

void world_timer_at(struct world *w, struct world_timer *t, uint64_t due_ns)
{
    const uint64_t first_ns = first_due_ns(w);
    BASE_ASSERT(t->fired != NULL);
    if (t->set)
        unset_timer(w, t);
    t->node.key = due_ns;
    t->node.order = w->timer_serial++;
    t->set = true;
    base_heap_add(&w->timers, &t->node);
    if (first_due_ns(w) != first_ns)
        set_alarm(w);
}

void world_timer_after(struct world *w, struct world_timer *t, uint64_t ns)
{
    world_timer_at(w, t, world_now_ns(w) + ns);
}

void world_timer_clear(struct world *w, struct world_timer *t)
{
    if (!t->set)
        return;
    const bool was_first = first_timer(w) == t;
    unset_timer(w, t);
    if (was_first)
        set_alarm(w);
}

uint64_t world_timer_due_ns(const struct world_timer *t)
{
    return t->set ? t->node.key : UINT64_MAX;
}

void world_timers_run(struct world *w)
{
    const uint64_t now_ns = world_now_ns(w), serial = w->timer_serial;
    /* One that is set meanwhile, and due at once, has a later time or serial than all before: time
     * does not go back, so nothing that was set before stands behind it. */
    struct world_timer *t;
    while ((t = first_timer(w)) != NULL && t->node.key <= now_ns && t->node.order < serial) {
        unset_timer(w, t);
        t->fired(t->user);
    }
    set_alarm(w);
}
