/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of more than a receive of the lane's holds, from one worker of a lane to another one,
 * which no device carries: they are copied in parts, between which anything may happen. */
#include <string.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "message_state.h" /* before a w that they would hide */
#include "vqp_state.h"

#include "message_pair.h"

enum {
    OTHER = TENANT + 1,
    LARGE = SCHEMA_MESSAGE_MOST + 1,
    ALL = WORLD_ARENA,
    PART = 16 * 1024, /* of a pass, beside another session */
    WARM = 100,
    STEPS = 300,
    SEEDS = 20,
    BUFFERS = 3,
    BUFFER = 20000,
    PATIENT = 19 /* a time-out of the device of 14 s, whatever else the host does meanwhile */
};

static uint64_t random_state;

static uint32_t random_below(uint32_t most)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % most;
}

static struct lane_stats stats_now(void)
{
    return world_stats(&w, 1);
}

static void fill(void)
{
    for (uint32_t i = 0; i < WORLD_ARENA; i++) {
        *memory_of(&sender, i) = (uint8_t)(i * 7 + i / 256 + 1);
        *memory_of(&receiver, i) = 0;
    }
}

static void expect_heard(uint64_t wr_id, uint32_t length)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.opcode, IBV_WC_RECV);
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(e.byte_len, length);
    ck_assert_uint_eq(from.tenant, TENANT);
}

static void expect_sent(uint64_t wr_id)
{
    const struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, wr_id);
}

static void send_from(struct world_worker *k, uint16_t vqp, uint64_t wr_id, uint32_t length)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, wr_id, 0, length);
    d.vqp = vqp;
    post(k, d);
}

static void send_large(uint64_t wr_id, uint32_t length)
{
    send_from(&sender, 0, wr_id, length);
}

/* The stream is known, and its session lends: the next one may go near. */
static void warm(uint16_t vqp)
{
    post_receive(WARM, 0, LARGE);
    send_from(&sender, vqp, WARM, LARGE);
    expect_heard(WARM, LARGE);
    expect_sent(WARM);
}

static void begin_near(void)
{
    begin_own();
    fill();
    warm(0);
    ck_assert_uint_eq(stats_now().messages_large, 1);
    ck_assert_uint_eq(stats_now().messages_near, 0);
    memset(memory_of(&receiver, 0), 0, WORLD_ARENA);
}

/* The first part of one is there, and no more. */
static void run_into_copying(const struct world_worker *k, uint16_t vqp)
{
    world_run(&w, 1);
    const struct vqp_messages *t = w.node[1].lane->sessions[k->id].vqps[vqp].messages;
    ck_assert_uint_eq(t->near.waits, 1);
    ck_assert_uint_eq(t->near.done, PART);
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(k, 0), PART);
}

/* Nothing of any is left in the lane. */
static void expect_none_waits(void)
{
    ck_assert(TAILQ_EMPTY(&w.node[1].lane->messages->nears.waiting));
    ck_assert_uint_eq(w.node[1].lane->messages->nears.bytes, 0);
}

START_TEST(messages_of_all_sizes_come_without_a_device)
{
    static const uint32_t lengths[] = {LARGE, 20000, 32768, 40001, ALL};
    begin_near();
    const struct lane_stats before = stats_now();
    for (uint32_t i = 0; i < 5; i++) {
        struct schema_cqe e;
        struct schema_cqe_sender from;
        memset(memory_of(&receiver, 0), 0, WORLD_ARENA);
        post_receive(i, 0, ALL);
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 10 + i, 0, lengths[i]);
        d.flags |= i % 2 ? SCHEMA_OP_IMM : 0;
        d.post.imm = 1000 + i;
        post(&sender, d);
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_uint_eq(e.byte_len, lengths[i]);
        ck_assert_uint_eq(e.with_imm, i % 2);
        ck_assert(!(i % 2) || e.imm == 1000 + i);
        ck_assert_uint_eq(from.tenant, TENANT);
        ck_assert_mem_eq(from.gid, w.node[1].fab->caps.gid, 16);
        ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 0), lengths[i]);
        ck_assert(lengths[i] == ALL || *memory_of(&receiver, lengths[i]) == 0);
        expect_sent(10 + i);
    }
    const struct lane_stats after = stats_now();
    ck_assert_uint_eq(after.messages_near - before.messages_near, 5);
    ck_assert_uint_eq(after.messages_received - before.messages_received, 5);
    ck_assert_uint_eq(after.messages_sent - before.messages_sent, 5);
    ck_assert_uint_eq(after.messages_large, before.messages_large);
    ck_assert_uint_eq(after.posted, before.posted);
    end();
}
END_TEST

