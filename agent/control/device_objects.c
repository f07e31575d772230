/* SPDX-License-Identifier: Apache-2.0 */
/* The device objects of a pool: what an error of theirs means to an operator, and their end. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "control/lanes.h"
#include "device_objects.h"

int device_why(struct world *w, int status, struct base_errbuf *err)
{
    const uint64_t limit = world_lock_limit(w);
    if (status != -ENOMEM || limit == UINT64_MAX)
        return base_err(err, status, "%s", strerror(-status));
    return base_err(err, status,
                    "out of memory: locked memory is limited to %llu KiB (raise LimitMEMLOCK in "
                    "the unit, or `ulimit -l`), and /dev/shm must have room for the arenas",
                    (unsigned long long)(limit / 1024));
}

void device_destroy(struct agent_device *d, enum fab_ctl_kind kind, void *x)
{
    struct fab_ctl c = {.kind = kind};
    if (x == NULL)
        return;
    c.pd.x = x; /* every kind names its object first */
    (void)fab_call(d->fab, &c);
}
