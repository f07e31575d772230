/* SPDX-License-Identifier: Apache-2.0 */
/* Making DCIs and DCTs, and posting to DCIs. Never run on hardware: see dc.h. */
#include "verbs/dc.h"

#include <errno.h>
#include <stdlib.h>

#include "verbs/verbs_late.h"
#include "verbs/verbs.h"

/* What fabric.h lets a DCI post. */
static const uint64_t operations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                   IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

/* ---- making */

/* libmlx5 may have the device write the first 32 or 64 bytes of what comes in into the completion,
 * and copies them from there to the address of the SGE, as a pointer: ours are I/O virtual
 * addresses, at which the process has other memory or none (mlx5dv_create_qp(3)). */
enum {
    IN_ITS_PLACE = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
    IN_ITS_PLACE_FLAG = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
};

struct ibv_qp *verbs_plain_qp_make(struct verbs_fab *f, struct ibv_pd *pd,
                                   struct ibv_qp_init_attr *attr)
{
    if (!f->dc.is_mlx5 || attr->qp_type != IBV_QPT_RC)
        return f->dc.calls.create_qp(pd, attr);
    struct ibv_qp_init_attr_ex ex = {.send_cq = attr->send_cq,
                                     .recv_cq = attr->recv_cq,
                                     .srq = attr->srq,
                                     .cap = attr->cap,
                                     .qp_type = attr->qp_type,
                                     .comp_mask = IBV_QP_INIT_ATTR_PD,
                                     .pd = pd};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = IN_ITS_PLACE, .create_flags = IN_ITS_PLACE_FLAG};
    struct ibv_qp *made = f->dc.calls.dv_create_qp(f->context, &ex, &dv);
    if (made != NULL)
        attr->cap = ex.cap;
    return made;
}

struct ibv_qp *verbs_dci_make(struct verbs_fab *f, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex ex = {.send_cq = attr->send_cq,
                                     .recv_cq = attr->recv_cq,
                                     .cap = attr->cap,
                                     .qp_type = IBV_QPT_DRIVER,
                                     .comp_mask =
                                         IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                     .pd = pd,
                                     .send_ops_flags = operations};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | IN_ITS_PLACE,
                                     .create_flags = IN_ITS_PLACE_FLAG,
                                     .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}};
    if (f->dc.log_streams != 0) {
        /* One stream in error, and the DCI is: fabric.h knows broken queue pairs alone. */
        dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
        dv.dc_init_attr.dci_streams.log_num_concurent = f->dc.log_streams;
        dv.dc_init_attr.dci_streams.log_num_errored = 0;
    }
    struct ibv_qp *made = f->dc.calls.dv_create_qp(f->context, &ex, &dv);
    if (made == NULL)
        return NULL;
    attr->cap = ex.cap;
    if (attr->cap.max_send_sge > VERBS_DC_SGE)
        attr->cap.max_send_sge = VERBS_DC_SGE;
    return made;
}

/* A DCT's number exists from the move to RTR on. 0 or an errno. */
static int bring_up(struct verbs_fab *f, const struct fab_ctl *ctl, struct ibv_qp *dct)
{
    struct ibv_qp_attr init = fab_init_attr(&f->base);
    init.pkey_index = ctl->dct.pkey_index;
    init.qp_access_flags = ctl->dct.access;
    /* The peer of the address is itself: it says from which GID and port it answers, and in which
     * priority: READ responses go by what the target has, not by what their requests have. */
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = fab_pd_mtu(ctl->dct.pd),
                              .min_rnr_timer = VERBS_DC_MIN_RNR_TIMER,
                              .ah_attr = ctl->dct.self};
    int status = f->dc.calls.modify_qp(
        dct, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (status == 0)
        status = f->dc.calls.modify_qp(
            dct, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER);
    return status;
}

