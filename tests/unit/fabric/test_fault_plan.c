/* SPDX-License-Identifier: Apache-2.0 */
/* The fault layer: what a plan does, how often, and to whom; over the soft provider. */
#include <fcntl.h>
#include <unistd.h>

#include "fault_rig.h"

/* ---- limits */

START_TEST(more_objects_than_an_rdma_cgroup_allows_are_refused_and_room_comes_back)
{
    struct rig r; /* a domain, two completion queues, a region, two queue pairs, a handle */
    const struct fault_plan plan = {.seed = 1, .max_objects = 8};
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD}, more = pd;
    rig_open(&r, FAB_QP_RC);
    fault_set_plan(r.fab, &plan);
    struct fab_ctl ah = {.kind = FAB_CREATE_AH, .ah = {.pd = r.pd, .attr = {.is_global = 1}}};
    memcpy(ah.ah.attr.grh.dgid.raw, r.fab->caps.gid, 16);
    ck_assert_int_eq(call(&r, &ah), 0);
    ck_assert_int_eq(call(&r, &more), -EAGAIN);
    struct fab_ctl free_ah = {.kind = FAB_DESTROY_AH, .ah = {.x = ah.ah.x}};
    ck_assert_int_eq(call(&r, &free_ah), 0);
    ck_assert_int_eq(call(&r, &pd), 0);
    ck_assert_int_eq(call(&r, &ah), -EAGAIN);
    struct fab_ctl chan = {.kind = FAB_CREATE_CHAN};
    ck_assert_int_eq(call(&r, &chan), 0); /* which the kernel counts none of */
    struct fab_ctl free_chan = {.kind = FAB_DESTROY_CHAN, .chan = {.x = chan.chan.x}};
    ck_assert_int_eq(call(&r, &free_chan), 0);
    struct fab_ctl bad_mr = {.kind = FAB_REG_MR, .mr = {.pd = r.pd, .mem = &r.mem}};
    struct fab_ctl free_pd = {.kind = FAB_FREE_PD, .pd = {.x = pd.pd.x}};
    ck_assert_int_eq(call(&r, &free_pd), 0);
    ck_assert_int_eq(call(&r, &bad_mr), -EINVAL); /* of length 0: it takes no room */
    ck_assert_int_eq(call(&r, &pd), 0);
    free_pd.pd.x = pd.pd.x;
    ck_assert_int_eq(call(&r, &free_pd), 0);
    rig_close(&r);
}
END_TEST

/* ---- errors */

/* Which of so many WRITEs fail under a plan. Whatever fails must not have been executed. */
static void run_writes(struct rig *r, const struct fault_plan *plan, uint8_t failed[WRITES])
{
    uint8_t *bytes = r->mem.addr;
    fault_set_plan(r->fab, plan);
    memset(bytes, 0, BYTES);
    bytes[0] = 0xaa;
    for (size_t i = 0; i < WRITES; i++) {
        ck_assert_int_eq(write_to(r, i, 1000 + i), 0);
        struct ibv_wc wc = next_wc(r->cq);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_uint_eq(wc.qp_num, r->qp->qpn);
        failed[i] = wc.status != IBV_WC_SUCCESS;
        ck_assert_uint_eq(bytes[1000 + i], failed[i] ? 0 : 0xaa);
        if (!failed[i])
            continue;
        ck_assert_int_eq(wc.status,
                         plan->status != IBV_WC_SUCCESS ? plan->status : IBV_WC_RETRY_EXC_ERR);
        ck_assert_int_eq(fab_qp_state(r->qp), IBV_QPS_ERR);
        ck_assert_int_eq(fab_qp_state(r->far), IBV_QPS_RTS);
        connect_both(r);
    }
}

