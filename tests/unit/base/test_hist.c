/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "../check_main.h"
#include "base/hist.h"
#include "base/metrics.h"
#include "base/random.h"

static struct kedge_hist h;

START_TEST(steps_are_in_order_and_cover_every_value)
{
    uint32_t last = 0;
    for (uint64_t v = 0; v < 1 << 20; v++) {
        uint32_t step = kedge_hist_step(v);
        ck_assert_uint_le(step - last, 1);
        last = step;
    }
    for (unsigned bit = 7; bit < 64; bit++)
        ck_assert_uint_eq(kedge_hist_step((1ull << bit) - 1) + 1, kedge_hist_step(1ull << bit));
    ck_assert_uint_eq(kedge_hist_step(UINT64_MAX), KEDGE_HIST_STEPS - 1);
}
END_TEST

START_TEST(any_value_alone_is_every_percentile_exactly)
{
    struct kedge_prng prng;
    kedge_prng_seed(&prng, 1);
    for (int round = 0; round < 300; round++) {
        uint64_t v = kedge_prng_next(&prng) >> kedge_prng_below(&prng, 64);
        kedge_hist_reset(&h);
        kedge_hist_record(&h, v);
        ck_assert_uint_eq(kedge_hist_percentile(&h, 0), v);
        ck_assert_uint_eq(kedge_hist_percentile(&h, 50), v);
        ck_assert_uint_eq(kedge_hist_percentile(&h, 100), v);
    }
}
END_TEST

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

START_TEST(percentiles_are_within_one_percent_of_the_sorted_values)
{
    enum { N = 100000 };
    static uint64_t values[N];
    struct kedge_prng prng;
    kedge_prng_seed(&prng, 2);
    kedge_hist_reset(&h);
    for (int i = 0; i < N; i++) {
        values[i] = kedge_prng_next(&prng) >> (20 + kedge_prng_below(&prng, 40));
        kedge_hist_record(&h, values[i]);
    }
    qsort(values, N, sizeof *values, by_size);
    static const double percents[] = {0.1, 1, 10, 25, 50, 75, 90, 99, 99.9, 99.99};
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        double exact = (double)values[(size_t)(percents[i] / 100 * N + 0.999999) - 1];
        double got = (double)kedge_hist_percentile(&h, percents[i]);
        ck_assert_double_le(got, exact * 1.008);
        ck_assert_double_ge(got, exact / 1.008 - 0.5);
    }
    ck_assert_uint_eq(h.min, values[0]);
    ck_assert_uint_eq(h.max, values[N - 1]);
}
END_TEST

START_TEST(two_merged_histograms_are_the_one_of_all_values)
{
    static struct kedge_hist a, b;
    kedge_hist_reset(&a);
    kedge_hist_reset(&b);
    kedge_hist_reset(&h);
    for (uint64_t v = 0; v < 10000; v++) {
        kedge_hist_record(v % 3 == 0 ? &a : &b, v * v);
        kedge_hist_record(&h, v * v);
    }
    kedge_hist_merge(&a, &b);
    ck_assert_mem_eq(&a, &h, sizeof h);
    ck_assert_double_eq_tol(kedge_hist_mean(&a), 33328333.5, 0.5);
}
END_TEST

START_TEST(an_empty_histogram_answers_zero_and_a_sum_does_not_wrap)
{
    kedge_hist_reset(&h);
    ck_assert_uint_eq(kedge_hist_percentile(&h, 99), 0);
    ck_assert_double_eq(kedge_hist_mean(&h), 0);
    kedge_hist_record(&h, UINT64_MAX);
    kedge_hist_record(&h, UINT64_MAX);
    ck_assert_uint_eq(h.sum, UINT64_MAX);
    ck_assert_uint_eq(kedge_hist_percentile(&h, 50), UINT64_MAX);
}
END_TEST

START_TEST(metrics_are_written_as_the_exposition_format_says)
{
    struct kedge_text t;
    kedge_text_init(&t, 4096);
    kedge_metric_head(&t, "kedge_sessions", KEDGE_METRIC_GAUGE, "open \\ \"sessions\"\nnow");
    kedge_metric_u64(&t, "kedge_sessions", NULL, 0, 3);
    struct kedge_metric_label labels[] = {{"pool", "a\\b\"c\nd"}, {"lane", "0"}};
    kedge_metric_u64(&t, "kedge_sessions", labels, 2, UINT64_MAX);
    kedge_metric_double(&t, "kedge_load", labels + 1, 1, 0.5);
    ck_assert_int_eq(t.error, 0);
    ck_assert_str_eq(kedge_text_str(&t),
                     "# HELP kedge_sessions open \\\\ \"sessions\"\\nnow\n"
                     "# TYPE kedge_sessions gauge\n"
                     "kedge_sessions 3\n"
                     "kedge_sessions{pool=\"a\\\\b\\\"c\\nd\",lane=\"0\"} 18446744073709551615\n"
                     "kedge_load{lane=\"0\"} 0.5\n");
    kedge_text_fini(&t);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(steps_are_in_order_and_cover_every_value)                                                    \
    T(any_value_alone_is_every_percentile_exactly)                                                 \
    T(percentiles_are_within_one_percent_of_the_sorted_values)                                     \
    T(two_merged_histograms_are_the_one_of_all_values)                                             \
    T(an_empty_histogram_answers_zero_and_a_sum_does_not_wrap)                                     \
    T(metrics_are_written_as_the_exposition_format_says)
KEDGE_CHECK_MAIN("base hist", TESTS)
