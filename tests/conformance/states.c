/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pair states: allowed moves with the attributes that verbs wants, and what is refused. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static const enum fab_qp_type types[] = {FAB_QP_RC, FAB_QP_UD, FAB_QP_DCI};
static const uint32_t transport_of[] = {FAB_RC, FAB_UD, FAB_DC};
enum { TYPES = sizeof types / sizeof types[0] };

/* The mask and attributes of the move to a state, from the one before it. */
static int attr_of(const struct fab_qp *qp, enum ibv_qp_state to, struct ibv_qp_attr *attr)
{
    switch (to) {
    case IBV_QPS_INIT:
        return attr_init(qp, ALL_ACCESS, attr);
    case IBV_QPS_RTR:
        return attr_rtr(qp, qp->pd->fab->caps.gid, qp->qpn, NULL, attr);
    default:
        return attr_rts(qp, NULL, attr);
    }
}

static enum ibv_qp_state before(enum ibv_qp_state state)
{
    return state == IBV_QPS_INIT  ? IBV_QPS_RESET
           : state == IBV_QPS_RTR ? IBV_QPS_INIT
                                  : IBV_QPS_RTR;
}

static void bring_own(struct fab_qp *qp, enum ibv_qp_state state)
{
    bring_to(qp, state, qp->pd->fab->caps.gid, qp->qpn, NULL);
}

struct one {
    struct node n;
    struct fab_qp *qp;
};

static bool one_open(struct one *o, int i, const char *test)
{
    if (conf_lacks(transport_of[i], test))
        return false;
    node_open(&o->n);
    if (!conf_has(o->n.fab, transport_of[i], test)) {
        node_close(&o->n);
        return false;
    }
    o->qp = make_qp(&o->n, types[i], NULL);
    return true;
}

static void one_close(struct one *o)
{
    ck_assert_int_eq(free_qp(o->qp), 0);
    node_close(&o->n);
}

START_TEST(a_new_queue_pair_is_in_reset)
{
    struct one o;
    if (!one_open(&o, _i, __func__))
        return;
    ck_assert_int_eq(state_of(o.qp), IBV_QPS_RESET);
    ck_assert_int_eq(o.qp->type, types[_i]);
    one_close(&o);
}
END_TEST

START_TEST(it_goes_from_reset_to_rts_and_back)
{
    struct one o;
    if (!one_open(&o, _i, __func__))
        return;
    for (int round = 0; round < 3; round++) {
        bring_own(o.qp, IBV_QPS_RTS);
        ck_assert_int_eq(state_of(o.qp), IBV_QPS_RTS);
        ck_assert_int_eq(modify_state(o.qp, IBV_QPS_ERR), 0);
        ck_assert_int_eq(state_of(o.qp), IBV_QPS_ERR);
    }
    one_close(&o);
}
END_TEST

