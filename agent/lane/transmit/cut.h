/* SPDX-License-Identifier: Apache-2.0 */
/* READs and WRITEs that are cut (RDMAbox's regulator), so that what shares their queue pair stands
 * behind a piece of them and not behind all. Private to agent/lane, and the lane thread's.
 *
 * A request is the piece that goes next: it is posted, and comes back to the front of its VQP's
 * queue as the next one, until the last is over, and then completes, with all its bytes. So it has
 * one place in a queue pair, and one completion; the first piece that fails is how it fails, and
 * none is posted behind that. Nothing behind it in its VQP is posted before its last piece, so that
 * a flag that is written behind data comes behind them.
 *
 * Pieces end at multiples of CUT_PART of the remote address: no word that is aligned is in two. */
#ifndef LANE_CUT_H
#define LANE_CUT_H

#include <assert.h>

#include "transmit/wr.h"

enum { CUT_PART = 4096, CUT_AT_LEAST = 2 * CUT_PART, CUT_PULL = 128 * 1024 };

/* Of a request with SPECIAL_CUT, where others have their inline bytes. `sge` is what is behind the
 * present piece, as the worker names it, so that each piece has its arenas' present keys. */
struct cut {
    uint64_t total, left; /* bytes: of the request; behind the present piece */
    struct schema_sge sge[SCHEMA_MAX_SGE];
};
static_assert(sizeof(struct cut) <= SCHEMA_MAX_INLINE, "it is in their place");

static inline struct cut *cut_of(struct wr *w)
{
    return (struct cut *)(void *)w->inline_data;
}

#endif
