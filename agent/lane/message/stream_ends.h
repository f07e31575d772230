/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of a stream, as an exchange keeps them (message/message_exchange.h). Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_STREAM_ENDS_H
#define LANE_STREAM_ENDS_H

#include <stdint.h>
#include <sys/queue.h>

#include "message/message_stream.h"

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
    uint8_t reads;                /* the next one is READ, until it is taken, refused or fails */
    uint32_t next, later, sooner; /* place + 1: in its bucket or free; of its peer's */
    TAILQ_ENTRY(stream_receiver) by_news;
};

/* A stream that is sent. */
struct stream_sender {
    uint64_t name;
    struct message_peer *to; /* NULL: nobody yet */
    struct stream_out out;
    uint64_t wait_ns; /* since when it has waited for a credit; 0: it does not */
    uint8_t known;    /* its receiver has taken something of it: it need not be opened */
    uint8_t asks;     /* a question is to go */
    TAILQ_ENTRY(stream_sender) by_asks;
};

#endif
