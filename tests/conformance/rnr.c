/* SPDX-License-Identifier: Apache-2.0 */
/* Receivers that are not ready. */
#include <string.h>
#include <unistd.h>

#include "harness.h"

START_TEST(a_send_without_a_receive_fails_when_its_tries_are_used_up)
{
    const struct rc_options few = {.rnr_retry = 3, .min_rnr_timer = 5};
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], &few, NULL, __func__))
        return;
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, NULL, 0), behind = wr;
    behind.wr_id = 2;
    wr.next = &behind;
    ck_assert_int_eq(link_post(&p.l, &wr), 0);
    expect_wc(p.a.cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    expect_wc(p.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(state_of(p.l.qp), IBV_QPS_ERR);
    if (p.l.peer != NULL)
        ck_assert_int_eq(state_of(p.l.peer), IBV_QPS_RTS);
    pair_close(&p);
}
END_TEST

START_TEST(without_a_retry_it_fails_at_once)
{
    const struct rc_options none = {.rnr_retry = 1};
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], &none, NULL, __func__))
        return;
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, NULL, 0);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_RNR_RETRY_EXC_ERR);
    pair_close(&p);
}
END_TEST

START_TEST(with_seven_retries_a_late_receive_is_waited_for)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge in = sge_of(&p.b, 0, 8), out = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, &out, 0);
    memcpy(p.a.bytes, "patience", 8);
    ck_assert_int_eq(link_post(&p.l, &wr), 0);
    for (int i = 0; i < 3; i++)
        expect_silence(p.a.cq);
    link_post_recv(&p.l, 2, &in, 1);
    expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.b.cq, 2, IBV_WC_SUCCESS);
    ck_assert_mem_eq(p.b.bytes, "patience", 8);
    pair_close(&p);
}
END_TEST

/* Which count what the other side does not answer: it does, that it is not ready. */
START_TEST(a_receiver_that_is_late_does_not_use_up_the_other_retries)
{
    const struct rc_options quick = {.timeout = 10, .retry_cnt = 4}; /* 3 times 4 to 17 ms */
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], &quick, NULL, __func__))
        return;
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, NULL, 0);
    ck_assert_int_eq(link_post(&p.l, &wr), 0);
    pause_us(1000000);
    link_post_recv(&p.l, 2, NULL, 0);
    expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.b.cq, 2, IBV_WC_SUCCESS);
    pair_close(&p);
}
END_TEST

START_TEST(what_is_posted_behind_a_waiting_send_keeps_its_place)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge in = sge_of(&p.b, 0, 8), out = sge_of(&p.a, 0, 8), next = sge_of(&p.a, 8, 8);
    struct fab_wr send = make_wr(&p.l, 1, IBV_WR_SEND, &out, 0);
    struct fab_wr write = make_wr(&p.l, 2, IBV_WR_RDMA_WRITE, &next, 0);
    memcpy(p.a.bytes, "message.written.", 16);
    ck_assert_int_eq(link_post(&p.l, &send), 0);
    ck_assert_int_eq(link_post(&p.l, &write), 0);
    expect_silence(p.a.cq);
    ck_assert_uint_eq(p.b.bytes[0], 0);
    link_post_recv(&p.l, 3, &in, 1);
    expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.a.cq, 2, IBV_WC_SUCCESS);
    expect_wc(p.b.cq, 3, IBV_WC_SUCCESS);
    ck_assert_mem_eq(p.b.bytes, "written.", 8); /* after the message, over it */
    pair_close(&p);
}
END_TEST

START_TEST(many_sends_wait_and_arrive_in_order)
{
    enum { N = 24 };
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    for (uint64_t i = 0; i < N; i++) {
        struct ibv_sge out = sge_of(&p.a, i, 1);
        struct fab_wr wr = make_wr(&p.l, i, IBV_WR_SEND, &out, 0);
        p.a.bytes[i] = (uint8_t)(i + 1);
        ck_assert_int_eq(link_post(&p.l, &wr), 0);
    }
    for (uint64_t i = 0; i < N; i++) {
        struct ibv_sge in = sge_of(&p.b, i, 1);
        link_post_recv(&p.l, 100 + i, &in, 1);
        expect_wc(p.a.cq, i, IBV_WC_SUCCESS);
        expect_wc(p.b.cq, 100 + i, IBV_WC_SUCCESS);
        ck_assert_uint_eq(p.b.bytes[i], i + 1);
    }
    pair_close(&p);
}
END_TEST

START_TEST(a_write_with_immediate_waits_for_a_receive_too)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge out = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE_WITH_IMM, &out, 4096);
    ck_assert_int_eq(link_post(&p.l, &wr), 0);
    expect_silence(p.a.cq);
    link_post_recv(&p.l, 2, NULL, 0);
    expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(expect_wc(p.b.cq, 2, IBV_WC_SUCCESS).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    pair_close(&p);
}
END_TEST

void add_rnr(Suite *suite)
{
    TCase *t = conf_case(suite, "rnr");
    tcase_add_loop_test(t, a_send_without_a_receive_fails_when_its_tries_are_used_up, 0, 2);
    tcase_add_loop_test(t, without_a_retry_it_fails_at_once, 0, 2);
    tcase_add_loop_test(t, with_seven_retries_a_late_receive_is_waited_for, 0, 2);
    tcase_add_loop_test(t, a_receiver_that_is_late_does_not_use_up_the_other_retries, 0, 2);
    tcase_add_loop_test(t, what_is_posted_behind_a_waiting_send_keeps_its_place, 0, 2);
    tcase_add_loop_test(t, many_sends_wait_and_arrive_in_order, 0, 2);
    tcase_add_loop_test(t, a_write_with_immediate_waits_for_a_receive_too, 0, 2);
}
