/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/series.h"

int fab_series_next(struct fab_series *s, const struct fab_series_part *parts, uint32_t count,
                    void *of, struct fab_ctl *ctl)
{
    if (s->is_under_way && ctl->status != 0)
        return ctl->status;
    s->over += s->is_under_way;
    s->is_under_way = false;
    for (; s->part < count; s->part++, s->over = 0) {
        const int next = parts[s->part].next(of, s->over, ctl);
        s->is_under_way = next > 0;
        if (next != 0)
            return next;
    }
    return 0;
}
