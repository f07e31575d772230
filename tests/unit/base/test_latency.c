/* SPDX-License-Identifier: Apache-2.0 */
/* Durations as Prometheus counts them. */
#include <stdio.h>
#include <string.h>

#include "../check_main.h"
#include "base/latency.h"

/* How many are counted up to each bound, as text would say. */
static uint64_t count_up_to(const struct base_latency *l, size_t bound)
{
    uint64_t n = 0;
    for (size_t i = 0; i <= bound; i++)
        n += atomic_load(&l->count[i]);
    return n;
}

START_TEST(a_duration_counts_up_to_the_first_bound_that_it_does_not_exceed)
{
    for (size_t i = 0; i < BASE_LATENCY_BOUNDS; i++) {
        struct base_latency l = {.sum_ns = 0};
        base_latency_record(&l, base_latency_bound(i));
        base_latency_record(&l, base_latency_bound(i) + 1);
        base_latency_record(&l, base_latency_bound(i) - 1);
        ck_assert_uint_eq(count_up_to(&l, i), 2);
        ck_assert_uint_eq(count_up_to(&l, i + 1), 3);
        ck_assert_uint_eq(i == 0 ? 0 : count_up_to(&l, i - 1), 0);
        ck_assert_uint_eq(atomic_load(&l.sum_ns), 3 * base_latency_bound(i));
        if (i > 0)
            ck_assert_uint_gt(base_latency_bound(i), base_latency_bound(i - 1));
    }
}
END_TEST

START_TEST(what_took_nothing_and_what_took_for_ever_count_too)
{
    struct base_latency l = {.sum_ns = 0};
    base_latency_record(&l, 0);
    base_latency_record(&l, UINT64_MAX / 4);
    ck_assert_uint_eq(atomic_load(&l.count[0]), 1);
    ck_assert_uint_eq(atomic_load(&l.count[BASE_LATENCY_BOUNDS]), 1);
}
END_TEST

START_TEST(a_histogram_is_written_as_prometheus_reads_it)
{
    static const struct base_metric_label label[] = {{"route", "/v1/\"x\""}};
    struct base_latency l = {.sum_ns = 0};
    struct base_text t;
    base_text_init(&t, 1 << 16);
    base_latency_record(&l, 1500);
    base_latency_record(&l, 250000000);
    base_latency_record(&l, 250000000);
    base_latency_record(&l, 11000000000);
    base_metric_head(&t, "x_seconds", BASE_METRIC_HISTOGRAM, "Time.");
    base_latency_print(&t, "x_seconds", label, 1, &l);
    ck_assert_int_eq(t.error, 0);
    ck_assert_ptr_nonnull(strstr(t.data, "# TYPE x_seconds histogram\nx_seconds_bucket{"));
    static const char *const lines[] = {
        "{route=\"/v1/\\\"x\\\"\",le=\"1e-06\"} 0\n",
        "{route=\"/v1/\\\"x\\\"\",le=\"2e-06\"} 1\n",
        "\",le=\"0.2\"} 1\n",
        "\",le=\"0.5\"} 3\n",
        "\",le=\"10\"} 3\n",
        "\",le=\"+Inf\"} 4\n",
        "\nx_seconds_sum{route=\"/v1/\\\"x\\\"\"} 11.5000015",
        "\nx_seconds_count{route=\"/v1/\\\"x\\\"\"} 4\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        ck_assert_msg(strstr(t.data, lines[i]) != NULL, "%s is not in\n%s", lines[i], t.data);
    base_text_fini(&t);
}
END_TEST

START_TEST(a_histogram_without_labels_has_le_alone)
{
    struct base_latency l = {.sum_ns = 0};
    struct base_text t;
    base_text_init(&t, 1 << 16);
    base_latency_print(&t, "x_seconds", NULL, 0, &l);
    ck_assert_int_eq(t.error, 0);
    ck_assert_ptr_eq(strstr(t.data, "x_seconds_bucket{le=\"1e-06\"} 0\n"), t.data);
    ck_assert_ptr_nonnull(strstr(t.data, "\nx_seconds_sum 0\nx_seconds_count 0\n"));
    base_text_fini(&t);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_duration_counts_up_to_the_first_bound_that_it_does_not_exceed)                             \
    T(what_took_nothing_and_what_took_for_ever_count_too)                                          \
    T(a_histogram_is_written_as_prometheus_reads_it)                                               \
    T(a_histogram_without_labels_has_le_alone)
KEDGE_CHECK_MAIN("base latency", TESTS)
