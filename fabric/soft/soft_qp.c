/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing queue pairs and DC targets. Control thread. */
#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "soft/hazards.h"
#include "soft/locks.h"
#include "soft/objects.h"
#include "soft/soft_model.h"
#include "soft/soft_tables.h"
#include "soft/unseen.h"

struct soft_dct {
    struct fab_dct base;
    struct soft_qp_shared *shared;
    struct soft_cq *cq;
    struct soft_srq *srq;
};

/* A free entry of the table, without a number yet: nobody reaches it. -errno in *status. */
static struct soft_qp_shared *claim_qp(struct soft_fab *f, uint32_t *qpn, int *status)
{
    int64_t index = soft_claim(f, f->shared->qp, sizeof f->shared->qp[0], sizeof f->shared->qp[0],
                               SOFT_QPS, 0, &f->shared->qp_high);
    *status = index < 0 ? (int)index : 0;
    if (index < 0)
        return NULL;
    struct soft_qp_shared *s = &f->shared->qp[index];
    if (s->salt == 0)
        (void)base_random_bytes(&s->salt, sizeof s->salt);
    s->salt = (uint16_t)(s->salt % 2047 + 1); /* 24 bits: 11 of salt, 13 of index, never 0 */
    *qpn = (uint32_t)s->salt << 13 | (uint32_t)index;
    atomic_store(&s->inside, 0);
    atomic_store(&s->inside_local, 0);
    atomic_store(&s->middle, 0);
    atomic_store(&s->middle_local, 0);
    atomic_store(&s->unseen, 0);
    atomic_fetch_add(&s->epoch, 1);
    atomic_store(&s->sq_freed, 0);
    atomic_store(&s->cause, 0);
    atomic_store(&s->access, 0);
    atomic_store(&s->max_dest_reads, 0);
    atomic_store(&s->min_rnr_timer, 0);
    atomic_store(&s->qkey, 0);
    atomic_store(&s->dest_qpn, 0);
    atomic_store(&s->dest_gid[0], 0);
    atomic_store(&s->dest_gid[1], 0);
    atomic_store(&s->dc_key, 0);
    return s;
}

static void attach_shared(struct soft_qp_shared *s, enum soft_qp_kind kind, const struct fab_pd *pd,
                          uint32_t send_cq, uint32_t recv_cq, uint32_t rq)
{
    atomic_store(&s->kind, (uint8_t)kind);
    atomic_store(&s->pd, ((const struct soft_pd *)pd)->id);
    atomic_store(&s->send_cq, (uint16_t)send_cq);
    atomic_store(&s->recv_cq, (uint16_t)recv_cq);
    atomic_store(&s->rq, (uint16_t)rq);
}

static uint32_t cq_number(const struct soft_fab *f, const struct fab_cq *cq)
{
    return (uint32_t)(((const struct soft_cq *)cq)->shared - f->shared->cq) + 1;
}

static uint32_t srq_number(const struct soft_fab *f, const struct fab_srq *srq)
{
    return (uint32_t)(((const struct soft_srq *)srq)->rq.shared - f->shared->rq) + 1;
}

static bool cap_is_sound(const struct fab_ctl *ctl)
{
    const struct fab_qp_cap *c = &ctl->qp.cap;
    bool receives = ctl->qp.type != FAB_QP_DCI && ctl->qp.srq == NULL;
    return ctl->qp.type >= FAB_QP_RC && ctl->qp.type <= FAB_QP_DCI && c->send_wr >= 1 &&
           c->send_wr <= SOFT_RQ_WR && c->recv_wr <= (receives ? (uint32_t)SOFT_RQ_WR : 0) &&
           c->send_sge <= SOFT_SGE && c->recv_sge <= SOFT_SGE && c->inline_bytes <= SOFT_INLINE &&
           ctl->qp.send_cq != NULL && ctl->qp.recv_cq != NULL;
}

