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
    return 0;
}

static struct kedge_fab_ctl ask(int status)
{
    struct kedge_fab_ctl c = {.kind = KEDGE_FAB_QUERY_CLOCK};
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
}

START_TEST(the_counter_is_told_with_its_rate_and_its_width)
{
    open_device();
    struct kedge_fab_ctl c = ask(0);
    ck_assert_uint_eq(c.clock.ticks, 1ull << 40);
    ck_assert_uint_eq(c.clock.hz, 156250000);
    ck_assert_uint_eq(c.clock.bits, 63);
    ck_assert(c.clock.before_ns != 0 && c.clock.before_ns <= c.clock.after_ns);
    device.mask = (1ull << 48) - 1;
    ck_assert_uint_eq(ask(0).clock.bits, 48);
    device.mask = 0;
    ck_assert_uint_eq(ask(0).clock.bits, 64);
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
    (void)ask(-EOPNOTSUPP);
    device.khz = 1;
    device.context.query_rt_values = NULL; /* SoftRoCE's */
    (void)ask(-EOPNOTSUPP);
    open_device();
    device.status = EIO;
    (void)ask(-EIO);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_counter_is_told_with_its_rate_and_its_width)                                             \
    T(a_device_that_cannot_say_has_none)
KEDGE_CHECK_MAIN("verbs_clock", TESTS)
