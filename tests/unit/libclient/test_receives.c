/* SPDX-License-Identifier: Apache-2.0 */
/* Receives and messages: what becomes of what the lane says. */
#include <stdlib.h>

#include "message_fixture.h"

static bool no_memory;

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes)
{
    return no_memory ? NULL : __real_calloc(n, bytes);
}

START_TEST(messages_come_with_what_was_posted_for_them_also_across_the_rings_end)
{
    struct fixture f;
    setup(&f);
    bind_port(&f);
    for (uint64_t i = 0; i < 3 * CQ_SLOTS; i++) {
        const uint64_t cookie = receive(&f, f.q, 100 + i, 64);
        const struct schema_cqe_sender from = sender_of(peer_gid, 77);
        struct schema_cqe c = received(f.q, cookie, (uint32_t)i);
        c.with_imm = i % 2;
        c.imm = i % 2 != 0 ? 0xabcdef01 : 0;
        put(&f, c, &from);
        const struct kedge_msg msg = pop_one(&f);
        ck_assert_uint_eq(msg.wc.wr_id, 100 + i);
        ck_assert_uint_eq(msg.wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(msg.wc.opcode, IBV_WC_RECV);
        ck_assert_uint_eq(msg.wc.byte_len, i);
        ck_assert_uint_eq(msg.wc.qp_num, kedge_vqp_num(f.q));
        ck_assert_uint_eq(msg.wc.wc_flags, i % 2 != 0 ? IBV_WC_WITH_IMM : 0);
        ck_assert_uint_eq(msg.wc.imm_data, i % 2 != 0 ? 0xabcdef01 : 0);
        ck_assert_uint_eq(msg.tenant, 9);
        ck_assert(all_was_taken(&f));
    }
    struct kedge_msg none;
    ck_assert_int_eq(kedge_pop_msgs(f.s, 1, &none), 0);
    ck_assert_int_eq(kedge_pop_msgs(f.s, -1, &none), -EINVAL);
    teardown(&f);
}
END_TEST

START_TEST(each_sender_has_one_queue_pair_that_goes_to_it_until_that_is_destroyed)
{
    struct fixture f;
    setup(&f);
    bind_port(&f);
    message(&f, f.q, receive(&f, f.q, 1, 64), 77);
    message(&f, f.q, receive(&f, f.q, 2, 64), 78);
    message(&f, f.q, receive(&f, f.q, 3, 64), 77);
    struct kedge_msg msg[3];
    ck_assert_int_eq(kedge_pop_msgs(f.s, 3, msg), 3);
    ck_assert_ptr_nonnull(msg[0].from);
    ck_assert_ptr_ne(msg[0].from, msg[1].from);
    ck_assert_ptr_eq(msg[0].from, msg[2].from);
    ck_assert_ptr_eq(kedge_vqp_find(f.s, kedge_vqp_num(msg[0].from)), msg[0].from);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = send_of(&sge, 1);
    ck_assert_int_eq(post(msg[1].from, &wr), 0);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->op, SCHEMA_OP_BIND);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->bind.peer_slot, 3);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 1)->send_to.kind, SCHEMA_SEND_TO_VQP);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 1)->send_to.to, 78);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 2)->op, SCHEMA_OP_SEND);
    take_all(&f);
    /* Destroyed, or sent elsewhere, it is the sender's no more. */
    const uint32_t old = kedge_vqp_num(msg[1].from);
    kedge_vqp_destroy(msg[1].from);
    take_all(&f);
    ck_assert_int_eq(kedge_connect_port(msg[0].from, other_gid, PORT), 0);
    message(&f, f.q, receive(&f, f.q, 4, 64), 78);
    ck_assert_uint_ne(kedge_vqp_num(pop_one(&f).from), old);
    message(&f, f.q, receive(&f, f.q, 5, 64), 77);
    ck_assert_ptr_ne(pop_one(&f).from, msg[0].from);
    teardown(&f);
}
END_TEST

