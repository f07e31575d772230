/* SPDX-License-Identifier: Apache-2.0 */
/* WRITEs and READs behind messages that are not acknowledged: they go where each message before
 * them is sure of a receive, are never carried out before that is posted, and end in order. */
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "message_pair.h"
#include "world_trio.h"

enum {
    VQPS = 3,
    ROOM = 32768,
    PAGE = 4096,
    BUFFER = 64,
    BUFFERS = 16,
    AT_ONCE = 12,
    EACH = 80,
    SEEDS = 30
};

static uint32_t key;
static uint64_t random_state;

static uint32_t random_below(uint32_t most)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % most;
}

/* What such a device holds back is carried out some polls later: not to run into its time-out on a
 * busy host, which the queue pair of a test has after a quarter of a millisecond. */
static void be_patient(void)
{
    if (getenv("KEDGE_SOFT_ORDER") != NULL)
        world_ack_timeout = 19;
}

static void begin_with(uint32_t vqps)
{
    be_patient();
    begin();
    key = world_register(&w, &receiver, ROOM, PAGE,
                         SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC);
    ck_assert_uint_ne(key, 0);
    for (uint16_t v = 1; v < vqps; v++) {
        ck_assert_int_eq(world_connect(&w, &sender, v, 1), 0);
        world_send_to(&sender, v, SCHEMA_SEND_TO_PORT, PORT);
    }
}

/* The word that the receiver shows a VQP of its sender. */
static uint64_t *word_of(uint32_t vqp)
{
    return (uint64_t *)(void *)memory_of(&receiver, ROOM + vqp * 8);
}

/* A device may carry out WRITEs that come behind each other in any order, and later than it says:
 * each has a word of its own, which is seen some time. */
static void see_word(uint32_t at, uint64_t says)
{
    for (unsigned i = 0; i < PATIENCE && *word_of(at) != says; i++)
        world_run(&w, 1);
    ck_assert_uint_eq(*word_of(at), says);
}

static struct schema_sq_desc on(uint16_t vqp, struct schema_sq_desc d)
{
    d.vqp = vqp;
    return d;
}

/* The bytes that are sent are of the sender's memory until then. */
static struct schema_sq_desc word_write(uint16_t vqp, uint64_t wr_id, uint32_t at, uint64_t says)
{
    memcpy(memory_of(&sender, 8 * at), &says, 8);
    return on(vqp, world_rw(SCHEMA_OP_WRITE, wr_id, 8 * at, 8, key, ROOM + vqp * 8));
}

static struct schema_sq_desc a_send(uint16_t vqp, uint64_t wr_id)
{
    return on(vqp, world_message(SCHEMA_OP_SEND, wr_id, 0, 8));
}

static void expect_done(uint64_t wr_id, enum ibv_wc_status status)
{
    const struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(e.status, status);
}

static void expect_nothing(unsigned passes)
{
    struct schema_cqe e;
    ck_assert(!world_poll(&w, &sender, &e, passes));
}

static void post_receives(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        post_receive(i, BUFFER * i, BUFFER);
}

static void hear_all(uint32_t count)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    for (uint32_t i = 0; i < count; i++)
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
}

/* Its receiver knows by then that WRITEs stand behind messages, and has said what is sure. */
static void warm_up(uint16_t vqp, uint32_t receives)
{
    post_receives(receives);
    for (uint64_t i = 0; i < 2; i++) {
        post(&sender, a_send(vqp, 900 + 2 * i));
        post(&sender, word_write(vqp, 901 + 2 * i, 100, 0));
        expect_done(900 + 2 * i, IBV_WC_SUCCESS);
        expect_done(901 + 2 * i, IBV_WC_SUCCESS);
    }
    hear_all(2);
}

/* What the receiver's lane says goes nowhere from now on. */
static void hush(void)
{
    world_no_ud_repairs = true;
    world_break_ud(&w, 1);
}

static void let_speak(void)
{
    world_no_ud_repairs = false;
    world_repair_uds(&w);
}

