/* SPDX-License-Identifier: Apache-2.0 */
/* Regions with registrations of their own. Control thread. */
#ifndef CONTROL_DEDICATED_MRS_H
#define CONTROL_DEDICATED_MRS_H

#include <stdint.h>

#include "base/log.h"
#include "control/tenants.h"

struct arena;
struct lane_event;
struct pool;

struct fenced_counts {
    uint32_t now; /* registrations of fenced regions that there are, or that come or go */
    uint32_t of[AGENT_TENANT_SLOTS]; /* these of each tenant */
    uint32_t own;                    /* of any regions, likewise */
    uint32_t ahead;                  /* that are nobody's yet */
    uint64_t registered, refused, failed;
    uint64_t drawn; /* regions that had one made ahead */
    struct base_log_limit log;
};

/* The arena is registered: what its regions will want is made ahead, where they want it. */
void agent_dedicated_mrs_ahead(struct arena *arena);
/* WANT_MR, WANT_DEREG. */
void agent_dedicated_mrs_event(struct pool *p, const struct lane_event *e);
/* Its session is over, or it is retired: all that is registered in it goes. When that is so, an
 * arena that was retired meanwhile is retired. */
void agent_dedicated_mrs_drop(struct arena *arena);

#endif
