/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs and RECVs that stand in their rings one behind the other, of one VQP: what is taken of them
 * at once is as they would be one by one. */
#include <string.h>

#include "../../check_main.h"
#include "message_pair.h"

enum { MOST = 16, ROUNDS = 40, SEEDS = 12, EACH = 1024, HEARD_AT = 32768, ARENAS = 1 };

static uint64_t random_state;

static uint32_t pick(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % n;
}

static uint8_t pattern(uint32_t message, uint32_t at)
{
    return (uint8_t)(message * 31 + at * 7 + 1);
}

static void fill(uint8_t *to, uint32_t message, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        to[i] = pattern(message, i);
}

/* Into its ring, and the lane has no pass meanwhile. A message that is inline has a slot more. */
static void write_send(uint32_t slot, uint32_t message, uint32_t bytes, uint8_t flags)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, message, (uint64_t)slot * EACH, bytes);
    struct schema_sq_desc behind;
    fill(memory_of(&sender, d.post.offset), message, bytes);
    d.flags = flags;
    if (flags & SCHEMA_OP_IMM)
        d.post.imm = message;
    if (flags & SCHEMA_OP_INLINE) {
        d.slots = 2;
        fill((uint8_t *)&behind, message, bytes);
        memset(memory_of(&sender, d.post.offset), 0, bytes);
    }
    world_post(&sender, &d);
    if (flags & SCHEMA_OP_INLINE)
        world_post(&sender, &behind);
}

static void write_receive(uint32_t slot, uint32_t length)
{
    struct schema_sq_desc d =
        world_message(SCHEMA_OP_RECV, slot, HEARD_AT + (uint64_t)slot * EACH, length);
    d.vqp = 3;
    world_post(&receiver, &d);
}

static void ring_both(void)
{
    lane_doorbell(w.node[0].lane, sender.id);
    lane_doorbell(w.node[1].lane, receiver.id);
}

/* Some are inline, say an immediate, have no byte, or nobody hears of their end: a run ends there,
 * and the next begins. Receives may come behind. */
static void send_some(uint32_t first, uint32_t count)
{
    uint32_t bytes[MOST];
    uint8_t flags[MOST];
    struct schema_cqe e;
    struct schema_cqe_sender from;
    const bool late = pick(4) == 0;
    for (uint32_t i = 0; i < count && !late; i++)
        write_receive(i, EACH);
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = pick(6) == 0 ? 0 : 1 + pick(EACH);
        flags[i] = pick(3) == 0 && i + 1 < count ? 0 : SCHEMA_OP_SIGNALED;
        flags[i] |= pick(5) == 0 ? SCHEMA_OP_IMM : 0;
        if (pick(5) == 0 && bytes[i] <= SCHEMA_LINE && bytes[i] > 0)
            flags[i] |= SCHEMA_OP_INLINE;
        write_send(i, first + i, bytes[i], flags[i]);
    }
    ring_both();
    if (late)
        world_run(&w, pick(5));
    for (uint32_t i = 0; i < count && late; i++)
        write_receive(i, EACH);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_uint_eq(e.byte_len, bytes[i]);
        ck_assert_uint_eq(e.with_imm, (flags[i] & SCHEMA_OP_IMM) != 0);
        ck_assert_uint_eq(e.imm, flags[i] & SCHEMA_OP_IMM ? first + i : 0);
        for (uint32_t n = 0; n < bytes[i]; n++)
            ck_assert_uint_eq(*memory_of(&receiver, HEARD_AT + i * EACH + n),
                              pattern(first + i, n));
    }
    for (uint32_t i = 0; i < count; i++) {
        if ((flags[i] & SCHEMA_OP_SIGNALED) == 0)
            continue;
        e = world_done(&w, &sender, PATIENCE);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, first + i);
    }
}

START_TEST(whatever_stands_in_a_run_comes_once_and_in_order)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        random_state = seed * 0x9e3779b97f4a7c15ull;
        begin();
        for (uint32_t n = 0, sent = 0; n < ROUNDS; n++) {
            const uint32_t count = 1 + pick(MOST);
            send_some(sent, count);
            sent += count;
        }
        end();
    }
}
END_TEST

/* Of three, the one in the middle is none that may go. */
static void expect_broken(struct schema_sq_desc wrong, uint32_t status, uint32_t reason)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    random_state = 1;
    send_some(100, 3); /* before there are credits nothing is a run */
    write_receive(0, EACH);
    write_receive(1, EACH);
    write_send(0, 0, 8, SCHEMA_OP_SIGNALED);
    world_post(&sender, &wrong);
    write_send(2, 2, 8, SCHEMA_OP_SIGNALED);
    ring_both();
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 0);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(e.status, status);
    ck_assert_uint_eq(e.vendor_err, reason);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert(!world_poll(&w, &receiver, &e, 1000));
    end();
}