START_TEST(a_message_is_there_also_where_no_queue_pair_can_be_made)
{
    struct fixture f;
    setup(&f);
    bind_port(&f);
    for (uint64_t sender = 1; sender <= MAX_VQPS; sender++) { /* one is the hearing one */
        message(&f, f.q, receive(&f, f.q, sender, 64), sender);
        const struct kedge_msg msg = pop_one(&f);
        ck_assert_uint_eq(msg.wc.wr_id, sender);
        ck_assert_int_eq(msg.from == NULL, sender == MAX_VQPS);
    }
    teardown(&f);
}
END_TEST

START_TEST(a_sender_that_the_host_does_not_know_is_asked_for_when_it_is_answered)
{
    struct fixture f;
    static const uint8_t stranger[16] = {0xfd, 99};
    const struct schema_cqe_sender from = sender_of(stranger, 77);
    setup(&f);
    bind_port(&f);
    put(&f, received(f.q, receive(&f, f.q, 1, 64), 8), &from);
    struct kedge_vqp *q = pop_one(&f).from;
    ck_assert_ptr_nonnull(q);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    ck_assert_int_eq(kedge_bind(q, PORT + 1), -EISCONN); /* it is for answers */
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = send_of(&sge, 1);
    f.a.reply = (struct schema_reply){.status = -ENOENT};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(post(q, &wr), -ENOENT);
    ck_assert_uint_eq(fake_agent_asked(&f.a)->op, SCHEMA_OP_CONNECT);
    ck_assert_mem_eq(f.a.asked.connect.gid, stranger, 16);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "no node has the GID"));
    f.a.reply = (struct schema_reply){.value = {6, 2}};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(post(q, &wr), 0);
    (void)fake_agent_asked(&f.a);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 3);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->bind.peer_slot, 6);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->bind.peer_gen, 2);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 1)->send_to.kind, SCHEMA_SEND_TO_VQP);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 1)->send_to.to, 77);
    ck_assert_int_eq(post(q, &wr), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 4);
    take_all(&f);
    put(&f, received(f.q, receive(&f, f.q, 2, 64), 8), &from);
    ck_assert_ptr_eq(pop_one(&f).from, q);
    teardown(&f);
}
END_TEST

START_TEST(an_answer_comes_with_the_queue_pair_that_has_asked)
{
    struct fixture f;
    setup(&f);
    const uint64_t early = receive(&f, f.q, 1, 64); /* before it is connected */
    ck_assert_int_eq(kedge_connect_port(f.q, peer_gid, PORT), 0);
    const uint64_t later = receive(&f, f.q, 2, 64);
    message(&f, f.q, early, 77);
    message(&f, f.q, later, 78);
    for (uint64_t i = 1; i <= 2; i++) {
        const struct kedge_msg msg = pop_one(&f);
        ck_assert_uint_eq(msg.wc.wr_id, i);
        ck_assert_ptr_eq(msg.from, f.q);
    }
    teardown(&f);
}
END_TEST

START_TEST(as_many_receives_as_a_session_may_have_are_taken_and_no_more)
{
    struct fixture f;
    struct kedge_session_info info;
    setup(&f);
    bind_port(&f);
    struct ibv_sge sge = sge_of(&f, 0, 64);
    struct ibv_recv_wr list[MOST + 1] = {0}, *bad = NULL;
    for (uint64_t i = 0; i <= MOST; i++)
        list[i] = (struct ibv_recv_wr){
            .wr_id = i, .sg_list = &sge, .num_sge = 1, .next = i < MOST ? &list[i + 1] : NULL};
    ck_assert_int_eq(kedge_post_recv(f.q, list, &bad), -ENOMEM);
    ck_assert_ptr_eq(bad, &list[MOST]);
    ck_assert_str_eq(kedge_last_error(),
                     "the session has 4 receives, posted or not popped yet: pop first");
    ck_assert_uint_eq(fake_lane_waiting(&f.a), MOST);
    kedge_session_query(f.s, &info);
    ck_assert_uint_eq(info.max_recvs, MOST);
    const uint64_t cookie = fake_lane_slot(&f.a, 2)->post.wr_id;
    take_all(&f);
    message(&f, f.q, cookie, 77);
    struct ibv_wc wc;
    ck_assert_int_eq(kedge_poll(f.s, 1, &wc), 0); /* it is none of these, and is put aside */
    ck_assert(all_was_taken(&f));
    ck_assert_int_eq(kedge_post_recv(f.q, bad, &bad), -ENOMEM);
    ck_assert_uint_eq(pop_one(&f).wc.wr_id, 2);
    ck_assert_int_eq(kedge_post_recv(f.q, bad, &bad), 0);
    teardown(&f);
}
END_TEST