/* Each pass has 16 KiB of it, and the sender knows in the pass in which the rest is there. */
START_TEST(beside_another_session_a_pass_copies_its_part)
{
    struct schema_cqe e;
    begin_near();
    post_receive(1, 0, ALL);
    send_large(2, ALL);
    for (uint32_t passes = 1; passes <= ALL / PART; passes++) {
        world_run(&w, 1);
        ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 0), passes * PART);
        ck_assert(passes == ALL / PART || *memory_of(&receiver, passes * PART + 1) == 0);
        ck_assert_uint_eq(world_poll(&w, &sender, &e, 0), passes == ALL / PART);
    }
    expect_heard(1, ALL);
    end();
}
END_TEST

static void post_pieces(struct world_worker *k, struct schema_sq_desc d,
                        const struct schema_sge *sge, uint8_t count)
{
    struct schema_sq_sges sges = {.sge = {{.offset = 0}}};
    memcpy(sges.sge, sge, count * sizeof sge[0]);
    d.slots = 2;
    d.num_sge = count;
    world_post(k, &d);
    world_post(k, (const struct schema_sq_desc *)(const void *)&sges);
    lane_doorbell(w.node[k->node].lane, k->id);
}

START_TEST(pieces_go_to_other_pieces_wherever_a_part_ends)
{
    static const struct schema_sge from[] = {{.offset = 40000, .length = 20001},
                                             {.offset = 3, .length = 1},
                                             {.offset = 100, .length = 29998}};
    static const struct schema_sge to[] = {{.offset = 50000, .length = 7},
                                           {.offset = 0, .length = 30000},
                                           {.offset = 60000, .length = 0},
                                           {.offset = 30001, .length = 19999}};
    static uint8_t sent[50000], heard[50000];
    uint32_t at = 0, n = 0;
    begin_near();
    struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, 1, 0, 0);
    d.vqp = 3;
    post_pieces(&receiver, d, to, 4);
    post_pieces(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 0), from, 3);
    expect_heard(1, sizeof sent);
    expect_sent(2);
    for (uint32_t i = 0; i < 3; at += from[i++].length)
        memcpy(sent + at, memory_of(&sender, from[i].offset), from[i].length);
    for (uint32_t i = 0; n < sizeof heard; n += to[i++].length)
        memcpy(heard + n, memory_of(&receiver, to[i].offset),
               to[i].length < sizeof heard - n ? to[i].length : sizeof heard - n);
    ck_assert_mem_eq(heard, sent, sizeof sent);
    ck_assert_uint_eq(stats_now().messages_near, 1);
    end();
}
END_TEST

/* What is longer, what the lane may not touch, and all where it is told so. */
START_TEST(others_are_read_by_the_device)
{
    static const struct schema_sge from[] = {{.offset = 0, .length = ALL},
                                             {.offset = 5, .length = 1}};
    begin_near();
    struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, 1, 0, 0);
    d.vqp = 3;
    post_pieces(&receiver, d, from, 2);
    post_pieces(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 0), from, 2);
    expect_heard(1, ALL + 1);
    expect_sent(2);
    ck_assert_uint_eq(stats_now().messages_large, 2);
    uint8_t *const touch = w.node[1].lane->sessions[sender.id].touch[0];
    w.node[1].lane->sessions[sender.id].touch[0] = NULL;
    post_receive(3, 0, ALL);
    send_large(4, ALL);
    expect_heard(3, ALL);
    expect_sent(4);
    w.node[1].lane->sessions[sender.id].touch[0] = touch;
    ck_assert_uint_eq(stats_now().messages_near, 0);
    end();
    world_by_device = true;
    begin_own();
    fill();
    for (uint32_t i = 0; i < 5; i++)
        warm(0);
    ck_assert_uint_eq(stats_now().messages_near, 0);
    end();
    world_by_device = false;
}
END_TEST

/* ---- what is not as it is most often */

