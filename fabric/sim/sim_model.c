/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_model.h"

#include "ibta/ibta.h"

static enum model_kind kind_of(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_RDMA_READ         ? MODEL_READ
           : fab_opcode_is_atomic(opcode)     ? MODEL_ATOMIC
           : fab_opcode_takes_receive(opcode) ? MODEL_SEND
                                              : MODEL_WRITE;
}

static struct model_request request_of(const struct sim_qp *qp, const struct sim_wqe *w)
{
    return (struct model_request){.kind = kind_of(w->opcode),
                                  .bytes = w->length,
                                  .sges = w->num_sge,
                                  .inlined = (w->flags & IBV_SEND_INLINE) != 0,
                                  .signalled = (w->flags & IBV_SEND_SIGNALED) != 0,
                                  .datagram = qp->base.type == FAB_QP_UD,
                                  .dc = qp->base.type == FAB_QP_DCI,
                                  .reconnects = qp->reconnects,
                                  .remote_addr = w->remote_addr};
}

uint64_t sim_model_posted(struct sim_qp *qp, uint32_t first)
{
    struct model_nic *nic = qp->dev->nic;
    const struct sim_net *net = qp->dev->net;
    uint64_t bytes = 0, has_ns = 0;
    for (uint32_t i = first; i != qp->tail; i++) {
        const struct model_request r = request_of(qp, sim_wqe_at(qp, i));
        bytes += model_wqe_bytes(&r);
        model_take(nic, &qp->model, r.bytes);
        if (net->ring_each)
            has_ns = model_doorbell(nic, net->now_ns, 1, model_wqe_bytes(&r));
    }
    return net->ring_each ? has_ns : model_doorbell(nic, net->now_ns, qp->tail - first, bytes);
}

void sim_model_send(struct sim_qp *qp, const struct sim_wqe *w, struct sim_packet *p)
{
    p->model = request_of(qp, w);
    if (p->bytes > 0)
        p->model.bytes = p->bytes;
    qp->reconnects = false;
    qp->left_ns = model_unit(qp->dev->nic, &qp->model, qp->dev->net->now_ns, &p->model);
    sim_wire_send_from(qp->dev, p, qp->left_ns);
}

uint64_t sim_model_serves(struct sim_device *dev, struct model_qp *qp, const struct sim_packet *p)
{
    const struct model_request r = {
        .kind = kind_of(p->opcode), .bytes = p->length, .dc = p->dc, .remote_addr = p->remote_addr};
    return model_serve(dev->nic, qp, dev->net->now_ns, &r);
}

uint64_t sim_model_answers(struct sim_device *dev, const struct sim_packet *p)
{
    const struct model_request r = {.kind = p->kind == SIM_READ_ANSWER     ? MODEL_READ
                                            : p->kind == SIM_ATOMIC_ANSWER ? MODEL_ATOMIC
                                                                           : MODEL_WRITE,
                                    .bytes = p->bytes};
    return model_answer(dev->nic, dev->net->now_ns, &r);
}

/* A datagram has no answer: it is over when it has left. */
uint64_t sim_model_over(struct sim_qp *qp, const struct sim_wqe *w, enum ibv_wc_status status)
{
    const struct model_request r = request_of(qp, w);
    const uint64_t now = qp->dev->net->now_ns;
    const uint64_t at = qp->base.type == FAB_QP_UD && qp->left_ns > now ? qp->left_ns : now;
    model_over(qp->dev->nic, &qp->model, r.bytes);
    return status == IBV_WC_SUCCESS ? model_complete(qp->dev->nic, at, at, &r) : now;
}
