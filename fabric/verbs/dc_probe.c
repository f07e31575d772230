/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the device does DC, found out by doing it: drivers and firmware refuse at different
 * steps, and none of them says beforehand. Never run on hardware: see dc.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/verbs.h"

struct probe {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *dci, *dct;
    uint32_t max_inline, max_rd_atomic;
};

/* Why it has none; the one place that says it. */
static int refuse_dc(struct verbs_fab *f, const char *what, int status)
{
    snprintf(f->base.caps.dc_why, sizeof f->base.caps.dc_why, "the device refuses %s: %s", what,
             strerror(status));
    return -status;
}

static int why_not(void)
{
    return errno != 0 ? errno : EOPNOTSUPP;
}

static int make_parents(struct verbs_fab *f, struct probe *p)
{
    const struct verbs_calls *c = &f->dc.calls;
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
    errno = 0;
    p->pd = c->alloc_pd(f->context);
    p->cq = p->pd != NULL ? c->create_cq(f->context, 2, NULL, NULL, 0) : NULL;
    p->srq = p->cq != NULL ? c->create_srq(p->pd, &attr) : NULL;
    return p->srq != NULL ? 0 : refuse_dc(f, "a PD, a CQ or an SRQ", why_not());
}

static struct ibv_qp *try_dci(struct verbs_fab *f, struct probe *p, uint32_t inline_bytes)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .cap = {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = inline_bytes}};
    errno = 0;
    struct ibv_qp *made = verbs_dci_make(f, p->pd, &attr);
    if (made != NULL && attr.cap.max_inline_data < p->max_inline)
        p->max_inline = attr.cap.max_inline_data;
    return made;
}

/* None unless asked for. */
static uint8_t streams_of(struct verbs_fab *f)
{
    uint8_t wanted = 0;
    while (2u << wanted <= f->dc.wanted_streams)
        wanted++;
    if (wanted == 0)
        return 0;
    struct mlx5dv_context dv = {.comp_mask = MLX5DV_CONTEXT_MASK_DCI_STREAMS};
    if (f->dc.calls.dv_query_device(f->context, &dv) != 0 ||
        !(dv.comp_mask & MLX5DV_CONTEXT_MASK_DCI_STREAMS))
        return 0;
    uint8_t log = dv.dci_streams_caps.max_log_num_concurent;
    return log < wanted ? log : wanted;
}

/* With as much inline data as RC has, and with streams, or with less. */
static int make_dci(struct verbs_fab *f, struct probe *p)
{
    int first = 0; /* why the one that was asked for is refused */
    f->dc.log_streams = streams_of(f);
    for (;;) {
        for (uint32_t bytes = p->max_inline;; bytes /= 2) {
            p->dci = try_dci(f, p, bytes);
            if (p->dci != NULL)
                return 0;
            if (first == 0)
                first = why_not();
            if (bytes == 0)
                break;
        }
        if (f->dc.log_streams == 0)
            return refuse_dc(f, "to create a DCI", first);
        f->dc.log_streams = 0;
    }
}

/* With an address, whose service level is the DCI's own, as UCX does it; without, on kernels that
 * refuse that, where there is no service level to be lost. */
static int bring_dci_to_rtr(struct verbs_fab *f, struct probe *p)
{
    const struct fab_caps *caps = &f->base.caps;
    const struct fab_pd in = {.fab = &f->base, .service = caps->service};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = caps->mtu,
                              .ah_attr = fab_pd_address(&in, caps->gid, caps->lid)};
    f->dc.dci_av = true;
    int status = verbs_dci_modify(f, &in, p->dci, &rtr, IBV_QP_STATE | IBV_QP_PATH_MTU);
    if (status != EINVAL || f->base.caps.service.service_level != 0)
        return status;
    f->dc.dci_av = false;
    return verbs_dci_modify(f, &in, p->dci, &rtr, IBV_QP_STATE | IBV_QP_PATH_MTU);
}

