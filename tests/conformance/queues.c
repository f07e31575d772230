/* SPDX-License-Identifier: Apache-2.0 */
/* How full queues may get: send slots and who gives them back, receive queues, SRQs, CQs. */
#include <errno.h>
#include <string.h>

#include "harness.h"

/* Posts unlinked WRITEs until the queue is full; flags for each. Returns how many went in. */
static uint32_t fill_up(struct link *l, unsigned flags)
{
    struct ibv_sge sge = sge_of(l->a, 0, 8);
    uint32_t n = 0;
    for (; n < 100000; n++) {
        struct fab_wr wr = make_wr(l, n, IBV_WR_RDMA_WRITE, &sge, 0), *bad = NULL;
        wr.send_flags = flags;
        int status = fab_post_send(l->qp, &wr, &bad);
        if (status == 0)
            continue;
        ck_assert_int_eq(status, -ENOMEM);
        ck_assert_ptr_eq(bad, &wr);
        break;
    }
    return n;
}

START_TEST(a_send_queue_holds_what_it_says_until_completions_are_polled)
{
    struct pair p;
    struct ibv_wc wc;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    uint32_t room = p.l.qp->cap.send_wr;
    ck_assert_uint_ge(room, 32);
    ck_assert_uint_eq(fill_up(&p.l, IBV_SEND_SIGNALED), room);
    for (uint32_t i = 0; i < room; i++) {
        wait_for(p.a.cq, 1, &wc);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        if (i == 4)
            ck_assert_uint_eq(fill_up(&p.l, IBV_SEND_SIGNALED), 5);
    }
    for (uint64_t i = 0; i < 5; i++)
        expect_wc(p.a.cq, i, IBV_WC_SUCCESS);
    ck_assert_uint_eq(fill_up(&p.l, IBV_SEND_SIGNALED), room);
    pair_close(&p);
}
END_TEST

START_TEST(unsignalled_requests_hold_their_slots_until_a_later_signalled_one_is_polled)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    uint32_t room = p.l.qp->cap.send_wr;
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < room; i++) {
            struct fab_wr wr = make_wr(&p.l, i, IBV_WR_RDMA_WRITE, &sge, 0);
            /* Signalled in the middle: it frees itself and what was before it, no more. */
            wr.send_flags = i == room / 2 || i == room - 1 ? IBV_SEND_SIGNALED : 0;
            ck_assert_int_eq(link_post(&p.l, &wr), 0);
        }
        struct fab_wr more = make_wr(&p.l, 99, IBV_WR_RDMA_WRITE, &sge, 0);
        ck_assert_int_eq(link_post(&p.l, &more), -ENOMEM);
        expect_wc(p.a.cq, room / 2, IBV_WC_SUCCESS);
        ck_assert_uint_eq(fill_up(&p.l, 0), room / 2 + 1);
        expect_wc(p.a.cq, room - 1, IBV_WC_SUCCESS);
        more.next = NULL;
        ck_assert_int_eq(do_one(&p.l, &more), IBV_WC_SUCCESS);
    }
    pair_close(&p);
}
END_TEST

START_TEST(a_queue_full_of_unsignalled_requests_stays_full)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    ck_assert_uint_eq(fill_up(&p.l, 0), p.l.qp->cap.send_wr);
    expect_silence(p.a.cq);
    ck_assert_uint_eq(fill_up(&p.l, IBV_SEND_SIGNALED), 0);
    link_repair(&p.l, NULL); /* the way out */
    ck_assert_uint_eq(fill_up(&p.l, IBV_SEND_SIGNALED), p.l.qp->cap.send_wr);
    pair_close(&p);
}
END_TEST

