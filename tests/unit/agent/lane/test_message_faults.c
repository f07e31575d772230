/* SPDX-License-Identifier: Apache-2.0 */
/* Messages where something breaks: VQPs that go, keys that change, queue pairs, silent peers. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "message_pair.h"
#include "world_trio.h"

static struct schema_sq_desc destroy_of(uint16_t vqp, uint16_t gen)
{
    return (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = vqp, .vqp_gen = gen};
}

static void expect_message(uint64_t send_id, uint64_t receive_id)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, receive_id);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, send_id);
}

static void connect_anew(uint16_t vqp, uint16_t gen, uint32_t node)
{
    struct schema_reply r;
    struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT, .connect = {.pool = 1}};
    memcpy(d.connect.gid, w.node[node].fab->caps.gid, 16);
    ck_assert_int_eq(world_ask(&w, &sender, d, &r), 0);
    d = (struct schema_sq_desc){
        .op = SCHEMA_OP_BIND,
        .slots = 1,
        .vqp = vqp,
        .vqp_gen = gen,
        .bind = {.peer_slot = (uint32_t)r.value[0], .peer_gen = (uint32_t)r.value[1]}};
    world_post(&sender, &d);
    d = (struct schema_sq_desc){.op = SCHEMA_OP_SEND_TO,
                                .slots = 1,
                                .vqp = vqp,
                                .vqp_gen = gen,
                                .send_to = {.kind = SCHEMA_SEND_TO_PORT, .to = PORT}};
    world_post(&sender, &d);
}

/* So often that its peer's account would have no number left, if each kept one. */
START_TEST(vqps_that_go_with_sends_out_leave_others_their_credit)
{
    begin();
    for (uint16_t gen = 0; gen < 300; gen++) {
        connect_anew(2, gen, 1);
        for (int i = 0; i < 2; i++) {
            struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 50, 0, 8);
            d.vqp = 2;
            d.vqp_gen = gen;
            world_post(&sender, &d);
        }
        post(&sender, destroy_of(2, gen));
        world_run(&w, 20);
    }
    post_receive(1, 0, 64);
    struct schema_cqe e;
    while (world_poll(&w, &receiver, &e, 100)) /* of those before, one may have come */
        post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 7, 0, 8));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    end();
}
END_TEST

/* A SEND that the device has given back, and that nobody has acknowledged, is the lane's alone. It
 * comes again with the key that its arena has then. */
START_TEST(a_send_goes_again_with_the_key_of_its_arenas_present_registration)
{
    begin();
    post_receive(8, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 9, 0, 5));
    expect_message(9, 8);
    world_no_ud_repairs = true;
    world_break_ud(&w, 1); /* which says nothing now: no buffer is posted */
    memcpy(memory_of(&sender, 0), "again", 5);
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 5));
    world_run(&w, 50);
    struct fab_mr *former = sender.arena_mr;
    sender.arena_mr = world_mr(&w, &sender, 0, sender.arena.size, IBV_ACCESS_LOCAL_WRITE);
    const struct lane_command c = {.kind = LANE_COMMAND_ARENA_REREGISTER,
                                   .session = sender.id,
                                   .reregister = {.tag = 1,
                                                  .lkey = sender.arena_mr->lkey,
                                                  .rkey = sender.arena_mr->rkey,
                                                  .iova = sender.arena_mr->addr}};
    ck_assert_int_eq(lane_command(w.node[0].lane, &c), 0);
    for (int i = 0; i < 1000 && w.node[0].answers == 0; i++)
        world_run(&w, 1);
    ck_assert_int_eq(w.node[0].answer.kind, LANE_EVENT_ARENA_REREGISTERED);
    struct fab_ctl gone = {.kind = FAB_DEREG_MR, .mr = {.x = former}};
    ck_assert_int_eq(fab_call(w.node[0].fab, &gone), 0);
    world_repair_uds(&w);
    world_run(&w, 1000);
    post_receive(2, 4096, 64);
    expect_message(1, 2);
    ck_assert_mem_eq(memory_of(&receiver, 4096), "again", 5);
    ck_assert_uint_eq(w.node[0].broken, 0);
    end();
}
END_TEST

/* Nobody answers its questions for credit: its end comes as on a queue pair of its own, and nobody
 * else's. */
