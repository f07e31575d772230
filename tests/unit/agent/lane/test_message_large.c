/* SPDX-License-Identifier: Apache-2.0 */
/* Large messages between workers of two nodes, whose lanes are both here: the receiver READs them
 * in pieces of 8 KiB. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "message_state.h" /* before a w that they would hide */
#include "message_pair.h"
#include "schema/record.h"
#include "world_rc.h"
#include "world_trio.h"

enum { LARGE = SCHEMA_MESSAGE_MOST + 1, LARGER = 40 * 1024, CUT = 8192 };

static void begin_large(void)
{
    world_cut_bytes = CUT;
    begin();
    for (uint32_t i = 0; i < WORLD_ARENA; i++) {
        *memory_of(&sender, i) = (uint8_t)(i * 7 + i / 256 + 1);
        *memory_of(&receiver, i) = 0;
    }
}

static void end_large(void)
{
    end();
    world_cut_bytes = 0;
}

static void send_large(uint64_t wr_id, uint64_t offset, uint32_t length)
{
    post(&sender, world_message(SCHEMA_OP_SEND, wr_id, offset, length));
}

static uint64_t counted(uint32_t node, size_t which)
{
    struct lane_stats stats;
    lane_stats(w.node[node].lane, &stats);
    return *(const uint64_t *)(const void *)((const char *)&stats + which);
}
#define COUNTED(node, what) counted(node, offsetof(struct lane_stats, what))

static void hear_whole(uint64_t wr_id, uint64_t at, uint64_t offset, uint32_t length)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.opcode, IBV_WC_RECV);
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(e.byte_len, length);
    ck_assert_mem_eq(from.gid, w.node[0].fab->caps.gid, 16);
    ck_assert_mem_eq(memory_of(&receiver, at), memory_of(&sender, offset), length);
}

static void expect_sent(uint64_t wr_id)
{
    const struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, wr_id);
}

/* Runs until the receiver's lane has READ some of it, and not all. */
static void run_into_reading(void)
{
    const uint64_t before = COUNTED(1, pieces);
    for (int i = 0; COUNTED(1, pieces) == before && i < PATIENCE; i++)
        world_run(&w, 1);
    ck_assert_uint_gt(COUNTED(1, pieces), before);
    ck_assert_uint_eq(COUNTED(1, messages_received), 0);
}

START_TEST(a_large_message_is_read_into_the_buffer_that_was_posted)
{
    static const uint32_t sizes[] = {LARGE, 20000, LARGER};
    begin_large();
    for (uint32_t i = 0; i < 3; i++) {
        post_receive(i, 3, 60000);
        send_large(10 + i, i, sizes[i]);
        hear_whole(i, 3, i, sizes[i]);
        expect_sent(10 + i);
    }
    ck_assert_uint_eq(COUNTED(1, messages_large), 3);
    ck_assert_uint_gt(COUNTED(1, pieces), 3);
    ck_assert_uint_eq(COUNTED(0, mrs), 1); /* lent for all of them */
    ck_assert_uint_eq(COUNTED(1, receives_posted), WORLD_RECEIVES);
    end_large();
}
END_TEST

START_TEST(with_registrations_of_their_own_regions_are_lent_as_well)
{
    world_own_regions = true;
    begin_large();
    post_receive(1, 0, LARGER);
    send_large(2, 0, LARGER);
    hear_whole(1, 0, 0, LARGER);
    expect_sent(2);
    end_large();
    world_own_regions = false;
}
END_TEST

START_TEST(small_ones_behind_a_large_one_come_behind_it)
{
    begin_large();
    for (uint32_t i = 0; i < 6; i++)
        post_receive(i, i % 2 == 0 ? 0 : 50000, i % 2 == 0 ? LARGER : 64);
    for (uint32_t i = 0; i < 6; i++)
        send_large(i, i, i % 2 == 0 ? LARGE : 8);
    for (uint32_t i = 0; i < 6; i++)
        hear_whole(i, i % 2 == 0 ? 0 : 50000, i, i % 2 == 0 ? LARGE : 8);
    for (uint32_t i = 0; i < 6; i++)
        expect_sent(i);
    end_large();
}
END_TEST