START_TEST(without_a_receive_it_waits_and_one_that_is_short_ends_it)
{
    struct schema_cqe e;
    begin_near();
    send_large(1, ALL);
    ck_assert(!world_poll(&w, &sender, &e, 1000));
    ck_assert_uint_ge(stats_now().messages_refused, 1);
    post_receive(2, 0, ALL);
    expect_heard(2, ALL);
    expect_sent(1);
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 0), ALL);
    ck_assert_uint_eq(stats_now().messages_near, 0);
    world_sleep(&w, 10000000);
    warm(0);
    warm(0);
    ck_assert_uint_ge(stats_now().messages_near, 1);
    memset(memory_of(&receiver, 0), 0, ALL);
    post_receive(3, 0, ALL - 1);
    send_large(4, ALL);
    e = world_done(&w, &receiver, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_LOC_LEN_ERR);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_REM_INV_REQ_ERR);
    ck_assert_uint_eq(*memory_of(&receiver, 0), 0);
    end();
}
END_TEST

static void destroy(struct world_worker *k, uint16_t vqp)
{
    post(k, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = vqp});
}

START_TEST(a_hearer_that_goes_amid_one_refuses_it)
{
    begin_near();
    post_receive(1, 0, ALL);
    send_large(2, ALL);
    run_into_copying(&sender, 0);
    destroy(&receiver, 3);
    struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
    while (world_poll(&w, &receiver, &e, 0))
        ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
    expect_none_waits();
    end();
}
END_TEST

START_TEST(a_sender_that_goes_amid_one_leaves_the_receive_to_the_next)
{
    struct schema_cqe e;
    begin_near();
    ck_assert_int_eq(world_connect(&w, &sender, 1, 1), 0);
    world_send_to(&sender, 1, SCHEMA_SEND_TO_PORT, PORT);
    warm(1);
    post_receive(1, 0, ALL);
    send_large(2, ALL);
    run_into_copying(&sender, 0);
    destroy(&sender, 0);
    world_run(&w, 100);
    expect_none_waits();
    ck_assert(!world_poll(&w, &receiver, &e, 0));
    memset(memory_of(&sender, 0), 0x55, ALL);
    send_from(&sender, 1, 3, LARGE);
    expect_heard(1, LARGE);
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 0), LARGE);
    end();
}
END_TEST

START_TEST(sessions_that_end_amid_one_leave_nothing)
{
    struct schema_cqe e;
    begin_near();
    post_receive(1, 0, ALL);
    send_large(2, ALL);
    run_into_copying(&sender, 0);
    world_detach(&w, &sender);
    expect_none_waits();
    ck_assert(!world_poll(&w, &receiver, &e, 100));
    world_attach(&w, &sender, 1, 1, TENANT);
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
    fill();
    send_large(3, ALL);
    expect_heard(1, ALL);
    expect_sent(3);
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 0), ALL);
    warm(0);
    memset(memory_of(&receiver, 0), 0, ALL);
    post_receive(4, 0, ALL);
    send_large(5, ALL);
    run_into_copying(&sender, 0);
    world_detach(&w, &receiver);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
    expect_none_waits();
    world_attach(&w, &receiver, 1, 0, TENANT);
    end();
}
END_TEST

START_TEST(a_guest_who_is_shut_out_amid_one_is_refused)
{
    struct world_worker guest;
    struct schema_cqe e;
    struct schema_cqe_sender from;
    const struct schema_sq_desc grant = {
        .op = SCHEMA_OP_PORT_GRANT, .vqp = 3, .bind_port = {.tenant = OTHER}};
    struct schema_sq_desc revoke = grant;
    revoke.op = SCHEMA_OP_PORT_REVOKE;
    begin_near();
    world_attach(&w, &guest, 1, 2, OTHER);
    ck_assert_int_eq(world_connect(&w, &guest, 0, 1), 0);
    ck_assert_int_eq(world_ask(&w, &receiver, grant, NULL), 0);
    post(&guest, (struct schema_sq_desc){
                     .op = SCHEMA_OP_SEND_TO,
                     .slots = 1,
                     .send_to = {.kind = SCHEMA_SEND_TO_PORT, .to = PORT, .tenant = TENANT}});
    for (uint32_t i = 0; i < 2; i++) {
        post_receive(i, 0, LARGE);
        send_from(&guest, 0, i, LARGE);
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(from.tenant, OTHER);
        ck_assert_uint_eq(world_done(&w, &guest, PATIENCE).status, IBV_WC_SUCCESS);
    }
    ck_assert_uint_eq(stats_now().messages_near, 1);
    memset(memory_of(&receiver, 0), 1, ALL);
    memset(memory_of(&guest, 0), 2, ALL);
    post_receive(3, 0, ALL);
    send_from(&guest, 0, 4, ALL);
    run_into_copying(&guest, 0);
    ck_assert_int_eq(world_ask(&w, &receiver, revoke, NULL), 0);
    e = world_done(&w, &guest, PATIENCE);
    if (e.status == IBV_WC_SUCCESS) { /* it was all there before that was answered */
        ck_assert_uint_eq(stats_now().messages_near, 2);
    } else {
        ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
        ck_assert(!world_poll(&w, &receiver, &e, 100));
    }
    expect_none_waits();
    world_detach(&w, &guest);
    end();
}
END_TEST

