/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs change their state. */
#include <errno.h>
#include <string.h>

#include "ibta/ibta.h"
#include "soft/hazards.h"
#include "soft/objects.h"
#include "soft/soft_qp_error.h"
#include "soft/unseen.h"

static void take_attributes(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct soft_qp_shared *s = qp->shared;
    if (mask & IBV_QP_ACCESS_FLAGS)
        atomic_store(&s->access, (uint8_t)attr->qp_access_flags);
    if (mask & IBV_QP_QKEY)
        atomic_store(&s->qkey, attr->qkey);
    if (mask & IBV_QP_AV) {
        uint64_t gid[2];
        soft_gid_words(attr->ah_attr.grh.dgid.raw, gid);
        atomic_store(&s->dest_gid[0], gid[0]);
        atomic_store(&s->dest_gid[1], gid[1]);
    }
    if (mask & IBV_QP_DEST_QPN) {
        atomic_store(&s->dest_qpn, attr->dest_qp_num);
        qp->targets[0].qp = NULL; /* its room for READs is another one's */
    }
    if (mask & IBV_QP_MIN_RNR_TIMER)
        atomic_store(&s->min_rnr_timer, attr->min_rnr_timer);
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        atomic_store(&s->max_dest_reads, attr->max_dest_rd_atomic);
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        qp->max_reads = attr->max_rd_atomic;
    if (mask & IBV_QP_TIMEOUT)
        qp->timeout = attr->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        qp->retry_cnt = attr->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        qp->rnr_retry = attr->rnr_retry;
}

/* What is queued goes, without completions; those in CQs are of an older epoch from now on. */
static void forget_queued(struct soft_qp *qp)
{
    struct soft_qp_shared *s = qp->shared;
    const bool waits = soft_has_unseen(qp); /* which is its responder's matter */
    if (qp->waiting && !waits)
        atomic_fetch_sub(&qp->send_cq->waiting, 1);
    atomic_fetch_add(&s->epoch, 1);
    atomic_store(&s->cause, 0);
    atomic_store(&s->sq_freed, 0);
    qp->posted = qp->reads = qp->reads_over = qp->ahead = 0;
    qp->pending_head = qp->pending_tail = 0;
    qp->waiting = waits;
    qp->flushed = false;
    qp->deadline_ns = qp->resumed_ns = 0;
    qp->waits_for = SOFT_DONE;
    soft_mr_resign(qp);
    qp->rnr_tries = 0;
    memset(qp->targets, 0, sizeof qp->targets);
}

/* Out of reach first, so that no sender comes in after its receive queue was emptied. */
static int to_reset(struct soft_fab *f, struct soft_qp *qp)
{
    atomic_store(&qp->shared->ident, soft_ident(qp->base.qpn, IBV_QPS_RESET));
    if (qp->rq.shared != NULL && soft_rq_drop(f, &qp->rq) != 0)
        return -EINPROGRESS;
    forget_queued(qp);
    atomic_store(&qp->shared->cause, 0); /* nor is the next life told why this one ended */
    fab_events_purge(&f->events, &qp->base);
    return 0;
}

int soft_qp_modify(struct soft_fab *f, struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct soft_qp_shared *s = qp->shared;
    uint64_t from = atomic_load(&s->ident);
    uint32_t to = mask & IBV_QP_STATE ? (uint32_t)attr->qp_state : (uint32_t)soft_state(from);
    int status = 0;
    if (!fab_ibta_allows_move(qp->base.type, soft_state(from), (enum ibv_qp_state)to,
                              mask | IBV_QP_STATE) ||
        !fab_ibta_takes_values(qp->base.pd, attr, mask) ||
        ((mask & IBV_QP_AV) && !fab_ibta_serves(qp->base.pd, &attr->ah_attr)))
        return -EINVAL;
    pthread_mutex_lock(&qp->send_cq->qps_lock);
    if (to == IBV_QPS_RESET) {
        status = to_reset(f, qp);
    } else {
        take_attributes(qp, attr, mask);
        /* A peer may break it this moment: then it is broken. */
        (void)atomic_compare_exchange_strong(&s->ident, &from, soft_ident(qp->base.qpn, to));
    }
    pthread_mutex_unlock(&qp->send_cq->qps_lock);
    if (to == IBV_QPS_ERR)
        soft_qp_attend(f, qp);
    return status;
}
