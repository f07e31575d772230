/* SPDX-License-Identifier: Apache-2.0 */
/* Several connections for each peer, without DC and beside it: VQPs are spread over them, each
 * keeps its order while they break and nodes die, and what one suffers is no matter to the others.
 */
#include "../../check_main.h"
#include "world_hybrid.h"
#include "world_numbered.h"

static struct world *w;

static void open_world(const char *transport, const char *order)
{
    numbered_open(transport, order);
    w = numbered_world;
}

START_TEST(of_several_connections_each_keeps_its_order_while_they_break_and_nodes_die)
{
    for (uint64_t seed = 1; seed <= 1 + numbered_seeds() / 8; seed++) {
        world_connections_per_peer = 1u << seed % 4;
        (void)numbered_run("rc", 2000 + seed, 300);
    }
}
END_TEST

/* VQP 0 is pinned to another one than the first; then, with half of WORLD_LINKS in use, VQP 2 has
 * the first. */
START_TEST(the_break_of_one_of_several_connections_is_no_matter_to_the_others)
{
    world_connections_per_peer = 4;
    open_world("rc", NULL);
    numbered_use_both(200);
    ck_assert_uint_eq(world_stats(w, 0).links, 2);
    const uint64_t broken = world_stats(w, 0).qp_broken;
    for (int round = 0; round < 20; round++) {
        const struct fab_qp *const kept = world_link_of(w, 0, numbered_worker.id, 2);
        struct fab_qp *const qp = world_link_of(w, 0, numbered_worker.id, 0);
        ck_assert(qp != NULL && kept != NULL && qp != kept);
        world_break(w, 0, qp);
        world_fatal(w, 0, qp);
        numbered_use_both(200);
        ck_assert(!numbered_of[2].failed);
        ck_assert_ptr_eq(world_link_of(w, 0, numbered_worker.id, 2), kept);
    }
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, broken + 20);
    numbered_settle();
    ck_assert_uint_eq(numbered_of[2].bad_adds, 0);
    numbered_close();
}
END_TEST

/* With half of all connections in use who would have another one goes by the first. */
START_TEST(where_connections_are_short_the_first_is_used)
{
    world_connections_per_peer = 8;
    world_max_links = 2; /* one for VQP 0, and the first for VQP 2 */
    open_world("rc", NULL);
    numbered_use_both(200);
    numbered_of[3].node = numbered_of[0].node; /* and VQP 3, which would have another one */
    numbered_use(3, 400);
    ck_assert_uint_eq(world_stats(w, 0).links, 2);
    ck_assert_ptr_eq(world_link_of(w, 0, numbered_worker.id, 2),
                     world_link_of(w, 0, numbered_worker.id, 3));
    ck_assert_ptr_ne(world_link_of(w, 0, numbered_worker.id, 0),
                     world_link_of(w, 0, numbered_worker.id, 3));
    ck_assert_uint_eq(world_stats(w, 0).links_evicted, 0);
    numbered_settle();
    ck_assert(!numbered_of[0].failed && !numbered_of[2].failed);
    numbered_close();
}
END_TEST

START_TEST(a_connection_beside_the_first_goes_when_it_is_idle)
{
    world_connections_per_peer = 4;
    open_world("rc", NULL);
    numbered_use_both(200);
    ck_assert_uint_eq(world_stats(w, 0).links, 2);
    numbered_settle();
    for (int i = 0; i < 30; i++)
        world_sleep(w, 1000000000);
    ck_assert_uint_lt(world_stats(w, 0).links, 2);
    numbered_use_both(200);
    numbered_settle();
    ck_assert(!numbered_of[0].failed && !numbered_of[2].failed);
    numbered_close();
}
END_TEST

