/* SPDX-License-Identifier: Apache-2.0 */
#include "world_narrow.h"

enum ibv_mtu world_mtu[WORLD_NODES];
void (*world_raised)(struct fab_qp *qp, enum ibv_mtu most);

enum ibv_mtu world_mtu_of(const struct world *w, const struct world_node *n)
{
    const enum ibv_mtu mtu = world_mtu[n - w->node];
    return mtu != 0 ? mtu : IBV_MTU_4096;
}

void world_bring_back(struct world_node *n, const struct lane_event *e, struct lane_command *out)
{
    world_raise_dci(n->fab, e->broken.qp);
    if (world_raised != NULL)
        world_raised(e->broken.qp, e->broken.most);
    out->kind = LANE_COMMAND_QP_READY;
    out->ready.qp = e->broken.qp;
    out->ready.most = e->broken.most;
}
