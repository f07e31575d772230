/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of SENDs and of RECVs, as post_run.c has of READs and WRITEs: of one piece, one behind the
 * other, of one VQP, of which nothing has to be looked at closely. Private to agent/lane, and the
 * lane thread's. */
#ifndef LANE_MESSAGE_RUN_H
#define LANE_MESSAGE_RUN_H

#include <stdint.h>

struct lane;
struct schema_sq_desc;
struct session;

/* Takes some of the `most` slots from `head` on, which the worker has written; d: a copy of the
 * first of them, in whose place others are copied. Returns how many: each has taken one. 0: the
 * first is to be looked at closely. */
uint32_t lane_message_run(struct lane *l, struct session *s, uint32_t head, uint32_t most,
                          struct schema_sq_desc *d);

#endif
