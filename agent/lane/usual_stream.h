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
    struct vqp_messages *hearer;     /* a place likewise; NULL: there is no such stream */
    uint64_t hearer_name;            /* of its sender: with another it may be another VQP */
    uint32_t unbound;                /* of `ports`: another count, and the port may be another's */
};

#endif
