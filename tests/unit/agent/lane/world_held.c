/* SPDX-License-Identifier: Apache-2.0 */
#include "world_held.h"

#include "fabric/provider.h"

static struct {
    struct fab *fab;
    const struct fab_ops *real;
    struct fab_ops ops;
    const struct fab_cq *cq; /* NULL: all */
    bool holds;
    int given; /* while it holds: so many are let through */
} held;

static int poll_held(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    if (!held.holds || (held.cq != NULL && held.cq != cq))
        return held.real->poll(cq, n, wc);
    if (held.given == 0)
        return 0;
    const int got = held.real->poll(cq, n < held.given ? n : held.given, wc);
    held.given -= got;
    return got;
}

void world_hold(struct world_node *n, const struct fab_cq *cq)
{
    held.fab = n->fab;
    held.real = n->fab->ops;
    held.ops = *held.real;
    held.ops.poll = poll_held;
    held.cq = cq;
    held.holds = true;
    held.given = 0;
    n->fab->ops = &held.ops;
}

void world_give_some(int count)
{
    held.given += count;
}

void world_give(void)
{
    held.holds = false;
}

void world_held_end(void)
{
    held.fab->ops = held.real;
}
