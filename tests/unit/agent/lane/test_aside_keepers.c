/* SPDX-License-Identifier: Apache-2.0 */
/* What another sender to the same port sees of one that has receives set aside, and uses none. */
#include <stdio.h>

#include "../../check_main.h"
#include "message_pair.h"

enum {
    ROOM = 32768,
    BUFFER = 64,
    KEPT = 12,
    AT_A_TIME = 6, /* the receiver's worker posts, each time that it has had so many */
    MESSAGES = 60,
    NOW_AND_THEN = 150, /* passes: so often the one that keeps some says something */
    BOUNDS = 2 * 200,   /* so long it is set aside at the most */
    NOISE = 150
};

static uint32_t posted;

static void post_receives(uint32_t count)
{
    for (; count > 0; count--, posted++)
        post_receive(posted, BUFFER * (posted % (2 * KEPT)), BUFFER);
}

/* A message, and a WRITE behind it. */
static void keep_some(uint32_t key)
{
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
    post(&sender, world_rw(SCHEMA_OP_WRITE, 2, 4096, 8, key, ROOM));
}

static uint32_t count_ended(struct world_worker *k)
{
    struct schema_cqe e;
    uint32_t ended = 0;
    while (world_poll(&w, k, &e, 0)) {
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ended++;
    }
    return ended;
}

static uint32_t count_heard(void)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    uint32_t heard = 0;
    while (world_hear(&w, &receiver, &e, &from, 0))
        heard++;
    return heard;
}

/* How many passes until all messages of one have come, which sends whatever it can. */
static uint32_t passes_of_another(bool one_keeps)
{
    struct world_worker other;
    uint32_t passes = 0, due = 0, sent = 0, done = 0, out = 0;
    begin();
    const uint32_t key = world_register(&w, &receiver, ROOM, 4096, SCHEMA_RECORD_WRITE);
    world_attach(&w, &other, 0, 1, TENANT);
    ck_assert_int_eq(world_connect(&w, &other, 0, 1), 0);
    world_send_to(&other, 0, SCHEMA_SEND_TO_PORT, PORT);
    post_receives(KEPT);
    for (; done < MESSAGES; passes++) {
        ck_assert_uint_lt(passes, 200000);
        if (one_keeps && out == 0 && passes % NOW_AND_THEN == 0) {
            keep_some(key);
            out = 2;
        }
        for (; passes >= 2 * NOW_AND_THEN && sent < MESSAGES && sent - done < KEPT; sent++)
            post(&other, world_message(SCHEMA_OP_SEND, sent, 0, 8));
        world_run(&w, 1);
        out -= count_ended(&sender);
        done += count_ended(&other);
        due += count_heard();
        if (due >= AT_A_TIME) {
            post_receives(due);
            due = 0;
        }
    }
    world_detach(&w, &other);
    end();
    return passes - 2 * NOW_AND_THEN;
}

START_TEST(who_keeps_what_it_may_keeps_another_waiting_once)
{
    const uint32_t alone = passes_of_another(false), beside = passes_of_another(true);
    printf("%u messages: %u passes alone, %u beside one that keeps what it may\n", MESSAGES, alone,
           beside);
    ck_assert_uint_gt(beside, alone + NOW_AND_THEN); /* it had kept some */
    ck_assert_uint_lt(beside, alone + BOUNDS + NOISE);
}
END_TEST

#define TESTS(T) T(who_keeps_what_it_may_keeps_another_waiting_once)
KEDGE_CHECK_MAIN("agent.lane.aside_keepers", TESTS)
