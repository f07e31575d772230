/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/limits.h"

#include <errno.h>

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
