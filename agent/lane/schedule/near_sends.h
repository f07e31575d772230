/* SPDX-License-Identifier: Apache-2.0 */
/* Near SENDs: to another VQP of this lane, and what it hears they go to without a device
 * (docs/messages.md#near-messages). Private to agent/lane, and the lane thread's.
 *
 * They are as SENDs that a device has given back and nobody has acknowledged: kept. In the same
 * pass their receiver takes them (receive/near_messages.h), a large one perhaps by parts in the
 * next ones, which is acknowledged at once; or it does not, and they go again, by the device, which
 * says why. So they need no credit, no window and
 * no room in a queue pair, and may fail in no way of their own.
 *
 * Invariant: while some of a VQP wait, none of its requests is out, all of its stream that went
 * before them is acknowledged, and nothing else of it is posted. */
#ifndef LANE_NEAR_SENDS_H
#define LANE_NEAR_SENDS_H

#include <string.h>

#include "message_state.h"
#include "schedule/large_sends.h"
#include "schedule/sends.h"
#include "transmit/wr.h"

enum {
    NEAR_EACH = 64 * 1024, /* bytes of one VQP that wait at a time, and the rest of a message */
    NEAR_MOST = NEAR_EACH / SCHEMA_MESSAGE_BYTES,
    NEAR_LONGEST = 64 * 1024, /* a message: what is longer is READ, which costs the lane no time */
    NEAR_LARGE = 16 * 1024,   /* as no more a large one counts: it is copied in parts */
    NEAR_ALL = 256 * 1024,    /* of all: whose first one would be of more goes by the device, and
                               * who has some of these waits */
    NEAR_SHARE = 3,           /* of a tenant, so many times what is left of that: likewise */
    NEAR_AGAIN_US = 4000      /* what was not taken is not tried again so soon */
};

/* This life of this endpoint, where one worker of ours sends to another. */
static inline bool message_peer_is_self(const struct lane *l, const struct message_peer *c)
{
    return c->incarnation == l->config.incarnation &&
           memcmp(c->gid, l->config.gid, sizeof c->gid) == 0;
}

enum near_way {
    NEAR_BY_DEVICE,
    NEAR_WAITS, /* for what went before: then it may go near */
    NEAR_GOES
};
/* How the next one of q's stream goes, of no more than SCHEMA_MESSAGE_MOST, whose endpoint is the
 * one that it was, and all of whose own allows that it goes. */
enum near_way lane_near_ask(struct lane *l, const struct vqp *q);
/* The bytes of a message, also where w is but what a header would say of it. */
static inline uint64_t near_length(const struct wr *w)
{
    return w->special & SPECIAL_LARGE ? large_send_of(w)->bytes : w->length;
}
/* w may, as far as it is concerned itself: it is none of a list, or too long. */
static inline bool near_takes(const struct wr *w)
{
    return (w->special & ~(unsigned)SPECIAL_LARGE) == SPECIAL_SEND &&
           (w->remote_addr & SEND_OF_WRITE) == 0 && near_length(w) <= NEAR_LONGEST;
}
/* As so many bytes one of that length counts while it waits. */
static inline uint32_t near_counts(uint64_t length)
{
    return (uint32_t)(length < NEAR_LARGE ? length : NEAR_LARGE) + SCHEMA_MESSAGE_BYTES;
}
/* `count` of them, which were numbered and are kept, wait. first: the
 * first of them; counted: what they count. */
void lane_near_wait(struct lane *l, struct vqp *q, uint32_t first, uint32_t count,
                    uint32_t counted);
/* w, numbered, and the next of its stream: it is kept, and waits. */
void lane_near_post(struct lane *l, struct vqp *q, struct wr *w);
/* None of t's wait any more: they were taken, or go again. */
void lane_near_leave(struct lane *l, struct vqp_messages *t);
/* Its receiver has taken those up to the one before `next`, which count so and are so long, and its
 * stream is told so behind this. */
void lane_near_took(struct lane *l, struct vqp_messages *t, uint32_t next, uint32_t counted,
                    uint64_t bytes);
/* It does not take the next one: that one and what is behind it go by the device, when its stream
 * is told. */
void lane_near_refused(struct lane *l, struct vqp_messages *t);

#endif
