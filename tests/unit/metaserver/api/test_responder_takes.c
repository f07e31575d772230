/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver with too few queue pairs remembers of who got whose for its first lanes. */
#include <stdio.h>
#include <string.h>

#include "room_world.h"

/* It gets its own further lane's, and leaves, more often than is remembered. */
START_TEST(who_gets_its_own_again_and_again_is_known_to_have_got_anothers)
{
    enum { TIMES = 70 };
    struct world w;
    struct reader honest[3], other, mine[3];
    world_open_small(&w, MAX_READERS, MAX_QP);
    w.fab->caps.time_wait_ns = 0; /* all of it in less than a minute */
    for (uint8_t i = 0; i < 3; i++) {
        open_reader(&honest[i], &w, (uint8_t)(i + 1), 1, i);
        open_reader(&mine[i], &w, (uint8_t)(i + 6), HOSTILE, i == 1);
        mine[i].pools = 2;
        mine[i].pool = i == 2;
        reader_join(&w, &honest[i], 5, i == 0 ? 201 : 200);
    }
    reader_join(&w, &mine[0], 5, 201);
    reader_join(&w, &mine[2], 5, 200);
    ck_assert_uint_eq(world_readers(&w).taken, 1);
    ck_assert(!reads(&honest[2], &w));
    leave(&w);
    for (uint32_t i = 0; i < TIMES; i++) {
        join_anew(&w, &mine[0], 201);
        join_anew(&w, &mine[1], 200);
        join_anew(&w, &mine[2], 200);
        ck_assert_uint_eq(world_readers(&w).taken, i + 2);
        ck_assert(reads(&honest[1], &w));
        leave(&w);
    }
    open_reader(&other, &w, 12, 2, 0);
    reader_join(&w, &other, 5, 201);
    join_anew(&w, &mine[0], 201);
    reader_renew(&mine[2]);
    refuse(&w, &mine[2], "another node's further lane of late");
    ck_assert(reads(&honest[0], &w) && reads(&honest[1], &w));
    reader_close(&other);
    for (uint8_t i = 0; i < 3; i++) {
        reader_close(&honest[i]);
        reader_close(&mine[i]);
    }
    world_close(&w);
}
END_TEST

/* One pool after another, each of which has got none yet. */
START_TEST(who_calls_its_pool_another_each_time_gets_no_more_than_it_may_have_pools)
{
    enum { TIMES = 40 };
    struct world w;
    struct reader first[2], further[2], mine;
    struct reply reply;
    uint32_t got = 0;
    world_open_small(&w, MAX_READERS, MAX_QP);
    w.fab->caps.time_wait_ns = 0; /* all of it in less than a minute */
    for (uint8_t i = 0; i < 2; i++)
        open_reader(&first[i], &w, (uint8_t)(i + 1), i + 1, 0);
    for (uint8_t i = 0; i < 2; i++)
        open_reader(&further[i], &w, (uint8_t)(i + 6), 1, (uint8_t)(i + 1));
    open_reader(&mine, &w, 9, HOSTILE, 0);
    mine.pools = 1;
    for (uint8_t i = 0; i < 2; i++)
        reader_join(&w, &first[i], 5, 201);
    for (uint8_t i = 0; i < 2; i++)
        reader_join(&w, &further[i], 5, 200);
    for (; mine.calls < TIMES; mine.calls++) {
        reader_renew(&mine);
        reader_put(&w, &mine, 5, &reply);
        world_settle(&w);
        if (reply.status != 201)
            continue;
        ck_assert_uint_eq(world_readers(&w).taken, ++got);
        leave(&w);
        join_anew(&w, &further[reads(&further[0], &w)], 200);
    }
    ck_assert_uint_eq(got, META_RESPONDERS_OF_NODE);
    ck_assert(reads(&further[0], &w) && reads(&further[1], &w));
    for (uint8_t i = 0; i < 2; i++) {
        reader_close(&first[i]);
        reader_close(&further[i]);
    }
    reader_close(&mine);
    world_close(&w);
}
END_TEST

/* All together more than is remembered: none of them has its own forgotten, and gets on. And who
 * has got none gets one all the same. */
