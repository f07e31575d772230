/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs between workers of two nodes, whose lanes are both here. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "message_pair.h"

START_TEST(a_message_is_in_the_buffer_that_was_posted_with_its_senders_name)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    memcpy(memory_of(&sender, 100), "hello", 5);
    post_receive(7, 4096, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 9, 100, 5));
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.opcode, IBV_WC_RECV);
    ck_assert_uint_eq(e.wr_id, 7);
    ck_assert_uint_eq(e.byte_len, 5);
    ck_assert_uint_eq(e.extra, 1);
    ck_assert_mem_eq(memory_of(&receiver, 4096), "hello", 6);
    ck_assert_mem_eq(from.gid, w.node[0].fab->caps.gid, 16);
    ck_assert_uint_eq(from.tenant, TENANT);
    ck_assert_uint_eq(from.incarnation, 100);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.opcode, IBV_WC_SEND);
    ck_assert_uint_eq(e.wr_id, 9);
    end();
}
END_TEST

START_TEST(who_hears_a_message_answers_to_its_name)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    post(&sender, world_message(SCHEMA_OP_RECV, 1, 0, 64));
    post_receive(2, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 3, 512, 8));
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_int_eq(world_connect(&w, &receiver, 5, 0), 0);
    world_send_to(&receiver, 5, SCHEMA_SEND_TO_VQP, from.vqp);
    memcpy(memory_of(&receiver, 512), "answer", 6);
    struct schema_sq_desc answer = world_message(SCHEMA_OP_SEND, 4, 512, 6);
    answer.vqp = 5;
    answer.flags |= SCHEMA_OP_IMM;
    answer.post.imm = 0xabcdef;
    post(&receiver, answer);
    for (int i = 0; i < 2; i++) { /* its SEND's, and what it hears, in either order */
        ck_assert(world_hear(&w, &sender, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        if (e.opcode != IBV_WC_RECV)
            continue;
        ck_assert_uint_eq(e.wr_id, 1);
        ck_assert_uint_eq(e.with_imm, 1);
        ck_assert_uint_eq(e.imm, 0xabcdef);
        ck_assert_mem_eq(memory_of(&sender, 0), "answer", 6);
    }
    ck_assert_uint_eq(world_done(&w, &receiver, PATIENCE).status, IBV_WC_SUCCESS);
    end();
}
END_TEST

START_TEST(messages_of_all_sizes_come_in_order)
{
    static const uint32_t sizes[] = {0, 1, 8, 100, 4096, SCHEMA_MESSAGE_MOST};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    for (uint32_t i = 0; i < SCHEMA_MESSAGE_MOST; i++)
        *memory_of(&sender, i) = (uint8_t)(i * 7 + i / 256);
    for (uint32_t i = 0; i < SIZES; i++) {
        post_receive(i, 0, SCHEMA_MESSAGE_MOST);
        post(&sender, world_message(SCHEMA_OP_SEND, 100 + i, 0, sizes[i]));
    }
    for (uint32_t i = 0; i < SIZES; i++) {
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_uint_eq(e.byte_len, sizes[i]);
    }
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 0), SCHEMA_MESSAGE_MOST);
    for (uint32_t i = 0; i < SIZES; i++)
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, 100 + i);
    end();
}
END_TEST

START_TEST(a_send_waits_until_a_buffer_is_posted)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
    ck_assert(!world_poll(&w, &sender, &e, 2000));
    post_receive(2, 0, 64);
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    end();
}
END_TEST

static void expect_send_fails(struct schema_sq_desc d, enum ibv_wc_status status, uint32_t reason)
{
    post(&sender, d);
    post(&sender, world_message(SCHEMA_OP_SEND, 99, 0, 8)); /* behind it */
    const struct schema_cqe e = world_done(&w, &sender, 100000);
    ck_assert_uint_eq(e.status, status);
    ck_assert_uint_eq(e.vendor_err, reason);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_WR_FLUSH_ERR);
}

