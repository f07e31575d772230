/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/limits.h"

#include <errno.h>
#include <string.h>

const char *fab_limit_advice(int status)
{
    switch (-status) {
    case EAGAIN:
        return "there may be no more of it: raise hca_object and hca_handle in rdma.max of this "
               "process's cgroup, or free some of the device's (`rdma resource` says who has them)";
    case ENOMEM:
        return "if memory is not short, raise hca_object in rdma.max of this process's cgroup";
    default:
        return "";
    }
}

int fab_limit_explain(int status, uint64_t lock_limit, const char *memory, struct base_errbuf *err)
{
    const char *advice = fab_limit_advice(status);
    if (status != -ENOMEM)
        return base_err(err, status, "%s%s%s", strerror(-status), advice[0] != '\0' ? ": " : "",
                        advice);
    if (lock_limit == UINT64_MAX)
        return base_err(err, status, "%s: %s%s", strerror(-status), advice, memory);
    return base_err(err, status,
                    "out of memory: locked memory is limited to %llu KiB (raise LimitMEMLOCK in "
                    "the unit, or `ulimit -l`)%s; %s",
                    (unsigned long long)(lock_limit / 1024), memory, advice);
}
