/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs that wait at a window while what is said of them comes late: nothing of one that is
 * acknowledged there is left in any window, so that its flow can go. And those without a payload,
 * which are requests of a window all the same. */
#include <string.h>

#include "../../check_main.h"
#include "schedule/sends.h"
#include "session_state.h"
#include "message_pair.h" /* behind headers in which a name is a parameter's */
#include "world_trio.h"

enum { VQPS = 3, EACH = 60, SEEDS = 60, BYTES = 16, RECEIVE = 64, BUFFERS = 16, NARROW = 2048 };

static uint64_t random_state;

static uint32_t random_below(uint32_t most)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % most;
}

static void begin_with_window_of(uint64_t bytes, uint32_t ops)
{
    const struct lane_command c = {
        .kind = LANE_COMMAND_WINDOW,
        .window = {.scope = LANE_WINDOW_DEVICE, .bytes = bytes, .ops = ops}};
    world_fault = (struct fault_plan){.seed = 1};
    begin();
    for (uint16_t v = 1; v < VQPS; v++) {
        ck_assert_int_eq(world_connect(&w, &sender, v, 1), 0);
        world_send_to(&sender, v, SCHEMA_SEND_TO_PORT, PORT);
    }
    ck_assert_int_eq(lane_command(w.node[0].lane, &c), 0);
    world_run(&w, 2);
}

static void begin_with_window(uint32_t ops)
{
    begin_with_window_of(0, ops);
}

static void expect_empty(enum lane_window_scope scope, uint32_t number, uint64_t seed)
{
    struct lane_window n;
    if (!lane_window(w.node[0].lane, scope, number, &n))
        return; /* no destination's */
    ck_assert_msg(n.ops == 0 && n.bytes == 0 && n.waiting == 0,
                  "seed %lu: window %u of scope %u has %lu, of %lu bytes, and %lu wait", seed,
                  number, (unsigned)scope, n.ops, n.bytes, n.waiting);
}

/* Nothing is out. */
static void expect_empty_windows(uint64_t seed)
{
    expect_empty(LANE_WINDOW_DEVICE, 0, seed);
    expect_empty(LANE_WINDOW_TENANT, TENANT % WORLD_TENANTS, seed);
    for (uint32_t i = 0; i < lane_destinations(w.node[0].lane); i++)
        expect_empty(LANE_WINDOW_DESTINATION, i, seed);
}

static struct vqp *vqp_at(uint16_t vqp)
{
    return &w.node[0].lane->sessions[sender.id].vqps[vqp];
}

static void hear_note(uint16_t vqp, enum schema_note_kind kind, uint32_t ahead)
{
    struct vqp_messages *t = vqp_at(vqp)->messages;
    const struct schema_note n = {
        .kind = (uint8_t)kind, .stream = t->sender.name, .number = t->sender.out.first + ahead};
    lane_sends_hear(w.node[0].lane, t, &n);
}

/* What its receiver has answered before it took what it has not acknowledged yet. */
static void hear_late_answer(uint16_t vqp)
{
    hear_note(vqp, SCHEMA_NOTE_ANSWER, 0);
}

static void send_by(uint16_t vqp, uint64_t wr_id, uint64_t offset, uint32_t length)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, wr_id, offset, length);
    d.vqp = vqp;
    post(&sender, d);
}

static void expect_done(uint64_t wr_id)
{
    const struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, wr_id);
}

/* Each stream is open, and has credit. */
static void warm_streams(void)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    for (uint16_t v = 0; v < VQPS; v++) {
        post_receive(100 + v, 0, RECEIVE);
        send_by(v, v, 0, 8);
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        expect_done(v);
    }
}

/* It was taken, and its receiver cannot say so yet. An answer of before sends it again, and it
 * waits where another one is out; there it hears that it is over. */
START_TEST(one_that_is_acknowledged_while_it_waits_there_leaves_nothing_and_its_flow_may_go)
{
    begin_with_window(1);
    warm_streams();
    world_no_ud_repairs = true;
    world_break_ud(&w, 1);
    post_receive(1, 0, RECEIVE);
    post_receive(2, 0, RECEIVE);
    send_by(0, 10, 0, 8);
    world_run(&w, 20);
    ck_assert_uint_eq(vqp_at(0)->kept, 1);
    world_delay(&w, 2000);
    send_by(1, 11, 0, 8);
    world_run(&w, 5);
    ck_assert_uint_eq(vqp_at(1)->outstanding, 1);
    hear_late_answer(0);
    world_run(&w, 5);
    ck_assert_uint_eq(vqp_at(0)->wait, WAIT_DEVICE_WINDOW);
    hear_note(0, SCHEMA_NOTE_TAKEN, 1);
    ck_assert_uint_eq(vqp_at(0)->wait, WAIT_DEVICE_WINDOW);
    world_repair_uds(&w);
    world_delay(&w, 0);
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    expect_empty_windows(0);
    /* The next life of the endpoint has another flow, and this one goes. */
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 12, 0, 8, 0xabcd, 0);
    d.vqp = 2;
    world_restart_node(&w, 1);
    ck_assert_uint_eq(world_do(&w, &sender, d, 500000).status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(world_connect(&w, &sender, 2, 1), 0);
    ck_assert_uint_eq(world_do(&w, &sender, d, 500000).vendor_err, SCHEMA_REASON_VKEY);
    ck_assert_uint_eq(world_stats(&w, 0).flows, 1);
    end();
}
END_TEST