START_TEST(the_same_seed_gives_the_same_faults_and_another_one_others)
{
    struct fault_plan plan = {.seed = 42, .completion_error_ppm = 100000};
    uint8_t first[WRITES], again[WRITES], other[WRITES];
    struct rig r;
    rig_open(&r, FAB_QP_RC);
    run_writes(&r, &plan, first);
    run_writes(&r, &plan, again);
    plan.seed = 43;
    run_writes(&r, &plan, other);
    ck_assert_mem_eq(first, again, WRITES);
    ck_assert(memcmp(first, other, WRITES) != 0);
    rig_close(&r);

    plan.seed = 42; /* and so in another process's life */
    rig_open(&r, FAB_QP_RC);
    run_writes(&r, &plan, again);
    ck_assert_mem_eq(first, again, WRITES);
    rig_close(&r);
}
END_TEST

START_TEST(faults_come_at_their_rate_and_are_counted)
{
    const struct fault_plan plan = {
        .seed = 3, .completion_error_ppm = 250000, .status = IBV_WC_REM_OP_ERR};
    uint8_t failed[WRITES];
    unsigned n = 0;
    struct rig r;
    rig_open(&r, FAB_QP_RC);
    ck_assert_uint_eq(fault_count(r.fab), 0);
    run_writes(&r, &plan, failed);
    for (int i = 0; i < WRITES; i++)
        n += failed[i];
    ck_assert_uint_gt(n, WRITES / 8);
    ck_assert_uint_lt(n, WRITES / 2);
    ck_assert_uint_eq(fault_count(r.fab), n);
    rig_close(&r);
}
END_TEST

START_TEST(what_is_behind_an_injected_error_flushes_in_order_and_is_not_executed)
{
    enum { N = 10 };
    const struct fault_plan plan = {.seed = 5, .completion_error_ppm = 300000};
    struct rig r;
    int whole = 0;
    rig_open(&r, FAB_QP_RC);
    fault_set_plan(r.fab, &plan);
    for (int round = 0; round < 50; round++) {
        uint8_t *bytes = r.mem.addr;
        struct ibv_sge sge = sge_at(&r, 0);
        struct fab_wr wr[N], *bad;
        bool broken = false;
        memset(bytes, 0, 4096);
        bytes[0] = 0xbb;
        for (uint64_t i = 0; i < N; i++) {
            wr[i] = (struct fab_wr){.wr_id = i,
                                    .next = i + 1 < N ? &wr[i + 1] : NULL,
                                    .sg_list = &sge,
                                    .num_sge = 1,
                                    .opcode = IBV_WR_RDMA_WRITE,
                                    .send_flags = i + 1 < N ? 0 : IBV_SEND_SIGNALED,
                                    .key.rkey = r.mr->rkey,
                                    .remote_addr = r.mr->addr + 1000 + i};
        }
        ck_assert_int_eq(fab_post_send(r.qp, wr, &bad), 0);
        struct ibv_wc wc = next_wc(r.cq);
        broken = wc.status != IBV_WC_SUCCESS;
        whole += !broken;
        uint64_t first = broken ? wc.wr_id : N;
        ck_assert_int_eq(wc.status, broken ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
        for (uint64_t i = first + 1; i < N; i++) {
            wc = next_wc(r.cq);
            ck_assert_uint_eq(wc.wr_id, i);
            ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
        }
        for (uint64_t i = 0; i < N; i++)
            ck_assert_uint_eq(bytes[1000 + i], i < first ? 0xbb : 0);
        if (broken)
            connect_both(&r);
    }
    ck_assert_int_gt(whole, 0);
    ck_assert_int_lt(whole, 50);
    rig_close(&r);
}
END_TEST

START_TEST(every_opcode_can_be_made_to_fail_without_being_executed)
{
    static const enum ibv_wr_opcode opcodes[] = {
        IBV_WR_RDMA_READ,           IBV_WR_RDMA_WRITE,          IBV_WR_SEND,
        IBV_WR_SEND_WITH_IMM,       IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD};
    const struct fault_plan plan = {
        .seed = 1, .completion_error_ppm = MILLION, .status = IBV_WC_REM_ACCESS_ERR};
    struct rig r;
    rig_open(&r, FAB_QP_RC);
    uint8_t *bytes = r.mem.addr;
    fault_set_plan(r.fab, &plan);
    for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++) {
        struct ibv_sge in = sge_at(&r, 64), sge = sge_at(&r, 0);
        struct fab_recv_wr recv = {.wr_id = 5, .sg_list = &in, .num_sge = 1}, *bad_recv;
        struct fab_wr wr = {.wr_id = 100 + i,
                            .sg_list = &sge,
                            .num_sge = 1,
                            .opcode = opcodes[i],
                            .key.rkey = r.mr->rkey,
                            .remote_addr = r.mr->addr + 128,
                            .swap = 1};
        struct fab_wr *bad;
        struct ibv_wc wc;
        sge.length =
            opcodes[i] >= IBV_WR_ATOMIC_CMP_AND_SWP && opcodes[i] <= IBV_WR_ATOMIC_FETCH_AND_ADD
                ? 8
                : 1;
        memset(bytes, 0, 256);
        bytes[0] = 1;
        ck_assert_int_eq(fab_post_recv(r.far, &recv, &bad_recv), 0);
        ck_assert_int_eq(fab_post_send(r.qp, &wr, &bad), 0);
        wc = next_wc(r.cq);
        ck_assert_uint_eq(wc.wr_id, 100 + i);
        ck_assert_int_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
        ck_assert_int_eq(fab_poll(r.far_cq, 1, &wc), 0);
        ck_assert_uint_eq(bytes[0], 1);
        for (int k = 1; k < 256; k++)
            ck_assert_uint_eq(bytes[k], 0);
        connect_both(&r);
    }
    rig_close(&r);
}
END_TEST

