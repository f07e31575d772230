/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_post.h"

#include <errno.h>
#include <string.h>

#include "sim/datagram.h"
#include "sim/sim_model.h"
#include "sim/sim_qp_error.h"
#include "sim/requester.h"

static const uint64_t SOON_NS = 1000;

/* ---- sends */

static void keep_inline(struct sim_wqe *w, const struct fab_wr *wr)
{
    uint8_t *to = w->inline_data;
    for (int i = 0; i < wr->num_sge; i++) {
        if (wr->sg_list[i].length > 0)
            memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
        to += wr->sg_list[i].length;
    }
}

static void enqueue_wqe(struct sim_qp *qp, const struct fab_wr *wr)
{
    struct sim_wqe *w = sim_wqe_at(qp, qp->tail++);
    struct ibv_sge *sge = w->sge;
    uint8_t *inline_data = w->inline_data;
    uint64_t length = 0;
    *w = (struct sim_wqe){.wr_id = wr->wr_id,
                          .remote_addr = wr->remote_addr,
                          .compare_add = wr->compare_add,
                          .swap = wr->swap,
                          .opcode = wr->opcode,
                          .flags = wr->send_flags,
                          .imm = wr->imm_data,
                          .rkey = wr->key.rkey,
                          .num_sge = (uint32_t)wr->num_sge,
                          .sge = sge,
                          .inline_data = inline_data,
                          .slots = ++qp->posted};
    if (wr->num_sge > 0)
        memcpy(sge, wr->sg_list, (size_t)wr->num_sge * sizeof sge[0]);
    if (wr->send_flags & IBV_SEND_INLINE)
        keep_inline(w, wr);
    for (int i = 0; i < wr->num_sge; i++)
        length += wr->sg_list[i].length;
    w->length = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
    if (qp->base.type != FAB_QP_UD && length > qp->base.pd->fab->caps.max_msg_size) {
        w->failed = true;
        w->status = IBV_WC_LOC_LEN_ERR;
    }
    if (qp->base.type == FAB_QP_RC)
        return;
    memcpy(w->dgid, wr->ah->dgid, 16);
    w->dest_qpn = wr->dest_qpn;
    if (qp->base.type == FAB_QP_DCI)
        w->dc_key = wr->dc_key;
    else
        w->qkey = wr->qkey;
}

void sim_doorbell(struct sim_event *e)
{
    struct sim_qp *qp = (struct sim_qp *)(void *)((char *)e - offsetof(struct sim_qp, doorbell));
    if (qp->base.type == FAB_QP_UD)
        sim_datagrams_go_on(qp);
    else
        sim_requester_go_on(qp);
}

static uint64_t host_ns(const struct sim_device *dev)
{
    const struct sim_hooks *hooks = &dev->net->hooks;
    return hooks->host_ns != NULL ? hooks->host_ns(hooks->user, dev->attr.node, dev->net->now_ns)
                                  : dev->net->now_ns;
}

/* What its completion queue may have to take: each request that is out may end with one, signalled
 * or not, and each receive. */
static uint32_t count_owed(const struct sim_cq *cq)
{
    const struct sim_object *o;
    uint32_t owed = 0;
    LIST_FOREACH(o, &cq->dev->objects[SIM_QP], link) {
        const struct sim_qp *qp = o->self;
        owed += sim_send_cq(qp) == cq ? qp->posted - qp->freed : 0;
        owed += sim_recv_cq(qp) == cq ? qp->rq.tail - qp->rq.head : 0;
    }
    for (uint32_t i = cq->head; i != cq->tail; i++)
        owed +=
            cq->ring[i % cq->base.cqe].owner != NULL && cq->ring[i % cq->base.cqe].freed == NULL;
    return owed;
}

