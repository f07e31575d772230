/* SPDX-License-Identifier: Apache-2.0 */
#include "../../check_main.h"
#include "world.h"

uint32_t world_pair(struct world *w, struct world_worker *owner, struct world_worker *k,
                    uint32_t tenant, uint32_t access)
{
    world_open(w);
    world_attach(w, owner, 1, 0, tenant);
    world_attach(w, k, 0, 0, tenant);
    uint32_t vkey = world_register(w, owner, 0, 4096, access);
    ck_assert_uint_ne(vkey, 0);
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    return vkey;
}

void world_fatal(struct world *w, uint32_t node, struct fab_qp *qp)
{
    struct lane_command fatal = {.kind = LANE_COMMAND_QP_FATAL, .qp = qp};
    if (fab_qp_state(qp) == IBV_QPS_ERR)
        ck_assert_int_eq(lane_command(w->node[node].lane, &fatal), 0);
}

void world_lose_dcis(struct world *w, uint32_t node)
{
    struct world_node *n = &w->node[node];
    n->no_repairs = true;
    for (uint32_t i = 0; i < n->res.spares; i++) {
        world_break(w, node, n->res.spare[i]);
        world_fatal(w, node, n->res.spare[i]);
    }
    for (uint32_t i = 0; i < n->res.dcis; i++) {
        world_break(w, node, n->res.dci[i]);
        world_fatal(w, node, n->res.dci[i]);
    }
    world_run(w, 1);
}

void world_unpair(struct world *w, struct world_worker *owner, struct world_worker *k)
{
    world_detach(w, k);
    world_detach(w, owner);
    world_close(w);
}
