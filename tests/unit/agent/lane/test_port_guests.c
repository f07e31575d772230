/* SPDX-License-Identifier: Apache-2.0 */
/* Ports for other tenants: a worker of another tenant on node 0, and one on node 1 that hears. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "message_state.h" /* before a w that they would hide */
#include "receive/large.h"
#include "session_state.h"
#include "vqp_state.h"
#include "message_pair.h"
#include "world_rc.h"

enum { OTHER = TENANT + 1, THIRD = TENANT + 2, LARGE = 56 * 1024, CUT = 8192, LONG = 200000 };

static struct world_worker guest; /* of OTHER */

static void begin_guest(void)
{
    begin();
    world_attach(&w, &guest, 0, 1, OTHER);
    ck_assert_int_eq(world_connect(&w, &guest, 0, 1), 0);
}

static void end_guest(void)
{
    world_detach(&w, &guest);
    end();
}

static void address(struct world_worker *k, uint16_t vqp, uint32_t tenant, uint64_t port)
{
    post(k, (struct schema_sq_desc){
                .op = SCHEMA_OP_SEND_TO,
                .slots = 1,
                .vqp = vqp,
                .send_to = {.kind = SCHEMA_SEND_TO_PORT, .to = port, .tenant = tenant}});
}

static int ask_guest(uint8_t op, uint16_t vqp, uint32_t tenant)
{
    return world_ask(&w, &receiver,
                     (struct schema_sq_desc){.op = op, .vqp = vqp, .bind_port = {.tenant = tenant}},
                     NULL);
}

static int grant(uint32_t tenant)
{
    return ask_guest(SCHEMA_OP_PORT_GRANT, 3, tenant);
}

static struct lane_stats stats_of(uint32_t node)
{
    struct lane_stats stats;
    lane_stats(w.node[node].lane, &stats);
    return stats;
}

static uint32_t count_guests(void)
{
    return w.node[1].lane->messages->guests.used;
}

static void expect_refused(struct world_worker *k)
{
    const struct schema_cqe e = world_done(&w, k, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_PORT);
}

static void expect_sent(struct world_worker *k, uint64_t wr_id)
{
    const struct schema_cqe e = world_done(&w, k, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, wr_id);
}

static struct schema_cqe_sender expect_heard(uint64_t wr_id, uint32_t tenant)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(from.tenant, tenant);
    return from;
}

START_TEST(whom_a_worker_lets_in_is_heard_until_it_says_otherwise)
{
    begin_guest();
    ck_assert_int_eq(grant(OTHER), 0);
    ck_assert_int_eq(grant(OTHER), -EALREADY);
    ck_assert_uint_eq(count_guests(), 1);
    address(&guest, 0, TENANT, PORT);
    post_receive(1, 0, 64);
    post_receive(2, 0, 64);
    memcpy(memory_of(&guest, 0), "guest", 5);
    post(&guest, world_message(SCHEMA_OP_SEND, 5, 0, 5));
    (void)expect_heard(1, OTHER);
    ck_assert_mem_eq(memory_of(&receiver, 0), "guest", 6);
    expect_sent(&guest, 5);
    ck_assert_int_eq(ask_guest(SCHEMA_OP_PORT_REVOKE, 3, OTHER), 0);
    ck_assert_int_eq(ask_guest(SCHEMA_OP_PORT_REVOKE, 3, OTHER), -ENOENT);
    post(&guest, world_message(SCHEMA_OP_SEND, 6, 0, 5)); /* of a stream that is open */
    expect_refused(&guest);
    ck_assert_uint_eq(stats_of(1).messages_unadmitted, 1);
    post(&sender, world_message(SCHEMA_OP_SEND, 7, 0, 5));
    (void)expect_heard(2, TENANT);
    end_guest();
}
END_TEST

