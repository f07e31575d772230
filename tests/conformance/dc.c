/* SPDX-License-Identifier: Apache-2.0 */
/* What is DC's own: keys and numbers of targets, one initiator for many, targets that survive. */
#include <string.h>

#include "harness.h"

static const struct rc_options quick = {.timeout = 8, .retry_cnt = 2};

START_TEST(a_wrong_key_finds_nobody)
{
    struct pair p;
    if (!pair_open(&p, FAB_DC, &quick, NULL, __func__))
        return;
    const uint64_t wrong[] = {0, p.l.dct->dc_key ^ 1, p.l.dct->dc_key ^ (1ull << 63),
                              (uint32_t)p.l.dct->dc_key};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct ibv_sge sge = sge_of(&p.a, 0, 8);
        struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0);
        memset(p.a.bytes, 1, 8);
        wr.dc_key = wrong[i];
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_RETRY_EXC_ERR);
        ck_assert_int_eq(state_of(p.l.qp), IBV_QPS_ERR);
        ck_assert_uint_eq(p.b.bytes[0], 0);
        link_repair(&p.l, &quick);
    }
    pair_close(&p);
}
END_TEST

START_TEST(a_number_that_no_target_has_finds_nobody)
{
    struct pair p;
    if (!pair_open(&p, FAB_DC, &quick, NULL, __func__))
        return;
    const uint32_t wrong[] = {p.l.dct->dctn ^ 1, p.l.dct->dctn ^ 0x800000, 0xfffff0, p.l.qp->qpn};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct ibv_sge sge = sge_of(&p.a, 0, 8);
        struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_READ, &sge, 0);
        wr.dest_qpn = wrong[i];
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_RETRY_EXC_ERR);
        link_repair(&p.l, &quick);
    }
    pair_close(&p);
}
END_TEST

START_TEST(a_target_that_was_destroyed_is_gone)
{
    struct pair p;
    if (!pair_open(&p, FAB_DC, &quick, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_READ, &sge, 0);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    uint32_t old = p.l.dct->dctn;
    ck_assert_int_eq(free_dct(p.l.dct), 0);
    p.l.dct = make_dct(&p.b, p.l.srq, 5);
    ck_assert_uint_ne(p.l.dct->dctn, old);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_RETRY_EXC_ERR);
    link_repair(&p.l, &quick);
    link_address(&p.l, &wr);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    pair_close(&p);
}
END_TEST

START_TEST(one_initiator_serves_several_targets_in_order)
{
    enum { TARGETS = 4, N = 24 };
    struct pair p;
    struct node c;
    if (!pair_open(&p, FAB_DC, NULL, NULL, __func__))
        return;
    node_open(&c);
    struct fab_srq *srq = make_srq(c.pd, 4);
    struct fab_dct *dct[TARGETS];
    struct fab_ah *ah[2] = {p.l.ah, make_ah(p.a.pd, c.fab->caps.gid)};
    struct node *node[2] = {&p.b, &c};
    for (int i = 0; i < TARGETS; i++)
        dct[i] = make_dct(node[i % 2], i % 2 == 0 ? p.l.srq : srq, 0x100u + (unsigned)i);
    struct ibv_sge sge[N];
    struct fab_wr wr[N];
    for (int i = 0; i < N; i++) {
        const struct node *to = node[i % TARGETS % 2];
        p.a.bytes[i] = (uint8_t)(i + 1);
        sge[i] = sge_of(&p.a, (uint64_t)i, 1);
        wr[i] = make_wr(&p.l, (uint64_t)i, IBV_WR_RDMA_WRITE, &sge[i], 0);
        wr[i].ah = ah[i % TARGETS % 2];
        wr[i].dest_qpn = dct[i % TARGETS]->dctn;
        wr[i].dc_key = dct[i % TARGETS]->dc_key;
        wr[i].key.rkey = to->mr->rkey;
        wr[i].remote_addr = to->mr->addr + (uint64_t)(i % TARGETS);
        wr[i].next = i + 1 < N ? &wr[i + 1] : NULL;
    }
    ck_assert_int_eq(link_post(&p.l, wr), 0);
    for (uint64_t i = 0; i < N; i++)
        expect_wc(p.a.cq, i, IBV_WC_SUCCESS);
    for (int i = 0; i < TARGETS; i++) /* the last one to each */
        ck_assert_int_eq(node[i % 2]->bytes[i], N - TARGETS + i + 1);
    for (int i = 0; i < TARGETS; i++)
        ck_assert_int_eq(free_dct(dct[i]), 0);
    ck_assert_int_eq(free_ah(ah[1]), 0);
    ck_assert_int_eq(free_srq(srq), 0);
    pair_close(&p);
    node_close(&c);
}
END_TEST

