/* SPDX-License-Identifier: Apache-2.0 */
/* How the stand-in's queue pairs are made. What it expects is taken from rdma-core (facts; no
 * code), release 64:
 *
 *  - tests/mlx5_base.py: Mlx5DcResources.create_qps, create_qp_init_attr;
 *    Mlx5DcStreamsRes.create_qps, generate_dci_attr; man mlx5dv_create_qp(3);
 *  - a DCT takes no send_ops_flags; data comes in completions unless DISABLE_SCATTER_TO_CQE, or DC
 *    with send_ops_flags: providers/mlx5/verbs.c, create_qp, create_dct. */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_MAKE_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_MAKE_H

#include "dc_stand_in_post.h"

static bool fake_is_supported(struct ibv_device *device)
{
    (void)device;
    return fake.mlx5;
}

static int fake_query_device(struct ibv_context *context, struct mlx5dv_context *out)
{
    (void)context;
    out->comp_mask &= MLX5DV_CONTEXT_MASK_DCI_STREAMS;
    if (out->comp_mask != 0)
        out->dci_streams_caps.max_log_num_concurent = fake.log_streams;
    return 0;
}

static int check_creation(const struct ibv_qp_init_attr_ex *a, const struct mlx5dv_qp_init_attr *d)
{
    const uint64_t streams = MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
    const uint64_t flags = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
    bool dct = d->dc_init_attr.dc_type == MLX5DV_DCTYPE_DCT;
    if (a->qp_type != IBV_QPT_DRIVER || !(d->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC))
        return wrong("DC is a driver's queue pair, with its mask");
    if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || a->pd == NULL || a->send_cq == NULL ||
        a->recv_cq == NULL)
        return wrong("no PD, or no CQ");
    if (dct && (a->comp_mask != IBV_QP_INIT_ATTR_PD ||
                (d->comp_mask & ~flags) != MLX5DV_QP_INIT_ATTR_MASK_DC))
        return wrong("a DCT takes neither send_ops_flags nor streams");
    if (!(d->comp_mask & flags) || d->create_flags != MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE)
        return wrong("data in completions, or flags that nobody knows");
    if (dct && a->srq == NULL)
        return wrong("a DCT needs an SRQ");
    if (!dct && a->comp_mask != (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
        return wrong("a DCI needs send_ops_flags");
    if (!dct && a->cap.max_recv_wr != 0)
        return wrong("a DCI receives nothing");
    if ((d->comp_mask & streams) &&
        (d->dc_init_attr.dci_streams.log_num_concurent > fake.log_streams ||
         d->dc_init_attr.dci_streams.log_num_concurent == 0))
        return EINVAL;
    return !dct && a->cap.max_inline_data > fake.max_inline ? EINVAL : 0;
}

static void fill_operations(struct fake_qp *q)
{
    q->ex.wr_start = fake_start;
    q->ex.wr_complete = fake_complete;
    q->ex.wr_abort = fake_abort;
    q->ex.wr_rdma_write = fake_write;
    q->ex.wr_rdma_write_imm = fake_write_imm;
    q->ex.wr_rdma_read = fake_read;
    q->ex.wr_send = fake_send;
    q->ex.wr_send_imm = fake_send_imm;
    q->ex.wr_atomic_cmp_swp = fake_cmp_swp;
    q->ex.wr_atomic_fetch_add = fake_fetch_add;
    q->ex.wr_set_sge = fake_set_sge;
    q->ex.wr_set_sge_list = fake_set_sge_list;
    q->ex.wr_set_inline_data_list = fake_set_inline_list;
    q->dv.wr_set_dc_addr = fake_set_dc_addr;
    q->dv.wr_set_dc_addr_stream = fake_set_dc_addr_stream;
}

static bool say_creation(const struct ibv_qp_init_attr_ex *a, const struct mlx5dv_qp_init_attr *d)
{
    if (d->dc_init_attr.dc_type == MLX5DV_DCTYPE_DCT)
        return say("create dct key=%lx", (unsigned long)d->dc_init_attr.dct_access_key);
    bool streams = d->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
    return say("create dci ops=%lx wr=%u sge=%u inline=%u streams=%u/%u",
               (unsigned long)a->send_ops_flags, a->cap.max_send_wr, a->cap.max_send_sge,
               a->cap.max_inline_data, streams ? d->dc_init_attr.dci_streams.log_num_concurent : 0u,
               streams ? d->dc_init_attr.dci_streams.log_num_errored : 0u);
}

/* With libmlx5's defaults. */
static struct ibv_qp *fake_plain_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    struct fake_qp *q = calloc(1, sizeof *q);
    say("create qp type=%d", a->qp_type);
    q->ex.qp_base = (struct ibv_qp){.context = pd->context,
                                    .qp_type = a->qp_type,
                                    .qp_num = ++fake.next_number,
                                    .state = IBV_QPS_RESET};
    q->scatters = a->qp_type == IBV_QPT_RC;
    fake.live++;
    return &q->ex.qp_base;
}

static struct ibv_qp *fake_dv_rc(struct ibv_qp_init_attr_ex *ex,
                                 const struct mlx5dv_qp_init_attr *d)
{
    struct ibv_qp_init_attr a = {.qp_type = ex->qp_type, .cap = ex->cap};
    if (ex->comp_mask != IBV_QP_INIT_ATTR_PD || d->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC)
        wrong("a connection without a PD, or with DC");
    struct ibv_qp *qp = fake_plain_qp(ex->pd, &a);
    if (d->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS &&
        d->create_flags & MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE)
        ((struct fake_qp *)qp)->scatters = false;
    return qp;
}

static struct ibv_qp *fake_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *a,
                                     struct mlx5dv_qp_init_attr *d)
{
    if (a->qp_type != IBV_QPT_DRIVER)
        return fake_dv_rc(a, d);
    bool dct = d->dc_init_attr.dc_type == MLX5DV_DCTYPE_DCT;
    int status = say_creation(a, d) ? fake.refused_errno : 0;
    if (status == 0)
        status = check_creation(a, d);
    if (status != 0) {
        errno = status;
        return NULL;
    }
    struct fake_qp *q = calloc(1, sizeof *q);
    q->ex.qp_base = (struct ibv_qp){.context = context,
                                    .qp_type = a->qp_type,
                                    .qp_num = dct ? 0 : ++fake.next_number,
                                    .state = IBV_QPS_RESET};
    q->dc = d->dc_init_attr.dc_type;
    ck_assert_uint_le(a->cap.max_send_wr, FAKE_WRS);
    q->max_wr = a->cap.max_send_wr;
    if (d->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS)
        q->log_streams = d->dc_init_attr.dci_streams.log_num_concurent;
    fill_operations(q);
    fake.live++;
    return &q->ex.qp_base;
}

static struct ibv_qp_ex *fake_to_ex(struct ibv_qp *qp)
{
    return &((struct fake_qp *)qp)->ex;
}

static struct mlx5dv_qp_ex *fake_to_dv(struct ibv_qp_ex *ex)
{
    return &of_ex(ex)->dv;
}

#endif