START_TEST(a_list_that_does_not_fit_is_posted_as_far_as_it_does)
{
    enum { N = 200 };
    struct pair p;
    static struct fab_wr wr[N];
    static struct ibv_sge sge[N];
    struct fab_wr *bad = NULL;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    uint32_t room = p.l.qp->cap.send_wr;
    if (room < N) {
        for (uint32_t i = 0; i < N; i++) {
            p.a.bytes[i] = (uint8_t)(i + 1);
            sge[i] = sge_of(&p.a, i, 1);
            wr[i] = make_wr(&p.l, i, IBV_WR_RDMA_WRITE, &sge[i], i);
            wr[i].next = i + 1 < N ? &wr[i + 1] : NULL;
        }
        ck_assert_int_eq(fab_post_send(p.l.qp, wr, &bad), -ENOMEM);
        ck_assert_ptr_eq(bad, &wr[room]);
        for (uint32_t i = 0; i < room; i++)
            expect_wc(p.a.cq, i, IBV_WC_SUCCESS);
        expect_silence(p.a.cq);
        ck_assert_mem_eq(p.b.bytes, p.a.bytes, room);
        ck_assert_uint_eq(p.b.bytes[room], 0);
    }
    pair_close(&p);
}
END_TEST

START_TEST(a_malformed_request_is_refused_and_those_before_it_are_posted)
{
    struct pair p;
    struct fab_wr *bad = NULL;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 8), many[64];
    struct fab_wr wr[3];
    for (int i = 0; i < 64; i++)
        many[i] = sge;
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < 3; i++) {
            wr[i] = make_wr(&p.l, (uint64_t)i, IBV_WR_RDMA_WRITE, &sge, (uint64_t)i * 8);
            wr[i].next = i < 2 ? &wr[i + 1] : NULL;
        }
        memset(p.b.bytes, 0, 24);
        p.a.bytes[0] = 1;
        switch (kind) {
        case 0:
            wr[1].sg_list = many;
            wr[1].num_sge = (int)p.l.qp->cap.send_sge + 1;
            break;
        case 1:
            wr[1].opcode = (enum ibv_wr_opcode)77;
            break;
        case 2: /* an atomic is 8 bytes */
            wr[1].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
            wr[1].num_sge = 0;
            break;
        default: /* more than inline holds */
            wr[1].send_flags |= IBV_SEND_INLINE;
            sge.length = p.l.qp->cap.inline_bytes + 1;
            wr[0].num_sge = wr[2].num_sge = 0;
            break;
        }
        ck_assert_int_eq(fab_post_send(p.l.qp, wr, &bad), -EINVAL);
        ck_assert_ptr_eq(bad, &wr[1]);
        ck_assert_ptr_eq(wr[0].next, &wr[1]);
        expect_wc(p.a.cq, 0, IBV_WC_SUCCESS);
        expect_silence(p.a.cq);
        ck_assert_uint_eq(p.b.bytes[0], kind < 3);
        ck_assert_uint_eq(p.b.bytes[8], 0);
        ck_assert_uint_eq(p.b.bytes[16], 0);
    }
    ck_assert_int_eq(state_of(p.l.qp), IBV_QPS_RTS);
    pair_close(&p);
}
END_TEST

START_TEST(a_full_receive_queue_refuses_one_more)
{
    struct node n;
    node_open(&n);
    if (conf_has(n.fab, FAB_RC, __func__)) {
        struct fab_qp *qp = make_qp(&n, FAB_QP_RC, NULL);
        struct fab_srq *srq = make_srq(n.pd, 10);
        struct ibv_sge sge = sge_of(&n, 0, 8);
        struct fab_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
        bring_to(qp, IBV_QPS_INIT, NULL, 0, NULL);
        for (uint32_t i = 0; i < qp->cap.recv_wr; i++)
            ck_assert_int_eq(fab_post_recv(qp, &wr, &bad), 0);
        ck_assert_int_eq(fab_post_recv(qp, &wr, &bad), -ENOMEM);
        ck_assert_ptr_eq(bad, &wr);
        for (uint32_t i = 0; i < srq->max_wr; i++)
            ck_assert_int_eq(fab_post_srq_recv(srq, &wr, &bad), 0);
        bad = NULL;
        ck_assert_int_eq(fab_post_srq_recv(srq, &wr, &bad), -ENOMEM);
        ck_assert_ptr_eq(bad, &wr);
        ck_assert_int_eq(free_srq(srq), 0);
        ck_assert_int_eq(free_qp(qp), 0);
    }
    node_close(&n);
}
END_TEST

