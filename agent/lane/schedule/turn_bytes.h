/* SPDX-License-Identifier: Apache-2.0 */
/* What a session may have of a pass, in bytes. Private to agent/lane, and the lane thread's.
 *
 * Who asks for much gets it in many passes, so that others have theirs in between: what is posted
 * in a pass takes the device a time, and on soft the lane itself. */
#ifndef LANE_TURN_BYTES_H
#define LANE_TURN_BYTES_H

#include "lane_state.h"
#include "session_state.h"

enum {
    TURN_BYTES = 256 * 1024, /* of one session in one pass, unless a request alone is more */
    TURN_FREE = 1024         /* so small that it is not counted */
};

static inline void turn_begin(const struct lane *l, struct session *s)
{
    if (s->turn_ns == l->now_ns)
        return;
    s->turn_ns = l->now_ns;
    s->turn_bytes = 0;
}

/* A request that is posted is of so many bytes. */
static inline void turn_count(struct session *s, uint64_t bytes)
{
    if (bytes > TURN_FREE)
        s->turn_bytes += bytes;
}

/* Counts it, if the session has its part of the pass for that many, and no less. */
static inline bool turn_takes(const struct lane *l, struct session *s, uint64_t bytes)
{
    if (bytes <= TURN_FREE)
        return true;
    turn_begin(l, s);
    if (s->turn_bytes + bytes > TURN_BYTES)
        return false;
    s->turn_bytes += bytes;
    return true;
}

#endif
