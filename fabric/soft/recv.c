/* SPDX-License-Identifier: Apache-2.0 */
/* Receive queues. */
#include "soft/recv.h"

#include <errno.h>

#include "soft/chan.h"
#include "soft/locks.h"
#include "soft/soft_qp.h"
#include "soft/soft_tables.h"

/* ---- making and dropping */

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
    atomic_store(&rq->shared->owner, 0); /* the next one that locks it sees that first */
    rq->shared = NULL;
    soft_unlock(lock);
    return 0;
}

/* ---- posting */

int soft_rq_post(struct soft_rq *rq, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
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

int soft_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    return soft_rq_post(&((struct soft_srq *)srq)->rq, wr, bad);
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