START_TEST(malformed_receives_are_refused_and_put_nothing_into_the_ring)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge[5];
    struct ibv_recv_wr wr, *bad;
#define REFUSED(n, change)                                                                         \
    do {                                                                                           \
        for (uint32_t i = 0; i < 5; i++)                                                           \
            sge[i] = sge_of(&f, 64 * i, 64);                                                       \
        wr = (struct ibv_recv_wr){.sg_list = sge, .num_sge = n};                                   \
        change;                                                                                    \
        ck_assert_int_eq(kedge_post_recv(f.q, &wr, &bad), -EINVAL);                                \
        ck_assert_ptr_eq(bad, &wr);                                                                \
    } while (0)
    REFUSED(5, );
    REFUSED(-1, );
    REFUSED(1, wr.sg_list = NULL);
    REFUSED(1, sge[0].lkey = 0);
    REFUSED(2, sge[1].lkey = 2);
    REFUSED(1, sge[0].addr--);
    REFUSED(1, sge[0].length = ARENA_BYTES + 1);
    REFUSED(2, sge[0].length = sge[1].length = UINT32_MAX);
#undef REFUSED
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    wr = (struct ibv_recv_wr){.sg_list = sge, .num_sge = 4};
    sge[0].length = sge[1].length = 64;
    ck_assert_int_eq(kedge_post_recv(f.q, &wr, &bad), 0);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->num_sge, 4);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->slots & SCHEMA_SLOTS_COUNT, 2);
    teardown(&f);
}
END_TEST

START_TEST(requests_are_polled_and_messages_popped_whatever_stands_first_in_the_ring)
{
    struct fixture f;
    struct ibv_wc wc[4];
    struct kedge_vqp *q;
    setup(&f);
    bind_port(&f);
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &q), 0);
    ck_assert_int_eq(kedge_connect(q, peer_gid), 0);
    const uint64_t first = receive(&f, f.q, 1, 64), second = receive(&f, f.q, 2, 64);
    ck_assert_int_eq(kedge_wait(f.s, 0), 0);
    fake_lane_complete(&f.a, kedge_vqp_num(q), 11, 0);
    message(&f, f.q, first, 77);
    fake_lane_complete(&f.a, kedge_vqp_num(q), 12, 0);
    message(&f, f.q, second, 77);
    ck_assert_int_eq(kedge_wait(f.s, 0), 1);
    ck_assert_uint_eq(pop_one(&f).wc.wr_id, 1);
    ck_assert_int_eq(kedge_wait(f.s, 0), 1); /* 11 was put aside */
    ck_assert_int_eq(kedge_poll(f.s, 1, wc), 1);
    ck_assert_uint_eq(wc[0].wr_id, 11);
    ck_assert_int_eq(kedge_poll(f.s, 4, wc), 1);
    ck_assert_uint_eq(wc[0].wr_id, 12);
    ck_assert_int_eq(kedge_poll(f.s, 4, wc), 0);
    ck_assert_int_eq(kedge_wait(f.s, 0), 1); /* the second message was */
    ck_assert_uint_eq(pop_one(&f).wc.wr_id, 2);
    ck_assert_int_eq(kedge_wait(f.s, 0), 0);
    /* What was put aside of a queue pair that is destroyed is nobody's. */
    const uint64_t third = receive(&f, f.q, 3, 64);
    fake_lane_complete(&f.a, kedge_vqp_num(q), 13, 0);
    message(&f, f.q, third, 77);
    ck_assert_uint_eq(pop_one(&f).wc.wr_id, 3);
    ck_assert_int_eq(kedge_wait(f.s, 0), 1);
    kedge_vqp_destroy(q);
    ck_assert_int_eq(kedge_wait(f.s, 0), 0);
    ck_assert_int_eq(kedge_poll(f.s, 4, wc), 0);
    ck_assert(all_was_taken(&f));
    teardown(&f);
}
END_TEST