START_TEST(queue_pairs_share_a_receive_queue_in_the_order_of_arrival)
{
    struct pair p;
    if (!nodes_open(&p, FAB_RC, __func__))
        return;
    struct fab_srq *srq = make_srq(p.b.pd, 16);
    const struct qp_options shared = {.srq = srq};
    struct fab_qp *from[2], *to[2];
    for (int i = 0; i < 2; i++) {
        from[i] = make_qp(&p.a, FAB_QP_RC, NULL);
        to[i] = make_qp(&p.b, FAB_QP_RC, &shared);
        bring_to(to[i], IBV_QPS_RTS, p.a.fab->caps.gid, from[i]->qpn, NULL);
        bring_to(from[i], IBV_QPS_RTS, p.b.fab->caps.gid, to[i]->qpn, NULL);
    }
    for (uint64_t i = 0; i < 8; i++) {
        struct ibv_sge in = sge_of(&p.b, i * 8, 8);
        struct fab_recv_wr wr = {.wr_id = i, .sg_list = &in, .num_sge = 1}, *bad;
        ck_assert_int_eq(fab_post_srq_recv(srq, &wr, &bad), 0);
    }
    for (uint64_t i = 0; i < 8; i++) {
        struct ibv_sge out = sge_of(&p.a, 0, 8);
        struct fab_wr wr = {.wr_id = i, .sg_list = &out, .num_sge = 1}, *bad;
        wr.opcode = IBV_WR_SEND;
        wr.send_flags = IBV_SEND_SIGNALED;
        memset(p.a.bytes, 'a' + (int)i, 8);
        ck_assert_int_eq(fab_post_send(from[i % 3 % 2], &wr, &bad), 0);
        expect_wc(p.a.cq, i, IBV_WC_SUCCESS);
        struct ibv_wc wc = expect_wc(p.b.cq, i, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.qp_num, to[i % 3 % 2]->qpn);
        ck_assert_uint_eq(p.b.bytes[i * 8], 'a' + i);
    }
    struct fab_recv_wr own = {.wr_id = 1}, *bad_recv;
    ck_assert_int_eq(fab_post_recv(to[0], &own, &bad_recv), -EINVAL);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(free_qp(from[i]), 0);
        ck_assert_int_eq(free_qp(to[i]), 0);
    }
    ck_assert_int_eq(free_srq(srq), 0);
    nodes_close(&p);
}
END_TEST

START_TEST(a_completion_queue_holds_exactly_what_it_says)
{
    struct pair p;
    struct ibv_wc wc;
    if (!nodes_open(&p, conf_reliable[_i], __func__))
        return;
    struct fab_cq *cq = make_cq(p.a.fab, 8, NULL);
    const struct qp_options options = {.send_cq = cq, .recv_cq = cq, .send_wr = cq->cqe + 1};
    link_open(&p.l, conf_reliable[_i], &p.a, &p.b, NULL, &options);
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    for (int round = 0; round < 5; round++) { /* the ring turns */
        for (uint32_t i = 0; i < cq->cqe; i++) {
            struct fab_wr wr = make_wr(&p.l, i, IBV_WR_RDMA_WRITE, &sge, 0);
            ck_assert_int_eq(link_post(&p.l, &wr), 0);
        }
        for (uint32_t i = 0; i < cq->cqe; i++)
            expect_wc(cq, i, IBV_WC_SUCCESS);
    }
    /* One more than it holds, of which none is taken. */
    for (uint32_t i = 0; i < cq->cqe + 1; i++) {
        struct fab_wr wr = make_wr(&p.l, i, IBV_WR_RDMA_WRITE, &sge, 0);
        ck_assert_int_eq(link_post(&p.l, &wr), 0);
    }
    struct fab_event event = wait_for_event(p.a.fab, IBV_EVENT_CQ_ERR, cq);
    ck_assert_ptr_eq(event.cq, cq);
    int status;
    while ((status = fab_poll(cq, 1, &wc)) > 0)
        ;
    ck_assert_int_eq(status, -EIO);
    ck_assert_int_eq(fab_poll(cq, 1, &wc), -EIO); /* it is dead */
    link_close(&p.l);
    ck_assert_int_eq(free_cq(cq), 0);
    nodes_close(&p);
}
END_TEST