START_TEST(an_error_of_the_device_keeps_its_own_status)
{
    const struct fault_plan never = {.seed = 1, .completion_error_ppm = 1};
    struct rig r;
    rig_open(&r, FAB_QP_RC);
    fault_set_plan(r.fab, &never);
    r.mr->lkey ^= 0x5a5a00;
    ck_assert_int_eq(write_to(&r, 7, 64), 0);
    r.mr->lkey ^= 0x5a5a00;
    struct ibv_wc wc = next_wc(r.cq);
    ck_assert_uint_eq(wc.wr_id, 7);
    ck_assert_int_eq(wc.status, IBV_WC_LOC_PROT_ERR);
    rig_close(&r);
}
END_TEST

START_TEST(a_refused_post_leaves_nothing_posted)
{
    const struct fault_plan plan = {.seed = 9, .post_error_ppm = 500000};
    struct rig r;
    unsigned refused = 0;
    rig_open(&r, FAB_QP_RC);
    uint8_t *bytes = r.mem.addr;
    fault_set_plan(r.fab, &plan);
    bytes[0] = 0xcc;
    for (size_t i = 0; i < WRITES; i++) {
        struct ibv_wc wc;
        int status = write_to(&r, i, 1000 + i);
        if (status == 0) {
            wc = next_wc(r.cq);
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        } else {
            ck_assert_int_eq(status, -ENOMEM);
            ck_assert_int_eq(fab_poll(r.cq, 1, &wc), 0);
            ck_assert_uint_eq(bytes[1000 + i], 0);
            refused++;
        }
    }
    ck_assert_int_eq(fab_qp_state(r.qp), IBV_QPS_RTS);
    ck_assert_uint_gt(refused, WRITES / 4);
    ck_assert_uint_eq(fault_count(r.fab), refused);
    rig_close(&r);
}
END_TEST