struct ibv_qp *verbs_dct_make(struct verbs_fab *f, const struct fab_ctl *ctl, struct ibv_pd *pd,
                              struct ibv_cq *cq, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr_ex ex = {.send_cq = cq,
                                     .recv_cq = cq,
                                     .srq = srq,
                                     .qp_type = IBV_QPT_DRIVER,
                                     .comp_mask = IBV_QP_INIT_ATTR_PD,
                                     .pd = pd};
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | IN_ITS_PLACE,
        .create_flags = IN_ITS_PLACE_FLAG,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = ctl->dct.dc_key}};
    struct ibv_qp *made = f->dc.calls.dv_create_qp(f->context, &ex, &dv);
    if (made == NULL)
        return NULL;
    int status = bring_up(f, ctl, made);
    if (status == 0)
        return made;
    (void)f->dc.calls.destroy_qp(made);
    errno = status;
    return NULL;
}

int verbs_dci_modify(struct verbs_fab *f, const struct fab_pd *pd, struct ibv_qp *dci,
                     struct ibv_qp_attr *attr, int mask)
{
    if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RTR && f->dc.dci_av) {
        mask |= IBV_QP_AV;
    } else if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RTR &&
               pd->service.service_level != 0) {
        return EINVAL; /* it would be lost */
    }
    return f->dc.calls.modify_qp(dci, attr, mask);
}

/* A worker carries it out later, when the device may have another address, and the domain its P_Key
 * at another place, which the control thread is about to write. */
void verbs_own_address(struct fab_ctl *ctl)
{
    const struct fab_pd *pd = ctl->kind == FAB_CREATE_DCT ? ctl->dct.pd : ctl->modify.x->pd;
    const struct fab_caps *caps = &pd->fab->caps;
    const struct ibv_ah_attr self = fab_pd_address(pd, caps->gid, caps->lid);
    if (ctl->kind == FAB_CREATE_DCT) {
        ctl->dct.self = self;
        ctl->dct.pkey_index = pd->service.pkey_index;
    } else if (ctl->modify.x->type == FAB_QP_DCI) {
        ctl->modify.attr.ah_attr = self;
    }
}

static void use_all(struct verbs_dct *d, bool use)
{
    uint32_t step = use ? 1 : UINT32_MAX;
    atomic_fetch_add(&((struct verbs_pd *)d->base.pd)->users, step);
    atomic_fetch_add(&d->cq->users, step);
    atomic_fetch_add(&d->srq->users, step);
}

int verbs_dct_create(struct verbs_fab *f, struct fab_ctl *ctl)
{
    if (!(f->base.caps.transports & FAB_DC))
        return -EOPNOTSUPP;
    if (ctl->dct.srq == NULL || ctl->dct.cq == NULL)
        return -EINVAL;
    struct verbs_dct *d = calloc(1, sizeof *d);
    if (d == NULL)
        return -ENOMEM;
    d->cq = (struct verbs_cq *)ctl->dct.cq;
    d->srq = (struct verbs_srq *)ctl->dct.srq;
    errno = 0;
    d->qp = verbs_dct_make(f, ctl, ((struct verbs_pd *)ctl->dct.pd)->pd, d->cq->cq, d->srq->srq);
    if (d->qp == NULL) {
        int status = errno != 0 ? -errno : -ENOMEM;
        free(d);
        return status;
    }
    d->base = (struct fab_dct){.pd = ctl->dct.pd, .dctn = d->qp->qp_num, .dc_key = ctl->dct.dc_key};
    use_all(d, true);
    ctl->dct.x = &d->base;
    return 0;
}

int verbs_dct_destroy(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct verbs_dct *d = (struct verbs_dct *)ctl->dct.x;
    int status = verbs_destroyed(&f->base, -f->dc.calls.destroy_qp(d->qp));
    if (status == 0)
        use_all(d, false);
    return status;
}

/* ---- posting */