START_TEST(who_never_gets_a_buffer_fails_as_verbs_do)
{
    begin();
    /* What was sent last may find a buffer yet: its worker is not told that it was never sent. */
    expect_send_fails(world_message(SCHEMA_OP_SEND, 1, 0, 8), IBV_WC_RNR_RETRY_EXC_ERR,
                      SCHEMA_REASON_NONE);
    end();
}
END_TEST

START_TEST(a_port_that_nobody_hears_refuses)
{
    begin();
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT + 1);
    expect_send_fails(world_message(SCHEMA_OP_SEND, 1, 0, 8), IBV_WC_REM_OP_ERR,
                      SCHEMA_REASON_PORT);
    end();
}
END_TEST

START_TEST(a_port_of_another_tenant_refuses_like_one_that_nobody_hears)
{
    begin();
    struct world_worker stranger;
    world_attach(&w, &stranger, 0, 1, TENANT + 1);
    ck_assert_int_eq(world_connect(&w, &stranger, 0, 1), 0);
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_SEND_TO,
        .slots = 1,
        .send_to = {.kind = SCHEMA_SEND_TO_PORT, .to = PORT, .tenant = TENANT}};
    post(&stranger, d);
    post_receive(1, 0, 64);
    post(&stranger, world_message(SCHEMA_OP_SEND, 1, 0, 8));
    const struct schema_cqe e = world_done(&w, &stranger, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_PORT);
    world_detach(&w, &stranger);
    end();
}
END_TEST

START_TEST(a_message_longer_than_its_buffer_fails_at_both_ends)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    post_receive(5, 0, 7);
    expect_send_fails(world_message(SCHEMA_OP_SEND, 1, 0, 8), IBV_WC_REM_INV_REQ_ERR,
                      SCHEMA_REASON_LONG);
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_LOC_LEN_ERR);
    ck_assert_uint_eq(e.extra, 0);
    end();
}
END_TEST

/* More than the receiver's lane has receives, so that credits have to come back. */
START_TEST(many_messages_need_no_more_receives_than_there_are)
{
    enum { MESSAGES = 500, AHEAD = 12 };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    uint32_t sent = 0, heard = 0, done = 0, receives = 0;
    for (uint32_t n = 0; (heard < MESSAGES || done < MESSAGES) && n < 1000000; n++) {
        for (; receives < MESSAGES && receives - heard < AHEAD; receives++)
            post_receive(receives, 64 * (receives % AHEAD), 64);
        for (; sent < MESSAGES && sent - done < AHEAD; sent++) {
            memcpy(memory_of(&sender, 64 * (sent % AHEAD)), &sent, sizeof sent);
            post(&sender, world_message(SCHEMA_OP_SEND, sent, 64 * (sent % AHEAD), 8));
        }
        if (world_hear(&w, &receiver, &e, &from, 1)) {
            uint32_t said;
            ck_assert_uint_eq(e.wr_id, heard);
            memcpy(&said, memory_of(&receiver, 64 * (heard % AHEAD)), sizeof said);
            ck_assert_uint_eq(said, heard);
            heard++;
        }
        if (world_poll(&w, &sender, &e, 1)) {
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.wr_id, done);
            done++;
        }
    }
    ck_assert_uint_eq(heard, MESSAGES);
    ck_assert_uint_eq(done, MESSAGES);
    end();
}
END_TEST

START_TEST(without_an_address_a_send_is_refused)
{
    begin();
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0); /* which forgets it */
    expect_send_fails(world_message(SCHEMA_OP_SEND, 1, 0, 8), IBV_WC_LOC_QP_OP_ERR,
                      SCHEMA_REASON_UNADDRESSED);
    end();
}
END_TEST