START_TEST(a_control_operation_can_fail_and_then_has_done_nothing)
{
    const struct fault_plan plan = {.seed = 2, .control_error_ppm = 500000};
    struct rig r;
    unsigned failed = 0;
    rig_open(&r, FAB_QP_RC);
    fault_set_plan(r.fab, &plan);
    for (int i = 0; i < 200; i++) {
        struct fab_ctl make = {.kind = FAB_ALLOC_PD};
        int status = call(&r, &make);
        if (status != 0) {
            ck_assert_int_eq(status, -EIO);
            failed++;
            continue;
        }
        struct fab_ctl undo = {.kind = FAB_FREE_PD, .pd = {.x = make.pd.x}};
        while ((status = call(&r, &undo)) != 0) { /* it is still there, and can be freed again */
            ck_assert_int_eq(status, -EIO);
            failed++;
        }
    }
    ck_assert_uint_gt(failed, 50);
    ck_assert_uint_eq(fault_count(r.fab), failed);
    rig_close(&r); /* would find a PD that was left */
}
END_TEST

START_TEST(what_a_device_does_not_destroy_is_there_still)
{
    const struct fault_plan plan = {.seed = 2, .destroy_error_ppm = 1000000}, well = {.seed = 2};
    struct fab_ctl make = {.kind = FAB_ALLOC_PD};
    struct rig r;
    rig_open(&r, FAB_QP_RC);
    fault_set_plan(r.fab, &plan);
    ck_assert_int_eq(call(&r, &make), 0);
    struct fab_ctl undo = {.kind = FAB_FREE_PD, .pd = {.x = make.pd.x}};
    ck_assert_int_eq(call(&r, &undo), -EIO);
    ck_assert_int_eq(fab_close(r.fab), -EBUSY);
    fault_set_plan(r.fab, &well);
    ck_assert_int_eq(call(&r, &undo), 0);
    rig_close(&r);
}
END_TEST

/* A fence, which soft would hold up for who is inside, has nothing to wait for then. */
START_TEST(a_device_can_be_made_one_that_keeps_no_deadlines)
{
    const struct fault_plan plan = {.seed = 1, .no_deadlines = true};
    struct fab_ctl fence = {.kind = FAB_QUIESCE_MR, .quiesce = {.rkey = 12345}};
    struct rig r;
    rig_open(&r, FAB_QP_RC);
    ck_assert(r.fab->caps.deadlines);
    rig_close(&r);
    rig_open_with(&r, FAB_QP_RC, &plan);
    ck_assert(!r.fab->caps.deadlines);
    ck_assert_int_eq(call(&r, &fence), 0);
    ck_assert_ptr_null(fence.quiesce.progress);
    ck_assert_uint_eq(fault_count(r.fab), 0);
    rig_close(&r);
}
END_TEST

/* ---- losses */

START_TEST(datagrams_are_lost_while_their_sender_sees_success)
{
    enum { N = 300 };
    const struct fault_plan plan = {.seed = 6, .loss_ppm = 400000};
    struct rig r;
    unsigned arrived = 0;
    rig_open(&r, FAB_QP_UD);
    fault_set_plan(r.fab, &plan);
    for (uint64_t i = 0; i < N; i++) {
        struct ibv_sge in = sge_at(&r, 1024), out = sge_at(&r, 0);
        struct fab_recv_wr recv = {.wr_id = i, .sg_list = &in, .num_sge = 1}, *bad_recv;
        struct fab_wr wr = {.wr_id = i,
                            .sg_list = &out,
                            .num_sge = 1,
                            .opcode = IBV_WR_SEND,
                            .send_flags = IBV_SEND_SIGNALED,
                            .ah = r.ah,
                            .dest_qpn = r.far->qpn,
                            .qkey = 7};
        struct fab_wr *bad;
        struct ibv_wc wc;
        in.length = 64;
        if (i == arrived) /* one receive is always there */
            ck_assert_int_eq(fab_post_recv(r.far, &recv, &bad_recv), 0);
        ck_assert_int_eq(fab_post_send(r.qp, &wr, &bad), 0);
        wc = next_wc(r.cq);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.wr_id, i);
        if (fab_poll(r.far_cq, 1, &wc) == 0)
            continue;
        arrived++;
        recv.wr_id = i + 1;
        if (arrived != i + 1)
            ck_assert_int_eq(fab_post_recv(r.far, &recv, &bad_recv), 0);
    }
    ck_assert_uint_gt(arrived, N / 3);
    ck_assert_uint_lt(arrived, N);
    ck_assert_uint_eq(fault_count(r.fab), N - arrived);
    rig_close(&r);
}
END_TEST

