/* SPDX-License-Identifier: Apache-2.0 */
/* What a queue's own thread calls beside posting sends. Polling: broken queue pairs are flushed,
 * what waits goes on, and completions are taken. */
#include "soft/poll.h"

#include <errno.h>

#include "ibta/ibta.h"
#include "soft/cq.h"
#include "soft/pieces.h"
#include "soft/recv.h"
#include "soft/sendq.h"

/* Somebody broke a queue pair of this context: those that complete here flush. False: try again
 * later. */
static bool attend_broken(struct soft_cq *cq)
{
    if (pthread_mutex_trylock(&cq->qps_lock) != 0)
        return false;
    for (struct soft_qp *qp = cq->qps; qp != NULL; qp = qp->next_in_cq)
        if (soft_state(atomic_load(&qp->shared->ident)) == IBV_QPS_ERR &&
            (!qp->flushed || atomic_load(&qp->shared->cause) != 0))
            soft_qp_flush(qp);
    pthread_mutex_unlock(&cq->qps_lock);
    return true;
}

/* The same for receives that complete here while their queue pair's sends complete elsewhere, where
 * perhaps nobody polls. */
static bool attend_receives(struct soft_cq *cq)
{
    struct soft_fab *f = soft_of(cq->base.fab);
    uint32_t high = atomic_load(&f->shared->qp_high);
    bool done = true;
    if (pthread_mutex_trylock(&f->lock) != 0)
        return false;
    for (uint32_t i = 0; i < high; i++) {
        struct soft_qp *qp = atomic_load(&f->qp_of[i]);
        if (qp != NULL && qp->base.recv_cq == &cq->base && qp->send_cq != cq &&
            soft_state(atomic_load(&qp->shared->ident)) == IBV_QPS_ERR)
            done &= soft_rq_flush(f, qp);
    }
    pthread_mutex_unlock(&f->lock);
    return done;
}

/* A queue pair that moves a part of a long request goes behind those that did not. True: it waits
 * for its turn again. The allowance, which reads the clock, is asked for only by long requests.
 */
static bool look_at(struct soft_cq *cq, struct soft_qp *qp)
{
    const uint32_t before = cq->pace.in_turns;
    cq->looked++;
    if (qp->waiting && (qp->waits_for != SOFT_WAIT_TURN || soft_allowance(&cq->pace) > 0))
        soft_qp_progress(qp);
    const bool moved = cq->pace.in_turns != before;
    if (!qp->waiting || moved)
        TAILQ_REMOVE(&cq->waiters, qp, by_turn);
    if (qp->waiting && moved)
        TAILQ_INSERT_TAIL(&cq->waiters, qp, by_turn);
    qp->listed = qp->waiting;
    return qp->waiting && qp->waits_for == SOFT_WAIT_TURN;
}

static void progress_qps(struct soft_cq *cq)
{
    bool busy = false;
    if (pthread_mutex_trylock(&cq->qps_lock) != 0) {
        soft_cq_look_again(cq);
        return;
    }
    soft_cq_gather(cq);
    struct soft_qp *last = TAILQ_LAST(&cq->waiters, soft_waiters), *next;
    for (struct soft_qp *qp = TAILQ_FIRST(&cq->waiters); qp != NULL; qp = next) {
        next = qp == last ? NULL : TAILQ_NEXT(qp, by_turn);
        busy |= look_at(cq, qp);
    }
    cq->busy = busy;
    pthread_mutex_unlock(&cq->qps_lock);
    soft_cq_timer(cq);
}

static inline int take_local(struct soft_cq *cq, int n, struct ibv_wc *wc)
{
    int taken = 0;
    while (taken < n && cq->head != cq->tail) {
        const struct soft_cqe *e = &cq->ring[cq->head++ & (cq->room - 1)];
        /* A reset or destroyed queue pair's completions are no longer there, as with verbs. */
        if (soft_qpn(atomic_load_explicit(&e->qp->ident, memory_order_relaxed)) != e->wc.qp_num ||
            atomic_load_explicit(&e->qp->epoch, memory_order_relaxed) != e->epoch)
            continue;
        atomic_store_explicit(&e->qp->sq_freed, e->freed, memory_order_relaxed);
        wc[taken++] = e->wc;
    }
    atomic_store_explicit(&cq->shared->local_used, cq->tail - cq->head, memory_order_relaxed);
    return taken;
}