/* Of as many connections as there may be half are one for each endpoint. */
START_TEST(nor_do_several_beside_dc_while_queue_pairs_break_and_nodes_die_restart_and_refuse)
{
    uint64_t transfers = 0;
    for (uint64_t seed = 1; seed <= numbered_seeds(); seed++) {
        world_connections_per_peer = 2u << seed % 3;
        world_max_links = 4 + (uint32_t)seed % 5;
        transfers += numbered_run("hybrid", 3000 + seed, seed % 2 != 0 ? 300 : 0);
    }
    ck_assert_uint_gt(transfers, 15 * numbered_seeds());
}
END_TEST

static void open_beside_dc(const char *order)
{
    world_connections_per_peer = 4;
    world_max_links = 8;
    open_world("hybrid", order);
    numbered_use_both(20);
    ck_assert_uint_eq(world_stats(w, 0).links, 0);
    world_transfer_of(w, 0, numbered_worker.id, 0);
    numbered_use_both(400);
    ck_assert_uint_eq(world_stats(w, 0).links, 3); /* VQPs 0 and 2 have one each */
    ck_assert_uint_eq(world_stats(w, 0).links_taken, 1);
    ck_assert_ptr_ne(world_link_of(w, 0, numbered_worker.id, 0),
                     world_link_of(w, 0, numbered_worker.id, 2));
}

START_TEST(an_endpoint_that_goes_back_to_dc_leaves_all_of_its_connections)
{
    open_beside_dc(NULL);
    const uint64_t done = numbered_of[0].done;
    world_transfer_of(w, 0, numbered_worker.id, 0);
    numbered_use_both(400);
    ck_assert_ptr_null(world_link_of(w, 0, numbered_worker.id, 0));
    ck_assert_ptr_null(world_link_of(w, 0, numbered_worker.id, 2));
    ck_assert_uint_gt(numbered_of[0].done, done);
    numbered_settle();
    for (int i = 0; i < 5; i++)
        world_sleep(w, 1000000000);
    ck_assert_uint_eq(world_stats(w, 0).links, 0);
    ck_assert_uint_eq(world_stats(w, 0).links_left, 1);
    ck_assert(!numbered_of[0].failed && !numbered_of[2].failed);
    numbered_close();
}
END_TEST

/* Nor is that of the second itself, by which VQP 3 goes. */
START_TEST(of_several_beside_dc_the_break_of_one_is_no_matter_to_the_others)
{
    open_beside_dc(NULL);
    numbered_of[3].node = numbered_of[0].node;
    numbered_use(3, 100);
    for (int round = 0; round < 20; round++) {
        struct fab_qp *const qp = world_link_of(w, 0, numbered_worker.id, round % 2 != 0 ? 3 : 0);
        const struct fab_qp *const kept = world_link_of(w, 0, numbered_worker.id, 2);
        ck_assert(qp != NULL && kept != NULL && qp != kept);
        world_break(w, 0, qp);
        world_fatal(w, 0, qp);
        numbered_use_both(200);
        numbered_use(3, 200);
        ck_assert(!numbered_of[2].failed);
        ck_assert_ptr_eq(world_link_of(w, 0, numbered_worker.id, 2), kept);
    }
    numbered_settle();
    ck_assert_uint_eq(numbered_of[2].bad_adds, 0);
    ck_assert_uint_eq(world_stats(w, 0).links_left, 0);
    numbered_close();
}
END_TEST

/* Its endpoint is in another life: VQPs go on by DC, and what led to the former one goes. */
START_TEST(several_beside_dc_go_with_the_life_that_they_lead_to)
{
    open_beside_dc(NULL);
    numbered_settle();
    numbered_restart(1);
    numbered_make_known(1);
    numbered_use_both(4000);
    numbered_settle();
    ck_assert_ptr_null(world_link_of(w, 0, numbered_worker.id, 0));
    ck_assert_ptr_null(world_link_of(w, 0, numbered_worker.id, 2));
    for (int i = 0; i < 30; i++)
        world_sleep(w, 1000000000);
    ck_assert_uint_eq(world_stats(w, 0).links, 0);
    numbered_use_both(100);
    numbered_settle();
    numbered_close();
}
END_TEST

