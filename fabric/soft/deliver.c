/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs and immediates: the sender's process takes a receive from the target's queue, fills its
 * buffers, and appends the completion. The target's process need not run for that. */
#include <errno.h>
#include <string.h>

#include "soft/soft.h"

/* Races with whoever reads the buffer too early, as DMA does. */
__attribute__((no_sanitize("thread"))) static void copy(uint8_t *to, const uint8_t *from, size_t n)
{
    memcpy(to, from, n);
}

/* ---- posting
 * -------------------------------------------------------------------------------------- */

static int post(struct soft_rq *rq, struct kedge_fab_recv_wr *wr, struct kedge_fab_recv_wr **bad)
{
    struct soft_rq_shared *s = rq->shared;
    for (; wr != NULL; wr = wr->next) {
        uint32_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
        bool sound = wr->num_sge >= 0 && wr->num_sge <= SOFT_SGE &&
                     (wr->num_sge == 0 || wr->sg_list != NULL);
        if (!sound || tail - atomic_load_explicit(&s->head, memory_order_acquire) >= s->max_wr) {
            *bad = wr;
            return sound ? -ENOMEM : -EINVAL;
        }
        struct soft_rqe *e = &s->ring[tail & (SOFT_RQ_WR - 1)];
        e->wr_id = wr->wr_id;
        e->num_sge = (uint32_t)wr->num_sge;
        if (wr->num_sge > 0)
            memcpy(e->sge, wr->sg_list, (size_t)wr->num_sge * sizeof e->sge[0]);
        atomic_store_explicit(&s->tail, tail + 1, memory_order_release);
    }
    return 0;
}

int soft_post_recv(struct kedge_fab_qp *base, struct kedge_fab_recv_wr *wr,
                   struct kedge_fab_recv_wr **bad)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    uint32_t state = atomic_load(&qp->shared->state);
    if (qp->rq.shared == NULL || state == IBV_QPS_RESET) {
        *bad = wr;
        return -EINVAL;
    }
    int status = post(&qp->rq, wr, bad);
    if (state == IBV_QPS_ERR)
        soft_rq_flush(soft_of(base->pd->fab), qp);
    return status;
}

int soft_post_srq_recv(struct kedge_fab_srq *srq, struct kedge_fab_recv_wr *wr,
                       struct kedge_fab_recv_wr **bad)
{
    return post(&((struct soft_srq *)srq)->rq, wr, bad);
}

/* A broken queue pair's own receives complete with a flush error. A sender in the middle keeps the
 * lock; the rest is flushed at the next attention. */