static void hold_objects(struct soft_qp *qp, int by)
{
    atomic_fetch_add(&((struct soft_pd *)qp->base.pd)->users, (uint32_t)by);
    atomic_fetch_add(&qp->send_cq->users, (uint32_t)by);
    atomic_fetch_add(&((struct soft_cq *)qp->base.recv_cq)->users, (uint32_t)by);
    if (qp->base.srq != NULL)
        atomic_fetch_add(&((struct soft_srq *)qp->base.srq)->users, (uint32_t)by);
}

/* Memory and slots of a new queue pair. The number of its receive queue, or -errno and nothing. */
static int claim_parts(struct soft_fab *f, struct soft_qp *qp, const struct fab_qp_cap *cap,
                       uint32_t *qpn)
{
    int status;
    qp->pending_room = soft_power_of_two(cap->send_wr);
    qp->pending = calloc(qp->pending_room, sizeof qp->pending[0]);
    if (qp->pending == NULL)
        return -ENOMEM;
    qp->shared = claim_qp(f, qpn, &status);
    if (status == 0 && f->order.unseen && (qp->unseen = calloc(1, sizeof *qp->unseen)) == NULL)
        status = -ENOMEM;
    if (status == 0)
        status = soft_model_qp_begin(f, qp);
    if (status == 0 && cap->recv_wr > 0)
        status = soft_rq_claim(f, &qp->rq, cap->recv_wr, cap->recv_sge);
    if (status < 0) {
        soft_model_qp_end(f, qp);
        if (qp->shared != NULL)
            atomic_store(&qp->shared->owner, 0);
        free(qp->unseen);
        free(qp->pending);
    }
    return status;
}

int soft_qp_create(struct soft_fab *f, struct fab_ctl *ctl)
{
    uint32_t qpn = 0;
    if (!cap_is_sound(ctl))
        return -EINVAL;
    if (ctl->qp.type == FAB_QP_DCI && !(f->base.caps.transports & FAB_DC))
        return -EOPNOTSUPP;
    struct soft_qp *qp = calloc(1, sizeof *qp);
    if (qp == NULL)
        return -ENOMEM;
    int rq = claim_parts(f, qp, &ctl->qp.cap, &qpn);
    if (rq < 0) {
        free(qp);
        return rq;
    }
    qp->base = (struct fab_qp){.pd = ctl->qp.pd,
                               .type = ctl->qp.type,
                               .qpn = qpn,
                               .send_cq = ctl->qp.send_cq,
                               .recv_cq = ctl->qp.recv_cq,
                               .srq = ctl->qp.srq,
                               .cap = ctl->qp.cap,
                               .user = ctl->qp.user};
    qp->send_cq = (struct soft_cq *)ctl->qp.send_cq;
    attach_shared(qp->shared, (enum soft_qp_kind)ctl->qp.type, ctl->qp.pd,
                  cq_number(f, ctl->qp.send_cq), cq_number(f, ctl->qp.recv_cq),
                  ctl->qp.srq != NULL ? srq_number(f, ctl->qp.srq) : (uint32_t)rq);
    soft_order_begin(&f->order, qp);
    hold_objects(qp, 1);
    atomic_store(&f->qp_of[qp->shared - f->shared->qp], qp);
    atomic_store(&qp->shared->ident, soft_ident(qpn, IBV_QPS_RESET));
    pthread_mutex_lock(&qp->send_cq->qps_lock);
    qp->next_in_cq = qp->send_cq->qps;
    qp->send_cq->qps = qp;
    pthread_mutex_unlock(&qp->send_cq->qps_lock);
    ctl->qp.x = &qp->base;
    return 0;
}

/* No sender is inside any more, and none comes in: those that waited for the lock look again at the
 * number, which is gone. */
static bool is_left(struct soft_fab *f, struct soft_rq_shared *rq)
{
    if (soft_rq_trylock(f, rq) != 0)
        return false;
    soft_unlock(&rq->lock);
    return true;
}

