/* SPDX-License-Identifier: Apache-2.0 */
/* The device objects of a pool: what an error of theirs means to an operator. */
#include "device_objects.h"

#include "base/error.h"
#include "control/lanes.h"
#include "fabric/limits.h"

int agent_device_why(struct world *w, int status, struct base_errbuf *err)
{
    const uint64_t limit = world_lock_limit(w);
    return fab_limit_explain(
        status, limit, limit != UINT64_MAX ? ", and /dev/shm must have room for the arenas" : "",
        err);
}
