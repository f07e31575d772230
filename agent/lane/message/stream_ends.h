/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of a stream, as an exchange keeps them (message/message_exchange.h). Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_STREAM_ENDS_H
#define LANE_STREAM_ENDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "message/message_stream.h"
#include "message/set_aside.h"
#include "schema/message.h"

struct exchange;
struct message_peer;

/* A stream that is heard. */
struct stream_receiver {
    uint64_t name; /* 0: the place is free */
    struct message_peer *from;
    struct stream_in in;
    uint64_t heard_ns;
    uint32_t share, guest;        /* whose part its place is of, and as which of their guests */
    uint32_t guest_life;          /* which had that place */
    uint32_t wait_us;             /* REFUSED */
    uint8_t news;                 /* enum schema_note_kind; 0: there are none */
    uint8_t failed;               /* enum ibv_wc_status: it has ended so */
    uint8_t ended;                /* its sender is gone: what is late of it comes within bound_ns */
    struct stream_aside aside;    /* receives that are set aside for it */
    uint32_t next, later, sooner; /* place + 1: in its bucket or free; of its peer's */
    /* Large ones (receive/large.h). So many are READ, or were to be, from the next one on, and one
     * that is large may join them. stops: enum schema_note_kind, which is said when they are over:
     * nothing from `stop_at` on is taken until then. */
    uint8_t reads, stops, stop_status;
    uint16_t own;             /* the VQP that they are READ on, or 0 */
    uint32_t stop_at, begins; /* begins: the next one whose READ may begin */
    uint64_t life, reader;    /* of this stream in this place; whose buffers they go to */
    TAILQ_ENTRY(stream_receiver) by_news;
};

/* The one of c's with that name. NULL: it has none. */
struct stream_receiver *lane_exchange_find_stream(const struct exchange *x,
                                                  const struct message_peer *c, uint64_t name);
/* Its next one was taken, and its sender knows: it came by no device. */
void lane_exchange_took_near(struct stream_receiver *r, uint64_t now_ns);

/* ---- large ones that are heard */

/* It is READ from here on, until lane_exchange_left(), before which it was taken, or all from it on
 * were stopped. */
static inline void lane_exchange_reads(struct stream_receiver *r)
{
    r->reads++;
}
/* Of those that are READ none from that number on is taken, nor what comes behind: the stream says
 * so, and why, when all of them are over. What is said of an earlier one counts. ANSWER: it was
 * not taken, and may come again at once; REFUSED: after wait_us; FAILED: with that enum
 * ibv_wc_status. */
void lane_exchange_stop(struct stream_receiver *r, uint32_t number, enum schema_note_kind why,
                        uint32_t wait_us, uint8_t status);
/* Whether that one of those that are READ is to be taken, as far as that says. */
static inline bool lane_exchange_goes_on(const struct stream_receiver *r, uint32_t number)
{
    return r->stops == 0 || (int32_t)(number - r->stop_at) < 0;
}
void lane_exchange_left(struct exchange *x, struct stream_receiver *r);

/* A stream that is sent. */
struct stream_sender {
    uint64_t name;
    struct message_peer *to; /* NULL: nobody yet */
    struct stream_out out;
    uint64_t wait_ns; /* since when it has waited for a credit; 0: it does not */
    uint8_t known;    /* its receiver has taken something of it: it need not be opened */
    uint8_t asks;     /* a question is to go */
    /* All before `sure` find a receive that is set aside, until sure_ns; 0: nobody has said so.
     * What is said with an acknowledgement is no older than what is acknowledged: one that went at
     * stamp_ns is looked at at a time, or none (0); `stamp` is one past its number, and `since`
     * that of the one before it. */
    uint32_t sure, stamp, since;
    uint64_t sure_ns, stamp_ns;
    TAILQ_ENTRY(stream_sender) by_asks;
};

#endif
