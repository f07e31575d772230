/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations: queued by anybody, executed by soft_run() on the control thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/random.h"
#include "soft/soft.h"

/* ---- PDs, address handles
 * -------------------------------------------------------------------------- */

static int alloc_pd(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    struct soft_pd *pd = calloc(1, sizeof *pd);
    if (pd == NULL)
        return -ENOMEM;
    pd->base.fab = &f->base;
    pd->id = atomic_fetch_add(&f->shared->next_pd, 1) + 1;
    ctl->pd.x = &pd->base;
    return 0;
}

static int free_pd(struct kedge_fab_ctl *ctl)
{
    struct soft_pd *pd = (struct soft_pd *)ctl->pd.x;
    if (atomic_load(&pd->users) != 0)
        return -EBUSY;
    free(pd);
    return 0;
}

static int create_ah(struct kedge_fab_ctl *ctl)
{
    if (!ctl->ah.attr.is_global)
        return -EINVAL; /* Ethernet: the GID is the address */
    struct soft_ah *ah = calloc(1, sizeof *ah);
    if (ah == NULL)
        return -ENOMEM;
    ah->base.pd = ctl->ah.pd;
    memcpy(ah->base.dgid, ctl->ah.attr.grh.dgid.raw, 16);
    atomic_fetch_add(&((struct soft_pd *)ctl->ah.pd)->users, 1);
    ctl->ah.x = &ah->base;
    return 0;
}

static int destroy_ah(struct kedge_fab_ctl *ctl)
{
    atomic_fetch_sub(&((struct soft_pd *)ctl->ah.x->pd)->users, 1);
    free(ctl->ah.x);
    return 0;
}

/* ---- channels and completion queues
 * ---------------------------------------------------------------- */

