/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/signal_read.h"

#include "resolve/endpoint.h"
#include "resolve/liveness.h"
#include "resolve/path.h"
#include "transmit/inflight_timeout.h"
#include "transmit/own_read.h"
#include "transmit/physical_qp.h"

enum { REFUSALS = 16 /* tries */ };

/* False: there is no room for it. */
static bool post_behind(struct lane *l, struct physical_qp *p, struct flow *f)
{
    const struct peer *peer = &l->peers[f->peer_slot];
    const int64_t place = lane_scratch_take(l, 0);
    struct wr *w = place >= 0 ? lane_own_read_take(l) : NULL;
    if (w == NULL) {
        if (place >= 0)
            lane_scratch_give(l, (uint32_t)place);
        return false;
    }
    w->op = operation_of(SCHEMA_OP_READ);
    w->kind = WR_SIGNAL_READ;
    w->flow = f;
    w->index = (uint32_t)place;
    w->sge[0] = (struct ibv_sge){.addr = (uintptr_t)lane_scratch_at(l, w->index),
                                 .length = SCHEMA_RECORD_BYTES,
                                 .lkey = l->res.scratch_lkey};
    w->fab = (struct fab_wr){.sg_list = w->sge,
                             .num_sge = 1,
                             .opcode = w->op->opcode,
                             .key.rkey = peer->mr_rkey,
                             .remote_addr = peer->mr_addr,
                             .ah = f->ah,
                             .dest_qpn = peer->dctn,
                             .dc_key = peer->dc_key};
    w->signaled = 1;
    flow_posted(l, f, 1);
    lane_physical_qp_chain(l, p, w);
    return true;
}

static bool has_way(struct lane *l, const struct flow *f)
{
    return (f->rc || f->ah != NULL) && lane_peer_shared(l, f->peer_slot)->gen == f->peer_gen &&
           l->peers[f->peer_slot].mr_log2 != 0;
}

void lane_signal_reads_post(struct lane *l)
{
    bool again = false;
    for (uint32_t i = 0; i < l->phys_room; i++) {
        struct physical_qp *p = &l->phys[i];
        if (!lane_physical_qp_is_silent(l, p))
            continue;
        const struct wr *last = *ring_at(l, p, p->tail - 1); /* own READs are signalled */
        if (has_way(l, last->flow))
            again |= !post_behind(l, p, last->flow);
        else
            lane_inflight_retire(l, p);
    }
    l->silenced = again;
}

/* Nothing is said of a queue pair that broke meanwhile: what is out there comes back. */
void lane_signal_read_done(struct lane *l, const struct wr *w, enum ibv_wc_status status)
{
    struct physical_qp *p = &l->phys[w->fab.wr_id >> 32];
    lane_scratch_give(l, w->index);
    if (status != IBV_WC_SUCCESS && lane_physical_qp_is_silent(l, p) && ++p->refusals > REFUSALS)
        lane_inflight_retire(l, p);
}