/* From another node, by the device: it takes the receive that has a part of the near one, which
 * goes by the device then, to the next. */
START_TEST(another_that_takes_its_receive_harms_neither)
{
    struct world_worker far;
    begin_near();
    world_attach(&w, &far, 0, 0, TENANT);
    ck_assert_int_eq(world_connect(&w, &far, 0, 1), 0);
    world_send_to(&far, 0, SCHEMA_SEND_TO_PORT, PORT);
    memset(memory_of(&far, 0), 0xee, ALL);
    post_receive(0, 0, 64);
    send_from(&far, 0, 0, 64);
    expect_heard(0, 64);
    ck_assert_uint_eq(world_done(&w, &far, PATIENCE).status, IBV_WC_SUCCESS);
    uint64_t lost = 0;
    for (uint32_t delay = 0; delay < 8; delay++) {
        struct schema_cqe e;
        struct schema_cqe_sender from;
        memset(memory_of(&receiver, 0), 0, ALL);
        post_receive(1, 0, ALL / 2);
        post_receive(2, ALL / 2, ALL / 2);
        world_run(&w, 10);
        const uint64_t before = stats_now().messages_near;
        send_from(&far, 0, 3, 64);
        for (uint32_t i = 0; i < delay; i++)
            (void)lane_step(w.node[0].lane, w.now_ns);
        send_large(4, ALL / 2);
        for (uint64_t i = 1; i <= 2; i++) {
            ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
            ck_assert_uint_eq(e.wr_id, i);
            const uint8_t *at = memory_of(&receiver, (i - 1) * ALL / 2);
            ck_assert(e.byte_len == 64 || e.byte_len == ALL / 2);
            ck_assert_mem_eq(at, memory_of(e.byte_len == 64 ? &far : &sender, 0), e.byte_len);
        }
        expect_sent(4);
        ck_assert_uint_eq(world_done(&w, &far, PATIENCE).status, IBV_WC_SUCCESS);
        lost += stats_now().messages_near == before;
        world_sleep(&w, 10000000);
        warm(0);
    }
    ck_assert_uint_gt(lost, 0);
    ck_assert_uint_lt(lost, 8);
    world_detach(&w, &far);
    end();
}
END_TEST

/* To one port at once: each has a receive of its own. */
START_TEST(those_of_others_come_behind_one_that_is_being_copied)
{
    enum { FIRST = 40000 };
    begin_near();
    for (uint16_t vqp = 1; vqp < 3; vqp++) {
        ck_assert_int_eq(world_connect(&w, &sender, vqp, 1), 0);
        world_send_to(&sender, vqp, SCHEMA_SEND_TO_PORT, PORT);
        warm(vqp);
    }
    const uint64_t before = stats_now().messages_near;
    memset(memory_of(&receiver, 0), 0, ALL);
    post_receive(1, 0, FIRST);
    post_receive(2, FIRST, LARGE);
    post_receive(3, FIRST + LARGE, 100);
    world_run(&w, 1);
    send_from(&sender, 0, 10, FIRST);
    run_into_copying(&sender, 0);
    send_from(&sender, 1, 11, LARGE);
    send_from(&sender, 2, 12, 100);
    expect_heard(1, FIRST);
    expect_heard(2, LARGE);
    expect_heard(3, 100);
    ck_assert_uint_eq(stats_now().messages_near - before, 3);
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 0), FIRST);
    ck_assert_mem_eq(memory_of(&receiver, FIRST), memory_of(&sender, 0), LARGE);
    ck_assert_mem_eq(memory_of(&receiver, FIRST + LARGE), memory_of(&sender, 0), 100);
    expect_none_waits();
    end();
}
END_TEST

