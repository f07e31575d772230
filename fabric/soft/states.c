/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pair states: the allowed moves with the attributes that verbs requires for each
 * (IBTA 10.3.1, table 91; for DCIs as mlx5's kernel driver has them). */
#include <errno.h>
#include <string.h>

#include "soft/hazards.h"
#include "soft/objects.h"
#include "soft/qp_error.h"

struct move {
    uint8_t type;           /* enum fab_qp_type */
    uint8_t from, to;       /* enum ibv_qp_state */
    int required, optional; /* enum ibv_qp_attr_mask, beside IBV_QP_STATE */
};

#define RC_RTR                                                                                     \
    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |   \
     IBV_QP_MIN_RNR_TIMER)
#define RC_RTS                                                                                     \
    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static const struct move moves[] = {
    {FAB_QP_RC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
     0},
    {FAB_QP_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {FAB_QP_RC, IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
    {FAB_QP_RC, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {FAB_QP_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {FAB_QP_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {FAB_QP_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {FAB_QP_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY},
    {FAB_QP_DCI, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0},
    {FAB_QP_DCI, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX | IBV_QP_AV},
    {FAB_QP_DCI, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS, IBV_QP_MIN_RNR_TIMER},
};

static bool is_allowed(uint8_t type, uint32_t from, uint32_t to, int mask)
{
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return mask == IBV_QP_STATE && (to == IBV_QPS_RESET || from != IBV_QPS_RESET);
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        const struct move *m = &moves[i];
        if (m->type == type && m->from == from && m->to == to)
            return (mask & m->required) == m->required &&
                   (mask & ~(m->required | m->optional | IBV_QP_STATE)) == 0;
    }
    return false;
}

static void take_attributes(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct soft_qp_shared *s = qp->shared;
    if (mask & IBV_QP_ACCESS_FLAGS)
        atomic_store(&s->access, (uint16_t)attr->qp_access_flags);
    if (mask & IBV_QP_QKEY)
        atomic_store(&s->qkey, attr->qkey);
    if (mask & IBV_QP_AV) {
        uint64_t gid[2];
        soft_gid_words(attr->ah_attr.grh.dgid.raw, gid);
        atomic_store(&s->dest_gid[0], gid[0]);
        atomic_store(&s->dest_gid[1], gid[1]);
    }
    if (mask & IBV_QP_DEST_QPN)
        atomic_store(&s->dest_qpn, attr->dest_qp_num);
    if (mask & IBV_QP_MIN_RNR_TIMER)
        atomic_store(&s->min_rnr_timer, attr->min_rnr_timer);
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
    if (qp->waiting)
        atomic_fetch_sub(&qp->send_cq->waiting, 1);
    atomic_fetch_add(&s->epoch, 1);
    atomic_store(&s->cause, 0);
    atomic_store(&s->sq_freed, 0);
    qp->posted = 0;
    qp->pending_head = qp->pending_tail = 0;
    qp->waiting = qp->flushed = false;
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

static bool values_are_sound(const struct soft_fab *f, const struct fab_pd *pd,
                             const struct ibv_qp_attr *attr, int mask)
{
    return (!(mask & IBV_QP_PORT) || attr->port_num == f->base.caps.port_num) &&
           (!(mask & IBV_QP_PKEY_INDEX) || attr->pkey_index == pd->service.pkey_index) &&
           (!(mask & IBV_QP_AV) || soft_serves(pd, &attr->ah_attr)) &&
           (!(mask & IBV_QP_TIMEOUT) || attr->timeout <= 31) &&
           (!(mask & IBV_QP_RETRY_CNT) || attr->retry_cnt <= 7) &&
           (!(mask & IBV_QP_RNR_RETRY) || attr->rnr_retry <= 7) &&
           (!(mask & IBV_QP_MIN_RNR_TIMER) || attr->min_rnr_timer <= 31) &&
           (!(mask & IBV_QP_DEST_QPN) || attr->dest_qp_num < 1u << 24);
}

int soft_qp_modify(struct soft_fab *f, struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct soft_qp_shared *s = qp->shared;
    uint64_t from = atomic_load(&s->ident);
    uint32_t to = mask & IBV_QP_STATE ? (uint32_t)attr->qp_state : (uint32_t)soft_state(from);
    int status = 0;
    if (!is_allowed((uint8_t)qp->base.type, soft_state(from), to, mask | IBV_QP_STATE) ||
        !values_are_sound(f, qp->base.pd, attr, mask))
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
