/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations: each becomes one of the inner provider's, or fails as the plan has it. The
 * faults are drawn on the control thread, in the order of submission. */
#include "fault/fault_control.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "fault/gone.h"
#include "fault/poison.h"
#include "fault/psn.h"
#include "fault/refusal.h"
#include "fault/slow.h"

/* An operation under way in the inner provider. */
struct fault_ctl {
    struct fab_ctl inner;
    struct fault_fab *fab;
    struct fab_ctl *outer;
    void *object; /* ours: made ahead, or to be freed */
    bool gone;    /* the device was when it began */
    bool unheard; /* it is carried out, and said not to be */
};

enum { MILLION = 1000000, UNHEARD = MILLION / 2 /* of changes of state, beside the error */ };

#define INNER(type, object)         (((struct type *)(object))->inner)
#define INNER_OR_NULL(type, object) ((object) != NULL ? INNER(type, object) : NULL)

void fault_finish(struct fault_fab *f, struct fab_ctl *outer, int status)
{
    outer->status = status;
    f->completed++;
    outer->done(outer);
}

/* ---- results: our object around the inner one, or without it */

static void link_srq(struct fault_fab *f, struct fault_srq *srq, bool in)
{
    pthread_mutex_lock(&f->lock);
    if (in) {
        srq->next = f->srqs;
        f->srqs = srq;
    } else {
        struct fault_srq **link = &f->srqs;
        while (*link != srq)
            link = &(*link)->next;
        *link = srq->next;
    }
    pthread_mutex_unlock(&f->lock);
}

static void wrap_cq(struct fault_ctl *c)
{
    struct fault_cq *cq = c->object;
    struct fab_cq *inner = c->inner.cq.x;
    cq->inner = inner;
    cq->base = (struct fab_cq){.fab = &c->fab->base, .cqe = inner->cqe, .user = c->outer->cq.user};
    cq->chan = (struct fault_chan *)c->outer->cq.chan;
    cq->stream.ordinal = ++c->fab->next_ordinal;
    c->outer->cq.x = &cq->base;
}

/* The inner one's may have more than was asked for. */
static void limit_to(struct fab_qp_cap *cap, const struct fab_caps *caps)
{
    if (cap->inline_bytes > caps->max_inline)
        cap->inline_bytes = caps->max_inline;
    if (cap->send_sge > caps->max_sge)
        cap->send_sge = caps->max_sge;
}

static void wrap_qp(struct fault_ctl *c)
{
    struct fault_qp *qp = c->object;
    struct fab_qp *inner = c->inner.qp.x;
    qp->inner = inner;
    qp->base = (struct fab_qp){.pd = c->outer->qp.pd,
                               .type = inner->type,
                               .qpn = inner->qpn,
                               .send_cq = c->outer->qp.send_cq,
                               .recv_cq = c->outer->qp.recv_cq,
                               .srq = c->outer->qp.srq,
                               .cap = inner->cap,
                               .user = c->outer->qp.user};
    limit_to(&qp->base.cap, &c->fab->base.caps);
    qp->has_room = c->fab->loses_answers && inner->cap.send_wr > c->outer->qp.cap.send_wr;
    qp->base.cap.send_wr -= qp->has_room;
    qp->stream.ordinal = ++c->fab->next_ordinal;
    c->outer->qp.x = &qp->base;
}

static void wrap_mr(struct fault_ctl *c)
{
    struct fault_mr *mr = c->object;
    mr->inner = c->inner.mr.x;
    mr->base = *mr->inner;
    mr->base.pd = c->outer->mr.pd;
    c->outer->mr.x = &mr->base;
}

static void wrap_small(struct fault_ctl *c)
{
    switch (c->outer->kind) {
    case FAB_ALLOC_PD: {
        struct fault_pd *pd = c->object;
        *pd = (struct fault_pd){.base = *c->inner.pd.x, .inner = c->inner.pd.x};
        pd->base.fab = &c->fab->base;
        c->outer->pd.x = &pd->base;
        break;
    }
    case FAB_CREATE_CHAN: {
        struct fault_chan *chan = c->object;
        *chan = (struct fault_chan){.base = {.fab = &c->fab->base, .fd = c->inner.chan.x->fd},
                                    .inner = c->inner.chan.x};
        c->outer->chan.x = &chan->base;
        break;
    }
    case FAB_CREATE_SRQ: {
        struct fault_srq *srq = c->object;
        *srq = (struct fault_srq){.base = *c->inner.srq.x, .inner = c->inner.srq.x};
        srq->base.pd = c->outer->srq.pd;
        link_srq(c->fab, srq, true);
        c->outer->srq.x = &srq->base;
        break;
    }
    case FAB_CREATE_DCT:
        fault_dct_made(c->fab, c->object, &c->inner, c->outer);
        break;
    case FAB_CREATE_AH: {
        struct fault_ah *ah = c->object;
        *ah = (struct fault_ah){.base = *c->inner.ah.x, .inner = c->inner.ah.x};
        ah->base.pd = c->outer->ah.pd;
        ah->way = fault_way_to(c->fab, &c->outer->ah.attr);
        c->outer->ah.x = &ah->base;
        break;
    }
    default:
        break;
    }
}

