/* SPDX-License-Identifier: Apache-2.0 */
/* The robust locks of what other processes append to and take from. */
#include "soft/locks.h"

#include <errno.h>

#include "soft/soft.h"

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