START_TEST(only_datagrams_are_lost)
{
    const struct fault_plan plan = {.seed = 6, .loss_ppm = MILLION};
    struct rig r;
    rig_open(&r, FAB_QP_RC);
    uint8_t *bytes = r.mem.addr;
    fault_set_plan(r.fab, &plan);
    bytes[0] = 0xdd;
    for (size_t i = 0; i < 100; i++) {
        ck_assert_int_eq(write_to(&r, i, 1000 + i), 0);
        ck_assert_int_eq(next_wc(r.cq).status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(bytes[1000 + i], 0xdd);
    }
    ck_assert_uint_eq(fault_count(r.fab), 0);
    rig_close(&r);
}
END_TEST

/* How many of so many WRITEs of one byte complete without having been executed. */
static uint32_t write_in_vain(struct rig *r, uint32_t count, size_t offset)
{
    uint8_t *bytes = r->mem.addr;
    uint32_t vain = 0;
    bytes[0] = 0xee;
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_int_eq(write_to(r, i, offset + i), 0);
        ck_assert_int_eq(next_wc(r->cq).status, IBV_WC_SUCCESS);
        vain += bytes[offset + i] != 0xee;
    }
    return vain;
}

START_TEST(packets_of_every_former_life_come_late)
{
    const struct fault_plan plan = {.seed = 1, .packet_life_ns = 3600000000000ull};
    struct rig r;
    rig_open_with(&r, FAB_QP_RC, &plan);
    ck_assert_uint_eq(write_in_vain(&r, 5, 1000), 0);
    connect_both(&r);
    ck_assert_uint_eq(write_in_vain(&r, 2, 2000), 2);
    connect_both(&r);
    ck_assert_uint_eq(write_in_vain(&r, 6, 3000), 5); /* the sixth is no former life's number */
    rig_close(&r);
}
END_TEST

static void note_end(struct fab_ctl *ctl)
{
    *(uint32_t *)ctl->user += 1;
}

/* mlx5 destroys a DC target when it is drained: nothing else waits for that. */
START_TEST(a_target_that_is_drained_holds_up_nothing_but_what_it_needs)
{
    enum { DRAIN_MS = 200 };
    const struct fault_plan plan = {.seed = 1, .drain_ns = DRAIN_MS * 1000000ull};
    uint32_t ends = 0;
    struct rig r;
    rig_open_with(&r, FAB_QP_RC, &plan);
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ, .srq = {.pd = r.pd, .max_wr = 1, .max_sge = 1}};
    ck_assert_int_eq(call(&r, &srq), 0);
    struct fab_ctl dct = {.kind = FAB_CREATE_DCT,
                          .dct = {.pd = r.pd, .cq = r.cq, .srq = srq.srq.x, .dc_key = 1}};
    ck_assert_int_eq(call(&r, &dct), 0);
    struct fab_ctl drop = {
        .kind = FAB_DESTROY_DCT, .dct.x = dct.dct.x, .done = note_end, .user = &ends};
    struct fab_ctl look = {.kind = FAB_QUERY_PORT};
    fab_submit(r.fab, &drop);
    srq.kind = FAB_DESTROY_SRQ; /* which it needs: that comes behind it */
    srq.done = note_end;
    srq.user = &ends;
    fab_submit(r.fab, &srq);
    ck_assert_int_eq(call(&r, &look), 0);
    ck_assert_uint_eq(ends, 0);
    while (ends < 2) {
        fab_wait(r.fab);
        (void)fab_run(r.fab);
    }
    ck_assert_int_eq(drop.status, 0);
    ck_assert_int_eq(srq.status, 0);
    rig_close(&r);
}
END_TEST

