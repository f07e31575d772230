/* SPDX-License-Identifier: Apache-2.0 */
/* What an error does: statuses, what is flushed and in which order, both sides, events, repair. */
#include <string.h>
#include <unistd.h>

#include "harness.h"

/* A list of n WRITEs of the byte i + 1 to the offsets i, of which the one at `bad` has a key that
 * does not exist. */
static void post_with_a_bad_one(struct link *l, int n, int bad, unsigned flags)
{
    struct ibv_sge sge[16];
    struct fab_wr wr[16];
    for (int i = 0; i < n; i++) {
        l->a->bytes[i] = (uint8_t)(i + 1);
        sge[i] = sge_of(l->a, (uint64_t)i, 1);
        wr[i] = make_wr(l, (uint64_t)i, IBV_WR_RDMA_WRITE, &sge[i], (uint64_t)i);
        wr[i].send_flags = flags;
        wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
        if (i == bad)
            wr[i].key.rkey ^= 0x5a5a00;
    }
    ck_assert_int_eq(link_post(l, wr), 0);
}

START_TEST(a_refused_request_breaks_its_queue_pair_and_flushes_what_is_behind)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    post_with_a_bad_one(&p.l, 6, 2, IBV_SEND_SIGNALED);
    expect_wc(p.a.cq, 0, IBV_WC_SUCCESS);
    expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.a.cq, 2, IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(state_of(p.l.qp), IBV_QPS_ERR);
    for (uint64_t i = 3; i < 6; i++)
        ck_assert_uint_eq(expect_wc(p.a.cq, i, IBV_WC_WR_FLUSH_ERR).qp_num, p.l.qp->qpn);
    struct ibv_sge sge = sge_of(&p.a, 5, 1);
    struct fab_wr later = make_wr(&p.l, 9, IBV_WR_RDMA_WRITE, &sge, 9);
    ck_assert_int_eq(do_one(&p.l, &later), IBV_WC_WR_FLUSH_ERR);
    expect_silence(p.a.cq);
    ck_assert_mem_eq(p.b.bytes, "\1\2\0\0\0\0\0\0\0\0", 10);
    pair_close(&p);
}
END_TEST

START_TEST(errors_complete_unsignalled_requests_too)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    post_with_a_bad_one(&p.l, 5, 2, 0);
    expect_wc(p.a.cq, 2, IBV_WC_REM_ACCESS_ERR);
    expect_wc(p.a.cq, 3, IBV_WC_WR_FLUSH_ERR);
    expect_wc(p.a.cq, 4, IBV_WC_WR_FLUSH_ERR);
    expect_silence(p.a.cq);
    pair_close(&p);
}
END_TEST

START_TEST(flushed_requests_give_their_slots_back)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    post_with_a_bad_one(&p.l, 1, 0, IBV_SEND_SIGNALED);
    expect_wc(p.a.cq, 0, IBV_WC_REM_ACCESS_ERR);
    for (uint64_t i = 0; i < 3ull * p.l.qp->cap.send_wr; i++) {
        struct ibv_sge sge = sge_of(&p.a, 0, 1);
        struct fab_wr wr = make_wr(&p.l, i, IBV_WR_RDMA_READ, &sge, 0);
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_WR_FLUSH_ERR);
    }
    pair_close(&p);
}
END_TEST

START_TEST(an_access_error_breaks_the_responders_side_of_rc_with_an_event)
{
    struct pair p;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    struct ibv_sge in = sge_of(&p.b, 64, 8);
    for (uint64_t i = 0; i < 4; i++)
        link_post_recv(&p.l, 100 + i, &in, 1);
    post_with_a_bad_one(&p.l, 1, 0, IBV_SEND_SIGNALED);
    expect_wc(p.a.cq, 0, IBV_WC_REM_ACCESS_ERR);
    struct fab_event event = wait_for_event(p.b.fab, IBV_EVENT_QP_ACCESS_ERR, p.b.cq);
    ck_assert_ptr_eq(event.qp, p.l.peer);
    ck_assert_ptr_eq(event.qp->user, &p.b);
    ck_assert_int_eq(state_of(p.l.peer), IBV_QPS_ERR);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_uint_eq(expect_wc(p.b.cq, 100 + i, IBV_WC_WR_FLUSH_ERR).qp_num, p.l.peer->qpn);
    expect_silence(p.b.cq);
    pair_close(&p);
}
END_TEST

