/* SPDX-License-Identifier: Apache-2.0 */
/* What two agents say to each other over UD to make and end an RC connection. One message is one
 * datagram of SCHEMA_HANDSHAKE_BYTES, little-endian.
 *
 * A connection carries requests in one direction: from its initiator to its responder, and is named
 * by (initiator's GID, its incarnation, nonce).
 *
 *     initiator                    responder
 *         REQUEST  ------------------->        takes a queue pair, to RTR
 *                  <-------------------  WAIT  (a repeated REQUEST while that goes on)
 *                  <-----------------  ACCEPT  its number
 *     to RTR, RTS                              (a repeated REQUEST gets it again)
 *         BYE      ------------------->        gives the queue pair back
 *                  <-------------------  GONE  (also of a connection that it does not know)
 *                  <-------------------  USED? of one that it has not heard of for long
 *         USED     ------------------->        or BYE, of one that the initiator does not know
 *                  <-----------------  BROKEN  its queue pair is in ERR, and takes nothing more
 *         BYE      ------------------->        when the initiator is done with its own
 *
 * Of no connection, from either to the other, whose nonce is the asker's:
 *
 *         ASK_MESSAGES  -------------->        where its lane hears datagrams about messages
 *                       <------ MESSAGES       there, or 0: it carries none
 *
 * An agent from before these drops them, and is one that says nothing.
 *
 * REFUSE answers a REQUEST that cannot be. Any message may be lost, repeated, late or crossed: each
 * side repeats what it wants answered, and answers what is repeated as before. */
#ifndef SCHEMA_HANDSHAKE_H
#define SCHEMA_HANDSHAKE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define SCHEMA_HANDSHAKE_BYTES   96
#define SCHEMA_HANDSHAKE_MAGIC   0x4748444bu /* "KDHG" */
#define SCHEMA_HANDSHAKE_VERSION 1

enum schema_handshake_kind {
    SCHEMA_HANDSHAKE_REQUEST = 1,
    SCHEMA_HANDSHAKE_WAIT,
    SCHEMA_HANDSHAKE_ACCEPT,
    SCHEMA_HANDSHAKE_REFUSE,
    SCHEMA_HANDSHAKE_BYE,
    SCHEMA_HANDSHAKE_GONE,
    SCHEMA_HANDSHAKE_ASK_USED,
    SCHEMA_HANDSHAKE_USED,
    SCHEMA_HANDSHAKE_BROKEN,
    SCHEMA_HANDSHAKE_ASK_MESSAGES,
    SCHEMA_HANDSHAKE_MESSAGES,
};

/* Why a REQUEST is refused. */
enum schema_handshake_reason {
    SCHEMA_HANDSHAKE_STALE = 1, /* for another incarnation than from_incarnation, which I am */
    SCHEMA_HANDSHAKE_FULL,      /* no queue pair is left, now */
    SCHEMA_HANDSHAKE_FAILED,    /* the device refused; the sender's log says more */
};

struct schema_handshake {
    uint32_t magic;
    uint16_t version;
    uint8_t kind;   /* enum schema_handshake_kind */
    uint8_t reason; /* enum schema_handshake_reason of REFUSE, else 0 */
    uint8_t from_gid[16], to_gid[16];
    uint32_t from_incarnation, to_incarnation;
    uint64_t nonce; /* the initiator's, never 0 */
    uint16_t pool;
    uint16_t lid;      /* the sender's; 0 on Ethernet */
    uint8_t mtu;       /* enum ibv_mtu: the sender's most */
    uint8_t rd_atomic; /* READs and atomics that it can have out, or take, at a time; >= 1 */
    uint16_t zero;
    uint32_t qpn;                         /* the sender's RC queue pair; REQUEST and ACCEPT */
    uint32_t psn;                         /* of the first packet that it sends */
    uint32_t ud_qpn, ud_qkey;             /* where it hears the answer */
    uint32_t messages_qpn, messages_qkey; /* MESSAGES; 0: none */
    uint8_t rest[8];                      /* 0; later versions' */
};
static_assert(sizeof(struct schema_handshake) == SCHEMA_HANDSHAKE_BYTES, "one datagram");
static_assert(offsetof(struct schema_handshake, nonce) == 48, "layout");
static_assert(offsetof(struct schema_handshake, ud_qpn) == 72, "layout");
static_assert(offsetof(struct schema_handshake, messages_qpn) == 80, "layout");

/* Copies a datagram's payload out and says whether it is a handshake at all, with every field in
 * its range: 0, -EPROTO, or -EPROTONOSUPPORT for another version's. What it says may still be
 * wrong. Pure. */
int schema_handshake_read(const void *payload, size_t bytes, struct schema_handshake *out);

#endif
