/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibta/ibta.h"
#include "sim/objects.h"
#include "sim/sim_post.h"
#include "sim/sim_qp_error.h"
#include "sim/requester.h"
#include "sim/responder.h"

/* ---- PDs, address handles, channels */

int sim_pd_alloc(struct sim_device *dev, struct fab_ctl *ctl)
{
    struct sim_pd *pd = calloc(1, sizeof *pd);
    if (pd == NULL)
        return -ENOMEM;
    pd->base.fab = &dev->base;
    pd->base.service = ctl->pd.service != NULL ? *ctl->pd.service : dev->base.caps.service;
    pd->base.pkey = fab_ibta_pkey(&pd->base);
    pd->id = ++dev->pds;
    sim_object_add(dev, &pd->object, SIM_PD, pd);
    ctl->pd.x = &pd->base;
    return 0;
}

static void drop_pd(struct sim_device *dev, struct sim_pd *pd)
{
    sim_object_drop(dev, &pd->object);
    free(pd);
}

int sim_pd_free(struct sim_device *dev, struct fab_ctl *ctl)
{
    struct sim_pd *pd = (struct sim_pd *)ctl->pd.x;
    if (pd->users != 0)
        return -EBUSY;
    drop_pd(dev, pd);
    return 0;
}

int sim_ah_create(struct sim_device *dev, struct fab_ctl *ctl)
{
    if (!fab_ibta_serves(ctl->ah.pd, &ctl->ah.attr))
        return -EINVAL;
    struct sim_ah *ah = calloc(1, sizeof *ah);
    if (ah == NULL)
        return -ENOMEM;
    ah->base.pd = ctl->ah.pd;
    memcpy(ah->base.dgid, ctl->ah.attr.grh.dgid.raw, 16);
    ((struct sim_pd *)ctl->ah.pd)->users++;
    sim_object_add(dev, &ah->object, SIM_AH, ah);
    ctl->ah.x = &ah->base;
    return 0;
}

static void drop_ah(struct sim_device *dev, struct sim_ah *ah)
{
    sim_object_drop(dev, &ah->object);
    free(ah);
}

int sim_ah_destroy(struct sim_device *dev, struct fab_ctl *ctl)
{
    ((struct sim_pd *)ctl->ah.x->pd)->users--;
    drop_ah(dev, (struct sim_ah *)ctl->ah.x);
    return 0;
}

int sim_chan_create(struct sim_device *dev, struct fab_ctl *ctl)
{
    struct sim_chan *chan = calloc(1, sizeof *chan);
    if (chan == NULL)
        return -ENOMEM;
    sim_ready_open(dev->net, dev->attr.node, &chan->ready);
    chan->base = (struct fab_chan){.fab = &dev->base, .fd = chan->ready.fd};
    sim_object_add(dev, &chan->object, SIM_CHAN, chan);
    ctl->chan.x = &chan->base;
    return 0;
}

static void drop_chan(struct sim_device *dev, struct sim_chan *chan)
{
    sim_ready_close(dev->net, &chan->ready);
    sim_object_drop(dev, &chan->object);
    free(chan);
}

int sim_chan_destroy(struct sim_device *dev, struct fab_ctl *ctl)
{
    struct sim_chan *chan = (struct sim_chan *)ctl->chan.x;
    if (chan->users != 0)
        return -EBUSY;
    drop_chan(dev, chan);
    return 0;
}

/* ---- completion queues, shared receive queues */

/* Queue pairs that use a queue that overflowed break, each with its event. */
static void break_users(struct sim_event *e)
{
    struct sim_cq *cq = (struct sim_cq *)(void *)((char *)e - offsetof(struct sim_cq, overflow));
    const enum ibv_event_type fatal = IBV_EVENT_QP_FATAL;
    struct sim_object *o;
    LIST_FOREACH(o, &cq->dev->objects[SIM_QP], link) {
        struct sim_qp *qp = o->self;
        if (sim_send_cq(qp) == cq || sim_recv_cq(qp) == cq)
            sim_qp_to_err(qp, &fatal);
    }
}

