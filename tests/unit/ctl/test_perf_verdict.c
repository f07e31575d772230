/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"

#include <string.h>

#include "ctl/check_perf.h"

START_TEST(calls_are_summed_up)
{
    uint64_t took_ns[200];
    struct ctl_perf_part p;
    for (size_t i = 0; i < 200; i++)
        took_ns[i] = (i + 1) * 1000000;
    ctl_perf_sum(took_ns, 200, 2000000000, &p);
    ck_assert_uint_eq(p.count, 200);
    ck_assert_uint_eq(p.per_s, 100);
    ck_assert_uint_eq(p.median_us, 101000);
    ck_assert_uint_eq(p.p99_us, 198000);
    ck_assert_uint_eq(p.slowest_us, 200000);
    ctl_perf_sum(took_ns, 1, 0, &p);
    ck_assert_uint_eq(p.p99_us, 1000);
    ctl_perf_sum(took_ns, 0, 5, &p);
    ck_assert_uint_eq(p.count + p.per_s + p.slowest_us, 0);
}
END_TEST

START_TEST(what_is_slow_is_said)
{
    char verdict[CTL_PERF_VERDICT_BYTES];
    const struct ctl_perf_part good = {1000, 5000, 900, 2000, 9000},
                               slow = {100, 3, 200000, 300000, 400000},
                               halts = {1000, 5000, 900, 2000, 1500000}, none = {.count = 0};
    ck_assert(ctl_perf_judge(&good, &good, verdict));
    ck_assert_str_eq(verdict, "5000 reads and 5000 writes a second, the slowest write 9 ms");
    ck_assert(!ctl_perf_judge(&good, &slow, verdict));
    ck_assert_ptr_nonnull(strstr(verdict, "of writes one in a hundred is slow"));
    ck_assert(!ctl_perf_judge(&slow, &good, verdict));
    ck_assert_ptr_nonnull(strstr(verdict, "of reads one in a hundred is slow"));
    ck_assert(!ctl_perf_judge(&halts, &good, verdict));
    ck_assert_ptr_nonnull(strstr(verdict, "of reads the slowest"));
    ck_assert(!ctl_perf_judge(&good, &none, verdict));
    ck_assert_ptr_nonnull(strstr(verdict, "none was answered"));
}
END_TEST

#define TESTS(X)                                                                                   \
    X(calls_are_summed_up)                                                                         \
    X(what_is_slow_is_said)
KEDGE_CHECK_MAIN("ctl.perf_verdict", TESTS)
