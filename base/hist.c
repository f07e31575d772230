/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hist.h"

#include <string.h>

_Static_assert(sizeof(struct base_hist) <= 32 * 1024, "a histogram is small");

void base_hist_reset(struct base_hist *h)
{
    memset(h, 0, sizeof *h);
    h->min = UINT64_MAX;
}

/* The lowest value of a step, and how many values fall in it. */
static uint64_t step_low(uint32_t step, uint64_t *width)
{
    uint32_t shift = step >> BASE_HIST_STEP_BITS > 1 ? (step >> BASE_HIST_STEP_BITS) - 1 : 0;
    *width = 1ull << shift;
    return (uint64_t)(step - (shift << BASE_HIST_STEP_BITS)) << shift;
}

void base_hist_merge(struct base_hist *to, const struct base_hist *from)
{
    for (uint32_t i = 0; i < BASE_HIST_STEPS; i++)
        to->steps[i] += from->steps[i];
    to->count += from->count;
    to->sum = to->sum + from->sum < to->sum ? UINT64_MAX : to->sum + from->sum;
    to->min = from->min < to->min ? from->min : to->min;
    to->max = from->max > to->max ? from->max : to->max;
}

uint64_t base_hist_percentile(const struct base_hist *h, double percent)
{
    if (h->count == 0)
        return 0;
    if (!(percent > 0)) /* NaN too */
        return h->min;
    if (percent >= 100)
        return h->max;
    double exact = percent / 100 * (double)h->count;
    uint64_t rank = (uint64_t)exact;
    if ((double)rank < exact || rank == 0)
        rank++;
    if (rank > h->count)
        rank = h->count;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < BASE_HIST_STEPS; i++) {
        seen += h->steps[i];
        if (seen >= rank) {
            uint64_t width, value = step_low(i, &width);
            value += width / 2;
            value = value < h->min ? h->min : value;
            return value > h->max ? h->max : value;
        }
    }
    return h->max;
}

double base_hist_mean(const struct base_hist *h)
{
    return h->count == 0 ? 0 : (double)h->sum / (double)h->count;
}