int sim_cq_create(struct sim_device *dev, struct fab_ctl *ctl)
{
    if (ctl->cq.cqe == 0 || ctl->cq.cqe > dev->base.caps.max_cqe)
        return -EINVAL;
    struct sim_cq *cq = calloc(1, sizeof *cq);
    if (cq == NULL)
        return -ENOMEM;
    cq->ring = calloc(ctl->cq.cqe, sizeof cq->ring[0]);
    if (cq->ring == NULL) {
        free(cq);
        return -ENOMEM;
    }
    cq->dev = dev;
    cq->overflow = (struct sim_event){.happen = break_users, .device = dev};
    cq->show = (struct sim_event){.happen = sim_cq_show, .device = dev};
    cq->base = (struct fab_cq){.fab = &dev->base, .cqe = ctl->cq.cqe, .user = ctl->cq.user};
    cq->chan = (struct sim_chan *)ctl->cq.chan;
    if (cq->chan != NULL)
        cq->chan->users++;
    sim_object_add(dev, &cq->object, SIM_CQ, cq);
    ctl->cq.x = &cq->base;
    return 0;
}

static void drop_cq(struct sim_device *dev, struct sim_cq *cq)
{
    sim_event_cancel(dev->net, &cq->overflow);
    sim_event_cancel(dev->net, &cq->show);
    sim_device_forget(dev, &cq->base);
    sim_object_drop(dev, &cq->object);
    free(cq->ring);
    free(cq);
}

int sim_cq_destroy(struct sim_device *dev, struct fab_ctl *ctl)
{
    struct sim_cq *cq = (struct sim_cq *)ctl->cq.x;
    if (cq->users != 0)
        return -EBUSY;
    if (cq->chan != NULL)
        cq->chan->users--;
    drop_cq(dev, cq);
    return 0;
}

int sim_srq_create(struct sim_device *dev, struct fab_ctl *ctl)
{
    if (ctl->srq.max_wr == 0 || ctl->srq.max_wr > dev->base.caps.max_srq_wr ||
        ctl->srq.max_sge > dev->base.caps.max_sge)
        return -EINVAL;
    struct sim_srq *srq = calloc(1, sizeof *srq);
    if (srq == NULL || sim_rq_init(&srq->rq, ctl->srq.max_wr, ctl->srq.max_sge) != 0) {
        free(srq);
        return -ENOMEM;
    }
    srq->base = (struct fab_srq){.pd = ctl->srq.pd, .max_wr = ctl->srq.max_wr};
    ((struct sim_pd *)ctl->srq.pd)->users++;
    sim_object_add(dev, &srq->object, SIM_SRQ, srq);
    ctl->srq.x = &srq->base;
    return 0;
}

static void drop_srq(struct sim_device *dev, struct sim_srq *srq)
{
    sim_object_drop(dev, &srq->object);
    sim_rq_fini(&srq->rq);
    free(srq);
}

int sim_srq_destroy(struct sim_device *dev, struct fab_ctl *ctl)
{
    struct sim_srq *srq = (struct sim_srq *)ctl->srq.x;
    if (srq->users != 0)
        return -EBUSY;
    ((struct sim_pd *)srq->base.pd)->users--;
    drop_srq(dev, srq);
    return 0;
}

/* ---- queue pairs, DC targets */

/* 24 bits that nothing has here; 0 and 1 are the management's. */
static uint32_t choose_number(struct sim_device *dev)
{
    uint32_t number = 0;
    if (dev->attr.numbers_return && dev->last_number != 0 &&
        sim_table_get(&dev->qps, dev->last_number) == NULL)
        return dev->last_number;
    while (number < 2 || sim_table_get(&dev->qps, number) != NULL)
        number = (uint32_t)base_prng_next(&dev->prng) & 0xffffff;
    return number;
}

