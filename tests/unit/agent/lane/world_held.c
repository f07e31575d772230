/* SPDX-License-Identifier: Apache-2.0 */
#include "world_held.h"

#include <check.h>
#include <string.h>

#include "fabric/provider.h"

enum { ERRORS_MOST = 64 };

static struct {
    struct fab *fab;
    const struct fab_ops *real;
    struct fab_ops ops;
    const struct fab_cq *cq; /* NULL: all */
    bool holds;
    int given; /* while it holds: so many are let through */
    bool well; /* while it holds: and all without an error; the others are in `error` */
    int errors;
    struct ibv_wc error[ERRORS_MOST];
} held;

static int poll_well(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    const int got = held.real->poll(cq, n, wc);
    int well = 0;
    for (int i = 0; i < got; i++) {
        ck_assert_int_lt(held.errors, ERRORS_MOST);
        if (wc[i].status == IBV_WC_SUCCESS)
            wc[well++] = wc[i];
        else
            held.error[held.errors++] = wc[i];
    }
    return well;
}

static int poll_errors(int n, struct ibv_wc *wc)
{
    const int got = n < held.errors ? n : held.errors;
    memcpy(wc, held.error, (size_t)got * sizeof *wc);
    held.errors -= got;
    memmove(held.error, held.error + got, (size_t)held.errors * sizeof *wc);
    return got;
}

static int poll_held(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    const bool is_held = held.cq == NULL || held.cq == cq;
    if (is_held && !held.holds && held.errors > 0)
        return poll_errors(n, wc);
    if (!held.holds || !is_held)
        return held.real->poll(cq, n, wc);
    if (held.well)
        return poll_well(cq, n, wc);
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
    held.well = false;
    held.errors = 0;
    n->fab->ops = &held.ops;
}

void world_give_some(int count)
{
    held.given += count;
}

void world_give_well(void)
{
    held.well = true;
}

void world_give(void)
{
    held.holds = false;
}

void world_held_end(void)
{
    held.fab->ops = held.real;
}