/* As rdma-core's tests/mlx5_base.py and pyverbs' Mlx5QP move one: a DCI has no access flags. */
static int bring_up_dci(struct verbs_fab *f, struct probe *p)
{
    const struct verbs_calls *c = &f->dc.calls;
    struct ibv_qp_attr init = fab_init_attr(&f->base);
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    int status = c->modify_qp(p->dci, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
    if (status != 0)
        return refuse_dc(f, "to move a DCI to INIT", status);
    status = bring_dci_to_rtr(f, p);
    if (status != 0)
        return refuse_dc(f,
                         f->base.caps.service.service_level != 0
                             ? "to move a DCI to RTR with a service level"
                             : "to move a DCI to RTR",
                         status);
    for (; p->max_rd_atomic > 0; p->max_rd_atomic /= 2) {
        rts.max_rd_atomic = (uint8_t)p->max_rd_atomic;
        status = c->modify_qp(p->dci, &rts,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
        if (status == 0)
            return 0;
    }
    return refuse_dc(f, "to move a DCI to RTS", status != 0 ? status : EINVAL);
}

static void try_dct(struct verbs_fab *f, struct probe *p)
{
    struct fab_pd in = {.fab = &f->base, .service = f->base.caps.service};
    struct fab_ctl ctl = {.kind = FAB_CREATE_DCT,
                          .dct = {.pd = &in, .dc_key = 1, .access = fab_target_access(&f->base)}};
    verbs_own_address(&ctl);
    errno = 0;
    p->dct = verbs_dct_make(f, &ctl, p->pd, p->cq, p->srq);
}

/* With atomics, where the device has them at all; or without: mlx5's firmware says for each
 * transport by itself whether it has them, and its driver refuses a target that allows what is not
 * there (get_atomic_mode() and modify_dct in drivers/infiniband/hw/mlx5/qp.c). */
static int make_dct(struct verbs_fab *f, struct probe *p)
{
    struct fab_caps *caps = &f->base.caps;
    caps->dc_atomics = caps->atomics;
    try_dct(f, p);
    const int first = p->dct == NULL ? why_not() : 0;
    if (p->dct == NULL && caps->atomics) {
        caps->dc_atomics = false;
        try_dct(f, p);
    }
    return p->dct != NULL ? 0 : refuse_dc(f, "to create a DCT, or to move it to RTR", first);
}

static void free_all(const struct verbs_calls *c, struct probe *p)
{
    if (p->dct != NULL)
        (void)c->destroy_qp(p->dct);
    if (p->dci != NULL)
        (void)c->destroy_qp(p->dci);
    if (p->srq != NULL)
        (void)c->destroy_srq(p->srq);
    if (p->cq != NULL)
        (void)c->destroy_cq(p->cq);
    if (p->pd != NULL)
        (void)c->dealloc_pd(p->pd);
}

void verbs_dc_probe(struct verbs_fab *f)
{
    struct fab_caps *caps = &f->base.caps;
    struct probe p = {.max_inline = caps->max_inline, .max_rd_atomic = caps->max_rd_atomic};
    f->dc.is_mlx5 = f->dc.calls.dv_is_supported(f->context->device);
    if (!f->dc.is_mlx5) {
        snprintf(caps->dc_why, sizeof caps->dc_why,
                 "it is no mlx5 device: of all RNICs, ConnectX alone has DC");
        return;
    }
    int status = make_parents(f, &p);
    if (status == 0)
        status = make_dci(f, &p);
    if (status == 0)
        status = bring_up_dci(f, &p);
    if (status == 0)
        status = make_dct(f, &p);
    free_all(&f->dc.calls, &p);
    if (status != 0)
        return;
    caps->transports |= FAB_DC;
    caps->dci_streams = f->dc.log_streams != 0;
    caps->max_inline = p.max_inline;
    caps->max_rd_atomic = p.max_rd_atomic;
    if (caps->max_sge > VERBS_DC_READ_SGE)
        caps->max_sge = VERBS_DC_READ_SGE;
}
