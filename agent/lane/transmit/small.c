/* SPDX-License-Identifier: Apache-2.0 */
/* Small WRITEs that carry their bytes themselves (inline), on a device that takes fewer bytes so
 * than workers may send: they are copied to registered memory of the lane, which is theirs until
 * they are over. So many at a time; more wait, as for room in a queue pair. */
#include "transmit/small.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lane_state.h"
#include "transmit/wr.h"

int lane_smalls_new(struct lane *l)
{
    const uint32_t count = (uint32_t)(l->res.small.size / SCHEMA_MAX_INLINE);
    if (count == 0)
        return l->res.fab->caps.max_inline < SCHEMA_MAX_INLINE ? -EINVAL : 0;
    l->small_free = calloc(count, sizeof l->small_free[0]);
    if (l->small_free == NULL)
        return -ENOMEM;
    while (l->small_count < count) {
        l->small_free[l->small_count] = l->small_count;
        l->small_count++;
    }
    return 0;
}

void lane_smalls_free(struct lane *l)
{
    free(l->small_free);
}

bool lane_small_take(struct lane *l, struct wr *w)
{
    if (l->small_count == 0)
        return false;
    const uint64_t offset = (uint64_t)l->small_free[--l->small_count] * SCHEMA_MAX_INLINE;
    memcpy((uint8_t *)l->res.small.addr + offset, w->inline_data, w->length);
    w->index = (uint32_t)offset;
    w->sge[0] = (struct ibv_sge){.addr = l->res.small_iova + offset,
                                 .length = (uint32_t)w->length,
                                 .lkey = l->res.small_lkey};
    w->fab.send_flags &= ~(unsigned)IBV_SEND_INLINE;
    return true;
}

void lane_small_give(struct lane *l, struct wr *w)
{
    if (w->fab.send_flags & IBV_SEND_INLINE) /* it was not copied */
        return;
    l->small_free[l->small_count++] = w->index / SCHEMA_MAX_INLINE;
    w->sge[0] = (struct ibv_sge){.addr = (uintptr_t)w->inline_data, .length = (uint32_t)w->length};
    w->fab.send_flags |= IBV_SEND_INLINE;
    l->changed |= l->wanting;
}
