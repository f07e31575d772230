/* SPDX-License-Identifier: Apache-2.0 */
/* A receive bears the mark of the large near message that has begun there, and of no other one. */
#include "../../check_main.h"
#include "lane_state.h"
#include "message_state.h" /* before a w that they would hide */
#include "vqp_state.h"

#include "message_pair.h"

enum {
    LARGE = SCHEMA_MESSAGE_MOST + 1,
    ALL = WORLD_ARENA,
    PART = 16 * 1024, /* of a pass, beside another session */
    WARM = 100,
    ELSEWHERE = 4 /* a VQP of the receiver's, of another port */
};

static void expect_heard(uint64_t wr_id, uint32_t length)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(e.byte_len, length);
}

static void send_from(uint16_t vqp, uint64_t wr_id, uint32_t length)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, wr_id, 0, length);
    d.vqp = vqp;
    post(&sender, d);
}

static void connect_to(uint16_t vqp, uint32_t port)
{
    ck_assert_int_eq(world_connect(&w, &sender, vqp, 1), 0);
    world_send_to(&sender, vqp, SCHEMA_SEND_TO_PORT, port);
}

/* The stream is known, and its session lends: the next one may go near. */
static void warm(uint16_t vqp)
{
    send_from(vqp, WARM, LARGE);
    expect_heard(WARM, LARGE);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
}

static const struct vqp_messages *messages_of(uint16_t vqp)
{
    return w.node[1].lane->sessions[sender.id].vqps[vqp].messages;
}

static void begin_large(uint16_t vqp)
{
    send_from(vqp, 2, ALL);
    world_run(&w, 1);
    ck_assert_uint_eq(messages_of(vqp)->near.done, PART);
}

static void post_elsewhere(uint64_t wr_id)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, wr_id, 0, ALL);
    d.vqp = ELSEWHERE;
    post(&receiver, d);
}

/* The receive keeps the mark of one that was given up. Another VQP in its sender's place has begun
 * one elsewhere: who wants that receive does not wait for it. */
START_TEST(a_receive_that_one_has_left_is_not_kept_for_another_in_its_place)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    bool heard = false;
    begin_own();
    ck_assert_int_eq(world_bind_port(&w, &receiver, ELSEWHERE, PORT + 1), 0);
    connect_to(1, PORT);
    for (uint16_t vqp = 0; vqp < 2; vqp++) {
        post_receive(WARM, 0, LARGE);
        warm(vqp);
    }
    post_receive(1, 0, ALL);
    begin_large(0);
    const struct vqp_messages *former = messages_of(0);
    post(&sender, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = 0});
    world_run(&w, 100);
    while (world_poll(&w, &sender, &e, 0))
        ;
    connect_to(0, PORT + 1);
    post_elsewhere(WARM);
    post_elsewhere(11);
    warm(0);
    ck_assert_ptr_eq(messages_of(0), former);
    begin_large(0);
    send_from(1, 5, 100);
    while (!heard && former->near.done != 0) {
        world_run(&w, 1);
        heard = world_hear(&w, &receiver, &e, &from, 0);
    }
    ck_assert(heard);
    ck_assert_uint_eq(e.wr_id, 1); /* before that one is there */
    ck_assert_uint_eq(e.byte_len, 100);
    expect_heard(11, ALL);
    end();
}
END_TEST

#define TESTS(T) T(a_receive_that_one_has_left_is_not_kept_for_another_in_its_place)
KEDGE_CHECK_MAIN("agent.lane.near_marks", TESTS)
