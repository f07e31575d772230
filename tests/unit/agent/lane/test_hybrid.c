/* SPDX-License-Identifier: Apache-2.0 */
/* DC and connections in one lane: VQPs go from one to the other and back under continuous traffic
 * whose data is numbered, while queue pairs break and nodes restart, fall silent and refuse.
 * Nothing is lost, repeated or reordered. */
#include "../../check_main.h"
#include "world_hybrid.h"
#include "world_numbered.h"

static struct world *w;

static void open_world(const char *order)
{
    numbered_open("hybrid", order);
    w = numbered_world;
}

START_TEST(transfers_lose_repeat_and_reorder_nothing)
{
    uint64_t transfers = 0;
    for (uint64_t seed = 1; seed <= numbered_seeds(); seed++)
        transfers += numbered_run("hybrid", seed, 0);
    ck_assert_uint_gt(transfers, 100 * numbered_seeds());
}
END_TEST

/* Its NIC acknowledges what its memory does not show yet: a READ by the other queue pair, and a
 * flag behind data, must not be ahead of that. */
START_TEST(nor_do_they_where_writes_are_acknowledged_before_they_are_seen)
{
    uint64_t transfers = 0;
    numbered_kind = "unseen-writes";
    for (uint64_t seed = 1; seed <= numbered_seeds(); seed++)
        transfers += numbered_run("hybrid", seed, 0);
    numbered_kind = "late";
    ck_assert_uint_gt(transfers, 150 * numbered_seeds());
}
END_TEST

START_TEST(nor_do_they_while_queue_pairs_break_and_nodes_die_restart_and_refuse)
{
    uint64_t transfers = 0;
    for (uint64_t seed = 1; seed <= numbered_seeds(); seed++)
        transfers += numbered_run("hybrid", 1000 + seed, 300);
    ck_assert_uint_gt(transfers,
                      15 * numbered_seeds()); /* over 60 of each where nothing else runs */
}
END_TEST

START_TEST(what_is_used_much_gets_a_connection_by_itself_and_loses_it_when_it_is_idle)
{
    open_world(NULL);
    numbered_use(0, 100000); /* 100 ms */
    ck_assert_uint_eq(world_stats(w, 0).links, 1);
    ck_assert_uint_eq(world_stats(w, 0).links_taken, 1);
    numbered_settle();
    for (int i = 0; i < 40; i++)
        world_sleep(w, 1000000000);
    ck_assert_uint_eq(world_stats(w, 0).links, 0);
    ck_assert_uint_eq(world_stats(w, 0).links_left, 1);
    numbered_use(0, 100); /* and by DC it goes on */
    numbered_settle();
    numbered_close();
}
END_TEST

START_TEST(nodes_with_and_without_dc_are_reached_in_one_cluster)
{
    world_no_rc[1] = true; /* an agent of DC alone */
    world_no_dc[2] = true; /* a device without DC */
    open_world(NULL);
    numbered_use(0, 60000);
    ck_assert_uint_eq(world_stats(w, 0).links, 0);
    numbered_use(1, 200);
    ck_assert_uint_eq(world_stats(w, 0).links, 1);
    ck_assert_uint_eq(world_stats(w, 0).links_taken, 0); /* it has no other way */
    numbered_settle();
    ck_assert_uint_gt(numbered_of[0].good_adds, 0);
    ck_assert_uint_gt(numbered_of[1].good_adds, 0);
    numbered_close();
}
END_TEST

/* A handshake that is not answered, or refused: DC goes on, and the endpoint is not held dead. */
START_TEST(a_connection_that_cannot_be_made_costs_nothing_but_the_try)
{
    open_world(NULL);
    numbered_use(0, 100);
    connector_free(w->node[1].connector);
    w->node[1].connector = NULL;
    numbered_use(0, 300000);
    const struct lane_stats stats = world_stats(w, 0);
    ck_assert_uint_ge(stats.paths_failed, 1);
    ck_assert_uint_eq(stats.links_taken, 0);
    ck_assert_uint_eq(stats.lookups_again, 0);
    ck_assert(!numbered_of[0].failed);
    numbered_settle();
    numbered_close();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(transfers_lose_repeat_and_reorder_nothing)                                                   \
    T(nor_do_they_where_writes_are_acknowledged_before_they_are_seen)                              \
    T(nor_do_they_while_queue_pairs_break_and_nodes_die_restart_and_refuse)                        \
    T(what_is_used_much_gets_a_connection_by_itself_and_loses_it_when_it_is_idle)                  \
    T(nodes_with_and_without_dc_are_reached_in_one_cluster)                                        \
    T(a_connection_that_cannot_be_made_costs_nothing_but_the_try)
KEDGE_CHECK_MAIN("agent.lane.hybrid", TESTS)