START_TEST(a_move_that_lacks_an_attribute_is_refused)
{
    static const enum ibv_qp_state to[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    struct one o;
    if (!one_open(&o, _i, __func__))
        return;
    for (int t = 0; t < 3; t++) {
        struct ibv_qp_attr attr;
        bring_own(o.qp, before(to[t]));
        int mask = attr_of(o.qp, to[t], &attr);
        for (int bit = 1; bit <= mask; bit <<= 1) {
            if (!(mask & bit) || bit == IBV_QP_STATE)
                continue;
            ck_assert_msg(modify(o.qp, &attr, mask & ~bit) == -EINVAL,
                          "the move to %d passes without attribute %#x", (int)to[t], bit);
            ck_assert_int_eq(state_of(o.qp), before(to[t]));
        }
        ck_assert_int_eq(modify(o.qp, &attr, mask), 0);
    }
    one_close(&o);
}
END_TEST

START_TEST(a_move_with_an_attribute_of_another_type_or_state_is_refused)
{
    struct one o;
    struct ibv_qp_attr attr;
    if (!one_open(&o, _i, __func__))
        return;
    int mask = attr_init(o.qp, ALL_ACCESS, &attr);
    ck_assert_int_eq(modify(o.qp, &attr, mask | IBV_QP_TIMEOUT), -EINVAL);
    ck_assert_int_eq(modify(o.qp, &attr, mask | IBV_QP_DEST_QPN), -EINVAL);
    ck_assert_int_eq(
        modify(o.qp, &attr, mask | (types[_i] == FAB_QP_UD ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)),
        -EINVAL);
    ck_assert_int_eq(state_of(o.qp), IBV_QPS_RESET);
    one_close(&o);
}
END_TEST

START_TEST(a_move_that_leaves_out_a_state_is_refused)
{
    static const struct {
        enum ibv_qp_state from, to;
    } bad[] = {
        {IBV_QPS_RESET, IBV_QPS_RTR}, {IBV_QPS_RESET, IBV_QPS_RTS}, {IBV_QPS_INIT, IBV_QPS_RTS},
        {IBV_QPS_RTR, IBV_QPS_INIT},  {IBV_QPS_RTS, IBV_QPS_INIT},  {IBV_QPS_RTS, IBV_QPS_RTR},
        {IBV_QPS_ERR, IBV_QPS_INIT},  {IBV_QPS_ERR, IBV_QPS_RTR},   {IBV_QPS_ERR, IBV_QPS_RTS}};
    struct one o;
    if (!one_open(&o, _i, __func__))
        return;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ibv_qp_attr attr;
        bring_own(o.qp, bad[i].from == IBV_QPS_ERR ? IBV_QPS_RTS : bad[i].from);
        if (bad[i].from == IBV_QPS_ERR)
            ck_assert_int_eq(modify_state(o.qp, IBV_QPS_ERR), 0);
        int mask = attr_of(o.qp, bad[i].to, &attr);
        ck_assert_msg(modify(o.qp, &attr, mask) == -EINVAL, "from %d to %d passes",
                      (int)bad[i].from, (int)bad[i].to);
        ck_assert_int_eq(state_of(o.qp), bad[i].from);
    }
    one_close(&o);
}
END_TEST

START_TEST(every_state_but_reset_moves_to_err_and_every_state_to_reset)
{
    static const enum ibv_qp_state from[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    struct one o;
    if (!one_open(&o, _i, __func__))
        return;
    for (int i = 0; i < 3; i++) {
        bring_own(o.qp, from[i]);
        ck_assert_int_eq(modify_state(o.qp, IBV_QPS_ERR), 0);
        ck_assert_int_eq(state_of(o.qp), IBV_QPS_ERR);
        ck_assert_int_eq(modify_state(o.qp, IBV_QPS_RESET), 0);
        bring_own(o.qp, from[i]);
        ck_assert_int_eq(modify_state(o.qp, IBV_QPS_RESET), 0);
        ck_assert_int_eq(state_of(o.qp), IBV_QPS_RESET);
    }
    one_close(&o);
}
END_TEST

START_TEST(a_port_that_is_not_there_is_refused)
{
    struct one o;
    struct ibv_qp_attr attr;
    if (!one_open(&o, _i, __func__))
        return;
    int mask = attr_init(o.qp, ALL_ACCESS, &attr);
    attr.port_num = 200;
    ck_assert_int_eq(modify(o.qp, &attr, mask), -EINVAL);
    ck_assert_int_eq(state_of(o.qp), IBV_QPS_RESET);
    one_close(&o);
}
END_TEST

START_TEST(sending_before_rts_is_refused)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR};
    struct one o;
    if (!one_open(&o, _i, __func__))
        return;
    struct fab_ah *ah = make_ah(o.n.pd, o.n.fab->caps.gid);
    struct ibv_sge sge = sge_of(&o.n, 0, 8);
    struct fab_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .ah = ah, .dest_qpn = o.qp->qpn};
    struct fab_wr *bad = NULL;
    for (int i = 0; i < 3; i++) {
        bring_own(o.qp, states[i]);
        ck_assert_int_eq(fab_post_send(o.qp, &wr, &bad), -EINVAL);
        ck_assert_ptr_eq(bad, &wr);
    }
    ck_assert_int_eq(free_ah(ah), 0);
    one_close(&o);
}
END_TEST