START_TEST(a_grant_is_for_one_tenant_at_one_vqp_and_goes_with_it)
{
    begin_guest();
    struct world_worker third;
    world_attach(&w, &third, 0, 2, THIRD);
    ck_assert_int_eq(world_connect(&w, &third, 0, 1), 0);
    ck_assert_int_eq(world_bind_port(&w, &receiver, 4, PORT + 1), 0);
    ck_assert_int_eq(grant(OTHER), 0);
    post_receive(1, 0, 64);
    address(&third, 0, TENANT, PORT);
    post(&third, world_message(SCHEMA_OP_SEND, 1, 0, 5));
    expect_refused(&third);
    address(&guest, 0, TENANT, PORT + 1);
    post(&guest, world_message(SCHEMA_OP_SEND, 2, 0, 5));
    expect_refused(&guest);
    post(&receiver, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = 3});
    world_run(&w, 100);
    ck_assert_uint_eq(count_guests(), 0);
    ck_assert_int_eq(world_ask(&w, &receiver,
                               (struct schema_sq_desc){.op = SCHEMA_OP_BIND_PORT,
                                                       .vqp = 3,
                                                       .vqp_gen = 1,
                                                       .bind_port = {.port = PORT}},
                               NULL),
                     0);
    ck_assert_int_eq(world_connect(&w, &guest, 1, 1), 0);
    address(&guest, 1, TENANT, PORT);
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 3, 0, 5);
    d.vqp = 1;
    post(&guest, d);
    expect_refused(&guest);
    world_detach(&w, &third);
    end_guest();
}
END_TEST

START_TEST(what_makes_no_sense_lets_nobody_in)
{
    begin_guest();
    ck_assert_int_eq(grant(0), -EINVAL);
    ck_assert_int_eq(grant(TENANT), -EINVAL);
    ck_assert_int_eq(ask_guest(SCHEMA_OP_PORT_GRANT, 6, OTHER), -ENOTCONN);
    ck_assert_int_eq(ask_guest(SCHEMA_OP_PORT_REVOKE, 6, OTHER), -ENOTCONN);
    for (uint32_t t = 0; t < GUESTS_EACH; t++)
        ck_assert_int_eq(grant(100 + t), 0);
    ck_assert_int_eq(grant(OTHER), -EDQUOT);
    ck_assert_int_eq(ask_guest(SCHEMA_OP_PORT_REVOKE, 3, 100), 0);
    ck_assert_int_eq(grant(OTHER), 0);
    ck_assert_uint_eq(count_guests(), GUESTS_EACH);
    end_guest();
}
END_TEST

/* The owner's quota of control operations may refuse a grant, and never that one ends. */
START_TEST(that_one_ends_no_quota_refuses)
{
    begin_guest();
    ck_assert_int_eq(grant(OTHER), 0);
    w.node[1].quota[TENANT].control_ops_per_s = 1;
    int status = 0;
    for (int i = 0; i < 4 && status != -EDQUOT; i++)
        status = grant(THIRD);
    ck_assert_int_eq(status, -EDQUOT);
    ck_assert_int_eq(ask_guest(SCHEMA_OP_PORT_REVOKE, 3, OTHER), 0);
    end_guest();
}
END_TEST