static inline int take_remote(struct soft_cq *cq, int n, struct ibv_wc *wc)
{
    const struct soft_fab *f = soft_of(cq->base.fab);
    struct soft_cq_shared *s = cq->shared;
    uint32_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);
    int taken = 0;
    if (head == tail)
        return 0;
    for (; taken < n && head != tail; head++) {
        const struct soft_arrival *a = &s->ring[head & s->mask];
        const struct soft_qp_shared *qp = &f->shared->qp[a->qpn & (SOFT_QPS - 1)];
        if (soft_qpn(atomic_load_explicit(&qp->ident, memory_order_relaxed)) != a->qpn ||
            atomic_load_explicit(&qp->epoch, memory_order_relaxed) != a->epoch)
            continue;
        wc[taken++] = (struct ibv_wc){.wr_id = a->wr_id,
                                      .status = (enum ibv_wc_status)a->status,
                                      .opcode = (enum ibv_wc_opcode)a->opcode,
                                      .byte_len = a->byte_len,
                                      .imm_data = a->imm_data,
                                      .qp_num = a->qpn,
                                      .src_qp = a->src_qp,
                                      .wc_flags = a->wc_flags};
        if (a->status != IBV_WC_SUCCESS)
            fab_ibta_scramble(&wc[taken - 1]);
    }
    atomic_store_explicit(&s->head, head, memory_order_release);
    return taken;
}

bool soft_is_busy(const struct fab_cq *base)
{
    const struct soft_cq *cq = (const struct soft_cq *)base;
    return cq->busy && atomic_load_explicit(&cq->waiting, memory_order_relaxed) != 0;
}

/* Every other time what is complete goes before what would take a while. */
static void go_on(struct soft_cq *cq)
{
    const bool yields = cq->busy && !cq->yielded && cq->head != cq->tail;
    cq->pace.polls++;
    if (!yields)
        progress_qps(cq);
    cq->yielded = yields;
}

static inline int poll_some(struct fab_cq *base, int n, int sends, struct ibv_wc *wc)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    uint32_t attention =
        atomic_load_explicit(&soft_of(base->fab)->me->attention, memory_order_acquire);
    if (attention != cq->attention) {
        if (attend_broken(cq) && attend_receives(cq))
            cq->attention = attention;
        if (atomic_load(&soft_of(base->fab)->me->attention) != cq->attention)
            soft_cq_look_again(cq);
    }
    if (atomic_load_explicit(&cq->waiting, memory_order_relaxed) != 0)
        go_on(cq);
    if (atomic_load_explicit(&cq->shared->overflow, memory_order_relaxed) != 0) {
        soft_cq_kill(cq);
        return -EIO;
    }
    int taken = cq->head != cq->tail ? take_local(cq, sends, wc) : 0;
    return taken + take_remote(cq, n - taken, wc + taken);
}

int soft_poll(struct fab_cq *base, int n, struct ibv_wc *wc)
{
    return poll_some(base, n, n, wc);
}

int soft_poll_sends(struct fab_cq *base, int n, int sends, struct ibv_wc *wc)
{
    return poll_some(base, n, sends, wc);
}

int soft_post_recv(struct fab_qp *base, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    enum ibv_qp_state state = soft_state(atomic_load(&qp->shared->ident));
    if (qp->rq.shared == NULL || state == IBV_QPS_RESET) {
        *bad = wr;
        return -EINVAL;
    }
    int status = soft_rq_post(&qp->rq, wr, bad);
    if (state == IBV_QPS_ERR)
        soft_qp_flush(qp);
    return status;
}