START_TEST(receives_posted_in_init_serve_after_rts)
{
    struct pair p;
    if (!nodes_open(&p, FAB_RC, __func__))
        return;
    struct fab_qp *from = make_qp(&p.a, FAB_QP_RC, NULL);
    struct fab_qp *to = make_qp(&p.b, FAB_QP_RC, NULL);
    struct ibv_sge out = sge_of(&p.a, 0, 8), in = sge_of(&p.b, 64, 8);
    struct fab_wr wr = {
        .sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct fab_wr *bad;
    struct ibv_qp_attr attr;
    bring_to(to, IBV_QPS_INIT, NULL, 0, NULL);
    post_recv(to, 5, &in, 1);
    int mask = attr_rtr(to, p.a.fab->caps.gid, from->qpn, NULL, &attr);
    ck_assert_int_eq(modify(to, &attr, mask), 0);
    /* A queue pair in RTR serves already. */
    bring_to(from, IBV_QPS_RTS, p.b.fab->caps.gid, to->qpn, NULL);
    memcpy(p.a.bytes, "anchored", 8);
    ck_assert_int_eq(fab_post_send(from, &wr, &bad), 0);
    expect_wc(p.a.cq, 0, IBV_WC_SUCCESS);
    expect_wc(p.b.cq, 5, IBV_WC_SUCCESS);
    ck_assert_mem_eq(p.b.bytes + 64, "anchored", 8);
    ck_assert_int_eq(free_qp(from), 0);
    ck_assert_int_eq(free_qp(to), 0);
    nodes_close(&p);
}
END_TEST

START_TEST(a_move_to_err_flushes_what_is_queued_and_what_is_posted_later)
{
    struct pair p;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    for (uint64_t i = 0; i < 3; i++)
        post_recv(p.l.qp, 100 + i, &sge, 1);
    ck_assert_int_eq(modify_state(p.l.qp, IBV_QPS_ERR), 0);
    for (uint64_t i = 0; i < 3; i++)
        expect_wc(p.a.cq, 100 + i, IBV_WC_WR_FLUSH_ERR);
    struct fab_wr wr = make_wr(&p.l, 7, IBV_WR_RDMA_WRITE, &sge, 0);
    p.a.bytes[0] = 1;
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_WR_FLUSH_ERR);
    wr.send_flags = 0; /* an error completes unsignalled ones too */
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_WR_FLUSH_ERR);
    post_recv(p.l.qp, 8, &sge, 1);
    expect_wc(p.a.cq, 8, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(p.b.bytes[0], 0);
    pair_close(&p);
}
END_TEST

START_TEST(a_move_to_reset_drops_what_is_queued_without_completions)
{
    struct pair p;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    struct ibv_sge in = sge_of(&p.b, 64, 8), out = sge_of(&p.a, 0, 8);
    for (uint64_t i = 0; i < 3; i++)
        post_recv(p.l.peer, 100 + i, &in, 1);
    link_repair(&p.l, NULL);
    expect_silence(p.b.cq);
    in.addr += 64;
    post_recv(p.l.peer, 200, &in, 1);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, &out, 0);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    expect_wc(p.b.cq, 200, IBV_WC_SUCCESS);
    pair_close(&p);
}
END_TEST

/* Whoever uses the queue pair again must not take them for those of its new requests. */
START_TEST(a_move_to_reset_forgets_completions_that_were_not_polled)
{
    struct pair p;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    struct fab_qp *from = make_qp(&p.a, FAB_QP_RC, NULL);
    struct fab_qp *to = make_qp(&p.b, FAB_QP_RC, NULL);
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0), *bad;
    bring_to(to, IBV_QPS_RTS, p.a.fab->caps.gid, from->qpn, NULL);
    bring_to(from, IBV_QPS_RTS, p.b.fab->caps.gid, to->qpn, NULL);
    for (int destroy = 0; destroy < 2; destroy++) {
        wr.wr_id = 1;
        ck_assert_int_eq(link_post(&p.l, &wr), 0);
        wr.wr_id = 2; /* another queue pair's, in the same CQ, stays */
        ck_assert_int_eq(fab_post_send(from, &wr, &bad), 0);
        pause_us(50000);
        if (destroy) {
            ck_assert_int_eq(free_qp(p.l.qp), 0);
            p.l.qp = make_qp(&p.a, FAB_QP_RC, NULL);
        }
        link_repair(&p.l, NULL);
        expect_wc(p.a.cq, 2, IBV_WC_SUCCESS);
        expect_silence(p.a.cq);
        wr.wr_id = 3;
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    }
    ck_assert_int_eq(free_qp(from), 0);
    ck_assert_int_eq(free_qp(to), 0);
    pair_close(&p);
}
END_TEST

