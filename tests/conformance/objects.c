/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: what is busy cannot be freed, what is open cannot be closed, limits, control. */
#include <errno.h>
#include <string.h>

#include "harness.h"

START_TEST(a_protection_domain_in_use_is_busy)
{
    struct node n;
    node_open(&n);
    struct fab_pd *pd = make_pd(n.fab);
    struct fab_mr *mr = make_mr(pd, &n.mem, 0, 64, ALL_ACCESS);
    ck_assert_int_eq(free_pd(pd), -EBUSY);
    ck_assert_int_eq(free_mr(mr), 0);
    struct fab_srq *srq = make_srq(pd, 4);
    ck_assert_int_eq(free_pd(pd), -EBUSY);
    ck_assert_int_eq(free_srq(srq), 0);
    struct fab_ah *ah = make_ah(pd, n.fab->caps.gid);
    ck_assert_int_eq(free_pd(pd), -EBUSY);
    ck_assert_int_eq(free_ah(ah), 0);
    if (conf_has(n.fab, FAB_RC, __func__)) {
        const struct qp_options o = {.pd = pd};
        struct fab_qp *qp = make_qp(&n, FAB_QP_RC, &o);
        ck_assert_int_eq(free_pd(pd), -EBUSY);
        ck_assert_int_eq(free_qp(qp), 0);
    }
    ck_assert_int_eq(free_pd(pd), 0);
    node_close(&n);
}
END_TEST

START_TEST(queues_and_channels_in_use_are_busy)
{
    struct node n;
    node_open(&n);
    struct fab_chan *chan = make_chan(n.fab);
    struct fab_cq *send_cq = make_cq(n.fab, 64, chan), *recv_cq = make_cq(n.fab, 64, NULL);
    ck_assert_int_eq(free_chan(chan), -EBUSY);
    if (conf_has(n.fab, FAB_RC, __func__)) {
        struct fab_srq *srq = make_srq(n.pd, 4);
        const struct qp_options o = {.send_cq = send_cq, .recv_cq = recv_cq, .srq = srq};
        struct fab_qp *qp = make_qp(&n, FAB_QP_RC, &o);
        ck_assert_int_eq(free_cq(send_cq), -EBUSY);
        ck_assert_int_eq(free_cq(recv_cq), -EBUSY);
        ck_assert_int_eq(free_srq(srq), -EBUSY);
        ck_assert_int_eq(free_qp(qp), 0);
        ck_assert_int_eq(free_srq(srq), 0);
    }
    ck_assert_int_eq(free_cq(send_cq), 0);
    ck_assert_int_eq(free_cq(recv_cq), 0);
    ck_assert_int_eq(free_chan(chan), 0);
    node_close(&n);
}
END_TEST

START_TEST(what_a_dc_target_uses_is_busy)
{
    struct node n;
    node_open(&n);
    if (conf_has(n.fab, FAB_DC, __func__)) {
        struct fab_srq *srq = make_srq(n.pd, 4);
        struct fab_dct *dct = make_dct(&n, srq, 1);
        ck_assert_int_eq(free_srq(srq), -EBUSY);
        ck_assert_int_eq(free_cq(n.cq), -EBUSY);
        ck_assert_int_eq(free_pd(n.pd), -EBUSY);
        ck_assert_int_eq(free_dct(dct), 0);
        ck_assert_int_eq(free_srq(srq), 0);
    }
    node_close(&n);
}
END_TEST

START_TEST(a_device_with_objects_left_stays_open_and_works)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    ck_assert_int_eq(fab_close(p.a.fab), -EBUSY);
    ck_assert_int_eq(fab_close(p.b.fab), -EBUSY);
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0);
    p.a.bytes[0] = 1;
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    ck_assert_uint_eq(p.b.bytes[0], 1);
    pair_close(&p);
}
END_TEST

static void count_done(struct fab_ctl *ctl)
{
    int *n = ctl->user;
    ck_assert_int_eq(ctl->status, 0);
    ++*n;
}

