/* SPDX-License-Identifier: Apache-2.0 */
/* How long something took, counted as Prometheus' histograms are: by bounds that are the same in
 * all of Kedge, 1, 2 and 5 of each power of ten from 1 µs to 10 s, so that families of several
 * programs can be compared. (hist.h has exact percentiles, and is 150 times as large.)
 *
 * One thread records, any may read meanwhile: what is read may be one record ahead in its buckets
 * or in its sum. Zeroed to begin. */
#ifndef BASE_LATENCY_H
#define BASE_LATENCY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"

enum { BASE_LATENCY_BOUNDS = 22 };

struct base_latency {
    _Atomic uint64_t count[BASE_LATENCY_BOUNDS + 1]; /* up to each bound and above the one before;
                                                      * the last one: above all */
    _Atomic uint64_t sum_ns;
};

/* The bound of that number, in ns; they grow. */
uint64_t base_latency_bound(size_t number);

/* Some 30 instructions, none of which waits. */
void base_latency_record(struct base_latency *l, uint64_t ns);

/* How many were recorded. */
uint64_t base_latency_count(const struct base_latency *l);

/* The series of one histogram, behind base_metric_head() with BASE_METRIC_HISTOGRAM: name ends in
 * _seconds. labels may be NULL when count is 0; BASE_LATENCY_LABELS at most. */
enum { BASE_LATENCY_LABELS = 4 };
void base_latency_print(struct base_text *t, const char *name,
                        const struct base_metric_label *labels, size_t count,
                        const struct base_latency *l);

#endif
