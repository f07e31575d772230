/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that sleeps for several completions, or for room in its ring, is woken when that is
 * there, and when it never will be. */
#include "../../check_main.h"
#include "schema/wake.h"
#include "world.h"

#include <stdlib.h>

enum {
    AWHILE = 1000,
    SLOTS = 64 /* of its ring */,
    TENANT = 1,
    NEAR = 1 /* the VQP to its own node; 0: to node 1 */
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker far_owner, near_owner, k;
static uint32_t far_key, near_key, wakes;

static uint64_t wake(void *user, _Atomic uint32_t *word)
{
    (void)user;
    wakes += word == (const void *)&k.r->wake;
    return 0;
}

static void post_to(uint16_t vqp, uint32_t key, uint8_t flags)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 0, 0, 8, key, 0);
    d.vqp = vqp;
    d.flags = flags;
    world_post(&k, &d);
    lane_doorbell(w->node[0].lane, k.id);
}

static void begin(void)
{
    /* What nobody answers stays out for longer than all here takes, and is in nobody's way. */
    world_ack_timeout = 12;
    ck_assert_int_eq(setenv("KEDGE_TEST_TRANSPORT", "rc", 1), 0);
    far_key = world_pair(w, &far_owner, &k, TENANT, ALL);
    world_attach(w, &near_owner, 0, 1, TENANT);
    near_key = world_register(w, &near_owner, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &k, NEAR, 0), 0);
    ck_assert_int_eq(world_connect(w, &near_owner, 0, 0), 0);
    post_to(NEAR, near_key, SCHEMA_OP_SIGNALED); /* what is looked up once is known then */
    post_to(0, far_key, SCHEMA_OP_SIGNALED);
    ck_assert_uint_eq(world_done(w, &k, AWHILE).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_done(w, &k, AWHILE).status, IBV_WC_SUCCESS);
    lane_set_wake(w->node[0].lane, wake, NULL);
    wakes = 0;
}

static void end(void)
{
    atomic_store(&k.w->want_wake, 0);
    world_detach(w, &near_owner);
    world_unpair(w, &far_owner, &k);
}

static void do_near(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t before = atomic_load(&k.r->cq_tail);
        post_to(NEAR, near_key, SCHEMA_OP_SIGNALED);
        for (int pass = 0; pass < AWHILE && atomic_load(&k.r->cq_tail) == before; pass++)
            world_run(w, 1);
        ck_assert_uint_eq(atomic_load(&k.r->cq_tail), before + 1);
    }
}

/* One request that nobody answers stays out. */
static void leave_one_out(void)
{
    world_silence_node(w, 1);
    post_to(0, far_key, SCHEMA_OP_SIGNALED);
    world_run(w, 20);
}

START_TEST(who_wants_many_is_woken_when_so_many_are_there_and_not_before)
{
    begin();
    leave_one_out();
    for (uint32_t want = 1; want <= 5; want++) {
        const uint32_t before = atomic_load(&k.r->cq_tail);
        atomic_store(&k.w->cq_head, before);
        atomic_store(&k.w->want_wake, want);
        wakes = 0;
        do_near(want - 1);
        ck_assert_uint_eq(atomic_load(&k.r->cq_tail), before + want - 1);
        ck_assert_uint_eq(wakes, 0);
        do_near(1);
        ck_assert_uint_eq(wakes, 1);
        atomic_store(&k.w->want_wake, 0);
    }
    end();
}
END_TEST

START_TEST(who_wants_more_than_is_out_is_woken_when_none_is_out_any_more)
{
    begin();
    atomic_store(&k.w->want_wake, 100);
    do_near(1);
    ck_assert_uint_eq(wakes, 1);
    end();
}
END_TEST

START_TEST(who_wants_many_is_woken_when_one_fails)
{
    begin();
    leave_one_out();
    atomic_store(&k.w->want_wake, 100);
    do_near(2);
    ck_assert_uint_eq(wakes, 0);
    const uint32_t before = atomic_load(&k.r->cq_tail);
    post_to(NEAR, near_key ^ 1, SCHEMA_OP_SIGNALED);
    for (int i = 0; i < AWHILE && wakes == 0; i++)
        world_run(w, 1);
    ck_assert_uint_eq(wakes, 1);
    ck_assert_uint_eq(atomic_load(&k.r->cq_tail), before + 1);
    end();
}
END_TEST

/* What it has asked for is answered; its completions are not what it waits for then. */
START_TEST(who_wants_many_is_woken_by_an_answer)
{
    begin();
    leave_one_out();
    atomic_store(&k.w->want_wake, 100);
    ck_assert_int_eq(world_connect(w, &k, NEAR, 0), 0);
    ck_assert_uint_ge(wakes, 1);
    end();
}
END_TEST

