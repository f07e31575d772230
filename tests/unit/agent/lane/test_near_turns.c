/* SPDX-License-Identifier: Apache-2.0 */
/* Near messages of two tenants of one lane: each has its turns and its part. */
#include <stdio.h>

#include "../../check_main.h"
#include "message_pair.h"

/* A tenant that fills what near messages have, from many VQPs. */
enum {
    OTHER = TENANT + 1,
    FLOOD_PORT = PORT + 1,
    FLOODS = 6,
    FLOOD_BYTES = SCHEMA_MESSAGE_MOST,
    FLOOD_OUT = 24,
    ROUNDS = 300,
    BURST = 8
};

struct flood {
    struct world_worker sends, hears;
    uint64_t posted, done, room;
};

static void begin_flood(struct flood *f)
{
    *f = (struct flood){.posted = 0};
    world_attach(&w, &f->sends, 1, 2, OTHER);
    world_attach(&w, &f->hears, 1, 3, OTHER);
    ck_assert_int_eq(world_bind_port(&w, &f->hears, 3, FLOOD_PORT), 0);
    for (uint16_t v = 0; v < FLOODS; v++) {
        ck_assert_int_eq(world_connect(&w, &f->sends, v, 1), 0);
        world_send_to(&f->sends, v, SCHEMA_SEND_TO_PORT, FLOOD_PORT);
    }
}

static void go_on_flooding(struct flood *f)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    while (world_poll(&w, &f->sends, &e, 0)) {
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        f->done++;
    }
    while (world_hear(&w, &f->hears, &e, &from, 0))
        f->room--;
    for (; f->room < 2 * FLOOD_OUT; f->room++) {
        struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, 0, 0, FLOOD_BYTES);
        d.vqp = 3;
        post(&f->hears, d);
    }
    for (; f->posted - f->done < FLOOD_OUT; f->posted++) {
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, f->posted, 0, FLOOD_BYTES);
        d.vqp = (uint16_t)(f->posted % FLOODS);
        post(&f->sends, d);
    }
}

/* Passes until all of some messages of eight bytes are heard, which are more than a sparse
 * tenant's: beside such a pass takes one of the flood's. */
static uint32_t count_passes(struct flood *f)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    uint32_t waited = 0, heard = 0;
    for (uint32_t i = 0; i < BURST; i++)
        post_receive(i, 8 * i, 8);
    for (uint32_t i = 0; i < 10; i++) { /* the lane has them before there is a message */
        go_on_flooding(f);
        world_run(&w, 1);
    }
    for (uint32_t i = 0; i < BURST; i++)
        post(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
    while (heard < BURST) {
        go_on_flooding(f);
        world_run(&w, 1);
        ck_assert_uint_lt(++waited, PATIENCE);
        while (world_hear(&w, &receiver, &e, &from, 0))
            heard++;
    }
    for (uint32_t i = 0; i < BURST; i++)
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, i);
    return waited;
}

/* Whoever sends one message after the other has his turn in each pass, and his part of what may
 * wait, however many VQPs another tenant has. */
START_TEST(a_tenant_with_many_vqps_keeps_nobody_waiting)
{
    struct flood f;
    uint32_t passes = 0, worst = 0;
    begin_own();
    for (uint32_t i = 0; i < 2; i++) { /* its stream is known */
        struct schema_cqe e;
        struct schema_cqe_sender from;
        post_receive(i, 0, 8);
        post(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, i);
    }
    begin_flood(&f);
    for (uint32_t i = 0; i < 400; i++) { /* its streams are known, and go near, also those of
                                            which something was refused */
        go_on_flooding(&f);
        world_run(&w, 1);
        if (i == 200)
            world_sleep(&w, 10000000);
    }
    const uint64_t before = world_stats(&w, 1).messages_near, done = f.done;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint32_t waited = count_passes(&f);
        passes += waited;
        worst = waited > worst ? waited : worst;
    }
    const uint64_t near = world_stats(&w, 1).messages_near - before, flooded = f.done - done;
    printf("%d times eight in %u passes, at most %u each; near %lu, of the other tenant %lu\n",
           ROUNDS, passes, worst, (unsigned long)near, (unsigned long)flooded);
    ck_assert_uint_ge(flooded, ROUNDS);                    /* it is there */
    ck_assert_uint_ge(near, BURST * ROUNDS + flooded / 4); /* and much of it near */
    ck_assert_uint_le(worst, 2);
    world_detach(&w, &f.sends);
    world_detach(&w, &f.hears);
    end();
}
END_TEST

#define TESTS(T) T(a_tenant_with_many_vqps_keeps_nobody_waiting)
KEDGE_CHECK_MAIN("agent.lane.near_turns", TESTS)
