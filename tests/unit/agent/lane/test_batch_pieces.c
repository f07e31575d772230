/* SPDX-License-Identifier: Apache-2.0 */
/* Which descriptors of a batch are one request and which are not, and what a batch is to whoever
 * names one that is gone, not ready, or under way. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "world_batch.h"
#include "world_held.h"
#include "world_merge.h"
#include "world_rc.h"

enum {
    PASSES = 400000,
    BLOCK = 512,
    BLOCKS = WORLD_ARENA / BLOCK,
    MANY = 4000,
    APART = 16,
    FAR_AWAY = WORLD_ARENA / 2
};

static struct world world;
static struct world *w = &world;
static struct world_mergers m;
static struct world_posts *posts;
static struct schema_batch_entry entry[MANY];

static void open_scene(uint32_t workers)
{
    world_mergers_open(w, &m, workers);
    for (uint32_t b = 0; b < WORLD_ARENA; b++)
        ((uint8_t *)m.worker[0].arena.addr)[b] = (uint8_t)(b / BLOCK + 1);
    posts = world_watch_posts(&w->node[0]);
}

static void close_scene(void)
{
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    world_watch_end();
    world_mergers_close(w, &m);
}

/* Blocks from the first on, at the same places here and there. */
static void list_blocks(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        entry[i] = world_entry((uint64_t)i * BLOCK, BLOCK, m.vkey, (uint64_t)i * BLOCK);
}

static void expect_over(const struct world_batch *b, uint64_t id, uint32_t count)
{
    const struct schema_cqe e = world_done(w, b->worker, PASSES);
    ck_assert_uint_eq(e.wr_id, id);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_batch_shown(b)->done, count);
}

/* Returns how many requests of the device that was. */
static uint32_t carry_out(uint8_t op, uint32_t count)
{
    const struct world_batch b = world_batch_make(w, &m.worker[0], op, entry, count);
    const uint32_t before = posts->requests;
    world_batch_post(w, &b, 1, 0, 0);
    expect_over(&b, 1, count);
    return posts->requests - before;
}

static uint8_t there(uint64_t offset)
{
    return ((uint8_t *)m.owner.arena.addr)[offset];
}

/* ---- what is one request */

START_TEST(what_goes_on_in_another_region_is_another_request)
{
    open_scene(1);
    memset(m.owner.arena.addr, 0, WORLD_ARENA);
    const struct schema_sq_desc reg = {.op = SCHEMA_OP_REG_MR,
                                       .reg_mr = {.offset = FAR_AWAY,
                                                  .length = 4 * BLOCK,
                                                  .vaddr = world_entry(0, 0, 0, 0).remote_addr,
                                                  .access = SCHEMA_RECORD_WRITE}};
    struct schema_reply r;
    ck_assert_int_eq(world_ask(w, &m.owner, reg, &r), 0);
    list_blocks(2);
    entry[1].vkey = (uint32_t)r.value[0];
    ck_assert_uint_ge(carry_out(SCHEMA_OP_WRITE, 2), 2);
    ck_assert_uint_eq(there(0), 1);
    ck_assert_uint_eq(there(BLOCK), 0);
    ck_assert_uint_eq(there(FAR_AWAY + BLOCK), 2);
    close_scene();
}
END_TEST

START_TEST(a_read_behind_a_write_is_another_request)
{
    struct world_batch b;
    open_scene(1);
    memset(m.owner.arena.addr, 0x77, WORLD_ARENA);
    list_blocks(2);
    ck_assert_int_eq(world_batch_new(w, &m.worker[0], 2, &b), 0);
    world_batch_fill(w, &b, SCHEMA_OP_WRITE, &entry[0], 1);
    world_batch_fill(w, &b, SCHEMA_OP_READ, &entry[1], 1);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_READY, NULL), 0);
    world_batch_post(w, &b, 1, 0, 0);
    expect_over(&b, 1, 2);
    const uint8_t *here = m.worker[0].arena.addr;
    ck_assert_uint_eq(there(0), 1);
    ck_assert_uint_eq(there(BLOCK), 0x77);
    ck_assert_uint_eq(here[0], 1);
    ck_assert_uint_eq(here[BLOCK], 0x77);
    close_scene();
}
END_TEST

START_TEST(reads_whose_memory_overlaps_are_two_requests)
{
    open_scene(1);
    list_blocks(2);
    entry[1].offset = BLOCK / 2;
    ck_assert_uint_eq(carry_out(SCHEMA_OP_READ, 2), 2);
    ck_assert_uint_eq(carry_out(SCHEMA_OP_WRITE, 2), 1);
    close_scene();
}
END_TEST

