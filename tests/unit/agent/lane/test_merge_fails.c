/* SPDX-License-Identifier: Apache-2.0 */
/* A work request of several requests fails, of which a part may have been carried out: each ends as
 * it would alone, or is tried again alone, and nobody else is harmed. */
#include <string.h>

#include "../../check_main.h"
#include "world.h"
#include "world_held.h"
#include "world_merge.h"

enum { PASSES = 400000, BLOCK = 512, EACH = 3 /* requests of a worker */ };
static const uint64_t REST_NS = 10000000000, WHILE_NS = 10000000;

static struct world world;
static struct world *w = &world;
static struct world_mergers m;
static struct world_posts *posts;

/* Two workers, on a device that can tear requests. */
static void open_scene(bool errors_first)
{
    world_fault = (struct fault_plan){.seed = 5, .torn_ppm = 1, .errors_first = errors_first};
    world_mergers_open(w, &m, 2);
    for (uint32_t i = 0; i < 2; i++)
        memset(m.worker[i].arena.addr, 0x11 * (int)(i + 1), WORLD_ARENA);
    posts = world_watch_posts(&w->node[0]);
}

static void close_scene(void)
{
    world_watch_end();
    world_mergers_close(w, &m);
    world_fault = (struct fault_plan){.seed = 0};
}

/* EACH of both workers, from places apart, adjacent at the owner: with numbers from 1. */
static void post_all(uint8_t op)
{
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        struct schema_sq_desc d =
            world_rw(op, 1 + i % EACH, (uint64_t)i * 2 * BLOCK, BLOCK, m.vkey, (uint64_t)i * BLOCK);
        d.flags |= SCHEMA_OP_RELAXED;
        world_post(&m.worker[i / EACH], &d);
    }
    world_mergers_ring(w, &m);
}

/* The device fails so in the middle of all that is posted in one pass. */
static void tear_pass(enum ibv_wc_status status)
{
    struct fault_plan plan = {.seed = 7, .torn_ppm = 1000000, .status = status};
    fault_set_plan(w->node[0].fab, &plan);
    world_run(w, 1);
    plan.torn_ppm = 0;
    fault_set_plan(w->node[0].fab, &plan);
    ck_assert_uint_le(posts->requests, 2); /* the one worker's comes first, or the other's */
}

static void expect_all(uint32_t worker, enum ibv_wc_status first, enum ibv_wc_status behind)
{
    for (uint64_t id = 1; id <= EACH; id++) {
        const struct schema_cqe e = world_done(w, &m.worker[worker], PASSES);
        ck_assert_uint_eq(e.wr_id, id);
        ck_assert_uint_eq(e.byte_len, BLOCK);
        ck_assert_uint_eq(e.status, id == 1 ? first : behind);
        if (e.status == IBV_WC_WR_FLUSH_ERR)
            ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_UNDER_WAY);
    }
}