/* Its VQP has nothing of what VQPs with messages have; the second one finds it in error. */
START_TEST(one_on_a_vqp_that_sends_nowhere_fails_as_a_small_one_does)
{
    begin_large();
    ck_assert_int_eq(world_connect(&w, &sender, 1, 1), 0);
    for (uint64_t i = 0; i < 2; i++) {
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, i, 0, LARGE);
        d.vqp = 1;
        post(&sender, d);
    }
    struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 0);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_UNADDRESSED);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_BEHIND);
    post_receive(2, 3, 60000);
    send_large(3, 0, LARGE);
    hear_whole(2, 3, 0, LARGE);
    expect_sent(3);
    end_large();
}
END_TEST

START_TEST(one_longer_than_its_buffer_fails_at_both_ends_and_is_not_read)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin_large();
    post_receive(5, 0, LARGE - 1);
    send_large(1, 0, LARGE);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_REM_INV_REQ_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_LONG);
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_LOC_LEN_ERR);
    ck_assert_uint_eq(COUNTED(1, mr_reads), 0);
    end_large();
}
END_TEST

/* Its memory is its own again when it hears so: what was lent is gone by then. */
START_TEST(who_never_gets_a_buffer_hears_so_when_its_memory_is_its_own)
{
    struct schema_cqe e;
    begin_large();
    send_large(1, 0, LARGE);
    send_large(2, 0, 8);
    for (int i = 0; COUNTED(0, mrs) == 0 && i < PATIENCE; i++)
        world_run(&w, 1);
    ck_assert_uint_eq(COUNTED(0, mrs), 1);
    uint64_t gone_ns = 0;
    for (int i = 0; i < 10 * PATIENCE && !world_poll(&w, &sender, &e, 1); i++)
        if (gone_ns == 0 && COUNTED(0, mrs) == 0)
            gone_ns = w.now_ns;
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(e.status, IBV_WC_RNR_RETRY_EXC_ERR);
    ck_assert_uint_ne(gone_ns, 0);
    ck_assert_uint_ge(w.now_ns - gone_ns, w.node[0].config.mr_lease_ns);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
    end_large();
}
END_TEST

/* Connected anew, it sends again, from what is lent anew. */
static void send_again(uint64_t wr_id)
{
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
    send_large(wr_id, 5, LARGE);
}

/* What is READ is not forgotten, however long nothing is heard of it. */
static uint32_t count_streams_that_are_read(uint32_t node)
{
    const struct exchange *x = &w.node[node].lane->messages->exchange;
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->config.receivers; i++)
        n += x->receiver[i].reads;
    return n;
}

START_TEST(a_sender_whose_vqp_is_destroyed_leaves_the_buffer_to_the_next)
{
    begin_large();
    post_receive(1, 0, LARGER);
    send_large(2, 0, LARGER);
    run_into_reading();
    ck_assert_uint_eq(count_streams_that_are_read(1), 1);
    post(&sender, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1});
    world_run(&w, 10);
    struct schema_sq_desc again = world_message(SCHEMA_OP_SEND, 3, 5, LARGE);
    again.vqp = 2;
    ck_assert_int_eq(world_connect(&w, &sender, 2, 1), 0);
    world_send_to(&sender, 2, SCHEMA_SEND_TO_PORT, PORT);
    post(&sender, again);
    hear_whole(1, 0, 5, LARGE);
    expect_sent(3);
    ck_assert_uint_eq(count_streams_that_are_read(1), 0);
    end_large();
}
END_TEST

