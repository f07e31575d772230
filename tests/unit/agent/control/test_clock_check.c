/* SPDX-License-Identifier: Apache-2.0 */
/* What two clocks say of one another: a host's that is stopped or steered is found out, and one
 * that is merely looked at late, or whose device wraps, is not. */
#include <string.h>

#include "../../check_main.h"
#include "control/clock_check.h"
#include "base/clock.h"

static const uint64_t MS = BASE_NS_PER_MS, LEASE = 3000 * BASE_NS_PER_MS, EVERY = 100;

static struct clock_check check;
static struct {
    double true_ns; /* that has gone by */
    double host_ns, mono_ns, raw_ns, device_ns;
    double host_rate, raw_rate, device_rate; /* of true time */
    double ticks_offset;
    uint64_t read_ns; /* how long a look takes */
    uint64_t hz;
    uint8_t bits;
    bool silent;
} world;

static void begin(void)
{
    agent_clock_check_init(&check, LEASE);
    memset(&world, 0, sizeof world);
    world.host_ns = 1e15;
    world.mono_ns = 5e14;
    world.raw_ns = 4e14;
    world.host_rate = world.raw_rate = world.device_rate = 1;
    world.read_ns = 1000;
    world.hz = 156250000;
    world.bits = 64;
}

/* The machine runs for so long. */
static void pass(double ns)
{
    world.true_ns += ns;
    world.host_ns += ns * world.host_rate;
    world.mono_ns += ns * world.host_rate;
    world.raw_ns += ns * world.raw_rate;
    world.device_ns += ns * world.device_rate;
}

/* Its hypervisor stops it: the device goes on. */
static void stop(double ns)
{
    world.device_ns += ns * world.device_rate;
}

static struct fab_clock device_now(void)
{
    const uint64_t mask = world.bits == 64 ? UINT64_MAX : (1ull << world.bits) - 1;
    struct fab_clock k = {.before_ns = (uint64_t)world.host_ns, .hz = world.hz, .bits = world.bits};
    pass((double)world.read_ns / 2);
    k.ticks = (uint64_t)(world.ticks_offset + world.device_ns * (double)world.hz / 1e9) & mask;
    pass((double)world.read_ns / 2);
    k.after_ns = (uint64_t)world.host_ns;
    return k;
}

static void look(void)
{
    struct clock_look kernel = {.before_ns = (uint64_t)world.mono_ns,
                                .other_ns = (uint64_t)world.raw_ns};
    kernel.after_ns = kernel.before_ns + 200;
    if (!world.silent) {
        const struct fab_clock k = device_now();
        agent_clock_check_device(&check, &k);
    }
    agent_clock_check_kernel(&check, &kernel, (uint64_t)world.host_ns);
}

static void run(uint64_t ms)
{
    for (uint64_t i = 0; i < ms / EVERY; i++) {
        pass((double)(EVERY * MS));
        look();
    }
}