START_TEST(a_target_is_not_broken_by_one_initiators_access_error)
{
    struct pair p;
    if (!pair_open(&p, FAB_DC, NULL, NULL, __func__))
        return;
    struct fab_qp *other = make_qp(&p.a, FAB_QP_DCI, NULL);
    bring_to(other, IBV_QPS_RTS, NULL, 0, NULL);
    for (int round = 0; round < 3; round++) {
        struct ibv_sge sge = sge_of(&p.a, 0, 8);
        struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0), *bad;
        wr.key.rkey ^= 0x5a5a00;
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_REM_ACCESS_ERR);
        wr.key.rkey = p.b.mr->rkey;
        ck_assert_int_eq(fab_post_send(other, &wr, &bad), 0);
        expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
        link_repair(&p.l, NULL);
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    }
    expect_silence(p.b.cq);
    ck_assert_int_eq(free_qp(other), 0);
    pair_close(&p);
}
END_TEST

START_TEST(a_silent_target_holds_up_what_is_behind_it)
{
    struct pair p;
    if (!pair_open(&p, FAB_DC, &quick, NULL, __func__))
        return;
    if (!p.a.fab->caps.dci_streams) {
        struct ibv_sge sge = sge_of(&p.a, 0, 8);
        struct fab_wr lost = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0);
        struct fab_wr good = make_wr(&p.l, 2, IBV_WR_RDMA_WRITE, &sge, 0);
        p.a.bytes[0] = 1;
        lost.dc_key++;
        lost.next = &good;
        ck_assert_int_eq(link_post(&p.l, &lost), 0);
        expect_wc(p.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
        expect_wc(p.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
        ck_assert_uint_eq(p.b.bytes[0], 0);
    }
    pair_close(&p);
}
END_TEST

START_TEST(messages_of_several_initiators_share_the_targets_receives)
{
    enum { N = 3 };
    struct pair p;
    if (!pair_open(&p, FAB_DC, NULL, NULL, __func__))
        return;
    struct fab_qp *qp[N];
    for (int i = 0; i < N; i++) {
        qp[i] = make_qp(&p.a, FAB_QP_DCI, NULL);
        bring_to(qp[i], IBV_QPS_RTS, NULL, 0, NULL);
    }
    for (uint64_t i = 0; i < 12; i++) {
        struct ibv_sge in = sge_of(&p.b, i * 8, 8), out = sge_of(&p.a, 0, 8);
        struct fab_wr wr = make_wr(&p.l, i, IBV_WR_SEND, &out, 0), *bad;
        memcpy(p.a.bytes, &i, 8);
        link_post_recv(&p.l, 50 + i, &in, 1);
        ck_assert_int_eq(fab_post_send(qp[i % N], &wr, &bad), 0);
        expect_wc(p.a.cq, i, IBV_WC_SUCCESS);
        ck_assert_uint_eq(expect_wc(p.b.cq, 50 + i, IBV_WC_SUCCESS).byte_len, 8);
        ck_assert_mem_eq(p.b.bytes + i * 8, &i, 8);
    }
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(free_qp(qp[i]), 0);
    pair_close(&p);
}
END_TEST

START_TEST(an_initiator_receives_nothing)
{
    struct pair p;
    struct fab_recv_wr wr = {.wr_id = 1}, *bad = NULL;
    if (!pair_open(&p, FAB_DC, NULL, NULL, __func__))
        return;
    ck_assert_int_ne(fab_post_recv(p.l.qp, &wr, &bad), 0);
    ck_assert_ptr_eq(bad, &wr);
    pair_close(&p);
}
END_TEST

void add_dc(Suite *suite)
{
    TCase *t = conf_case(suite, "dc");
    tcase_add_test(t, a_wrong_key_finds_nobody);
    tcase_add_test(t, a_number_that_no_target_has_finds_nobody);
    tcase_add_test(t, a_target_that_was_destroyed_is_gone);
    tcase_add_test(t, one_initiator_serves_several_targets_in_order);
    tcase_add_test(t, a_target_is_not_broken_by_one_initiators_access_error);
    tcase_add_test(t, a_silent_target_holds_up_what_is_behind_it);
    tcase_add_test(t, messages_of_several_initiators_share_the_targets_receives);
    tcase_add_test(t, an_initiator_receives_nothing);
}
