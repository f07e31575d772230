/* SPDX-License-Identifier: Apache-2.0 */
/* What a session lends for its large messages (docs/messages.md#large-messages). Private to
 * agent/lane, and the lane thread's. What is done with it is in request/lending.h; SENDs ask for it
 * (schedule/large_sends.h).
 *
 * A region of each arena that they are sent from, for READs, whose key no worker knows, and which
 * is no tenant's in the table. All that are lent at a time are one generation, and end together: a
 * message that was announced in one may be READ until that one is gone. */
#ifndef LANE_LENDING_STATE_H
#define LANE_LENDING_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane_config.h"
#include "request/region.h"

struct lending {
    struct region *region[LANE_SESSION_MAX_ARENAS]; /* NULL: it is not lent */
    uint32_t vkey[LANE_SESSION_MAX_ARENAS]; /* the region's then: its place may be used anew */
    uint32_t gone;         /* generations that are withdrawn; the present one is the next */
    uint32_t wants;        /* bit i: arena i is to be lent */
    uint32_t tag, awaited; /* of a registration that is awaited, or 0; its arena */
    struct region *place;  /* likewise, for it */
    uint32_t refused;      /* enum schema_reason: why none is made, until again_ns */
    uint64_t again_ns;
    uint8_t ends;      /* the present generation is to go, as soon as nothing is awaited */
    uint8_t withdraws; /* it goes */
    uint8_t listed;    /* in the lane's list of those with something to do */
};

static inline bool lending_has(const struct lending *n, uint32_t arena)
{
    const struct region *region = n->region[arena];
    return !n->ends && region != NULL && region->vkey == n->vkey[arena] &&
           region->lease.state == LANE_LEASE_LIVE;
}

#endif