START_TEST(who_pops_and_never_polls_is_held_up_behind_as_many_completions_as_the_ring_has)
{
    struct fixture f;
    struct ibv_wc wc[CQ_SLOTS];
    struct kedge_vqp *q;
    struct kedge_msg msg;
    setup(&f);
    bind_port(&f);
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &q), 0);
    ck_assert_int_eq(kedge_connect(q, peer_gid), 0);
    for (uint64_t i = 0; i < CQ_SLOTS; i++)
        fake_lane_complete(&f.a, kedge_vqp_num(q), i, 0);
    ck_assert_int_eq(kedge_pop_msgs(f.s, 1, &msg), 0);
    ck_assert(all_was_taken(&f));
    fake_lane_complete(&f.a, kedge_vqp_num(q), CQ_SLOTS, 0);
    message(&f, f.q, receive(&f, f.q, 1, 64), 77);
    ck_assert_int_eq(kedge_pop_msgs(f.s, 1, &msg), 0);
    ck_assert_int_eq(kedge_poll(f.s, CQ_SLOTS, wc), CQ_SLOTS);
    for (uint64_t i = 0; i < CQ_SLOTS; i++)
        ck_assert_uint_eq(wc[i].wr_id, i);
    ck_assert_uint_eq(pop_one(&f).wc.wr_id, 1);
    ck_assert_int_eq(kedge_poll(f.s, CQ_SLOTS, wc), 1);
    ck_assert_uint_eq(wc[0].wr_id, CQ_SLOTS);
    teardown(&f);
}
END_TEST

START_TEST(receives_that_are_flushed_come_in_order_and_from_nobody)
{
    struct fixture f;
    uint64_t cookie[MOST];
    struct kedge_msg msg[MOST + 1];
    setup(&f);
    ck_assert_int_eq(kedge_connect_port(f.q, peer_gid, PORT), 0);
    for (uint64_t i = 0; i < MOST; i++)
        cookie[i] = receive(&f, f.q, i, 64);
    for (uint64_t i = 0; i < MOST; i++) {
        struct schema_cqe c = received(f.q, cookie[i], 0);
        c.extra = 0;
        c.status = i == 0 ? IBV_WC_LOC_LEN_ERR : IBV_WC_WR_FLUSH_ERR;
        c.vendor_err = i == 0 ? SCHEMA_REASON_LONG : SCHEMA_REASON_BEHIND;
        put(&f, c, NULL);
    }
    ck_assert_int_eq(kedge_pop_msgs(f.s, MOST + 1, msg), MOST);
    for (uint64_t i = 0; i < MOST; i++) {
        ck_assert_uint_eq(msg[i].wc.wr_id, i);
        ck_assert_uint_eq(msg[i].wc.status, i == 0 ? IBV_WC_LOC_LEN_ERR : IBV_WC_WR_FLUSH_ERR);
        ck_assert_uint_eq(msg[i].wc.vendor_err, i == 0 ? SCHEMA_REASON_LONG : SCHEMA_REASON_BEHIND);
        ck_assert_ptr_null(msg[i].from);
    }
    teardown(&f);
}
END_TEST

