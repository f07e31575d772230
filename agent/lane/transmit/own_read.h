/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane's own READs of tables need, of which there are few: requests, and places to READ
 * into. Private to agent/lane, and the lane thread's.
 *
 * What takes one gives it back: the place when its bytes were looked at; the request goes back by
 * itself when it has returned (request/returns.c). */
#ifndef LANE_OWN_READ_H
#define LANE_OWN_READ_H

#include <stdint.h>

struct lane;
struct wr;

/* NULL: all are out. */
struct wr *own_read_take(struct lane *l);
void own_read_give(struct lane *l, struct wr *w);
/* The number of a place of SCHEMA_TABLE_SPAN_BYTES in the lane's scratch memory, or -EAGAIN. */
int64_t scratch_take(struct lane *l);
void scratch_give(struct lane *l, uint32_t place);

#endif