static bool has_transport(const struct sim_device *dev, enum fab_qp_type type)
{
    const uint32_t transport = type == FAB_QP_RC ? FAB_RC : type == FAB_QP_UD ? FAB_UD : FAB_DC;
    return (dev->base.caps.transports & transport) != 0;
}

static bool cap_is_sound(const struct sim_device *dev, const struct fab_ctl *ctl)
{
    const struct fab_qp_cap *c = &ctl->qp.cap;
    const struct fab_caps *caps = &dev->base.caps;
    const bool receives = ctl->qp.type != FAB_QP_DCI && ctl->qp.srq == NULL;
    return ctl->qp.type >= FAB_QP_RC && ctl->qp.type <= FAB_QP_DCI &&
           has_transport(dev, ctl->qp.type) && c->send_wr >= 1 && c->send_wr <= caps->max_qp_wr &&
           c->recv_wr <= (receives ? caps->max_qp_wr : 0) && c->send_sge <= caps->max_sge &&
           c->recv_sge <= caps->max_sge && c->inline_bytes <= caps->max_inline &&
           ctl->qp.send_cq != NULL && ctl->qp.recv_cq != NULL;
}

static void hold_objects(struct sim_qp *qp, int by)
{
    ((struct sim_pd *)qp->base.pd)->users += (uint32_t)by;
    sim_send_cq(qp)->users += (uint32_t)by;
    sim_recv_cq(qp)->users += (uint32_t)by;
    if (qp->base.srq != NULL)
        ((struct sim_srq *)qp->base.srq)->users += (uint32_t)by;
}

static void free_parts(struct sim_qp *qp)
{
    sim_rq_fini(&qp->rq);
    free(qp->ring);
    free(qp->sges);
    free(qp->inlines);
    free(qp);
}

static int make_parts(struct sim_qp *qp)
{
    const struct fab_qp_cap *cap = &qp->base.cap;
    qp->ring = calloc(cap->send_wr, sizeof qp->ring[0]);
    qp->sges = calloc((size_t)cap->send_wr * cap->send_sge + 1, sizeof qp->sges[0]);
    qp->inlines = calloc((size_t)cap->send_wr * cap->inline_bytes + 1, 1);
    if (qp->ring == NULL || qp->sges == NULL || qp->inlines == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < cap->send_wr; i++) {
        qp->ring[i].sge = qp->sges + (size_t)i * cap->send_sge;
        qp->ring[i].inline_data = qp->inlines + (size_t)i * cap->inline_bytes;
    }
    return cap->recv_wr > 0 ? sim_rq_init(&qp->rq, cap->recv_wr, cap->recv_sge) : 0;
}

int sim_qp_create(struct sim_device *dev, struct fab_ctl *ctl)
{
    if (!cap_is_sound(dev, ctl))
        return -EINVAL;
    if (dev->count[SIM_QP] + dev->count[SIM_DCT] >= dev->base.caps.max_qp)
        return -ENOSPC;
    struct sim_qp *qp = calloc(1, sizeof *qp);
    if (qp == NULL)
        return -ENOMEM;
    const uint32_t qpn = choose_number(dev);
    qp->base = (struct fab_qp){.pd = ctl->qp.pd,
                               .type = ctl->qp.type,
                               .qpn = qpn,
                               .send_cq = ctl->qp.send_cq,
                               .recv_cq = ctl->qp.recv_cq,
                               .srq = ctl->qp.srq,
                               .cap = ctl->qp.cap,
                               .user = ctl->qp.user};
    if (make_parts(qp) != 0) {
        free_parts(qp);
        return -ENOMEM;
    }
    qp->dev = dev;
    qp->numbered.number = qpn;
    qp->state = IBV_QPS_RESET;
    qp->doorbell = (struct sim_event){.happen = sim_doorbell, .device = dev};
    qp->timer = (struct sim_event){.happen = sim_requester_timer, .device = dev};
    if (dev->nic != NULL)
        model_qp_begin(dev->nic, &qp->model);
    TAILQ_INIT(&qp->responder.queue);
    qp->responder.dev = dev;
    qp->responder.qp = qp;
    sim_object_add(dev, &qp->object, SIM_QP, qp);
    sim_table_put(&dev->qps, qpn, &qp->numbered);
    hold_objects(qp, 1);
    ctl->qp.x = &qp->base;
    return 0;
}

