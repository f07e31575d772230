/* SPDX-License-Identifier: Apache-2.0 */
/* A work request of several requests comes too late, or stays out too long: each of them goes again
 * under a lease that is looked at anew, or ends, once; nobody is charged for it. */
#include <string.h>

#include "../../check_main.h"
#include "world.h"
#include "world_held.h"
#include "world_merge.h"

enum { PASSES = 400000, BLOCK = 512, EACH = 3 /* requests of a worker */, TENANT = 1 };

static struct world world;
static struct world *w = &world;
static struct world_mergers m;
static struct world_posts *posts;

/* Two workers, on a device whose requests can fail. */
static void open_scene(void)
{
    world_fault = (struct fault_plan){.seed = 5, .torn_ppm = 1};
    world_mergers_open(w, &m, 2);
    for (uint32_t i = 0; i < 2; i++)
        memset(m.worker[i].arena.addr, 0x11 * (int)(i + 1), WORLD_ARENA);
    memset(m.owner.arena.addr, 0xee, WORLD_ARENA);
    posts = world_watch_posts(&w->node[0]);
}

static void close_scene(void)
{
    world_watch_end();
    world_mergers_close(w, &m);
    world_fault = (struct fault_plan){.seed = 0};
    world_deadlines = world_posts_in_time = world_end_overdue = false;
}

/* EACH of both workers, adjacent at the owner: with numbers from 1. They are two work requests at
 * most. */
static void post_all(uint8_t op)
{
    const uint32_t before = posts->requests;
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        struct schema_sq_desc d =
            world_rw(op, 1 + i % EACH, (uint64_t)i * 2 * BLOCK, BLOCK, m.vkey, (uint64_t)i * BLOCK);
        d.flags |= SCHEMA_OP_RELAXED;
        world_post(&m.worker[i / EACH], &d);
    }
    world_mergers_ring(w, &m);
    world_run(w, 1);
    ck_assert_uint_ge(posts->requests, before + 1);
    ck_assert_uint_le(posts->requests, before + 2);
}

static void expect_none(void)
{
    struct schema_cqe e;
    for (uint32_t i = 0; i < 2; i++)
        ck_assert(!world_poll(w, &m.worker[i], &e, 5));
}

/* Once, in order; and no tenant pays for it. */
static void expect_all_good(void)
{
    for (uint32_t i = 0; i < 2; i++)
        for (uint64_t id = 1; id <= EACH; id++) {
            const struct schema_cqe e = world_done(w, &m.worker[i], PASSES);
            ck_assert_uint_eq(e.wr_id, id);
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        }
    expect_none();
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    ck_assert_uint_eq(lane_rests(w->node[0].lane, TENANT), 0);
}

static void expect_written(void)
{
    for (uint32_t i = 0; i < 2 * EACH; i++)
        ck_assert_uint_eq(((uint8_t *)m.owner.arena.addr)[i * BLOCK + BLOCK - 1],
                          0x11 * (i / EACH + 1));
}

static void expect_read(uint8_t byte)
{
    for (uint32_t i = 0; i < 2 * EACH; i++)
        ck_assert_uint_eq(((uint8_t *)m.worker[i / EACH].arena.addr)[i * 2 * BLOCK + BLOCK - 1],
                          byte);
}

/* What is posted until it ends fails so, and is not carried out. */
static void begin_failing(enum ibv_wc_status status)
{
    struct fault_plan plan = {.seed = 7, .completion_error_ppm = 1000000, .status = status};
    fault_set_plan(w->node[0].fab, &plan);
}

static void end_failing(void)
{
    struct fault_plan plan = {.seed = 7};
    fault_set_plan(w->node[0].fab, &plan);
}

static uint64_t usable_ns(void)
{
    const struct lane_config *c = &w->node[0].config;
    return c->mr_lease_ns - c->bound_ns - c->slack_ns;
}

