/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of a control core: a pairing heap of what is set, ordered by time and then by the order of
 * setting, so that the same calls always fire the same way. It needs no memory of its own. */
#include "base/assert.h"
#include "control/world.h"

static bool is_before(const struct world_timer *a, const struct world_timer *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->serial < b->serial;
}

/* Two heaps, each a root without siblings; NULL is the empty one. */
static struct world_timer *merge_heaps(struct world_timer *a, struct world_timer *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    if (is_before(b, a)) {
        struct world_timer *t = a;
        a = b;
        b = t;
    }
    b->next = a->child;
    if (b->next != NULL)
        b->next->prev = b;
    b->prev = a;
    a->child = b;
    return a;
}

/* The children of a root that goes, or of one that is taken out: merged in pairs from the left,
 * then from the right. Not recursive, since there may be as many as there are timers. */
static struct world_timer *merge_children(struct world_timer *first)
{
    struct world_timer *pairs = NULL, *heap = NULL;
    while (first != NULL) {
        struct world_timer *a = first, *b = a->next;
        first = b != NULL ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b != NULL)
            b->next = b->prev = NULL;
        a = merge_heaps(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct world_timer *next = pairs->next;
        pairs->next = NULL;
        heap = merge_heaps(heap, pairs);
        pairs = next;
    }
    return heap;
}

static void take_out(struct world *w, struct world_timer *t)
{
    struct world_timer *rest = merge_children(t->child);
    t->child = NULL;
    t->set = false;
    if (w->timers == t) {
        w->timers = rest;
        return;
    }
    if (t->prev->child == t)
        t->prev->child = t->next;
    else
        t->prev->next = t->next;
    if (t->next != NULL)
        t->next->prev = t->prev;
    t->next = t->prev = NULL;
    w->timers = merge_heaps(w->timers, rest);
}

static void set_alarm(struct world *w)
{
    w->ops->alarm(w, w->timers != NULL ? w->timers->due_ns : UINT64_MAX);
}

void world_timer_at(struct world *w, struct world_timer *t, uint64_t due_ns)
{
    const struct world_timer *first = w->timers;
    const uint64_t first_ns = first != NULL ? first->due_ns : UINT64_MAX;
    BASE_ASSERT(t->fired != NULL);
    if (t->set)
        take_out(w, t);
    t->due_ns = due_ns;
    t->serial = w->timer_serial++;
    t->set = true;
    w->timers = merge_heaps(w->timers, t);
    if (w->timers->due_ns != first_ns)
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
    const bool was_first = w->timers == t;
    take_out(w, t);
    if (was_first)
        set_alarm(w);
}

uint64_t world_timer_due_ns(const struct world_timer *t)
{
    return t->set ? t->due_ns : UINT64_MAX;
}

void world_timers_run(struct world *w)
{
    const uint64_t now_ns = world_now_ns(w), serial = w->timer_serial;
    /* One that is set meanwhile, and due at once, has a later time or serial than all before: time
     * does not go back, so nothing that was set before stands behind it. */
    while (w->timers != NULL && w->timers->due_ns <= now_ns && w->timers->serial < serial) {
        struct world_timer *t = w->timers;
        take_out(w, t);
        t->fired(t->user);
    }
    set_alarm(w);
}
