/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements in fresh processes, step by step. One thread. */
#ifndef BENCH_FRESH_H
#define BENCH_FRESH_H

#include <stdint.h>

#include "perf.h"

enum { PERF_MAX_STEPS = 16 };

/* Runs this program anew with these arguments, argv[0] included and NULL at the end, and takes the
 * `steps` numbers that it prints, one a line. When it fails it has printed why. */
int perf_fresh_run(const char *const argv[], uint64_t *ns, int steps, struct base_errbuf *err);
/* In that process. */
void perf_fresh_print(const uint64_t *ns, int steps);

/* What the steps took in each repetition, and after them the sum. The caller zeroes it. */
struct perf_samples {
    uint64_t count;
    uint64_t ns[PERF_MAX_STEPS + 1][PERF_MAX_CONNECTS];
};
/* One repetition, of which steps from `first` on were done; room for PERF_MAX_CONNECTS. */
void perf_samples_add(struct perf_samples *s, const uint64_t *ns, int first, int steps);
/* The median of each, and last of the sum: steps + 1. Returns the least sum: what disturbs only
 * adds. */
uint64_t perf_samples_medians(struct perf_samples *s, int steps, uint64_t *out);

#endif