static void free_cq(struct fault_cq *cq)
{
    free(cq->held);
    free(cq->poison);
    free(cq);
}

static void free_qp(struct fault_qp *qp)
{
    free(qp->sent);
    free(qp);
}

/* The inner provider has carried it out. */
static void on_modified(const struct fault_ctl *c)
{
    const struct ibv_qp_attr *attr = &c->outer->modify.attr;
    struct fault_qp *qp = (struct fault_qp *)c->outer->modify.x;
    const int mask = c->outer->modify.mask;
    if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET) {
        qp->broken = false;
        qp->sent_head = qp->sent_tail;
        fault_psn_end(c->fab, qp);
    }
    if (mask & IBV_QP_PKEY_INDEX)
        atomic_store_explicit(&qp->pkey_index, attr->pkey_index, memory_order_relaxed);
    if (mask & IBV_QP_SQ_PSN)
        fault_psn_begin(c->fab, qp, attr->sq_psn);
    if (mask & IBV_QP_AV)
        qp->way = fault_way_to(c->fab, &attr->ah_attr);
    if (mask & IBV_QP_PATH_MTU)
        atomic_store_explicit(&qp->mtu, attr->path_mtu, memory_order_relaxed);
}

/* The inner provider takes no other place than its own. */
static void translate_pkey(struct fault_fab *f, struct fab_ctl *in, const struct fault_qp *qp)
{
    struct ibv_qp_attr *attr = &in->modify.attr;
    pthread_mutex_lock(&f->lock);
    if ((in->modify.mask & IBV_QP_PKEY_INDEX) &&
        attr->pkey_index == fault_pkey_index(&f->now.plan, qp->base.pd))
        attr->pkey_index = qp->inner->pd->service.pkey_index;
    pthread_mutex_unlock(&f->lock);
}

static void found_pkey(struct fault_ctl *c)
{
    pthread_mutex_lock(&c->fab->lock);
    const struct fault_plan *plan = &c->fab->now.plan;
    c->outer->pkey = c->inner.pkey;
    c->outer->pkey.there &= !plan->pkey_gone;
    c->outer->pkey.index = (uint16_t)(c->outer->pkey.index + plan->pkey_moved);
    pthread_mutex_unlock(&c->fab->lock);
}

static void asked_port(struct fault_ctl *c)
{
    pthread_mutex_lock(&c->fab->lock);
    const enum ibv_mtu most = c->fab->now.plan.mtu;
    pthread_mutex_unlock(&c->fab->lock);
    c->outer->port = c->inner.port;
    if (most != 0 && most < c->outer->port.active)
        c->outer->port.active = most;
    if (most != 0 && most < c->outer->port.mtu)
        c->outer->port.mtu = most;
}

/* What it was read as is of the moment `before`, or a little later. */
static void read_clock(struct fault_ctl *c)
{
    const struct fault_fab *f = c->fab;
    const struct fault_plan *plan = &f->clock;
    struct fab_clock *out = &c->outer->clock;
    *out = c->inner.clock;
    const int64_t since_ns = (int64_t)(out->before_ns - f->opened_ns);
    int64_t ahead_ns = since_ns / MILLION * plan->clock_drift_ppm;
    if (since_ns >= (int64_t)plan->clock_jump_after_ns)
        ahead_ns += (int64_t)plan->clock_jump_ns;
    const int64_t ticks = (int64_t)((__int128)ahead_ns * (int64_t)out->hz / 1000000000);
    out->ticks += (uint64_t)ticks;
    if (out->bits < 64)
        out->ticks &= (1ull << out->bits) - 1;
}