/* Its receives and what it has sent end unseen, and its memory is free. */
START_TEST(a_session_ends_with_messages_under_way)
{
    begin();
    for (uint32_t i = 0; i < 6; i++)
        post(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
    post(&sender, world_message(SCHEMA_OP_RECV, 9, 0, 64));
    world_run(&w, 20);
    end();
}
END_TEST

START_TEST(a_port_is_free_when_its_vqp_is_destroyed)
{
    begin();
    ck_assert_int_eq(world_bind_port(&w, &receiver, 4, PORT), -EADDRINUSE);
    const struct schema_sq_desc d = {.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = 3};
    post(&receiver, d);
    ck_assert_int_eq(world_bind_port(&w, &receiver, 4, PORT), 0);
    end();
}
END_TEST

/* A worker that has died, and is begun anew at once: its port is not its former life's, whose end
 * takes some passes. */
START_TEST(a_port_of_a_session_that_ends_is_free_at_once)
{
    struct world_worker next;
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    const struct lane_command end_it = {
        .kind = LANE_COMMAND_SESSION_END, .session = receiver.id, .reason = SCHEMA_REASON_CLOSED};
    world_attach(&w, &next, 1, 5, TENANT);
    for (uint32_t i = 0; i < 24; i++)
        post_receive(i, 0, 64);
    ck_assert_int_eq(lane_command(w.node[1].lane, &end_it), 0);
    ck_assert_int_eq(world_bind_port(&w, &next, 3, PORT), 0);
    struct schema_sq_desc receive = world_message(SCHEMA_OP_RECV, 66, 4096, 64);
    receive.vqp = 3;
    post(&next, receive);
    world_sleep(&w, 1000);
    post(&sender, world_message(SCHEMA_OP_SEND, 4, 100, 8));
    ck_assert(world_hear(&w, &next, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, 66);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(world_bind_port(&w, &next, 4, PORT), -EADDRINUSE);
    world_detach(&w, &next);
    end();
}
END_TEST

/* Whoever has the place of the one that heard it before, and has a receive posted too. */
START_TEST(a_port_that_changes_hands_is_the_new_ones_at_once)
{
    const struct schema_sq_desc destroy = {.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = 3};
    struct schema_sq_desc receive = world_message(SCHEMA_OP_RECV, 66, 4096, 64);
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    for (uint32_t i = 0; i < 4; i++) {
        post_receive(i, 4096, 64);
        post(&sender, world_message(SCHEMA_OP_SEND, i, 100, 8));
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    }
    post(&receiver, destroy);
    receive.vqp = 6;
    post(&receiver, receive);
    ck_assert_int_eq(world_bind_port(&w, &receiver, 4, PORT), 0);
    receive.vqp = 4;
    receive.post.wr_id = 44;
    post(&receiver, receive);
    post(&sender, world_message(SCHEMA_OP_SEND, 4, 100, 8));
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, 44);
    ck_assert_uint_eq(e.vqp, 4);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    end();
}
END_TEST

/* Both workers are of one endpoint: what its lane says to itself takes no datagram, and is heard in
 * the pass in which it is said. */
START_TEST(who_sends_to_his_own_endpoint_needs_no_datagram)
{
    enum { MESSAGES = 100 };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    world_by_device = true;
    begin();
    ck_assert_int_eq(world_connect(&w, &receiver, 5, 1), 0);
    world_send_to(&receiver, 5, SCHEMA_SEND_TO_PORT, PORT);
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 0, 100, 8);
    d.vqp = 5;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const bool late = i % 10 == 9; /* it hears RNR, which its lane says to itself too */
        if (!late)
            post_receive(1000 + i, 4096, 8);
        d.post.wr_id = i;
        post(&receiver, d);
        if (late) {
            ck_assert(!world_poll(&w, &receiver, &e, 100));
            post_receive(1000 + i, 4096, 8);
        }
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, 1000 + i);
        ck_assert_mem_eq(from.gid, w.node[1].fab->caps.gid, 16);
        e = world_done(&w, &receiver, 0); /* published with the other one */
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, i);
    }
    const struct lane_stats stats = world_stats(&w, 1);
    ck_assert_uint_eq(stats.datagrams_sent, 0);
    ck_assert_uint_eq(stats.messages_sent, MESSAGES);
    ck_assert_uint_ge(stats.messages_refused, MESSAGES / 10);
    ck_assert_uint_le(stats.credits_granted, stats.receives_posted);
    end();
    world_by_device = false;
}
END_TEST