/* An aligned word that was in one packet is in one still. */
START_TEST(what_begins_off_a_word_is_not_joined)
{
    open_scene(1);
    entry[0] = world_entry(0, 12, m.vkey, 4);
    entry[1] = world_entry(12, 16, m.vkey, 16);
    ck_assert_uint_eq(carry_out(SCHEMA_OP_WRITE, 2), 2);
    close_scene();
}
END_TEST

START_TEST(none_is_longer_than_a_message_may_be)
{
    open_scene(1);
    const struct fab_caps real = w->node[0].fab->caps;
    w->node[0].fab->caps.max_msg_size = 4 * BLOCK;
    list_blocks(9);
    ck_assert_uint_eq(carry_out(SCHEMA_OP_WRITE, 9), 3); /* 4, 4 and 1 */
    entry[0].length = 4 * BLOCK + 1;
    struct world_batch b;
    struct schema_reply r;
    ck_assert_int_eq(world_batch_new(w, &m.worker[0], 1, &b), 0);
    world_batch_fill(w, &b, SCHEMA_OP_WRITE, entry, 1);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_READY, &r), -EINVAL);
    ck_assert_uint_eq(r.reason, SCHEMA_REASON_LOCAL_RANGE);
    w->node[0].fab->caps = real;
    close_scene();
}
END_TEST

static void expect_most_bytes(uint32_t sessions, uint64_t bytes)
{
    open_scene(sessions);
    list_blocks(BLOCKS);
    (void)carry_out(SCHEMA_OP_WRITE, BLOCKS);
    ck_assert_uint_eq(posts->most_bytes, bytes);
    close_scene();
}

START_TEST(a_request_has_64_kib_and_beside_others_1)
{
    expect_most_bytes(1, WORLD_ARENA);
    expect_most_bytes(2, 1024);
}
END_TEST

START_TEST(where_merging_is_switched_off_each_is_a_request)
{
    world_apart = true;
    open_scene(1);
    list_blocks(BLOCKS);
    ck_assert_uint_eq(carry_out(SCHEMA_OP_WRITE, BLOCKS), BLOCKS);
    close_scene();
    world_apart = false;
}
END_TEST

/* ---- what is named */

START_TEST(an_arena_that_the_session_has_not_is_refused)
{
    static const uint32_t arenas[] = {1, LANE_SESSION_MAX_ARENAS - 1, LANE_SESSION_MAX_ARENAS,
                                      UINT32_MAX};
    struct schema_reply r;
    open_scene(1);
    list_blocks(1);
    for (size_t i = 0; i < sizeof arenas / sizeof arenas[0]; i++) {
        struct world_batch b;
        ck_assert_int_eq(world_batch_new(w, &m.worker[0], 1, &b), 0);
        b.arena = arenas[i];
        world_batch_fill(w, &b, SCHEMA_OP_WRITE, entry, 1);
        ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_READY, &r), -EINVAL);
        ck_assert_uint_eq(r.reason, SCHEMA_REASON_LOCAL_RANGE);
    }
    close_scene();
}
END_TEST

START_TEST(nothing_is_added_to_a_batch_that_is_under_way)
{
    open_scene(1);
    memset(m.owner.arena.addr, 0, WORLD_ARENA);
    for (uint32_t i = 0; i < MANY; i++)
        entry[i] = world_entry(0, 8, m.vkey, i * APART);
    const struct world_batch b = world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, MANY);
    const struct schema_batch_entry more = world_entry(0, 8, m.vkey, 8);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_READY, NULL), -ENOENT);
    world_batch_post(w, &b, 1, 0, 0);
    for (int i = 0; i < PASSES && world_batch_shown(&b)->done == 0; i++)
        world_run(w, 1);
    world_batch_fill(w, &b, SCHEMA_OP_WRITE, &more, 1);
    ck_assert_uint_eq(world_batch_shown(&b)->ended, 0);
    expect_over(&b, 1, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert_uint_eq(there(i * APART), 1);
    ck_assert_uint_eq(there(8), 0);
    close_scene();
}
END_TEST

