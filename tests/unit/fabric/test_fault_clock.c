/* SPDX-License-Identifier: Apache-2.0 */
/* The fault layer's clock of the device, which a plan sets apart from the host's; over soft. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "../check_main.h"
#include "base/error.h"
#include "fabric/fault.h"

static char dir[64];

static struct fab *open_with(const struct fault_plan *plan)
{
    struct base_errbuf err = {.text = ""};
    struct fab *inner, *fab;
    snprintf(dir, sizeof dir, "/dev/shm/kedge-clock-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const struct fab_open_attr attr = {.device = dir};
    ck_assert_msg(fab_soft.open(&attr, &inner, &err) == 0, "%s", err.text);
    ck_assert_int_eq(fault_open(inner, plan, &fab), 0);
    return fab;
}

static void close_fab(struct fab *fab)
{
    char file[80];
    ck_assert_int_eq(fab_close(fab), 0);
    snprintf(file, sizeof file, "%s/device", dir);
    (void)unlink(file);
    (void)rmdir(dir);
}

static struct fab_clock read_clock(struct fab *fab)
{
    struct fab_ctl c = {.kind = FAB_QUERY_CLOCK};
    ck_assert_int_eq(fab_call(fab, &c), 0);
    ck_assert_uint_eq(c.clock.hz, 1000000000);
    return c.clock;
}

/* By how many ns the device's clock gains on the host's in so many ms, at least and at most. */
static void gain(struct fab *fab, unsigned ms, int64_t *least, int64_t *most)
{
    const struct fab_clock a = read_clock(fab);
    usleep(ms * 1000);
    const struct fab_clock b = read_clock(fab);
    const int64_t device_ns = (int64_t)(b.ticks - a.ticks);
    *least = device_ns - (int64_t)(b.after_ns - a.before_ns);
    *most = device_ns - (int64_t)(b.before_ns - a.after_ns);
}

START_TEST(the_devices_clock_gains_or_loses_as_the_plan_has_it)
{
    static const int32_t drifts[] = {0, 500000, -500000};
    for (int i = 0; i < 3; i++) {
        const struct fault_plan plan = {.clock_drift_ppm = drifts[i]};
        int64_t least, most;
        struct fab *fab = open_with(&plan);
        gain(fab, 40, &least, &most);
        if (drifts[i] > 0)
            ck_assert_int_gt(most, 15000000);
        else if (drifts[i] < 0)
            ck_assert_int_lt(least, -15000000);
        else
            ck_assert(least < 5000000 && most > -5000000);
        close_fab(fab);
    }
}
END_TEST

START_TEST(the_devices_clock_jumps_once)
{
    const struct fault_plan plan = {.clock_jump_ns = 5000000000, .clock_jump_after_ns = 1000000000};
    int64_t least, most;
    struct fab *fab = open_with(&plan);
    gain(fab, 1200, &least, &most);
    ck_assert_int_gt(most, 4000000000);
    gain(fab, 50, &least, &most);
    ck_assert_int_lt(least, 4000000000);
    close_fab(fab);
}
END_TEST

START_TEST(a_device_can_be_made_one_without_a_clock)
{
    const struct fault_plan plan = {.no_clock = true};
    struct fab_ctl c = {.kind = FAB_QUERY_CLOCK};
    struct fab *fab = open_with(&plan);
    ck_assert_int_eq(fab_call(fab, &c), -EOPNOTSUPP);
    close_fab(fab);
}
END_TEST

START_TEST(a_plan_of_it_is_read_as_an_operator_writes_it)
{
    static const char *const wrong[] = {"clock=on", "clock_drift=2", "clock_drift=--2%",
                                        "clock_jump=-1"};
    struct base_errbuf must = {""};
    struct fault_plan plan;
    const char *right = "clock_drift=-2%, clock_jump=500, clock_jump_after=20";
    ck_assert_int_eq(fault_plan_parse(right, &plan, &must), 0);
    ck_assert_int_eq(plan.clock_drift_ppm, -20000);
    ck_assert(plan.clock_jump_ns == 500000000 && plan.clock_jump_after_ns == 20000000);
    ck_assert(!plan.no_clock);
    ck_assert_int_eq(fault_plan_parse("clock=off", &plan, &must), 0);
    ck_assert(plan.no_clock);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(fault_plan_parse(wrong[i], &plan, &must), -EINVAL);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_devices_clock_gains_or_loses_as_the_plan_has_it)                                         \
    T(the_devices_clock_jumps_once)                                                                \
    T(a_device_can_be_made_one_without_a_clock)                                                    \
    T(a_plan_of_it_is_read_as_an_operator_writes_it)
KEDGE_CHECK_MAIN("fault_clock", TESTS)
