/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/fair_queue.h"

#include "base/assert.h"

static void insert_turn(struct fair_queue *q, struct turn *t)
{
    if (t->node.order == 0)
        t->node.order = ++q->orders;
    base_heap_add(&q->waiting, &t->node);
}

/* What it was served elsewhere says nothing here. */
static void catch_up(const struct fair_queue *q, struct turn *t)
{
    if (t->of != q) {
        t->of = q;
        t->node.key = q->now;
        t->node.order = 0;
    }
    if (t->node.key < q->now)
        t->node.key = q->now;
}

void lane_fair_queue_join(struct fair_queue *q, struct turn *t)
{
    BASE_ASSERT(!t->waits);
    t->waits = true;
    catch_up(q, t);
    insert_turn(q, t);
}

void lane_fair_queue_leave(struct fair_queue *q, struct turn *t)
{
    BASE_ASSERT(t->waits && t->of == q);
    t->waits = false;
    base_heap_take_out(&q->waiting, &t->node);
}

void lane_fair_queue_serve(struct fair_queue *q, struct turn *t, uint64_t cost)
{
    bool waits = t->waits;
    if (waits)
        lane_fair_queue_leave(q, t);
    catch_up(q, t);
    q->now = t->node.key;
    t->node.key += cost;
    t->node.order = 0;
    if (waits)
        lane_fair_queue_join(q, t);
}
