/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "ctl/check_perf.h"

enum { NS_PER_US = 1000 };

void ctl_perf_sum(const uint64_t *took_ns, size_t count, uint64_t ns, struct ctl_perf_part *out)
{
    *out = (struct ctl_perf_part){.count = count};
    if (count == 0)
        return;
    out->per_s = (uint64_t)((double)count * 1e9 / (double)(ns > 0 ? ns : 1));
    out->median_us = took_ns[count / 2] / NS_PER_US;
    out->p99_us = took_ns[(count * 99 + 99) / 100 - 1] / NS_PER_US;
    out->slowest_us = took_ns[count - 1] / NS_PER_US;
}

/* NULL: it will do. */
static const char *find_fault(const struct ctl_perf_part *p, uint64_t p99_us)
{
    return p->count == 0                         ? "none was answered in time"
           : p->p99_us > p99_us                  ? "one in a hundred is slow"
           : p->slowest_us > CTL_PERF_SLOWEST_US ? "the slowest is slow"
                                                 : NULL;
}

bool ctl_perf_judge(const struct ctl_perf_part *reads, const struct ctl_perf_part *writes,
                    char verdict[CTL_PERF_VERDICT_BYTES])
{
    const char *read = find_fault(reads, CTL_PERF_READ_P99_US);
    const char *write = find_fault(writes, CTL_PERF_WRITE_P99_US);
    if (read == NULL && write == NULL)
        snprintf(verdict, CTL_PERF_VERDICT_BYTES,
                 "%" PRIu64 " reads and %" PRIu64 " writes a second, the slowest write %" PRIu64
                 " ms",
                 reads->per_s, writes->per_s, writes->slowest_us / 1000);
    else if (write != NULL)
        snprintf(verdict, CTL_PERF_VERDICT_BYTES,
                 "of writes %s: is the metaserver's disk busy, or its host?", write);
    else
        snprintf(verdict, CTL_PERF_VERDICT_BYTES,
                 "of reads %s: is the metaserver's host busy, or the network?", read);
    return read == NULL && write == NULL;
}