START_TEST(a_sender_that_dies_leaves_the_buffer_to_the_next)
{
    struct world_worker other;
    begin_large();
    world_attach(&w, &other, 0, 1, TENANT);
    memset(other.arena.addr, 0x5a, LARGE);
    post_receive(1, 0, LARGER);
    send_large(2, 0, LARGER);
    run_into_reading();
    world_detach(&w, &sender);
    ck_assert_int_eq(world_connect(&w, &other, 0, 1), 0);
    world_send_to(&other, 0, SCHEMA_SEND_TO_PORT, PORT);
    post(&other, world_message(SCHEMA_OP_SEND, 3, 0, LARGE));
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.byte_len, LARGE);
    ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&other, 0), LARGE);
    ck_assert_uint_eq(world_done(&w, &other, PATIENCE).status, IBV_WC_SUCCESS);
    world_detach(&w, &other);
    world_attach(&w, &sender, 0, 0, TENANT);
    end_large();
}
END_TEST

START_TEST(a_receiver_that_dies_leaves_its_sender_an_error_and_its_memory)
{
    begin_large();
    post_receive(1, 0, LARGER);
    send_large(2, 0, LARGER);
    run_into_reading();
    world_detach(&w, &receiver);
    const struct schema_cqe e = world_done(&w, &sender, 10 * PATIENCE);
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
    world_attach(&w, &receiver, 1, 0, TENANT);
    ck_assert_int_eq(world_bind_port(&w, &receiver, 3, PORT), 0);
    post_receive(3, 0, LARGE);
    send_again(4);
    hear_whole(3, 0, 5, LARGE);
    expect_sent(4);
    end_large();
}
END_TEST

START_TEST(a_receivers_vqp_that_is_destroyed_is_written_to_no_more)
{
    begin_large();
    post_receive(1, 0, LARGER);
    send_large(2, 0, LARGER);
    run_into_reading();
    post(&receiver, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = 3});
    world_run(&w, 3000); /* what was out is over */
    memset(memory_of(&receiver, 0), 0, LARGER);
    const struct schema_cqe e = world_done(&w, &sender, 10 * PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
    for (uint32_t i = 0; i < LARGER; i++)
        ck_assert_uint_eq(*memory_of(&receiver, i), 0);
    end_large();
}
END_TEST

/* The peer is gone: nobody says whether it READs yet. */
START_TEST(a_silent_peer_leaves_its_sender_an_error_after_the_lease)
{
    struct schema_cqe e;
    begin_large();
    post_receive(1, 0, LARGER);
    send_large(2, 0, LARGER);
    run_into_reading();
    world_no_ud_repairs = true;
    world_break_ud(&w, 1);
    uint64_t gone_ns = 0;
    bool ended = false;
    for (int i = 0; i < 50 * PATIENCE && !(ended = world_poll(&w, &sender, &e, 1)); i++)
        if (gone_ns == 0 && COUNTED(0, mrs) == 0)
            gone_ns = w.now_ns;
    ck_assert(ended);
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_ne(gone_ns, 0);
    ck_assert_uint_ge(w.now_ns - gone_ns, w.node[0].config.mr_lease_ns);
    world_repair_uds(&w);
    end_large();
}
END_TEST

/* As a liar's key would be: its own message is what fails, and the receiver's worker is not one
 * that guesses. */
START_TEST(one_that_cannot_be_read_goes_again_until_it_can)
{
    begin_large();
    post_receive(1, 0, LARGER);
    send_large(2, 0, LARGER);
    run_into_reading();
    world_take_away(&w, &sender); /* its arena's registration */
    world_run(&w, 3000);
    ck_assert_uint_eq(COUNTED(1, messages_received), 0);
    ck_assert_uint_eq(COUNTED(1, wrong_keys), 0);
    const struct schema_cqe e = world_done(&w, &sender, 100 * PATIENCE);
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_ne(e.status, IBV_WC_SUCCESS);
    end_large();
}
END_TEST

static uint64_t random_state;

static uint32_t random_below(uint32_t most)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % most;
}

