/* SPDX-License-Identifier: Apache-2.0 */
/* Adjacent requests become one work request: which do, and that nobody but the device notices. */
#include <string.h>

#include "../../check_main.h"
#include "world.h"
#include "world_merge.h"
#include "world_rc.h"

enum { PASSES = 400000, BLOCK = 512, SECOND = 2 /* a tenant */ };

static struct world world;
static struct world *w = &world;
static struct world_mergers m;
static struct world_posts *posts;

static void open_scene(uint32_t workers)
{
    world_mergers_open(w, &m, workers);
    for (uint32_t i = 0; i < workers; i++)
        for (uint32_t b = 0; b < WORLD_ARENA; b++)
            ((uint8_t *)m.worker[i].arena.addr)[b] = (uint8_t)(b / BLOCK * 16 + i + 1);
    posts = world_watch_posts(&w->node[0]);
}

static void close_scene(void)
{
    world_watch_end();
    world_mergers_close(w, &m);
}

/* It may share a work request with others of its VQP. */
static struct schema_sq_desc relaxed(struct schema_sq_desc d)
{
    d.flags |= SCHEMA_OP_RELAXED;
    return d;
}

/* Of that worker's, from its block of that number to the owner's `to`. */
static struct schema_sq_desc write_block(uint64_t id, uint32_t from, uint32_t to)
{
    return relaxed(
        world_rw(SCHEMA_OP_WRITE, id, (uint64_t)from * BLOCK, BLOCK, m.vkey, (uint64_t)to * BLOCK));
}

static struct schema_sq_desc read_block(uint64_t id, uint32_t into, uint32_t of)
{
    return relaxed(
        world_rw(SCHEMA_OP_READ, id, (uint64_t)into * BLOCK, BLOCK, m.vkey, (uint64_t)of * BLOCK));
}

static void post(uint32_t worker, struct schema_sq_desc d)
{
    world_post(&m.worker[worker], &d);
}

static void expect_done(uint32_t worker, uint64_t id, uint32_t length)
{
    const struct schema_cqe e = world_done(w, &m.worker[worker], PASSES);
    ck_assert_uint_eq(e.wr_id, id);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.byte_len, length);
}

static void expect_block(uint32_t at, uint32_t worker, uint32_t from)
{
    const uint8_t *bytes = (const uint8_t *)m.owner.arena.addr + (size_t)at * BLOCK;
    for (int i = 0; i < BLOCK; i++)
        ck_assert_uint_eq(bytes[i], (uint8_t)(from * 16 + worker + 1));
}

START_TEST(adjacent_writes_of_several_workers_are_one)
{
    open_scene(4);
    for (uint32_t i = 0; i < 4; i++)
        post(i, write_block(100 + i, 3 * i, 8 + i)); /* from places apart */
    world_mergers_ring(w, &m);
    for (uint32_t i = 0; i < 4; i++)
        expect_done(i, 100 + i, BLOCK);
    ck_assert_uint_eq(posts->requests, 1);
    ck_assert_int_eq(posts->most_sges, 4);
    ck_assert_uint_eq(world_stats(w, 0).merged, 3);
    for (uint32_t i = 0; i < 4; i++)
        expect_block(8 + i, i, 3 * i);
    close_scene();
}
END_TEST

START_TEST(what_is_contiguous_here_too_is_one_piece)
{
    open_scene(1);
    for (uint32_t i = 0; i < 16; i++)
        post(0, write_block(i, i, 20 + i));
    for (uint32_t i = 0; i < 16; i++)
        expect_done(0, i, BLOCK);
    ck_assert_uint_eq(posts->requests, 1);
    ck_assert_int_eq(posts->most_sges, 1);
    for (uint32_t i = 0; i < 16; i++)
        expect_block(20 + i, 0, i);
    close_scene();
}
END_TEST

