/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/datagram.h"

#include <stdlib.h>
#include <string.h>

#include "ibta/ibta.h"
#include "sim/sim_model.h"
#include "sim/sim_qp_error.h"

static bool send_datagram(struct sim_qp *qp, const struct sim_wqe *w)
{
    const struct sim_on_behalf whose = {
        .node = qp->dev->attr.node, .qpn = qp->base.qpn, .wr_id = w->wr_id};
    struct sim_packet *p = sim_packet_new(qp->dev, SIM_DATAGRAM, w->dgid, w->dest_qpn, w->length);
    if (w->flags & IBV_SEND_INLINE) {
        memcpy(p->data, w->inline_data, w->length);
    } else if (!sim_sges_read(qp->dev, qp->base.pd, w->sge, w->num_sge, 0, p->data, w->length,
                              &whose)) {
        free(p);
        return false;
    }
    p->from_qpn = qp->base.qpn;
    p->packets = 1;
    p->opcode = w->opcode;
    p->wr_id = w->wr_id;
    p->solicited = (w->flags & IBV_SEND_SOLICITED) != 0;
    p->imm = w->imm;
    p->length = w->length;
    /* A Q_Key with its highest bit set stands for the sender's own (IBTA 10.2.5). */
    p->qkey = w->qkey & 0x80000000u ? qp->qkey : w->qkey;
    if (qp->dev->nic != NULL)
        sim_model_send(qp, w, p);
    else
        sim_wire_send(qp->dev, p, qp->dev->net->now_ns);
    return true;
}

void sim_datagrams_go_on(struct sim_qp *qp)
{
    while (qp->state == IBV_QPS_RTS && qp->head != qp->tail) {
        const struct sim_wqe *w = sim_wqe_at(qp, qp->head++);
        qp->next = qp->sent = qp->head;
        if (w->length <= SIM_DATAGRAM_BYTES && send_datagram(qp, w)) {
            sim_wqe_complete(qp, w, IBV_WC_SUCCESS);
            continue;
        }
        sim_wqe_complete(qp, w,
                         w->length > SIM_DATAGRAM_BYTES ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR);
        sim_qp_to_err(qp, NULL);
    }
}

/* The GRH, and the datagram behind it, go into the oldest receive: 0, or how that fails. */
static enum ibv_wc_status fill_receive(struct sim_qp *qp, const struct sim_packet *p,
                                       const struct sim_rqe *e)
{
    const struct sim_on_behalf whose = {
        .remote = true, .node = p->from_node, .qpn = p->from_qpn, .wr_id = p->wr_id};
    uint8_t grh[FAB_GRH_BYTES];
    uint64_t room = 0;
    for (uint32_t i = 0; i < e->num_sge; i++)
        room += e->sge[i].length;
    if (room < (uint64_t)p->length + FAB_GRH_BYTES)
        return IBV_WC_LOC_LEN_ERR;
    fab_ibta_make_grh(grh, &qp->base.pd->fab->caps, p->from_gid, p->to_gid, p->length,
                      p->opcode != IBV_WR_SEND);
    return sim_sges_write(qp->dev, qp->base.pd, e->sge, e->num_sge, 0, grh, FAB_GRH_BYTES,
                          &whose) &&
                   sim_sges_write(qp->dev, qp->base.pd, e->sge, e->num_sge, FAB_GRH_BYTES, p->data,
                                  p->length, &whose)
               ? IBV_WC_SUCCESS
               : IBV_WC_LOC_PROT_ERR;
}

void sim_datagram_arrived(struct sim_qp *qp, struct sim_packet *p)
{
    const enum ibv_event_type fatal = IBV_EVENT_QP_FATAL;
    struct sim_rq *rq = sim_rq_of(qp);
    const struct sim_rqe *e = NULL;
    if (qp->base.type == FAB_QP_UD && (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS) &&
        qp->qkey == p->qkey && rq != NULL && sim_rq_has_one(rq))
        e = sim_rq_take(rq);
    if (e == NULL) {
        free(p);
        return;
    }
    struct sim_cqe c = {
        .wc = {.wr_id = e->wr_id,
               .status = fill_receive(qp, p, e),
               .opcode = IBV_WC_RECV,
               .byte_len = p->length + FAB_GRH_BYTES,
               .imm_data = p->opcode != IBV_WR_SEND ? p->imm : 0,
               .qp_num = qp->base.qpn,
               .src_qp = p->from_qpn,
               .wc_flags = IBV_WC_GRH | (p->opcode != IBV_WR_SEND ? IBV_WC_WITH_IMM : 0u)},
        .owner = qp,
        .seen_ns = qp->dev->nic != NULL ? sim_model_serves(qp->dev, &qp->model, p) : 0};
    sim_cq_push(sim_recv_cq(qp), &c, p->solicited);
    if (c.wc.status != IBV_WC_SUCCESS)
        sim_qp_to_err(qp, &fatal);
    free(p);
}