START_TEST(where_a_device_hangs_nothing_is_over_before_it_goes_on)
{
    struct fault_plan plan = {.seed = 1};
    uint32_t ends = 0;
    struct rig r;
    rig_open_with(&r, FAB_QP_RC, &plan);
    snprintf(plan.hang_while, sizeof plan.hang_while, "/tmp/kedge-test-hang-%d", (int)getpid());
    fault_set_plan(r.fab, &plan);
    close(creat(plan.hang_while, 0600));
    struct fab_ctl port = {.kind = FAB_QUERY_PORT, .done = note_end, .user = &ends};
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD, .done = note_end, .user = &ends};
    fab_submit(r.fab, &port);
    (void)fab_run(r.fab);
    fab_wait(r.fab); /* it looks now and then */
    (void)fab_run(r.fab);
    (void)unlink(plan.hang_while);
    fab_submit(r.fab, &pd); /* behind the other, though it does not hang any more */
    ck_assert_uint_eq(ends, 0);
    while (ends < 2) {
        (void)fab_run(r.fab);
        if (ends < 2)
            fab_wait(r.fab);
    }
    ck_assert_int_eq(port.status, 0);
    ck_assert_int_eq(pd.status, 0);
    pd.kind = FAB_FREE_PD;
    ck_assert_int_eq(call(&r, &pd), 0);
    rig_close(&r);
}
END_TEST

START_TEST(what_is_sent_with_a_p_key_of_a_former_place_is_lost)
{
    struct fault_plan moved = {.seed = 1, .pkey_moved = 4};
    struct fab_event event;
    struct rig r;
    rig_open(&r, FAB_QP_RC);
    ck_assert_int_eq(write_to(&r, 1, 1000), 0);
    ck_assert_int_eq(next_wc(r.cq).status, IBV_WC_SUCCESS);
    fault_set_plan(r.fab, &moved);
    ck_assert_int_eq(fab_get_event(r.fab, &event), 1);
    ck_assert_int_eq(event.type, IBV_EVENT_PKEY_CHANGE);
    ck_assert_int_eq(write_to(&r, 2, 1000), 0);
    ck_assert_int_eq(next_wc(r.cq).status, IBV_WC_RETRY_EXC_ERR);
    connect_both(&r); /* at the former place: fault_rig.h names number 0 */
    ck_assert_int_eq(write_to(&r, 3, 1000), 0);
    ck_assert_int_eq(next_wc(r.cq).status, IBV_WC_RETRY_EXC_ERR);
    rig_close(&r);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(more_objects_than_an_rdma_cgroup_allows_are_refused_and_room_comes_back)                     \
    X(the_same_seed_gives_the_same_faults_and_another_one_others)                                  \
    X(faults_come_at_their_rate_and_are_counted)                                                   \
    X(what_is_behind_an_injected_error_flushes_in_order_and_is_not_executed)                       \
    X(every_opcode_can_be_made_to_fail_without_being_executed)                                     \
    X(an_error_of_the_device_keeps_its_own_status)                                                 \
    X(what_is_sent_with_a_p_key_of_a_former_place_is_lost)                                         \
    X(a_refused_post_leaves_nothing_posted)                                                        \
    X(a_control_operation_can_fail_and_then_has_done_nothing)                                      \
    X(what_a_device_does_not_destroy_is_there_still)                                               \
    X(a_device_can_be_made_one_that_keeps_no_deadlines)                                            \
    X(datagrams_are_lost_while_their_sender_sees_success)                                          \
    X(packets_of_every_former_life_come_late)                                                      \
    X(only_datagrams_are_lost)                                                                     \
    X(a_target_that_is_drained_holds_up_nothing_but_what_it_needs)                                 \
    X(where_a_device_hangs_nothing_is_over_before_it_goes_on)

KEDGE_CHECK_MAIN("fault", TESTS)
