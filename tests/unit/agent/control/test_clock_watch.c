/* SPDX-License-Identifier: Apache-2.0 */
/* When the device is asked for its time, and what the lanes hear of it: device and time are the
 * test's. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "clock_watch.h"
#include "fabric/provider.h"
#include "world.h"

static const uint64_t MS = BASE_NS_PER_MS, LEASE = 3000 * BASE_NS_PER_MS;

static struct {
    struct agent agent;
    struct pool pool; /* of it: with a worker */
    struct fab fab;
    struct fab_ops ops;
    struct test_world world;
    uint64_t hz;
    int status;
    uint32_t asked;
} w;

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    ck_assert_int_eq(ctl->kind, FAB_QUERY_CLOCK);
    w.asked++;
    ctl->status = w.status;
    if (w.status == 0)
        ctl->clock = (struct fab_clock){
            .before_ns = w.world.now_ns, .after_ns = w.world.now_ns, .hz = w.hz, .bits = 64};
    ctl->clock.ticks = w.world.now_ns / 1000 * (w.hz / 1000000);
    ctl->done(ctl);
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.ops = (struct fab_ops){.submit = submit};
    w.fab.ops = &w.ops;
    w.agent.fab = &w.fab;
    w.agent.config.mr_lease_ns = LEASE;
    test_world_init(&w.world);
    w.agent.world = &w.world.world;
    w.agent.pools[0] = &w.pool;
    w.pool.count.live = 1;
    w.hz = 1000000000;
    agent_clock_watch_init(&w.agent);
}

/* The control thread makes a pass every 50 ms. How often the device is asked in that time. */
static uint32_t run(uint64_t ms)
{
    const uint32_t before = w.asked;
    for (uint64_t i = 0; i < ms / 50; i++) {
        w.world.now_ns += 50 * MS;
        agent_clock_watch_tick(&w.agent);
    }
    return w.asked - before;
}

/* Of another rate from here on. */
static void lie(void)
{
    w.hz *= 2;
    (void)run(50);
    ck_assert_int_eq(w.agent.clock.check.state, CLOCK_DOUBTED);
    ck_assert_uint_eq(w.agent.clock.doubted, 1);
}

START_TEST(a_device_without_a_clock_is_asked_once)
{
    begin();
    w.status = -EOPNOTSUPP;
    ck_assert_uint_eq(run(60000), 1);
    ck_assert_int_eq(w.agent.clock.check.state, CLOCK_UNKNOWN);
}
END_TEST

START_TEST(one_that_has_one_is_asked_at_each_look)
{
    begin();
    ck_assert_uint_eq(run(10000), 200);
    ck_assert_int_eq(w.agent.clock.check.state, CLOCK_TRUSTED);
    w.status = -EIO; /* which may be over at the next */
    ck_assert_uint_eq(run(10000), 200);
}
END_TEST

START_TEST(one_that_had_one_is_asked_on_once_a_second)
{
    begin();
    (void)run(10000);
    w.status = -EOPNOTSUPP;
    const uint32_t asked = run(60000);
    ck_assert(asked >= 55 && asked <= 61);
    ck_assert_int_eq(w.agent.clock.check.state, CLOCK_UNKNOWN);
    w.status = 0;
    (void)run(10000);
    ck_assert_int_eq(w.agent.clock.check.state, CLOCK_TRUSTED);
}
END_TEST

START_TEST(one_without_is_asked_too_while_the_clock_is_doubted)
{
    begin();
    w.status = -EOPNOTSUPP;
    (void)run(1000);
    w.agent.clock.check.state = CLOCK_DOUBTED; /* as the kernel's clock makes it */
    w.agent.clock.check.lie = CLOCK_STEERED;
    w.agent.clock.check.lied_ns = w.world.now_ns;
    ck_assert_uint_ge(run(20000), 18);
    ck_assert_int_eq(w.agent.clock.check.state, CLOCK_DOUBTED);
}
END_TEST

START_TEST(a_device_whose_clock_comes_back_ends_the_doubt_that_it_raised)
{
    begin();
    (void)run(10000);
    lie();
    w.status = -EOPNOTSUPP;
    (void)run(20000);
    w.status = 0;
    (void)run((CLOCK_GRACE_NS + 4 * LEASE) / MS);
    ck_assert_int_eq(w.agent.clock.check.state, CLOCK_TRUSTED);
    ck_assert_uint_eq(w.agent.clock.doubted, 0);
}
END_TEST

START_TEST(one_whose_clock_is_gone_leaves_no_doubt_for_good)
{
    static const int statuses[] = {-EOPNOTSUPP, -EIO};
    for (int i = 0; i < 2; i++) {
        begin();
        (void)run(10000);
        lie();
        (void)run(20000);
        w.status = statuses[i];
        (void)run((CLOCK_GRACE_NS + 4 * LEASE) / MS - 1000);
        ck_assert_uint_eq(w.agent.clock.doubted, 1);
        (void)run(3000);
        ck_assert_int_eq(w.agent.clock.check.state, CLOCK_UNKNOWN);
        ck_assert_uint_eq(w.agent.clock.doubted, 0);
    }
}
END_TEST

START_TEST(without_workers_it_is_looked_at_every_two_seconds_and_at_once_for_the_first)
{
    begin();
    w.pool.count.live = 0;
    (void)run(10000);
    ck_assert_int_eq(w.agent.clock.check.state, CLOCK_TRUSTED);
    ck_assert_uint_eq(run(20000), 10);
    (void)run(50);
    w.pool.count.live = 1;
    ck_assert_uint_le(agent_clock_watch_due_ns(&w.agent), w.world.now_ns + 50 * MS);
    ck_assert_uint_eq(run(10000), 200);
    w.pool.count.live = 0;
    w.pool.count.ending = 1; /* it has regions that peers believe */
    ck_assert_uint_eq(run(1000), 20);
}
END_TEST

START_TEST(a_lie_is_found_without_workers_too_and_followed_closely_then)
{
    begin();
    w.pool.count.live = 0;
    (void)run(10000);
    w.hz *= 2;
    (void)run(2000);
    ck_assert_int_eq(w.agent.clock.check.state, CLOCK_DOUBTED);
    ck_assert_uint_eq(run(1000), 20);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_device_without_a_clock_is_asked_once)                                                      \
    T(one_that_has_one_is_asked_at_each_look)                                                      \
    T(one_that_had_one_is_asked_on_once_a_second)                                                  \
    T(one_without_is_asked_too_while_the_clock_is_doubted)                                         \
    T(a_device_whose_clock_comes_back_ends_the_doubt_that_it_raised)                               \
    T(one_whose_clock_is_gone_leaves_no_doubt_for_good)                                            \
    T(without_workers_it_is_looked_at_every_two_seconds_and_at_once_for_the_first)                 \
    T(a_lie_is_found_without_workers_too_and_followed_closely_then)
KEDGE_CHECK_MAIN("agent.control.clock_watch", TESTS)
