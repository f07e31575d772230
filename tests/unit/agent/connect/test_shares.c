/* SPDX-License-Identifier: Apache-2.0 */
/* What a node gets of a peer's responders, and connectors that have none. */
#include <errno.h>

#include "../../check_main.h"
#include "world.h"

/* However many it asks for: the others find one each. */
START_TEST(one_node_takes_no_more_than_half_of_what_a_peer_has)
{
    enum { HAS = 24, ASKS = 20 };
    struct world w = {0};
    w.node[1].config.responders = HAS;
    world_open(&w, NODES);
    for (uint32_t tag = 0; tag < ASKS; tag++)
        ask(&w, 0, 1, tag);
    world_run(&w, 500);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, HAS / 2 + 1);
    for (uint32_t i = 2; i < NODES; i++) {
        ask(&w, i, 1, 0);
        ck_assert_int_eq(await(&w, i, 0), 0);
        ck_assert_int_eq(read_through(&w, i, 1, 0), IBV_WC_SUCCESS);
    }
    world_run(&w, 20000); /* what it has more is refused, and nobody else loses any */
    ck_assert_uint_eq(stats_of(&w, 1).incoming, HAS / 2 + 1 + NODES - 2);
    ck_assert_int_eq(w.node[0].event[ASKS - 1].status, -EBUSY);
    for (uint32_t i = 2; i < NODES; i++)
        ck_assert_int_eq(read_through(&w, i, 1, 0), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

/* One for each of its lanes, where that is nearly all that there are. */
START_TEST(a_node_has_eight_whatever_it_leaves_to_others)
{
    enum { HAS = 9, EIGHT = 8 };
    struct world w = {0};
    w.node[1].config.responders = HAS;
    world_open(&w, 3);
    for (uint32_t tag = 0; tag < EIGHT; tag++)
        ask(&w, 0, 1, tag);
    for (uint32_t tag = 0; tag < EIGHT; tag++)
        ck_assert_int_eq(await(&w, 0, tag), 0);
    ask(&w, 0, 1, EIGHT);
    world_run(&w, 500);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, EIGHT);
    ask(&w, 2, 1, 0);
    ck_assert_int_eq(await(&w, 2, 0), 0);
    world_close(&w);
}
END_TEST

/* A further lane's: nobody is told where it hears, and who asks it all the same gets nothing. */
START_TEST(one_without_responders_asks_and_answers_nobody)
{
    struct world w = {0};
    w.node[0].only_asks = true;
    world_open(&w, 2);
    ask(&w, 0, 1, 7);
    ck_assert_int_eq(await(&w, 0, 7), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 7), IBV_WC_SUCCESS);
    ck_assert_uint_eq(stats_of(&w, 0).responders, 0);
    const uint64_t dropped = stats_of(&w, 0).dropped;
    ask(&w, 1, 0, 8);
    ck_assert_int_eq(await(&w, 1, 8), -ETIMEDOUT);
    ck_assert_uint_gt(stats_of(&w, 0).dropped, dropped);
    ck_assert_int_eq(read_through(&w, 0, 1, 7), IBV_WC_SUCCESS);
    connector_drop(w.node[0].c, w.node[0].event[7].qp, w.now_ns);
    world_run(&w, 100);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 0); /* its BYE came, and GONE to where it hears */
    ck_assert_uint_eq(stats_of(&w, 0).requests, 1);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_node_takes_no_more_than_half_of_what_a_peer_has)                                         \
    T(a_node_has_eight_whatever_it_leaves_to_others)                                               \
    T(one_without_responders_asks_and_answers_nobody)
KEDGE_CHECK_MAIN("agent.connect.shares", TESTS)