static bool build_wr(struct ibv_qp_ex *qp, const struct fab_wr *wr)
{
    switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(qp, wr->key.rkey, wr->remote_addr);
        return true;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(qp, wr->key.rkey, wr->remote_addr, wr->imm_data);
        return true;
    case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(qp, wr->key.rkey, wr->remote_addr);
        return true;
    case IBV_WR_SEND:
        ibv_wr_send(qp);
        return true;
    case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(qp, wr->imm_data);
        return true;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        ibv_wr_atomic_cmp_swp(qp, wr->key.rkey, wr->remote_addr, wr->compare_add, wr->swap);
        return true;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(qp, wr->key.rkey, wr->remote_addr, wr->compare_add);
        return true;
    default:
        return false;
    }
}

/* One target's requests are in one stream, which the device keeps in order. Which other targets
 * are in it does not matter. */
static uint16_t stream_of(uint8_t log_streams, const struct fab_wr *wr)
{
    uint32_t hash = (((const struct verbs_ah *)wr->ah)->hash ^ wr->dest_qpn) * 2654435761u;
    return (uint16_t)(1 + (hash >> (32 - log_streams)));
}

static void set_address(struct verbs_qp *q, const struct fab_wr *wr)
{
    struct ibv_ah *ah = ((const struct verbs_ah *)wr->ah)->ah;
    if (q->log_streams != 0)
        mlx5dv_wr_set_dc_addr_stream(q->dv, ah, wr->dest_qpn, wr->dc_key,
                                     stream_of(q->log_streams, wr));
    else
        mlx5dv_wr_set_dc_addr(q->dv, ah, wr->dest_qpn, wr->dc_key);
}

static void set_data(struct ibv_qp_ex *qp, const struct fab_wr *wr)
{
    const struct ibv_sge *s = wr->sg_list;
    struct ibv_data_buf part[VERBS_DC_SGE];
    if (wr->send_flags & IBV_SEND_INLINE) {
        for (int i = 0; i < wr->num_sge; i++)
            part[i] =
                (struct ibv_data_buf){.addr = (void *)(uintptr_t)s[i].addr, .length = s[i].length};
        ibv_wr_set_inline_data_list(qp, (size_t)wr->num_sge, part);
    } else if (wr->num_sge == 1) {
        ibv_wr_set_sge(qp, s->lkey, s->addr, s->length);
    } else {
        ibv_wr_set_sge_list(qp, (size_t)wr->num_sge, s);
    }
}

/* What the device calls the i-th of a list: with streams each completes for itself, under a number
 * of its own. */
static void set_id(struct verbs_qp *q, const struct fab_wr *wr, uint32_t i)
{
    q->ex->wr_id = wr->wr_id;
    q->ex->wr_flags = wr->send_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
    if (q->ring == NULL)
        return;
    const uint32_t index = q->posted + i;
    struct verbs_slot *s = &q->ring->slot[index & q->ring->mask];
    s->wr_id = wr->wr_id;
    s->silent = !(wr->send_flags & IBV_SEND_SIGNALED);
    q->ex->wr_id = q->life | index;
    q->ex->wr_flags |= IBV_SEND_SIGNALED;
    atomic_store_explicit(&s->id, q->ex->wr_id, memory_order_release);
}

/* What the device did not take after all. */
static void leave_slots(struct verbs_qp *q, uint32_t n)
{
    for (uint32_t i = 0; q->ring != NULL && i < n; i++)
        atomic_store_explicit(&q->ring->slot[(q->posted + i) & q->ring->mask].id, 0,
                              memory_order_relaxed);
}

int verbs_dci_post(struct verbs_qp *q, const struct fab_wr *wr, int n)
{
    const struct fab_wr *list = wr;
    uint32_t slots = 0;
    int status = 0;
    ibv_wr_start(q->ex);
    for (; n > 0; n--, wr = wr->next) {
        set_id(q, wr, slots++);
        if (!build_wr(q->ex, wr)) {
            status = -EINVAL;
            break;
        }
        set_address(q, wr);
        set_data(q->ex, wr);
    }
    if (status == 0 && verbs_is_late(list))
        status = -ETIME;
    if (status == 0)
        status = -ibv_wr_complete(q->ex);
    else
        ibv_wr_abort(q->ex);
    if (status != 0)
        leave_slots(q, slots);
    return status;
}
