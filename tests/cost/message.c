/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of 8 bytes, one and several at a time, in a world that does the same each time: from a
 * worker of one node to one of another, and between two of one node; and of 64 KiB, there. What
 * messages.sh has callgrind count, of either lane by itself. */
#include <stdatomic.h>
#include <stdio.h>

#include "../unit/check_main.h"
#include "message_pair.h"

enum { WARM = 64, COUNTED = 1000, BYTES = 8, DEPTH = 8, ROUNDS = 2000 };
enum { LARGE = WORLD_ARENA };
enum { RECEIVES = 256 /* as in a pool of which nothing is said */ };

typedef uint32_t pass_fn(struct lane *lane, uint64_t now_ns);
struct passes {
    pass_fn *sender, *receiver; /* receiver: NULL where that is the same lane */
};
pass_fn counted_sender, counted_receiver, counted_deep_sender, counted_deep_receiver;
pass_fn counted_own, counted_deep_own, counted_near, counted_deep_near;
pass_fn counted_large_own, counted_large_near;

static uint32_t message_bytes = BYTES;

__attribute__((noipa)) uint32_t counted_sender(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_receiver(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_deep_sender(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_deep_receiver(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_own(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_deep_own(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_near(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_deep_near(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_large_own(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

__attribute__((noipa)) uint32_t counted_large_near(struct lane *lane, uint64_t now_ns)
{
    return lane_step(lane, now_ns);
}

static const struct passes uncounted = {lane_step, lane_step},
                           alone = {counted_sender, counted_receiver},
                           deep = {counted_deep_sender, counted_deep_receiver},
                           own = {.sender = counted_own}, deep_own = {.sender = counted_deep_own},
                           near = {.sender = counted_near},
                           deep_near = {.sender = counted_deep_near},
                           large_own = {.sender = counted_large_own},
                           large_near = {.sender = counted_large_near};

/* Rounds, in which each lane has a pass: until the last message was there, and until its sender
 * knew. */
struct took {
    uint32_t there, known;
};

static uint32_t take_completions(struct world_worker *k, uint64_t first_wr_id)
{
    const struct schema_cqe *ring = (const void *)((const uint8_t *)k->r + SCHEMA_CQ_OFFSET);
    uint32_t n = 0;
    while (atomic_load(&k->r->cq_tail) != k->cq_head) {
        const struct schema_cqe *e = &ring[k->cq_head & 63];
        ck_assert_uint_eq(e->status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e->wr_id, first_wr_id + n++);
        k->cq_head += 1u + e->extra;
        atomic_store(&k->w->cq_head, k->cq_head);
    }
    return n;
}

static void round_of(const struct passes *passes)
{
    w.now_ns += 1000;
    (void)passes->sender(w.node[sender.node].lane, w.now_ns);
    if (passes->receiver != NULL)
        (void)passes->receiver(w.node[1].lane, w.now_ns);
}

/* So many, whose buffers have been posted. */
static void send_messages(uint32_t count, struct took *took, const struct passes *passes)
{
    uint32_t there = 0, known = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct schema_sq_desc receive =
            world_message(SCHEMA_OP_RECV, i, message_bytes == LARGE ? 0 : 4096, message_bytes);
        receive.vqp = 3;
        world_post(&receiver, &receive);
    }
    round_of(passes);
    for (uint32_t i = 0; i < count; i++) {
        const struct schema_sq_desc send =
            world_message(SCHEMA_OP_SEND, i, message_bytes == LARGE ? 0 : 100, message_bytes);
        world_post(&sender, &send);
    }
    for (uint32_t n = 0; there < count || known < count; n++) {
        ck_assert_uint_le(n, ROUNDS);
        round_of(passes);
        took->there += there < count;
        took->known += known < count;
        there += take_completions(&receiver, there);
        known += take_completions(&sender, known);
    }
}

static void run(const char *name, uint32_t count, const struct passes *passes)
{
    struct took warm = {0}, took = {0};
    for (uint32_t i = 0; i < WARM; i++)
        send_messages(count, &warm, &uncounted);
    for (uint32_t i = 0; i < COUNTED / count; i++)
        send_messages(count, &took, passes);
    printf("%s %d %u %u %u\n", name, COUNTED, took.there, took.known, count);
}

/* With whatever its control sides are asked for. */
static void send_first(void)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    post_receive(1, 4096, BYTES);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 100, BYTES));
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
}

START_TEST(between_two_lanes)
{
    world_receives = RECEIVES;
    begin();
    send_first();
    run("MESSAGE", 1, &alone);
    run("DEEP", DEPTH, &deep);
    end();
}
END_TEST

START_TEST(within_a_lane_by_its_device)
{
    world_receives = RECEIVES;
    world_by_device = true;
    begin_own();
    send_first();
    run("OWN", 1, &own);
    run("DEEP_OWN", DEPTH, &deep_own);
    message_bytes = LARGE;
    run("LARGE_OWN", 1, &large_own);
    message_bytes = BYTES;
    end();
    world_by_device = false;
}
END_TEST

START_TEST(within_a_lane)
{
    world_receives = RECEIVES;
    begin_own();
    send_first();
    run("NEAR", 1, &near);
    run("DEEP_NEAR", DEPTH, &deep_near);
    message_bytes = LARGE;
    run("LARGE_NEAR", 1, &large_near);
    message_bytes = BYTES;
    end();
}
END_TEST

#define TESTS(T) T(between_two_lanes) T(within_a_lane_by_its_device) T(within_a_lane)

KEDGE_CHECK_MAIN("cost.message", TESTS)
