/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: raised once for each message, by who shows what names them. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "base/random.h"
#include "message_pair.h"
#include "world_trio.h"

enum { RAISES = 3000, AHEAD = 24 };

static uint64_t name, secret;

static int make(struct world_worker *k)
{
    struct schema_reply reply;
    const int status =
        world_ask(&w, k, (struct schema_sq_desc){.op = SCHEMA_OP_COUNTER_NEW}, &reply);
    name = reply.value[0];
    secret = reply.value[1];
    return status;
}

static int give_back(struct world_worker *k, uint64_t which)
{
    return world_ask(
        &w, k, (struct schema_sq_desc){.op = SCHEMA_OP_COUNTER_FREE, .counter = {.name = which}},
        NULL);
}

static void address(struct world_worker *k, uint64_t to, uint64_t by)
{
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_SEND_TO,
        .slots = 1,
        .send_to = {.kind = SCHEMA_SEND_TO_COUNTER, .to = to, .secret = by}};
    ck_assert_int_eq(world_connect(&w, k, 0, 1), 0);
    world_post(k, &d);
}

static void begin_with_counter(void)
{
    begin();
    ck_assert_int_eq(make(&receiver), 0);
    ck_assert_uint_ne(name, 0);
    address(&sender, name, secret);
}

static const struct schema_session_ro *page(const struct world_worker *k)
{
    return k->ro.addr;
}

static uint64_t value_of(uint64_t which)
{
    return atomic_load(&page(&receiver)->counter[schema_counter_number(which)]);
}

static struct schema_cqe raise(struct world_worker *k)
{
    post(k, world_message(SCHEMA_OP_SEND, 9, 0, 0));
    return world_done(&w, k, 100000);
}

START_TEST(a_message_raises_the_counter_by_one_and_takes_no_receive)
{
    struct schema_cqe e;
    begin_with_counter();
    post_receive(7, 0, 64);
    for (uint64_t n = 1; n <= 100; n++) {
        e = raise(&sender);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.opcode, IBV_WC_SEND);
        ck_assert_uint_eq(value_of(name), n);
    }
    ck_assert_uint_eq(atomic_load(&page(&receiver)->raised), 100);
    ck_assert(!world_poll(&w, &receiver, &e, 1000));
    end();
}
END_TEST

/* As one that waits in kedge_counter_wait() does. */
START_TEST(a_worker_that_sleeps_is_woken_for_it)
{
    begin_with_counter();
    struct schema_session_rw *rw = receiver.rw.addr;
    const uint32_t before = atomic_load(&page(&receiver)->wake);
    atomic_store(&rw->want_wake, 1);
    ck_assert_uint_eq(raise(&sender).status, IBV_WC_SUCCESS);
    ck_assert_uint_ne(atomic_load(&page(&receiver)->wake), before);
    end();
}
END_TEST

/* What it sees is what the lane has counted, whatever it writes there. */
START_TEST(who_scribbles_on_its_counter_harms_nothing)
{
    begin_with_counter();
    ck_assert_uint_eq(raise(&sender).status, IBV_WC_SUCCESS);
    struct schema_session_ro *ro = receiver.ro.addr;
    atomic_store(&ro->counter[schema_counter_number(name)], 777);
    ck_assert_uint_eq(raise(&sender).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(value_of(name), 2);
    end();
}
END_TEST

static void expect_refused(uint64_t to, uint64_t by)
{
    address(&sender, to, by);
    const struct schema_cqe e = raise(&sender);
    ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_PORT);
}

START_TEST(nobody_else_raises_it_and_all_hear_the_same)
{
    begin_with_counter();
    expect_refused(name, secret ^ 1);
    expect_refused(name, 0);
    expect_refused(name ^ (uint64_t)1 << 63, secret); /* another random part */
    expect_refused(name + 1, secret);                 /* another place, which is free */
    expect_refused(name + SCHEMA_COUNTERS, secret);   /* and none at all */
    expect_refused(name + (1 << 16), secret);         /* of a session that is none */
    expect_refused(name | 0xffff0000, secret);
    ck_assert_uint_eq(value_of(name), 0);
    ck_assert_uint_eq(atomic_load(&page(&receiver)->raised), 0);
    end();
}
END_TEST

