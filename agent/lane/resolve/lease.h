/* SPDX-License-Identifier: Apache-2.0 */
/* What the leases' rule (docs/leases.md#the-rule) costs each request: all of it, so that
 * tests/cost can build the lane without and count the difference. */
#ifndef LANE_LEASE_H
#define LANE_LEASE_H

#include "lane_state.h"
#include "resolve/region_cache.h"
#include "transmit/wr.h"

/* The one look at a record that is valid, and not to be renewed yet; none is while the clock cannot
 * be trusted. */
static inline bool lease_is_sure(const struct lane *l, const struct cached *e)
{
    return l->lease_now_ns < e->sure_until_ns;
}

/* w is to be posted under e, with the key also when a device that looks at it may begin it, or be
 * told of it, last: one move of both is as dear as one of the key alone. */
static inline void lease_stamp(struct wr *w, const struct cached *e)
{
    w->fab.key = e->key;
}

#endif