/* Answers: who sends to a port lets its tenant answer there, and nobody else. */
START_TEST(the_owner_of_a_port_answers_a_guest_and_no_other_tenant_reaches_him)
{
    struct schema_cqe e;
    begin_guest();
    ck_assert_int_eq(grant(OTHER), 0);
    address(&guest, 0, TENANT, PORT);
    post(&guest, world_message(SCHEMA_OP_RECV, 1, 0, 64));
    post_receive(2, 0, 64);
    post(&guest, world_message(SCHEMA_OP_SEND, 3, 512, 8));
    struct schema_cqe_sender from = expect_heard(2, OTHER);
    expect_sent(&guest, 3);
    struct world_worker third;
    world_attach(&w, &third, 1, 1, THIRD);
    ck_assert_int_eq(world_connect(&w, &third, 0, 0), 0);
    world_send_to(&third, 0, SCHEMA_SEND_TO_VQP, from.vqp);
    post(&third, world_message(SCHEMA_OP_SEND, 4, 0, 6));
    expect_refused(&third);
    ck_assert_int_eq(world_connect(&w, &receiver, 5, 0), 0);
    world_send_to(&receiver, 5, SCHEMA_SEND_TO_VQP, from.vqp);
    memcpy(memory_of(&receiver, 512), "answer", 6);
    struct schema_sq_desc answer = world_message(SCHEMA_OP_SEND, 5, 512, 6);
    answer.vqp = 5;
    post(&receiver, answer);
    ck_assert(world_hear(&w, &guest, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(from.tenant, TENANT);
    ck_assert_mem_eq(memory_of(&guest, 0), "answer", 6);
    expect_sent(&receiver, 5);
    /* The guest sends elsewhere: what he was told to is over. */
    ck_assert_int_eq(world_connect(&w, &guest, 0, 1), 0);
    address(&guest, 0, THIRD, PORT);
    post(&receiver, answer);
    expect_refused(&receiver);
    world_detach(&w, &third);
    end_guest();
}
END_TEST

/* What a worker has let in at one VQP reaches no other one of its, by port or by name. */
START_TEST(a_guest_does_not_reach_the_name_of_a_vqp_that_sends)
{
    begin_guest();
    ck_assert_int_eq(grant(OTHER), 0);
    struct schema_cqe_sender from;
    struct schema_cqe e;
    ck_assert_int_eq(world_bind_port(&w, &sender, 2, PORT), 0);
    struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, 1, 0, 64);
    d.vqp = 2;
    post(&sender, d);
    ck_assert_int_eq(world_connect(&w, &receiver, 5, 0), 0);
    world_send_to(&receiver, 5, SCHEMA_SEND_TO_PORT, PORT);
    d = world_message(SCHEMA_OP_SEND, 2, 0, 8);
    d.vqp = 5;
    post(&receiver, d);
    ck_assert(world_hear(&w, &sender, &e, &from, PATIENCE));
    world_send_to(&guest, 0, SCHEMA_SEND_TO_VQP, from.vqp);
    post(&guest, world_message(SCHEMA_OP_SEND, 3, 0, 8));
    expect_refused(&guest);
    end_guest();
}
END_TEST

/* One receive at a time: the guest has 16 messages waiting for each that the owner's worker has,
 * who gets every receive as long as he wants one. */
START_TEST(a_flood_of_a_guest_takes_no_receive_from_who_waits_at_his_own_port)
{
    enum { AHEAD = 16, ROUNDS = 20 };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin_guest();
    ck_assert_int_eq(grant(OTHER), 0);
    address(&guest, 0, TENANT, PORT);
    for (uint32_t i = 0; i < AHEAD; i++)
        post(&guest, world_message(SCHEMA_OP_SEND, i, 0, 64));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        post(&sender, world_message(SCHEMA_OP_SEND, 100 + round, 0, 64));
        world_run(&w, 500); /* it was refused at least once */
        post_receive(round, 0, 64);
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(from.tenant, TENANT);
        expect_sent(&sender, 100 + round);
    }
    for (uint32_t i = 0; i < AHEAD; i++) /* and then it is the guest's turn */
        post_receive(200 + i, 0, 64);
    for (uint32_t i = 0; i < AHEAD; i++) {
        (void)expect_heard(200 + i, OTHER);
        expect_sent(&guest, i);
    }
    end_guest();
}
END_TEST

/* Streams of guests are none of their host's. */
START_TEST(guests_with_many_streams_leave_the_ports_own_tenant_its_places)
{
    enum { GUESTS = 3, VQPS = 8 /* of a session */ };
    struct world_worker more[GUESTS];
    begin_guest();
    ck_assert_int_eq(grant(OTHER), 0);
    for (uint32_t i = 0; i < GUESTS * VQPS; i++) {
        struct world_worker *k = &more[i / VQPS];
        const uint16_t v = (uint16_t)(i % VQPS);
        if (v == 0)
            world_attach(&w, k, 0, 2 + i / VQPS, OTHER);
        post_receive(i, 0, 64);
        ck_assert_int_eq(world_connect(&w, k, v, 1), 0);
        address(k, v, TENANT, PORT);
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, v, 0, 8);
        d.vqp = v;
        post(k, d);
        world_run(&w, 50);
    }
    const struct exchange *x = &w.node[1].lane->messages->exchange;
    const uint32_t common = x->receiver_places.common;
    const uint32_t share = TENANT % WORLD_TENANTS + 1 + WORLD_TENANTS;
    world_run(&w, 2000);
    ck_assert_uint_ge(x->receiver_places.of[share], 2);
    ck_assert_uint_le(x->receiver_places.of[share], common / 2 + 1); /* of one guest of several */
    ck_assert_uint_eq(x->receiver_places.of[TENANT % WORLD_TENANTS + 1], 0);
    for (uint32_t left = stats_of(1).messages_received; left > 0; left--) {
        struct schema_cqe e;
        struct schema_cqe_sender from;
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    }
    post(&sender, world_message(SCHEMA_OP_SEND, 1000, 0, 8));
    expect_sent(&sender, 1000);
    for (uint32_t i = 0; i < GUESTS; i++)
        world_detach(&w, &more[i]);
    end_guest();
}
END_TEST

