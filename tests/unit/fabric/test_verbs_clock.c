/* SPDX-License-Identifier: Apache-2.0 */
/* The device's clock as libibverbs gives it, from a driver that the test plays. */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "verbs/verbs.h"

static struct {
    struct verbs_context context;
    struct verbs_fab fab;
    uint64_t ticks, khz, mask;
    int status;
    uint32_t answers; /* enum ibv_values_mask */
    uint32_t described;
    int description; /* or an errno */
} device;

static int query_values(struct ibv_context *context, struct ibv_values_ex *values)
{
    (void)context;
    values->comp_mask &= device.answers;
    values->raw_clock.tv_sec = 0;
    values->raw_clock.tv_nsec = (long)device.ticks;
    return device.status;
}

static int query_device(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                        struct ibv_device_attr_ex *attr, size_t size)
{
    (void)context, (void)input;
    memset(attr, 0, size);
    attr->hca_core_clock = device.khz;
    attr->completion_timestamp_mask = device.mask;
    device.described++;
    return device.description;
}

static struct fab_ctl ask(int status)
{
    struct fab_ctl c = {.kind = FAB_QUERY_CLOCK};
    ck_assert_int_eq(verbs_clock_query(&device.fab, &c), status);
    return c;
}

static void open_device(void)
{
    memset(&device, 0, sizeof device);
    device.context.sz = sizeof device.context;
    device.context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    device.context.query_rt_values = query_values;
    device.context.query_device_ex = query_device;
    device.fab.context = &device.context.context;
    device.khz = 156250;
    device.mask = UINT64_MAX >> 1;
    device.answers = IBV_VALUES_MASK_RAW_CLOCK;
    device.ticks = 1ull << 40;
    verbs_clock_describe(&device.fab);
}

static uint8_t bits_with(uint64_t mask)
{
    device.mask = mask;
    verbs_clock_describe(&device.fab);
    return ask(0).clock.bits;
}

START_TEST(the_counter_is_told_with_its_rate_and_its_width)
{
    open_device();
    struct fab_ctl c = ask(0);
    ck_assert_uint_eq(c.clock.ticks, 1ull << 40);
    ck_assert_uint_eq(c.clock.hz, 156250000);
    ck_assert(c.clock.before_ns != 0 && c.clock.before_ns <= c.clock.after_ns);
    ck_assert_uint_eq(bits_with((1ull << 32) - 1), 32);
    ck_assert_uint_eq(bits_with(1), 1);
}
END_TEST

/* mlx5's mask says 63 bits, and its counter has no more than 41 for sure. */
START_TEST(no_more_of_it_is_believed_than_every_driver_takes)
{
    open_device();
    ck_assert_uint_eq(ask(0).clock.bits, 41);
    ck_assert_uint_eq(bits_with((1ull << 48) - 1), 41);
    ck_assert_uint_eq(bits_with(UINT64_MAX), 41);
    ck_assert_uint_eq(bits_with(0), 41);
    device.ticks = (5ull << 41) + 7;
    ck_assert_uint_eq(ask(0).clock.ticks, 7);
}
END_TEST

START_TEST(the_device_is_not_asked_what_it_has_at_each_look)
{
    open_device();
    for (int i = 0; i < 20; i++)
        (void)ask(0);
    ck_assert_uint_eq(device.described, 1);
}
END_TEST

START_TEST(a_device_that_cannot_say_has_none)
{
    open_device();
    device.status = EOPNOTSUPP;
    (void)ask(-EOPNOTSUPP);
    device.status = 0;
    device.answers = 0;
    (void)ask(-EOPNOTSUPP);
    device.answers = IBV_VALUES_MASK_RAW_CLOCK;
    device.khz = 0; /* of an unknown rate */
    verbs_clock_describe(&device.fab);
    (void)ask(-EOPNOTSUPP);
    device.khz = 1;
    device.description = EIO;
    verbs_clock_describe(&device.fab);
    (void)ask(-EOPNOTSUPP);
    device.description = 0;
    verbs_clock_describe(&device.fab);
    device.context.query_rt_values = NULL; /* SoftRoCE's */
    (void)ask(-EOPNOTSUPP);
    open_device();
    device.status = EIO;
    (void)ask(-EIO);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_counter_is_told_with_its_rate_and_its_width)                                             \
    T(no_more_of_it_is_believed_than_every_driver_takes)                                           \
    T(the_device_is_not_asked_what_it_has_at_each_look)                                            \
    T(a_device_that_cannot_say_has_none)
KEDGE_CHECK_MAIN("verbs_clock", TESTS)