START_TEST(several_that_mean_harm_get_no_more_than_is_remembered)
{
    enum { NODES = 5, ROUNDS = 20, REMEMBERED = 64 };
    struct world w;
    struct reader first[2], further[2], mine[NODES], other;
    struct reply reply;
    uint32_t got = 0;
    world_open_small(&w, MAX_READERS, MAX_QP);
    w.fab->caps.time_wait_ns = 0; /* all of it in less than a minute */
    for (uint8_t i = 0; i < 2; i++)
        open_reader(&first[i], &w, (uint8_t)(i + 1), i + 1, 0);
    for (uint8_t i = 0; i < 2; i++)
        open_reader(&further[i], &w, (uint8_t)(i + 3), 1, (uint8_t)(i + 1));
    for (uint8_t i = 0; i < NODES; i++) {
        open_reader(&mine[i], &w, (uint8_t)(i + 6), (uint8_t)(HOSTILE + i), 0);
        mine[i].pools = 1;
    }
    open_reader(&other, &w, 5, 3, 0);
    for (uint8_t i = 0; i < 2; i++)
        reader_join(&w, &first[i], 5, 201);
    for (uint8_t i = 0; i < 2; i++)
        reader_join(&w, &further[i], 5, 200);
    for (uint32_t n = 0; n < NODES * ROUNDS; n++) {
        struct reader *a = &mine[n % NODES];
        a->calls = n / NODES;
        reader_renew(a);
        reader_put(&w, a, 5, &reply);
        world_settle(&w);
        if (reply.status != 201)
            continue;
        ck_assert_uint_eq(world_readers(&w).taken, ++got);
        leave_as(&w, a->node);
        join_anew(&w, &further[reads(&further[0], &w)], 200);
    }
    ck_assert_uint_eq(got, REMEMBERED);
    reader_join(&w, &other, 5, 201);
    ck_assert_uint_eq(world_readers(&w).taken, REMEMBERED + 1);
    for (uint8_t i = 0; i < 2; i++) {
        reader_close(&first[i]);
        reader_close(&further[i]);
    }
    for (uint8_t i = 0; i < NODES; i++)
        reader_close(&mine[i]);
    reader_close(&other);
    world_close(&w);
}
END_TEST

/* Its agent hears of it when it renews its lease; meanwhile another node gets its own more often
 * than is remembered. */
START_TEST(who_gets_its_own_again_and_again_keeps_nobody_from_hearing_of_its_own)
{
    enum { TIMES = 70 };
    struct world w;
    struct reader honest[2], other[2], mine[2];
    struct reply reply;
    char broken[64];
    unsigned qpn = 0;
    world_open_small(&w, MAX_READERS, MAX_QP);
    w.fab->caps.time_wait_ns = 0;
    for (uint8_t i = 0; i < 2; i++) {
        open_reader(&honest[i], &w, (uint8_t)(i + 1), 1, i);
        open_reader(&other[i], &w, (uint8_t)(i + 4), (uint8_t)(i + 2), 0);
        open_reader(&mine[i], &w, (uint8_t)(i + 8), HOSTILE, i);
        reader_join(&w, &other[i], 5, 201);
    }
    reader_put(&w, &honest[1], 5, &reply);
    world_settle(&w);
    ck_assert_int_eq(sscanf(strstr(reply.body, "\"rc\":{"), "\"rc\":{\"qpn\":%u", &qpn), 1);
    reader_join(&w, &mine[1], 5, 201);
    reader_join(&w, &honest[0], 5, 200);
    ck_assert_uint_eq(world_readers(&w).taken, 1);
    ck_assert(reads(&mine[1], &w));
    for (uint32_t i = 0; i < TIMES; i++) {
        join_anew(&w, &mine[0], 200);
        ck_assert_uint_eq(world_readers(&w).taken, i + 2);
        leave(&w);
        join_anew(&w, &mine[1], 201);
    }
    snprintf(broken, sizeof broken, "\"broken_qpns\":[%u]", qpn);
    renew(&w, &honest[0], &reply);
    ck_assert_msg(says(&reply, broken), "%s", reply.body);
    for (uint8_t i = 0; i < 2; i++) {
        reader_close(&honest[i]);
        reader_close(&other[i]);
        reader_close(&mine[i]);
    }
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_gets_its_own_again_and_again_is_known_to_have_got_anothers)                              \
    T(who_calls_its_pool_another_each_time_gets_no_more_than_it_may_have_pools)                    \
    T(several_that_mean_harm_get_no_more_than_is_remembered)                                       \
    T(who_gets_its_own_again_and_again_keeps_nobody_from_hearing_of_its_own)
KEDGE_CHECK_MAIN("metaserver readers and who got whose", TESTS)