START_TEST(one_of_a_run_that_is_wrong_ends_it_behind_those_before_it)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 1, 0, 8);
    d.post.arena = ARENAS;
    expect_broken(d, IBV_WC_LOC_PROT_ERR, SCHEMA_REASON_LOCAL_RANGE);
    d.post.arena = 0;
    d.post.offset = sender.arena.size - 4;
    expect_broken(d, IBV_WC_LOC_PROT_ERR, SCHEMA_REASON_LOCAL_RANGE);
    d.post.offset = UINT64_MAX - 3;
    expect_broken(d, IBV_WC_LOC_PROT_ERR, SCHEMA_REASON_LOCAL_RANGE);
    d = world_message(SCHEMA_OP_SEND, 1, 0, 8);
    d.flags |= SCHEMA_OP_RELAXED;
    expect_broken(d, IBV_WC_LOC_QP_OP_ERR, SCHEMA_REASON_DESCRIPTOR);
}
END_TEST

/* It is in the middle of others, in either ring. */
START_TEST(a_receive_in_a_run_that_is_wrong_fails_alone)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin();
    struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, 1, 0, 8);
    d.vqp = 3;
    d.post.arena = ARENAS;
    write_receive(0, EACH);
    world_post(&receiver, &d);
    write_receive(2, EACH);
    ring_both();
    e = world_done(&w, &receiver, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_LOCAL_RANGE);
    for (uint32_t i = 0; i < 2; i++)
        write_send(i, i, 8, SCHEMA_OP_SIGNALED);
    ring_both();
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.wr_id, 2 * i);
    }
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    end();
}
END_TEST

/* More than there are credits, and than are left in the ring's turn: nobody is told RNR by the
 * device, which would end in an error. */
START_TEST(a_run_goes_no_further_than_its_credits)
{
    enum { MANY = 48 };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    uint32_t heard = 0, done = 0;
    begin();
    for (uint32_t round = 0; round < 8; round++) {
        for (uint32_t i = 0; i < MANY; i++)
            write_send(i % MOST, i % MOST, 100, SCHEMA_OP_SIGNALED);
        for (uint32_t i = 0; i < MANY; i++)
            write_receive(i % MOST, EACH);
        ring_both();
        for (heard = 0; heard < MANY; heard++) {
            ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.wr_id, heard % MOST);
            const struct lane_stats stats = world_stats(&w, 1);
            ck_assert_uint_le(stats.credits_granted, stats.receives_posted);
        }
        for (done = 0; done < MANY; done++) {
            e = world_done(&w, &sender, PATIENCE);
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.wr_id, done % MOST);
        }
    }
    ck_assert_uint_eq(world_stats(&w, 0).qp_broken, 0);
    end();
}
END_TEST

/* VQP 4 hears them, and nobody has to ask for one again. */
static void send_to_other(uint32_t first, uint32_t count)
{
    enum { UNASKED = 60 };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    for (uint32_t i = 0; i < count; i++) {
        struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, first + i, HEARD_AT, EACH);
        d.vqp = 4;
        world_post(&receiver, &d);
        write_send(i, first + i, 8, SCHEMA_OP_SIGNALED);
    }
    ring_both();
    for (uint32_t i = 0; i < count; i++) {
        ck_assert(world_hear(&w, &receiver, &e, &from, UNASKED));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.vqp, 4);
        ck_assert_uint_eq(e.wr_id, first + i);
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    }
}

/* What a run has said before is of that port and that account, and each may be another one now. */
START_TEST(a_run_says_what_holds_when_it_goes)
{
    const uint64_t forgets_ns = 61000000000;
    begin();
    random_state = 1;
    send_some(0, 3);
    send_some(3, 3);
    ck_assert_int_eq(world_bind_port(&w, &receiver, 4, PORT + 1), 0);
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT + 1);
    send_to_other(10, 3);
    send_to_other(20, 3);
    for (int i = 0; i < 2; i++) {
        const uint64_t granted = world_stats(&w, 1).credits_granted;
        world_sleep(&w, forgets_ns);
        world_run(&w, 5000);
        ck_assert_uint_lt(world_stats(&w, 1).credits_granted, granted); /* its account is closed */
        send_to_other(30, 3);
        send_to_other(40, 3);
    }
    ck_assert_uint_eq(world_stats(&w, 1).messages_stray, 0);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(whatever_stands_in_a_run_comes_once_and_in_order)                                            \
    T(one_of_a_run_that_is_wrong_ends_it_behind_those_before_it)                                   \
    T(a_receive_in_a_run_that_is_wrong_fails_alone)                                                \
    T(a_run_goes_no_further_than_its_credits)                                                      \
    T(a_run_says_what_holds_when_it_goes)

KEDGE_CHECK_MAIN("agent.lane.message_runs", TESTS)
