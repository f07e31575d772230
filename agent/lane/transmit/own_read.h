/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane's own READs of tables need, of which there are few: requests, and places to READ
 * into. Private to agent/lane, and the lane thread's.
 *
 * What takes one gives it back: the place when its bytes were looked at; the request goes back by
 * itself when it has returned (request/returns.c). */
#ifndef LANE_OWN_READ_H
#define LANE_OWN_READ_H

#include <stdint.h>

#include "message/places.h"

struct lane;
struct wr;

/* Of the memory that tables are READ into. */
struct scratch {
    struct places places;
    uint32_t *free, count; /* places where nothing is READ into, and how many these are */
    uint32_t *owner;       /* of each other one: a tenant's slot + 1; 0: the lane itself */
};

/* 0 or -ENOMEM; freed in either case. */
int lane_own_reads_new(struct lane *l);
void lane_own_reads_free(struct lane *l);
/* NULL: all are out. */
struct wr *lane_own_read_take(struct lane *l);
void lane_own_read_give(struct lane *l, struct wr *w);
/* The number of a place of LANE_SCRATCH_BYTES in the lane's scratch memory, for a READ that
 * this tenant (its slot + 1; 0: the lane itself) needs; -EAGAIN: it may have no more now. */
int64_t lane_scratch_take(struct lane *l, uint32_t tenant);
void *lane_scratch_at(const struct lane *l, uint32_t place);
void lane_scratch_give(struct lane *l, uint32_t place);

#endif
