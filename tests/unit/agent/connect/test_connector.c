/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "fabric/fault.h"
#include "world.h"

START_TEST(a_connection_carries_a_read)
{
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 5);
    ck_assert_int_eq(await(&w, 0, 5), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 5), IBV_WC_SUCCESS);
    ck_assert_uint_eq(stats_of(&w, 0).outgoing, 1);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 1);
    ck_assert_uint_eq(stats_of(&w, 1).outgoing, 0);
    world_close(&w);
}
END_TEST

START_TEST(two_nodes_that_ask_each_other_at_once_both_get_one)
{
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 1);
    ask(&w, 1, 0, 2);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    ck_assert_int_eq(await(&w, 1, 2), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 1), IBV_WC_SUCCESS);
    ck_assert_int_eq(read_through(&w, 1, 0, 2), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

START_TEST(a_connection_has_what_both_ends_take_and_one_that_fails_gets_what_they_take_now)
{
    const struct fault_plan narrow = {.mtu = IBV_MTU_512};
    struct world w = {0};
    world_open(&w, 2);
    connector_set_mtu(w.node[1].c, IBV_MTU_1024);
    ask(&w, 0, 1, 1);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    ck_assert_int_eq(read_bytes(&w, 0, 1, 1, 2000), IBV_WC_SUCCESS);
    fault_set_plan(w.node[0].fab, &narrow); /* 1024 is too much now */
    ck_assert_int_eq(read_bytes(&w, 0, 1, 1, 8), IBV_WC_SUCCESS);
    ck_assert_int_eq(read_bytes(&w, 0, 1, 1, 2000), IBV_WC_RETRY_EXC_ERR);
    connector_drop(w.node[0].c, w.node[0].event[1].qp, w.now_ns);
    connector_set_mtu(w.node[1].c, IBV_MTU_512); /* as that node's port says */
    ask(&w, 0, 1, 2);
    ck_assert_int_eq(await(&w, 0, 2), 0);
    ck_assert_int_eq(read_bytes(&w, 0, 1, 2, 2000), IBV_WC_SUCCESS);
    connector_set_mtu(w.node[0].c, IBV_MTU_256); /* whichever end has less */
    connector_drop(w.node[0].c, w.node[0].event[2].qp, w.now_ns);
    fault_set_plan(w.node[0].fab, &(struct fault_plan){.mtu = IBV_MTU_256});
    ask(&w, 0, 1, 3);
    ck_assert_int_eq(await(&w, 0, 3), 0);
    ck_assert_int_eq(read_bytes(&w, 0, 1, 3, 2000), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

START_TEST(a_node_connects_to_itself)
{
    struct world w = {0};
    world_open(&w, 1);
    ask(&w, 0, 0, 3);
    ck_assert_int_eq(await(&w, 0, 3), 0);
    ck_assert_int_eq(read_through(&w, 0, 0, 3), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

/* Nine nodes ask one for seven connections each, with few handshakes at a time. */
static void storm(uint32_t loss_ppm)
{
    enum { EACH = 7 };
    struct world w = {.loss_ppm = loss_ppm};
    w.node[0].config.responders = EACH * (NODES - 1);
    for (int i = 0; i < NODES; i++)
        w.node[i].config.handshakes = 3;
    world_open(&w, NODES);
    for (uint32_t i = 1; i < NODES; i++)
        for (uint32_t t = 0; t < EACH; t++)
            ask(&w, i, 0, t);
    for (uint32_t i = 1; i < NODES; i++)
        for (uint32_t t = 0; t < EACH; t++) {
            ck_assert_int_eq(await(&w, i, t), 0);
            ck_assert_int_eq(read_through(&w, i, 0, t), IBV_WC_SUCCESS);
        }
    ck_assert_uint_eq(stats_of(&w, 0).incoming, EACH * (NODES - 1));
    world_close(&w);
}

START_TEST(all_connections_of_a_storm_are_alive)
{
    storm(0);
}
END_TEST

START_TEST(all_connections_are_alive_when_a_third_of_the_messages_is_lost)
{
    storm(333333);
}
END_TEST

START_TEST(a_dead_peer_is_given_up_and_keeps_nobody_waiting)
{
    struct world w = {0};
    w.node[0].config.handshakes = 1;
    world_open(&w, 2);
    for (uint32_t t = 0; t < 4; t++)
        ask(&w, 0, 7, t); /* nobody */
    ask(&w, 0, 1, 9);
    ck_assert_int_eq(await(&w, 0, 9), 0);
    for (uint32_t t = 0; t < 4; t++)
        ck_assert(!w.node[0].came[t]);
    for (uint32_t t = 0; t < 4; t++)
        ck_assert_int_eq(await(&w, 0, t), -ETIMEDOUT);
    world_close(&w);
}
END_TEST

START_TEST(another_incarnation_is_told_apart)
{
    struct world w = {0};
    world_open(&w, 2);
    struct connector_peer p = peer_of(&w, 1);
    p.incarnation = 99;
    connector_connect(w.node[0].c, &p, 4);
    ck_assert_int_eq(await(&w, 0, 4), -ESTALE);
    ck_assert_uint_eq(stats_of(&w, 1).refused, 1);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 0);
    world_close(&w);
}
END_TEST

START_TEST(a_dropped_connection_ends_at_the_peer_too)
{
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 5);
    ck_assert_int_eq(await(&w, 0, 5), 0);
    connector_drop(w.node[0].c, w.node[0].event[5].qp, w.now_ns);
    world_run(&w, 50);
    ck_assert_uint_eq(stats_of(&w, 0).outgoing, 0);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 0);
    ck_assert_uint_ge(stats_of(&w, 1).responders_ready, 4);
    world_close(&w);
}
END_TEST

START_TEST(who_leaves_tells_all_peers)
{
    struct world w = {0};
    world_open(&w, 3);
    for (uint32_t t = 1; t < 3; t++) {
        ask(&w, 0, t, t);
        ck_assert_int_eq(await(&w, 0, t), 0);
    }
    connector_leave(w.node[0].c);
    node_kill(&w, 0);
    world_run(&w, 50);
    ck_assert_uint_eq(stats_of(&w, 1).incoming + stats_of(&w, 2).incoming, 0);
    ck_assert_uint_eq(stats_of(&w, 1).reclaimed + stats_of(&w, 2).reclaimed, 0);
    world_close(&w);
}
END_TEST

START_TEST(a_thousand_rounds_leave_the_counts_as_they_were)
{
    struct world w = {0};
    world_open(&w, 2);
    struct connector_stats before[2], after[2];
    for (uint32_t round = 0; round < 1000; round++) {
        ask(&w, 0, 1, 1);
        ck_assert_int_eq(await(&w, 0, 1), 0);
        if (round % 100 == 0)
            ck_assert_int_eq(read_through(&w, 0, 1, 1), IBV_WC_SUCCESS);
        connector_drop(w.node[0].c, w.node[0].event[1].qp, w.now_ns);
        world_run(&w, 20);
        for (uint32_t i = 0; i < 2; i++)
            after[i] = stats_of(&w, i);
        if (round == 10)
            memcpy(before, after, sizeof before);
    }
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(after[i].initiators, before[i].initiators);
        ck_assert_uint_eq(after[i].responders, before[i].responders);
        ck_assert_uint_eq(after[i].initiators_ready, before[i].initiators_ready);
        ck_assert_uint_eq(after[i].responders_ready, before[i].responders_ready);
        ck_assert_uint_eq(after[i].addresses, before[i].addresses);
        ck_assert_uint_eq(after[i].incoming + after[i].outgoing, 0);
    }
    world_close(&w);
}
END_TEST

START_TEST(what_a_dead_initiator_held_is_reclaimed)
{
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 5);
    ck_assert_int_eq(await(&w, 0, 5), 0);
    node_kill(&w, 0);
    world_run(&w, 900);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 1);
    world_run(&w, 1500);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 0);
    ck_assert_uint_eq(stats_of(&w, 1).reclaimed, 1);
    world_close(&w);
}
END_TEST

