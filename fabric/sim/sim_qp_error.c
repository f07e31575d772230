/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_qp_error.h"

#include <stdlib.h>

#include "ibta/ibta.h"

void sim_wqe_complete(struct sim_qp *qp, const struct sim_wqe *w, enum ibv_wc_status status)
{
    if (status == IBV_WC_SUCCESS && !(w->flags & IBV_SEND_SIGNALED))
        return;
    const bool answered = fab_opcode_is_answered(w->opcode);
    const struct sim_cqe e = {
        .wc = {.wr_id = w->wr_id,
               .status = status,
               .opcode = fab_opcode_row(w->opcode)->completion,
               .qp_num = qp->base.qpn,
               .byte_len = status == IBV_WC_SUCCESS && answered ? w->length : 0},
        .owner = qp,
        .freed = &qp->freed,
        .slots = w->slots};
    sim_cq_push(sim_send_cq(qp), &e, false);
}

void sim_exec_free(struct sim_exec *x)
{
    sim_event_cancel(x->r->dev->net, &x->event);
    free(x->packet);
    free(x->answer);
    free(x);
}

void sim_responder_clear(struct sim_responder *r)
{
    for (struct sim_exec *x; (x = TAILQ_FIRST(&r->queue)) != NULL;) {
        TAILQ_REMOVE(&r->queue, x, link);
        struct sim_rq *rq = r->qp != NULL ? sim_rq_of(r->qp) : &r->dct->srq->rq;
        if (x->promised)
            rq->promised--;
        sim_exec_free(x);
    }
    r->answering = 0;
}

static void flush_receives(struct sim_qp *qp)
{
    const struct sim_rqe *e;
    while (qp->rq.ring != NULL && (e = sim_rq_take(&qp->rq)) != NULL) {
        const struct sim_cqe c = {.wc = {.wr_id = e->wr_id,
                                         .status = IBV_WC_WR_FLUSH_ERR,
                                         .opcode = IBV_WC_RECV,
                                         .qp_num = qp->base.qpn},
                                  .owner = qp};
        sim_cq_push(sim_recv_cq(qp), &c, true);
    }
}

static void flush_all(struct sim_qp *qp)
{
    for (; qp->head != qp->tail; qp->head++)
        sim_wqe_complete(qp, sim_wqe_at(qp, qp->head), IBV_WC_WR_FLUSH_ERR);
    qp->next = qp->sent = qp->head;
    flush_receives(qp);
}

void sim_qp_flush(struct sim_qp *qp)
{
    if (qp->timer.is == SIM_EVENT_UNSET)
        flush_all(qp);
}

static void stop_qp(struct sim_qp *qp)
{
    sim_event_cancel(qp->dev->net, &qp->doorbell);
    sim_event_cancel(qp->dev->net, &qp->timer);
    if (qp->base.type == FAB_QP_RC)
        sim_responder_clear(&qp->responder);
}

void sim_qp_to_err(struct sim_qp *qp, const enum ibv_event_type *event)
{
    if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET)
        return;
    sim_tell(qp->dev->net, qp->dev->attr.node, "%s 0x%x breaks", sim_qp_name(qp), qp->base.qpn);
    qp->state = IBV_QPS_ERR;
    stop_qp(qp);
    qp->next = qp->sent = qp->head; /* it waits for no answer */
    qp->reads = 0;
    if (sim_chance(&qp->dev->prng, qp->dev->faults.flush_late_ppm))
        sim_event_set(qp->dev->net, &qp->timer,
                      qp->dev->net->now_ns +
                          sim_upto(&qp->dev->prng, qp->dev->faults.flush_late_ns));
    else
        flush_all(qp);
    if (event != NULL)
        sim_device_tell(qp->dev, *event, &qp->base);
}

void sim_qp_forget(struct sim_qp *qp)
{
    stop_qp(qp);
    sim_cq_void(sim_send_cq(qp), qp);
    if (sim_recv_cq(qp) != sim_send_cq(qp))
        sim_cq_void(sim_recv_cq(qp), qp);
    qp->head = qp->next = qp->sent = qp->tail = 0;
    qp->posted = qp->freed = qp->reads = qp->tries = qp->rnr_tries = 0;
    qp->repeats = false;
    qp->waits = SIM_WAITS_ANSWER;
    qp->connected = false;
    qp->rq.head = qp->rq.tail = qp->rq.promised = 0;
    sim_device_forget(qp->dev, &qp->base);
}