static void on_succeeded(struct fault_ctl *c)
{
    switch (c->outer->kind) {
    case FAB_CREATE_CQ:
        wrap_cq(c);
        break;
    case FAB_CREATE_QP:
        wrap_qp(c);
        break;
    case FAB_REG_MR:
        wrap_mr(c);
        break;
    case FAB_MODIFY_QP:
        on_modified(c);
        break;
    case FAB_QUERY_PORT:
        asked_port(c);
        break;
    case FAB_DESTROY_CQ:
        free_cq(c->object);
        break;
    case FAB_DESTROY_QP:
        c->fab->numbers_gone_ns = fault_psn_now_ns(c->fab);
        free_qp(c->object);
        break;
    case FAB_DESTROY_SRQ:
        link_srq(c->fab, c->object, false);
        free(c->object);
        break;
    case FAB_FREE_PD:
    case FAB_DEREG_MR:
    case FAB_DESTROY_CHAN:
    case FAB_DESTROY_AH:
        free(c->object);
        break;
    case FAB_DESTROY_DCT:
        fault_dct_gone(c->fab, c->object);
        break;
    case FAB_QUERY_CLOCK:
        read_clock(c);
        break;
    case FAB_QUERY_PKEY:
        found_pkey(c);
        break;
    case FAB_QUERY_QP:
        c->outer->asked.state = c->inner.asked.state;
        break;
    case FAB_QUERY_ADDRESS:
        c->outer->address.now = c->inner.address.now;
        break;
    default:
        wrap_small(c);
        break;
    }
}

void fault_free_left(enum fab_ctl_kind kind, void *object)
{
    if (kind == FAB_DESTROY_CQ)
        free_cq(object);
    else if (kind == FAB_DESTROY_QP)
        free_qp(object);
    else
        free(object);
}

static size_t created_bytes(enum fab_ctl_kind kind)
{
    switch (kind) {
    case FAB_ALLOC_PD:
        return sizeof(struct fault_pd);
    case FAB_REG_MR:
        return sizeof(struct fault_mr);
    case FAB_CREATE_CHAN:
        return sizeof(struct fault_chan);
    case FAB_CREATE_CQ:
        return sizeof(struct fault_cq);
    case FAB_CREATE_SRQ:
        return sizeof(struct fault_srq);
    case FAB_CREATE_QP:
        return sizeof(struct fault_qp);
    case FAB_CREATE_DCT:
        return sizeof(struct fault_dct);
    case FAB_CREATE_AH:
        return sizeof(struct fault_ah);
    default:
        return 0;
    }
}

static void free_object(enum fab_ctl_kind kind, void *object)
{
    if (object != NULL && kind == FAB_CREATE_CQ)
        free_cq(object);
    else if (object != NULL && kind == FAB_CREATE_QP)
        free_qp(object);
    else
        free(object);
}

static void inner_done(struct fab_ctl *inner)
{
    struct fault_ctl *c = inner->user;
    struct fault_fab *f = c->fab;
    struct fab_ctl *outer = c->outer;
    int status = inner->status;
    if ((status == 0) == (fab_ctl_balance(outer->kind) < 0)) /* it is gone, or was not made */
        f->objects -= fault_is_object(outer->kind);
    const int kept = status == 0 && c->gone ? fault_gone_keep(f, outer, c->object) : 0;
    if (kept != 0 && outer->kind == FAB_DESTROY_SRQ)
        link_srq(f, c->object, false);
    else if (kept == 0 && status == 0)
        on_succeeded(c);
    else if (created_bytes(outer->kind) > 0)
        free_object(outer->kind, c->object);
    if (c->unheard)
        status = -EIO;
    free(c);
    fault_finish(f, outer, kept != 0 ? kept : status);
}

/* ---- requests: the inner objects where ours stand */

static void translate_free(struct fault_ctl *c)
{
    struct fab_ctl *in = &c->inner;
    switch (in->kind) {
    case FAB_FREE_PD:
        c->object = in->pd.x;
        in->pd.x = INNER(fault_pd, c->object);
        break;
    case FAB_DEREG_MR:
        c->object = in->mr.x;
        in->mr.x = INNER(fault_mr, c->object);
        break;
    case FAB_DESTROY_CHAN:
        c->object = in->chan.x;
        in->chan.x = INNER(fault_chan, c->object);
        break;
    case FAB_DESTROY_CQ:
        c->object = in->cq.x;
        in->cq.x = INNER(fault_cq, c->object);
        break;
    case FAB_DESTROY_SRQ:
        c->object = in->srq.x;
        in->srq.x = INNER(fault_srq, c->object);
        break;
    case FAB_DESTROY_QP:
        c->object = in->qp.x;
        in->qp.x = INNER(fault_qp, c->object);
        break;
    case FAB_DESTROY_DCT:
        c->object = in->dct.x;
        in->dct.x = INNER(fault_dct, c->object);
        break;
    case FAB_DESTROY_AH:
        c->object = in->ah.x;
        in->ah.x = INNER(fault_ah, c->object);
        break;
    default:
        break;
    }
}

