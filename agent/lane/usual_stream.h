/* SPDX-License-Identifier: Apache-2.0 */
/* Streams whose last message was delivered as nearly all are (receive/usual_messages.h). Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_USUAL_STREAM_H
#define LANE_USUAL_STREAM_H

#include "schema/message_like.h"
#include "schema/session.h"

struct stream_receiver;
struct vqp_messages;

enum { USUAL_STREAMS = 64 };

struct usual_stream {
    struct schema_message_like like;
    struct schema_cqe_sender sender; /* as its completions say */
    struct stream_receiver *stream;  /* its place, which may be another's by now */
    struct vqp_messages *hearer;     /* likewise; NULL: none */
    uint64_t hearer_name;            /* as a sender: while it has that it is the same */
    uint32_t unbound;                /* as `ports` counts: while it does the port is the hearer's */
};

#endif
