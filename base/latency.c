/* SPDX-License-Identifier: Apache-2.0 */
#include "base/latency.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static const uint64_t bounds_ns[BASE_LATENCY_BOUNDS] = {
    1000,      2000,      5000,       10000,      20000,      50000,      100000,   200000,
    500000,    1000000,   2000000,    5000000,    10000000,   20000000,   50000000, 100000000,
    200000000, 500000000, 1000000000, 2000000000, 5000000000, 10000000000};

uint64_t base_latency_bound(size_t number)
{
    BASE_ASSERT(number < BASE_LATENCY_BOUNDS);
    return bounds_ns[number];
}

/* No other thread writes. */
static void add_to(_Atomic uint64_t *at, uint64_t n)
{
    const uint64_t was = atomic_load_explicit(at, memory_order_relaxed);
    atomic_store_explicit(at, was + n, memory_order_relaxed);
}

void base_latency_record(struct base_latency *l, uint64_t ns)
{
    size_t low = 0, high = BASE_LATENCY_BOUNDS;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (ns <= bounds_ns[middle])
            high = middle;
        else
            low = middle + 1;
    }
    add_to(&l->count[low], 1);
    add_to(&l->sum_ns, ns);
}

uint64_t base_latency_count(const struct base_latency *l)
{
    uint64_t all = 0;
    for (size_t i = 0; i <= BASE_LATENCY_BOUNDS; i++)
        all += atomic_load_explicit(&l->count[i], memory_order_relaxed);
    return all;
}

static void print_series(struct base_text *t, const char *family, const char *ending,
                         const struct base_metric_label *labels, size_t count, uint64_t value)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s", family, ending);
    base_metric_u64(t, name, labels, count, value);
}

void base_latency_print(struct base_text *t, const char *name,
                        const struct base_metric_label *labels, size_t count,
                        const struct base_latency *l)
{
    struct base_metric_label with[BASE_LATENCY_LABELS + 1];
    char le[32], sum[128];
    uint64_t all = 0;
    BASE_ASSERT(count <= BASE_LATENCY_LABELS);
    if (count > 0)
        memcpy(with, labels, count * sizeof with[0]);
    with[count] = (struct base_metric_label){"le", le};
    for (size_t i = 0; i <= BASE_LATENCY_BOUNDS; i++) {
        if (i < BASE_LATENCY_BOUNDS)
            snprintf(le, sizeof le, "%g", (double)bounds_ns[i] / 1e9);
        else
            snprintf(le, sizeof le, "+Inf");
        all += atomic_load_explicit(&l->count[i], memory_order_relaxed);
        print_series(t, name, "_bucket", with, count + 1, all);
    }
    snprintf(sum, sizeof sum, "%s_sum", name);
    base_metric_double(t, sum, labels, count,
                       (double)atomic_load_explicit(&l->sum_ns, memory_order_relaxed) / 1e9);
    print_series(t, name, "_count", labels, count, all);
}