static void drop_qp(struct sim_device *dev, struct sim_qp *qp)
{
    sim_qp_forget(qp);
    sim_table_drop(&dev->qps, qp->base.qpn);
    dev->last_number = qp->base.qpn;
    sim_object_drop(dev, &qp->object);
    free_parts(qp);
}

int sim_qp_destroy(struct sim_device *dev, struct fab_ctl *ctl)
{
    struct sim_qp *qp = (struct sim_qp *)ctl->qp.x;
    hold_objects(qp, -1);
    drop_qp(dev, qp);
    return 0;
}

int sim_dct_create(struct sim_device *dev, struct fab_ctl *ctl)
{
    if (ctl->dct.cq == NULL || ctl->dct.srq == NULL || !has_transport(dev, FAB_QP_DCI))
        return -EINVAL;
    if (dev->count[SIM_QP] + dev->count[SIM_DCT] >= dev->base.caps.max_qp)
        return -ENOSPC;
    struct sim_dct *dct = calloc(1, sizeof *dct);
    if (dct == NULL)
        return -ENOMEM;
    const uint32_t dctn = choose_number(dev);
    dct->base = (struct fab_dct){.pd = ctl->dct.pd, .dctn = dctn, .dc_key = ctl->dct.dc_key};
    dct->numbered = (struct sim_numbered){.number = dctn, .is_dct = true};
    dct->dev = dev;
    dct->cq = (struct sim_cq *)ctl->dct.cq;
    dct->srq = (struct sim_srq *)ctl->dct.srq;
    dct->access = ctl->dct.access;
    LIST_INIT(&dct->responders);
    if (dev->nic != NULL)
        model_qp_begin(dev->nic, &dct->model);
    ((struct sim_pd *)ctl->dct.pd)->users++;
    dct->cq->users++;
    dct->srq->users++;
    sim_object_add(dev, &dct->object, SIM_DCT, dct);
    sim_table_put(&dev->qps, dctn, &dct->numbered);
    ctl->dct.x = &dct->base;
    return 0;
}

static void drop_dct(struct sim_device *dev, struct sim_dct *dct)
{
    sim_responder_free_all(dct);
    sim_cq_void(dct->cq, dct);
    sim_table_drop(&dev->qps, dct->base.dctn);
    sim_object_drop(dev, &dct->object);
    free(dct);
}

int sim_dct_destroy(struct sim_device *dev, struct fab_ctl *ctl)
{
    struct sim_dct *dct = (struct sim_dct *)ctl->dct.x;
    ((struct sim_pd *)dct->base.pd)->users--;
    dct->cq->users--;
    dct->srq->users--;
    drop_dct(dev, dct);
    return 0;
}

/* ---- all at once */

static void drop_object(struct sim_device *dev, struct sim_object *o)
{
    switch (o->kind) {
    case SIM_DCT:
        drop_dct(dev, o->self);
        break;
    case SIM_QP:
        drop_qp(dev, o->self);
        break;
    case SIM_MR:
        sim_mr_free(o->self);
        break;
    case SIM_CQ:
        drop_cq(dev, o->self);
        break;
    case SIM_SRQ:
        drop_srq(dev, o->self);
        break;
    case SIM_CHAN:
        drop_chan(dev, o->self);
        break;
    case SIM_AH:
        drop_ah(dev, o->self);
        break;
    case SIM_PD:
        drop_pd(dev, o->self);
        break;
    default:
        sim_mem_free_left(o);
        break;
    }
}

void sim_objects_drop_all(struct sim_device *dev)
{
    for (int kind = 0; kind < SIM_KINDS; kind++)
        for (struct sim_object *o; (o = LIST_FIRST(&dev->objects[kind])) != NULL;)
            drop_object(dev, o);
}
