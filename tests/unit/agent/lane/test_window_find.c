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

#define TESTS(T)                                                                                   \
    T(a_lane_that_finds_sizes_wakes_to_look_while_requests_are_out)                                \
    T(what_a_policy_counts_has_ended_well)

KEDGE_CHECK_MAIN("agent.lane.window_find", TESTS)