START_TEST(who_gets_no_credit_fails_in_time_and_alone)
{
    begin();
    const uint32_t key = world_register(&w, &receiver, 8192, 4096, SCHEMA_RECORD_READ);
    ck_assert_int_eq(world_connect(&w, &sender, 1, 1), 0);
    world_no_handles = true; /* no datagram goes */
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    const uint64_t began_ns = w.now_ns, looked_up = world_stats(&w, 0).lookups_again;
    struct schema_sq_desc read = world_rw(SCHEMA_OP_READ, 3, 0, 64, key, 8192);
    read.vqp = 1;
    post(&sender, read);
    struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 3);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    const uint32_t patience_ns = 100000u << 9; /* as world_messages.c has it: 8 questions */
    e = world_done(&w, &sender, 2 * patience_ns / 1000);
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_ge(w.now_ns - began_ns, 20000000);
    /* Its peer may have begun anew. */
    ck_assert_uint_eq(world_stats(&w, 0).lookups_again, looked_up + 4);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_WR_FLUSH_ERR);
    world_no_handles = false;
    /* With another address it begins anew. */
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
    post_receive(4, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 5, 0, 8));
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, 2000000));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    end();
}
END_TEST

START_TEST(a_handle_that_cannot_be_made_is_asked_for_again_ever_later)
{
    begin();
    world_no_handles = true;
    world_handles_wanted = 0;
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
    world_run(&w, 15000); /* 15 ms: after 1, 2, 4 and 8 */
    ck_assert_uint_ge(world_handles_wanted, 2);
    ck_assert_uint_le(world_handles_wanted, 6);
    world_no_handles = false;
    post_receive(2, 0, 64);
    expect_message(1, 2);
    end();
}
END_TEST

/* Its number is another one then, or the same again. */
START_TEST(datagrams_go_on_when_their_queue_pair_was_repaired)
{
    begin();
    world_ud_broken = 0;
    for (uint32_t i = 0; i < 12; i++) {
        post_receive(100 + i, 0, 64);
        post(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
        world_run(&w, i);
        world_break_ud(&w, i % 2);
        expect_message(i, 100 + i);
        world_run(&w, 300);
        ck_assert_uint_eq(world_ud_broken, i + 1); /* once each */
    }
    end();
}
END_TEST

/* The device says that it failed, and gives nothing of it back: a UD queue pair whose sends fail
 * keeps its receives. */
START_TEST(a_datagrams_queue_pair_that_gives_nothing_back_is_not_waited_for_for_ever)
{
    begin();
    world_ud_broken = 0;
    const struct lane_command c = {.kind = LANE_COMMAND_QP_FATAL, .qp = world_ud(0)};
    ck_assert_int_eq(lane_command(w.node[0].lane, &c), 0);
    world_run(&w, 100);
    ck_assert_uint_eq(world_ud_broken, 0);
    world_run(&w, 1500); /* of which the lane looks once in 1000 */
    ck_assert_uint_eq(world_ud_broken, 1);
    post_receive(2, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
    expect_message(1, 2);
    end();
}
END_TEST

START_TEST(a_tenant_that_binds_all_ports_leaves_others_one)
{
    struct world_worker other;
    begin();
    uint32_t bound = 1;
    for (uint16_t vqp = 3; vqp < 6; vqp++)
        while (world_bind_port(&w, &receiver, vqp, 1000 + bound) == 0)
            bound++;
    ck_assert_uint_gt(bound, 4);
    world_attach(&w, &other, 1, 1, TENANT + 1);
    ck_assert_int_eq(world_bind_port(&w, &other, 0, PORT), 0);
    /* What goes with its VQP is free again. */
    post(&receiver, destroy_of(3, 0));
    ck_assert_int_eq(world_bind_port(&w, &receiver, 2, 2000), 0);
    end();
}
END_TEST

/* They are given back in one step, and others wait for that. */
START_TEST(a_queue_pair_hears_a_few_ports)
{
    begin();
    uint32_t bound = 1; /* it hears one */
    while (world_bind_port(&w, &receiver, 3, 1000 + bound) == 0)
        bound++;
    ck_assert_uint_eq(bound, 16);
    ck_assert_int_eq(world_bind_port(&w, &receiver, 2, 1000 + bound), 0);
    post(&receiver, destroy_of(3, 0));
    ck_assert_int_eq(world_bind_port(&w, &receiver, 4, 1001), 0);
    ck_assert_int_eq(world_bind_port(&w, &receiver, 4, 1000 + bound), -EADDRINUSE);
    end();
}
END_TEST

/* A VQP that cannot send any more hears on until it is destroyed. */
START_TEST(receives_of_a_vqp_in_error_stay_posted)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    ck_assert_int_eq(world_bind_port(&w, &sender, 0, 7), 0);
    post(&sender, world_message(SCHEMA_OP_RECV, 1, 256, 64));
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT + 1); /* which nobody hears */
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_REM_OP_ERR);
    ck_assert_int_eq(world_connect(&w, &receiver, 5, 0), 0);
    world_send_to(&receiver, 5, SCHEMA_SEND_TO_PORT, 7);
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 3, 0, 8);
    d.vqp = 5;
    post(&receiver, d);
    ck_assert(world_hear(&w, &sender, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_done(&w, &receiver, PATIENCE).status, IBV_WC_SUCCESS);
    /* Destroyed, it hears nothing more, and nothing is written to what it had posted. */
    post(&sender, world_message(SCHEMA_OP_RECV, 4, 256, 64));
    memset(memory_of(&sender, 256), 0xee, 64);
    post(&sender, destroy_of(0, 0));
    post(&receiver, d);
    ck_assert_uint_eq(world_done(&w, &receiver, PATIENCE).status, IBV_WC_REM_OP_ERR);
    ck_assert_uint_eq(*memory_of(&sender, 256), 0xee);
    ck_assert(!world_poll(&w, &sender, &e, 100));
    end();
}
END_TEST