static void expect_out(uint64_t ops, uint64_t bytes)
{
    struct lane_window n;
    ck_assert(lane_window(w.node[0].lane, LANE_WINDOW_DEVICE, 0, &n));
    ck_assert_msg(n.ops == ops && n.bytes == bytes, "%lu requests of %lu bytes are out", n.ops,
                  n.bytes);
}

/* Several have been out at a time, so that others pass without a slow look. */
static void begin_narrow(void)
{
    begin_with_window_of(NARROW, 0);
    warm_streams();
    world_delay(&w, 20);
    for (uint16_t v = 0; v < VQPS; v++) {
        post_receive(200 + v, 0, RECEIVE);
        send_by(v, 200 + v, 0, 8);
    }
    world_run(&w, 5);
    expect_out(VQPS, VQPS * 8);
    for (uint16_t v = 0; v < VQPS; v++)
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    for (uint16_t v = 0; v < 2; v++)
        post_receive(v, 0, 2 * NARROW);
    world_run(&w, 20);
    expect_out(0, 0);
    world_delay(&w, 2000);
}

static void end_narrow(void)
{
    world_delay(&w, 0);
    for (uint16_t v = 0; v < 2; v++)
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    world_run(&w, 20);
    expect_empty_windows(0);
    end();
}

START_TEST(one_that_is_larger_than_a_window_waits_for_one_without_a_payload)
{
    begin_narrow();
    send_by(0, 10, 0, 0);
    world_run(&w, 5);
    expect_out(1, 0);
    send_by(1, 11, 0, 2 * NARROW);
    world_run(&w, 5);
    expect_out(1, 0);
    ck_assert_uint_eq(vqp_at(1)->wait, WAIT_DEVICE_WINDOW);
    end_narrow();
}
END_TEST

/* With no piece, and with one of no bytes, which may go in a run. */
static void wait_without_payload(uint8_t pieces)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 10, 0, 0);
    d.num_sge = pieces;
    begin_narrow();
    send_by(1, 11, 0, 2 * NARROW);
    world_run(&w, 5);
    expect_out(1, 2 * NARROW);
    post(&sender, d);
    world_run(&w, 5);
    expect_out(1, 2 * NARROW);
    ck_assert_uint_eq(vqp_at(0)->wait, WAIT_DEVICE_WINDOW);
    end_narrow();
}

START_TEST(one_without_a_payload_waits_for_one_that_is_larger_than_a_window)
{
    wait_without_payload(0);
    wait_without_payload(1);
}
END_TEST

START_TEST(one_without_a_payload_goes_beside_one_that_fits)
{
    begin_narrow();
    send_by(0, 10, 0, 0);
    send_by(1, 11, 0, NARROW);
    world_run(&w, 5);
    expect_out(2, NARROW);
    end_narrow();
}
END_TEST

static void run_with(uint64_t seed)
{
    uint32_t posted[VQPS] = {0}, ended[VQPS] = {0}, heard[VQPS] = {0};
    uint32_t received = 0, buffers = 0, over = 0, tries = 0;
    random_state = seed;
    begin_with_window(1 + seed % 3);
    while (over < VQPS * EACH) {
        ck_assert_uint_lt(++tries, 100000);
        const uint16_t v = (uint16_t)random_below(VQPS);
        if (posted[v] < EACH && posted[v] - ended[v] < 8) {
            const uint64_t at = (uint64_t)(v * EACH + posted[v]) * BYTES;
            const uint32_t says[2] = {v, posted[v]};
            memcpy(memory_of(&sender, at), says, sizeof says);
            send_by(v, posted[v]++, at, (uint32_t)sizeof says + random_below(8));
        }
        for (; buffers - received < BUFFERS && random_below(2) == 0; buffers++)
            post_receive(buffers, 16384 + (uint64_t)(buffers % BUFFERS) * RECEIVE, RECEIVE);
        if (random_below(60) == 0)
            world_break_ud(&w, random_below(2));
        if (random_below(4) == 0)
            hear_late_answer((uint16_t)random_below(VQPS));
        world_delay(&w, random_below(3) == 0 ? random_below(30) : 0);
        world_run(&w, random_below(40));
        struct schema_cqe e;
        struct schema_cqe_sender from;
        while (world_poll(&w, &sender, &e, 0)) {
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.wr_id, ended[e.vqp]++);
            over++;
        }
        while (world_hear(&w, &receiver, &e, &from, 0)) {
            uint32_t says[2];
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            memcpy(says, memory_of(&receiver, 16384 + (received++ % BUFFERS) * RECEIVE),
                   sizeof says);
            ck_assert_uint_lt(says[0], VQPS);
            ck_assert_uint_eq(says[1], heard[says[0]]++);
        }
    }
    world_delay(&w, 0);
    world_run(&w, 100);
    expect_empty_windows(seed);
    end();
}

START_TEST(whatever_comes_late_leaves_windows_as_they_were)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_with(seed);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_that_is_acknowledged_while_it_waits_there_leaves_nothing_and_its_flow_may_go)            \
    T(one_that_is_larger_than_a_window_waits_for_one_without_a_payload)                            \
    T(one_without_a_payload_waits_for_one_that_is_larger_than_a_window)                            \
    T(one_without_a_payload_goes_beside_one_that_fits)                                             \
    T(whatever_comes_late_leaves_windows_as_they_were)
KEDGE_CHECK_MAIN("agent.lane.message_windows", TESTS)
