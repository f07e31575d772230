/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of `check perf` came to, and whether that will do. Any thread. */
#ifndef CTL_CHECK_PERF_H
#define CTL_CHECK_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Slower than this is not what a metaserver on a disk of its own does: bounds that a busy virtual
 * machine keeps, as etcd's own guide has 10 ms for the disk's writes alone. */
enum {
    CTL_PERF_READ_P99_US = 100 * 1000,
    CTL_PERF_WRITE_P99_US = 250 * 1000,
    CTL_PERF_SLOWEST_US = 1000 * 1000,
    CTL_PERF_VERDICT_BYTES = 200,
};

struct ctl_perf_part {
    size_t count;
    uint64_t per_s, median_us, p99_us, slowest_us;
};

/* Of so many calls, in ascending order of what they took, that were made within ns. */
void ctl_perf_sum(const uint64_t *took_ns, size_t count, uint64_t ns, struct ctl_perf_part *out);
/* Whether they are fast enough; verdict: a sentence with what is not. */
bool ctl_perf_judge(const struct ctl_perf_part *reads, const struct ctl_perf_part *writes,
                    char verdict[CTL_PERF_VERDICT_BYTES]);

#endif