/* The node's address is another one: what had begun under the former has an end, and what comes
 * goes under the new one. */
START_TEST(streams_end_with_the_address_that_they_began_under)
{
    begin();
    post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    expect_message(2, 1);
    post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, 8));
    world_run(&w, 300); /* no buffer: it waits */
    struct lane_command c = {.kind = LANE_COMMAND_READDRESS, .readdress = {.incarnation = 200}};
    memcpy(c.readdress.gid, w.node[0].fab->caps.gid, 16);
    w.node[0].answers = 0;
    world_handles_wanted = 0;
    ck_assert_int_eq(lane_command(w.node[0].lane, &c), 0);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_RETRY_EXC_ERR);
    world_run(&w, 3000);
    ck_assert_uint_eq(w.node[0].answers, 1);
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
    post_receive(4, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 5, 0, 8));
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(from.incarnation, 200);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    ck_assert_uint_gt(world_handles_wanted, 0); /* of the new one */
    end();
}
END_TEST

/* All of its patience goes by while the lane stands still, and nothing fails for that. */
START_TEST(a_lane_that_stood_still_hears_what_came_before_it_blames_its_peer)
{
    begin();
    post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    expect_message(2, 1);
    for (uint32_t i = 0; i < 20; i++) {
        post(&sender, world_message(SCHEMA_OP_SEND, 10 + i, 0, 8)); /* refused until a receive is */
        world_run(&w, 300);
        w.now_ns += 500000000;
        (void)lane_step(w.node[0].lane, w.now_ns);
        post_receive(100 + i, 0, 64);
        expect_message(10 + i, 100 + i);
    }
    end();
}
END_TEST

/* The first is with its receiver's lane, which cannot say so; the second finds nobody. */
START_TEST(what_was_sent_before_a_send_that_fails_is_over_before_it)
{
    begin();
    post_receive(8, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 9, 0, 8));
    expect_message(9, 8);
    world_no_ud_repairs = true;
    world_break_ud(&w, 1);
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    world_run(&w, 50);
    world_silence_node(&w, 1);
    post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, 8));
    post(&sender, world_message(SCHEMA_OP_SEND, 4, 0, 8));
    struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
    for (uint64_t id = 2; id <= 4; id++) {
        e = world_done(&w, &sender, PATIENCE);
        ck_assert_uint_eq(e.wr_id, id);
        ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
    }
    ck_assert_uint_ge(w.node[0].broken, 1);
    world_repair_uds(&w);
    end();
}
END_TEST

/* All of its patience goes by while it hears nobody, since its own queue pair is being repaired. */
START_TEST(a_lane_that_cannot_hear_its_peer_does_not_blame_it)
{
    begin();
    post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    expect_message(2, 1);
    world_no_ud_repairs = true;
    world_break_ud(&w, 0);
    post_receive(3, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 4, 0, 8));
    world_run(&w, 200000); /* four times as long */
    struct schema_cqe e;
    ck_assert(!world_poll(&w, &sender, &e, 0));
    world_repair_uds(&w);
    expect_message(4, 3);
    end();
}
END_TEST

/* As long as the network takes: there is room for it, or it would break the queue pair. */
START_TEST(a_long_datagram_of_a_stranger_breaks_nothing)
{
    begin();
    world_ud_broken = 0;
    world_stranger_says(&w, 2, 1, 4096);
    world_run(&w, 2000);
    ck_assert_uint_eq(world_ud_broken, 0);
    post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    expect_message(2, 1);
    end();
}
END_TEST