START_TEST(a_write_goes_behind_a_message_that_is_not_acknowledged)
{
    begin_with(1);
    warm_up(0, 10);
    hush();
    post(&sender, a_send(0, 1));
    post(&sender, word_write(0, 2, 101, 77));
    post(&sender, a_send(0, 3));
    post(&sender, on(0, world_rw(SCHEMA_OP_READ, 4, 4096, 8, key, ROOM)));
    world_run(&w, 60);
    see_word(0, 77);
    ck_assert_mem_eq(memory_of(&sender, 4096), memory_of(&sender, 8 * 101), 8); /* it was READ */
    expect_nothing(1);                                                          /* but in order */
    let_speak();
    for (uint64_t id = 1; id <= 4; id++)
        expect_done(id, IBV_WC_SUCCESS);
    end();
}
END_TEST

START_TEST(what_is_said_to_be_sure_is_so_for_a_time)
{
    begin_with(1);
    warm_up(0, 10);
    hush();
    world_run(&w, 1000);
    post(&sender, a_send(0, 1));
    post(&sender, word_write(0, 2, 101, 77));
    world_run(&w, 200);
    ck_assert_uint_eq(*word_of(0), 0);
    let_speak();
    expect_done(1, IBV_WC_SUCCESS);
    expect_done(2, IBV_WC_SUCCESS);
    see_word(0, 77);
    end();
}
END_TEST

/* Two buffers in turn, and a receive each time that one is done with: as on a real queue pair none
 * is written before. */
START_TEST(no_write_is_carried_out_before_the_messages_before_it_have_receives)
{
    begin_with(1);
    warm_up(0, 10); /* 8 are left */
    for (uint64_t i = 0; i < 20; i++) {
        post(&sender, a_send(0, 2 * i));
        post(&sender, word_write(0, 2 * i + 1, 101 + (uint32_t)i, i + 1));
    }
    world_run(&w, 3000);
    see_word(0, 8);
    for (uint64_t posted = 9; posted <= 20; posted++) {
        post_receive(posted, 0, BUFFER);
        world_run(&w, 600);
        see_word(0, posted);
    }
    for (uint64_t id = 0; id < 40; id++)
        expect_done(id, IBV_WC_SUCCESS);
    end();
}
END_TEST

START_TEST(what_is_refused_behind_a_message_fails_behind_it)
{
    begin_with(1);
    warm_up(0, 10);
    hush();
    post(&sender, a_send(0, 1));
    post(&sender, word_write(0, 2, 101, 77));
    struct schema_sq_desc bad = word_write(0, 3, 102, 78);
    world_take_away(&w, &receiver); /* so that it is the device that refuses it */
    post(&sender, bad);
    post(&sender, a_send(0, 4));
    post(&sender, word_write(0, 5, 103, 79));
    world_run(&w, 60);
    expect_nothing(1);
    let_speak();
    expect_done(1, IBV_WC_SUCCESS);
    struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_ne(e.status, IBV_WC_SUCCESS);
    for (uint64_t id = 3; id <= 5; id++)
        expect_done(id, IBV_WC_WR_FLUSH_ERR);
    end();
}
END_TEST

START_TEST(what_was_carried_out_behind_a_message_that_is_too_long_is_flushed)
{
    begin_with(1);
    warm_up(0, 10);
    hush();
    post(&sender, on(0, world_message(SCHEMA_OP_SEND, 1, 0, BUFFER + 1)));
    post(&sender, word_write(0, 2, 101, 77));
    post(&sender, on(0, word_write(1, 3, 102, 78)));
    see_word(0, 77);
    see_word(1, 78);
    let_speak();
    expect_done(1, IBV_WC_REM_INV_REQ_ERR);
    for (uint64_t id = 2; id <= 3; id++) {
        const struct schema_cqe e = world_done(&w, &sender, PATIENCE);
        ck_assert_uint_eq(e.wr_id, id);
        ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
        ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_UNDER_WAY); /* it may have been */
    }
    end();
}
END_TEST

/* Of a session that ends, or a VQP that goes, with some of each: out, done and held, and queued. */
START_TEST(what_is_held_ends_with_its_vqp_and_its_session)
{
    for (uint32_t passes = 0; passes < 40; passes++) {
        begin_with(2);
        warm_up(0, 10);
        warm_up(1, 10);
        hush();
        for (uint32_t i = 0; i < 6; i++)
            for (uint16_t v = 0; v < 2; v++) {
                post(&sender, a_send(v, 2 * i));
                post(&sender, word_write(v, 2 * i + 1, 101 + i, i + 1));
            }
        world_run(&w, passes);
        post(&sender, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = 0});
        world_run(&w, passes);
        let_speak();
        struct schema_cqe e;
        for (uint32_t done = 0; done < 12 && passes % 2 == 0;)
            if (world_poll(&w, &sender, &e, PATIENCE) && e.vqp == 1) {
                ck_assert_uint_eq(e.wr_id, done++);
                ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            }
        end();
    }
}
END_TEST

