/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams: addressing, the 40 bytes in front, keys, and what is lost without an error. */
#include <arpa/inet.h>
#include <string.h>

#include "fabric/grh.h"
#include "harness.h"

enum { QKEY = 0x1234, GRH = 40 }; /* the key that attr_init() sets */

/* A sender on a, a receiver on b. */
struct mail {
    struct pair p;
    struct fab_qp *from, *to;
    struct fab_ah *ah;
};

static bool mail_open(struct mail *m, const char *test)
{
    if (!nodes_open(&m->p, FAB_UD, test))
        return false;
    m->from = make_qp(&m->p.a, FAB_QP_UD, NULL);
    m->to = make_qp(&m->p.b, FAB_QP_UD, NULL);
    m->ah = make_ah(m->p.a.pd, m->p.b.fab->caps.gid);
    bring_to(m->from, IBV_QPS_RTS, NULL, 0, NULL);
    bring_to(m->to, IBV_QPS_RTS, NULL, 0, NULL);
    return true;
}

static void mail_close(struct mail *m)
{
    ck_assert_int_eq(free_qp(m->from), 0);
    ck_assert_int_eq(free_qp(m->to), 0);
    ck_assert_int_eq(free_ah(m->ah), 0);
    nodes_close(&m->p);
}

static struct fab_wr datagram(const struct mail *m, uint64_t wr_id, struct ibv_sge *sge)
{
    return (struct fab_wr){.wr_id = wr_id,
                           .sg_list = sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_SEND,
                           .send_flags = IBV_SEND_SIGNALED,
                           .ah = m->ah,
                           .dest_qpn = m->to->qpn,
                           .qkey = QKEY};
}

static void send_one(struct fab_qp *qp, struct fab_wr *wr)
{
    struct fab_wr *bad;
    ck_assert_int_eq(fab_post_send(qp, wr, &bad), 0);
    expect_wc(qp->send_cq, wr->wr_id, IBV_WC_SUCCESS);
}