/* No worker goes by the second itself, since all VQPs are pinned to others: what they have out is
 * its endpoint's use all the same. */
START_TEST(who_uses_another_one_keeps_the_second)
{
    open_beside_dc("late:1");
    numbered_settle();
    for (int i = 0; i < 150000; i++) {
        numbered_use(0, 1);
        w->now_ns += 100000; /* 15 s in all */
    }
    ck_assert_uint_eq(world_stats(w, 0).links_left, 0);
    ck_assert_ptr_nonnull(world_link_of(w, 0, numbered_worker.id, 0));
    numbered_settle();
    numbered_close();
}
END_TEST

START_TEST(half_of_all_connections_are_the_first_of_endpoints)
{
    world_connections_per_peer = 2;
    world_max_links = 2;
    open_world("hybrid", NULL);
    numbered_use(0, 20);
    numbered_use(1, 20);
    world_transfer_of(w, 0, numbered_worker.id, 0);
    numbered_use(0, 200);
    world_transfer_of(w, 0, numbered_worker.id, 1);
    numbered_use(1, 200);
    ck_assert_uint_eq(world_stats(w, 0).links, 1);
    ck_assert_ptr_nonnull(world_link_of(w, 0, numbered_worker.id, 0));
    numbered_settle();
    numbered_close();
}
END_TEST

/* It waits for a connection that nobody answers for, and its endpoint goes back to DC. */
START_TEST(who_waits_for_one_beside_dc_goes_on_when_that_is_left)
{
    world_connections_per_peer = 4;
    world_max_links = 8;
    open_world("hybrid", NULL);
    numbered_use(2, 20);
    numbered_settle();
    world_transfer_of(w, 0, numbered_worker.id, 2);
    while (world_stats(w, 0).links == 0)
        numbered_pass();
    connector_free(w->node[1].connector);
    w->node[1].connector = NULL;
    numbered_use(2, 100);
    const uint64_t done = numbered_of[2].done;
    numbered_use(2, 10);
    ck_assert_uint_eq(numbered_of[2].done, done);
    world_transfer_of(w, 0, numbered_worker.id, 2);
    numbered_use(2, 50);
    ck_assert_uint_gt(numbered_of[2].done, done);
    numbered_settle();
    numbered_close();
}
END_TEST

START_TEST(a_peer_takes_all_of_its_connections_along)
{
    open_beside_dc(NULL);
    numbered_settle();
    ck_assert(world_flows_leave(w, 0, numbered_worker.id, 0));
    ck_assert_uint_eq(world_stats(w, 0).links, 0);
    numbered_use_both(100);
    numbered_settle();
    ck_assert(!numbered_of[0].failed && !numbered_of[2].failed);
    numbered_close();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(of_several_connections_each_keeps_its_order_while_they_break_and_nodes_die)                  \
    T(the_break_of_one_of_several_connections_is_no_matter_to_the_others)                          \
    T(where_connections_are_short_the_first_is_used)                                               \
    T(a_connection_beside_the_first_goes_when_it_is_idle)                                          \
    T(nor_do_several_beside_dc_while_queue_pairs_break_and_nodes_die_restart_and_refuse)           \
    T(an_endpoint_that_goes_back_to_dc_leaves_all_of_its_connections)                              \
    T(of_several_beside_dc_the_break_of_one_is_no_matter_to_the_others)                            \
    T(several_beside_dc_go_with_the_life_that_they_lead_to)                                        \
    T(who_uses_another_one_keeps_the_second)                                                       \
    T(half_of_all_connections_are_the_first_of_endpoints)                                          \
    T(who_waits_for_one_beside_dc_goes_on_when_that_is_left)                                       \
    T(a_peer_takes_all_of_its_connections_along)
KEDGE_CHECK_MAIN("agent.lane.several_links", TESTS)
