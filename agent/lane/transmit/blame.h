/* SPDX-License-Identifier: Apache-2.0 */
/* A queue pair has broken: who is to blame for it, and what becomes of the others that were out on
 * it (docs/failures.md#queue-pairs-that-break). Private to agent/lane, and the lane thread's.
 * Decides, and changes no request.
 *
 * All that was out is still in the queue pair's ring; `ended` is what the device has said of each,
 * or 0. */
#ifndef LANE_BLAME_H
#define LANE_BLAME_H

#include <stdbool.h>

#include "fabric/fabric.h"

struct lane;
struct physical_qp;
struct wr;

/* Some device has broken it off, in whose name nobody knows: its library says so in that of the
 * oldest request of which it has said nothing, which may have been executed. Of one that was out by
 * itself it knows. That the peer is silent holds for all. */
bool lane_blame_is_nameless(const struct lane *l, const struct physical_qp *p);
/* Of what was flushed: whether it must end with an error, because it may have been executed or goes
 * nowhere. */
bool lane_blame_loses(const struct lane *l, const struct physical_qp *p, const struct wr *w);
/* The status of one that is lost. */
enum ibv_wc_status lane_blame_end_of(const struct lane *l, const struct physical_qp *p,
                                     const struct wr *w);
/* Those whose requests have broken it are held to have done so (quarantine.c). Of a work request of
 * several requests (merge.h) that is their tenant, where the peer has refused the key that each of
 * them names; of other errors merging may be the cause, and who fails apart is to blame. */
void lane_blame_tenants(struct lane *l, const struct physical_qp *p);

#endif