/* How many its device has after each of some messages: the least. */
static uint32_t least_posted(uint32_t receives)
{
    enum { MESSAGES = 100 };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    uint64_t least = receives;
    world_receives = receives;
    begin();
    for (uint32_t i = 0; i < MESSAGES; i++) {
        post_receive(1000 + i, 4096, 8);
        post(&sender, world_message(SCHEMA_OP_SEND, i, 100, 8));
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        const struct lane_stats stats = world_stats(&w, 1);
        ck_assert_uint_le(stats.credits_granted, stats.receives_posted);
        least = stats.receives_posted < least ? stats.receives_posted : least;
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    }
    world_run(&w, 1100); /* more than from one look to the next */
    ck_assert_uint_eq(world_stats(&w, 1).receives_posted, receives);
    end();
    world_receives = 0;
    return (uint32_t)least;
}

START_TEST(receives_that_nobody_needs_are_posted_some_at_a_time)
{
    ck_assert_uint_eq(least_posted(16), 16);
    ck_assert_uint_eq(least_posted(256), 256 - 15);
}
END_TEST

/* More than a pass takes up: the rest of it is here, and its SENDs are over, when the lane says to
 * itself what it has taken. None of that is counted as what never came. */
START_TEST(what_a_lane_has_not_taken_up_of_its_own_messages_is_not_lost)
{
    enum { MESSAGES = 8 };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    world_by_device = true;
    begin_own();
    for (uint32_t i = 0; i < MESSAGES; i++)
        post_receive(1000 + i, 0, SCHEMA_MESSAGE_MOST);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, i, 0, SCHEMA_MESSAGE_MOST);
        world_post(&sender, &d);
    }
    lane_doorbell(w.node[1].lane, sender.id);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.wr_id, 1000 + i);
    }
    for (uint32_t i = 0; i < MESSAGES; i++)
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, i);
    ck_assert_uint_eq(world_stats(&w, 1).messages_stray, 0);
    end();
    world_by_device = false;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_message_is_in_the_buffer_that_was_posted_with_its_senders_name)                            \
    T(who_hears_a_message_answers_to_its_name)                                                     \
    T(messages_of_all_sizes_come_in_order)                                                         \
    T(a_send_waits_until_a_buffer_is_posted)                                                       \
    T(who_never_gets_a_buffer_fails_as_verbs_do)                                                   \
    T(a_port_that_nobody_hears_refuses)                                                            \
    T(a_port_of_another_tenant_refuses_like_one_that_nobody_hears)                                 \
    T(a_message_longer_than_its_buffer_fails_at_both_ends)                                         \
    T(many_messages_need_no_more_receives_than_there_are)                                          \
    T(without_an_address_a_send_is_refused)                                                        \
    T(a_session_ends_with_messages_under_way)                                                      \
    T(a_port_is_free_when_its_vqp_is_destroyed)                                                    \
    T(a_port_of_a_session_that_ends_is_free_at_once)                                               \
    T(a_port_that_changes_hands_is_the_new_ones_at_once)                                           \
    T(who_sends_to_his_own_endpoint_needs_no_datagram)                                             \
    T(receives_that_nobody_needs_are_posted_some_at_a_time)                                        \
    T(what_a_lane_has_not_taken_up_of_its_own_messages_is_not_lost)
KEDGE_CHECK_MAIN("agent.lane.messages", TESTS)
