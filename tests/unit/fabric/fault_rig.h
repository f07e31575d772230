/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the fault layer share: one node behind it, over `soft`. */
#ifndef FAULT_RIG_H
#define FAULT_RIG_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "../check_main.h"
#include "fabric/fault.h"

enum { BYTES = 65536, ALL = 0xf, WRITES = 400, MILLION = 1000000 };

/* One node behind the layer, with two queue pairs that are connected to each other: of a type that
 * the test chooses. */
struct rig {
    char dir[64];
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_cq *cq, *far_cq;
    struct fab_mem mem;
    struct fab_mr *mr;
    struct fab_qp *qp, *far;
    struct fab_ah *ah;
};

static int call(struct rig *r, struct fab_ctl *ctl)
{
    return fab_call(r->fab, ctl);
}

static struct fab_qp *make_qp(struct rig *r, enum fab_qp_type type, struct fab_cq *cq)
{
    struct fab_ctl ctl = {
        .kind = FAB_CREATE_QP,
        .qp = {.pd = r->pd,
               .type = type,
               .send_cq = cq,
               .recv_cq = cq,
               .cap = {.send_wr = 64, .recv_wr = 64, .send_sge = 1, .recv_sge = 1}}};
    ck_assert_int_eq(call(r, &ctl), 0);
    return ctl.qp.x;
}

static int move(struct rig *r, struct fab_qp *qp, enum ibv_qp_state to, uint32_t peer)
{
    struct fab_ctl ctl = {.kind = FAB_MODIFY_QP,
                          .modify = {.x = qp,
                                     .attr = {.qp_state = to,
                                              .port_num = r->fab->caps.port_num,
                                              .qp_access_flags = ALL,
                                              .qkey = 7,
                                              .path_mtu = IBV_MTU_1024,
                                              .dest_qp_num = peer,
                                              .timeout = 14,
                                              .retry_cnt = 7,
                                              .rnr_retry = 7,
                                              .ah_attr = {.is_global = 1}}}};
    bool ud = qp->type == FAB_QP_UD;
    memcpy(ctl.modify.attr.ah_attr.grh.dgid.raw, r->fab->caps.gid, 16);
    ctl.modify.mask = IBV_QP_STATE;
    if (to == IBV_QPS_INIT)
        ctl.modify.mask |=
            IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    if (to == IBV_QPS_RTR && !ud)
        ctl.modify.mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    if (to == IBV_QPS_RTS)
        ctl.modify.mask |= ud ? IBV_QP_SQ_PSN
                              : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    return call(r, &ctl);
}

static void connect_both(struct rig *r)
{
    static const enum ibv_qp_state path[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(move(r, r->qp, path[i], r->far->qpn), 0);
        ck_assert_int_eq(move(r, r->far, path[i], r->qp->qpn), 0);
    }
}

static struct fab_cq *make_cq(struct rig *r)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_CQ, .cq = {.cqe = 256}};
    ck_assert_int_eq(call(r, &ctl), 0);
    return ctl.cq.x;
}

static void rig_open_with(struct rig *r, enum fab_qp_type type, const struct fault_plan *plan)
{
    struct base_errbuf err = {.text = ""};
    struct fab *inner;
    *r = (struct rig){.dir = "/dev/shm/kedge-fault-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(r->dir));
    struct fab_open_attr attr = {.device = r->dir};
    ck_assert_msg(fab_soft.open(&attr, &inner, &err) == 0, "%s", err.text);
    ck_assert_int_eq(fault_open(inner, plan, &r->fab), 0);
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    ck_assert_int_eq(call(r, &pd), 0);
    r->pd = pd.pd.x;
    r->cq = make_cq(r);
    r->far_cq = make_cq(r);
    ck_assert_int_eq(fab_mem_alloc(BYTES, "fault", &r->mem), 0);
    struct fab_ctl mr = {.kind = FAB_REG_MR,
                         .mr = {.pd = r->pd, .mem = &r->mem, .length = BYTES, .access = ALL}};
    ck_assert_int_eq(call(r, &mr), 0);
    r->mr = mr.mr.x;
    struct fab_ctl ah = {.kind = FAB_CREATE_AH, .ah = {.pd = r->pd, .attr = {.is_global = 1}}};
    memcpy(ah.ah.attr.grh.dgid.raw, r->fab->caps.gid, 16);
    ck_assert_int_eq(call(r, &ah), 0);
    r->ah = ah.ah.x;
    r->qp = make_qp(r, type, r->cq);
    r->far = make_qp(r, type, r->far_cq);
    connect_both(r);
}

static void rig_open(struct rig *r, enum fab_qp_type type)
{
    static const struct fault_plan nothing = {.seed = 1};
    rig_open_with(r, type, &nothing);
}

static void rig_close(struct rig *r)
{
    static const struct fault_plan nothing = {.seed = 1};
    struct fab_ctl ctl[] = {
        {.kind = FAB_DESTROY_QP, .qp = {.x = r->qp}},
        {.kind = FAB_DESTROY_QP, .qp = {.x = r->far}},
        {.kind = FAB_DESTROY_AH, .ah = {.x = r->ah}},
        {.kind = FAB_DEREG_MR, .mr = {.x = r->mr}},
        {.kind = FAB_DESTROY_CQ, .cq = {.x = r->cq}},
        {.kind = FAB_DESTROY_CQ, .cq = {.x = r->far_cq}},
        {.kind = FAB_FREE_PD, .pd = {.x = r->pd}},
    };
    char path[96];
    fault_set_plan(r->fab, &nothing);
    for (size_t i = 0; i < sizeof ctl / sizeof ctl[0]; i++)
        ck_assert_int_eq(call(r, &ctl[i]), 0);
    ck_assert_int_eq(fab_close(r->fab), 0);
    fab_mem_free(&r->mem);
    snprintf(path, sizeof path, "%s/device", r->dir);
    (void)unlink(path);
    (void)rmdir(r->dir);
}

static struct ibv_sge sge_at(const struct rig *r, size_t offset)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)r->mem.addr + offset, .length = 1, .lkey = r->mr->lkey};
}

/* Writes the byte from offset 0 to this offset; the layer's or the device's answer. */
static int write_to(struct rig *r, uint64_t wr_id, size_t offset)
{
    struct ibv_sge sge = sge_at(r, 0);
    struct fab_wr wr = {.wr_id = wr_id,
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_RDMA_WRITE,
                        .send_flags = IBV_SEND_SIGNALED,
                        .key.rkey = r->mr->rkey,
                        .remote_addr = r->mr->addr + offset};
    struct fab_wr *bad = NULL;
    int status = fab_post_send(r->qp, &wr, &bad);
    ck_assert(status == 0 || bad == &wr);
    return status;
}

static struct ibv_wc next_wc(struct fab_cq *cq)
{
    struct ibv_wc wc;
    int n = 0;
    for (long tries = 0; n == 0; tries++) {
        n = fab_poll(cq, 1, &wc);
        ck_assert_int_lt(tries, 100000000L);
    }
    ck_assert_int_eq(n, 1);
    return wc;
}

#endif
