/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of a control core, in a world whose time is the test's. */
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "base/random.h"
#include "control/world.h"

enum { MOST = 512 };

static struct {
    struct world world;
    uint64_t now_ns, alarm_ns;
    struct world_timer timer[MOST];
    int fired[4 * MOST], count; /* which ones, in order */
} w;

static uint64_t now_ns(struct world *world)
{
    (void)world;
    return w.now_ns;
}

static void set_alarm(struct world *world, uint64_t due_ns)
{
    (void)world;
    w.alarm_ns = due_ns;
}

static const struct world_ops OPS = {.now_ns = now_ns, .alarm = set_alarm};

static void on_fired(void *user)
{
    ck_assert_int_lt(w.count, 4 * MOST);
    w.fired[w.count++] = (int)((struct world_timer *)user - w.timer);
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.world.ops = &OPS;
    w.alarm_ns = UINT64_MAX;
    for (int i = 0; i < MOST; i++)
        w.timer[i] = (struct world_timer){.fired = on_fired, .user = &w.timer[i]};
}

static void run_at(uint64_t ns)
{
    w.now_ns = ns;
    world_timers_run(&w.world);
}

START_TEST(timers_fire_once_in_the_order_of_their_times)
{
    begin();
    world_timer_at(&w.world, &w.timer[0], 30);
    world_timer_at(&w.world, &w.timer[1], 10);
    world_timer_after(&w.world, &w.timer[2], 20);
    ck_assert_uint_eq(w.alarm_ns, 10);
    run_at(9);
    ck_assert_int_eq(w.count, 0);
    run_at(25);
    ck_assert_int_eq(w.count, 2);
    ck_assert_int_eq(w.fired[0], 1);
    ck_assert_int_eq(w.fired[1], 2);
    ck_assert_uint_eq(w.alarm_ns, 30);
    run_at(100);
    run_at(200);
    ck_assert_int_eq(w.count, 3);
    ck_assert_uint_eq(w.alarm_ns, UINT64_MAX);
}
END_TEST

START_TEST(timers_of_one_time_fire_in_the_order_of_their_setting)
{
    begin();
    for (int i = MOST - 1; i >= 0; i--)
        world_timer_at(&w.world, &w.timer[i], 5);
    run_at(5);
    ck_assert_int_eq(w.count, MOST);
    for (int i = 0; i < MOST; i++)
        ck_assert_int_eq(w.fired[i], MOST - 1 - i);
}
END_TEST

START_TEST(a_timer_that_is_cleared_or_set_anew_does_not_fire_at_its_former_time)
{
    begin();
    world_timer_at(&w.world, &w.timer[0], 5);
    world_timer_at(&w.world, &w.timer[1], 6);
    world_timer_clear(&w.world, &w.timer[0]);
    world_timer_clear(&w.world, &w.timer[0]);
    ck_assert_uint_eq(world_timer_due_ns(&w.timer[0]), UINT64_MAX);
    ck_assert_uint_eq(w.alarm_ns, 6);
    world_timer_at(&w.world, &w.timer[1], 50);
    ck_assert_uint_eq(w.alarm_ns, 50);
    run_at(49);
    ck_assert_int_eq(w.count, 0);
    run_at(50);
    ck_assert_int_eq(w.count, 1);
}
END_TEST

static void set_again(void *user)
{
    struct world_timer *t = user;
    on_fired(t);
    world_timer_at(&w.world, t, 0); /* long over: at once, but not in this run */
}

START_TEST(a_timer_that_sets_itself_anew_fires_once_in_a_run)
{
    begin();
    w.timer[0].fired = set_again;
    world_timer_at(&w.world, &w.timer[0], 1);
    run_at(10);
    ck_assert_int_eq(w.count, 1);
    ck_assert_uint_eq(w.alarm_ns, 0);
    run_at(10);
    ck_assert_int_eq(w.count, 2);
}
END_TEST

static void clear_next(void *user)
{
    struct world_timer *t = user;
    on_fired(t);
    world_timer_clear(&w.world, t + 1);
}

START_TEST(a_timer_that_another_one_clears_while_both_are_due_does_not_fire)
{
    begin();
    w.timer[0].fired = clear_next;
    for (int i = 0; i < 3; i++)
        world_timer_at(&w.world, &w.timer[i], 1 + (uint64_t)i);
    run_at(10);
    ck_assert_int_eq(w.count, 2);
    ck_assert_int_eq(w.fired[1], 2);
}
END_TEST

/* Against a plain list: the next one is the least (time, order of setting) of those that are set.
 */
static void compare_with_list(uint64_t seed)
{
    begin();
    struct base_prng random;
    uint64_t due[MOST], order[MOST], serial = 0;
    bool set[MOST] = {false};
    base_prng_seed(&random, seed);
    for (int step = 0; step < 20000; step++) {
        const int i = (int)(base_prng_next(&random) % MOST);
        const uint64_t what = base_prng_next(&random) % 8;
        if (what < 4) {
            due[i] = w.now_ns + base_prng_next(&random) % 64;
            order[i] = serial++;
            set[i] = true;
            world_timer_at(&w.world, &w.timer[i], due[i]);
        } else if (what < 6) {
            set[i] = false;
            world_timer_clear(&w.world, &w.timer[i]);
        } else {
            w.count = 0;
            run_at(w.now_ns + base_prng_next(&random) % 8);
            for (int n = 0;; n++) {
                int first = -1;
                for (int k = 0; k < MOST; k++)
                    if (set[k] && due[k] <= w.now_ns &&
                        (first < 0 || due[k] < due[first] ||
                         (due[k] == due[first] && order[k] < order[first])))
                        first = k;
                if (first < 0) {
                    ck_assert_int_eq(n, w.count);
                    break;
                }
                ck_assert_int_lt(n, w.count);
                ck_assert_int_eq(w.fired[n], first);
                set[first] = false;
            }
        }
        uint64_t next = UINT64_MAX;
        for (int k = 0; k < MOST && step % 64 == 0; k++)
            if (set[k] && due[k] < next)
                next = due[k];
        if (step % 64 == 0)
            ck_assert_uint_eq(w.alarm_ns, next);
    }
}

START_TEST(any_order_of_setting_and_clearing_fires_what_a_list_would)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        compare_with_list(seed);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(timers_fire_once_in_the_order_of_their_times)                                                \
    T(timers_of_one_time_fire_in_the_order_of_their_setting)                                       \
    T(a_timer_that_is_cleared_or_set_anew_does_not_fire_at_its_former_time)                        \
    T(a_timer_that_sets_itself_anew_fires_once_in_a_run)                                           \
    T(a_timer_that_another_one_clears_while_both_are_due_does_not_fire)                            \
    T(any_order_of_setting_and_clearing_fires_what_a_list_would)
KEDGE_CHECK_MAIN("agent.control.timer", TESTS)