/* Each its own part of what they write together. */
START_TEST(streams_of_eight_workers_are_an_eighth_of_their_requests)
{
    enum { WORKERS = 8, RUN = WORLD_ARENA / BLOCK / WORKERS };
    open_scene(WORKERS);
    for (uint32_t i = 0; i < WORKERS; i++)
        for (uint32_t b = 0; b < RUN; b++)
            post(i, write_block(b, i * RUN + b, i * RUN + b));
    world_mergers_ring(w, &m);
    for (uint32_t i = 0; i < WORKERS; i++)
        for (uint32_t b = 0; b < RUN; b++)
            expect_done(i, b, BLOCK);
    ck_assert_uint_le(posts->requests * 8, WORKERS * RUN);
    for (uint32_t b = 0; b < WORKERS * RUN; b++)
        expect_block(b, b / RUN, b);
    close_scene();
}
END_TEST

START_TEST(reads_are_merged_and_a_write_between_them_is_not)
{
    open_scene(2);
    memset(m.owner.arena.addr, 0x77, WORLD_ARENA);
    post(0, read_block(1, 40, 0));
    post(0, read_block(2, 50, 1));
    post(0, write_block(3, 0, 2));
    post(0, read_block(4, 60, 3));
    for (uint64_t id = 1; id <= 4; id++)
        expect_done(0, id, BLOCK);
    ck_assert_uint_eq(posts->requests, 3);
    const uint8_t *arena = m.worker[0].arena.addr;
    ck_assert_uint_eq(arena[40 * BLOCK], 0x77);
    ck_assert_uint_eq(arena[50 * BLOCK + BLOCK - 1], 0x77);
    ck_assert_uint_eq(arena[60 * BLOCK], 0x77);
    expect_block(2, 0, 0);
    close_scene();
}
END_TEST

