/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues.
 *
 * Completions of sends go into a private ring: the thread that posts is the thread that polls.
 * Completions of receives are appended by the senders' processes to a shared ring, under a robust
 * lock that is only ever tried. */
#include "soft/cq.h"

#include <errno.h>

#include "base/clock.h"
#include "ibta/ibta.h"
#include "soft/chan.h"
#include "soft/soft_qp.h"
#include "soft/soft_qp_error.h"
#include "soft/unseen.h"

static const uint64_t AGAIN_NS = 100000; /* nobody has such a lock for long, if it runs */

/* ---- filling */

static uint32_t remote_used(const struct soft_cq_shared *s)
{
    return atomic_load_explicit(&s->tail, memory_order_acquire) -
           atomic_load_explicit(&s->head, memory_order_relaxed);
}

void soft_cq_kill(struct soft_cq *cq)
{
    struct soft_fab *f = soft_of(cq->base.fab);
    if (cq->dead)
        return;
    cq->dead = true;
    atomic_store(&cq->shared->overflow, 1);
    fab_events_push(&f->events, IBV_EVENT_CQ_ERR, &cq->base);
    uint32_t high = atomic_load(&f->shared->qp_high);
    pthread_mutex_lock(&f->lock); /* the control thread frees none meanwhile */
    for (uint32_t i = 0; i < high; i++) {
        struct soft_qp *qp = atomic_load(&f->qp_of[i]);
        if (qp != NULL && (qp->base.send_cq == &cq->base || qp->base.recv_cq == &cq->base) &&
            soft_qp_to_err(qp->shared, qp->base.qpn, IBV_EVENT_QP_FATAL))
            soft_qp_attend(f, qp);
    }
    pthread_mutex_unlock(&f->lock);
}

/* Wakes whoever waits for this CQ, on its own thread. */
static void wake_own(struct soft_cq *cq, bool solicited)
{
    uint32_t armed = atomic_load_explicit(&cq->shared->armed, memory_order_relaxed);
    if (!soft_is_wanted(armed, solicited))
        return;
    soft_chan_wake(cq->chan);
    (void)atomic_compare_exchange_strong(&cq->shared->armed, &armed, armed & ~3u);
}

void soft_cq_push(struct soft_qp *qp, const struct fab_wr *wr, enum ibv_wc_status status,
                  uint32_t freed)
{
    struct soft_cq *cq = qp->send_cq;
    if ((status == IBV_WC_SUCCESS && !(wr->send_flags & IBV_SEND_SIGNALED)) || cq->dead)
        return; /* errors complete all */
    uint32_t used = cq->tail - cq->head;
    if (used + remote_used(cq->shared) >= cq->base.cqe) {
        soft_cq_kill(cq);
        return;
    }
    struct soft_cqe *e = &cq->ring[cq->tail++ & (cq->room - 1)];
    *e = (struct soft_cqe){.wc = {.wr_id = wr->wr_id,
                                  .status = status,
                                  .opcode = fab_opcode_row(wr->opcode)->completion,
                                  .qp_num = qp->base.qpn},
                           .epoch = atomic_load_explicit(&qp->shared->epoch, memory_order_relaxed),
                           .freed = freed,
                           .qp = qp->shared};
    if (status != IBV_WC_SUCCESS) {
        e->wc.vendor_err = qp->vendor_err;
        qp->vendor_err = 0;
        fab_ibta_scramble(&e->wc);
    } else if (wr->opcode == IBV_WR_RDMA_READ || wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
        for (int i = 0; i < wr->num_sge; i++)
            e->wc.byte_len += wr->sg_list[i].length;
    }
    atomic_store_explicit(&cq->shared->local_used, used + 1, memory_order_relaxed);
    wake_own(cq, status != IBV_WC_SUCCESS);
}

bool soft_cq_append(struct soft_cq_shared *s, const struct soft_arrival *a)
{
    if (soft_cq_is_full(s))
        return false;
    uint32_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    s->ring[tail & s->mask] = *a;
    atomic_store(&s->tail, tail + 1);
    return true;
}

bool soft_cq_is_full(struct soft_cq_shared *s)
{
    uint32_t used = atomic_load_explicit(&s->tail, memory_order_relaxed) -
                    atomic_load_explicit(&s->head, memory_order_acquire);
    if (atomic_load(&s->overflow) == 0 &&
        used + atomic_load_explicit(&s->local_used, memory_order_relaxed) < s->cqe)
        return false;
    atomic_store(&s->overflow, 1);
    return true;
}

/* ---- those that wait
 *
 * A CQ may have thousands of queue pairs. Only those that wait are looked at, so that a poll costs
 * what these do. The thread that posts never waits for the lock, which the control thread may hold:
 * it leaves those that begin to wait in a stack that only it adds to, and whoever has the lock
 * takes them over. One that waits no more leaves at the next look. */

void soft_cq_await(struct soft_qp *qp)
{
    struct soft_cq *cq = qp->send_cq;
    if (qp->listed)
        return;
    qp->listed = true;
    qp->next_begun = atomic_load_explicit(&cq->begun, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&cq->begun, &qp->next_begun, qp))
        ;
}

void soft_cq_gather(struct soft_cq *cq)
{
    struct soft_qp *qp = atomic_exchange(&cq->begun, NULL), *oldest = NULL, *next;
    for (; qp != NULL; qp = next) {
        next = qp->next_begun;
        qp->next_begun = oldest;
        oldest = qp;
    }
    for (qp = oldest; qp != NULL; qp = qp->next_begun)
        TAILQ_INSERT_TAIL(&cq->waiters, qp, by_turn);
}

/* ---- when to look again */

static bool is_armed(struct soft_cq *cq)
{
    return cq->chan != NULL && (atomic_load(&cq->shared->armed) & 3) != SOFT_NOT_ARMED;
}

void soft_cq_look_again(struct soft_cq *cq)
{
    if (is_armed(cq))
        soft_chan_set_timer(cq->chan, base_clock_ns() + AGAIN_NS);
}

void soft_cq_timer(struct soft_cq *cq)
{
    uint64_t due = UINT64_MAX;
    if (!is_armed(cq) || atomic_load(&cq->waiting) == 0)
        return;
    if (pthread_mutex_trylock(&cq->qps_lock) != 0) {
        soft_cq_look_again(cq);
        return;
    }
    struct soft_qp *qp;
    soft_cq_gather(cq);
    TAILQ_FOREACH(qp, &cq->waiters, by_turn) {
        if (!qp->waiting)
            continue;
        due = soft_has_unseen(qp) ? 0 : qp->next_try_ns < due ? qp->next_try_ns : due;
        if (qp->deadline_ns != 0 && qp->deadline_ns < due)
            due = qp->deadline_ns;
    }
    pthread_mutex_unlock(&cq->qps_lock);
    soft_chan_set_timer(cq->chan, due);
}

int soft_arm(struct fab_cq *base, bool solicited_only)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    if (cq->chan == NULL)
        return -EINVAL;
    /* Ordered before what the poll that must follow looks at. Others only disarm. */
    uint32_t before = atomic_load(&cq->shared->armed);
    atomic_store(&cq->shared->armed,
                 ((before & ~3u) + 4) | (solicited_only ? SOFT_ARMED_SOLICITED : SOFT_ARMED));
    soft_cq_timer(cq);
    return 0;
}