START_TEST(receives_go_with_their_queue_pair_and_what_the_lane_says_of_them_later_is_nobodys)
{
    struct fixture f;
    struct kedge_vqp *stays;
    struct kedge_msg msg;
    setup(&f);
    bind_port(&f);
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &stays), 0);
    ck_assert_int_eq(kedge_connect_port(stays, peer_gid, PORT), 0);
    const uint64_t kept = receive(&f, stays, 1, 64);
    const uint64_t ended = receive(&f, f.q, 2, 64), open = receive(&f, f.q, 3, 64);
    struct ibv_wc wc;
    message(&f, f.q, ended, 77);
    message(&f, stays, kept, 77);
    ck_assert_int_eq(kedge_poll(f.s, 1, &wc), 0);
    struct schema_cqe late = received(f.q, open, 8);
    kedge_vqp_destroy(f.q);
    take_all(&f);
    ck_assert_uint_eq(pop_one(&f).wc.wr_id, 1);
    ck_assert_int_eq(kedge_wait(f.s, 0), 0);
    const struct schema_cqe_sender from = sender_of(peer_gid, 77);
    put(&f, late, &from);
    ck_assert_int_eq(kedge_wait(f.s, 0), 0);
    put(&f, late, &from);
    ck_assert_int_eq(kedge_pop_msgs(f.s, 1, &msg), 0);
    ck_assert(all_was_taken(&f));
    for (uint64_t i = 0; i < MOST; i++) /* there is room for all */
        (void)receive(&f, stays, i, 64);
    /* The lane hears that one is gone which it knows of by a receive alone. */
    kedge_vqp_destroy(stays);
    struct kedge_vqp *alone;
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &alone), 0);
    (void)receive(&f, alone, 1, 64);
    kedge_vqp_destroy(alone);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->op, SCHEMA_OP_DESTROY);
    ck_assert_int_eq(kedge_session_status(f.s), 0);
    teardown(&f);
}
END_TEST

START_TEST(without_memory_for_receives_there_are_none_until_there_is)
{
    struct fixture f;
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
    setup(&f);
    no_memory = true;
    ck_assert_int_eq(kedge_post_recv(f.q, &wr, &bad), -ENOMEM);
    ck_assert_int_eq(kedge_bind(f.q, PORT), -ENOMEM);
    no_memory = false;
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    bind_port(&f);
    message(&f, f.q, receive(&f, f.q, 1, 64), 77);
    message(&f, f.q, receive(&f, f.q, 2, 64), 77);
    no_memory = true;
    ck_assert_ptr_null(pop_one(&f).from);
    no_memory = false;
    ck_assert_ptr_nonnull(pop_one(&f).from);
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(messages_come_with_what_was_posted_for_them_also_across_the_rings_end)                       \
    T(each_sender_has_one_queue_pair_that_goes_to_it_until_that_is_destroyed)                      \
    T(a_message_is_there_also_where_no_queue_pair_can_be_made)                                     \
    T(a_sender_that_the_host_does_not_know_is_asked_for_when_it_is_answered)                       \
    T(an_answer_comes_with_the_queue_pair_that_has_asked)                                          \
    T(as_many_receives_as_a_session_may_have_are_taken_and_no_more)                                \
    T(malformed_receives_are_refused_and_put_nothing_into_the_ring)                                \
    T(requests_are_polled_and_messages_popped_whatever_stands_first_in_the_ring)                   \
    T(who_pops_and_never_polls_is_held_up_behind_as_many_completions_as_the_ring_has)              \
    T(receives_that_are_flushed_come_in_order_and_from_nobody)                                     \
    T(receives_go_with_their_queue_pair_and_what_the_lane_says_of_them_later_is_nobodys)           \
    T(without_memory_for_receives_there_are_none_until_there_is)
KEDGE_CHECK_MAIN("libclient receives", TESTS)
