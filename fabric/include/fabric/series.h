/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations one after another, each of which follows from those before it: what it takes
 * to make something, in parts that know nothing of who carries them out. Nothing here waits, and
 * nothing here submits: who has the series does, and may do something else meanwhile. */
#ifndef FABRIC_SERIES_H
#define FABRIC_SERIES_H

#include <stdint.h>

#include "fabric/fabric.h"

struct fab_series_part {
    /* Called first with over = 0, when the part before is over; and again each time the operation
     * that it has filled in is over with status 0, which *ctl then tells, and over is one more. 1:
     * *ctl has the next one; 0: that is all; or -errno: the series is over. */
    int (*next)(void *of, uint32_t over, struct fab_ctl *ctl);
    const char *what; /* it does, for a sentence, or NULL */
};

/* All zero is one that has not begun. */
struct fab_series {
    uint32_t part;     /* that it is at */
    uint32_t over;     /* operations of that part that are over */
    bool is_under_way; /* one has been filled in */
};

/* The operation that follows on *ctl, which is over, however it went; first on anything. 1: it is
 * in *ctl, but for done and user; 0: the series is over; or -errno of what failed: what was made so
 * far stays with what it is of. */
int fab_series_next(struct fab_series *s, const struct fab_series_part *parts, uint32_t count,
                    void *of, struct fab_ctl *ctl);

#endif