/* Who destroys a VQP may have another hear in its place at once, under its number. */
START_TEST(what_is_out_of_a_vqp_that_is_gone_is_none_of_the_one_in_its_place)
{
    world_fault = (struct fault_plan){.seed = 1};
    begin_with(1);
    warm_up(0, 10);
    hush();
    world_delay(&w, 100);
    post(&sender, a_send(0, 1));
    post(&sender, word_write(0, 2, 101, 77));
    world_run(&w, 10);
    see_word(0, 77);
    post(&sender, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = 0});
    post(&sender, on(0, world_message(SCHEMA_OP_RECV, 3, 0, 8)));
    world_run(&w, 400);
    world_delay(&w, 0);
    let_speak();
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
    post(&sender, a_send(0, 4));
    post(&sender, word_write(0, 5, 102, 78));
    struct schema_cqe e;
    do
        e = world_done(&w, &sender, PATIENCE);
    while (e.wr_id != 4);
    expect_done(5, IBV_WC_SUCCESS);
    see_word(0, 78);
    end();
    world_fault.seed = 0;
}
END_TEST

/* Large messages of one VQP, which are READ together, and small ones of another. Of the receives
 * one is set aside for the large ones, two are for the small ones, and one is anybody's. */
START_TEST(large_messages_together_take_none_that_is_set_aside)
{
    enum { LARGE = SCHEMA_MESSAGE_MOST + 1, LARGES = 4 /* and as many are left */, ASIDE = 2 };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    uint32_t small = 0, large = 0;
    begin_with(2);
    for (uint32_t i = 0; i < 6; i++)
        post_receive(i, 0, LARGE);
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, LARGE));
    expect_done(1, IBV_WC_SUCCESS);
    hear_all(1);
    warm_up(1, 0);
    for (uint32_t i = 6; i < 9; i++)
        post_receive(i, 0, LARGE);
    warm_up(0, 0);
    hush();
    for (uint64_t i = 0; i < LARGES; i++)
        post(&sender, world_message(SCHEMA_OP_SEND, 100 + i, 0, LARGE));
    world_run(&w, 20);
    for (uint32_t i = 0; i < ASIDE; i++) {
        post(&sender, a_send(1, 2 * i));
        post(&sender, word_write(1, 2 * i + 1, 101 + i, i + 1));
    }
    world_run(&w, 40);
    see_word(1, ASIDE);
    while (world_hear(&w, &receiver, &e, &from, 0)) {
        small += e.byte_len == 8;
        large += e.byte_len == LARGE;
    }
    ck_assert_uint_eq(small, ASIDE);
    ck_assert_uint_le(large, LARGES - ASIDE);
    let_speak();
    end();
}
END_TEST

