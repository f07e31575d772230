/* SPDX-License-Identifier: Apache-2.0 */
/* DC targets that break, of which the device says nothing. */
#include <fcntl.h>

#include "fault_rig.h"

static struct rig r;
static struct fab_srq *srq;
static struct fab_qp *dci;
static struct fault_plan plan;

static int raise_dci(enum ibv_qp_state to, int mask)
{
    struct fab_ctl ctl = {.kind = FAB_MODIFY_QP,
                          .modify = {.x = dci,
                                     .attr = {.qp_state = to,
                                              .port_num = r.fab->caps.port_num,
                                              .path_mtu = IBV_MTU_1024,
                                              .timeout = 8,
                                              .retry_cnt = 1,
                                              .rnr_retry = 1,
                                              .max_rd_atomic = 1},
                                     .mask = IBV_QP_STATE | mask}};
    return call(&r, &ctl);
}

static void connect_dci(void)
{
    ck_assert_int_eq(raise_dci(IBV_QPS_RESET, 0), 0);
    ck_assert_int_eq(raise_dci(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT), 0);
    ck_assert_int_eq(raise_dci(IBV_QPS_RTR, IBV_QP_PATH_MTU), 0);
    ck_assert_int_eq(raise_dci(IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

static struct fab_dct *make_dct(void)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_DCT,
                          .dct = {.pd = r.pd, .cq = r.cq, .srq = srq, .dc_key = 5, .access = ALL}};
    ck_assert_int_eq(call(&r, &ctl), 0);
    return ctl.dct.x;
}

static void destroy_dct(struct fab_dct *dct)
{
    struct fab_ctl ctl = {.kind = FAB_DESTROY_DCT, .dct.x = dct};
    ck_assert_int_eq(call(&r, &ctl), 0);
}

static void begin(void)
{
    plan = (struct fault_plan){.seed = 1};
    rig_open(&r, FAB_QP_RC);
    (void)snprintf(plan.dct_silent_when, sizeof plan.dct_silent_when, "%s/silent", r.dir);
    fault_set_plan(r.fab, &plan);
    struct fab_ctl made = {.kind = FAB_CREATE_SRQ, .srq = {.pd = r.pd, .max_wr = 1, .max_sge = 1}};
    ck_assert_int_eq(call(&r, &made), 0);
    srq = made.srq.x;
    struct fab_ctl qp = {.kind = FAB_CREATE_QP,
                         .qp = {.pd = r.pd,
                                .type = FAB_QP_DCI,
                                .send_cq = r.cq,
                                .recv_cq = r.cq,
                                .cap = {.send_wr = 4, .send_sge = 1}}};
    ck_assert_int_eq(call(&r, &qp), 0);
    dci = qp.qp.x;
    connect_dci();
}

static void end(void)
{
    struct fab_ctl qp = {.kind = FAB_DESTROY_QP, .qp.x = dci},
                   gone = {.kind = FAB_DESTROY_SRQ, .srq.x = srq};
    (void)unlink(plan.dct_silent_when);
    ck_assert_int_eq(call(&r, &qp), 0);
    ck_assert_int_eq(call(&r, &gone), 0);
    rig_close(&r);
}

static enum ibv_wc_status read_through(const struct fab_dct *dct)
{
    struct ibv_sge sge = sge_at(&r, 0);
    struct fab_wr wr = {.wr_id = 1,
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_RDMA_READ,
                        .send_flags = IBV_SEND_SIGNALED,
                        .key.rkey = r.mr->rkey,
                        .remote_addr = r.mr->addr + 8,
                        .ah = r.ah,
                        .dest_qpn = dct->dctn,
                        .dc_key = dct->dc_key};
    struct fab_wr *bad;
    ck_assert_int_eq(fab_post_send(dci, &wr, &bad), 0);
    return next_wc(r.cq).status;
}

static void break_targets(void)
{
    struct fab_ctl look = {.kind = FAB_QUERY_PORT};
    close(creat(plan.dct_silent_when, 0600));
    ck_assert_int_eq(call(&r, &look), 0);
}

START_TEST(a_target_that_breaks_answers_nothing_and_nothing_says_so)
{
    struct fab_event event;
    begin();
    struct fab_dct *dct = make_dct();
    ck_assert_int_eq(read_through(dct), IBV_WC_SUCCESS);
    break_targets();
    ck_assert_int_eq(read_through(dct), IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(fab_get_event(r.fab, &event), 0);
    ck_assert_int_eq(write_to(&r, 2, 8), 0); /* by RC */
    ck_assert_int_eq(next_wc(r.cq).status, IBV_WC_SUCCESS);
    connect_dci();
    struct fab_dct *other = make_dct();
    ck_assert_uint_ne(other->dctn, dct->dctn);
    ck_assert_int_eq(read_through(other), IBV_WC_SUCCESS); /* though the file is still there */
    destroy_dct(dct);
    ck_assert_int_eq(read_through(other), IBV_WC_SUCCESS);
    destroy_dct(other);
    end();
}
END_TEST

START_TEST(targets_break_once_each_time_that_the_file_comes)
{
    begin();
    struct fab_dct *dct = make_dct();
    break_targets();
    (void)unlink(plan.dct_silent_when);
    struct fab_dct *other = make_dct();
    ck_assert_int_eq(read_through(other), IBV_WC_SUCCESS);
    break_targets();
    ck_assert_int_eq(read_through(other), IBV_WC_RETRY_EXC_ERR);
    destroy_dct(other);
    destroy_dct(dct);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_target_that_breaks_answers_nothing_and_nothing_says_so)                                    \
    T(targets_break_once_each_time_that_the_file_comes)
KEDGE_CHECK_MAIN("fault targets", TESTS)