/* Of one VQP, in its order, and none is announced: those behind wait for nothing else. */
START_TEST(small_ones_behind_a_large_one_are_there_in_the_same_pass)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin_near();
    post_receive(0, 0, LARGE);
    for (uint32_t i = 1; i < 4; i++)
        post_receive(i, LARGE + 8 * i, 8);
    world_run(&w, 1);
    send_large(0, LARGE);
    for (uint32_t i = 1; i < 4; i++)
        post(&sender, world_message(SCHEMA_OP_SEND, i, 8 * i, 8));
    ck_assert(!world_hear(&w, &receiver, &e, &from, 1));
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert(world_hear(&w, &receiver, &e, &from, i == 0 ? 1 : 0));
        ck_assert_uint_eq(e.wr_id, i);
    }
    ck_assert_uint_eq(stats_now().messages_near, 4);
    end();
}
END_TEST

/* ---- order */

struct story {
    uint64_t posted, done, sent, heard, receives;
    uint32_t length[STEPS];
};

/* So that a part that went wrong shows. */
static uint32_t place_of(uint64_t number)
{
    return (uint32_t)(number * 977 % 20000);
}

static uint32_t buffer_of(uint64_t receive)
{
    return 64 + (uint32_t)(receive % BUFFERS) * BUFFER;
}

static void post_something(struct story *s, uint32_t key)
{
    const uint32_t kind = random_below(10);
    if (kind == 0) {
        post(&sender, world_rw(SCHEMA_OP_WRITE, s->posted++, 0, 8, key, 0));
        return;
    }
    const uint32_t length = kind < 6 ? LARGE + random_below(BUFFER - LARGE) : 1 + random_below(200);
    s->length[s->sent] = length;
    post(&sender, world_message(SCHEMA_OP_SEND, s->posted++, place_of(s->sent++), length));
}

static void hear_some(struct story *s)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    while (world_hear(&w, &receiver, &e, &from, 0)) {
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, s->heard);
        ck_assert_uint_eq(e.byte_len, s->length[s->heard]);
        uint8_t *at = memory_of(&receiver, buffer_of(s->heard));
        ck_assert_mem_eq(at, memory_of(&sender, place_of(s->heard)), e.byte_len);
        memset(at, 0, e.byte_len);
        s->heard++;
    }
    while (world_poll(&w, &sender, &e, 0)) {
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, s->done++);
    }
}

static void tell_story(uint64_t seed, uint64_t *near, uint64_t *others)
{
    static struct story s;
    const uint8_t timeout = world_ack_timeout;
    s = (struct story){.posted = 0};
    random_state = seed;
    world_ack_timeout = PATIENT;
    begin_near();
    const uint32_t key =
        world_register(&w, &receiver, 0, 64, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    while (s.sent < STEPS || s.done < s.posted || s.heard < s.sent) {
        for (uint32_t n = random_below(6); n > 0 && s.sent < STEPS && s.posted - s.done < 20; n--)
            post_something(&s, key);
        for (uint32_t n = random_below(4); n > 0 && s.receives - s.heard < BUFFERS;
             n--, s.receives++)
            post_receive(s.receives, buffer_of(s.receives), BUFFER);
        world_run(&w, random_below(4));
        if (s.receives > s.heard && random_below(20) == 0) {
            world_sleep(&w, 5000000); /* after which what was refused goes near again */
            world_run(&w, 20);
        }
        hear_some(&s);
    }
    *near += stats_now().messages_near;
    *others += stats_now().messages_received - stats_now().messages_near;
    end();
    world_ack_timeout = timeout;
}

START_TEST(large_and_small_ones_come_in_order_near_and_by_the_device)
{
    uint64_t near = 0, others = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        tell_story(seed, &near, &others);
    ck_assert_uint_gt(near, STEPS);
    ck_assert_uint_gt(others, STEPS);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(messages_of_all_sizes_come_without_a_device)                                                 \
    T(beside_another_session_a_pass_copies_its_part)                                               \
    T(pieces_go_to_other_pieces_wherever_a_part_ends)                                              \
    T(others_are_read_by_the_device)                                                               \
    T(without_a_receive_it_waits_and_one_that_is_short_ends_it)                                    \
    T(a_hearer_that_goes_amid_one_refuses_it)                                                      \
    T(a_sender_that_goes_amid_one_leaves_the_receive_to_the_next)                                  \
    T(sessions_that_end_amid_one_leave_nothing)                                                    \
    T(a_guest_who_is_shut_out_amid_one_is_refused)                                                 \
    T(another_that_takes_its_receive_harms_neither)                                                \
    T(those_of_others_come_behind_one_that_is_being_copied)                                        \
    T(small_ones_behind_a_large_one_are_there_in_the_same_pass)                                    \
    T(large_and_small_ones_come_in_order_near_and_by_the_device)
KEDGE_CHECK_MAIN("agent.lane.near_large", TESTS)
