/* SPDX-License-Identifier: Apache-2.0 */
#include "world_deaf.h"

#include <check.h>

bool world_deaf;
/* Those whose lane has not said QP_BROKEN. */
static struct {
    const struct fab_qp *qp; /* to be compared alone */
    bool connected;
} destroyed[WORLD_DCIS];

static void note_destroyed(struct world_node *n, const struct fab_qp *qp, bool connected)
{
    const struct lane_command c = {.kind = LANE_COMMAND_QP_DESTROYED, .qp = (struct fab_qp *)qp};
    uint32_t i = 0;
    while (destroyed[i].qp != NULL)
        ck_assert_uint_lt(++i, WORLD_DCIS);
    destroyed[i].qp = qp;
    destroyed[i].connected = connected;
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
}

static void note_connection(void *user, const struct fab_qp *qp, int status)
{
    ck_assert_int_eq(status, 0);
    note_destroyed(user, qp, true);
}

void world_end_qp(struct world *w, struct world_node *n, struct fab_qp *qp)
{
    if (!world_deaf) {
        world_break(w, (uint32_t)(n - w->node), qp);
        return;
    }
    if (qp->type == FAB_QP_RC) {
        connector_destroy(n->connector, qp, w->now_ns, note_connection, n);
        return;
    }
    struct fab_ctl c = {.kind = FAB_DESTROY_QP, .qp = {.x = qp}};
    ck_assert_int_eq(fab_call(n->fab, &c), 0);
    note_destroyed(n, qp, false);
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
    while (i < WORLD_DCIS && destroyed[i].qp != e->broken.qp)
        i++;
    if (i == WORLD_DCIS)
        return false;
    destroyed[i].qp = NULL;
    if (!destroyed[i].connected)
        replace_dci(n, e);
    return true;
}
