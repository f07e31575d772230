/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues and channels.
 *
 * Completions of sends go into a private ring: the thread that posts is the thread that polls.
 * Completions of receives are appended by the senders' processes to a shared ring, under a robust
 * lock that is only ever tried. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "soft/soft.h"

int soft_trylock(pthread_mutex_t *lock)
{
    int status = pthread_mutex_trylock(lock);
    if (status == EOWNERDEAD) {
        /* What it had half done was not published: indices move last. */
        pthread_mutex_consistent(lock);
        return 0;
    }
    return status == 0 ? 0 : -EBUSY;
}

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

/* ---- waking
 * --------------------------------------------------------------------------------------- */

void soft_cq_notify(struct soft_fab *f, struct soft_cq_shared *cq, bool solicited)
{
    uint32_t armed = atomic_load(&cq->armed);
    char name[32];
    if (armed == SOFT_NOT_ARMED || (armed == SOFT_ARMED_SOLICITED && !solicited))
        return;
    if (!atomic_compare_exchange_strong(&cq->armed, &armed, SOFT_NOT_ARMED))
        return; /* somebody else wakes */
    snprintf(name, sizeof name, "chan.%u", cq->chan);
    int fd = openat(f->dir_fd, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return; /* its process is gone */
    /* A full FIFO has woken its reader already. */
    if (write(fd, "", 1) < 0) {
    }
    close(fd);
}

/* The armed channel also becomes readable when something that waits is due. */
void soft_cq_timer(struct soft_cq *cq)
{
    uint64_t due = UINT64_MAX;
    if (cq->chan == NULL || atomic_load(&cq->shared->armed) == SOFT_NOT_ARMED ||
        atomic_load(&cq->waiting) == 0 || pthread_mutex_trylock(&cq->qps_lock) != 0)
        return;
    for (struct soft_qp *qp = cq->qps; qp != NULL; qp = qp->next_in_cq)
        if (qp->waiting && qp->next_try_ns < due)
            due = qp->next_try_ns;
    pthread_mutex_unlock(&cq->qps_lock);
    if (due == UINT64_MAX)
        return;
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(due / KEDGE_NS_PER_S),
                                           .tv_nsec = (long)(due % KEDGE_NS_PER_S)}};
    (void)timerfd_settime(cq->chan->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

int soft_arm(struct kedge_fab_cq *base, bool solicited_only)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    if (cq->chan == NULL)
        return -EINVAL;
    atomic_store(&cq->shared->armed, solicited_only ? SOFT_ARMED_SOLICITED : SOFT_ARMED);
    soft_cq_timer(cq);
    /* What was broken or killed before arming is seen by the poll that must follow. */
    return 0;
}

void soft_chan_drain(struct kedge_fab_chan *base)
{
    struct soft_chan *chan = (struct soft_chan *)base;
    char bytes[256];
    uint64_t expirations;
    while (read(chan->fifo, bytes, sizeof bytes) > 0)
        ;
    if (read(chan->timer, &expirations, sizeof expirations) < 0) {
    }
}

/* ---- filling
 * -------------------------------------------------------------------------------------- */

static uint32_t remote_used(const struct soft_cq_shared *s)
{
    return atomic_load_explicit(&s->tail, memory_order_acquire) -
           atomic_load_explicit(&s->head, memory_order_relaxed);
}

void soft_cq_overflow(struct soft_cq *cq)
{
    struct soft_fab *f = soft_of(cq->base.fab);
    if (cq->dead)
        return;
    cq->dead = true;
    atomic_store(&cq->shared->overflow, 1);
    soft_push_event(f, IBV_EVENT_CQ_ERR, &cq->base);
    for (uint32_t i = 0; i < SOFT_QPS; i++) {
        struct soft_qp *qp =
            i < atomic_load(&f->shared->qp_high) ? atomic_load(&f->qp_of[i]) : NULL;
        if (qp != NULL && (qp->base.send_cq == &cq->base || qp->base.recv_cq == &cq->base))
            atomic_store(&qp->shared->state, IBV_QPS_ERR);
    }
    atomic_fetch_add(&f->me->attention, 1);
}