START_TEST(one_in_the_place_of_another_begins_anew)
{
    struct world_batch b;
    open_scene(1);
    list_blocks(1);
    const struct world_batch former = world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, 1);
    world_batch_post(w, &former, 1, 0, 0);
    expect_over(&former, 1, 1);
    ck_assert_int_eq(world_batch_ask(w, &former, SCHEMA_OP_BATCH_FREE, NULL), 0);
    b = world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, 1);
    ck_assert_uint_eq(b.number, former.number);
    ck_assert_uint_eq(world_batch_shown(&b)->begun, 0);
    ck_assert_uint_eq(world_batch_shown(&b)->ended, 0);
    ck_assert_uint_eq(world_batch_shown(&b)->done, 0);
    ck_assert_int_eq(world_batch_ask(w, &former, SCHEMA_OP_BATCH_FREE, NULL), -ENOENT);
    world_batch_post(w, &former, 2, 0, 0);
    const struct schema_cqe e = world_done(w, &m.worker[0], PASSES);
    ck_assert_uint_eq(e.status, IBV_WC_LOC_QP_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_BATCH);
    ck_assert_uint_eq(world_batch_shown(&b)->begun, 0);
    close_scene();
}
END_TEST

/* Of a VQP that is gone nobody hears; of one that never was its worker does. */
static void expect_refused(const struct world_batch *b, uint32_t times)
{
    for (int i = 0; i < PASSES && world_batch_shown(b)->ended != times; i++)
        world_run(w, 1);
    ck_assert_uint_eq(world_batch_shown(b)->begun, times);
    ck_assert_uint_eq(world_batch_shown(b)->ended, times);
    ck_assert_uint_eq(world_batch_shown(b)->done, 0);
    ck_assert_uint_eq(world_batch_shown(b)->failed, 0);
}

START_TEST(posted_where_no_queue_pair_is_it_is_over)
{
    struct schema_cqe e;
    open_scene(1);
    list_blocks(1);
    const struct world_batch b = world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, 1);
    const uint32_t before = posts->requests;
    world_batch_post(w, &b, 1, 0, 5);
    expect_refused(&b, 1);
    ck_assert(!world_poll(w, &m.worker[0], &e, 10));
    world_batch_post(w, &b, 2, 7, 3);
    e = world_done(w, &m.worker[0], PASSES);
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_eq(e.status, IBV_WC_LOC_QP_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_NOT_CONNECTED);
    expect_refused(&b, 2);
    ck_assert_uint_eq(posts->requests, before);
    world_batch_post(w, &b, 3, 0, 0);
    expect_over(&b, 3, 1);
    close_scene();
}
END_TEST

/* The window lets a few go, and the device holds these: the other pieces wait in the VQP's queue,
 * which is all of a short batch and not of a long one. */
START_TEST(of_one_that_is_cancelled_nothing_more_goes)
{
    enum { WINDOW = 4 };
    const struct lane_command c = {.kind = LANE_COMMAND_WINDOW,
                                   .window = {.scope = LANE_WINDOW_DEVICE, .ops = WINDOW}};
    open_scene(1);
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
    world_run(w, 2);
    for (uint32_t i = 0; i < MANY; i++)
        entry[i] = world_entry(0, 8, m.vkey, i * APART % WORLD_ARENA);
    for (uint32_t count = 60; count <= MANY; count += MANY - 60) {
        const struct world_batch b =
            world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, count);
        const uint32_t before = posts->requests;
        uint32_t waits[SCHEMA_WAITS];
        world_hold(&w->node[0], NULL);
        world_batch_post(w, &b, 1, 0, 0);
        world_run(w, 20);
        const uint32_t gone = posts->requests - before;
        ck_assert_uint_ge(gone, 1);
        ck_assert_uint_le(gone, WINDOW);
        ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_CANCEL, NULL), 0);
        world_held_end();
        const struct schema_cqe e = world_done(w, &m.worker[0], PASSES);
        ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
        ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_CANCELLED);
        ck_assert_uint_eq(posts->requests - before, gone);
        ck_assert_uint_ge(world_batch_shown(&b)->done, gone);
        lane_waits(m.worker[0].memory, false, waits);
        for (int why = 1; why < SCHEMA_WAITS; why++)
            ck_assert_uint_eq(waits[why], 0);
    }
    close_scene();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_goes_on_in_another_region_is_another_request)                                           \
    T(a_read_behind_a_write_is_another_request)                                                    \
    T(reads_whose_memory_overlaps_are_two_requests)                                                \
    T(what_begins_off_a_word_is_not_joined)                                                        \
    T(none_is_longer_than_a_message_may_be)                                                        \
    T(a_request_has_64_kib_and_beside_others_1)                                                    \
    T(where_merging_is_switched_off_each_is_a_request)                                             \
    T(an_arena_that_the_session_has_not_is_refused)                                                \
    T(nothing_is_added_to_a_batch_that_is_under_way)                                               \
    T(one_in_the_place_of_another_begins_anew)                                                     \
    T(posted_where_no_queue_pair_is_it_is_over)                                                    \
    T(of_one_that_is_cancelled_nothing_more_goes)
KEDGE_CHECK_MAIN("agent.lane.batch_pieces", TESTS)
