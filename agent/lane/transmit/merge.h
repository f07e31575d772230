/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that become one work request (RDMAbox, "merging on MR"): READs, or WRITEs, of one tenant
 * to one region that come one behind the other in a pass, each where the one before it ends.
 * Private to agent/lane, and the lane thread's.
 *
 * A device moves the bytes of one work request in any order, and those of two of a queue
 * pair in theirs. So of one VQP there is one request in each, and more only of those whose worker
 * has said that it does not matter (SCHEMA_OP_RELAXED): with whom it shares a queue pair changes
 * nothing of what it may rely on.
 *
 * Nothing waits to be merged, and nothing is moved: a request joins the last one of its queue
 * pair's chain, or stands behind it. In the queue pair's ring each has a place, as it would apart,
 * so that room, windows, accounts and completions are as they are without; the device has fewer.
 *
 * What fails as one is tried again apart, or ends (blame.c): of a WRITE a part may have been
 * carried out, and must not be again. */
#ifndef LANE_MERGE_H
#define LANE_MERGE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/lane_config.h"
#include "schema/session.h"

struct lane;
struct physical_qp;
struct wr;

enum { LANE_MERGE_LISTS = 64 /* work requests of several, in a pass */ };

/* The pieces of those that are chained: a device has its own copy from the doorbell on. Inline
 * bytes are one piece, since not every library takes more than the first of several. */
struct merge_list {
    struct ibv_sge sge[LANE_MERGE_SGES];
    uint8_t inline_data[SCHEMA_MAX_INLINE];
};
static_assert(offsetof(struct merge_list, sge) == 0, "what a request has of it is a list");

struct merges {
    struct merge_list list[LANE_MERGE_LISTS];
    uint64_t pass; /* in which `lists` of them were taken */
    uint32_t lists;
    uint64_t rest_until_ns; /* nothing is merged before, since what was has failed here; what fails
                             * for its peer is of its flow (apart_until_ns) */
};

/* Whether lane_merge() would. w is as it is to be posted. */
bool lane_merge_takes(const struct lane *l, const struct physical_qp *p, const struct wr *w);
/* w, which is to be posted on p, and goes on where the last that is chained there ends, becomes
 * part of that one's work request. False: it may not. */
bool lane_merge(struct lane *l, struct physical_qp *p, struct wr *w);
/* It goes again: what it has of others is not its own. */
void lane_merge_undo(struct wr *w);
/* The work request of the requests from index `first` on has failed so, which their `ended` says if
 * it was posted. If they are several, and it is no failure of their whole connection, they are not
 * merged again, and none are for a while. */
void lane_merge_failed(struct lane *l, struct physical_qp *p, uint32_t first,
                       enum ibv_wc_status status);

#endif
