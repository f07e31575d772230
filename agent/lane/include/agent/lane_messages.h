/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane needs to carry workers' messages (docs/messages.md), and how its memory is divided.
 * Without it, it refuses them. */
#ifndef AGENT_LANE_MESSAGES_H
#define AGENT_LANE_MESSAGES_H

#include "fabric/fabric.h"
#include "schema/message.h"
#include "schema/op.h"
#include "schema/session.h"

enum {
    LANE_RECEIVE_BYTES = SCHEMA_MESSAGE_BYTES + SCHEMA_MESSAGE_MOST,
    LANE_DATAGRAM_BYTES = 1024,
    LANE_DATAGRAM_PLACE = LANE_DATAGRAM_BYTES + 64, /* of one that is sent */
    LANE_DATAGRAM_ROOM = 4096 + 64, /* with the GRH before it, of the longest that strangers send:
                                     * one for which there is no room may break the queue pair */
    LANE_DATAGRAMS_IN = 32,
    LANE_DATAGRAMS_OUT = 16,
    LANE_HEADERS = 256, /* SENDs that are out */
    LANE_HEADER_PLACE = SCHEMA_MESSAGE_BYTES + SCHEMA_MAX_INLINE,
    LANE_RECEIVES_MOST = 1 << 16
};

/* All are the control side's, borrowed while the lane lives. The SRQ is that of the queue pairs by
 * which peers' messages come, and has room for `receives`; what comes by these, and by the UD queue
 * pair, completes on the lane's own CQ. That one is in RTS, and has room for LANE_DATAGRAMS_IN and
 * _OUT. The lane posts all receives. */
struct lane_messages {
    struct fab_srq *srq; /* NULL: no messages */
    struct fab_qp *ud;
    uint32_t ud_qkey;
    uint32_t receives;     /* 1 to LANE_RECEIVES_MOST */
    struct fab_mem memory; /* lane_messages_bytes(receives), which no worker maps */
    uint64_t iova;         /* registered for local writing: so named, by */
    uint32_t lkey;
    uint32_t peers, streams, vqps, ports; /* at most, each; 1 to 2^20 */
    uint64_t ask_ns;                      /* for a word that does not come, later each time */
    uint32_t questions;                   /* so often */
    uint64_t refused_ns;                  /* for so long a receiver may have no buffer */
    bool asks_numbers; /* WANT_NUMBER is answered; else such endpoints are sent nothing */
};

static inline uint64_t lane_messages_bytes(uint32_t receives)
{
    return (uint64_t)receives * LANE_RECEIVE_BYTES +
           (uint64_t)LANE_DATAGRAMS_IN * LANE_DATAGRAM_ROOM +
           (uint64_t)LANE_DATAGRAMS_OUT * LANE_DATAGRAM_PLACE +
           (uint64_t)LANE_HEADERS * LANE_HEADER_PLACE;
}

#endif
