/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing protection domains, address handles, completion queues and shared receive
 * queues. Control thread. */
#include <errno.h>
#include <stdlib.h>

#include "ibta/ibta.h"
#include "soft/chan.h"
#include "soft/locks.h"
#include "soft/objects.h"
#include "soft/soft_tables.h"

struct soft_ah {
    struct fab_ah base;
};

/* ---- PDs, address handles */

int soft_pd_alloc(struct soft_fab *f, struct fab_ctl *ctl)
{
    struct soft_pd *pd = calloc(1, sizeof *pd);
    if (pd == NULL)
        return -ENOMEM;
    pd->base.fab = &f->base;
    pd->base.service = ctl->pd.service != NULL ? *ctl->pd.service : f->base.caps.service;
    pd->base.pkey = fab_ibta_pkey(&pd->base);
    pd->id = atomic_fetch_add(&f->shared->next_pd, 1) + 1;
    ctl->pd.x = &pd->base;
    return 0;
}

int soft_pd_free(struct fab_ctl *ctl)
{
    struct soft_pd *pd = (struct soft_pd *)ctl->pd.x;
    if (atomic_load(&pd->users) != 0)
        return -EBUSY;
    free(pd);
    return 0;
}

int soft_ah_create(struct fab_ctl *ctl)
{
    if (!fab_ibta_serves(ctl->ah.pd, &ctl->ah.attr))
        return -EINVAL;
    struct soft_ah *ah = calloc(1, sizeof *ah);
    if (ah == NULL)
        return -ENOMEM;
    ah->base.pd = ctl->ah.pd;
    memcpy(ah->base.dgid, ctl->ah.attr.grh.dgid.raw, 16);
    atomic_fetch_add(&((struct soft_pd *)ctl->ah.pd)->users, 1);
    ctl->ah.x = &ah->base;
    return 0;
}

int soft_ah_destroy(struct fab_ctl *ctl)
{
    atomic_fetch_sub(&((struct soft_pd *)ctl->ah.x->pd)->users, 1);
    free(ctl->ah.x);
    return 0;
}

/* ---- completion queues */

/* Empties a slot that was just claimed. A stopped process may be inside one whose owner died: then
 * it is given back, -EBUSY. */
static int prepare_cq(struct soft_fab *f, struct soft_cq_shared *s, uint32_t cqe,
                      const struct soft_chan *chan)
{
    uint32_t room = soft_power_of_two(cqe);
    int status = soft_reserve(f, s->ring, room * sizeof s->ring[0]);
    if (status == 0)
        status = soft_make_lock(&s->lock_made, &s->lock);
    if (status == 0)
        status = soft_cq_trylock(f, s);
    if (status != 0) {
        atomic_store(&s->owner, 0);
        return status;
    }
    s->cqe = cqe;
    s->mask = room - 1;
    atomic_store(&s->head, atomic_load(&s->tail));
    atomic_store(&s->local_used, 0);
    atomic_store(&s->overflow, 0);
    atomic_store(&s->armed, SOFT_NOT_ARMED);
    atomic_store(&s->chan, chan != NULL ? soft_chan_number(chan) : 0);
    soft_unlock(&s->lock);
    return 0;
}

static int claim_cq(struct soft_fab *f, uint32_t cqe, const struct soft_chan *chan,
                    struct soft_cq_shared **out)
{
    struct soft_cq_shared *table = f->shared->cq;
    for (uint32_t from = 0; from < SOFT_CQS;) {
        int64_t index = soft_claim(f, table, sizeof table[0], offsetof(struct soft_cq_shared, ring),
                                   SOFT_CQS, from, &f->shared->cq_high);
        if (index < 0)
            return (int)index;
        int status = prepare_cq(f, &table[index], cqe, chan);
        if (status == 0)
            *out = &table[index];
        if (status != -EBUSY)
            return status;
        from = (uint32_t)index + 1;
    }
    return -ENOSPC;
}

int soft_cq_create(struct soft_fab *f, struct fab_ctl *ctl)
{
    if (ctl->cq.cqe == 0 || ctl->cq.cqe > f->base.caps.max_cqe)
        return -EINVAL;
    struct soft_cq *cq = calloc(1, sizeof *cq);
    if (cq == NULL)
        return -ENOMEM;
    cq->room = soft_power_of_two(ctl->cq.cqe);
    cq->ring = calloc(cq->room, sizeof cq->ring[0]);
    cq->chan = (struct soft_chan *)ctl->cq.chan;
    int status = cq->ring == NULL ? -ENOMEM : claim_cq(f, ctl->cq.cqe, cq->chan, &cq->shared);
    if (status != 0) {
        free(cq->ring);
        free(cq);
        return status;
    }
    if (cq->chan != NULL)
        soft_chan_use(cq->chan, 1);
    pthread_mutex_init(&cq->qps_lock, NULL);
    TAILQ_INIT(&cq->waiters);
    cq->attention = atomic_load(&f->me->attention);
    cq->base = (struct fab_cq){.fab = &f->base, .cqe = ctl->cq.cqe, .user = ctl->cq.user};
    ctl->cq.x = &cq->base;
    return 0;
}

int soft_cq_destroy(struct soft_fab *f, struct fab_ctl *ctl)
{
    struct soft_cq *cq = (struct soft_cq *)ctl->cq.x;
    if (atomic_load(&cq->users) != 0)
        return -EBUSY;
    if (soft_cq_trylock(f, cq->shared) != 0)
        return -EINPROGRESS; /* a sender is inside */
    pthread_mutex_t *lock = &cq->shared->lock;
    atomic_store(&cq->shared->armed, SOFT_NOT_ARMED);
    atomic_store(&cq->shared->owner, 0);
    soft_unlock(lock);
    if (cq->chan != NULL)
        soft_chan_use(cq->chan, -1);
    fab_events_purge(&f->events, &cq->base);
    pthread_mutex_destroy(&cq->qps_lock);
    free(cq->ring);
    free(cq);
    return 0;
}

/* ---- shared receive queues */

int soft_srq_create(struct soft_fab *f, struct fab_ctl *ctl)
{
    if (ctl->srq.max_wr == 0 || ctl->srq.max_wr > SOFT_RQ_WR || ctl->srq.max_sge > SOFT_SGE)
        return -EINVAL;
    struct soft_srq *srq = calloc(1, sizeof *srq);
    if (srq == NULL)
        return -ENOMEM;
    int status = soft_rq_claim(f, &srq->rq, ctl->srq.max_wr, ctl->srq.max_sge);
    if (status < 0) {
        free(srq);
        return status;
    }
    srq->base = (struct fab_srq){.pd = ctl->srq.pd, .max_wr = ctl->srq.max_wr};
    atomic_fetch_add(&((struct soft_pd *)ctl->srq.pd)->users, 1);
    ctl->srq.x = &srq->base;
    return 0;
}

int soft_srq_destroy(struct soft_fab *f, struct fab_ctl *ctl)
{
    struct soft_srq *srq = (struct soft_srq *)ctl->srq.x;
    if (atomic_load(&srq->users) != 0)
        return -EBUSY;
    if (soft_rq_release(f, &srq->rq) != 0)
        return -EINPROGRESS; /* a sender is inside */
    atomic_fetch_sub(&((struct soft_pd *)srq->base.pd)->users, 1);
    free(srq);
    return 0;
}