static void expect_all_good(void)
{
    for (uint32_t i = 0; i < 2; i++)
        expect_all(i, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
}

START_TEST(reads_that_failed_as_one_are_read_apart)
{
    open_scene(false);
    memset(m.owner.arena.addr, 0x77, WORLD_ARENA);
    post_all(SCHEMA_OP_READ);
    tear_pass(IBV_WC_SUCCESS);
    const uint32_t before = posts->requests;
    const uint64_t merged = world_stats(w, 0).merged;
    expect_all_good();
    ck_assert_uint_ge(posts->requests, before + 2 * EACH);
    ck_assert_uint_eq(world_stats(w, 0).merged, merged);
    for (uint32_t i = 0; i < 2 * EACH; i++)
        ck_assert_uint_eq(((uint8_t *)m.worker[i / EACH].arena.addr)[i * 2 * BLOCK + BLOCK - 1],
                          0x77);
    ck_assert_uint_eq(world_stats(w, 0).merged_failed, 1);
    close_scene();
}
END_TEST

/* Merging may have been the cause. */
START_TEST(after_such_an_error_nothing_is_merged_for_a_while)
{
    open_scene(false);
    post_all(SCHEMA_OP_READ);
    tear_pass(IBV_WC_REM_INV_REQ_ERR);
    expect_all_good();
    posts->requests = 0;
    post_all(SCHEMA_OP_READ);
    expect_all_good();
    ck_assert_uint_eq(posts->requests, 2 * EACH);
    world_sleep(w, REST_NS);
    post_all(SCHEMA_OP_READ);
    expect_all_good();
    posts->requests = 0;
    post_all(SCHEMA_OP_READ);
    expect_all_good();
    ck_assert_uint_le(posts->requests, 2);
    close_scene();
}
END_TEST

/* How many work requests EACH adjacent READs from the one elsewhere are. */
static uint32_t count_elsewhere(struct world_elsewhere *e)
{
    const uint32_t before = posts->requests;
    for (uint32_t i = 0; i < EACH; i++) {
        struct schema_sq_desc d =
            world_rw(SCHEMA_OP_READ, 1 + i, (uint64_t)i * BLOCK, BLOCK, e->vkey, i * BLOCK);
        d.flags |= SCHEMA_OP_RELAXED;
        world_post(&e->worker, &d);
    }
    for (uint32_t i = 0; i < EACH; i++)
        ck_assert_uint_eq(world_done(w, &e->worker, PASSES).status, IBV_WC_SUCCESS);
    return posts->requests - before;
}

/* And of post_all(). */
static uint32_t count_all(void)
{
    const uint32_t before = posts->requests;
    post_all(SCHEMA_OP_READ);
    expect_all_good();
    return posts->requests - before;
}

/* What a peer says is of that peer, and what the device says of itself is of all. */
START_TEST(requests_to_others_are_merged_meanwhile)
{
    struct world_elsewhere e;
    open_scene(false);
    world_elsewhere_open(w, &e);
    posts->requests = 0;
    post_all(SCHEMA_OP_READ);
    tear_pass(IBV_WC_REM_OP_ERR);
    expect_all_good();
    ck_assert_uint_eq(count_all(), 2 * EACH);
    ck_assert_uint_eq(count_elsewhere(&e), 1);
    world_sleep(w, REST_NS);
    count_elsewhere(&e); /* with READs of records, which are old */
    count_all();
    ck_assert_uint_le(count_all(), 2);
    posts->requests = 0;
    post_all(SCHEMA_OP_READ);
    tear_pass(IBV_WC_LOC_QP_OP_ERR);
    expect_all_good();
    ck_assert_uint_eq(count_all(), 2 * EACH);
    ck_assert_uint_eq(count_elsewhere(&e), EACH);
    world_elsewhere_close(w, &e);
    close_scene();
}
END_TEST

/* As where something on the way drops packets of the length that they have when they are merged. */
START_TEST(to_who_was_silent_nothing_is_merged_for_a_while)
{
    struct world_elsewhere e;
    open_scene(false);
    world_elsewhere_open(w, &e);
    posts->requests = 0;
    post_all(SCHEMA_OP_READ);
    tear_pass(IBV_WC_RETRY_EXC_ERR);
    for (uint32_t i = 0; i < 2; i++)
        expect_all(i, IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, m.vkey, 0);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(world_connect(w, &m.worker[i], 0, 1), 0);
    for (int i = 0; world_do(w, &m.worker[0], d, PASSES).status != IBV_WC_SUCCESS; i++) {
        ck_assert_int_lt(i, 100);
        world_sleep(w, WHILE_NS);
        ck_assert_int_eq(world_connect(w, &m.worker[0], 0, 1), 0);
    }
    ck_assert_uint_eq(count_all(), 2 * EACH);
    ck_assert_uint_eq(count_elsewhere(&e), 1);
    world_sleep(w, REST_NS);
    count_all();
    ck_assert_uint_le(count_all(), 2);
    world_elsewhere_close(w, &e);
    close_scene();
}
END_TEST

/* Who has seen what was written, and written something else there, does not find it again. */
static void expect_written_once(void)
{
    uint8_t *arena = m.owner.arena.addr;
    ck_assert(arena[0] != 0xee || arena[EACH * BLOCK] != 0xee); /* a part was carried out */
    memset(arena, 0xee, WORLD_ARENA);
    world_run(w, 2000);
    for (uint32_t b = 0; b < WORLD_ARENA; b++)
        ck_assert_uint_eq(arena[b], 0xee);
}

START_TEST(writes_that_were_refused_as_one_are_not_written_again)
{
    open_scene(false);
    memset(m.owner.arena.addr, 0xee, WORLD_ARENA);
    post_all(SCHEMA_OP_WRITE);
    tear_pass(IBV_WC_REM_ACCESS_ERR);
    const bool both = posts->requests == 1;
    expect_written_once();
    for (uint32_t i = 0; i < 2 && both; i++)
        expect_all(i, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_stats(w, 0).merged_failed, 1);
    close_scene();
}
END_TEST

START_TEST(writes_that_failed_otherwise_may_have_been_carried_out)
{
    open_scene(false);
    memset(m.owner.arena.addr, 0xee, WORLD_ARENA);
    post_all(SCHEMA_OP_WRITE);
    tear_pass(IBV_WC_LOC_QP_OP_ERR);
    const bool both = posts->requests == 1;
    expect_written_once();
    for (uint32_t i = 0; i < 2 && both; i++)
        expect_all(i, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
    close_scene();
}
END_TEST

START_TEST(that_the_peer_is_silent_each_hears_once)
{
    open_scene(false);
    post_all(SCHEMA_OP_READ);
    tear_pass(IBV_WC_RETRY_EXC_ERR);
    for (uint32_t i = 0; i < 2; i++)
        expect_all(i, IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_stats(w, 0).merged_failed, 0);
    close_scene();
}
END_TEST

START_TEST(reads_that_were_flushed_as_one_go_again)
{
    open_scene(false);
    post_all(SCHEMA_OP_READ);
    tear_pass(IBV_WC_WR_FLUSH_ERR);
    expect_all_good();
    ck_assert_uint_eq(world_stats(w, 0).merged_failed, 0);
    close_scene();
}
END_TEST

/* The error is completed in the name of the oldest, whichever that is. */
START_TEST(reads_go_again_where_errors_have_no_names)
{
    open_scene(true);
    post_all(SCHEMA_OP_READ);
    struct fault_plan plan = {.seed = 7,
                              .completion_error_ppm = 1000000,
                              .status = IBV_WC_REM_OP_ERR,
                              .errors_first = true};
    fault_set_plan(w->node[0].fab, &plan);
    world_run(w, 1);
    plan.completion_error_ppm = 0;
    fault_set_plan(w->node[0].fab, &plan);
    expect_all_good();
    close_scene();
}
END_TEST

START_TEST(what_the_device_does_not_take_as_one_it_takes_apart)
{
    open_scene(false);
    posts->refuses_lists = true;
    memset(m.owner.arena.addr, 0xee, WORLD_ARENA);
    post_all(SCHEMA_OP_WRITE);
    expect_all_good();
    ck_assert_uint_eq(posts->refused, 1); /* and nothing is merged for a while */
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 0);
    ck_assert_uint_eq(world_stats(w, 0).merged_failed, 1);
    for (uint32_t i = 0; i < 2 * EACH; i++)
        ck_assert_uint_eq(((uint8_t *)m.owner.arena.addr)[i * BLOCK], 0x11 * (i / EACH + 1));
    close_scene();
}
END_TEST

/* All of them are one tenant's, and name the key: who has that done again and again waits, as if
 * they had not been merged. */
START_TEST(a_tenant_pays_for_what_was_refused_as_one)
{
    open_scene(false);
    for (int n = 0; n < 24 && lane_rests(w->node[0].lane, 1) == 0; n++) {
        posts->requests = 0;
        post_all(SCHEMA_OP_READ);
        tear_pass(IBV_WC_REM_ACCESS_ERR);
        expect_all_good();
    }
    ck_assert_uint_gt(lane_rests(w->node[0].lane, 1), 0);
    close_scene();
}
END_TEST

START_TEST(of_a_vqp_that_is_destroyed_the_others_hear_theirs)
{
    open_scene(false);
    post_all(SCHEMA_OP_READ);
    world_hold(&w->node[0], NULL);
    world_run(w, 2);
    const struct schema_sq_desc d = {.op = SCHEMA_OP_DESTROY, .slots = 1};
    world_post(&m.worker[0], &d);
    world_run(w, 2);
    world_give();
    expect_all(1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
    struct schema_cqe e;
    ck_assert(!world_poll(w, &m.worker[0], &e, 50));
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    world_held_end();
    world_watch_end();
    posts = world_watch_posts(&w->node[0]);
    close_scene();
}
END_TEST

START_TEST(of_a_session_that_ends_the_others_hear_theirs)
{
    const struct lane_command end = {
        .kind = LANE_COMMAND_SESSION_END, .session = 0, .reason = SCHEMA_REASON_CLOSED};
    open_scene(false);
    post_all(SCHEMA_OP_READ);
    world_hold(&w->node[0], NULL);
    world_run(w, 2);
    ck_assert_int_eq(lane_command(w->node[0].lane, &end), 0);
    world_run(w, 50);
    ck_assert_uint_eq(w->node[0].overs[0], m.worker[0].overs); /* its memory is the device's yet */
    world_give();
    expect_all(1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
    world_held_end();
    world_watch_end();
    posts = world_watch_posts(&w->node[0]);
    close_scene();
}
END_TEST

/* With DC: of each stream a completion stands for itself, and for all that are in it. */
START_TEST(streams_complete_all_of_one)
{
    world_streams = true;
    world_mergers_open(w, &m, 2);
    posts = world_watch_posts(&w->node[0]);
    memset(m.owner.arena.addr, 0x77, WORLD_ARENA);
    for (int n = 0; n < 20; n++) {
        post_all(n % 2 == 0 ? SCHEMA_OP_READ : SCHEMA_OP_WRITE);
        expect_all_good();
    }
    ck_assert_uint_lt(posts->requests, 20 * 2 * EACH / 2);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    close_scene();
    world_streams = false;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(reads_that_failed_as_one_are_read_apart)                                                     \
    T(after_such_an_error_nothing_is_merged_for_a_while)                                           \
    T(requests_to_others_are_merged_meanwhile)                                                     \
    T(to_who_was_silent_nothing_is_merged_for_a_while)                                             \
    T(writes_that_were_refused_as_one_are_not_written_again)                                       \
    T(writes_that_failed_otherwise_may_have_been_carried_out)                                      \
    T(that_the_peer_is_silent_each_hears_once)                                                     \
    T(reads_that_were_flushed_as_one_go_again)                                                     \
    T(reads_go_again_where_errors_have_no_names)                                                   \
    T(what_the_device_does_not_take_as_one_it_takes_apart)                                         \
    T(a_tenant_pays_for_what_was_refused_as_one)                                                   \
    T(of_a_vqp_that_is_destroyed_the_others_hear_theirs)                                           \
    T(of_a_session_that_ends_the_others_hear_theirs)                                               \
    T(streams_complete_all_of_one)
KEDGE_CHECK_MAIN("agent.lane.merge_fails", TESTS)
