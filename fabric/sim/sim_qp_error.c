/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_qp_error.h"

#include <stdlib.h>

#include "ibta/ibta.h"
#include "sim/sim_model.h"

static const uint64_t USUAL_FLUSH_NS = 20000;

void sim_wqe_complete(struct sim_qp *qp, const struct sim_wqe *w, enum ibv_wc_status status)
{
    const uint64_t seen_ns = qp->dev->nic != NULL ? sim_model_over(qp, w, status) : 0;
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
        .slots = w->slots,
        .seen_ns = seen_ns};
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
    r->answering = r->fresh = 0;
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

/* The oldest so many. */
static void flush_sends(struct sim_qp *qp, uint32_t count)
{
    for (; count > 0; count--, qp->head++)
        sim_wqe_complete(qp, sim_wqe_at(qp, qp->head), IBV_WC_WR_FLUSH_ERR);
    qp->next = qp->head;
    if ((int32_t)(qp->sent - qp->head) < 0)
        qp->sent = qp->head;
}

static void flush_all(struct sim_qp *qp)
{
    flush_sends(qp, qp->tail - qp->head);
    flush_receives(qp);
}

/* How long what is out on a queue pair is still the device's, behind its end. */
static uint64_t draw_flush(struct sim_device *dev)
{
    if (sim_chance(&dev->prng, dev->faults.flush_late_ppm))
        return sim_upto(&dev->prng, dev->faults.flush_late_ns);
    const uint64_t most = dev->attr.flush_ns != 0 ? dev->attr.flush_ns : USUAL_FLUSH_NS;
    return base_prng_below(&dev->prng, 2) == 0 ? 0 : sim_upto(&dev->prng, most);
}

void sim_qp_flush_due(struct sim_qp *qp)
{
    const uint32_t out = qp->tail - qp->head;
    if (qp->dev->net->now_ns >= qp->flushed_ns) {
        flush_all(qp);
        return;
    }
    flush_sends(qp, (uint32_t)base_prng_below(&qp->dev->prng, out + 1));
    sim_event_set(qp->dev->net, &qp->timer, qp->flushed_ns);
}

/* All of it now, or some sooner than the others. */
static void begin_flush(struct sim_qp *qp)
{
    struct sim_device *dev = qp->dev;
    const uint64_t takes_ns = draw_flush(dev);
    qp->flushed_ns = dev->net->now_ns + takes_ns;
    if (takes_ns > 0 && base_prng_below(&dev->prng, 2) == 0)
        sim_event_set(dev->net, &qp->timer, dev->net->now_ns + sim_upto(&dev->prng, takes_ns));
    else
        sim_qp_flush_due(qp);
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

static void tell_break(const struct sim_qp *qp)
{
    struct sim_net *net = qp->dev->net;
    sim_tell(net, qp->dev->attr.node, "%s 0x%x breaks", sim_qp_name(qp), qp->base.qpn);
    if (qp->base.type == FAB_QP_RC && net->hooks.broke != NULL)
        net->hooks.broke(net->hooks.user, qp->dev->attr.node);
}

void sim_qp_to_err(struct sim_qp *qp, const enum ibv_event_type *event)
{
    if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET)
        return;
    tell_break(qp);
    qp->state = IBV_QPS_ERR;
    stop_qp(qp);
    if (qp->dev->attr.nameless && qp->base.type != FAB_QP_UD)
        qp->head = qp->told;
    if ((int32_t)(qp->sent - qp->head) < 0) /* its first one failed before it was sent */
        qp->sent = qp->head;
    qp->reads = 0;
    begin_flush(qp);
    if (event != NULL)
        sim_device_tell(qp->dev, *event, &qp->base);
}

void sim_qp_forget(struct sim_qp *qp)
{
    stop_qp(qp);
    if (qp->dev->nic != NULL)
        model_qp_end(qp->dev->nic, &qp->model);
    sim_cq_void(sim_send_cq(qp), qp);
    if (sim_recv_cq(qp) != sim_send_cq(qp))
        sim_cq_void(sim_recv_cq(qp), qp);
    qp->told = qp->head = qp->next = qp->sent = qp->tail = 0;
    qp->posted = qp->freed = qp->reads = qp->tries = qp->rnr_tries = 0;
    qp->repeats = false;
    qp->waits = SIM_WAITS_ANSWER;
    qp->connected = false;
    qp->rq.head = qp->rq.tail = qp->rq.promised = 0;
    sim_device_forget(qp->dev, &qp->base);
}