START_TEST(receives_can_overflow_a_completion_queue_too)
{
    /* A responder whose queue is dead may say nothing: the last send then ends when retries do. */
    const struct rc_options quick = {.timeout = 14, .retry_cnt = 3};
    struct pair p;
    struct ibv_wc wc;
    if (!nodes_open(&p, FAB_RC, __func__))
        return;
    struct fab_cq *cq = make_cq(p.b.fab, 4, NULL);
    const struct qp_options small = {.recv_cq = cq, .recv_wr = cq->cqe + 1};
    struct fab_qp *from = make_qp(&p.a, FAB_QP_RC, NULL);
    struct fab_qp *to = make_qp(&p.b, FAB_QP_RC, &small);
    bring_to(to, IBV_QPS_RTS, p.a.fab->caps.gid, from->qpn, NULL);
    bring_to(from, IBV_QPS_RTS, p.b.fab->caps.gid, to->qpn, &quick);
    for (uint32_t i = 0; i < cq->cqe + 1; i++)
        post_recv(to, i, NULL, 0);
    for (uint32_t i = 0; i < cq->cqe + 1; i++) {
        struct fab_wr wr = {.opcode = IBV_WR_SEND}, *bad;
        wr.send_flags = IBV_SEND_SIGNALED;
        if (fab_post_send(from, &wr, &bad) == 0)
            wait_for(p.a.cq, 1, &wc);
    }
    uint64_t deadline = now_ms() + 20000;
    int status = 0, got = 0;
    while (status != -EIO && now_ms() < deadline) {
        status = fab_poll(cq, 1, &wc);
        got += status > 0;
    }
    ck_assert_int_eq(status, -EIO);
    ck_assert_uint_le((unsigned)got, cq->cqe);
    ck_assert_ptr_eq(wait_for_event(p.b.fab, IBV_EVENT_CQ_ERR, NULL).cq, cq);
    ck_assert_int_eq(free_qp(from), 0);
    ck_assert_int_eq(free_qp(to), 0);
    ck_assert_int_eq(free_cq(cq), 0);
    nodes_close(&p);
}
END_TEST

START_TEST(an_empty_completion_queue_gives_nothing)
{
    struct node n;
    struct ibv_wc wc;
    node_open(&n);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(fab_poll(n.cq, 1, &wc), 0);
    node_close(&n);
}
END_TEST

void add_queues(Suite *suite)
{
    TCase *t = conf_case(suite, "queues");
    tcase_add_loop_test(t, a_send_queue_holds_what_it_says_until_completions_are_polled, 0, 2);
    tcase_add_loop_test(
        t, unsignalled_requests_hold_their_slots_until_a_later_signalled_one_is_polled, 0, 2);
    tcase_add_loop_test(t, a_queue_full_of_unsignalled_requests_stays_full, 0, 2);
    tcase_add_loop_test(t, a_list_that_does_not_fit_is_posted_as_far_as_it_does, 0, 2);
    tcase_add_loop_test(t, a_malformed_request_is_refused_and_those_before_it_are_posted, 0, 2);
    tcase_add_test(t, a_full_receive_queue_refuses_one_more);
    tcase_add_test(t, queue_pairs_share_a_receive_queue_in_the_order_of_arrival);
    tcase_add_loop_test(t, a_completion_queue_holds_exactly_what_it_says, 0, 2);
    tcase_add_test(t, receives_can_overflow_a_completion_queue_too);
    tcase_add_test(t, an_empty_completion_queue_gives_nothing);
}