START_TEST(a_datagram_arrives_behind_forty_bytes)
{
    struct mail m;
    if (!mail_open(&m, __func__))
        return;
    struct node *a = &m.p.a, *b = &m.p.b;
    struct ibv_sge in = sge_of(b, 0, 1024), out = sge_of(a, 0, 300);
    struct fab_wr wr = datagram(&m, 1, &out);
    for (int i = 0; i < 300; i++)
        a->bytes[i] = (uint8_t)i;
    post_recv(m.to, 2, &in, 1);
    send_one(m.from, &wr);
    struct ibv_wc wc = expect_wc(b->cq, 2, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
    ck_assert_uint_eq(wc.byte_len, 300 + GRH);
    ck_assert_uint_eq(wc.src_qp, m.from->qpn);
    ck_assert_uint_eq(wc.qp_num, m.to->qpn);
    ck_assert_mem_eq(b->bytes + GRH, a->bytes, 300);
    if (b->fab->caps.is_ethernet)
        ck_assert(wc.wc_flags & IBV_WC_GRH);
    if (wc.wc_flags & IBV_WC_GRH) /* handshakes go by it (agent/connect/datagrams.c) */
        ck_assert(fab_grh_is(b->bytes, a->fab->caps.gid, b->fab->caps.gid));
    mail_close(&m);
}
END_TEST

START_TEST(a_receiver_can_answer_whom_the_completion_names)
{
    struct mail m;
    if (!mail_open(&m, __func__))
        return;
    struct ibv_sge in = sge_of(&m.p.b, 0, 256), out = sge_of(&m.p.a, 0, 8);
    struct fab_wr wr = datagram(&m, 1, &out);
    post_recv(m.to, 2, &in, 1);
    send_one(m.from, &wr);
    struct ibv_wc wc = expect_wc(m.p.b.cq, 2, IBV_WC_SUCCESS);

    struct fab_ah *back = make_ah(m.p.b.pd, m.p.a.fab->caps.gid);
    struct ibv_sge in2 = sge_of(&m.p.a, 1024, 256), out2 = sge_of(&m.p.b, GRH, 8);
    struct fab_wr answer = datagram(&m, 3, &out2);
    answer.ah = back;
    answer.dest_qpn = wc.src_qp;
    post_recv(m.from, 4, &in2, 1);
    send_one(m.to, &answer);
    ck_assert_uint_eq(expect_wc(m.p.a.cq, 4, IBV_WC_SUCCESS).src_qp, m.to->qpn);
    ck_assert_int_eq(free_ah(back), 0);
    mail_close(&m);
}
END_TEST

START_TEST(immediates_and_several_sges_travel_in_datagrams)
{
    struct mail m;
    if (!mail_open(&m, __func__))
        return;
    struct ibv_sge in[2] = {sge_of(&m.p.b, 0, 50), sge_of(&m.p.b, 1000, 500)};
    struct ibv_sge out[2] = {sge_of(&m.p.a, 0, 20), sge_of(&m.p.a, 100, 5)};
    struct fab_wr wr = datagram(&m, 1, out);
    wr.num_sge = 2;
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = htonl(0xabcd);
    memset(m.p.a.bytes, 'a', 20);
    memset(m.p.a.bytes + 100, 'b', 5);
    if (m.from->cap.send_sge >= 2 && m.to->cap.recv_sge >= 2) {
        post_recv(m.to, 2, in, 2);
        send_one(m.from, &wr);
        struct ibv_wc wc = expect_wc(m.p.b.cq, 2, IBV_WC_SUCCESS);
        ck_assert(wc.wc_flags & IBV_WC_WITH_IMM);
        ck_assert_uint_eq(ntohl(wc.imm_data), 0xabcd);
        ck_assert_uint_eq(wc.byte_len, GRH + 25);
        ck_assert_mem_eq(m.p.b.bytes + GRH, "aaaaaaaaaa", 10);
        ck_assert_mem_eq(m.p.b.bytes + 1000, "aaaaaaaaaabbbbb", 15);
    }
    mail_close(&m);
}
END_TEST

START_TEST(the_largest_datagram_arrives_and_a_larger_one_is_an_error)
{
    struct mail m;
    if (!mail_open(&m, __func__))
        return;
    uint32_t most = m.p.a.fab->caps.ud_payload;
    struct ibv_sge in = sge_of(&m.p.b, 0, most + 1 + GRH), out = sge_of(&m.p.a, 0, most);
    struct fab_wr wr = datagram(&m, 1, &out), *bad = NULL;
    ck_assert_uint_gt(most, 0);
    post_recv(m.to, 2, &in, 1);
    post_recv(m.to, 3, &in, 1);
    send_one(m.from, &wr);
    ck_assert_uint_eq(expect_wc(m.p.b.cq, 2, IBV_WC_SUCCESS).byte_len, most + GRH);
    out.length = most + 1;
    int status = fab_post_send(m.from, &wr, &bad);
    if (status == 0) {
        struct ibv_wc wc;
        wait_for(m.p.a.cq, 1, &wc);
        ck_assert_int_eq(wc.status, IBV_WC_LOC_LEN_ERR);
    }
    expect_silence(m.p.b.cq);
    mail_close(&m);
}
END_TEST

/* What is sent first is lost, and the sender does not know; what follows arrives. */
static void expect_loss(struct mail *m, struct fab_wr *lost)
{
    struct ibv_sge in = sge_of(&m->p.b, 0, 256), out = sge_of(&m->p.a, 64, 4);
    struct fab_wr good = datagram(m, 9, &out);
    memcpy(m->p.a.bytes + 64, "good", 4);
    post_recv(m->to, 2, &in, 1);
    send_one(m->from, lost);
    expect_silence(m->p.b.cq);
    send_one(m->from, &good);
    expect_wc(m->p.b.cq, 2, IBV_WC_SUCCESS);
    ck_assert_mem_eq(m->p.b.bytes + GRH, "good", 4);
    ck_assert_int_eq(state_of(m->from), IBV_QPS_RTS);
    ck_assert_int_eq(state_of(m->to), IBV_QPS_RTS);
}

START_TEST(a_datagram_with_another_key_is_dropped)
{
    struct mail m;
    if (!mail_open(&m, __func__))
        return;
    struct ibv_sge out = sge_of(&m.p.a, 0, 4);
    struct fab_wr wr = datagram(&m, 1, &out);
    wr.qkey = QKEY + 1;
    expect_loss(&m, &wr);
    mail_close(&m);
}
END_TEST

START_TEST(a_datagram_to_nobody_is_dropped)
{
    struct mail m;
    if (!mail_open(&m, __func__))
        return;
    struct ibv_sge out = sge_of(&m.p.a, 0, 4);
    struct fab_wr wr = datagram(&m, 1, &out);
    wr.dest_qpn = 0xfffff0;
    expect_loss(&m, &wr);
    mail_close(&m);
}
END_TEST

START_TEST(a_datagram_to_a_queue_pair_of_another_type_is_dropped)
{
    struct mail m;
    if (!mail_open(&m, __func__))
        return;
    if (conf_has(m.p.b.fab, FAB_RC, __func__)) {
        struct fab_qp *rc = make_qp(&m.p.b, FAB_QP_RC, NULL);
        struct ibv_sge out = sge_of(&m.p.a, 0, 4), in = sge_of(&m.p.b, 512, 256);
        struct fab_wr wr = datagram(&m, 1, &out);
        bring_to(rc, IBV_QPS_RTS, m.p.a.fab->caps.gid, m.from->qpn, NULL);
        post_recv(rc, 77, &in, 1);
        wr.dest_qpn = rc->qpn;
        expect_loss(&m, &wr);
        ck_assert_int_eq(free_qp(rc), 0);
    }
    mail_close(&m);
}
END_TEST

START_TEST(a_datagram_without_a_receive_is_dropped)
{
    struct mail m;
    if (!mail_open(&m, __func__))
        return;
    struct ibv_sge in = sge_of(&m.p.b, 0, 256), out = sge_of(&m.p.a, 0, 4);
    struct fab_wr wr = datagram(&m, 1, &out);
    send_one(m.from, &wr);
    expect_silence(m.p.b.cq); /* it is not kept for later */
    post_recv(m.to, 2, &in, 1);
    expect_silence(m.p.b.cq);
    send_one(m.from, &wr);
    expect_wc(m.p.b.cq, 2, IBV_WC_SUCCESS);
    mail_close(&m);
}
END_TEST

START_TEST(one_queue_pair_sends_to_several_and_hears_from_several)
{
    enum { N = 4 };
    struct mail m;
    if (!mail_open(&m, __func__))
        return;
    struct fab_qp *others[N];
    for (uint64_t i = 0; i < N; i++) {
        struct ibv_sge in = sge_of(&m.p.b, 4096 + i * 256, 256);
        others[i] = make_qp(&m.p.b, FAB_QP_UD, NULL);
        bring_to(others[i], IBV_QPS_RTS, NULL, 0, NULL);
        post_recv(others[i], i, &in, 1);
    }
    for (uint64_t i = 0; i < N; i++) {
        struct ibv_sge out = sge_of(&m.p.a, 0, 4);
        struct fab_wr wr = datagram(&m, 10 + i, &out);
        wr.dest_qpn = others[i]->qpn;
        send_one(m.from, &wr);
        ck_assert_uint_eq(expect_wc(m.p.b.cq, i, IBV_WC_SUCCESS).qp_num, others[i]->qpn);
    }
    struct fab_ah *self = make_ah(m.p.b.pd, m.p.b.fab->caps.gid);
    for (uint64_t i = 0; i < N; i++) { /* within one node */
        struct ibv_sge in = sge_of(&m.p.b, 0, 256), out = sge_of(&m.p.b, 8192, 4);
        struct fab_wr wr = datagram(&m, 20 + i, &out), *bad;
        wr.ah = self;
        wr.send_flags = 0;
        post_recv(m.to, i, &in, 1);
        ck_assert_int_eq(fab_post_send(others[i], &wr, &bad), 0);
        ck_assert_uint_eq(expect_wc(m.p.b.cq, i, IBV_WC_SUCCESS).src_qp, others[i]->qpn);
    }
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(free_qp(others[i]), 0);
    ck_assert_int_eq(free_ah(self), 0);
    mail_close(&m);
}
END_TEST

START_TEST(a_datagram_queue_pair_does_nothing_one_sided)
{
    static const enum ibv_wr_opcode opcodes[] = {
        IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct mail m;
    if (!mail_open(&m, __func__))
        return;
    for (int i = 0; i < 5; i++) {
        struct ibv_sge out = sge_of(&m.p.a, 0, 8);
        struct fab_wr wr = datagram(&m, 1, &out), *bad = NULL;
        wr.opcode = opcodes[i];
        ck_assert_int_ne(fab_post_send(m.from, &wr, &bad), 0);
        ck_assert_ptr_eq(bad, &wr);
    }
    expect_silence(m.p.a.cq);
    mail_close(&m);
}
END_TEST

void add_ud(Suite *suite)
{
    TCase *t = conf_case(suite, "ud");
    tcase_add_test(t, a_datagram_arrives_behind_forty_bytes);
    tcase_add_test(t, a_receiver_can_answer_whom_the_completion_names);
    tcase_add_test(t, immediates_and_several_sges_travel_in_datagrams);
    tcase_add_test(t, the_largest_datagram_arrives_and_a_larger_one_is_an_error);
    tcase_add_test(t, a_datagram_with_another_key_is_dropped);
    tcase_add_test(t, a_datagram_to_nobody_is_dropped);
    tcase_add_test(t, a_datagram_to_a_queue_pair_of_another_type_is_dropped);
    tcase_add_test(t, a_datagram_without_a_receive_is_dropped);
    tcase_add_test(t, one_queue_pair_sends_to_several_and_hears_from_several);
    tcase_add_test(t, a_datagram_queue_pair_does_nothing_one_sided);
}
