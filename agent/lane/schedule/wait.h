/* SPDX-License-Identifier: Apache-2.0 */
/* What a VQP waits for with the first request of its queue: one thing at a time, and nothing while
 * that request is tried. Private to agent/lane, and the lane thread's. */
#ifndef LANE_WAIT_H
#define LANE_WAIT_H

#include <stdint.h>

#include "schema/wait_reason.h"

struct vqp;

/* Where it waits: that says what lets it go on. */
enum wait_place {
    PLACE_NONE,
    PLACE_ENDPOINT, /* its flow's list: only news of that endpoint */
    PLACE_LANE,     /* one of the lane's lists: a change of what others have too */
    PLACE_ROOM,     /* a queue pair's: its turn there (room.h) */
    PLACE_WINDOW,   /* a window's: its turn there (window.h) */
    WAIT_PLACES
};

/* WAIT_OWN and its like: schema/wait_reason.h lists them, and says what each is. */
enum vqp_wait {
    WAIT_NOTHING = SCHEMA_WAIT_NOTHING,
#define WAIT_ENUM(name, word, sentence) WAIT_##name,
    SCHEMA_VQP_WAITS(WAIT_ENUM) VQP_WAITS
#undef WAIT_ENUM
};

extern const uint8_t vqp_wait_places[VQP_WAITS]; /* enum wait_place */

/* The one function that changes what a VQP waits for, which its session counts. The caller has put
 * it there, or taken it away. */
void lane_vqp_wait_move(struct vqp *q, enum vqp_wait to);

#endif