/* Only what is posted makes more: so many more have room for sure as had when it was counted. */
static void look_at_room(struct sim_cq *cq, uint32_t posted)
{
    const struct sim_hooks *hooks = &cq->dev->net->hooks;
    if (hooks->crowded == NULL)
        return;
    if (posted <= cq->spare) {
        cq->spare -= posted;
        return;
    }
    const uint32_t owed = count_owed(cq);
    cq->spare = owed < cq->base.cqe ? cq->base.cqe - owed : 0;
    if (owed > cq->base.cqe)
        hooks->crowded(hooks->user, cq->dev->attr.node, cq->base.cqe, owed);
}

/* All go by one doorbell, or none: *bad is the first. */
static bool is_too_late(const struct sim_qp *qp, struct fab_wr *wr)
{
    uint64_t now = 0;
    for (; wr != NULL; wr = wr->next) {
        if (wr->key.not_after_ns == 0)
            continue;
        if (now == 0)
            now = host_ns(qp->dev);
        if (now > wr->key.not_after_ns)
            return true;
    }
    return false;
}

/* Most doorbells are seen soon, and some as late as the device may see them. */
static uint64_t draw_doorbell(struct sim_device *dev)
{
    const uint64_t most =
        dev->slack_ns > SOON_NS && base_prng_below(&dev->prng, 16) != 0 ? SOON_NS : dev->slack_ns;
    return sim_upto(&dev->prng, most);
}

int sim_post_send(struct fab_qp *base, struct fab_wr *wr, struct fab_wr **bad)
{
    struct sim_qp *qp = (struct sim_qp *)base;
    struct sim_net *net = qp->dev->net;
    int status = 0;
    uint64_t has_ns = net->now_ns;
    const uint32_t before = qp->posted, first = qp->tail;
    *bad = wr;
    if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR)
        return -EINVAL;
    if (is_too_late(qp, wr))
        return -ETIME;
    for (; wr != NULL; wr = wr->next) {
        *bad = wr;
        status = qp->posted - qp->freed >= base->cap.send_wr ||
                         sim_chance(&qp->dev->prng, qp->dev->faults.post_refused_ppm)
                     ? -ENOMEM
                     : 0;
        if (status != 0)
            break;
        enqueue_wqe(qp, wr);
    }
    if (qp->dev->nic != NULL && qp->tail != first)
        has_ns = sim_model_posted(qp, first);
    look_at_room(sim_send_cq(qp), qp->posted - before);
    if (qp->state == IBV_QPS_ERR)
        sim_qp_flush(qp);
    else if (qp->doorbell.is == SIM_EVENT_UNSET && qp->head != qp->tail)
        sim_event_set(net, &qp->doorbell,
                      qp->dev->nic != NULL ? has_ns : net->now_ns + draw_doorbell(qp->dev));
    return status;
}

/* ---- receives, completions */

int sim_post_recv(struct fab_qp *base, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    struct sim_qp *qp = (struct sim_qp *)base;
    if (qp->rq.ring == NULL || qp->state == IBV_QPS_RESET) {
        *bad = wr;
        return -EINVAL;
    }
    const uint32_t before = qp->rq.tail;
    const int status = sim_rq_post(&qp->rq, wr, bad);
    look_at_room(sim_recv_cq(qp), qp->rq.tail - before);
    if (qp->state == IBV_QPS_ERR)
        sim_qp_flush(qp);
    return status;
}

int sim_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    return sim_rq_post(&((struct sim_srq *)srq)->rq, wr, bad);
}

/* Who polls in vain, and for whom nothing is about to happen, polls until something does. */
static void pass_time(struct sim_net *net, const struct sim_cq *cq)
{
    const uint64_t next = sim_net_next_due(net), end = net->now_ns + net->poll_ns;
    sim_net_run_until(net, cq->head == cq->shown && next > end && next != SIM_NEVER ? next : end);
}

int sim_poll(struct fab_cq *base, int n, struct ibv_wc *wc)
{
    struct sim_net *net = sim_device_of(base->fab)->net;
    if (net->poll_ns != 0)
        pass_time(net, (const struct sim_cq *)base);
    return sim_cq_take((struct sim_cq *)base, n, wc);
}