START_TEST(another_tenants_are_not_merged)
{
    struct world_worker other;
    open_scene(1);
    world_attach(w, &other, 0, 20, SECOND);
    ck_assert_int_eq(world_connect(w, &other, 0, 1), 0);
    /* The owner's region is of the first tenant: the other one has it by its token. */
    const struct lane_memory *memory = m.owner.memory;
    struct lane_lease lease;
    struct lane_grant grant;
    ck_assert(lane_lease_grant(memory, 0, &lease, &grant));
    struct schema_sq_desc import = {.op = SCHEMA_OP_IMPORT, .import = {.vkey = m.vkey}};
    memcpy(import.import.secret, grant.secret, sizeof import.import.secret);
    ck_assert_int_eq(world_ask(w, &other, import, NULL), 0);
    struct schema_sq_desc d = write_block(7, 0, 30);
    ck_assert_uint_eq(world_do(w, &other, d, PASSES).status, IBV_WC_SUCCESS);
    posts->requests = 0;
    post(0, write_block(1, 0, 0));
    d = write_block(2, 0, 1);
    world_post(&other, &d);
    world_mergers_ring(w, &m);
    lane_doorbell(w->node[0].lane, other.id);
    const uint64_t doorbells = world_stats(w, 0).doorbells;
    world_run(w, 1);
    ck_assert_uint_eq(world_stats(w, 0).doorbells, doorbells + 1); /* in one pass */
    expect_done(0, 1, BLOCK);
    ck_assert_uint_eq(world_done(w, &other, PASSES).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(posts->requests, 2);
    world_detach(w, &other);
    close_scene();
}
END_TEST

/* Two regions side by side in one registration: one key of the device's, two records. */
START_TEST(regions_side_by_side_are_two)
{
    open_scene(1);
    const uint32_t upper = world_register(w, &m.owner, 16 * BLOCK, 16 * BLOCK,
                                          SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    struct schema_sq_desc d = write_block(1, 0, 16);
    d.post.vkey = upper;
    ck_assert_uint_eq(world_do(w, &m.worker[0], d, PASSES).status, IBV_WC_SUCCESS);
    posts->requests = 0;
    post(0, write_block(2, 1, 15));
    post(0, d);
    expect_done(0, 2, BLOCK);
    expect_done(0, 1, BLOCK);
    ck_assert_uint_eq(posts->requests, 2);
    close_scene();
}
END_TEST

START_TEST(no_more_pieces_are_put_together_than_a_queue_pair_has)
{
    open_scene(1);
    for (uint32_t i = 0; i < 9; i++)
        post(0, write_block(i, 2 * i, i));
    for (uint32_t i = 0; i < 9; i++)
        expect_done(0, i, BLOCK);
    ck_assert_int_eq(posts->most_sges, LANE_MERGE_SGES);
    ck_assert_uint_eq(posts->requests, 2);
    for (uint32_t i = 0; i < 9; i++)
        expect_block(i, 0, 2 * i);
    close_scene();
}
END_TEST

START_TEST(none_is_longer_than_a_message_may_be)
{
    open_scene(1);
    w->node[0].fab->caps.max_msg_size = 4 * BLOCK;
    for (uint32_t i = 0; i < 9; i++)
        post(0, write_block(i, i, i));
    for (uint32_t i = 0; i < 9; i++)
        expect_done(0, i, BLOCK);
    ck_assert_uint_eq(posts->requests, 3); /* 4, 4 and 1 */
    close_scene();
}
END_TEST

START_TEST(fences_and_atomics_stand_alone)
{
    open_scene(1);
    post(0, write_block(1, 0, 0));
    struct schema_sq_desc d = write_block(2, 1, 1);
    d.flags |= SCHEMA_OP_FENCE;
    post(0, d);
    post(0, write_block(3, 2, 2));
    d = world_rw(SCHEMA_OP_FAA, 4, 40 * BLOCK, 8, m.vkey, 3 * BLOCK);
    d.post.compare_add = 1;
    post(0, d);
    post(0, world_rw(SCHEMA_OP_WRITE, 5, 0, 8, m.vkey, 3 * BLOCK + 8));
    for (uint64_t id = 1; id <= 5; id++)
        expect_done(0, id, id < 4 ? BLOCK : 8);
    ck_assert_uint_eq(posts->requests, 5);
    close_scene();
}
END_TEST

START_TEST(a_later_write_over_an_earlier_one_stays)
{
    open_scene(2);
    post(0, write_block(1, 0, 0));
    post(0, write_block(2, 1, 1));
    post(0, write_block(3, 2, 0)); /* over the first */
    post(0, write_block(4, 3, 1)); /* and what goes on there, over the second */
    for (uint64_t id = 1; id <= 4; id++)
        expect_done(0, id, BLOCK);
    expect_block(0, 0, 2);
    expect_block(1, 0, 3);
    ck_assert_uint_eq(posts->requests, 2);
    close_scene();
}
END_TEST

/* What the second one brings is what is there in the end. */
START_TEST(reads_into_the_same_memory_are_not_merged)
{
    open_scene(1);
    memset(m.owner.arena.addr, 0x11, BLOCK);
    memset((uint8_t *)m.owner.arena.addr + BLOCK, 0x22, BLOCK);
    post(0, read_block(1, 40, 0));
    post(0, read_block(2, 40, 1));
    expect_done(0, 1, BLOCK);
    expect_done(0, 2, BLOCK);
    ck_assert_uint_eq(posts->requests, 2);
    ck_assert_uint_eq(((uint8_t *)m.worker[0].arena.addr)[40 * BLOCK], 0x22);
    close_scene();
}
END_TEST

static void post_inline(uint32_t worker, uint64_t id, uint32_t length, uint64_t to, uint8_t byte)
{
    uint8_t bytes[2 * SCHEMA_LINE];
    struct schema_sq_desc d = relaxed(world_rw(SCHEMA_OP_WRITE, id, 0, length, m.vkey, to));
    memset(bytes, byte, sizeof bytes);
    d.flags |= SCHEMA_OP_INLINE;
    d.num_sge = 0;
    d.slots = (uint8_t)(1 + (length + SCHEMA_LINE - 1) / SCHEMA_LINE);
    world_post(&m.worker[worker], &d);
    for (uint32_t i = 0; i + 1 < d.slots; i++)
        world_post(&m.worker[worker], (const void *)(bytes + i * SCHEMA_LINE));
}

START_TEST(inline_ones_are_merged_as_far_as_they_go_inline)
{
    open_scene(1);
    for (uint32_t i = 0; i < 5; i++)
        post_inline(0, i, 32, 32 * i, (uint8_t)(i + 1));
    post(0, world_rw(SCHEMA_OP_WRITE, 5, 0, 32, m.vkey, 160)); /* which is none */
    for (uint32_t i = 0; i <= 5; i++)
        expect_done(0, i, 32);
    ck_assert_uint_eq(posts->requests, 3);
    ck_assert_int_eq(posts->most_sges, 1); /* some libraries send no more of what is inline */
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_uint_eq(((uint8_t *)m.owner.arena.addr)[32 * i + 31], i + 1);
    ck_assert_uint_eq(((uint8_t *)m.owner.arena.addr)[160], 1);
    close_scene();
}
END_TEST

/* A device cuts packets from where a request begins: so a word of 8 bytes that is aligned, and was
 * in one packet alone, would be in two. */
START_TEST(what_begins_inside_a_word_is_not_merged)
{
    open_scene(2);
    for (uint32_t from = 1; from <= 8; from++) {
        const uint64_t at = (uint64_t)from * 2 * BLOCK + from, before = posts->requests;
        post(0, world_rw(SCHEMA_OP_WRITE, 1, 0, BLOCK - from, m.vkey, at));
        post(1, world_rw(SCHEMA_OP_WRITE, 2, 0, 8, m.vkey, at + BLOCK - from));
        world_mergers_ring(w, &m);
        expect_done(0, 1, BLOCK - from);
        expect_done(1, 2, 8);
        ck_assert_uint_eq(posts->requests - before, from % 8 == 0 ? 1 : 2);
    }
    close_scene();
}
END_TEST

START_TEST(each_has_the_completion_that_it_asked_for)
{
    open_scene(2);
    for (uint64_t id = 1; id <= 6; id++) {
        struct schema_sq_desc d = write_block(id, (uint32_t)id, (uint32_t)id);
        if (id != 2 && id != 6)
            d.flags = SCHEMA_OP_RELAXED;
        post(0, d);
    }
    expect_done(0, 2, BLOCK);
    expect_done(0, 6, BLOCK);
    struct schema_cqe e;
    ck_assert(!world_poll(w, &m.worker[0], &e, 100));
    ck_assert_uint_eq(posts->requests, 1);
    ck_assert_uint_eq(posts->signaled, 1);
    for (uint32_t i = 1; i <= 6; i++)
        expect_block(i, 0, i);
    close_scene();
}
END_TEST

/* What the device's window was after the workers' adjacent blocks, of which each posts `runs`. With
 * `filled`, another request is out when they come. */
static struct lane_window window_after(uint64_t ops, uint64_t bytes, uint32_t runs, bool filled)
{
    struct lane_command c = {.kind = LANE_COMMAND_WINDOW,
                             .window = {
                                 .scope = LANE_WINDOW_DEVICE,
                                 .ops = ops,
                                 .bytes = bytes,
                             }};
    struct lane_window window;
    open_scene(4);
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
    world_run(w, 2);
    if (filled)
        post(0, write_block(100, 30, 30));
    for (uint32_t i = filled; i < 4; i++)
        for (uint32_t k = 0; k < runs; k++)
            post(i, write_block(i * runs + k, i * runs + k, i * runs + k));
    world_mergers_ring(w, &m);
    if (filled)
        expect_done(0, 100, BLOCK);
    for (uint32_t i = filled; i < 4; i++)
        for (uint32_t k = 0; k < runs; k++)
            expect_done(i, i * runs + k, BLOCK);
    for (uint32_t i = filled * runs; i < 4 * runs; i++)
        expect_block(i, i / runs, i);
    ck_assert(lane_window(w->node[0].lane, LANE_WINDOW_DEVICE, 0, &window));
    ck_assert_uint_eq(window.ops, 0);
    ck_assert_uint_eq(window.bytes, 0);
    return window;
}

START_TEST(a_window_counts_them_as_one)
{
    const struct lane_window window = window_after(2, 0, 1, false);
    ck_assert_uint_eq(window.most_ops, 1);
    ck_assert_uint_eq(window.most_bytes, 4 * BLOCK);
    ck_assert_uint_eq(window.waits, 0);
    ck_assert_uint_eq(posts->requests, 1);
    close_scene();
}
END_TEST

START_TEST(what_a_window_holds_back_is_merged_when_it_goes)
{
    const struct lane_window window = window_after(1, 0, 4, true);
    ck_assert_uint_eq(window.most_ops, 1);
    ck_assert_uint_eq(window.most_bytes, 12 * BLOCK);
    ck_assert_uint_gt(window.waits, 0);
    ck_assert_uint_eq(posts->requests, 2);
    close_scene();
}
END_TEST

START_TEST(their_bytes_are_the_windows)
{
    const struct lane_window window = window_after(2, 3 * BLOCK, 2, true);
    ck_assert_uint_le(window.most_ops, 2);
    ck_assert_uint_eq(window.most_bytes, 3 * BLOCK);
    ck_assert_uint_gt(posts->requests, 2);
    close_scene();
}
END_TEST

START_TEST(where_it_is_switched_off_each_goes_alone)
{
    world_apart = true;
    open_scene(1);
    for (uint32_t i = 0; i < 8; i++)
        post(0, write_block(i, i, i));
    for (uint32_t i = 0; i < 8; i++)
        expect_done(0, i, BLOCK);
    ck_assert_uint_eq(posts->requests, 8);
    ck_assert_uint_eq(world_stats(w, 0).merged, 0);
    close_scene();
    world_apart = false;
}
END_TEST

/* As the device does. */
START_TEST(work_requests_are_counted)
{
    open_scene(4);
    const struct lane_stats before = world_stats(w, 0);
    for (uint32_t i = 0; i < 12; i++)
        post(i % 4, write_block(i, i, 7 * i % 12)); /* some of them adjacent, most not */
    world_mergers_ring(w, &m);
    for (uint32_t i = 0; i < 12; i++)
        expect_done(i % 4, i, BLOCK);
    const struct lane_stats after = world_stats(w, 0);
    ck_assert_uint_eq(after.work_requests - before.work_requests, posts->requests);
    ck_assert_uint_eq(after.posted - before.posted, 12);
    ck_assert_uint_eq(after.merged - before.merged, 12 - posts->requests);
    close_scene();
}
END_TEST

/* They never fall, whenever somebody looks: also between the doorbells of a pass. */
START_TEST(work_requests_only_grow)
{
    struct world_elsewhere e;
    open_scene(1);
    world_elsewhere_open(w, &e);
    for (uint32_t i = 0; i < 6; i++)
        post(0, write_block(i, i, i));
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 7, 0, 8, e.vkey, 0);
    world_post(&e.worker, &d);
    world_mergers_ring(w, &m);
    lane_doorbell(w->node[0].lane, e.worker.id);
    for (uint32_t i = 0; i < 6; i++)
        expect_done(0, i, BLOCK);
    ck_assert_uint_eq(world_done(w, &e.worker, PASSES).status, IBV_WC_SUCCESS);
    ck_assert(!posts->fell);
    world_elsewhere_close(w, &e);
    close_scene();
}
END_TEST

/* That worker's next one, of which the bytes come behind those of what was posted before it. */
static void post_strict(uint32_t worker, struct schema_sq_desc d)
{
    d.flags &= (uint8_t)~SCHEMA_OP_RELAXED;
    post(worker, d);
}

/* Who READs a flag and then what it announces, or WRITEs what the other then announces. */
START_TEST(those_of_one_vqp_keep_their_order)
{
    open_scene(1);
    for (uint32_t i = 0; i < 4; i++)
        post_strict(0, write_block(i, i, i));
    for (uint32_t i = 0; i < 4; i++)
        post_strict(0, read_block(4 + i, 40 + i, 4 + i));
    for (uint64_t id = 0; id < 8; id++)
        expect_done(0, id, BLOCK);
    ck_assert_uint_eq(posts->requests, 8);
    close_scene();
}
END_TEST

START_TEST(one_of_each_vqp_is_merged_with_others)
{
    open_scene(3);
    static const uint32_t OF[] = {0, 1, 1, 2};
    for (uint32_t i = 0; i < 4; i++)
        post_strict(OF[i], write_block(i, i, i));
    world_mergers_ring(w, &m);
    for (uint32_t i = 0; i < 4; i++)
        expect_done(OF[i], i, BLOCK);
    for (uint32_t i = 0; i < 4; i++)
        expect_block(i, OF[i], i);
    ck_assert_uint_eq(posts->requests, 2); /* 0 and 1; 2 and 3 */
    close_scene();
}
END_TEST

/* The second one alone says whether it matters that it comes behind the first. */
START_TEST(who_goes_behind_says_whether_order_matters)
{
    open_scene(2);
    post_strict(0, write_block(1, 0, 0));
    post(0, write_block(2, 1, 1));
    post_strict(0, write_block(3, 2, 2));
    for (uint64_t id = 1; id <= 3; id++)
        expect_done(0, id, BLOCK);
    ck_assert_uint_eq(posts->requests, 2); /* 1 and 2; 3 */
    post(0, write_block(4, 3, 3));
    post(1, write_block(5, 4, 4));
    post_strict(1, write_block(6, 5, 5));
    world_mergers_ring(w, &m);
    expect_done(0, 4, BLOCK);
    expect_done(1, 5, BLOCK);
    expect_done(1, 6, BLOCK);
    ck_assert_uint_eq(posts->requests, 4); /* 4 and 5; 6 */
    close_scene();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(adjacent_writes_of_several_workers_are_one)                                                  \
    T(what_is_contiguous_here_too_is_one_piece)                                                    \
    T(streams_of_eight_workers_are_an_eighth_of_their_requests)                                    \
    T(reads_are_merged_and_a_write_between_them_is_not)                                            \
    T(another_tenants_are_not_merged)                                                              \
    T(regions_side_by_side_are_two)                                                                \
    T(no_more_pieces_are_put_together_than_a_queue_pair_has)                                       \
    T(none_is_longer_than_a_message_may_be)                                                        \
    T(fences_and_atomics_stand_alone)                                                              \
    T(a_later_write_over_an_earlier_one_stays)                                                     \
    T(reads_into_the_same_memory_are_not_merged)                                                   \
    T(inline_ones_are_merged_as_far_as_they_go_inline)                                             \
    T(what_begins_inside_a_word_is_not_merged)                                                     \
    T(each_has_the_completion_that_it_asked_for)                                                   \
    T(a_window_counts_them_as_one)                                                                 \
    T(what_a_window_holds_back_is_merged_when_it_goes)                                             \
    T(their_bytes_are_the_windows)                                                                 \
    T(where_it_is_switched_off_each_goes_alone)                                                    \
    T(work_requests_are_counted)                                                                   \
    T(work_requests_only_grow)                                                                     \
    T(those_of_one_vqp_keep_their_order)                                                           \
    T(one_of_each_vqp_is_merged_with_others)                                                       \
    T(who_goes_behind_says_whether_order_matters)
KEDGE_CHECK_MAIN("agent.lane.merge", TESTS)
