/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator can do where there is not enough of something of a device's. Pure; any thread.
 */
#ifndef FABRIC_LIMITS_H
#define FABRIC_LIMITS_H

#include <stdint.h>

#include "base/error.h"

/* Of a control operation's status, or of opening a device: what bounds it, and how that is raised,
 * for the end of a sentence or in brackets; "" where it is not about that.
 *
 * -EAGAIN is never "try again" here: so end an rdma cgroup's limit (the kernel's
 * rdmacg_try_charge()) and a device that has no more of something (mlx5: "no resources"). An rdma
 * cgroup may be the reason of -ENOMEM too, since some drivers' libraries say that whatever the
 * kernel said; limits of locked memory are the caller's to name. */
const char *fab_limit_advice(int status);
/* The same as a sentence that begins with what is wrong. lock_limit: of memory that this process
 * may lock, in bytes; UINT64_MAX: there is none. memory: what else may be short then, or be wanted
 * less of, with a comma before it, behind what bounds it; or "". Returns status. */
int fab_limit_explain(int status, uint64_t lock_limit, const char *memory, struct base_errbuf *err);

#endif
