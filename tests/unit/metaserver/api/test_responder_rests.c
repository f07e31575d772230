/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of queue pairs come back, and what is late for the one before must not reach the next. */
#include "world.h"

enum { MS = 1000000 };

static void tick(struct world *w, uint64_t ms)
{
    w->now += ms * MS;
    const uint64_t due_ns = meta_responders_due_ns(w->s.responders);
    const uint32_t spare = world_readers(w).spare, resting = world_readers(w).resting;
    meta_responders_tick(w->s.responders, w->now);
    ck_assert(due_ns <= w->now ||
              (world_readers(w).spare == spare && world_readers(w).resting == resting));
    world_run(w);
}

/* The device may have given it the number of one of the process before. */
START_TEST(no_queue_pair_is_connected_before_packets_of_the_process_before_have_had_their_time)
{
    struct world w;
    struct reader a;
    struct reply reply;
    world_open_resting(&w, 16, 500ull * MS);
    reader_open(&a, &w, 1);
    reader_put(&w, &a, 5, &reply);
    world_run(&w);
    ck_assert_uint_ge(world_readers(&w).resting, META_RESPONDERS_SPARES);
    tick(&w, 499);
    ck_assert_int_eq(reply.status, META_SERVICE_LATER);
    tick(&w, 1);
    world_run(&w);
    ck_assert_int_eq(reply.status, 201);
    reader_connect(&a, &reply);
    ck_assert(reader_finds(&a, &w, 1));
    reader_close(&a);
    world_close(&w);
}
END_TEST

START_TEST(one_that_is_made_after_another_went_rests_and_those_that_were_there_do_not)
{
    struct world w;
    struct reader a[META_RESPONDERS_SPARES + 1];
    struct reply reply;
    const uint32_t last = META_RESPONDERS_SPARES;
    world_open_resting(&w, 16, 500ull * MS);
    world_run(&w);
    for (int i = 0; i < 3; i++) /* they are known to rest, and then to have rested */
        tick(&w, 500);
    ck_assert_uint_eq(world_readers(&w).spare, META_RESPONDERS_SPARES);
    for (uint32_t i = 0; i <= last; i++) {
        reader_open(&a[i], &w, (uint8_t)(i + 1));
        a[i].node = 1; /* each takes the former one's place */
        reader_put(&w, &a[i], 5 + i, &reply);
        world_run(&w);
        ck_assert_int_eq(reply.status, i == 0 ? 201 : i < last ? 200 : META_SERVICE_LATER);
    }
    tick(&w, 100); /* by now the last one has gone */
    tick(&w, 499);
    ck_assert_int_eq(reply.status, META_SERVICE_LATER);
    tick(&w, 1);
    ck_assert_int_eq(reply.status, 200);
    for (uint32_t i = 0; i <= last; i++)
        reader_close(&a[i]);
    world_close(&w);
}
END_TEST

/* It may be there, and repeat a READ of the former connection. */
START_TEST(one_that_is_made_after_a_removed_nodes_went_rests_for_its_readers_bound_besides)
{
    struct world w;
    struct reader a;
    struct reply reply;
    world_open_resting(&w, 16, 500ull * MS);
    const uint64_t bound_ms = fab_bound_ns(&w.fab->caps, 13, 7) / MS;
    world_run(&w);
    for (int i = 0; i < 3; i++)
        tick(&w, 500);
    reader_open(&a, &w, 1);
    reader_put(&w, &a, 5, &reply);
    world_run(&w);
    ck_assert_int_eq(reply.status, 201);
    world_ask(&w, "DELETE", "/v1/nodes/n1", "", &reply);
    world_run(&w);
    ck_assert_int_eq(reply.status, 204);
    ck_assert_uint_eq(world_readers(&w).kept, 0);
    tick(&w, 100);
    ck_assert_uint_eq(world_readers(&w).resting, 1); /* that was made for the one that n1 took */
    tick(&w, 500 + bound_ms - 1);
    ck_assert_uint_eq(world_readers(&w).resting, 1);
    tick(&w, 2);
    ck_assert_uint_eq(world_readers(&w).resting, 0);
    reader_close(&a);
    world_close(&w);
}
END_TEST

/* Else they would be served eight at a time, whenever eight have rested. */
START_TEST(as_many_rest_at_once_as_are_waited_for_and_no_more_stay_than_there_were)
{
    enum { AGENTS = 16, TIMES = 3, ALL = TIMES * AGENTS };
    struct world w;
    struct reader a[AGENTS];
    struct reply reply[ALL];
    world_open_resting(&w, 64, 500ull * MS);
    tick(&w, 500);
    tick(&w, 500);
    for (uint8_t i = 0; i < AGENTS; i++)
        reader_open(&a[i], &w, i + 1);
    for (uint32_t i = 0; i < ALL; i++)
        reader_put(&w, &a[i % AGENTS], 5 + i / AGENTS, &reply[i]);
    world_run(&w);
    ck_assert_int_eq(reply[ALL - 1].status, META_SERVICE_LATER);
    tick(&w, 100);
    tick(&w, 500);
    for (uint32_t i = 0; i < ALL; i++)
        ck_assert_int_ne(reply[i].status, META_SERVICE_LATER);
    for (int i = 0; i < 3; i++)
        tick(&w, 500);
    ck_assert_uint_eq(world_readers(&w).kept, AGENTS);
    ck_assert_uint_eq(world_readers(&w).spare, META_RESPONDERS_SPARES);
    for (uint32_t i = 0; i < AGENTS; i++)
        reader_close(&a[i]);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(no_queue_pair_is_connected_before_packets_of_the_process_before_have_had_their_time)         \
    T(one_that_is_made_after_another_went_rests_and_those_that_were_there_do_not)                  \
    T(one_that_is_made_after_a_removed_nodes_went_rests_for_its_readers_bound_besides)             \
    T(as_many_rest_at_once_as_are_waited_for_and_no_more_stay_than_there_were)
KEDGE_CHECK_MAIN("metaserver readers rest", TESTS)