int soft_qp_destroy(struct soft_fab *f, struct fab_ctl *ctl)
{
    struct soft_qp *qp = (struct soft_qp *)ctl->qp.x;
    struct soft_cq *cq = qp->send_cq;
    atomic_store(&qp->shared->ident, 0);
    pthread_mutex_lock(&f->lock);
    atomic_store(&f->qp_of[qp->shared - f->shared->qp], NULL);
    pthread_mutex_unlock(&f->lock);
    if (qp->rq.shared != NULL && soft_rq_release(f, &qp->rq) != 0)
        return -EINPROGRESS;
    if (qp->base.srq != NULL && !is_left(f, ((struct soft_srq *)qp->base.srq)->rq.shared))
        return -EINPROGRESS;
    pthread_mutex_lock(&cq->qps_lock);
    if (qp->waiting)
        atomic_fetch_sub(&cq->waiting, 1);
    for (struct soft_qp **link = &cq->qps; *link != NULL; link = &(*link)->next_in_cq)
        if (*link == qp) {
            *link = qp->next_in_cq;
            break;
        }
    soft_cq_gather(cq);
    if (qp->listed)
        TAILQ_REMOVE(&cq->waiters, qp, by_turn);
    soft_mr_resign(qp);
    soft_unseen_end(qp);
    pthread_mutex_unlock(&cq->qps_lock);
    fab_events_purge(&f->events, &qp->base);
    hold_objects(qp, -1);
    atomic_store(&qp->shared->owner, 0);
    soft_model_qp_end(f, qp);
    free(qp->unseen);
    free(qp->pending);
    free(qp);
    return 0;
}

int soft_dct_create(struct soft_fab *f, struct fab_ctl *ctl)
{
    uint32_t dctn = 0;
    int status;
    if (ctl->dct.cq == NULL || ctl->dct.srq == NULL)
        return -EINVAL;
    if (!(f->base.caps.transports & FAB_DC))
        return -EOPNOTSUPP;
    struct soft_dct *dct = calloc(1, sizeof *dct);
    if (dct == NULL)
        return -ENOMEM;
    struct soft_qp_shared *s = claim_qp(f, &dctn, &status);
    if (s == NULL) {
        free(dct);
        return status;
    }
    dct->base = (struct fab_dct){.pd = ctl->dct.pd, .dctn = dctn, .dc_key = ctl->dct.dc_key};
    dct->shared = s;
    dct->cq = (struct soft_cq *)ctl->dct.cq;
    dct->srq = (struct soft_srq *)ctl->dct.srq;
    attach_shared(s, SOFT_DCT, ctl->dct.pd, cq_number(f, ctl->dct.cq), cq_number(f, ctl->dct.cq),
                  srq_number(f, ctl->dct.srq));
    atomic_store(&s->access, (uint8_t)ctl->dct.access);
    atomic_store(&s->max_dest_reads, SOFT_READS);
    atomic_store(&s->dc_key, ctl->dct.dc_key);
    atomic_store(&s->min_rnr_timer, 1);
    atomic_fetch_add(&((struct soft_pd *)ctl->dct.pd)->users, 1);
    atomic_fetch_add(&dct->cq->users, 1);
    atomic_fetch_add(&dct->srq->users, 1);
    atomic_store(&s->ident, soft_ident(dctn, IBV_QPS_RTR));
    ctl->dct.x = &dct->base;
    return 0;
}

int soft_dct_destroy(struct soft_fab *f, struct fab_ctl *ctl)
{
    struct soft_dct *dct = (struct soft_dct *)ctl->dct.x;
    atomic_store(&dct->shared->ident, 0);
    if (!is_left(f, dct->srq->rq.shared))
        return -EINPROGRESS;
    atomic_store(&dct->shared->owner, 0);
    atomic_fetch_sub(&((struct soft_pd *)dct->base.pd)->users, 1);
    atomic_fetch_sub(&dct->cq->users, 1);
    atomic_fetch_sub(&dct->srq->users, 1);
    free(dct);
    return 0;
}