START_TEST(a_move_within_rts_changes_what_peers_may_do)
{
    struct pair p;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr read = make_wr(&p.l, 1, IBV_WR_RDMA_READ, &sge, 0);
    struct fab_wr write = make_wr(&p.l, 2, IBV_WR_RDMA_WRITE, &sge, 0);
    ck_assert_int_eq(do_one(&p.l, &write), IBV_WC_SUCCESS);
    ck_assert_int_eq(modify(p.l.peer, &attr, IBV_QP_ACCESS_FLAGS), 0);
    ck_assert_int_eq(do_one(&p.l, &read), IBV_WC_SUCCESS);
    enum ibv_wc_status status = do_one(&p.l, &write);
    ck_assert(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR);
    pair_close(&p);
}
END_TEST

START_TEST(a_peer_that_is_not_ready_to_receive_keeps_silent)
{
    const struct rc_options quick = {.timeout = 8, .retry_cnt = 2};
    struct pair p;
    if (!pair_open(&p, FAB_RC, &quick, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0);
    bring_to(p.l.peer, IBV_QPS_INIT, NULL, 0, NULL);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(state_of(p.l.qp), IBV_QPS_ERR);
    pair_close(&p);
}
END_TEST

START_TEST(a_peer_that_is_connected_to_somebody_else_keeps_silent)
{
    const struct rc_options quick = {.timeout = 8, .retry_cnt = 2};
    struct pair p;
    if (!pair_open(&p, FAB_RC, &quick, NULL, __func__))
        return;
    struct fab_qp *other = make_qp(&p.a, FAB_QP_RC, NULL);
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0), *bad;
    bring_to(other, IBV_QPS_RTS, p.b.fab->caps.gid, p.l.peer->qpn, &quick);
    p.a.bytes[0] = 1;
    ck_assert_int_eq(fab_post_send(other, &wr, &bad), 0);
    expect_wc(p.a.cq, 1, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_eq(p.b.bytes[0], 0);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(free_qp(other), 0);
    pair_close(&p);
}
END_TEST

void add_states(Suite *suite)
{
    TCase *t = conf_case(suite, "states");
    tcase_add_loop_test(t, a_new_queue_pair_is_in_reset, 0, TYPES);
    tcase_add_loop_test(t, it_goes_from_reset_to_rts_and_back, 0, TYPES);
    tcase_add_loop_test(t, a_move_that_lacks_an_attribute_is_refused, 0, TYPES);
    tcase_add_loop_test(t, a_move_with_an_attribute_of_another_type_or_state_is_refused, 0, TYPES);
    tcase_add_loop_test(t, a_move_that_leaves_out_a_state_is_refused, 0, TYPES);
    tcase_add_loop_test(t, every_state_but_reset_moves_to_err_and_every_state_to_reset, 0, TYPES);
    tcase_add_loop_test(t, a_port_that_is_not_there_is_refused, 0, TYPES);
    tcase_add_loop_test(t, sending_before_rts_is_refused, 0, TYPES);
    tcase_add_test(t, receives_posted_in_init_serve_after_rts);
    tcase_add_test(t, a_move_to_err_flushes_what_is_queued_and_what_is_posted_later);
    tcase_add_test(t, a_move_to_reset_drops_what_is_queued_without_completions);
    tcase_add_test(t, a_move_to_reset_forgets_completions_that_were_not_polled);
    tcase_add_test(t, a_move_within_rts_changes_what_peers_may_do);
    tcase_add_test(t, a_peer_that_is_not_ready_to_receive_keeps_silent);
    tcase_add_test(t, a_peer_that_is_connected_to_somebody_else_keeps_silent);
}
