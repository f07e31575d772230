/* SPDX-License-Identifier: Apache-2.0 */
/* Near messages, of whose hearer the one before has told. */
#include "../../check_main.h"
#include "lane_state.h"
#include "message_state.h" /* before a w that they would hide */
#include "message_pair.h"

static uint64_t near_now(void)
{
    return world_stats(&w, 1).messages_near;
}

static void expect_heard(uint16_t vqp, uint64_t wr_id, uint32_t patience)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, patience));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(e.vqp, vqp);
}

static void expect_sent(uint64_t wr_id, uint32_t patience)
{
    const struct schema_cqe e = world_done(&w, &sender, patience);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, wr_id);
}

/* Two, of which the second one goes near. */
static void begin_near(void)
{
    begin_own();
    for (uint64_t i = 0; i < 2; i++) {
        post_receive(i, 0, 8);
        post(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
        expect_heard(3, i, PATIENCE);
        expect_sent(i, PATIENCE);
    }
    ck_assert_uint_eq(near_now(), 1);
}

static void post_receive_of(uint16_t vqp, uint64_t wr_id)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, wr_id, 0, 8);
    d.vqp = vqp;
    post(&receiver, d);
}

/* VQP 4 has the place in which what was known of VQP 3 was. */
START_TEST(a_port_that_another_vqp_has_is_heard_by_that_one)
{
    begin_near();
    post(&receiver, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = 3});
    world_run(&w, 10);
    post_receive_of(4, 104);
    world_run(&w, 10);
    ck_assert_int_eq(world_bind_port(&w, &receiver, 5, PORT), 0);
    for (uint64_t i = 0; i < 3; i++) {
        post_receive_of(5, 105 + i);
        world_run(&w, 10);
        post(&sender, world_message(SCHEMA_OP_SEND, 200 + i, 0, 8));
        expect_heard(5, 105 + i, PATIENCE);
        expect_sent(200 + i, PATIENCE);
    }
    ck_assert_uint_gt(near_now(), 1);
    end();
}
END_TEST

#define TESTS(T) T(a_port_that_another_vqp_has_is_heard_by_that_one)
KEDGE_CHECK_MAIN("agent.lane.near_hearer", TESTS)
