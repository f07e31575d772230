/* SPDX-License-Identifier: Apache-2.0 */
#include "transmit/own_read.h"

#include <errno.h>

#include "lane_state.h"
#include "transmit/wr.h"

struct wr *own_read_take(struct lane *l)
{
    struct wr *w = l->free_own;
    if (w != NULL)
        l->free_own = w->next;
    return w;
}

void own_read_give(struct lane *l, struct wr *w)
{
    w->next = l->free_own;
    l->free_own = w;
}

int64_t scratch_take(struct lane *l)
{
    return l->scratch_count > 0 ? (int64_t)l->scratch_free[--l->scratch_count] : -EAGAIN;
}

void scratch_give(struct lane *l, uint32_t place)
{
    l->scratch_free[l->scratch_count++] = place;
}