static int create_chan(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    char name[32];
    struct epoll_event event = {.events = EPOLLIN};
    struct soft_chan *chan = calloc(1, sizeof *chan);
    if (chan == NULL)
        return -ENOMEM;
    chan->number = atomic_fetch_add(&f->shared->next_chan, 1) + 1;
    chan->fifo = chan->timer = -1;
    chan->base.fab = &f->base;
    snprintf(name, sizeof name, "chan.%u", chan->number);
    (void)unlinkat(f->dir_fd, name, 0); /* of a dead process, after the numbers went round */
    chan->base.fd = epoll_create1(EPOLL_CLOEXEC);
    chan->timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (mkfifoat(f->dir_fd, name, 0600) == 0)
        chan->fifo = openat(f->dir_fd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (chan->base.fd < 0 || chan->timer < 0 || chan->fifo < 0 ||
        epoll_ctl(chan->base.fd, EPOLL_CTL_ADD, chan->fifo, &event) != 0 ||
        epoll_ctl(chan->base.fd, EPOLL_CTL_ADD, chan->timer, &event) != 0) {
        int status = -errno;
        close(chan->base.fd);
        close(chan->timer);
        close(chan->fifo);
        (void)unlinkat(f->dir_fd, name, 0);
        free(chan);
        return status;
    }
    ctl->chan.x = &chan->base;
    return 0;
}

static int destroy_chan(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    struct soft_chan *chan = (struct soft_chan *)ctl->chan.x;
    char name[32];
    if (atomic_load(&chan->users) != 0)
        return -EBUSY;
    snprintf(name, sizeof name, "chan.%u", chan->number);
    (void)unlinkat(f->dir_fd, name, 0);
    close(chan->base.fd);
    close(chan->timer);
    close(chan->fifo);
    free(chan);
    return 0;
}

static uint32_t power_of_two(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p <<= 1;
    return p;
}

static int create_cq(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    if (ctl->cq.cqe == 0 || ctl->cq.cqe > f->base.caps.max_cqe)
        return -EINVAL;
    struct soft_cq *cq = calloc(1, sizeof *cq);
    if (cq == NULL)
        return -ENOMEM;
    cq->room = power_of_two(ctl->cq.cqe);
    cq->ring = calloc(cq->room, sizeof cq->ring[0]);
    int64_t index = cq->ring == NULL ? -ENOMEM
                                     : soft_claim(f, f->shared->cq, sizeof f->shared->cq[0],
                                                  SOFT_CQS, &f->shared->cq_high);
    if (index < 0) {
        free(cq->ring);
        free(cq);
        return (int)index;
    }
    struct soft_cq_shared *s = &f->shared->cq[index];
    (void)soft_make_lock(&s->lock_made, &s->lock);
    s->cqe = ctl->cq.cqe;
    atomic_store(&s->head, atomic_load(&s->tail));
    atomic_store(&s->local_used, 0);
    atomic_store(&s->overflow, 0);
    atomic_store(&s->armed, SOFT_NOT_ARMED);
    cq->chan = (struct soft_chan *)ctl->cq.chan;
    s->chan = cq->chan != NULL ? cq->chan->number : 0;
    if (cq->chan != NULL)
        atomic_fetch_add(&cq->chan->users, 1);
    pthread_mutex_init(&cq->qps_lock, NULL);
    cq->shared = s;
    cq->attention = atomic_load(&f->me->attention);
    cq->base = (struct kedge_fab_cq){.fab = &f->base, .cqe = ctl->cq.cqe, .user = ctl->cq.user};
    ctl->cq.x = &cq->base;
    return 0;
}

static int destroy_cq(struct kedge_fab_ctl *ctl)
{
    struct soft_cq *cq = (struct soft_cq *)ctl->cq.x;
    if (atomic_load(&cq->users) != 0)
        return -EBUSY;
    if (cq->chan != NULL)
        atomic_fetch_sub(&cq->chan->users, 1);
    atomic_store(&cq->shared->owner, 0);
    pthread_mutex_destroy(&cq->qps_lock);
    free(cq->ring);
    free(cq);
    return 0;
}

/* ---- receive queues
 * -------------------------------------------------------------------------------- */

static int claim_rq(struct soft_fab *f, struct soft_rq *rq, uint32_t pd, uint32_t max_wr)
{
    int64_t index =
        soft_claim(f, f->shared->rq, sizeof f->shared->rq[0], SOFT_RQS, &f->shared->rq_high);
    if (index < 0)
        return (int)index;
    rq->shared = &f->shared->rq[index];
    rq->pd = pd;
    (void)soft_make_lock(&rq->shared->lock_made, &rq->shared->lock);
    rq->shared->max_wr = max_wr;
    atomic_store(&rq->shared->head, atomic_load(&rq->shared->tail));
    return (int)index + 1;
}

static int create_srq(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    if (ctl->srq.max_wr == 0 || ctl->srq.max_wr > SOFT_RQ_WR || ctl->srq.max_sge > SOFT_SGE)
        return -EINVAL;
    struct soft_srq *srq = calloc(1, sizeof *srq);
    if (srq == NULL)
        return -ENOMEM;
    int status = claim_rq(f, &srq->rq, ((struct soft_pd *)ctl->srq.pd)->id, ctl->srq.max_wr);
    if (status < 0) {
        free(srq);
        return status;
    }
    srq->base = (struct kedge_fab_srq){.pd = ctl->srq.pd, .max_wr = ctl->srq.max_wr};
    atomic_fetch_add(&((struct soft_pd *)ctl->srq.pd)->users, 1);
    ctl->srq.x = &srq->base;
    return 0;
}

static int destroy_srq(struct kedge_fab_ctl *ctl)
{
    struct soft_srq *srq = (struct soft_srq *)ctl->srq.x;
    if (atomic_load(&srq->users) != 0)
        return -EBUSY;
    atomic_fetch_sub(&((struct soft_pd *)srq->base.pd)->users, 1);
    atomic_store(&srq->rq.shared->owner, 0);
    free(srq);
    return 0;
}

/* ---- queue pairs and DC targets
 * -------------------------------------------------------------------- */

/* A free entry of the table, without a number yet: nobody reaches it. */
static struct soft_qp_shared *claim_qp(struct soft_fab *f, uint32_t *qpn)
{
    int64_t index =
        soft_claim(f, f->shared->qp, sizeof f->shared->qp[0], SOFT_QPS, &f->shared->qp_high);
    if (index < 0)
        return NULL;
    struct soft_qp_shared *s = &f->shared->qp[index];
    if (s->salt == 0)
        (void)kedge_random_bytes(&s->salt, sizeof s->salt);
    s->salt = (uint16_t)(s->salt % 2047 + 1); /* 24 bits: 11 of salt, 13 of index, never 0 */
    *qpn = (uint32_t)s->salt << 13 | (uint32_t)index;
    atomic_store(&s->inside, 0);
    atomic_fetch_add(&s->epoch, 1);
    atomic_store(&s->sq_freed, 0);
    s->access = 0;
    s->min_rnr_timer = 0;
    s->qkey = s->dest_qpn = 0;
    s->send_cq = s->recv_cq = s->rq = 0;
    memset(s->dest_gid, 0, sizeof s->dest_gid);
    return s;
}

static uint16_t cq_number(const struct soft_fab *f, const struct kedge_fab_cq *cq)
{
    return (uint16_t)(((const struct soft_cq *)cq)->shared - f->shared->cq + 1);
}

static bool cap_is_sound(const struct kedge_fab_ctl *ctl)
{
    const struct kedge_fab_qp_cap *c = &ctl->qp.cap;
    bool receives = ctl->qp.type != KEDGE_FAB_QP_DCI && ctl->qp.srq == NULL;
    return ctl->qp.type >= KEDGE_FAB_QP_RC && ctl->qp.type <= KEDGE_FAB_QP_DCI && c->send_wr >= 1 &&
           c->send_wr <= SOFT_RQ_WR && c->recv_wr <= (receives ? (uint32_t)SOFT_RQ_WR : 0) &&
           c->send_sge <= SOFT_SGE && c->recv_sge <= SOFT_SGE && c->inline_bytes <= SOFT_INLINE &&
           ctl->qp.send_cq != NULL && ctl->qp.recv_cq != NULL;
}

static void free_qp(struct soft_qp *qp)
{
    if (qp->rq.shared != NULL)
        atomic_store(&qp->rq.shared->owner, 0);
    if (qp->shared != NULL) {
        atomic_store(&qp->shared->qpn, 0);
        atomic_store(&qp->shared->owner, 0);
    }
    free(qp->pending);
    free(qp);
}

static void hold_qp(struct soft_qp *qp, int by)
{
    atomic_fetch_add(&((struct soft_pd *)qp->base.pd)->users, (uint32_t)by);
    atomic_fetch_add(&qp->send_cq->users, (uint32_t)by);
    atomic_fetch_add(&((struct soft_cq *)qp->base.recv_cq)->users, (uint32_t)by);
    if (qp->base.srq != NULL)
        atomic_fetch_add(&((struct soft_srq *)qp->base.srq)->users, (uint32_t)by);
}

static int create_qp(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    if (!cap_is_sound(ctl))
        return -EINVAL;
    struct soft_qp *qp = calloc(1, sizeof *qp);
    if (qp == NULL)
        return -ENOMEM;
    uint32_t qpn = 0;
    int status = 0;
    qp->pending_room = power_of_two(ctl->qp.cap.send_wr);
    qp->pending = calloc(qp->pending_room, sizeof qp->pending[0]);
    qp->shared = claim_qp(f, &qpn);
    if (qp->pending == NULL || qp->shared == NULL)
        status = qp->shared == NULL ? -ENOSPC : -ENOMEM;
    else if (ctl->qp.cap.recv_wr > 0)
        status = claim_rq(f, &qp->rq, ((struct soft_pd *)ctl->qp.pd)->id, ctl->qp.cap.recv_wr);
    if (status < 0) {
        free_qp(qp);
        return status;
    }
    qp->base = (struct kedge_fab_qp){.pd = ctl->qp.pd,
                                     .type = ctl->qp.type,
                                     .qpn = qpn,
                                     .send_cq = ctl->qp.send_cq,
                                     .recv_cq = ctl->qp.recv_cq,
                                     .srq = ctl->qp.srq,
                                     .cap = ctl->qp.cap,
                                     .user = ctl->qp.user};
    qp->send_cq = (struct soft_cq *)ctl->qp.send_cq;
    struct soft_qp_shared *s = qp->shared;
    s->pd = ((struct soft_pd *)ctl->qp.pd)->id;
    s->kind = (uint8_t)ctl->qp.type;
    s->send_cq = cq_number(f, ctl->qp.send_cq);
    s->recv_cq = cq_number(f, ctl->qp.recv_cq);
    s->rq = (uint16_t)status;
    if (ctl->qp.srq != NULL)
        s->rq = (uint16_t)(((struct soft_srq *)ctl->qp.srq)->rq.shared - f->shared->rq + 1);
    hold_qp(qp, 1);
    atomic_store(&s->state, IBV_QPS_RESET);
    atomic_store(&f->qp_of[s - f->shared->qp], qp);
    atomic_store(&s->qpn, qpn);
    pthread_mutex_lock(&qp->send_cq->qps_lock);
    qp->next_in_cq = qp->send_cq->qps;
    qp->send_cq->qps = qp;
    pthread_mutex_unlock(&qp->send_cq->qps_lock);
    ctl->qp.x = &qp->base;
    return 0;
}

static int destroy_qp(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    struct soft_qp *qp = (struct soft_qp *)ctl->qp.x;
    struct soft_cq *cq = qp->send_cq;
    pthread_mutex_lock(&cq->qps_lock);
    atomic_store(&qp->shared->state, IBV_QPS_RESET);
    if (qp->waiting)
        atomic_fetch_sub(&cq->waiting, 1);
    for (struct soft_qp **link = &cq->qps; *link != NULL; link = &(*link)->next_in_cq)
        if (*link == qp) {
            *link = qp->next_in_cq;
            break;
        }
    pthread_mutex_unlock(&cq->qps_lock);
    atomic_store(&f->qp_of[qp->shared - f->shared->qp], NULL);
    hold_qp(qp, -1);
    free_qp(qp);
    return 0;
}

static int create_dct(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    if (ctl->dct.cq == NULL || ctl->dct.srq == NULL)
        return -EINVAL;
    struct soft_dct *dct = calloc(1, sizeof *dct);
    if (dct == NULL)
        return -ENOMEM;
    uint32_t dctn = 0;
    struct soft_qp_shared *s = claim_qp(f, &dctn);
    if (s == NULL) {
        free(dct);
        return -ENOSPC;
    }
    dct->base = (struct kedge_fab_dct){.pd = ctl->dct.pd, .dctn = dctn, .dc_key = ctl->dct.dc_key};
    dct->shared = s;
    dct->cq = (struct soft_cq *)ctl->dct.cq;
    dct->srq = (struct soft_srq *)ctl->dct.srq;
    s->pd = ((struct soft_pd *)ctl->dct.pd)->id;
    s->kind = SOFT_DCT;
    s->access = (uint16_t)ctl->dct.access;
    s->dc_key = ctl->dct.dc_key;
    s->min_rnr_timer = 1;
    s->recv_cq = s->send_cq = cq_number(f, ctl->dct.cq);
    s->rq = (uint16_t)(dct->srq->rq.shared - f->shared->rq + 1);
    atomic_fetch_add(&((struct soft_pd *)ctl->dct.pd)->users, 1);
    atomic_fetch_add(&dct->cq->users, 1);
    atomic_fetch_add(&dct->srq->users, 1);
    atomic_store(&s->state, IBV_QPS_RTR);
    atomic_store(&s->qpn, dctn);
    ctl->dct.x = &dct->base;
    return 0;
}

static int destroy_dct(struct kedge_fab_ctl *ctl)
{
    struct soft_dct *dct = (struct soft_dct *)ctl->dct.x;
    atomic_store(&dct->shared->qpn, 0);
    atomic_store(&dct->shared->owner, 0);
    atomic_fetch_sub(&((struct soft_pd *)dct->base.pd)->users, 1);
    atomic_fetch_sub(&dct->cq->users, 1);
    atomic_fetch_sub(&dct->srq->users, 1);
    free(dct);
    return 0;
}

/* ---- running
 * ---------------------------------------------------------------------------------------- */

static int carry_out(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    switch (ctl->kind) {
    case KEDGE_FAB_ALLOC_PD:
        return alloc_pd(f, ctl);
    case KEDGE_FAB_FREE_PD:
        return free_pd(ctl);
    case KEDGE_FAB_REG_MR:
        return soft_mr_register(f, ctl);
    case KEDGE_FAB_DEREG_MR:
        return soft_mr_deregister(f, ctl);
    case KEDGE_FAB_CREATE_CHAN:
        return create_chan(f, ctl);
    case KEDGE_FAB_DESTROY_CHAN:
        return destroy_chan(f, ctl);
    case KEDGE_FAB_CREATE_CQ:
        return create_cq(f, ctl);
    case KEDGE_FAB_DESTROY_CQ:
        return destroy_cq(ctl);
    case KEDGE_FAB_CREATE_SRQ:
        return create_srq(f, ctl);
    case KEDGE_FAB_DESTROY_SRQ:
        return destroy_srq(ctl);
    case KEDGE_FAB_CREATE_QP:
        return create_qp(f, ctl);
    case KEDGE_FAB_MODIFY_QP:
        return soft_qp_modify(f, (struct soft_qp *)ctl->modify.x, &ctl->modify.attr,
                              ctl->modify.mask);
    case KEDGE_FAB_DESTROY_QP:
        return destroy_qp(f, ctl);
    case KEDGE_FAB_CREATE_DCT:
        return create_dct(f, ctl);
    case KEDGE_FAB_DESTROY_DCT:
        return destroy_dct(ctl);
    case KEDGE_FAB_CREATE_AH:
        return create_ah(ctl);
    case KEDGE_FAB_DESTROY_AH:
        return destroy_ah(ctl);
    }
    return -EINVAL;
}

/* +1 for what makes an object, -1 for what frees one. */
static int object_balance(enum kedge_fab_ctl_kind kind)
{
    switch (kind) {
    case KEDGE_FAB_ALLOC_PD:
    case KEDGE_FAB_REG_MR:
    case KEDGE_FAB_CREATE_CHAN:
    case KEDGE_FAB_CREATE_CQ:
    case KEDGE_FAB_CREATE_SRQ:
    case KEDGE_FAB_CREATE_QP:
    case KEDGE_FAB_CREATE_DCT:
    case KEDGE_FAB_CREATE_AH:
        return 1;
    case KEDGE_FAB_MODIFY_QP:
        return 0;
    default:
        return -1;
    }
}

void soft_submit(struct kedge_fab *fab, struct kedge_fab_ctl *ctl)
{
    struct soft_fab *f = soft_of(fab);
    uint64_t one = 1;
    pthread_mutex_lock(&f->lock);
    *f->submitted_tail = ctl;
    f->submitted_tail = &ctl->next;
    pthread_mutex_unlock(&f->lock);
    if (write(f->ctl_efd, &one, sizeof one) < 0) {
        /* Full, and so readable. */
    }
}

/* What stays pending is looked at again every millisecond; nothing pending, no timer. */
static void set_timer(struct soft_fab *f)
{
    struct itimerspec when = {.it_value = {.tv_nsec = f->pending != NULL ? 1000000 : 0}};
    (void)timerfd_settime(f->ctl_tfd, 0, &when, NULL);
}

int soft_run(struct kedge_fab *fab)
{
    struct soft_fab *f = soft_of(fab);
    uint64_t count;
    int completed = 0;
    if (read(f->ctl_efd, &count, sizeof count) < 0 || read(f->ctl_tfd, &count, sizeof count) < 0) {
        /* One of them was not due. */
    }
    pthread_mutex_lock(&f->lock);
    struct kedge_fab_ctl *list = f->pending, **tail = &list;
    while (*tail != NULL)
        tail = &(*tail)->next;
    *tail = f->submitted;
    f->submitted = NULL;
    f->submitted_tail = &f->submitted;
    pthread_mutex_unlock(&f->lock);

    struct kedge_fab_ctl *still = NULL, **still_tail = &still;
    for (struct kedge_fab_ctl *ctl = list, *next; ctl != NULL; ctl = next) {
        next = ctl->next;
        ctl->next = NULL;
        int status = carry_out(f, ctl);
        if (status == -EINPROGRESS) {
            *still_tail = ctl;
            still_tail = &ctl->next;
            continue;
        }
        if (status == 0)
            atomic_fetch_add(&f->objects, (uint32_t)object_balance(ctl->kind));
        ctl->status = status;
        completed++;
        ctl->done(ctl);
    }
    f->pending = still;
    set_timer(f);
    soft_map_sweep(f, false);
    return completed;
}

/* ---- events
 * ----------------------------------------------------------------------------------------- */

void soft_push_event(struct soft_fab *f, enum ibv_event_type type, void *object)
{
    uint64_t one = 1;
    struct soft_event *e = calloc(1, sizeof *e);
    if (e == NULL)
        return; /* the completions say it too */
    e->event.type = type;
    e->event.qp = object; /* or cq, srq: one union */
    pthread_mutex_lock(&f->lock);
    *f->events_tail = e;
    f->events_tail = &e->next;
    pthread_mutex_unlock(&f->lock);
    if (write(f->event_efd, &one, sizeof one) < 0) {
        /* Full, and so readable. */
    }
}

int soft_get_event(struct kedge_fab *fab, struct kedge_fab_event *out)
{
    struct soft_fab *f = soft_of(fab);
    uint64_t count;
    pthread_mutex_lock(&f->lock);
    struct soft_event *e = f->events;
    if (e != NULL) {
        f->events = e->next;
        if (f->events == NULL)
            f->events_tail = &f->events;
    }
    if (f->events == NULL && read(f->event_efd, &count, sizeof count) < 0) {
        /* Nothing was signalled. */
    }
    pthread_mutex_unlock(&f->lock);
    if (e == NULL)
        return 0;
    *out = e->event;
    free(e);
    return 1;
}
