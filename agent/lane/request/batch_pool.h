/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of batches. Private to agent/lane, and the lane thread's.
 *
 * Invariant: a tenant has been given more only while it had no more than was left over: one alone
 * has half of all, the next one a quarter, and whoever comes has something. */
#ifndef LANE_BATCH_POOL_H
#define LANE_BATCH_POOL_H

#include "batch_state.h"

/* bytes: of all; tenants: places of them. -ENOMEM. */
int lane_batch_pool_init(struct batch_pool *p, uint64_t bytes, uint32_t tenants);
void lane_batch_pool_fini(struct batch_pool *p);
/* A list of n slabs, not 0. False: it is more than that tenant's part. */
bool lane_batch_pool_take(struct batch_pool *p, uint32_t tenant, uint32_t n,
                          struct batch_slabs *out);
void lane_batch_pool_give(struct batch_pool *p, uint32_t tenant, const struct batch_slabs *slabs);

static inline void *batch_slab(const struct batch_pool *p, uint32_t slab)
{
    return p->memory + (uint64_t)slab * BATCH_SLAB_BYTES;
}

enum { BATCH_SLAB_DESCS = BATCH_SLAB_BYTES / (int)sizeof(struct batch_desc) };

static inline struct batch_desc *batch_desc_at(const struct batch_pool *p,
                                               const struct batch_at *at)
{
    return (struct batch_desc *)batch_slab(p, at->slab) + at->index % BATCH_SLAB_DESCS;
}

static inline void batch_advance(const struct batch_pool *p, struct batch_at *at)
{
    at->begun = 0;
    if (++at->index % BATCH_SLAB_DESCS == 0)
        at->slab = p->next[at->slab];
}

#endif