/* Whether a region of its own still is. To its answer. */
static void ask_status(uint32_t tag)
{
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_MR_STATUS, .slots = 1, .dereg_mr = {.tag = tag, .vkey = far_key}};
    world_post(&k, &d);
    lane_doorbell(w->node[0].lane, k.id);
    for (int i = 0; i < AWHILE && atomic_load(&k.r->reply[tag % SCHEMA_REPLIES].tag) != tag; i++)
        world_run(w, 1);
    ck_assert_uint_eq(atomic_load(&k.r->reply[tag % SCHEMA_REPLIES].tag), tag);
}

/* What it has asked for before, and does not wait for, is answered meanwhile. */
START_TEST(who_wants_an_answer_is_woken_by_that_one_alone)
{
    const uint32_t tag = 0x80000000u + 7 * SCHEMA_REPLIES;
    begin();
    ask_status(tag + 3 - SCHEMA_REPLIES); /* at its place, of before */
    wakes = 0;
    atomic_store(&k.w->want_wake, schema_wake_for_answer(tag + 3));
    for (uint32_t i = 1; i < 3; i++)
        ask_status(tag + i);
    do_near(2);
    ck_assert_uint_eq(wakes, 0);
    ask_status(tag + 3);
    ck_assert_uint_eq(wakes, 1);
    end();
}
END_TEST

/* Nothing is signalled, so that there is no completion that would wake it. */
START_TEST(who_wants_room_in_a_full_ring_is_woken_when_there_is_as_much)
{
    begin();
    atomic_store(&k.w->want_wake, SCHEMA_WAKE_ROOM | schema_room_awaited(SLOTS));
    for (uint32_t n = 0; n < SLOTS; n++)
        post_to(NEAR, near_key, 0);
    world_run(w, AWHILE);
    ck_assert_uint_eq(atomic_load(&k.r->sq_head), atomic_load(&k.w->sq_tail));
    ck_assert_uint_ge(wakes, 1);
    end();
}
END_TEST

/* What it saw of the ring was from before the lane took the first half of what it had posted, so
 * that it found no room, while the lane never finds the ring as full as that. */
START_TEST(who_saw_no_room_before_the_lane_took_some_is_woken_too)
{
    const uint32_t half = SLOTS - schema_room_awaited(SLOTS);
    begin();
    for (uint32_t n = 0; n < half; n++)
        post_to(NEAR, near_key, 0);
    world_run(w, AWHILE);
    ck_assert_uint_eq(atomic_load(&k.r->sq_head), atomic_load(&k.w->sq_tail));
    ck_assert_uint_eq(wakes, 0);
    for (uint32_t n = 0; n < half; n++)
        post_to(NEAR, near_key, 0);
    atomic_store(&k.w->want_wake, SCHEMA_WAKE_ROOM | schema_room_awaited(SLOTS));
    world_run(w, AWHILE);
    ck_assert_uint_eq(atomic_load(&k.r->sq_head), atomic_load(&k.w->sq_tail));
    ck_assert_uint_ge(wakes, 1);
    end();
}
END_TEST

/* Its own word decides for itself alone, whatever it is. */
START_TEST(who_wants_what_makes_no_sense_waits_for_it_and_nobody_else_does)
{
    static const uint32_t words[] = {2,
                                     0x7fffffff,
                                     SCHEMA_WAKE_ROOM,
                                     UINT32_MAX,
                                     SCHEMA_WAKE_ROOM | 1,
                                     0x80000000 | 65536,
                                     SCHEMA_WAKE_ANSWER,
                                     SCHEMA_WAKE_ANSWER | 12345};
    begin();
    leave_one_out();
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        atomic_store(&k.w->cq_head, atomic_load(&k.r->cq_tail));
        atomic_store(&k.w->want_wake, words[i]);
        do_near(1);
        ck_assert_int_eq(
            world_do(w, &near_owner, world_rw(SCHEMA_OP_WRITE, 0, 0, 8, near_key, 0), AWHILE)
                .status,
            IBV_WC_SUCCESS);
    }
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_wants_many_is_woken_when_so_many_are_there_and_not_before)                               \
    T(who_wants_more_than_is_out_is_woken_when_none_is_out_any_more)                               \
    T(who_wants_many_is_woken_when_one_fails)                                                      \
    T(who_wants_many_is_woken_by_an_answer)                                                        \
    T(who_wants_an_answer_is_woken_by_that_one_alone)                                              \
    T(who_wants_room_in_a_full_ring_is_woken_when_there_is_as_much)                                \
    T(who_saw_no_room_before_the_lane_took_some_is_woken_too)                                      \
    T(who_wants_what_makes_no_sense_waits_for_it_and_nobody_else_does)

KEDGE_CHECK_MAIN("agent.lane.wakes_many", TESTS)
