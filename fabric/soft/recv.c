/* SPDX-License-Identifier: Apache-2.0 */
/* Receive queues, and the robust locks of what other processes append to and take from. */
#include <errno.h>

#include "soft/soft.h"

/* ---- locks ---- */

/* Locks are made once per slot of the file and for ever: a stale sender may be trying one while its
 * slot changes hands. */
int soft_make_lock(_Atomic uint32_t *made, pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;
    if (atomic_load(made) != 0)
        return 0;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    int status = -pthread_mutex_init(lock, &attr);
    pthread_mutexattr_destroy(&attr);
    if (status == 0)
        atomic_store(made, 1);
    return status;
}

void soft_unlock(pthread_mutex_t *lock)
{
    pthread_mutex_unlock(lock);
}

/* The CQ's lock was held by a process that died. If it was between taking a receive and appending
 * its completion, nobody else has appended since: so the tail says whether the completion got
 * there.
 */
static void finish_takings(struct soft_fab *f, struct soft_cq_shared *cq)
{
    uint32_t number = (uint32_t)(cq - f->shared->cq) + 1;
    for (uint32_t i = 0; i < atomic_load(&f->shared->rq_high); i++) {
        struct soft_rq_shared *rq = &f->shared->rq[i];
        if (atomic_load(&rq->taking) != number)
            continue;
        if (atomic_load(&cq->tail) != rq->taking_tail)
            atomic_store(&rq->head, rq->taking_head + 1);
        atomic_store(&rq->taking, 0);
    }
}

int soft_cq_trylock(struct soft_fab *f, struct soft_cq_shared *cq)
{
    int status = pthread_mutex_trylock(&cq->lock);
    if (status == EOWNERDEAD) {
        finish_takings(f, cq); /* before: should we die in here, the next one does it again */
        pthread_mutex_consistent(&cq->lock);
        return 0;
    }
    return status == 0 ? 0 : -EBUSY;
}

int soft_rq_trylock(struct soft_fab *f, struct soft_rq_shared *rq)
{
    int status = pthread_mutex_trylock(&rq->lock);
    if (status != 0 && status != EOWNERDEAD)
        return -EBUSY;
    if (status == EOWNERDEAD)
        pthread_mutex_consistent(&rq->lock);
    uint32_t cq = atomic_load(&rq->taking);
    if (cq == 0 || cq > SOFT_CQS)
        return 0;
    /* Its taker died, and whoever gets the CQ's lock first finishes the taking. */
    status = soft_cq_trylock(f, &f->shared->cq[cq - 1]);
    if (status == 0)
        soft_unlock(&f->shared->cq[cq - 1].lock);
    else
        soft_unlock(&rq->lock);
    return status;
}

/* ---- making and dropping ---- */

/* A stopped process may be inside a slot whose owner died: then another slot is taken. */
int soft_rq_claim(struct soft_fab *f, struct soft_rq *rq, uint32_t max_wr, uint32_t max_sge)
{
    struct soft_rq_shared *table = f->shared->rq;
    uint32_t room = soft_power_of_two(max_wr);
    for (uint32_t from = 0; from < SOFT_RQS;) {
        int64_t index = soft_claim(f, table, sizeof table[0], offsetof(struct soft_rq_shared, ring),
                                   SOFT_RQS, from, &f->shared->rq_high);
        if (index < 0)
            return (int)index;
        struct soft_rq_shared *s = &table[index];
        int status = soft_reserve(f, s->ring, room * sizeof s->ring[0]);
        if (status == 0)
            status = soft_make_lock(&s->lock_made, &s->lock);
        if (status == 0)
            status = soft_rq_trylock(f, s);
        if (status == 0) {
            s->max_wr = max_wr;
            s->max_sge = max_sge;
            s->mask = room - 1;
            atomic_store(&s->head, atomic_load(&s->tail));
            soft_unlock(&s->lock);
            rq->shared = s;
            return (int)index + 1;
        }
        atomic_store(&s->owner, 0);
        if (status != -EBUSY)
            return status;
        from = (uint32_t)index + 1;
    }
    return -ENOSPC;
}

int soft_rq_drop(struct soft_fab *f, struct soft_rq *rq)
{
    int status = soft_rq_trylock(f, rq->shared);
    if (status != 0)
        return status;
    atomic_store(&rq->shared->head, atomic_load(&rq->shared->tail));
    soft_unlock(&rq->shared->lock);
    return 0;
}

int soft_rq_release(struct soft_fab *f, struct soft_rq *rq)
{
    int status = soft_rq_trylock(f, rq->shared);
    if (status != 0)
        return status;
    pthread_mutex_t *lock = &rq->shared->lock;
    atomic_store(&rq->shared->owner, 0); /* who locks it next sees that first */
    rq->shared = NULL;
    soft_unlock(lock);
    return 0;
}

/* ---- posting ---- */

static int post_recvs(struct soft_rq *rq, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    struct soft_rq_shared *s = rq->shared;
    for (; wr != NULL; wr = wr->next) {
        uint32_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
        bool sound = wr->num_sge >= 0 && (uint32_t)wr->num_sge <= s->max_sge &&
                     (wr->num_sge == 0 || wr->sg_list != NULL);
        if (!sound || tail - atomic_load_explicit(&s->head, memory_order_acquire) >= s->max_wr) {
            *bad = wr;
            return sound ? -ENOMEM : -EINVAL;
        }
        struct soft_rqe *e = &s->ring[tail & s->mask];
        e->wr_id = wr->wr_id;
        e->num_sge = (uint32_t)wr->num_sge;
        if (wr->num_sge > 0)
            memcpy(e->sge, wr->sg_list, (size_t)wr->num_sge * sizeof e->sge[0]);
        atomic_store_explicit(&s->tail, tail + 1, memory_order_release);
    }
    return 0;
}

int soft_post_recv(struct fab_qp *base, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    enum ibv_qp_state state = soft_state(atomic_load(&qp->shared->ident));
    if (qp->rq.shared == NULL || state == IBV_QPS_RESET) {
        *bad = wr;
        return -EINVAL;
    }
    int status = post_recvs(&qp->rq, wr, bad);
    if (state == IBV_QPS_ERR)
        soft_qp_flush(qp);
    return status;
}

int soft_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    return post_recvs(&((struct soft_srq *)srq)->rq, wr, bad);
}

bool soft_rq_flush(struct soft_fab *f, struct soft_qp *qp)
{
    struct soft_rq_shared *s = qp->rq.shared;
    struct soft_cq_shared *cq = ((struct soft_cq *)qp->base.recv_cq)->shared;
    if (s == NULL || soft_rq_trylock(f, s) != 0)
        return s == NULL;
    if (soft_state(atomic_load(&qp->shared->ident)) != IBV_QPS_ERR) { /* was reset meanwhile */
        soft_unlock(&s->lock);
        return true;
    }
    bool locked = soft_cq_trylock(f, cq) == 0;
    if (locked) {
        uint32_t head = atomic_load(&s->head);
        for (; head != atomic_load(&s->tail); head++) {
            struct soft_arrival a = {.wr_id = s->ring[head & s->mask].wr_id,
                                     .status = IBV_WC_WR_FLUSH_ERR,
                                     .opcode = IBV_WC_RECV,
                                     .epoch = atomic_load(&qp->shared->epoch),
                                     .qpn = qp->base.qpn};
            if (!soft_cq_append(cq, &a))
                break;
        }
        atomic_store(&s->head, head);
        soft_unlock(&cq->lock);
        soft_cq_notify(f, cq, true);
    }
    soft_unlock(&s->lock);
    return locked;
}