START_TEST(the_requests_of_a_broken_responder_are_flushed)
{
    struct pair p;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    /* b's SEND waits: a has no receive. Then a breaks b's side. */
    struct ibv_sge sge = sge_of(&p.b, 0, 8);
    struct fab_wr send = {.wr_id = 50, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct fab_wr next = send, *bad;
    next.wr_id = 51;
    send.next = &next;
    ck_assert_int_eq(fab_post_send(p.l.peer, &send, &bad), 0);
    post_with_a_bad_one(&p.l, 1, 0, IBV_SEND_SIGNALED);
    expect_wc(p.a.cq, 0, IBV_WC_REM_ACCESS_ERR);
    /* The first may have been tried and found nobody; what counts is that both end, in order. */
    struct ibv_wc wc[2];
    wait_for(p.b.cq, 2, wc);
    ck_assert_uint_eq(wc[0].wr_id, 50);
    ck_assert_int_ne(wc[0].status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc[1].wr_id, 51);
    ck_assert_int_eq(wc[1].status, IBV_WC_WR_FLUSH_ERR);
    pair_close(&p);
}
END_TEST

START_TEST(a_moved_to_err_queue_pair_raises_no_event)
{
    struct pair p;
    struct fab_event event;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    ck_assert_int_eq(modify_state(p.l.qp, IBV_QPS_ERR), 0);
    expect_silence(p.a.cq);
    while (fab_get_event(p.a.fab, &event) == 1)
        ck_assert_int_ne(event.type, IBV_EVENT_QP_ACCESS_ERR);
    pair_close(&p);
}
END_TEST

START_TEST(a_destroyed_queue_pair_has_no_events_left)
{
    struct pair p;
    struct fab_event event;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    post_with_a_bad_one(&p.l, 1, 0, IBV_SEND_SIGNALED);
    expect_wc(p.a.cq, 0, IBV_WC_REM_ACCESS_ERR);
    expect_silence(p.b.cq); /* its event is waiting by now */
    link_close(&p.l);
    while (fab_get_event(p.b.fab, &event) == 1)
        ck_assert_int_ne(event.type, IBV_EVENT_QP_ACCESS_ERR);
    nodes_close(&p);
}
END_TEST

START_TEST(a_local_error_leaves_the_other_side_whole)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0);
    sge.lkey ^= 0x5a5a00;
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(state_of(p.l.qp), IBV_QPS_ERR);
    expect_silence(p.b.cq);
    if (p.l.peer != NULL)
        ck_assert_int_eq(state_of(p.l.peer), IBV_QPS_RTS);
    pair_close(&p);
}
END_TEST

START_TEST(a_broken_link_works_again_after_repair)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    for (int round = 0; round < 4; round++) {
        struct ibv_sge in = sge_of(&p.b, 64, 8), out = sge_of(&p.a, 0, 1);
        post_with_a_bad_one(&p.l, 3, round % 3, IBV_SEND_SIGNALED);
        struct ibv_wc wc[3];
        wait_for(p.a.cq, 3, wc);
        if (p.l.peer != NULL)
            wait_for_err(p.l.peer, p.b.cq);
        link_repair(&p.l, NULL);
        ck_assert_int_eq(state_of(p.l.qp), IBV_QPS_RTS);
        struct fab_wr write = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &out, 20);
        struct fab_wr send = make_wr(&p.l, 2, IBV_WR_SEND, &out, 0);
        p.a.bytes[0] = (uint8_t)(0x80 + round);
        link_post_recv(&p.l, 7, &in, 1);
        ck_assert_int_eq(do_one(&p.l, &write), IBV_WC_SUCCESS);
        ck_assert_int_eq(do_one(&p.l, &send), IBV_WC_SUCCESS);
        expect_wc(p.b.cq, 7, IBV_WC_SUCCESS);
        ck_assert_uint_eq(p.b.bytes[20], 0x80u + (unsigned)round);
        ck_assert_uint_eq(p.b.bytes[64], 0x80u + (unsigned)round);
    }
    expect_silence(p.a.cq);
    expect_silence(p.b.cq);
    pair_close(&p);
}
END_TEST

START_TEST(a_message_longer_than_its_receive_is_an_error_on_both_sides)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge in = sge_of(&p.b, 64, 8), out = sge_of(&p.a, 0, 9);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, &out, 0);
    memset(p.a.bytes, 'x', 9);
    link_post_recv(&p.l, 2, &in, 1);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_REM_INV_REQ_ERR);
    ck_assert_int_eq(state_of(p.l.qp), IBV_QPS_ERR);
    if (p.l.peer != NULL) {
        expect_wc(p.b.cq, 2, IBV_WC_LOC_LEN_ERR);
        wait_for_err(p.l.peer, p.b.cq);
    }
    ck_assert_uint_eq(p.b.bytes[72], 0);
    pair_close(&p);
}
END_TEST

START_TEST(a_receive_with_a_bad_key_is_an_error_on_both_sides)
{
    struct pair p;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    struct ibv_sge in = sge_of(&p.b, 64, 8), out = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, &out, 0);
    in.lkey ^= 0x5a5a00;
    p.a.bytes[0] = 1;
    link_post_recv(&p.l, 2, &in, 1);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_REM_OP_ERR);
    expect_wc(p.b.cq, 2, IBV_WC_LOC_PROT_ERR);
    wait_for_err(p.l.peer, p.b.cq);
    ck_assert_uint_eq(p.b.bytes[64], 0);
    pair_close(&p);
}
END_TEST