/* A device may read it until it has sent them. */
START_TEST(a_handle_is_given_back_when_nothing_is_out_by_it)
{
    world_fault = (struct fault_plan){.seed = 1};
    begin();
    post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    expect_message(2, 1);
    world_run(&w, 2000);
    struct lane_command c = {.kind = LANE_COMMAND_READDRESS, .readdress = {.incarnation = 200}};
    memcpy(c.readdress.gid, w.node[0].fab->caps.gid, 16);
    world_delay(&w, 5000); /* polls */
    post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, 8));
    const uint64_t before = world_stats(&w, 0).datagrams_sent;
    for (int i = 0; i < 20000 && world_stats(&w, 0).datagrams_sent == before; i++)
        world_run(&w, 1);
    ck_assert_uint_gt(world_stats(&w, 0).datagrams_sent, before);
    ck_assert_int_eq(lane_command(w.node[0].lane, &c), 0);
    world_handles_dropped = 0;
    world_run(&w, 3000);
    ck_assert_uint_eq(world_handles_dropped, 0);
    world_delay(&w, 0);
    world_run(&w, 6000);
    ck_assert_uint_gt(world_handles_dropped, 0);
    end();
    world_fault.seed = 0;
}
END_TEST

/* Eight of 16 KiB are there at once. */
START_TEST(a_pass_copies_a_part_of_what_has_come)
{
    begin();
    for (uint32_t i = 0; i < 16; i++)
        post_receive(100 + i, 0, 16384);
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8)); /* so that it has credits */
    expect_message(1, 100);
    world_run(&w, 200);
    for (uint32_t i = 0; i < 8; i++)
        post(&sender, world_message(SCHEMA_OP_SEND, 2 + i, 0, 16384));
    for (int i = 0; i < 200; i++)
        (void)lane_step(w.node[0].lane, w.now_ns += 1000);
    uint64_t before = world_stats(&w, 1).messages_received, passes = 0;
    for (int i = 0; i < 20; i++) {
        (void)lane_step(w.node[1].lane, w.now_ns += 1000);
        const uint64_t now = world_stats(&w, 1).messages_received;
        ck_assert_uint_le(now - before, 4);
        passes += now > before;
        before = now;
    }
    ck_assert_uint_ge(passes, 2);
    for (uint32_t i = 0; i < 8; i++)
        expect_message(2 + i, 101 + i);
    end();
}
END_TEST

/* Its endpoint makes room for another one while a SEND is kept: nothing of the VQP is out, so that
 * the flow that it names goes. What is kept ends in time, and others go on. */
START_TEST(what_is_kept_ends_where_its_endpoint_has_made_room)
{
    world_max_peers = 1;
    begin();
    world_max_peers = 8;
    post_receive(1, 0, 64);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    expect_message(2, 1);
    world_no_ud_repairs = true;
    world_break_ud(&w, 1); /* which cannot say that it has heard */
    post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, 8));
    world_run(&w, 300);
    ck_assert_uint_eq(world_stats(&w, 0).flows, 1);
    connect_anew(1, 0, 0);
    ck_assert_uint_eq(world_stats(&w, 0).flows, 0);
    struct schema_cqe e = world_done(&w, &sender, 200000);
    ck_assert_uint_eq(e.wr_id, 3);
    ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_NONE); /* it was taken, for all we know */
    world_repair_uds(&w);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(vqps_that_go_with_sends_out_leave_others_their_credit)                                       \
    T(a_send_goes_again_with_the_key_of_its_arenas_present_registration)                           \
    T(who_gets_no_credit_fails_in_time_and_alone)                                                  \
    T(a_handle_that_cannot_be_made_is_asked_for_again_ever_later)                                  \
    T(datagrams_go_on_when_their_queue_pair_was_repaired)                                          \
    T(a_datagrams_queue_pair_that_gives_nothing_back_is_not_waited_for_for_ever)                   \
    T(a_queue_pair_hears_a_few_ports)                                                              \
    T(a_tenant_that_binds_all_ports_leaves_others_one)                                             \
    T(receives_of_a_vqp_in_error_stay_posted)                                                      \
    T(streams_end_with_the_address_that_they_began_under)                                          \
    T(a_lane_that_stood_still_hears_what_came_before_it_blames_its_peer)                           \
    T(what_was_sent_before_a_send_that_fails_is_over_before_it)                                    \
    T(a_lane_that_cannot_hear_its_peer_does_not_blame_it)                                          \
    T(a_long_datagram_of_a_stranger_breaks_nothing)                                                \
    T(a_handle_is_given_back_when_nothing_is_out_by_it)                                            \
    T(a_pass_copies_a_part_of_what_has_come)                                                       \
    T(what_is_kept_ends_where_its_endpoint_has_made_room)
KEDGE_CHECK_MAIN("agent.lane.message_faults", TESTS)
