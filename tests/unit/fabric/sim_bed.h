/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a simulated network, each with a device, a domain, a completion queue and memory. */
#ifndef TESTS_SIM_BED_H
#define TESTS_SIM_BED_H

#include <stdio.h>
#include <string.h>

#include <check.h>

#include "base/error.h"
#include "base/random.h"
#include "fabric/sim.h"

enum { BED_BYTES = 64 << 10, BED_ALL = 0xf, BED_CQE = 512, BED_TIMEOUT = 8 /* 1 ms */ };

struct bed_node {
    struct sim_net *net;
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_cq *cq;
    struct fab_chan *chan;
    struct fab_mem mem;
    struct fab_mr *mr;
    struct fab_srq *srq;
    struct fab_dct *dct;
    uint8_t *bytes;
};

static inline int bed_call(struct fab *fab, struct fab_ctl *ctl)
{
    return fab_call(fab, ctl);
}

static inline struct fab_mr *bed_register(struct bed_node *n)
{
    struct fab_ctl c = {.kind = FAB_REG_MR,
                        .mr = {.pd = n->pd,
                               .mem = &n->mem,
                               .length = BED_BYTES,
                               .access = BED_ALL,
                               .iova = 1ull << 50}};
    ck_assert_int_eq(bed_call(n->fab, &c), 0);
    return c.mr.x;
}

static inline void bed_open_with(struct bed_node *n, struct sim_net *net,
                                 const struct sim_device_attr *attr)
{
    struct base_errbuf err = {.text = ""};
    *n = (struct bed_node){.net = net};
    ck_assert_msg(sim_device_open(net, attr, &n->fab, &err) == 0, "%s", err.text);
    struct fab_ctl c = {.kind = FAB_ALLOC_PD};
    ck_assert_int_eq(bed_call(n->fab, &c), 0);
    n->pd = c.pd.x;
    c = (struct fab_ctl){.kind = FAB_CREATE_CHAN};
    ck_assert_int_eq(bed_call(n->fab, &c), 0);
    n->chan = c.chan.x;
    c = (struct fab_ctl){.kind = FAB_CREATE_CQ, .cq = {.cqe = BED_CQE, .chan = n->chan}};
    ck_assert_int_eq(bed_call(n->fab, &c), 0);
    n->cq = c.cq.x;
    c = (struct fab_ctl){.kind = FAB_CREATE_SRQ, .srq = {.pd = n->pd, .max_wr = 64, .max_sge = 1}};
    ck_assert_int_eq(bed_call(n->fab, &c), 0);
    n->srq = c.srq.x;
    c = (struct fab_ctl){
        .kind = FAB_CREATE_DCT,
        .dct = {.pd = n->pd, .cq = n->cq, .srq = n->srq, .dc_key = 5, .access = BED_ALL}};
    const bool has_dc = (n->fab->caps.transports & FAB_DC) != 0;
    ck_assert_int_eq(bed_call(n->fab, &c), has_dc ? 0 : -EINVAL);
    n->dct = has_dc ? c.dct.x : NULL;
    ck_assert_int_eq(fab_mem_alloc_for(n->fab, BED_BYTES, "bed", &n->mem), 0);
    n->bytes = n->mem.addr;
    n->mr = bed_register(n);
}

static inline void bed_open(struct bed_node *n, struct sim_net *net, uint32_t node)
{
    const struct sim_device_attr attr = {.node = node};
    bed_open_with(n, net, &attr);
}

static inline void bed_free(struct bed_node *n, enum fab_ctl_kind kind, void *x)
{
    struct fab_ctl c = {.kind = kind};
    c.pd.x = x; /* every kind names its object first */
    if (x != NULL)
        ck_assert_int_eq(bed_call(n->fab, &c), 0);
}

static inline void bed_close(struct bed_node *n)
{
    bed_free(n, FAB_DEREG_MR, n->mr);
    bed_free(n, FAB_DESTROY_DCT, n->dct);
    bed_free(n, FAB_DESTROY_SRQ, n->srq);
    bed_free(n, FAB_DESTROY_CQ, n->cq);
    bed_free(n, FAB_DESTROY_CHAN, n->chan);
    bed_free(n, FAB_FREE_PD, n->pd);
    fab_mem_free(&n->mem);
    ck_assert_int_eq(fab_close(n->fab), 0);
}

static inline struct fab_qp *bed_qp(struct bed_node *n, enum fab_qp_type type)
{
    struct fab_ctl c = {.kind = FAB_CREATE_QP,
                        .qp = {.pd = n->pd,
                               .type = type,
                               .send_cq = n->cq,
                               .recv_cq = n->cq,
                               .srq = type == FAB_QP_DCI ? NULL : n->srq,
                               .cap = {.send_wr = 64, .send_sge = 1, .inline_bytes = 64}}};
    ck_assert_int_eq(bed_call(n->fab, &c), 0);
    return c.qp.x;
}

static inline int bed_modify(struct fab_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct fab_ctl c = {.kind = FAB_MODIFY_QP, .modify = {.x = qp, .attr = *attr, .mask = mask}};
    return bed_call(qp->pd->fab, &c);
}

static inline void bed_to(struct fab_qp *qp, enum ibv_qp_state state)
{
    const struct ibv_qp_attr attr = {.qp_state = state};
    ck_assert_int_eq(bed_modify(qp, &attr, IBV_QP_STATE), 0);
}

#endif
