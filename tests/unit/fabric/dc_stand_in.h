/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for an mlx5 device with DC, and for the functions of libibverbs and libmlx5 by which
 * the provider uses one (struct verbs_calls). It writes down every call with its masks and the
 * attributes that they select, and refuses, with a line that begins with "WRONG", whatever the real
 * ones refuse or do not define.
 *
 * What it expects is taken from rdma-core (facts; no code), release 64; of creation and posting
 * where these are. Of states:
 *
 *  - the masks, exactly: pyverbs/providers/mlx5/mlx5dv.pyx, Mlx5QP._get_comp_mask;
 *  - the address of a DCT is its own: tests/mlx5_base.py, create_qp_attr;
 *  - repair is RESET, and up again: there, Mlx5DcStreamsRes.reset_qp;
 *  - a DCI has an address at RTR, for its service level: UCX's uct_dc_mlx5_iface_dci_connect, and
 *    the kernel's modify_dci_qp_is_ok and rdma_check_ah_attr (optional; refused by old kernels; of
 *    a port that there is, and global on RoCE);
 *  - a DCT has a number from RTR on: providers/mlx5/verbs.c, modify_dct;
 *  - errors: tests/test_mlx5_dc.py; man mlx5dv_dci_stream_id_reset(3): 2^log_num_errored streams in
 *    error. */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_H

#include "dc_stand_in_cq.h"
#include "dc_stand_in_make.h"
#include "dc_stand_in_parents.h"
#include "dc_stand_in_port.h"

/* The mask of a move, beside IBV_QP_STATE, or -1 when there is no such move. */
static int mask_of(const struct fake_qp *q, enum ibv_qp_state to)
{
    enum ibv_qp_state from = q->ex.qp_base.state;
    bool dct = q->dc == MLX5DV_DCTYPE_DCT;
    if (to == IBV_QPS_INIT && from == IBV_QPS_RESET)
        return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (dct ? IBV_QP_ACCESS_FLAGS : 0);
    if (to == IBV_QPS_RTR && from == IBV_QPS_INIT)
        return IBV_QP_PATH_MTU | (dct ? IBV_QP_AV | IBV_QP_MIN_RNR_TIMER : 0);
    if (to == IBV_QPS_RTS && from == IBV_QPS_RTR && !dct)
        return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC;
    if (!dct && (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET)))
        return 0; /* modify_dci_qp_is_ok */
    return -1;
}

static bool say_move(const struct fake_qp *q, const struct ibv_qp_attr *a, int mask)
{
    const char *name = q->dc == MLX5DV_DCTYPE_DCT ? "dct" : "dci";
    const struct ibv_ah_attr *ah = &a->ah_attr;
    switch (a->qp_state) {
    case IBV_QPS_INIT:
        return say("%s INIT port=%u pkey=%u access=%x", name, a->port_num, a->pkey_index,
                   a->qp_access_flags);
    case IBV_QPS_RTR:
        if (q->dc == MLX5DV_DCTYPE_DCI && !(mask & IBV_QP_AV))
            return say("dci RTR mtu=%d", a->path_mtu);
        if (q->dc == MLX5DV_DCTYPE_DCI)
            return say("dci RTR mtu=%d sl=%u tclass=%u label=%u", a->path_mtu, ah->sl,
                       ah->grh.traffic_class, ah->grh.flow_label);
        return say("dct RTR mtu=%d rnr=%u global=%u port=%u dlid=%u sgid=%u hops=%u dgid=%02x..%02x"
                   " sl=%u tclass=%u label=%u",
                   a->path_mtu, a->min_rnr_timer, ah->is_global, ah->port_num, ah->dlid,
                   ah->grh.sgid_index, ah->grh.hop_limit, ah->grh.dgid.raw[0], ah->grh.dgid.raw[15],
                   ah->sl, ah->grh.traffic_class, ah->grh.flow_label);
    case IBV_QPS_RTS:
        return say("%s RTS timeout=%u retry=%u rnr=%u reads=%u", name, a->timeout, a->retry_cnt,
                   a->rnr_retry, a->max_rd_atomic);
    case IBV_QPS_RESET:
        return say("%s RESET", name);
    default:
        return say("%s state %d", name, a->qp_state);
    }
}

static int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct fake_qp *q = (struct fake_qp *)qp;
    fake.last = *attr;
    if (q->dc == 0) { /* no DC queue pair: for who only wants to see the attributes */
        qp->state = attr->qp_state;
        return 0;
    }
    if (say_move(q, attr, mask))
        return fake.refused_errno;
    int expected = mask_of(q, attr->qp_state);
    if (q->dc == MLX5DV_DCTYPE_DCI && attr->qp_state == IBV_QPS_RTR && (mask & IBV_QP_AV)) {
        if (fake.old_kernel)
            return EINVAL;
        if (!attr->ah_attr.is_global || attr->ah_attr.port_num == 0)
            return wrong("an address of no port, or not a global one");
        mask &= ~IBV_QP_AV;
    }
    if (expected < 0 || mask != (expected | IBV_QP_STATE))
        return wrong("a move that there is not, or not with these attributes");
    if (fake.no_atomics && (attr->qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC))
        return EOPNOTSUPP; /* of INIT alone, nothing else has them */
    if (attr->qp_state == IBV_QPS_RTS && attr->max_rd_atomic > fake.max_rd_atomic)
        return EINVAL;
    qp->state = attr->qp_state;
    if (attr->qp_state == IBV_QPS_RTR && q->dc == MLX5DV_DCTYPE_DCT)
        qp->qp_num = ++fake.next_number;
    if (attr->qp_state ==
        IBV_QPS_RESET) { /* libmlx5 takes what it did out of the CQ (mlx5_cq_clean) */
        q->head = q->tail = q->oldest = 0;
        fake_forget(qp->qp_num);
    }
    return 0;
}

static int fake_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                         struct ibv_qp_init_attr *init)
{
    (void)mask;
    (void)init;
    attr->qp_state = qp->state;
    return 0;
}

static int fake_destroy_qp(struct ibv_qp *qp)
{
    const struct fake_qp *q = (const struct fake_qp *)qp;
    const char *name = q->dc == 0 ? "qp" : q->dc == MLX5DV_DCTYPE_DCT ? "dct" : "dci";
    if (say("destroy %s", name))
        return fake.refused_errno;
    fake_forget(qp->qp_num);
    free(qp);
    fake.live--;
    return 0;
}

static const struct verbs_calls fake_calls = {
    FAKE_PORT_CALLS,
    .alloc_pd = fake_alloc_pd,
    .dealloc_pd = fake_free_pd,
    .create_cq = fake_create_cq,
    .destroy_cq = fake_destroy_cq,
    .create_srq = fake_create_srq,
    .destroy_srq = fake_destroy_srq,
    .create_qp = fake_plain_qp,
    .modify_qp = fake_modify_qp,
    .query_qp = fake_query_qp,
    .destroy_qp = fake_destroy_qp,
    .create_ah = fake_create_ah,
    .destroy_ah = fake_destroy_ah,
    .qp_to_qp_ex = fake_to_ex,
    .dv_is_supported = fake_is_supported,
    .dv_query_device = fake_query_device,
    .dv_create_qp = fake_create_qp,
    .dv_qp_ex = fake_to_dv,
};

#endif