/* So many more, as far as the device goes; what it refuses it refuses still. */
static uint32_t more_of(uint32_t asked, uint32_t more, uint32_t most)
{
    return asked == 0 || asked >= most ? asked : more < most - asked ? asked + more : most;
}

static void translate_op(struct fault_ctl *c)
{
    struct fab_ctl *in = &c->inner;
    switch (in->kind) {
    case FAB_REG_MR:
        in->mr.pd = INNER(fault_pd, in->mr.pd);
        break;
    case FAB_CREATE_CQ:
        in->cq.chan = INNER_OR_NULL(fault_chan, in->cq.chan);
        if (c->fab->loses_answers) /* answers.c: one more of each queue pair's */
            in->cq.cqe = more_of(in->cq.cqe, in->cq.cqe / 8 + 1, c->fab->base.caps.max_cqe);
        in->cq.user = c->object;
        break;
    case FAB_CREATE_SRQ:
        in->srq.pd = INNER(fault_pd, in->srq.pd);
        break;
    case FAB_CREATE_QP:
        in->qp.pd = INNER(fault_pd, in->qp.pd);
        in->qp.send_cq = INNER_OR_NULL(fault_cq, in->qp.send_cq);
        in->qp.recv_cq = INNER_OR_NULL(fault_cq, in->qp.recv_cq);
        in->qp.srq = INNER_OR_NULL(fault_srq, in->qp.srq);
        if (in->qp.cap.send_sge == 0) /* make_fail() needs one */
            in->qp.cap.send_sge = 1;
        if (c->fab->loses_answers)
            in->qp.cap.send_wr = more_of(in->qp.cap.send_wr, 1, c->fab->base.caps.max_qp_wr);
        in->qp.user = c->object;
        break;
    case FAB_MODIFY_QP:
        translate_pkey(c->fab, in, (const struct fault_qp *)in->modify.x);
        in->modify.x = INNER(fault_qp, in->modify.x);
        if (c->fab->timeout != 0)
            in->modify.attr.timeout = c->fab->timeout;
        break;
    case FAB_QUERY_QP:
        in->asked.x = INNER(fault_qp, in->asked.x);
        break;
    case FAB_CREATE_DCT:
        in->dct.pd = INNER(fault_pd, in->dct.pd);
        in->dct.cq = INNER_OR_NULL(fault_cq, in->dct.cq);
        in->dct.srq = INNER_OR_NULL(fault_srq, in->dct.srq);
        break;
    case FAB_CREATE_AH:
        in->ah.pd = INNER(fault_pd, in->ah.pd);
        break;
    default:
        translate_free(c);
        break;
    }
}

static int make_cq(const struct fault_ctl *c, struct fault_cq *cq)
{
    uint32_t cqe = c->outer->cq.cqe, most = c->fab->base.caps.max_cqe; /* more is refused anyway */
    cq->poison_room = cqe == 0 || most == 0 ? 1 : cqe < most ? cqe : most;
    cq->poison = calloc(cq->poison_room, sizeof cq->poison[0]);
    cq->held_room = c->fab->errors_first ? 2 * FAULT_SENT : 2 * FAULT_HELD;
    cq->held = calloc(cq->held_room, sizeof cq->held[0]);
    return cq->poison != NULL && cq->held != NULL ? 0 : -ENOMEM;
}

static int make_qp(const struct fault_fab *f, struct fault_qp *qp)
{
    if (!f->errors_first)
        return 0;
    qp->sent = calloc(FAULT_SENT, sizeof qp->sent[0]);
    return qp->sent != NULL ? 0 : -ENOMEM;
}

/* Memory for what will be created, all of it, so that nothing fails after the inner provider did
 * its part. 0 or -ENOMEM. */
static int make_object(struct fault_ctl *c)
{
    size_t bytes = created_bytes(c->outer->kind);
    if (bytes == 0)
        return 0;
    c->object = calloc(1, bytes);
    if (c->object == NULL)
        return -ENOMEM;
    int status = c->outer->kind == FAB_CREATE_CQ   ? make_cq(c, c->object)
                 : c->outer->kind == FAB_CREATE_QP ? make_qp(c->fab, c->object)
                                                   : 0;
    if (status != 0)
        free_object(c->outer->kind, c->object);
    return status;
}

