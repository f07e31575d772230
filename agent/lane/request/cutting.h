/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are posted in pieces (transmit/cut.h): how they begin, and go on. Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_CUTTING_H
#define LANE_CUTTING_H

#include <stdint.h>

#include "lane_state.h"

struct schema_sge;
struct schema_sq_desc;
struct wr;

/* w, which was taken of d and `extra`, is its first piece, if it is one of those that are cut. */
void lane_cut_begin(struct lane *l, struct wr *w, const struct schema_sq_desc *d,
                    const void *extra);
/* w, with SPECIAL_CUT and SPECIAL_PULL, of w->length bytes into these pieces of its session's, and
 * no more pieces than its device takes, is the first of its pieces. */
void lane_cut_begin_pull(struct lane *l, struct wr *w, const struct schema_sge *sge,
                         uint32_t count);
/* It has SPECIAL_CUT, was posted and has ended well: it is the next piece. False: it was the last,
 * and has the length of all. */
bool lane_cut_next(struct lane *l, struct wr *w);

#endif