/* The queue pair of datagrams only so often that its peer is heard of: who says nothing for as long
 * as a stream asks is gone. */
static void break_something(void)
{
    const uint32_t node = random_below(2);
    struct world_node *n = &w.node[node];
    if (random_below(40) == 0)
        world_break_ud(&w, node);
    else if (n->connector == NULL || (n->res.dcis > 0 && random_below(2) == 0))
        world_break(&w, node, n->res.dci[random_below(n->res.dcis)]);
    else if (n->last_link != NULL && fab_qp_state(n->last_link) == IBV_QPS_RTS)
        world_break(&w, node, n->last_link);
}

/* Large and small ones, while queue pairs of both nodes break. */
static void run_with(uint64_t seed)
{
    enum { EACH = 20, PARTS = 3, PLACE = 20000 };
    uint32_t sent = 0, ended = 0, heard = 0, buffers = 0, tries = 0, lengths[EACH];
    random_state = seed;
    world_streams = seed % 2 == 0;
    world_fault = (struct fault_plan){.seed = seed};
    begin_large();
    while (ended < EACH || heard < EACH) {
        ck_assert_uint_lt(++tries, 100000);
        if (sent < EACH && sent - ended < 1 + seed % 6) {
            lengths[sent] = random_below(3) == 0 ? 8 : LARGE + random_below(3000);
            send_large(sent, sent * 100, lengths[sent]);
            sent++;
        }
        while (buffers < EACH && buffers - heard < PARTS) {
            post_receive(buffers, (uint64_t)(buffers % PARTS) * PLACE, PLACE);
            buffers++;
        }
        if (random_below(6) == 0)
            break_something();
        world_delay(&w, random_below(4) == 0 ? random_below(30) : 0);
        world_run(&w, random_below(40));
        struct schema_cqe e;
        struct schema_cqe_sender from;
        while (world_poll(&w, &sender, &e, 0)) {
            ck_assert_msg(e.status == IBV_WC_SUCCESS, "seed %lu: %lu ended with %u for %u", seed,
                          e.wr_id, e.status, e.vendor_err);
            ck_assert_uint_eq(e.wr_id, ended++);
        }
        while (world_hear(&w, &receiver, &e, &from, 0)) {
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.byte_len, lengths[heard]);
            ck_assert_mem_eq(memory_of(&receiver, e.wr_id % PARTS * PLACE),
                             memory_of(&sender, heard * 100), lengths[heard]);
            heard++;
        }
    }
    end_large();
    world_fault.seed = 0;
    world_streams = false;
}

START_TEST(large_ones_come_whole_and_in_order_whatever_breaks)
{
    for (uint64_t seed = 1; seed <= 24; seed++)
        run_with(seed);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_large_message_is_read_into_the_buffer_that_was_posted)                                     \
    T(with_registrations_of_their_own_regions_are_lent_as_well)                                    \
    T(small_ones_behind_a_large_one_come_behind_it)                                                \
    T(one_on_a_vqp_that_sends_nowhere_fails_as_a_small_one_does)                                   \
    T(one_longer_than_its_buffer_fails_at_both_ends_and_is_not_read)                               \
    T(who_never_gets_a_buffer_hears_so_when_its_memory_is_its_own)                                 \
    T(a_sender_whose_vqp_is_destroyed_leaves_the_buffer_to_the_next)                               \
    T(a_sender_that_dies_leaves_the_buffer_to_the_next)                                            \
    T(a_receiver_that_dies_leaves_its_sender_an_error_and_its_memory)                              \
    T(a_receivers_vqp_that_is_destroyed_is_written_to_no_more)                                     \
    T(a_silent_peer_leaves_its_sender_an_error_after_the_lease)                                    \
    T(one_that_cannot_be_read_goes_again_until_it_can)                                             \
    T(large_ones_come_whole_and_in_order_whatever_breaks)
KEDGE_CHECK_MAIN("agent.lane.message_large", TESTS)