void soft_rq_flush(struct soft_fab *f, struct soft_qp *qp)
{
    struct soft_rq_shared *s = qp->rq.shared;
    struct soft_cq_shared *cq = ((struct soft_cq *)qp->base.recv_cq)->shared;
    if (s == NULL || atomic_load(&s->head) == atomic_load(&s->tail))
        return;
    if (soft_trylock(&s->lock) != 0) {
        atomic_fetch_add(&f->me->attention, 1);
        return;
    }
    if (soft_trylock(&cq->lock) == 0) {
        uint32_t head = atomic_load(&s->head);
        for (; head != atomic_load(&s->tail); head++) {
            struct ibv_wc wc = {.wr_id = s->ring[head & (SOFT_RQ_WR - 1)].wr_id,
                                .status = IBV_WC_WR_FLUSH_ERR,
                                .qp_num = qp->base.qpn};
            if (!soft_cq_append(f, cq, &wc, true))
                break;
        }
        atomic_store(&s->head, head);
        pthread_mutex_unlock(&cq->lock);
    } else {
        atomic_fetch_add(&f->me->attention, 1);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- delivering
 * ----------------------------------------------------------------------------------- */

/* Where the message goes next: over the receive's SGEs. */
struct scatter {
    const struct soft_rqe *rqe;
    uint32_t sge, used;
};

/* Writes n bytes behind what was written before. OK, or why the receiver's memory refused. */
static enum soft_mr_status scatter(struct soft_qp *qp, struct scatter *to, soft_owner owner,
                                   uint32_t pd, const uint8_t *from, uint32_t n)
{
    while (n > 0) {
        const struct ibv_sge *sge = &to->rqe->sge[to->sge];
        uint32_t room = sge->length - to->used, part = n < room ? n : room;
        uint8_t *at;
        if (part > 0) {
            enum soft_mr_status status = soft_mr_enter(
                qp, owner, pd, sge->lkey, sge->addr + to->used, part, IBV_ACCESS_LOCAL_WRITE, &at);
            if (status != SOFT_MR_OK)
                return status;
            copy(at, from, part);
            from += part;
            n -= part;
            to->used += part;
        }
        if (to->used == sge->length) {
            to->sge++;
            to->used = 0;
        }
    }
    return SOFT_MR_OK;
}

static void make_grh(uint8_t grh[SOFT_GRH], const struct soft_message *m)
{
    uint16_t payload = __builtin_bswap16((uint16_t)m->length);
    memset(grh, 0, SOFT_GRH);
    grh[0] = 6 << 4; /* IP version, as IBTA 8.3 has it */
    memcpy(grh + 4, &payload, sizeof payload);
    grh[6] = 0x1b;
    grh[7] = 64;
    memcpy(grh + 8, m->grh_sgid, 16);
    memcpy(grh + 24, m->grh_dgid, 16);
}

static enum soft_mr_status scatter_message(struct soft_qp *qp, const struct soft_rqe *rqe,
                                           soft_owner owner, uint32_t pd,
                                           const struct soft_message *m)
{
    struct scatter to = {.rqe = rqe};
    enum soft_mr_status status = SOFT_MR_OK;
    if (m->grh_sgid != NULL) {
        uint8_t grh[SOFT_GRH];
        make_grh(grh, m);
        status = scatter(qp, &to, owner, pd, grh, SOFT_GRH);
    }
    for (int i = 0; i < m->num_sge && status == SOFT_MR_OK; i++)
        status = scatter(qp, &to, owner, pd, (const uint8_t *)(uintptr_t)m->sg_list[i].addr,
                         m->sg_list[i].length);
    return status;
}

/* The receiver's own fault: its receive completes with an error, and on RC its queue pair breaks.
 */
static void break_receiver(struct soft_fab *f, struct soft_qp *qp, struct soft_qp_shared *t)
{
    if (t->kind != SOFT_RC)
        return;
    atomic_store(&t->state, IBV_QPS_ERR);
    atomic_fetch_add(&qp->target_context->attention, 1);
    soft_cq_notify(f, &f->shared->cq[t->send_cq - 1], true);
    soft_cq_notify(f, &f->shared->cq[t->recv_cq - 1], true);
}

/* With the receive queue's and the CQ's locks held. */
static enum soft_outcome deliver_locked(struct soft_qp *qp, struct soft_qp_shared *t,
                                        soft_owner owner, struct soft_message *m,
                                        struct soft_rq_shared *rq, struct soft_cq_shared *cq,
                                        enum ibv_wc_status *status)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    bool ud = m->grh_sgid != NULL;
    uint32_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&rq->tail, memory_order_acquire))
        return ud ? SOFT_DONE : SOFT_WAIT_RNR; /* a datagram without a receive is lost */
    struct soft_rqe rqe = rq->ring[head & (SOFT_RQ_WR - 1)];
    uint64_t room = 0, needed = m->write_imm ? 0 : (uint64_t)m->length + (ud ? SOFT_GRH : 0);
    for (uint32_t i = 0; i < rqe.num_sge && i < SOFT_SGE; i++)
        room += rqe.sge[i].length;

    m->wc.wr_id = rqe.wr_id;
    m->wc.status = IBV_WC_SUCCESS;
    m->wc.qp_num = atomic_load(&t->qpn);
    m->wc.byte_len = m->length + (ud ? SOFT_GRH : 0);
    m->wc.wc_flags |= ud ? IBV_WC_GRH : 0;
    enum ibv_wc_status answer = IBV_WC_SUCCESS;
    if (rqe.num_sge > SOFT_SGE || room < needed) {
        m->wc.status = IBV_WC_LOC_LEN_ERR;
        answer = IBV_WC_REM_INV_REQ_ERR;
    } else if (!m->write_imm) {
        switch (scatter_message(qp, &rqe, owner, t->pd, m)) {
        case SOFT_MR_GONE:
            return ud ? SOFT_DONE : SOFT_WAIT_PEER;
        case SOFT_MR_DENIED:
            m->wc.status = IBV_WC_LOC_PROT_ERR;
            answer = IBV_WC_REM_OP_ERR;
            break;
        case SOFT_MR_OK:
            break;
        }
    }
    atomic_store_explicit(&rq->head, head + 1, memory_order_release);
    (void)soft_cq_append(f, cq, &m->wc, m->solicited);
    if (answer != IBV_WC_SUCCESS)
        break_receiver(f, qp, t);
    *status = ud ? IBV_WC_SUCCESS : answer;
    return SOFT_DONE;
}

enum soft_outcome soft_deliver(struct soft_qp *qp, struct soft_qp_shared *t, soft_owner owner,
                               struct soft_message *m, enum ibv_wc_status *status)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    uint16_t rq_number = t->rq, cq_number = t->recv_cq;
    *status = IBV_WC_SUCCESS;
    if (rq_number == 0 || cq_number == 0 || rq_number > SOFT_RQS || cq_number > SOFT_CQS)
        return SOFT_WAIT_PEER;
    struct soft_rq_shared *rq = &f->shared->rq[rq_number - 1];
    struct soft_cq_shared *cq = &f->shared->cq[cq_number - 1];
    if (atomic_load(&rq->owner) != owner || atomic_load(&cq->owner) != owner)
        return SOFT_WAIT_PEER;
    if (soft_trylock(&rq->lock) != 0)
        return SOFT_WAIT_LOCK;
    if (soft_trylock(&cq->lock) != 0) {
        pthread_mutex_unlock(&rq->lock);
        return SOFT_WAIT_LOCK;
    }
    enum soft_outcome outcome = deliver_locked(qp, t, owner, m, rq, cq, status);
    pthread_mutex_unlock(&cq->lock);
    pthread_mutex_unlock(&rq->lock);
    return outcome;
}