void soft_cq_push(struct soft_qp *qp, const struct kedge_fab_wr *wr, enum ibv_wc_status status,
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
    if (!(wr->send_flags & IBV_SEND_SIGNALED) || cq->dead)
        return;
    uint32_t used = cq->tail - cq->head;
    if (used + remote_used(cq->shared) >= cq->base.cqe) {
        soft_cq_overflow(cq);
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
    if (status == IBV_WC_SUCCESS &&
        (wr->opcode == IBV_WR_RDMA_READ || wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP))
        for (int i = 0; i < wr->num_sge; i++)
            e->wc.byte_len += wr->sg_list[i].length;
    atomic_store_explicit(&cq->shared->local_used, used + 1, memory_order_relaxed);
    if (atomic_load_explicit(&cq->shared->armed, memory_order_relaxed) != SOFT_NOT_ARMED)
        soft_cq_notify(soft_of(cq->base.fab), cq->shared, status != IBV_WC_SUCCESS);
}

bool soft_cq_append(struct soft_fab *f, struct soft_cq_shared *s, const struct ibv_wc *wc,
                    bool solicited)
{
    uint32_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    uint32_t used = tail - atomic_load_explicit(&s->head, memory_order_acquire);
    if (used >= SOFT_CQ_REMOTE ||
        used + atomic_load_explicit(&s->local_used, memory_order_relaxed) >= s->cqe) {
        atomic_store(&s->overflow, 1);
        soft_cq_notify(f, s, true);
        return false;
    }
    s->ring[tail & (SOFT_CQ_REMOTE - 1)] = *wc;
    atomic_store(&s->tail, tail + 1);
    soft_cq_notify(f, s, solicited || wc->status != IBV_WC_SUCCESS);
    return true;
}

/* ---- polling
 * -------------------------------------------------------------------------------------- */

/* Somebody broke a queue pair of this context: those that complete here flush. False: try again
 * later. */
static bool attend(struct soft_cq *cq)
{
    if (pthread_mutex_trylock(&cq->qps_lock) != 0)
        return false;
    for (struct soft_qp *qp = cq->qps; qp != NULL; qp = qp->next_in_cq) {
        if (qp->flushed || atomic_load(&qp->shared->state) != IBV_QPS_ERR)
            continue;
        soft_qp_flush(qp);
        soft_push_event(soft_of(cq->base.fab), IBV_EVENT_QP_ACCESS_ERR, &qp->base);
    }
    pthread_mutex_unlock(&cq->qps_lock);
    return true;
}

static void progress(struct soft_cq *cq)
{
    if (pthread_mutex_trylock(&cq->qps_lock) != 0)
        return;
    for (struct soft_qp *qp = cq->qps; qp != NULL; qp = qp->next_in_cq)
        if (qp->waiting)
            soft_qp_progress(qp);
    pthread_mutex_unlock(&cq->qps_lock);
}

static int take_local(struct soft_cq *cq, int n, struct ibv_wc *wc)
{
    int taken = 0;
    while (taken < n && cq->head != cq->tail) {
        const struct soft_cqe *e = &cq->ring[cq->head++ & (cq->room - 1)];
        /* A reset or destroyed queue pair's completions are no longer there, as with verbs. */
        if (atomic_load_explicit(&e->qp->qpn, memory_order_relaxed) != e->wc.qp_num ||
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
    struct soft_cq_shared *s = cq->shared;
    uint32_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);
    int taken = 0;
    while (taken < n && head != tail)
        wc[taken++] = s->ring[head++ & (SOFT_CQ_REMOTE - 1)];
    if (taken > 0)
        atomic_store_explicit(&s->head, head, memory_order_release);
    return taken;
}

int soft_poll(struct kedge_fab_cq *base, int n, struct ibv_wc *wc)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    uint32_t attention =
        atomic_load_explicit(&soft_of(base->fab)->me->attention, memory_order_acquire);
    if (attention != cq->attention && attend(cq))
        cq->attention = attention;
    if (atomic_load_explicit(&cq->waiting, memory_order_relaxed) != 0)
        progress(cq);
    if (atomic_load_explicit(&cq->shared->overflow, memory_order_relaxed) != 0) {
        soft_cq_overflow(cq);
        return -EIO;
    }
    int taken = cq->head != cq->tail ? take_local(cq, n, wc) : 0;
    return taken + take_remote(cq, n - taken, wc + taken);
}