/* What an endpoint says to itself says as much: nothing waits for what is before it. */
START_TEST(a_write_to_its_own_endpoint_goes_behind_messages_too)
{
    enum { MANY = 8 };
    uint32_t passes = 0, done = 0;
    struct schema_cqe e;
    be_patient();
    world_by_device = true;
    begin_own();
    key = world_register(&w, &receiver, ROOM, PAGE, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    warm_up(0, MANY + 2);
    for (uint32_t i = 0; i < MANY; i++) {
        post(&sender, a_send(0, 2 * i));
        post(&sender, on(0, word_write((uint16_t)i, 2 * i + 1, 101 + i, i + 1)));
    }
    for (; done < 2 * MANY; passes++) {
        ck_assert_uint_lt(passes, PATIENCE);
        world_run(&w, 1);
        while (world_poll(&w, &sender, &e, 0)) {
            ck_assert_uint_eq(e.wr_id, done++);
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        }
    }
    for (uint32_t i = 0; i < MANY; i++)
        see_word(i, i + 1);
    ck_assert(passes < MANY || getenv("KEDGE_SOFT_ORDER") != NULL); /* which takes its time */
    end();
    world_by_device = false;
}
END_TEST

/* Its worker pops nothing for long, so that it is refused though a receive is set aside for it.
 * Meanwhile nobody else takes that: what went behind it is there already. */
START_TEST(what_finds_no_room_keeps_what_is_set_aside_for_it)
{
    enum { POSTED = 35, HEARD = 31 /* there is no room for one more then */ };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    for (uint32_t waits = 0; waits < 220; waits += 20) {
        begin_with(2);
        warm_up(0, POSTED);
        for (uint64_t i = 0; i < HEARD; i++) {
            post(&sender, a_send(0, i));
            expect_done(i, IBV_WC_SUCCESS);
        }
        post(&sender, a_send(0, 100));
        post(&sender, word_write(0, 101, 101, 2 + HEARD + 1));
        world_run(&w, 60);
        see_word(0, 2 + HEARD + 1);
        expect_nothing(1500 + waits); /* longer than it is set aside */
        for (uint32_t i = 0; i < 2; i++) {
            post(&sender, a_send(1, 200 + 2 * i));
            post(&sender, word_write(1, 201 + 2 * i, 102 + i, i + 1));
        }
        expect_nothing(100);
        for (uint32_t i = 0; i < HEARD; i++)
            ck_assert(world_hear(&w, &receiver, &e, &from, 0));
        for (uint32_t i = 0; i < 1000; i++) {
            world_run(&w, 1);
            ck_assert_uint_le(*word_of(0) + *word_of(1), POSTED);
        }
        post_receive(POSTED, 0, BUFFER);
        for (uint32_t i = 0; i < 6; i++)
            ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        end();
    }
}
END_TEST

/* One that says no more may have had some set aside: nobody waits for these longer than he may. */
START_TEST(what_is_set_aside_is_so_for_a_time)
{
    enum { LEFT = 8 };
    struct world_worker other;
    begin_with(1);
    world_attach(&w, &other, 0, 1, TENANT);
    ck_assert_int_eq(world_connect(&w, &other, 0, 1), 0);
    world_send_to(&other, 0, SCHEMA_SEND_TO_PORT, PORT);
    warm_up(0, LEFT + 2);
    for (uint64_t i = 0; i < LEFT; i++)
        post(&other, world_message(SCHEMA_OP_SEND, i, 0, 8));
    world_run(&w, 300);
    struct schema_cqe e;
    uint32_t done = 0;
    while (world_poll(&w, &other, &e, 0))
        ck_assert_uint_eq(e.wr_id, done++);
    ck_assert_uint_ge(done, LEFT / 4);
    ck_assert_uint_lt(done, LEFT);
    for (; done < LEFT; done++) {
        e = world_done(&w, &other, 3000);
        ck_assert_uint_eq(e.wr_id, done);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
    world_detach(&w, &other);
    end();
}
END_TEST

/* ---- at random */

struct one {
    uint32_t posted, ended, sends, heard;
    bool is_send[EACH];
    uint32_t before[EACH]; /* SENDs before it */
};
static struct one all[VQPS];
static uint32_t buffers;

/* As on queue pairs that share receives: for each SEND that stands before a WRITE which is seen a
 * receive was posted. */
static void look(void)
{
    uint64_t sum = 0;
    for (uint32_t v = 0; v < VQPS; v++)
        sum += *word_of(v);
    ck_assert_uint_le(sum, buffers);
}

/* Where queue pairs break no WRITE may be out, which would end with them: READs show as much. */
static void post_next(uint16_t v, bool reads)
{
    struct one *o = &all[v];
    const uint32_t n = o->posted++;
    const uint32_t place = v * EACH + n;
    o->before[n] = o->sends;
    o->is_send[n] = random_below(2) == 0;
    if (o->is_send[n]) {
        const uint32_t says[2] = {v, o->sends++};
        memcpy(memory_of(&sender, 8192 + 8 * place), says, sizeof says);
        post(&sender, on(v, world_message(SCHEMA_OP_SEND, n, 8192 + 8 * place, 8)));
    } else if (reads) {
        post(&sender,
             on(v, world_rw(SCHEMA_OP_READ, n, 16384 + 8 * place, 8, key, ROOM + VQPS * 8)));
    } else {
        post(&sender, word_write(v, n, place, o->sends));
    }
}

static uint64_t seed_now; /* that a failure names */

static void take_completions(bool reads)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    while (world_poll(&w, &sender, &e, 0)) {
        struct one *o = &all[e.vqp];
        ck_assert_msg(e.status == IBV_WC_SUCCESS, "seed %lu: %u of %u, a %s, ended with %u for %u",
                      seed_now, (uint32_t)e.wr_id, e.vqp, o->is_send[e.wr_id] ? "SEND" : "READ",
                      e.status, e.vendor_err);
        ck_assert_uint_eq(e.wr_id, o->ended++);
        uint64_t saw;
        memcpy(&saw, memory_of(&sender, 16384 + 8 * (e.vqp * EACH + e.wr_id)), 8);
        if (reads && !o->is_send[e.wr_id])
            ck_assert_uint_le(o->before[e.wr_id], saw);
    }
    while (world_hear(&w, &receiver, &e, &from, 0)) {
        uint32_t says[2];
        memcpy(says, memory_of(&receiver, BUFFER * (e.wr_id % BUFFERS)), sizeof says);
        ck_assert_uint_lt(says[0], VQPS);
        ck_assert_uint_eq(says[1], all[says[0]].heard++);
    }
}

static uint32_t heard_of_all(void)
{
    uint32_t sum = 0;
    for (uint32_t v = 0; v < VQPS; v++)
        sum += all[v].heard;
    return sum;
}

/* Of those that send: at the other end requests are out, one of which ends with that then. */
static void break_something(void)
{
    struct world_node *n = &w.node[random_below(2)];
    if (n->connector == NULL || (!w.rc && random_below(2) == 0))
        world_break(&w, (uint32_t)(n - w.node), n->res.dci[random_below(n->res.dcis)]);
    else if (n->last_link != NULL && fab_qp_state(n->last_link) == IBV_QPS_RTS)
        world_break(&w, (uint32_t)(n - w.node), n->last_link);
}

static void run_with(uint64_t seed, bool breaks)
{
    uint32_t tries = 0;
    random_state = seed_now = seed;
    buffers = 0;
    memset(all, 0, sizeof all);
    world_fault = (struct fault_plan){.seed = seed};
    world_streams = seed % 4 == 3;
    begin_with(VQPS);
    for (uint32_t over = 0; over < VQPS * EACH;) {
        ck_assert_uint_lt(++tries, 100000);
        const uint16_t v = (uint16_t)random_below(VQPS);
        if (all[v].posted < EACH && all[v].posted - all[v].ended < AT_ONCE)
            post_next(v, breaks);
        if (buffers - heard_of_all() < BUFFERS && random_below(2) == 0) {
            const uint64_t count = ++buffers;
            memcpy(word_of(VQPS), &count, 8);
            post_receive(count - 1, BUFFER * ((count - 1) % BUFFERS), BUFFER);
        }
        if (breaks && random_below(20) == 0)
            break_something();
        world_delay(&w, random_below(4) == 0 ? random_below(30) : 0);
        for (uint32_t n = random_below(40); n > 0; n--) {
            world_run(&w, 1);
            look();
        }
        take_completions(breaks);
        over = 0;
        for (uint32_t i = 0; i < VQPS; i++)
            over += all[i].ended;
    }
    end();
    world_fault.seed = 0;
    world_streams = false;
}

START_TEST(no_write_is_seen_before_receives_are_posted_for_what_is_before_it)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_with(seed, false);
}
END_TEST

START_TEST(nor_does_a_read_see_less_whatever_breaks)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_with(seed, true);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_write_goes_behind_a_message_that_is_not_acknowledged)                                      \
    T(what_is_said_to_be_sure_is_so_for_a_time)                                                    \
    T(no_write_is_carried_out_before_the_messages_before_it_have_receives)                         \
    T(what_is_refused_behind_a_message_fails_behind_it)                                            \
    T(what_was_carried_out_behind_a_message_that_is_too_long_is_flushed)                           \
    T(what_is_held_ends_with_its_vqp_and_its_session)                                              \
    T(what_is_out_of_a_vqp_that_is_gone_is_none_of_the_one_in_its_place)                           \
    T(large_messages_together_take_none_that_is_set_aside)                                         \
    T(a_write_to_its_own_endpoint_goes_behind_messages_too)                                        \
    T(what_finds_no_room_keeps_what_is_set_aside_for_it)                                           \
    T(what_is_set_aside_is_so_for_a_time)                                                          \
    T(no_write_is_seen_before_receives_are_posted_for_what_is_before_it)                           \
    T(nor_does_a_read_see_less_whatever_breaks)
KEDGE_CHECK_MAIN("agent.lane.message_behind", TESTS)
