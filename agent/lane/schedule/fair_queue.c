/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/fair_queue.h"

#include <stddef.h>

#include "base/assert.h"

static bool goes_before(const struct turn *a, const struct turn *b)
{
    return a->served != b->served ? a->served < b->served : a->order < b->order;
}

/* Two heaps (or NULL) become one. */
static struct turn *meld_heaps(struct turn *a, struct turn *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    if (goes_before(b, a)) {
        struct turn *swap = a;
        a = b;
        b = swap;
    }
    b->prev = a;
    b->next = a->child;
    if (b->next != NULL)
        b->next->prev = b;
    a->child = b;
    return a;
}

/* Siblings become one heap: in pairs from the left, then the pairs from the right. */
static struct turn *meld_all(struct turn *t)
{
    struct turn *pairs = NULL, *all = NULL;
    while (t != NULL) {
        struct turn *a = t, *b = t->next;
        t = b != NULL ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b != NULL)
            b->next = b->prev = NULL;
        a = meld_heaps(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct turn *a = pairs;
        pairs = a->next;
        a->next = NULL;
        all = meld_heaps(all, a);
    }
    return all;
}

static void insert_turn(struct fair_queue *q, struct turn *t)
{
    if (t->order == 0)
        t->order = ++q->orders;
    q->first = meld_heaps(q->first, t);
}

static void take_out(struct fair_queue *q, struct turn *t)
{
    struct turn *children = t->child;
    t->child = NULL;
    if (t == q->first) {
        q->first = meld_all(children);
        return;
    }
    if (t->prev->child == t)
        t->prev->child = t->next;
    else
        t->prev->next = t->next;
    if (t->next != NULL)
        t->next->prev = t->prev;
    t->next = t->prev = NULL;
    q->first = meld_heaps(q->first, meld_all(children));
}

/* What it was served elsewhere says nothing here. */
static void catch_up(const struct fair_queue *q, struct turn *t)
{
    if (t->of != q) {
        t->of = q;
        t->served = q->now;
        t->order = 0;
    }
    if (t->served < q->now)
        t->served = q->now;
}

void fair_queue_join(struct fair_queue *q, struct turn *t)
{
    BASE_ASSERT(!t->waits);
    t->waits = true;
    catch_up(q, t);
    insert_turn(q, t);
}

void fair_queue_leave(struct fair_queue *q, struct turn *t)
{
    BASE_ASSERT(t->waits && t->of == q);
    t->waits = false;
    take_out(q, t);
}

void fair_queue_serve(struct fair_queue *q, struct turn *t, uint64_t cost)
{
    bool waits = t->waits;
    if (waits)
        fair_queue_leave(q, t);
    catch_up(q, t);
    q->now = t->served;
    t->served += cost;
    t->order = 0;
    if (waits)
        fair_queue_join(q, t);
}
