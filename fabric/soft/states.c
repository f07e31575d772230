/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pair states: the allowed moves with the attributes that verbs requires for each
 * (IBTA 10.3.1, table 91; for DCIs as mlx5's kernel driver has them). */
#include <errno.h>
#include <string.h>

#include "soft/soft.h"

struct move {
    uint8_t type;           /* enum kedge_fab_qp_type */
    uint8_t from, to;       /* enum ibv_qp_state */
    int required, optional; /* enum ibv_qp_attr_mask, beside IBV_QP_STATE */
};

#define RC_RTR                                                                                     \
    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |   \
     IBV_QP_MIN_RNR_TIMER)
#define RC_RTS                                                                                     \
    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static const struct move moves[] = {
    {KEDGE_FAB_QP_RC, IBV_QPS_RESET, IBV_QPS_INIT,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {KEDGE_FAB_QP_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {KEDGE_FAB_QP_RC, IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
    {KEDGE_FAB_QP_RC, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {KEDGE_FAB_QP_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {KEDGE_FAB_QP_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
     0},
    {KEDGE_FAB_QP_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {KEDGE_FAB_QP_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY},
    {KEDGE_FAB_QP_DCI, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0},
    {KEDGE_FAB_QP_DCI, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX | IBV_QP_AV},
    {KEDGE_FAB_QP_DCI, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS, IBV_QP_MIN_RNR_TIMER},
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
        s->access = (uint16_t)attr->qp_access_flags;
    if (mask & IBV_QP_QKEY)
        s->qkey = attr->qkey;
    if (mask & IBV_QP_AV)
        memcpy(s->dest_gid, attr->ah_attr.grh.dgid.raw, 16);
    if (mask & IBV_QP_DEST_QPN)
        s->dest_qpn = attr->dest_qp_num;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        s->min_rnr_timer = attr->min_rnr_timer;
    if (mask & IBV_QP_TIMEOUT)
        qp->timeout = attr->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        qp->retry_cnt = attr->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        qp->rnr_retry = attr->rnr_retry;
}

/* What is queued goes, without completions; those in CQs are of an older epoch from now on. */
static void reset(struct soft_fab *f, struct soft_qp *qp)
{
    struct soft_qp_shared *s = qp->shared;
    if (qp->waiting)
        atomic_fetch_sub(&qp->send_cq->waiting, 1);
    atomic_fetch_add(&s->epoch, 1);
    qp->posted = 0;
    atomic_store(&s->sq_freed, 0);
    qp->pending_head = qp->pending_tail = 0;
    qp->waiting = qp->flushed = false;
    qp->deadline_ns = 0;
    qp->rnr_tries = 0;
    qp->target = NULL;
    if (qp->rq.shared != NULL)
        atomic_store(&qp->rq.shared->head, atomic_load(&qp->rq.shared->tail));
    (void)f;
}

int soft_qp_modify(struct soft_fab *f, struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct soft_qp_shared *s = qp->shared;
    uint32_t from = atomic_load(&s->state);
    uint32_t to = mask & IBV_QP_STATE ? (uint32_t)attr->qp_state : from;
    if (!is_allowed((uint8_t)qp->base.type, from, to, mask | IBV_QP_STATE))
        return -EINVAL;
    if ((mask & IBV_QP_PORT) && attr->port_num != f->base.caps.port_num)
        return -EINVAL;
    if ((mask & IBV_QP_TIMEOUT) &&
        (attr->timeout > 31 || attr->retry_cnt > 7 || attr->rnr_retry > 7))
        return -EINVAL;
    pthread_mutex_lock(&qp->send_cq->qps_lock);
    take_attributes(qp, attr, mask);
    if (to == IBV_QPS_RESET)
        reset(f, qp);
    atomic_store(&s->state, to);
    pthread_mutex_unlock(&qp->send_cq->qps_lock);
    if (to == IBV_QPS_ERR)
        atomic_fetch_add(&f->me->attention, 1); /* its next poll flushes */
    return 0;
}