START_TEST(a_peer_whose_queue_pair_is_gone_is_a_retry_error)
{
    const struct rc_options quick = {.timeout = 8, .retry_cnt = 2};
    struct pair p;
    if (!pair_open(&p, FAB_RC, &quick, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0), behind = wr;
    behind.wr_id = 2;
    behind.next = NULL;
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(free_qp(p.l.peer), 0);
    p.l.peer = NULL;
    wr.next = &behind;
    ck_assert_int_eq(link_post(&p.l, &wr), 0);
    expect_wc(p.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
    expect_wc(p.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(state_of(p.l.qp), IBV_QPS_ERR);
    pair_close(&p);
}
END_TEST

/* The first tries of a READ and of an atomic come too early, all of one queue pair. */
static void send_too_early(unsigned flags, const char *test)
{
    struct pair p;
    struct ibv_qp_attr attr;
    if (!pair_open(&p, FAB_RC, NULL, NULL, test))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 8), word = sge_of(&p.a, 8, 8);
    struct fab_wr read = make_wr(&p.l, 1, IBV_WR_RDMA_READ, &sge, 0);
    struct fab_wr add = make_atomic(&p.l, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, &word, 8, 3, 0);
    read.send_flags |= flags;
    add.send_flags |= flags;
    memcpy(p.b.bytes, "patience\4\0\0\0\0\0\0", 16);
    bring_to(p.l.peer, IBV_QPS_INIT, NULL, 0, NULL);
    read.next = &add;
    ck_assert_int_eq(link_post(&p.l, &read), 0);
    pause_us(1500000); /* more than a time-out, less than all of them */
    int mask = attr_rtr(p.l.peer, p.a.fab->caps.gid, p.l.qp->qpn, NULL, &attr);
    ck_assert_int_eq(modify(p.l.peer, &attr, mask), 0);
    expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.a.cq, 2, IBV_WC_SUCCESS);
    ck_assert_mem_eq(p.a.bytes, "patience\4\0\0\0\0\0\0", 16);
    ck_assert_int_eq(p.b.bytes[8], 7);
    pair_close(&p);
}

START_TEST(requests_are_sent_again_until_their_peer_is_ready)
{
    send_too_early(0, __func__);
}
END_TEST

START_TEST(fenced_requests_are_sent_again_until_their_peer_is_ready)
{
    send_too_early(IBV_SEND_FENCE, __func__);
}
END_TEST

START_TEST(a_queue_pair_with_requests_that_wait_can_be_destroyed)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, NULL, 0);
    ck_assert_int_eq(link_post(&p.l, &wr), 0); /* no receive */
    ck_assert_int_eq(free_qp(p.l.qp), 0);
    expect_silence(p.a.cq);
    p.l.qp = make_qp(&p.a, p.l.peer != NULL ? FAB_QP_RC : FAB_QP_DCI, NULL);
    link_repair(&p.l, NULL);
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr write = make_wr(&p.l, 2, IBV_WR_RDMA_WRITE, &sge, 0);
    ck_assert_int_eq(do_one(&p.l, &write), IBV_WC_SUCCESS);
    pair_close(&p);
}
END_TEST

void add_errors(Suite *suite)
{
    TCase *t = conf_case(suite, "errors");
    tcase_add_loop_test(t, a_refused_request_breaks_its_queue_pair_and_flushes_what_is_behind, 0,
                        2);
    tcase_add_loop_test(t, errors_complete_unsignalled_requests_too, 0, 2);
    tcase_add_loop_test(t, flushed_requests_give_their_slots_back, 0, 2);
    tcase_add_test(t, an_access_error_breaks_the_responders_side_of_rc_with_an_event);
    tcase_add_test(t, the_requests_of_a_broken_responder_are_flushed);
    tcase_add_test(t, a_moved_to_err_queue_pair_raises_no_event);
    tcase_add_test(t, a_destroyed_queue_pair_has_no_events_left);
    tcase_add_loop_test(t, a_local_error_leaves_the_other_side_whole, 0, 2);
    tcase_add_loop_test(t, a_broken_link_works_again_after_repair, 0, 2);
    tcase_add_loop_test(t, a_message_longer_than_its_receive_is_an_error_on_both_sides, 0, 2);
    tcase_add_test(t, a_receive_with_a_bad_key_is_an_error_on_both_sides);
    tcase_add_test(t, a_peer_whose_queue_pair_is_gone_is_a_retry_error);
    tcase_add_test(t, requests_are_sent_again_until_their_peer_is_ready);
    tcase_add_test(t, fenced_requests_are_sent_again_until_their_peer_is_ready);
    tcase_add_loop_test(t, a_queue_pair_with_requests_that_wait_can_be_destroyed, 0, 2);
}
