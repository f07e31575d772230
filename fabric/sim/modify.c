/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs change their state. */
#include <errno.h>
#include <string.h>

#include "ibta/ibta.h"
#include "sim/objects.h"
#include "sim/sim_qp_error.h"
#include "sim/responder.h"

static void take_attributes(struct sim_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    if (mask & IBV_QP_ACCESS_FLAGS)
        qp->access = (unsigned)attr->qp_access_flags;
    if (mask & IBV_QP_QKEY)
        qp->qkey = attr->qkey;
    if ((mask & IBV_QP_AV) && qp->base.type == FAB_QP_RC)
        memcpy(qp->gid, attr->ah_attr.grh.dgid.raw, 16);
    if (mask & IBV_QP_DEST_QPN)
        qp->dest_qpn = attr->dest_qp_num;
    if (mask & IBV_QP_PATH_MTU)
        qp->mtu = 128u << attr->path_mtu;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        qp->min_rnr_timer = attr->min_rnr_timer;
    if (mask & IBV_QP_TIMEOUT)
        qp->timeout = attr->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        qp->retry_cnt = attr->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        qp->rnr_retry = attr->rnr_retry;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        qp->max_reads = attr->max_rd_atomic;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        qp->max_dest_reads = attr->max_dest_rd_atomic;
    if (mask & IBV_QP_SQ_PSN)
        qp->psn = attr->sq_psn & SIM_PSN_MASK;
}

int sim_qp_modify(struct sim_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    const enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->state;
    if (!fab_ibta_allows_move(qp->base.type, qp->state, to, mask | IBV_QP_STATE) ||
        !fab_ibta_takes_values(qp->base.pd, attr, mask) ||
        ((mask & IBV_QP_AV) && !fab_ibta_serves(qp->base.pd, &attr->ah_attr)))
        return -EINVAL;
    if (to == IBV_QPS_INIT && qp->state == IBV_QPS_RESET && qp->reset_before &&
        qp->dev->attr.resets_are_final && qp->base.type != FAB_QP_DCI)
        return -EINVAL;
    if (to == IBV_QPS_RESET) {
        qp->reset_before = true;
        qp->state = IBV_QPS_RESET;
        sim_qp_forget(qp);
        return 0;
    }
    if (to == IBV_QPS_ERR) {
        sim_qp_to_err(qp, NULL);
        return 0;
    }
    take_attributes(qp, attr, mask);
    if (to == IBV_QPS_RTR && qp->state == IBV_QPS_INIT && qp->base.type == FAB_QP_RC)
        sim_responder_begin(qp, attr->rq_psn);
    if (to == IBV_QPS_RTR)
        qp->begun_ns = qp->dev->net->now_ns;
    qp->state = to;
    return 0;
}
