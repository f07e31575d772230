/* SPDX-License-Identifier: Apache-2.0 */
#include "world_held.h"

#include "fabric/provider.h"

static struct {
    struct fab *fab;
    const struct fab_ops *real;
    struct fab_ops ops;
    const struct fab_cq *cq; /* NULL: all */
    bool holds;
} held;

static int poll_held(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    return held.holds && (held.cq == NULL || held.cq == cq) ? 0 : held.real->poll(cq, n, wc);
}

void world_hold(struct world_node *n, const struct fab_cq *cq)
{
    held.fab = n->fab;
    held.real = n->fab->ops;
    held.ops = *held.real;
    held.ops.poll = poll_held;
    held.cq = cq;
    held.holds = true;
    n->fab->ops = &held.ops;
}

void world_give(void)
{
    held.holds = false;
}

void world_held_end(void)
{
    held.fab->ops = held.real;
}