/* Nor does who may answer take those of who was let in. */
START_TEST(many_that_answer_leave_places_to_guests)
{
    enum { MORE = 3, VQPS = 8 /* of a session */ };
    struct world_worker more[MORE], third;
    begin_guest();
    ck_assert_int_eq(grant(OTHER), 0);
    address(&guest, 0, TENANT, PORT);
    post_receive(1, 0, 64);
    post(&guest, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    const struct schema_cqe_sender from = expect_heard(1, OTHER);
    expect_sent(&guest, 2);
    for (uint32_t i = 0; i < MORE * VQPS; i++) {
        struct world_worker *k = &more[i / VQPS];
        const uint16_t v = (uint16_t)(i % VQPS);
        if (v == 0)
            world_attach(&w, k, 1, 2 + i / VQPS, TENANT);
        ck_assert_int_eq(world_connect(&w, k, v, 0), 0);
        world_send_to(k, v, SCHEMA_SEND_TO_VQP, from.vqp);
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, v, 0, 8);
        d.vqp = v;
        post(k, d);
        world_run(&w, 50);
    }
    const struct exchange *x = &w.node[0].lane->messages->exchange;
    const uint32_t share = OTHER % WORLD_TENANTS + 1 + WORLD_TENANTS;
    world_run(&w, 2000);
    ck_assert_uint_ge(x->receiver_places.of[share], 2);
    ck_assert_uint_lt(x->receiver_places.of[share], MORE * VQPS);
    ck_assert_uint_le(x->receiver_places.of[share], x->receiver_places.common / 2 + 1);
    ck_assert_int_eq(world_bind_port(&w, &guest, 4, PORT), 0);
    ck_assert_int_eq(world_ask(&w, &guest,
                               (struct schema_sq_desc){.op = SCHEMA_OP_PORT_GRANT,
                                                       .vqp = 4,
                                                       .bind_port = {.tenant = THIRD}},
                               NULL),
                     0);
    world_attach(&w, &third, 1, 1, THIRD);
    ck_assert_int_eq(world_connect(&w, &third, 0, 0), 0);
    address(&third, 0, OTHER, PORT);
    struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, 3, 0, 64);
    d.vqp = 4;
    post(&guest, d);
    post(&third, world_message(SCHEMA_OP_SEND, 4, 0, 8));
    expect_sent(&third, 4);
    world_detach(&w, &third);
    for (uint32_t i = 0; i < MORE; i++)
        world_detach(&w, &more[i]);
    end_guest();
}
END_TEST

/* ---- large ones */

static void run_into_reading(void)
{
    const uint64_t before = stats_of(1).pieces;
    for (int i = 0; stats_of(1).pieces == before && i < PATIENCE; i++)
        world_run(&w, 1);
    ck_assert_uint_gt(stats_of(1).pieces, before);
    ck_assert_uint_eq(stats_of(1).messages_received, 0);
}

static void begin_large(void)
{
    world_cut_bytes = CUT;
    begin_guest();
    ck_assert_int_eq(grant(OTHER), 0);
    address(&guest, 0, TENANT, PORT);
    for (uint32_t i = 0; i < LARGE; i++) {
        *memory_of(&guest, i) = (uint8_t)(i * 7 + i / 256 + 1);
        *memory_of(&sender, i) = 0x5a;
        *memory_of(&receiver, i) = 0;
    }
}

static void end_large(void)
{
    end_guest();
    world_cut_bytes = 0;
}

START_TEST(a_large_message_of_a_guest_is_read_whole)
{
    begin_large();
    post_receive(1, 0, LARGE);
    post(&guest, world_message(SCHEMA_OP_SEND, 2, 0, LARGE));
    (void)expect_heard(1, OTHER);
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&guest, 0), LARGE);
    expect_sent(&guest, 2);
    end_large();
}
END_TEST

START_TEST(one_that_is_read_when_its_tenant_is_shut_out_leaves_the_receive)
{
    begin_large();
    post_receive(1, 0, LARGE);
    post(&guest, world_message(SCHEMA_OP_SEND, 2, 0, LARGE));
    run_into_reading();
    ck_assert_int_eq(ask_guest(SCHEMA_OP_PORT_REVOKE, 3, OTHER), 0);
    expect_refused(&guest);
    ck_assert_uint_lt(stats_of(1).pieces, LARGE / CUT); /* it is looked at within a millisecond */
    post(&sender, world_message(SCHEMA_OP_SEND, 3, 0, LARGE));
    (void)expect_heard(1, TENANT);
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 0), LARGE);
    end_large();
}
END_TEST