START_TEST(a_live_initiator_keeps_what_it_has)
{
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 5);
    ck_assert_int_eq(await(&w, 0, 5), 0);
    world_run(&w, 5000);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 1);
    ck_assert_uint_eq(stats_of(&w, 1).reclaimed, 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 5), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

START_TEST(a_new_life_of_the_initiator_frees_what_the_old_one_held)
{
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 5);
    ask(&w, 0, 1, 6);
    ck_assert_int_eq(await(&w, 0, 5), 0);
    ck_assert_int_eq(await(&w, 0, 6), 0);
    node_kill(&w, 0);
    node_start(&w, 0, 101);
    ask(&w, 0, 1, 7);
    ck_assert_int_eq(await(&w, 0, 7), 0);
    ck_assert_uint_eq(stats_of(&w, 1).incoming, 1);
    ck_assert_uint_eq(stats_of(&w, 1).reclaimed, 2);
    ck_assert_int_eq(read_through(&w, 0, 1, 7), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

START_TEST(a_full_peer_says_so_and_takes_the_next_when_one_leaves)
{
    struct world w = {0};
    w.node[1].config.responders = 2;
    world_open(&w, 2);
    for (uint32_t t = 0; t < 2; t++) {
        ask(&w, 0, 1, t);
        ck_assert_int_eq(await(&w, 0, t), 0);
    }
    ask(&w, 0, 1, 2);
    ck_assert_int_eq(await(&w, 0, 2), -EBUSY);
    ask(&w, 0, 1, 3);
    world_run(&w, 30);
    connector_drop(w.node[0].c, w.node[0].event[0].qp, w.now_ns);
    ck_assert_int_eq(await(&w, 0, 3), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 3), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

START_TEST(a_full_peer_finds_those_that_are_gone)
{
    struct world w = {0};
    w.node[1].config.responders = 2;
    w.node[1].config.idle_ns = 4000000000;
    world_open(&w, 3);
    for (uint32_t t = 0; t < 2; t++) {
        ask(&w, 0, 1, t);
        ck_assert_int_eq(await(&w, 0, t), 0);
    }
    node_kill(&w, 0);
    ask(&w, 2, 1, 3);
    ck_assert_int_eq(await(&w, 2, 3), 0);
    ck_assert_uint_ge(stats_of(&w, 1).reclaimed, 1);
    ck_assert_int_eq(read_through(&w, 2, 1, 3), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

START_TEST(a_device_without_atomics_connects)
{
    struct world w = {.no_atomics = true};
    world_open(&w, 2);
    ask(&w, 0, 1, 5);
    ck_assert_int_eq(await(&w, 0, 5), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 5), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

/* Who makes a connector while others wait does not wait for what can be made beside them. */
START_TEST(what_is_wanted_ahead_can_come_after_the_start)
{
    struct world w = {.now_ns = 1};
    w.node[0].config.first = 1;
    world_open(&w, 2);
    ck_assert_int_eq(stats_of(&w, 0).initiators, 1);
    ck_assert_int_eq(stats_of(&w, 0).responders, 1);
    ask(&w, 0, 1, 5);
    ck_assert_int_eq(await(&w, 0, 5), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 5), IBV_WC_SUCCESS);
    world_run(&w, 100);
    ck_assert_int_eq(stats_of(&w, 0).initiators_ready, 4);
    ck_assert_int_eq(stats_of(&w, 0).responders_ready, 4);
    world_close(&w);
}
END_TEST

/* ---- what a former life has sent */

enum { LIFE_MS = 200 };

/* An acknowledgement of the first connection's WRITE is still under way when the second one posts
 * its own, with the same packet number: whoever takes it for its own has lost a WRITE. */
START_TEST(no_late_acknowledgement_completes_what_was_not_executed)
{
    struct world w = {.packet_life_ns = LIFE_MS * 1000000ull, .same_psn = true};
    w.node[0].config.initiators = w.node[0].config.ahead = 1;
    world_open(&w, 3);
    for (uint32_t t = 0; t < 4; t++) {
        ask(&w, 0, 1 + t % 2, t);
        ck_assert_int_eq(await(&w, 0, t), 0);
        ck_assert_int_eq(write_through(&w, 0, 1 + t % 2, t, (char)('a' + t)), IBV_WC_SUCCESS);
        connector_drop(w.node[0].c, w.node[0].event[t].qp, w.now_ns);
    }
    world_close(&w);
}
END_TEST

/* Its own number may have been that of a queue pair of the process before it. */
START_TEST(no_queue_pair_is_used_sooner_after_the_start_than_packets_live)
{
    struct world w = {.packet_life_ns = LIFE_MS * 1000000ull};
    world_open(&w, 2);
    ask(&w, 0, 1, 5);
    world_run(&w, LIFE_MS - 10);
    ck_assert(!w.node[0].came[5]);
    ck_assert_int_eq(stats_of(&w, 1).initiators, 4); /* those that rest are as good as ready */
    ck_assert_int_eq(await(&w, 0, 5), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 5), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

START_TEST(queue_pairs_are_used_again_in_the_order_in_which_they_came_back)
{
    struct world w = {0};
    uint32_t qpn[8];
    w.node[0].config.initiators = w.node[0].config.ahead = 4;
    world_open(&w, 2);
    for (uint32_t t = 0; t < 8; t++) {
        ask(&w, 0, 1, t);
        ck_assert_int_eq(await(&w, 0, t), 0);
        qpn[t] = w.node[0].event[t].qp->qpn;
        connector_drop(w.node[0].c, w.node[0].event[t].qp, w.now_ns);
        world_run(&w, 10);
        for (uint32_t i = t >= 4 ? t - 3 : 0; i < t; i++)
            ck_assert_uint_ne(qpn[i], qpn[t]);
    }
    world_close(&w);
}
END_TEST

/* A peer that comes back after the silence might still repeat what its responder had not answered.
 */
START_TEST(a_responder_that_is_taken_back_rests_as_long_as_its_initiator_may_go_on)
{
    struct world w = {.packet_life_ns = 1000000};
    w.node[1].config.responders = 1;
    world_open(&w, 3);
    ask(&w, 0, 1, 5);
    ck_assert_int_eq(await(&w, 0, 5), 0);
    node_kill(&w, 0);
    while (stats_of(&w, 1).reclaimed == 0)
        world_run(&w, 1);
    const uint64_t bound_ns = fab_bound_ns(&w.node[1].fab->caps, 8, 7);
    const uint64_t since_ns = w.now_ns;
    ask(&w, 2, 1, 6);
    ck_assert_int_eq(await(&w, 2, 6), 0);
    ck_assert_uint_ge(w.now_ns - since_ns, bound_ns);
    world_close(&w);
}
END_TEST

/* ---- a device to which RESET is final */

START_TEST(where_reset_is_final_connections_come_and_go_without_a_pause)
{
    struct world w = {.resets_are_final = true};
    w.node[0].config.initiators = w.node[0].config.ahead = 2;
    w.node[1].config.responders = w.node[1].config.ahead = 2;
    world_open(&w, 2);
    for (uint32_t t = 0; t < 40; t++) {
        const uint64_t since_ns = w.now_ns;
        ask(&w, 0, 1, t);
        ck_assert_int_eq(await(&w, 0, t), 0);
        ck_assert_uint_le(w.now_ns - since_ns, 200000000);
        ck_assert_int_eq(read_through(&w, 0, 1, t), IBV_WC_SUCCESS);
        connector_drop(w.node[0].c, w.node[0].event[t].qp, w.now_ns);
    }
    world_run(&w, 100);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_uint_eq(stats_of(&w, i).failed + stats_of(&w, i).refused, 0);
    ck_assert_uint_eq(stats_of(&w, 0).initiators_ready, 2);
    ck_assert_uint_eq(stats_of(&w, 1).responders_ready, 2);
    world_close(&w);
}
END_TEST

/* The lane drops one when it likes, and not when the connector has just looked at its clock. */
START_TEST(one_rests_from_the_moment_when_it_is_dropped)
{
    struct world w = {.packet_life_ns = LIFE_MS * 1000000ull};
    w.node[0].config.initiators = w.node[0].config.ahead = 1;
    world_open(&w, 2);
    ask(&w, 0, 1, 0);
    ck_assert_int_eq(await(&w, 0, 0), 0);
    w.now_ns += 2 * LIFE_MS * 1000000ull;
    const uint64_t since_ns = w.now_ns;
    connector_drop(w.node[0].c, w.node[0].event[0].qp, w.now_ns);
    ask(&w, 0, 1, 1);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    ck_assert_uint_ge(w.now_ns - since_ns, LIFE_MS * 1000000ull);
    world_close(&w);
}
END_TEST

/* Its number may be that of one that is gone just now. */
START_TEST(one_that_is_made_in_the_place_of_another_rests_too)
{
    struct world w = {.packet_life_ns = LIFE_MS * 1000000ull, .resets_are_final = true};
    w.node[0].config.initiators = w.node[0].config.ahead = 1;
    world_open(&w, 2);
    for (uint32_t t = 0; t < 3; t++) {
        const uint64_t since_ns = w.now_ns;
        ask(&w, 0, 1, t);
        ck_assert_int_eq(await(&w, 0, t), 0);
        ck_assert_uint_ge(w.now_ns - since_ns, LIFE_MS * 1000000ull);
        ck_assert_uint_le(w.now_ns - since_ns, 2 * LIFE_MS * 1000000ull);
        connector_drop(w.node[0].c, w.node[0].event[t].qp, w.now_ns);
    }
    world_close(&w);
}
END_TEST

/* The next message breaks the queue pair of a node's handshakes. */
static void break_handshakes(struct world *w, uint32_t node, uint32_t to, uint32_t tag)
{
    static const struct fault_plan errors = {
        .seed = 1, .completion_error_ppm = 1000000, .status = IBV_WC_LOC_QP_OP_ERR};
    fault_set_plan(w->node[node].fab, &errors);
    ask(w, node, to, tag);
    world_run(w, 2);
    ck_assert_uint_gt(fault_count(w->node[node].fab), 0);
    fault_set_plan(w->node[node].fab, &(struct fault_plan){.seed = 1});
}

static void break_handshakes_of(bool resets_are_final)
{
    struct world w = {.resets_are_final = resets_are_final};
    world_open(&w, 3);
    ask(&w, 0, 1, 1); /* a connection of either kind that is there before */
    ask(&w, 2, 0, 2);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    ck_assert_int_eq(await(&w, 2, 2), 0);
    const uint32_t before = connector_ud_qpn(w.node[0].c);
    break_handshakes(&w, 0, 1, 3);
    ck_assert_int_eq(await(&w, 0, 3), 0);
    ck_assert_int_eq(connector_ud_qpn(w.node[0].c) != before, resets_are_final);
    ask(&w, 1, 0, 4); /* by its new number */
    ck_assert_int_eq(await(&w, 1, 4), 0);
    world_run(&w, 5000); /* responders ask initiators whether they are there */
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(stats_of(&w, i).reclaimed, 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 1), IBV_WC_SUCCESS);
    ck_assert_int_eq(read_through(&w, 2, 0, 2), IBV_WC_SUCCESS);
    ck_assert_int_eq(read_through(&w, 0, 1, 3), IBV_WC_SUCCESS);
    ck_assert_int_eq(read_through(&w, 1, 0, 4), IBV_WC_SUCCESS);
    world_close(&w);
}

START_TEST(handshakes_go_on_when_their_queue_pair_breaks)
{
    break_handshakes_of(false);
}
END_TEST

START_TEST(where_reset_is_final_peers_hear_of_the_new_queue_pair_of_handshakes)
{
    break_handshakes_of(true);
}
END_TEST

/* Also of the one that waits for an answer, which would go to the former number. */
START_TEST(an_answer_finds_the_new_queue_pair_of_who_asked)
{
    struct world w = {.resets_are_final = true};
    w.node[1].config.responders = 1;
    world_open(&w, 3);
    ask(&w, 2, 1, 1); /* has the only responder */
    ck_assert_int_eq(await(&w, 2, 1), 0);
    ask(&w, 0, 1, 2);
    world_run(&w, 20);
    break_handshakes(&w, 0, 2, 3);
    connector_drop(w.node[2].c, w.node[2].event[1].qp, w.now_ns);
    ck_assert_int_eq(await(&w, 0, 2), 0);
    ck_assert_int_eq(await(&w, 0, 3), 0);
    world_close(&w);
}
END_TEST

START_TEST(a_repair_that_fails_is_tried_again_later_and_not_all_the_time)
{
    static const struct fault_plan refuses = {.seed = 1, .control_error_ppm = 1000000};
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 1);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    break_handshakes(&w, 0, 1, 2);
    fault_set_plan(w.node[0].fab, &refuses);
    world_run(&w, 10);
    const uint64_t before = fault_count(w.node[0].fab);
    world_run(&w, 500);
    ck_assert_uint_le(fault_count(w.node[0].fab) - before, 20);
    fault_set_plan(w.node[0].fab, &(struct fault_plan){.seed = 1});
    world_run(&w, 3000);
    ask(&w, 0, 1, 3);
    ck_assert_int_eq(await(&w, 0, 3), 0);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_connection_carries_a_read)                                                                 \
    T(two_nodes_that_ask_each_other_at_once_both_get_one)                                          \
    T(a_connection_has_what_both_ends_take_and_one_that_fails_gets_what_they_take_now)             \
    T(a_node_connects_to_itself)                                                                   \
    T(all_connections_of_a_storm_are_alive)                                                        \
    T(all_connections_are_alive_when_a_third_of_the_messages_is_lost)                              \
    T(a_dead_peer_is_given_up_and_keeps_nobody_waiting)                                            \
    T(another_incarnation_is_told_apart)                                                           \
    T(a_dropped_connection_ends_at_the_peer_too)                                                   \
    T(who_leaves_tells_all_peers)                                                                  \
    T(a_thousand_rounds_leave_the_counts_as_they_were)                                             \
    T(what_a_dead_initiator_held_is_reclaimed)                                                     \
    T(a_live_initiator_keeps_what_it_has)                                                          \
    T(a_new_life_of_the_initiator_frees_what_the_old_one_held)                                     \
    T(a_full_peer_says_so_and_takes_the_next_when_one_leaves)                                      \
    T(a_full_peer_finds_those_that_are_gone)                                                       \
    T(a_device_without_atomics_connects)                                                           \
    T(what_is_wanted_ahead_can_come_after_the_start)                                               \
    T(no_late_acknowledgement_completes_what_was_not_executed)                                     \
    T(no_queue_pair_is_used_sooner_after_the_start_than_packets_live)                              \
    T(queue_pairs_are_used_again_in_the_order_in_which_they_came_back)                             \
    T(a_responder_that_is_taken_back_rests_as_long_as_its_initiator_may_go_on)                     \
    T(where_reset_is_final_connections_come_and_go_without_a_pause)                                \
    T(one_rests_from_the_moment_when_it_is_dropped)                                                \
    T(one_that_is_made_in_the_place_of_another_rests_too)                                          \
    T(handshakes_go_on_when_their_queue_pair_breaks)                                               \
    T(where_reset_is_final_peers_hear_of_the_new_queue_pair_of_handshakes)                         \
    T(an_answer_finds_the_new_queue_pair_of_who_asked)                                             \
    T(a_repair_that_fails_is_tried_again_later_and_not_all_the_time)

KEDGE_CHECK_MAIN("agent.connect.connector", TESTS)
