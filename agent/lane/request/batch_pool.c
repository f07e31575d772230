/* SPDX-License-Identifier: Apache-2.0 */
#include "request/batch_pool.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

int lane_batch_pool_init(struct batch_pool *p, uint64_t bytes, uint32_t tenants)
{
    *p = (struct batch_pool){.slabs = (uint32_t)(bytes / BATCH_SLAB_BYTES),
                             .first_free = BATCH_NO_SLAB};
    p->used = calloc(tenants, sizeof p->used[0]);
    p->pace.served = calloc(tenants, sizeof p->pace.served[0]);
    if (p->used == NULL || p->pace.served == NULL)
        return -ENOMEM;
    if (p->slabs == 0)
        return 0;
    p->memory = calloc(p->slabs, BATCH_SLAB_BYTES); /* pages that nobody uses are not there */
    p->next = calloc(p->slabs, sizeof p->next[0]);
    if (p->memory == NULL || p->next == NULL)
        return -ENOMEM;
    for (uint32_t i = p->slabs; i > 0; i--) {
        p->next[i - 1] = p->first_free;
        p->first_free = i - 1;
    }
    p->free = p->slabs;
    return 0;
}

void lane_batch_pool_fini(struct batch_pool *p)
{
    free(p->memory);
    free(p->next);
    free(p->used);
    free(p->pace.served);
}

bool lane_batch_pool_take(struct batch_pool *p, uint32_t tenant, uint32_t n,
                          struct batch_slabs *out)
{
    if (n > p->free || p->used[tenant] + n > p->free - n)
        return false;
    *out = (struct batch_slabs){.first = p->first_free, .last = p->first_free, .count = n};
    for (uint32_t i = 1; i < n; i++)
        out->last = p->next[out->last];
    p->first_free = p->next[out->last];
    p->next[out->last] = BATCH_NO_SLAB;
    p->free -= n;
    p->used[tenant] += n;
    return true;
}

void lane_batch_pool_give(struct batch_pool *p, uint32_t tenant, const struct batch_slabs *slabs)
{
    BASE_ASSERT(p->next[slabs->last] == BATCH_NO_SLAB && p->used[tenant] >= slabs->count);
    p->next[slabs->last] = p->first_free;
    p->first_free = slabs->first;
    p->free += slabs->count;
    p->used[tenant] -= slabs->count;
}
