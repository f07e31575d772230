/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of latencies (or of any 64-bit number): exact below 128, then 64 steps to each power
 * of two, over the whole 64-bit range. A step's middle is reported, so a percentile is within
 * 0.8 % of a value that was recorded. 30 KiB, no allocation; one thread at a time (keep one for
 * each thread and merge). */
#ifndef BASE_HIST_H
#define BASE_HIST_H

#include <stdint.h>

enum {
    BASE_HIST_STEP_BITS = 6,
    BASE_HIST_STEPS = (64 - BASE_HIST_STEP_BITS + 1) << BASE_HIST_STEP_BITS,
};

struct base_hist {
    uint64_t count;
    uint64_t min; /* UINT64_MAX while count is 0 */
    uint64_t max;
    uint64_t sum; /* stops at UINT64_MAX */
    uint64_t steps[BASE_HIST_STEPS];
};

/* Empties it; also how one begins. */
void base_hist_reset(struct base_hist *h);

/* The step that a value falls in; steps grow with values. */
static inline uint32_t base_hist_step(uint64_t value)
{
    uint32_t top = 63u - (uint32_t)__builtin_clzll(value | 1);
    uint32_t shift = top > BASE_HIST_STEP_BITS ? top - BASE_HIST_STEP_BITS : 0;
    return (shift << BASE_HIST_STEP_BITS) + (uint32_t)(value >> shift);
}

/* Adds one value (nanoseconds, usually). A few instructions. */
static inline void base_hist_record(struct base_hist *h, uint64_t value)
{
    h->steps[base_hist_step(value)]++;
    h->count++;
    h->sum = h->sum + value < value ? UINT64_MAX : h->sum + value;
    h->min = value < h->min ? value : h->min;
    h->max = value > h->max ? value : h->max;
}

/* Adds all of `from` to `to`. */
void base_hist_merge(struct base_hist *to, const struct base_hist *from);

/* The smallest value that at least percent (0 .. 100) of all values do not exceed; within 0.8 %,
 * and never outside min .. max. 0 when empty. */
uint64_t base_hist_percentile(const struct base_hist *h, double percent);

/* The mean, exact while sum has not stopped; 0 when empty. */
double base_hist_mean(const struct base_hist *h);

#endif