START_TEST(what_comes_to_the_doorbell_too_late_goes_again_under_another_lease)
{
    world_posts_in_time = true;
    open_scene();
    post_all(SCHEMA_OP_WRITE);
    expect_all_good();
    const uint64_t first = posts->last_not_after, reads = world_stats(w, 0).mr_reads;
    ck_assert_uint_ge(first, w->now_ns);
    posts->pauses_ns = usable_ns() + 1;
    memset(m.owner.arena.addr, 0xee, WORLD_ARENA);
    post_all(SCHEMA_OP_WRITE);
    expect_none();
    ck_assert_uint_gt(world_stats(w, 0).reposted, 0);
    world_sleep(w, usable_ns());
    expect_none();
    posts->pauses_ns = 0;
    expect_all_good();
    expect_written();
    ck_assert_uint_gt(world_stats(w, 0).mr_reads, reads);
    ck_assert_uint_gt(posts->last_not_after, first);
    ck_assert_uint_eq(world_stats(w, 0).merged_failed, 0); /* that is not merging's fault */
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 0);
    close_scene();
}
END_TEST

/* A device that looks at its clock itself: nothing of it was carried out, so that WRITEs go again
 * too. */
START_TEST(what_the_device_finds_too_late_goes_again_whole)
{
    world_deadlines = true;
    open_scene();
    begin_failing(IBV_WC_RESP_TIMEOUT_ERR);
    post_all(SCHEMA_OP_WRITE);
    end_failing();
    const uint32_t before = posts->requests;
    expect_all_good();
    expect_written();
    if (!w->rc) /* where they do not come one by one when there is a connection again */
        ck_assert_uint_le(posts->requests, before + 2);
    ck_assert_uint_ge(posts->last_not_after, w->now_ns);
    ck_assert_uint_eq(world_stats(w, 0).merged_failed, 0);
    close_scene();
}
END_TEST

/* The lease of all of them ends while they are out, and then they fail: nothing goes again under
 * that one. */
START_TEST(what_fails_when_its_lease_is_over_is_read_apart_under_another)
{
    world_deadlines = true;
    open_scene();
    world_hold(&w->node[0], NULL);
    begin_failing(IBV_WC_REM_OP_ERR);
    post_all(SCHEMA_OP_READ);
    end_failing();
    world_sleep(w, w->node[0].config.mr_lease_ns);
    const uint32_t before = posts->requests;
    const uint64_t reads = world_stats(w, 0).mr_reads, since_ns = w->now_ns;
    world_give();
    expect_all_good();
    expect_read(0xee);
    ck_assert_uint_gt(world_stats(w, 0).mr_reads, reads);
    ck_assert_uint_ge(posts->requests, before + 2 * EACH);
    ck_assert_uint_gt(posts->last_not_after, since_ns);
    ck_assert_uint_ge(world_stats(w, 0).merged_failed, 1);
    world_held_end();
    world_watch_end();
    posts = world_watch_posts(&w->node[0]);
    close_scene();
}
END_TEST

/* On a device that keeps no deadlines: all of it is one request's time. */
START_TEST(what_stays_out_for_too_long_as_one_ends_once_for_each)
{
    world_end_overdue = true;
    open_scene();
    const uint64_t bound_ns = w->node[0].config.bound_ns;
    world_hold(&w->node[0], NULL);
    post_all(SCHEMA_OP_WRITE);
    world_sleep(w, bound_ns - bound_ns / 8);
    ck_assert_uint_eq(world_stats(w, 0).qp_overdue, 0);
    world_sleep(w, bound_ns / 4);
    ck_assert_uint_eq(world_stats(w, 0).qp_overdue, 1);
    expect_none(); /* the device may have their memory yet */
    world_give();
    expect_all_good();
    expect_written();
    ck_assert_uint_eq(world_stats(w, 0).merged_failed, 0);
    world_held_end();
    world_watch_end();
    posts = world_watch_posts(&w->node[0]);
    close_scene();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_comes_to_the_doorbell_too_late_goes_again_under_another_lease)                          \
    T(what_the_device_finds_too_late_goes_again_whole)                                             \
    T(what_fails_when_its_lease_is_over_is_read_apart_under_another)                               \
    T(what_stays_out_for_too_long_as_one_ends_once_for_each)
KEDGE_CHECK_MAIN("agent.lane.merge_late", TESTS)
