/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "perf.h"

uint32_t perf_stride(uint32_t size)
{
    return (size + 63) / 64 * 64 + 64;
}

static uint8_t pattern_at(uint64_t offset)
{
    return (uint8_t)(PERF_SIGNATURE + offset * 31 + (offset >> 8));
}

void perf_pattern(void *memory, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        ((uint8_t *)memory)[i] = pattern_at(i);
}

bool perf_pattern_holds(const void *memory, uint64_t offset, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (((const uint8_t *)memory)[offset + i] != pattern_at(offset + i))
            return false;
    return true;
}

int perf_loop(struct perf_path *path, const struct base_clock_fast *clock, uint64_t count,
              struct perf_result *result, struct base_errbuf *err)
{
    static uint64_t posted_ns[PERF_MAX_DEPTH];
    const uint32_t depth = path->depth;
    const uint64_t patience_ns = 10 * BASE_NS_PER_S;
    uint64_t posted = 0, done = 0;
    uint32_t head = 0, tail = 0; /* slots */
    base_hist_reset(&result->hist);
    uint64_t begin = base_clock_fast_ns(clock), progress = begin, now = begin;
    while (done < count) {
        uint64_t room = depth - (posted - done), left = count - posted;
        uint32_t n = (uint32_t)(room < left ? room : left);
        if (n > 0) {
            now = base_clock_fast_ns(clock);
            uint32_t first = head;
            for (uint32_t i = 0; i < n; i++) {
                posted_ns[head] = now;
                head = head + 1 == depth ? 0 : head + 1;
            }
            int status = path->post(path, first, n, err);
            if (status != 0)
                return status;
            posted += n;
        }
        int got = path->poll(path, err);
        if (got < 0)
            return got;
        now = base_clock_fast_ns(clock);
        if (got > 0)
            progress = now;
        else if (now - progress > patience_ns)
            return base_err(err, -ETIMEDOUT, "nothing completed for 10 s; is the target alive?");
        for (int i = 0; i < got; i++) {
            base_hist_record(&result->hist, now - posted_ns[tail]);
            tail = tail + 1 == depth ? 0 : tail + 1;
        }
        done += (uint64_t)got;
    }
    result->elapsed_ns = now - begin;
    return 0;
}