/* Several large ones of a guest are READ together, of as many as half of the receives. */
START_TEST(large_ones_of_a_guest_leave_receives_to_others)
{
    enum { RECEIVES = 4, HALF = RECEIVES / 2 };
    uint32_t most = 0;
    begin_large();
    post_receive(100, 0, 64);
    post(&guest, world_message(SCHEMA_OP_SEND, 100, 0, 8));
    (void)expect_heard(100, OTHER);
    expect_sent(&guest, 100);
    for (uint32_t i = 0; i < RECEIVES; i++)
        post_receive(i, 0, LARGE);
    for (uint32_t i = 0; i < RECEIVES; i++)
        post(&guest, world_message(SCHEMA_OP_SEND, i, 0, LARGE));
    for (int i = 0; stats_of(1).messages_received < 2 && i < PATIENCE; i++) {
        const struct large_read *g;
        uint32_t used = 0;
        world_run(&w, 1);
        TAILQ_FOREACH(g, &w.node[1].lane->messages->large_used, by_use)
            used++;
        most = used > most ? used : most;
    }
    ck_assert_uint_eq(most, HALF);
    for (uint32_t i = 0; i < RECEIVES; i++)
        (void)expect_heard(i, OTHER);
    for (uint32_t i = 0; i < RECEIVES; i++)
        expect_sent(&guest, i);
    end_large();
}
END_TEST

/* How many of a guest's are READ together at the most, of which the later ones come while the first
 * is; unmet: when somebody of the port's own tenant has just found no receive. */
static uint32_t count_together(bool unmet)
{
    enum { RECEIVES = 6 };
    const struct large_read *g;
    uint32_t most = 0;
    begin_large();
    struct lane *l = w.node[1].lane;
    post_receive(100, 0, 64);
    post(&guest, world_message(SCHEMA_OP_SEND, 100, 0, 8));
    (void)expect_heard(100, OTHER);
    expect_sent(&guest, 100);
    const uint64_t before = stats_of(1).messages_received;
    for (uint32_t i = 0; i < RECEIVES; i++)
        post_receive(i, 0, LARGE);
    post(&guest, world_message(SCHEMA_OP_SEND, 0, 0, LARGE));
    for (int i = 0; TAILQ_EMPTY(&l->messages->large_used) && i < PATIENCE; i++)
        world_run(&w, 1);
    if (unmet)
        l->sessions[receiver.id].vqps[3].messages->unmet_ns = l->now_ns;
    post(&guest, world_message(SCHEMA_OP_SEND, 1, 0, LARGE));
    for (int i = 0; stats_of(1).messages_received == before && i < PATIENCE; i++) {
        uint32_t used = 0;
        world_run(&w, 1);
        TAILQ_FOREACH(g, &l->messages->large_used, by_use)
            used++;
        most = used > most ? used : most;
    }
    for (uint32_t i = 0; i < 2; i++)
        (void)expect_heard(i, OTHER);
    for (uint32_t i = 0; i < 2; i++)
        expect_sent(&guest, i);
    end_large();
    return most;
}

START_TEST(no_more_large_ones_of_a_guest_are_read_where_its_host_has_found_no_receive)
{
    ck_assert_uint_eq(count_together(false), 2);
    ck_assert_uint_eq(count_together(true), 1);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(whom_a_worker_lets_in_is_heard_until_it_says_otherwise)                                      \
    T(a_grant_is_for_one_tenant_at_one_vqp_and_goes_with_it)                                       \
    T(what_makes_no_sense_lets_nobody_in)                                                          \
    T(that_one_ends_no_quota_refuses)                                                              \
    T(the_owner_of_a_port_answers_a_guest_and_no_other_tenant_reaches_him)                         \
    T(a_guest_does_not_reach_the_name_of_a_vqp_that_sends)                                         \
    T(a_flood_of_a_guest_takes_no_receive_from_who_waits_at_his_own_port)                          \
    T(guests_with_many_streams_leave_the_ports_own_tenant_its_places)                              \
    T(many_that_answer_leave_places_to_guests)                                                     \
    T(a_large_message_of_a_guest_is_read_whole)                                                    \
    T(one_that_is_read_when_its_tenant_is_shut_out_leaves_the_receive)                             \
    T(large_ones_of_a_guest_leave_receives_to_others)                                              \
    T(no_more_large_ones_of_a_guest_are_read_where_its_host_has_found_no_receive)
KEDGE_CHECK_MAIN("agent.lane.port_guests", TESTS)