START_TEST(control_operations_complete_by_callback_and_signal_when_they_are_due)
{
    enum { N = 20 };
    struct node n;
    struct fab_ctl ctl[N];
    int done = 0, ran = 0;
    node_open(&n);
    while (fab_run(n.fab) > 0)
        ;
    for (int i = 0; i < N; i++) {
        ctl[i] = (struct fab_ctl){.kind = FAB_ALLOC_PD, .done = count_done, .user = &done};
        fab_submit(n.fab, &ctl[i]);
    }
    ck_assert_int_eq(done, 0); /* only run() calls back */
    uint64_t deadline = now_ms() + 20000;
    while (done < N) {
        ck_assert(fd_is_readable(fab_ctl_fd(n.fab), 20000));
        ran += fab_run(n.fab);
        ck_assert(now_ms() < deadline);
    }
    ck_assert_int_eq(ran, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(free_pd(ctl[i].pd.x), 0);
    node_close(&n);
}
END_TEST

struct chain {
    struct fab_ctl ctl;
    struct fab *fab;
    int left;
};

static void submit_next(struct fab_ctl *ctl)
{
    struct chain *c = ctl->user;
    ck_assert_int_eq(ctl->status, 0);
    if (c->left-- == 0)
        return;
    c->ctl.kind = c->ctl.kind == FAB_ALLOC_PD ? FAB_FREE_PD : FAB_ALLOC_PD;
    fab_submit(c->fab, &c->ctl);
}

START_TEST(a_callback_may_submit_again)
{
    struct node n;
    node_open(&n);
    struct chain c = {.fab = n.fab, .left = 9}; /* five PDs made, five freed */
    uint64_t deadline = now_ms() + 20000;
    c.ctl = (struct fab_ctl){.kind = FAB_ALLOC_PD, .done = submit_next, .user = &c};
    fab_submit(n.fab, &c.ctl);
    while (c.left >= 0) {
        ck_assert(fd_is_readable(fab_ctl_fd(n.fab), 20000));
        (void)fab_run(n.fab);
        ck_assert(now_ms() < deadline);
    }
    node_close(&n);
}
END_TEST

START_TEST(what_is_beyond_the_devices_limits_is_refused)
{
    struct node n;
    node_open(&n);
    const struct fab_caps *caps = &n.fab->caps;
    struct fab_ctl base = {
        .kind = FAB_CREATE_QP,
        .qp = {.pd = n.pd,
               .type = caps->transports & FAB_RC ? FAB_QP_RC : FAB_QP_UD,
               .send_cq = n.cq,
               .recv_cq = n.cq,
               .cap = {.send_wr = 1, .recv_wr = 1, .send_sge = 1, .recv_sge = 1}}};
    struct fab_ctl ctl = base;
    ck_assert_int_eq(fab_call(n.fab, &ctl), 0);
    ck_assert_int_eq(free_qp(ctl.qp.x), 0);
    for (int i = 0; i < 5; i++) {
        ctl = base;
        *(i == 0   ? &ctl.qp.cap.send_wr
          : i == 1 ? &ctl.qp.cap.recv_wr
          : i == 2 ? &ctl.qp.cap.send_sge
          : i == 3 ? &ctl.qp.cap.recv_sge
                   : &ctl.qp.cap.inline_bytes) = UINT32_MAX / 2;
        ck_assert_int_lt(fab_call(n.fab, &ctl), 0);
    }
    ctl = (struct fab_ctl){.kind = FAB_CREATE_CQ, .cq = {.cqe = UINT32_MAX / 2}};
    ck_assert_int_lt(fab_call(n.fab, &ctl), 0);
    ctl = (struct fab_ctl){.kind = FAB_CREATE_SRQ,
                           .srq = {.pd = n.pd, .max_wr = UINT32_MAX / 2, .max_sge = 1}};
    ck_assert_int_lt(fab_call(n.fab, &ctl), 0);
    node_close(&n);
}
END_TEST

START_TEST(objects_come_and_go_without_end)
{
    struct pair p;
    if (!nodes_open(&p, conf_reliable[_i], __func__))
        return;
    for (int i = 0; i < 300; i++) {
        struct ibv_sge sge = sge_of(&p.a, 0, 8);
        link_open(&p.l, conf_reliable[_i], &p.a, &p.b, NULL, NULL);
        struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_READ, &sge, 0);
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
        link_close(&p.l);
    }
    nodes_close(&p);
}
END_TEST

START_TEST(each_open_device_is_a_node_of_its_own)
{
    static const uint8_t zero[16];
    struct node a, b;
    node_open(&a);
    node_open(&b);
    ck_assert_ptr_ne(a.fab, b.fab);
    ck_assert(memcmp(a.fab->caps.gid, zero, 16) != 0);
    ck_assert_uint_ne(a.fab->caps.transports, 0);
    node_close(&a);
    node_close(&b);
}
END_TEST

START_TEST(the_longest_that_a_request_can_last_is_known)
{
    struct node a;
    node_open(&a);
    const struct fab_caps *caps = &a.fab->caps;
    const uint64_t stretch = caps->timeout_stretch;
    ck_assert_uint_ge(stretch, 1);
    ck_assert_uint_le(stretch, 4); /* IBTA 9.7.6.1.3 */
    ck_assert_uint_eq(fab_bound_ns(caps, 0, 7), UINT64_MAX);
    ck_assert_uint_eq(fab_bound_ns(caps, 1, 0), 2 * fab_timeout_ns(caps, 1));
    ck_assert_uint_ge(fab_timeout_ns(caps, 1), stretch * 8192);
    ck_assert_uint_ge(fab_timeout_ns(caps, 1), caps->timeout_least_ns);
    ck_assert_uint_eq(fab_bound_ns(caps, 14, 7), stretch * 2 * (4096ull << 14) * 8);
    ck_assert_uint_gt(fab_bound_ns(caps, 31, 7), fab_bound_ns(caps, 30, 7));
    node_close(&a);
}
END_TEST

void add_objects(Suite *suite)
{
    TCase *t = conf_case(suite, "objects");
    tcase_add_test(t, a_protection_domain_in_use_is_busy);
    tcase_add_test(t, queues_and_channels_in_use_are_busy);
    tcase_add_test(t, what_a_dc_target_uses_is_busy);
    tcase_add_loop_test(t, a_device_with_objects_left_stays_open_and_works, 0, 2);
    tcase_add_test(t, control_operations_complete_by_callback_and_signal_when_they_are_due);
    tcase_add_test(t, a_callback_may_submit_again);
    tcase_add_test(t, what_is_beyond_the_devices_limits_is_refused);
    tcase_add_loop_test(t, objects_come_and_go_without_end, 0, 2);
    tcase_add_test(t, each_open_device_is_a_node_of_its_own);
    tcase_add_test(t, the_longest_that_a_request_can_last_is_known);
}
