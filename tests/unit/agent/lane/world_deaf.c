/* SPDX-License-Identifier: Apache-2.0 */
#include "world_deaf.h"

#include <check.h>

bool world_deaf;
static const struct fab_qp *destroyed[WORLD_DCIS]; /* whose lane has not said QP_BROKEN */

static void note_destroyed(void *user, const struct fab_qp *qp, int status)
{
    struct world_node *n = user;
    const struct lane_command c = {.kind = LANE_COMMAND_QP_DESTROYED, .qp = (struct fab_qp *)qp};
    uint32_t i = 0;
    ck_assert_int_eq(status, 0);
    while (destroyed[i] != NULL)
        ck_assert_uint_lt(++i, WORLD_DCIS);
    destroyed[i] = qp;
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
}

void world_end_qp(struct world *w, struct world_node *n, struct fab_qp *qp)
{
    if (!world_deaf) {
        world_break(w, (uint32_t)(n - w->node), qp);
        return;
    }
    if (w->rc) {
        connector_destroy(n->connector, qp, w->now_ns, note_destroyed, n);
        return;
    }
    struct fab_ctl c = {.kind = FAB_DESTROY_QP, .qp = {.x = qp}};
    ck_assert_int_eq(fab_call(n->fab, &c), 0);
    note_destroyed(n, qp, 0);
}

static void replace_dci(struct world_node *n, const struct lane_event *e)
{
    uint32_t i = 0;
    while (n->res.dci[i] != e->broken.qp)
        ck_assert_uint_lt(++i, n->res.dcis);
    n->res.dci[i] = world_make_dci(n, n->pd);
    const struct lane_command c = {.kind = LANE_COMMAND_QP_READY,
                                   .ready = {.qp = n->res.dci[i], .most = e->broken.most}};
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
}

bool world_is_destroyed(struct world_node *n, const struct lane_event *e)
{
    uint32_t i = 0;
    while (i < WORLD_DCIS && destroyed[i] != e->broken.qp)
        i++;
    if (i == WORLD_DCIS)
        return false;
    destroyed[i] = NULL;
    if (n->connector == NULL)
        replace_dci(n, e);
    return true;
}
