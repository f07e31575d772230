/* SPDX-License-Identifier: Apache-2.0 */
/* A lane whose windows find their size: when it looks, and what it counts. */
#include "../../check_main.h"
#include "lane_state.h"
#include "schedule/window.h"
#include "world_crowd.h"

static struct world world;
static struct crowd crowd;
static struct crowd *c = &crowd;

static void find_sizes(enum lane_window_policy policy)
{
    struct lane_command set = {.kind = LANE_COMMAND_WINDOW_POLICY, .window_policy = policy};
    ck_assert_int_eq(lane_command(world.node[0].lane, &set), 0);
    crowd_run(c, 1);
}

static int poll_none(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    (void)cq, (void)n, (void)wc;
    return 0;
}

static bool is_never_busy(const struct fab_cq *cq)
{
    (void)cq;
    return false;
}

/* Nothing ends any more, so that the lane sleeps: it looks at its windows all the same. */
START_TEST(a_lane_that_finds_sizes_wakes_to_look_while_requests_are_out)
{
    crowd_open(c, &world);
    struct lane *lane = world.node[0].lane;
    find_sizes(LANE_WINDOW_LADDER);
    for (uint32_t i = 0; i < 4; i++) /* fewer than a queue pair has room for: that is looked at */
        crowd_join(c, 1, 1 + i % 2, 6, 64);
    crowd_watch.per_poll = 1;
    for (int i = 0; i < 100000 && !crowd_window(c, LANE_WINDOW_DEVICE, 0).counted; i++)
        crowd_run(c, 1);
    ck_assert(crowd_window(c, LANE_WINDOW_DEVICE, 0).counted);
    const struct fab_ops before = crowd_watch.ops;
    crowd_watch.ops.poll = poll_none;
    crowd_watch.ops.is_busy = is_never_busy;
    uint64_t due_ns = 0;
    for (int i = 0; i < 10000 && due_ns == 0; i++) {
        world_run(&world, 1);
        due_ns = lane_prepare_sleep(lane, world.now_ns);
    }
    ck_assert_uint_gt(crowd_window(c, LANE_WINDOW_DEVICE, 0).ops, 0);
    ck_assert_uint_gt(due_ns, world.now_ns);
    ck_assert_uint_le(due_ns, world.now_ns + 2000000);
    crowd_watch.ops.poll = before.poll;
    crowd_watch.ops.is_busy = before.is_busy;
    crowd_watch.per_poll = 0;
    crowd_settle(c);
    find_sizes(LANE_WINDOW_STATIC);
    crowd_close(c);
}
END_TEST

/* Memory goes behind the lane's back: what is refused, is flushed or goes again is not counted. */
START_TEST(what_a_policy_counts_has_ended_well)
{
    crowd_open(c, &world);
    crowd_limit(c, LANE_WINDOW_DEVICE, 0, 0, 24);
    for (uint32_t i = 0; i < 12; i++)
        crowd_join(c, i % 2, 1, 6, 64);
    crowd_run(c, 200);
    struct fab_ctl drop = {.kind = FAB_DEREG_MR, .mr = {.x = c->owner[0][1].arena_mr}};
    ck_assert_int_eq(fab_call(world.node[1].fab, &drop), 0);
    c->owner[0][1].arena_mr = NULL;
    crowd_run(c, 3000);
    crowd_settle(c);
    const struct lane_stats st = world_stats(&world, 0);
    ck_assert_uint_gt(st.qp_broken, 0);
    ck_assert_uint_gt(st.reposted, 0);
    ck_assert_uint_eq(world.node[0].lane->device_window->done_ops, st.completed);
    crowd_close(c);
}
END_TEST

static bool run_until(bool rests, int passes)
{
    const struct lane *lane = world.node[0].lane;
    for (int i = 0; i < passes && lane->search.rests != rests; i++)
        crowd_run(c, 1);
    return lane->search.rests == rests;
}

/* A device that no window helps: nothing is counted, but for a while now and then, and at once when
 * much more is wanted. */
START_TEST(where_no_window_gains_anything_nothing_is_counted)
{
    crowd_open(c, &world);
    struct lane *lane = world.node[0].lane;
    find_sizes(LANE_WINDOW_LADDER);
    for (uint32_t i = 0; i < 4; i++)
        crowd_join(c, 1 + i % 2, 1, 6, 64);
    crowd_watch.per_poll = 4;
    ck_assert(run_until(true, 2000000));
    uint64_t counted_ns = 0, begin_ns = world.now_ns;
    while (world.now_ns < begin_ns + 2000000000) {
        const uint64_t before_ns = world.now_ns;
        crowd_run(c, 1);
        counted_ns += lane->windows_on ? world.now_ns - before_ns : 0;
        ck_assert(lane->search.on || lane->device_window->found_ops == 0);
    }
    ck_assert_uint_le(counted_ns, (world.now_ns - begin_ns) / 4);
    ck_assert(run_until(true, 2000000));
    begin_ns = world.now_ns;
    for (uint32_t i = 0; i < 8; i++)
        crowd_join(c, 1 + i % 2, 1, 6, 64);
    ck_assert(run_until(false, 2000000));
    ck_assert_uint_le(world.now_ns - begin_ns, 20000000);
    crowd_watch.per_poll = 0;
    crowd_settle(c);
    find_sizes(LANE_WINDOW_STATIC);
    crowd_close(c);
}
END_TEST