/* Hands one operation to the inner provider. */
static void begin_op(struct fault_fab *f, struct fab_ctl *outer, bool unheard)
{
    if (outer->kind == FAB_DESTROY_DCT && fault_dct_leaves(outer))
        return;
    const bool gone = fault_is_gone(f);
    const int lost = !gone                               ? 0
                     : fab_ctl_balance(outer->kind) >= 0 ? -EIO
                                                         : fault_gone_status(f, outer);
    if (lost != 0) {
        fault_finish(f, outer, lost);
        return;
    }
    struct fault_ctl *c = calloc(1, sizeof *c);
    if (c == NULL) {
        fault_finish(f, outer, -ENOMEM);
        return;
    }
    *c = (struct fault_ctl){*outer, f, outer, .gone = gone, .unheard = unheard};
    if (make_object(c) != 0) {
        free(c);
        fault_finish(f, outer, -ENOMEM);
        return;
    }
    translate_op(c);
    f->objects += fault_is_object(outer->kind) && fab_ctl_balance(outer->kind) > 0;
    c->inner.user = c;
    c->inner.done = inner_done;
    fab_submit(f->inner, &c->inner);
}

/* ---- running */

void fault_submit(struct fab *fab, struct fab_ctl *ctl)
{
    struct fault_fab *f = fault_of(fab);
    pthread_mutex_lock(&f->lock);
    *f->submitted_tail = ctl;
    f->submitted_tail = &ctl->next;
    pthread_mutex_unlock(&f->lock);
    fab_bell_ring(&f->ctl);
}

static struct fab_ctl *take_submitted(struct fault_fab *f, struct fault_plan_state *now)
{
    pthread_mutex_lock(&f->lock);
    struct fab_ctl *list = f->submitted;
    f->submitted = NULL;
    f->submitted_tail = &f->submitted;
    *now = f->now;
    pthread_mutex_unlock(&f->lock);
    return list;
}

int fault_run(struct fab *fab)
{
    struct fault_fab *f = fault_of(fab);
    struct fault_plan_state now;
    fab_bell_hear(&f->ctl); /* the inner one may have something */
    f->completed = 0;
    fault_dct_look(f);
    for (struct fab_ctl *ctl = take_submitted(f, &now), *next; ctl != NULL; ctl = next) {
        next = ctl->next;
        ctl->next = NULL;
        int refusal = 0;
        if (fault_fails(f, &now, ctl)) {
            atomic_fetch_add(&f->count, 1);
            if (ctl->kind == FAB_MODIFY_QP && fault_hits(&now, &f->control, UNHEARD))
                begin_op(f, ctl, true);
            else
                fault_finish(f, ctl, -EIO);
        } else if (fault_is_gone(f)) {
            begin_op(f, ctl, false);
        } else if (ctl->kind == FAB_QUIESCE_MR && !f->base.caps.deadlines) {
            fault_finish(f, ctl, 0); /* nobody can tell what has begun */
        } else if ((refusal = fault_refusal_of(f, &now.plan, ctl)) != 0) {
            fault_finish(f, ctl, refusal);
        } else if (fault_is_stuck(f, &now, ctl)) {
            atomic_fetch_add(&f->count, 1);
            fault_finish(f, ctl, -EIO);
        } else if (!fault_slow_put(f, &now, ctl)) {
            begin_op(f, ctl, false);
        }
    }
    for (int i = 0; i < FAULT_SLOWS; i++) {
        struct fab_ctl *due = fault_slow_take(f, &now, i);
        if (due != NULL)
            begin_op(f, due, false);
    }
    (void)fab_run(f->inner);
    return f->completed;
}

void fault_cancel(struct fault_fab *f)
{
    struct fault_plan_state now;
    for (struct fab_ctl *ctl = take_submitted(f, &now), *next; ctl != NULL; ctl = next) {
        next = ctl->next;
        fault_finish(f, ctl, -ECANCELED);
    }
    for (int i = 0; i < FAULT_SLOWS; i++) {
        for (struct fab_ctl *ctl = f->slow[i].first, *next; ctl != NULL; ctl = next) {
            next = ctl->next;
            fault_finish(f, ctl, -ECANCELED);
        }
        f->slow[i].first = NULL;
    }
}
