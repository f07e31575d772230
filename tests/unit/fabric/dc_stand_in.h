/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for an mlx5 device with DC, and for the functions of libibverbs and libmlx5 by which
 * the provider uses one (struct verbs_calls). It writes down every call with its masks and the
 * attributes that they select, and refuses, with a line that begins with "WRONG", whatever the real
 * ones refuse or do not define.
 *
 * What it expects is taken from rdma-core (facts; no code), release 64:
 *   creation    tests/mlx5_base.py: Mlx5DcResources.create_qps, create_qp_init_attr;
 *               Mlx5DcStreamsRes.create_qps, generate_dci_attr; man mlx5dv_create_qp(3);
 *               providers/mlx5/verbs.c: create_qp, create_dct (a DCT takes no send_ops_flags; data
 *               in completions unless DISABLE_SCATTER_TO_CQE, or DC with send_ops_flags)
 *   states      pyverbs/providers/mlx5/mlx5dv.pyx: Mlx5QP._get_comp_mask: the masks, exactly;
 *               tests/mlx5_base.py: create_qp_attr (the address of a DCT is its own),
 *               Mlx5DcStreamsRes.reset_qp (repair: RESET, and up again)
 *   address     UCX's uct_dc_mlx5_iface_dci_connect (a DCI has one at RTR, for its service level);
 * the kernel's modify_dci_qp_is_ok and rdma_check_ah_attr (optional; refused by old kernels; of a
 * port that there is, and global on RoCE) number      providers/mlx5/verbs.c: modify_dct (a DCT has
 * one from RTR on) posting: tests/utils.py post_send_ex; man ibv_wr_post(3): wr_id and wr_flags
 * before the builder, a refusal aborts all; man mlx5dv_wr_post(3): the DC address of every request;
 * overflow: providers/mlx5/qp.c _common_wqe_init_op (the error comes from complete) errors:
 * tests/test_mlx5_dc.py; man mlx5dv_dci_stream_id_reset(3): 2^log_num_errored streams in error */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_H

#include "dc_stand_in_cq.h"
#include "dc_stand_in_device.h"
#include "dc_stand_in_parents.h"
#include "dc_stand_in_port.h"

/* ---- posting ---- */

static struct fake_qp *of_ex(struct ibv_qp_ex *ex)
{
    return (struct fake_qp *)ex;
}

static struct fake_qp *of_dv(struct mlx5dv_qp_ex *dv)
{
    return (struct fake_qp *)((char *)dv - offsetof(struct fake_qp, dv));
}

static void finish_request(struct fake_qp *q)
{
    if (q->request != NO_REQUEST && q->request != (BUILT | ADDRESSED | FILLED))
        wrong("a request without its address or its data");
    q->request = NO_REQUEST;
}

static void fake_start(struct ibv_qp_ex *ex)
{
    struct fake_qp *q = of_ex(ex);
    say("start");
    if (q->inside)
        wrong("start inside of start");
    q->inside = true;
    q->err = 0;
    q->building = 0;
    q->request = NO_REQUEST;
}

static void built(struct ibv_qp_ex *ex)
{
    struct fake_qp *q = of_ex(ex);
    if (!q->inside)
        wrong("a builder outside of start and complete");
    finish_request(q);
    if (q->head + q->building - q->tail >= q->max_wr) {
        q->err = q->err != 0 ? q->err : ENOMEM;
        q->request = BUILT; /* and forgotten by complete */
        return;
    }
    if (fake.disliked != 0 && ex->wr_id == fake.disliked)
        q->err = fake.refused_errno;
    const uint32_t index = q->head + q->building++;
    if (index - q->oldest >= q->max_wr)
        wrong("a request is written over one that is still to be executed");
    uint32_t at = index % FAKE_WRS;
    q->wr[at].wr_id = ex->wr_id;
    q->wr[at].signalled = (ex->wr_flags & IBV_SEND_SIGNALED) != 0;
    q->wr[at].over = false;
    q->request = BUILT;
}

#define ID(ex) (unsigned long)(ex)->wr_id, (ex)->wr_flags

static void fake_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    say("write id=%lu flags=%u rkey=%u at=%lu", ID(ex), rkey, (unsigned long)addr);
    built(ex);
}

static void fake_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
    say("write_imm id=%lu flags=%u rkey=%u at=%lu imm=%08x", ID(ex), rkey, (unsigned long)addr,
        imm);
    built(ex);
}

static void fake_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    say("read id=%lu flags=%u rkey=%u at=%lu", ID(ex), rkey, (unsigned long)addr);
    built(ex);
}

static void fake_send(struct ibv_qp_ex *ex)
{
    say("send id=%lu flags=%u", ID(ex));
    built(ex);
}

static void fake_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    say("send_imm id=%lu flags=%u imm=%08x", ID(ex), imm);
    built(ex);
}

static void fake_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
                         uint64_t swap)
{
    say("cmp_swp id=%lu flags=%u rkey=%u at=%lu compare=%lu swap=%lu", ID(ex), rkey,
        (unsigned long)addr, (unsigned long)compare, (unsigned long)swap);
    built(ex);
}

static void fake_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
    say("fetch_add id=%lu flags=%u rkey=%u at=%lu add=%lu", ID(ex), rkey, (unsigned long)addr,
        (unsigned long)add);
    built(ex);
}

static void set(struct fake_qp *q, int what)
{
    if (!(q->request & BUILT) || (q->request & what))
        wrong("a setter without a builder, or twice");
    else
        q->request |= what;
}

static void fake_set_dc_addr(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t dctn,
                             uint64_t key)
{
    say(" to %s dctn=%u key=%lx", ah != NULL ? "ah" : "nobody", dctn, (unsigned long)key);
    set(of_dv(dv), ADDRESSED);
}

static void fake_set_dc_addr_stream(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t dctn,
                                    uint64_t key, uint16_t stream)
{
    say(" to %s dctn=%u key=%lx stream=%u", ah != NULL ? "ah" : "nobody", dctn, (unsigned long)key,
        stream);
    if (of_dv(dv)->log_streams == 0)
        wrong("a stream of a DCI that was created without");
    struct fake_qp *q = of_dv(dv);
    q->wr[(q->head + q->building - 1) % FAKE_WRS].stream = stream;
    set(q, ADDRESSED);
}

static void fake_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    say(" sge %u:%lu+%u", lkey, (unsigned long)addr, length);
    set(of_ex(ex), FILLED);
}

static void fake_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *s)
{
    say(" sges %zu", n);
    for (size_t i = 0; i < n; i++)
        say("  %u:%lu+%u", s[i].lkey, (unsigned long)s[i].addr, s[i].length);
    set(of_ex(ex), FILLED);
}

static void fake_set_inline_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *b)
{
    say(" inline %zu", n);
    for (size_t i = 0; i < n; i++)
        say("  '%.*s'", (int)b[i].length, (const char *)b[i].addr);
    set(of_ex(ex), FILLED);
}

static int fake_complete(struct ibv_qp_ex *ex)
{
    struct fake_qp *q = of_ex(ex);
    if (say("complete"))
        q->err = fake.refused_errno;
    if (!q->inside)
        return wrong("complete without start");
    if (q->err == 0)
        finish_request(q);
    q->inside = false;
    if (q->err == 0)
        q->head += q->building;
    if (fake.rung != NULL)
        fake.rung();
    return q->err;
}

static void fake_abort(struct ibv_qp_ex *ex)
{
    say("abort");
    if (!of_ex(ex)->inside)
        wrong("abort without start");
    of_ex(ex)->inside = false;
}

/* ---- queue pairs ---- */

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