/* A tenant that has much to do whenever nothing is tried, and little as soon as something is: by
 * the looks alone, a millisecond each. */
START_TEST(who_lets_its_load_swing_does_not_have_sizes_tried_all_the_time)
{
    enum { LOOKS = 20000, ENDED = 500, LENGTH = 64 };
    crowd_open(c, &world);
    struct lane *lane = world.node[0].lane;
    find_sizes(LANE_WINDOW_LADDER);
    uint32_t tried = 0, rests = 0;
    for (int i = 0; i < LOOKS; i++) {
        const bool on = lane->search.on;
        lane->now_ns += 1000000;
        for (int k = 0; k < ENDED; k++)
            window_note_done(lane->device_window, LENGTH, 1);
        atomic_fetch_add(&lane->counters.completed, ENDED);
        lane_windows_find(lane, on ? 40 : 200);
        tried += lane->search.on;
        rests += on && !lane->search.on;
    }
    ck_assert_uint_gt(rests, 4);
    ck_assert_uint_le(tried, LOOKS / 5);
    world.now_ns = lane->now_ns;
    find_sizes(LANE_WINDOW_STATIC);
    crowd_close(c);
}
END_TEST

/* A size that was found is for who has much out: a stranger who makes the lane find a small one,
 * and fills it with what takes long, keeps nobody waiting who has little. */
START_TEST(at_a_size_that_was_found_only_who_has_much_out_waits)
{
    enum { FOUND = 8, BUSY = 6, LITTLE = 4, PASSES = 400 };
    world_mr_lease_ns[1] = world_mr_lease_ns[2] = 1000000000; /* none is READ anew in between */
    crowd_open(c, &world);
    struct lane *lane = world.node[0].lane;
    for (uint32_t i = 0; i < BUSY; i++)
        crowd_join(c, 0, 1 + i % 2, 6, 64);
    struct crowd_member *little = crowd_join(c, 1, 1, LITTLE + 4, 64);
    crowd_run(c, PASSES);
    little->quiet = true;
    crowd_run(c, 20);
    lane->search.on = 1; /* as while sizes are tried */
    lane_windows_switch(lane);
    lane_window_set_found(lane, lane->device_window, FOUND);
    crowd_watch.per_poll = 1;
    crowd_run(c, 20);
    const struct fab_ops before = crowd_watch.ops;
    crowd_watch.ops.poll = poll_none; /* what is out takes long */
    crowd_run(c, 4);
    ck_assert_uint_gt(crowd_window(c, LANE_WINDOW_DEVICE, 0).waiting, 0);
    ck_assert_uint_eq(crowd_window(c, LANE_WINDOW_DEVICE, 0).ops, FOUND);
    ck_assert_uint_eq(crowd_watch.tenant[1].ops, 0);
    little->quiet = false;
    crowd_run(c, 20);
    ck_assert_uint_eq(crowd_watch.tenant[1].ops, LITTLE);
    ck_assert_uint_eq(crowd_watch.tenant[0].ops, FOUND);
    crowd_watch.ops.poll = before.poll;
    crowd_watch.per_poll = 0;
    const uint64_t done[] = {c->member[0].done, little->done};
    crowd_run(c, PASSES);
    ck_assert_uint_gt(c->member[0].done, done[0]); /* both go on */
    ck_assert_uint_gt(little->done, done[1] + LITTLE);
    lane_window_set_found(lane, lane->device_window, 0);
    lane->search.on = 0;
    crowd_settle(c);
    ck_assert_uint_eq(lane->tenant_windows[0].within + lane->tenant_windows[1].within, 0);
    crowd_close(c);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_lane_that_finds_sizes_wakes_to_look_while_requests_are_out)                                \
    T(what_a_policy_counts_has_ended_well)                                                         \
    T(where_no_window_gains_anything_nothing_is_counted)                                           \
    T(who_lets_its_load_swing_does_not_have_sizes_tried_all_the_time)                              \
    T(at_a_size_that_was_found_only_who_has_much_out_waits)

KEDGE_CHECK_MAIN("agent.lane.window_find", TESTS)
