/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "../check_main.h"
#include "base/hist.h"
#include "base/metrics.h"
#include "base/random.h"

static struct base_hist h;

START_TEST(steps_are_in_order_and_cover_every_value)
{
    uint32_t last = 0;
    for (uint64_t v = 0; v < 1 << 20; v++) {
        uint32_t step = base_hist_step(v);
        ck_assert_uint_le(step - last, 1);
        last = step;
    }
    for (unsigned bit = 7; bit < 64; bit++)
        ck_assert_uint_eq(base_hist_step((1ull << bit) - 1) + 1, base_hist_step(1ull << bit));
    ck_assert_uint_eq(base_hist_step(UINT64_MAX), BASE_HIST_STEPS - 1);
}
END_TEST

START_TEST(any_value_alone_is_every_percentile_exactly)
{
    struct base_prng prng;
    base_prng_seed(&prng, 1);
    for (int round = 0; round < 300; round++) {
        uint64_t v = base_prng_next(&prng) >> base_prng_below(&prng, 64);
        base_hist_reset(&h);
        base_hist_record(&h, v);
        ck_assert_uint_eq(base_hist_percentile(&h, 0), v);
        ck_assert_uint_eq(base_hist_percentile(&h, 50), v);
        ck_assert_uint_eq(base_hist_percentile(&h, 100), v);
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
    struct base_prng prng;
    base_prng_seed(&prng, 2);
    base_hist_reset(&h);
    for (int i = 0; i < N; i++) {
        values[i] = base_prng_next(&prng) >> (20 + base_prng_below(&prng, 40));
        base_hist_record(&h, values[i]);
    }
    qsort(values, N, sizeof *values, by_size);
    static const double percents[] = {0.1, 1, 10, 25, 50, 75, 90, 99, 99.9, 99.99};
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        double exact = (double)values[(size_t)(percents[i] / 100 * N + 0.999999) - 1];
        double got = (double)base_hist_percentile(&h, percents[i]);
        ck_assert_double_le(got, exact * 1.008);
        ck_assert_double_ge(got, exact / 1.008 - 0.5);
    }
    ck_assert_uint_eq(h.min, values[0]);
    ck_assert_uint_eq(h.max, values[N - 1]);
}
END_TEST

START_TEST(two_merged_histograms_are_the_one_of_all_values)
{
    static struct base_hist a, b;
    base_hist_reset(&a);
    base_hist_reset(&b);
    base_hist_reset(&h);
    for (uint64_t v = 0; v < 10000; v++) {
        base_hist_record(v % 3 == 0 ? &a : &b, v * v);
        base_hist_record(&h, v * v);
    }
    base_hist_merge(&a, &b);
    ck_assert_mem_eq(&a, &h, sizeof h);
    ck_assert_double_eq_tol(base_hist_mean(&a), 33328333.5, 0.5);
}
END_TEST

START_TEST(an_empty_histogram_answers_zero_and_a_sum_does_not_wrap)
{
    base_hist_reset(&h);
    ck_assert_uint_eq(base_hist_percentile(&h, 99), 0);
    ck_assert_double_eq(base_hist_mean(&h), 0);
    base_hist_record(&h, UINT64_MAX);
    base_hist_record(&h, UINT64_MAX);
    ck_assert_uint_eq(h.sum, UINT64_MAX);
    ck_assert_uint_eq(base_hist_percentile(&h, 50), UINT64_MAX);
}
END_TEST

START_TEST(metrics_are_written_as_the_exposition_format_says)
{
    struct base_text t;
    base_text_init(&t, 4096);
    base_metric_head(&t, "kedge_sessions", BASE_METRIC_GAUGE, "open \\ \"sessions\"\nnow");
    base_metric_u64(&t, "kedge_sessions", NULL, 0, 3);
    struct base_metric_label labels[] = {{"pool", "a\\b\"c\nd"}, {"lane", "0"}};
    base_metric_u64(&t, "kedge_sessions", labels, 2, UINT64_MAX);
    base_metric_double(&t, "kedge_load", labels + 1, 1, 0.5);
    ck_assert_int_eq(t.error, 0);
    ck_assert_str_eq(base_text_str(&t),
                     "# HELP kedge_sessions open \\\\ \"sessions\"\\nnow\n"
                     "# TYPE kedge_sessions gauge\n"
                     "kedge_sessions 3\n"
                     "kedge_sessions{pool=\"a\\\\b\\\"c\\nd\",lane=\"0\"} 18446744073709551615\n"
                     "kedge_load{lane=\"0\"} 0.5\n");
    base_text_fini(&t);
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
