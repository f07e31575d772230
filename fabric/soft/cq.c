/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues.
 *
 * Completions of sends go into a private ring: the thread that posts is the thread that polls.
 * Completions of receives are appended by the senders' processes to a shared ring, under a robust
 * lock that is only ever tried. */
#include <errno.h>

#include "base/clock.h"
#include "soft/soft.h"

/* ---- filling ---- */

static uint32_t remote_used(const struct soft_cq_shared *s)
{
    return atomic_load_explicit(&s->tail, memory_order_acquire) -
           atomic_load_explicit(&s->head, memory_order_relaxed);
}

/* The CQ is dead: its queue pairs break, and their owner is told. On its own thread. */
static void kill_cq(struct soft_cq *cq)
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

void soft_cq_push(struct soft_qp *qp, const struct fab_wr *wr, enum ibv_wc_status status,
                  uint32_t freed)
{
    static const uint8_t opcode_of[] = {
        [IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
        [IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
        [IBV_WR_SEND] = IBV_WC_SEND,
        [IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
        [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
        [IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
    };
    struct soft_cq *cq = qp->send_cq;
    if ((status == IBV_WC_SUCCESS && !(wr->send_flags & IBV_SEND_SIGNALED)) || cq->dead)
        return; /* errors complete all */
    uint32_t used = cq->tail - cq->head;
    if (used + remote_used(cq->shared) >= cq->base.cqe) {
        kill_cq(cq);
        return;
    }
    struct soft_cqe *e = &cq->ring[cq->tail++ & (cq->room - 1)];
    *e = (struct soft_cqe){.wc = {.wr_id = wr->wr_id,
                                  .status = status,
                                  .opcode = opcode_of[wr->opcode],
                                  .qp_num = qp->base.qpn},
                           .epoch = atomic_load_explicit(&qp->shared->epoch, memory_order_relaxed),
                           .freed = freed,
                           .qp = qp->shared};
    if (status != IBV_WC_SUCCESS) {
        e->wc.vendor_err = qp->vendor_err;
        qp->vendor_err = 0;
    } else if (wr->opcode == IBV_WR_RDMA_READ || wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
        for (int i = 0; i < wr->num_sge; i++)
            e->wc.byte_len += wr->sg_list[i].length;
    }
    atomic_store_explicit(&cq->shared->local_used, used + 1, memory_order_relaxed);
    soft_cq_wake(cq, status != IBV_WC_SUCCESS);
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

/* ---- polling ---- */

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

/* What long requests may move until the next poll when no short one came for quiet_ns. A short one
 * that comes now waits for it, which takes about a twentieth of the pause that it made itself. */
static uint32_t quiet_allowance(uint64_t quiet_ns)
{
    const uint64_t bytes = quiet_ns / SOFT_ALONE_NS;
    if (quiet_ns < SOFT_QUIET_NS)
        return SOFT_TURN;
    return bytes < SOFT_ALONE_MOST ? (uint32_t)bytes : SOFT_ALONE_MOST;
}

/* Asked for only while there are long requests, so that others pay for no clock. */
uint32_t soft_allowance(struct soft_cq *cq)
{
    if (cq->allowed_at == cq->polls)
        return cq->allowance;
    if (cq->whole != cq->whole_seen) {
        const uint32_t bytes = cq->whole - cq->whole_seen;
        cq->whole_seen = cq->whole;
        cq->whole_ns = base_clock_ns();
        cq->allowance = bytes > SOFT_TURN ? bytes : SOFT_TURN;
    } else {
        cq->allowance = quiet_allowance(base_clock_ns() - cq->whole_ns);
    }
    cq->allowed_at = cq->polls;
    return cq->allowance;
}

/* ---- those that wait
 *
 * A CQ may have thousands of queue pairs. Only those that wait are looked at, so that a poll costs
 * what these do. The thread that posts never waits for the lock, which the control thread may hold:
 * it leaves those that begin to wait in a stack that only it adds to, and whoever has the lock
 * takes them over. One that waits no more leaves at the next look. ---- */

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

/* Who moves something comes behind those who did not. True: it waits for its turn again. */
static bool look_at(struct soft_cq *cq, struct soft_qp *qp)
{
    const uint32_t before = soft_allowance(cq);
    cq->looked++;
    if (qp->waiting && (before > 0 || qp->waits_for != SOFT_WAIT_TURN))
        soft_qp_progress(qp);
    const bool moved = cq->allowance != before;
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

static int take_local(struct soft_cq *cq, int n, struct ibv_wc *wc)
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

static int take_remote(struct soft_cq *cq, int n, struct ibv_wc *wc)
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
    cq->polls++;
    if (!yields)
        progress_qps(cq);
    cq->yielded = yields;
}

int soft_poll(struct fab_cq *base, int n, struct ibv_wc *wc)
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
        kill_cq(cq);
        return -EIO;
    }
    int taken = cq->head != cq->tail ? take_local(cq, n, wc) : 0;
    return taken + take_remote(cq, n - taken, wc + taken);
}