START_TEST(a_clock_that_agrees_with_the_device_is_trusted)
{
    begin();
    ck_assert_int_eq(check.state, CLOCK_UNKNOWN);
    run(500);
    ck_assert_int_eq(check.state, CLOCK_UNKNOWN);
    run(3000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
    run(600000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
    ck_assert_uint_eq(check.lies, 0);
}
END_TEST

START_TEST(without_a_second_clock_nobody_knows)
{
    begin();
    world.silent = true;
    run(60000);
    ck_assert_int_eq(check.state, CLOCK_UNKNOWN);
    ck_assert_uint_eq(check.lies, 0);
}
END_TEST

START_TEST(a_machine_that_was_stopped_is_found_out_at_the_next_look)
{
    begin();
    run(10000);
    stop(1e10);
    pass(1e8);
    look();
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    ck_assert_int_eq(check.lie, CLOCK_SLOW);
    ck_assert_uint_eq(check.lies, 1);
    ck_assert(check.off_ns > 9900 * MS && check.off_ns < 10100 * MS);
}
END_TEST

START_TEST(one_that_stood_still_for_less_than_a_lease_can_bear_is_not)
{
    begin();
    run(10000);
    stop(2e6);
    run(10000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
    stop(4e6);
    run(200);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
}
END_TEST

START_TEST(short_stops_add_up)
{
    begin();
    run(10000);
    for (int i = 0; i < 10; i++) {
        stop(1e6);
        run(200);
    }
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
}
END_TEST

START_TEST(a_clock_that_lied_once_has_to_agree_for_a_while)
{
    begin();
    run(10000);
    stop(1e9);
    run(200);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    run((CLOCK_GRACE_NS + 4 * LEASE) / MS - 1000);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    stop(2500000); /* which one that is trusted may */
    run(500);
    ck_assert_uint_eq(check.lies, 1); /* it is one doubt */
    run((CLOCK_GRACE_NS + 4 * LEASE) / MS - 1000);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    run(2000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
}
END_TEST

START_TEST(what_lied_and_is_silent_is_not_trusted_again)
{
    begin();
    run(10000);
    stop(1e9);
    run(200);
    world.silent = true;
    run(600000);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    world.silent = false;
    run(2000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
}
END_TEST

START_TEST(a_device_that_says_nothing_any_more_leaves_it_unknown)
{
    begin();
    run(10000);
    world.silent = true;
    run(CLOCK_SILENT_NS / MS + 1000);
    ck_assert_int_eq(check.state, CLOCK_UNKNOWN);
    stop(1e9);
    world.silent = false;
    run(200); /* what happened meanwhile is seen */
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
}
END_TEST

/* Which is all that is left to say once a device has lost its clock: the doubt had no end. */
START_TEST(what_lied_and_is_gone_leaves_it_unknown_after_a_while)
{
    begin();
    run(10000);
    stop(1e9);
    run(200);
    world.silent = true;
    run(60000);
    agent_clock_check_gone(&check, (uint64_t)world.host_ns);
    run((CLOCK_GRACE_NS + 4 * LEASE) / MS - 1000);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    agent_clock_check_gone(&check, (uint64_t)world.host_ns);
    run(2000);
    ck_assert_int_eq(check.state, CLOCK_UNKNOWN);
    world.silent = false;
    run(10000); /* it is back, and what it has counted meanwhile agrees */
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
}
END_TEST

START_TEST(one_that_cannot_say_its_time_now_and_then_is_not_gone)
{
    begin();
    run(10000);
    stop(1e9);
    run(200);
    for (int i = 0; i < 3; i++) {
        agent_clock_check_gone(&check, (uint64_t)world.host_ns);
        run(12000);
        ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    }
    world.silent = true;
    agent_clock_check_gone(&check, (uint64_t)world.host_ns);
    run(30000);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
}
END_TEST

START_TEST(a_clock_that_is_slewed_is_found_out_without_a_device)
{
    static const double rates[] = {1.08, 0.92, 1.003, 0.997};
    for (int i = 0; i < 4; i++) {
        begin();
        world.silent = true;
        run(10000);
        world.host_rate = rates[i];
        run(2 * LEASE / MS);
        ck_assert_int_eq(check.state, CLOCK_DOUBTED);
        ck_assert_int_eq(check.lie, CLOCK_STEERED);
        run(100000);
        ck_assert_int_eq(check.state, CLOCK_DOUBTED); /* as long as it is */
        world.host_rate = 1;
        run((CLOCK_GRACE_NS + 4 * LEASE) / MS + 1000);
        ck_assert_int_eq(check.state, CLOCK_UNKNOWN);
    }
}
END_TEST

START_TEST(a_clock_that_is_slow_beside_the_device_is_found_out_where_the_kernels_are_slow_too)
{
    begin();
    run(10000);
    world.host_rate = world.raw_rate = 0.99;
    run(2 * LEASE / MS);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    ck_assert_int_eq(check.lie, CLOCK_SLOW);
}
END_TEST

START_TEST(what_ntp_and_crystals_are_allowed_is_allowed)
{
    begin();
    world.host_rate = 1 + 400e-6;
    world.device_rate = 1 - 100e-6;
    run(600000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
    world.host_rate = 1.01; /* a correction of 1 ms */
    run(100);
    world.host_rate = 1 + 200e-6;
    run(20000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
}
END_TEST

START_TEST(whoever_stands_still_while_looking_accuses_nobody)
{
    begin();
    run(10000);
    for (uint64_t ns = 1000; ns < 60000000000; ns *= 3) {
        world.read_ns = ns;
        look();
        world.read_ns = 1000;
        run(3000);
        ck_assert_int_eq(check.state, CLOCK_TRUSTED);
    }
    ck_assert_uint_eq(check.lies, 0);
}
END_TEST

START_TEST(and_a_long_pause_between_looks_is_none_either)
{
    begin();
    run(10000);
    pass(3600e9);
    look();
    ck_assert_uint_eq(check.lies, 0);
    run(5000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
}
END_TEST

START_TEST(a_counter_wraps)
{
    static const uint8_t bits[] = {32, 40, 41, 48, 63};
    for (int i = 0; i < 5; i++) {
        begin();
        world.bits = bits[i];
        world.ticks_offset = bits[i] == 63 ? 0 : (double)(1ull << bits[i]) - 2e8;
        run(120000); /* of 32 bits every 27 s */
        ck_assert_int_eq(check.state, CLOCK_TRUSTED);
        ck_assert_uint_eq(check.lies, 0);
        stop(5e9);
        run(200);
        ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    }
}
END_TEST

START_TEST(what_was_not_looked_at_while_a_counter_wraps_is_not_guessed_at)
{
    begin();
    world.bits = 32;
    run(10000);
    pass(100e9);
    look();
    run(5000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
    ck_assert_uint_eq(check.lies, 0);
}
END_TEST

START_TEST(a_device_that_was_reset_leaves_a_doubt)
{
    begin();
    run(10000);
    world.device_ns = 1e9;
    run(100);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    ck_assert_int_eq(check.lie, CLOCK_RESTARTED);
    run((CLOCK_GRACE_NS + 4 * LEASE) / MS + 1000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
    ck_assert_uint_eq(check.lies, 1);
}
END_TEST

/* As where the machine was moved to another device: whatever its counter says. */
START_TEST(a_counter_of_another_rate_leaves_a_doubt)
{
    static const double forward[] = {1, 1.5, 0.5};
    for (int i = 0; i < 3; i++) {
        begin();
        run(10000);
        world.hz = 1000000000;
        world.device_ns *= forward[i];
        pass(1e8);
        look();
        ck_assert_int_eq(check.state, CLOCK_DOUBTED);
        ck_assert_int_eq(check.lie, CLOCK_RESTARTED);
        run((CLOCK_GRACE_NS + 4 * LEASE) / MS + 1000);
        ck_assert_int_eq(check.state, CLOCK_TRUSTED);
    }
}
END_TEST

START_TEST(one_that_nobody_looked_at_while_it_may_have_wrapped_has_to_agree_anew)
{
    begin();
    world.bits = 32;
    run(10000);
    pass(100e9);
    look();
    ck_assert_int_eq(check.state, CLOCK_UNKNOWN);
    run(500);
    ck_assert_int_eq(check.state, CLOCK_UNKNOWN);
    run(1000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
}
END_TEST

/* The device was asked before the kernel's clock was looked at, and its answer comes after. */
START_TEST(a_look_that_is_heard_late_ends_no_doubt)
{
    begin();
    run(10000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
    pass((double)(EVERY * MS));
    const struct fab_clock asked = device_now();
    pass(1e6);
    world.mono_ns += 1e9; /* steered */
    world.silent = true;
    look();
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    agent_clock_check_device(&check, &asked);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    world.silent = false;
    run((CLOCK_GRACE_NS + 4 * LEASE) / MS - 1000);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    run(2000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
}
END_TEST

START_TEST(what_agreed_before_a_lie_of_the_kernels_has_to_agree_anew)
{
    begin();
    run(10000);
    world.mono_ns += 1e9;
    world.silent = true;
    look();
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    ck_assert_uint_eq(check.agrees_ns, 0);
}
END_TEST

/* The device has seen that the machine was stopped, and is silent; then the clock is steered too.
 */
START_TEST(a_doubt_of_the_devices_stays_its_own_when_the_clock_is_steered_too)
{
    char before[320], after[320];
    begin();
    run(10000);
    stop(1e9);
    run(200);
    ck_assert_int_eq(check.lie, CLOCK_SLOW);
    agent_clock_check_why(&check, before, sizeof before);
    world.silent = true;
    world.mono_ns += 1e9;
    run(200);
    ck_assert_int_eq(check.lie, CLOCK_SLOW);
    agent_clock_check_why(&check, after, sizeof after);
    ck_assert_str_eq(before, after);
    run(10 * (CLOCK_GRACE_NS + 4 * LEASE) / MS);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    world.silent = false;
    run(2000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
}
END_TEST

/* Of chrony with `maxslewrate 500`, which is what is advised, where it corrects a crystal too. */
START_TEST(a_doubt_ends_while_the_clock_is_slewed_as_advised)
{
    static const double ppm[] = {560, -560, 600, -600};
    for (int i = 0; i < 8; i++) {
        begin();
        world.silent = i % 2 != 0;
        world.device_rate = 1 - (ppm[i / 2] > 0 ? 100e-6 : -100e-6);
        run(10000);
        world.mono_ns += 1e9;
        run(100);
        ck_assert_int_eq(check.state, CLOCK_DOUBTED);
        world.host_rate = 1 + ppm[i / 2] * 1e-6;
        run((CLOCK_GRACE_NS + 4 * LEASE) / MS + 1000);
        ck_assert_int_eq(check.state, world.silent ? CLOCK_UNKNOWN : CLOCK_TRUSTED);
        ck_assert_uint_eq(check.lies, 1);
    }
}
END_TEST

START_TEST(a_doubt_does_not_end_at_a_rate_that_is_nearly_one_too_many)
{
    begin();
    world.silent = true;
    run(10000);
    world.mono_ns += 1e9;
    run(100);
    world.host_rate = 1 + 900e-6;
    run(100000);
    ck_assert_int_eq(check.state, CLOCK_DOUBTED);
    ck_assert_uint_eq(check.lies, 1);
}
END_TEST

START_TEST(a_machine_that_slept_and_says_so_is_trusted)
{
    begin();
    run(10000);
    world.host_ns += 3600e9; /* which CLOCK_BOOTTIME counts, and the other two do not */
    world.device_ns += 3600e9;
    run(5000);
    ck_assert_int_eq(check.state, CLOCK_TRUSTED);
    ck_assert_uint_eq(check.lies, 0);
}
END_TEST

START_TEST(each_lie_is_told_with_what_to_do)
{
    char text[320];
    begin();
    agent_clock_check_why(&check, text, sizeof text);
    ck_assert_str_eq(text, "");
    check.off_ns = 10000 * MS;
    check.over_ns = 100 * MS;
    for (check.lie = CLOCK_SLOW; check.lie <= CLOCK_STEERED; check.lie++) {
        agent_clock_check_why(&check, text, sizeof text);
        ck_assert_uint_gt(strlen(text), 40);
        ck_assert_uint_lt(strlen(text), sizeof text - 1);
        ck_assert_ptr_nonnull(strchr(text, '('));
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_clock_that_agrees_with_the_device_is_trusted)                                              \
    T(without_a_second_clock_nobody_knows)                                                         \
    T(a_machine_that_was_stopped_is_found_out_at_the_next_look)                                    \
    T(one_that_stood_still_for_less_than_a_lease_can_bear_is_not)                                  \
    T(short_stops_add_up)                                                                          \
    T(a_clock_that_lied_once_has_to_agree_for_a_while)                                             \
    T(what_lied_and_is_silent_is_not_trusted_again)                                                \
    T(what_lied_and_is_gone_leaves_it_unknown_after_a_while)                                       \
    T(one_that_cannot_say_its_time_now_and_then_is_not_gone)                                       \
    T(a_device_that_says_nothing_any_more_leaves_it_unknown)                                       \
    T(a_clock_that_is_slewed_is_found_out_without_a_device)                                        \
    T(a_clock_that_is_slow_beside_the_device_is_found_out_where_the_kernels_are_slow_too)          \
    T(what_ntp_and_crystals_are_allowed_is_allowed)                                                \
    T(whoever_stands_still_while_looking_accuses_nobody)                                           \
    T(and_a_long_pause_between_looks_is_none_either)                                               \
    T(a_counter_wraps)                                                                             \
    T(what_was_not_looked_at_while_a_counter_wraps_is_not_guessed_at)                              \
    T(a_device_that_was_reset_leaves_a_doubt)                                                      \
    T(a_counter_of_another_rate_leaves_a_doubt)                                                    \
    T(one_that_nobody_looked_at_while_it_may_have_wrapped_has_to_agree_anew)                       \
    T(a_look_that_is_heard_late_ends_no_doubt)                                                     \
    T(a_doubt_of_the_devices_stays_its_own_when_the_clock_is_steered_too)                          \
    T(what_agreed_before_a_lie_of_the_kernels_has_to_agree_anew)                                   \
    T(a_doubt_ends_while_the_clock_is_slewed_as_advised)                                           \
    T(a_doubt_does_not_end_at_a_rate_that_is_nearly_one_too_many)                                  \
    T(a_machine_that_slept_and_says_so_is_trusted)                                                 \
    T(each_lie_is_told_with_what_to_do)
KEDGE_CHECK_MAIN("agent.control.clock_check", TESTS)