/* A token is the grant. */
START_TEST(who_has_its_name_and_secret_raises_it_of_whatever_tenant)
{
    begin_with_counter();
    struct world_worker other;
    world_attach(&w, &other, 0, 1, TENANT + 1);
    address(&other, name, secret);
    ck_assert_uint_eq(raise(&other).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(value_of(name), 1);
    world_detach(&w, &other);
    end();
}
END_TEST

START_TEST(a_counter_that_is_given_back_is_raised_no_more_nor_is_the_next_one_there)
{
    begin_with_counter();
    const uint64_t former = name, former_secret = secret;
    ck_assert_uint_eq(raise(&sender).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(give_back(&receiver, name ^ (uint64_t)1 << 40), -ENOENT);
    ck_assert_int_eq(give_back(&receiver, name), 0);
    ck_assert_int_eq(give_back(&receiver, name), -ENOENT);
    ck_assert_int_eq(give_back(&receiver, 0), -ENOENT);
    ck_assert_uint_eq(raise(&sender).status, IBV_WC_REM_OP_ERR);
    ck_assert_int_eq(make(&receiver), 0);
    ck_assert_uint_eq(schema_counter_number(name), schema_counter_number(former));
    ck_assert_uint_ne(name, former);
    ck_assert_uint_eq(value_of(name), 0);
    expect_refused(former, former_secret);
    ck_assert_uint_eq(value_of(name), 0);
    end();
}
END_TEST

START_TEST(a_session_has_so_many_and_what_it_had_ends_with_it)
{
    begin();
    for (uint32_t i = 0; i < SCHEMA_COUNTERS; i++)
        ck_assert_int_eq(make(&receiver), 0);
    const uint64_t last = name, its_secret = secret;
    ck_assert_int_eq(make(&receiver), -EDQUOT);
    address(&sender, last, its_secret);
    ck_assert_uint_eq(raise(&sender).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(value_of(last), 1);
    world_detach(&w, &receiver);
    ck_assert_uint_eq(raise(&sender).status, IBV_WC_REM_OP_ERR);
    world_attach(&w, &receiver, 1, 0, TENANT); /* in the place of that one */
    expect_refused(last, its_secret);
    end();
}
END_TEST

START_TEST(what_has_a_byte_or_an_immediate_raises_none)
{
    begin_with_counter();
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).vendor_err, SCHEMA_REASON_DESCRIPTOR);
    address(&sender, name, secret);
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 2, 0, 0);
    d.flags |= SCHEMA_OP_IMM;
    post(&sender, d);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).vendor_err, SCHEMA_REASON_DESCRIPTOR);
    ck_assert_uint_eq(value_of(name), 0);
    end();
}
END_TEST

/* Now and then a queue pair of the sender breaks, or the one of datagrams of either end. */
START_TEST(each_is_counted_once_however_often_queue_pairs_break)
{
    struct base_prng prng;
    struct schema_cqe e;
    uint64_t sent = 0, done = 0, breaks = 0;
    base_prng_seed(&prng, 7);
    world_fault = (struct fault_plan){.seed = 7};
    begin_with_counter();
    while (done < RAISES) {
        for (; sent < RAISES && sent - done < AHEAD; sent++)
            post(&sender, world_message(SCHEMA_OP_SEND, sent, 0, 0));
        if (base_prng_below(&prng, 8) == 0) {
            world_break_ud(&w, (uint32_t)base_prng_below(&prng, 2));
            breaks++;
        } else if (base_prng_below(&prng, 8) == 0) {
            world_break(&w, 0, w.node[0].res.dci[base_prng_below(&prng, w.node[0].res.dcis)]);
            breaks++;
        }
        world_delay(&w, base_prng_below(&prng, 4) == 0 ? (uint32_t)base_prng_below(&prng, 30) : 0);
        world_run(&w, (uint32_t)base_prng_below(&prng, 40)); /* into the middle of what is out */
        while (world_poll(&w, &sender, &e, 0)) {
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.wr_id, done);
            done++;
            ck_assert_uint_ge(value_of(name), done);
            ck_assert_uint_le(value_of(name), sent);
        }
    }
    ck_assert_uint_eq(value_of(name), RAISES);
    ck_assert_uint_gt(breaks, 10);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_message_raises_the_counter_by_one_and_takes_no_receive)                                    \
    T(a_worker_that_sleeps_is_woken_for_it)                                                        \
    T(who_scribbles_on_its_counter_harms_nothing)                                                  \
    T(nobody_else_raises_it_and_all_hear_the_same)                                                 \
    T(who_has_its_name_and_secret_raises_it_of_whatever_tenant)                                    \
    T(a_counter_that_is_given_back_is_raised_no_more_nor_is_the_next_one_there)                    \
    T(a_session_has_so_many_and_what_it_had_ends_with_it)                                          \
    T(what_has_a_byte_or_an_immediate_raises_none)                                                 \
    T(each_is_counted_once_however_often_queue_pairs_break)
KEDGE_CHECK_MAIN("agent.lane.raises", TESTS)
