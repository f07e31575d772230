/* SPDX-License-Identifier: Apache-2.0 */
/* What agents say to each other for workers' messages (docs/messages.md): the header before a
 * message's payload, on a queue pair that strangers share, and datagrams. Little-endian.
 *
 * What was read has every field in its range, and may be wrong all the same: what it names is
 * looked up, and how long a message is, is the completion's. Pure. */
#ifndef SCHEMA_MESSAGE_H
#define SCHEMA_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#define SCHEMA_MESSAGE_BYTES 64 /* of a header */

enum {
    SCHEMA_MESSAGE_MAGIC = 0x4d4b,  /* "KM" */
    SCHEMA_DATAGRAM_MAGIC = 0x444b, /* "KD" */
    SCHEMA_MESSAGE_VERSION = 1
};

enum schema_message_kind {
    SCHEMA_MESSAGE_TO_PORT = 1,
    SCHEMA_MESSAGE_TO_VQP = 2,
    SCHEMA_MESSAGE_TO_COUNTER = 3, /* raises it: no payload, no immediate */
};

struct schema_message {
    uint8_t kind;            /* enum schema_message_kind */
    uint8_t with_imm;        /* 0 or 1 */
    uint8_t opens;           /* 0 or 1: it begins its stream, for who knows nothing of that */
    uint8_t parts;           /* 0: the payload is behind it; else of a large message: so many struct
                              * schema_part are, and say where the receiver READs it */
    uint32_t length;         /* of the payload */
    uint32_t epoch;          /* whose credit it is; never 0 */
    uint32_t credit;         /* its number */
    uint64_t stream;         /* the name of the VQP that sends it; never 0 */
    uint32_t number;         /* in that stream */
    uint32_t to_incarnation; /* the life of the endpoint that it is for */
    uint64_t to;             /* a port, below 2^32, or a VQP's or a counter's name, never 0 */
    uint32_t to_tenant;      /* whose port it is; else 0 */
    uint32_t from_tenant;
    uint32_t imm;     /* with_imm; else 0 */
    uint8_t of_write; /* 0 or 1: it says, with an immediate and no payload, that a WRITE is there */
    uint32_t written; /* of_write: bytes of that; else 0 */
    uint64_t secret;  /* TO_COUNTER: its; else 0 */
};

/* Where a part of a large message is: in the region of its sender's endpoint that has this key,
 * which is lent for it, and to nobody else. */
struct schema_part {
    uint64_t addr; /* as the region's record counts */
    uint32_t length, vkey;
};
enum { SCHEMA_PARTS_MOST = 3, SCHEMA_PART_BYTES = 16 };

/* Into SCHEMA_MESSAGE_BYTES. */
void schema_message_write(const struct schema_message *m, void *out);
/* What is in `bytes` bytes of a receive: 0, -EPROTO, or -EPROTONOSUPPORT for another version's. Its
 * length is what is behind it, or its parts are. */
int schema_message_read(const void *from, size_t bytes, struct schema_message *out);
/* Into SCHEMA_PART_BYTES for each of `count`. */
void schema_parts_write(const struct schema_part *parts, uint32_t count, void *out);
/* Those behind the header of a message that was read and has some, into m->parts of them: 0, or
 * -EPROTO: together they are not m->length, or one is empty. */
int schema_parts_read(const void *from, const struct schema_message *m, struct schema_part *out);

/* ---- datagrams: all that one endpoint has to say to another one
 *
 * Each says it whole, so that one which is lost, repeated or late does no harm. It is of a life of
 * its sender for a life of its receiver. */

enum {
    SCHEMA_DATAGRAM_BYTES = 80, /* before its notes */
    SCHEMA_NOTE_BYTES = 24,
    SCHEMA_DATAGRAM_NOTES = 32, /* of one at the most: the smallest MTU has room for them */
};

enum schema_note_kind {
    SCHEMA_NOTE_TAKEN = 1, /* the receiver has taken all before `number`, as with the next three */
    SCHEMA_NOTE_REFUSED,   /* it has no buffer for that one: again after wait_us */
    SCHEMA_NOTE_FAILED,    /* it ends the stream: `status` is verbs' */
    SCHEMA_NOTE_ANSWER,    /* it was asked, or has dropped some: from `number` on none have come */
    SCHEMA_NOTE_UNKNOWN,   /* it knows nothing of that stream, which is to be opened anew */
    SCHEMA_NOTE_ASK,       /* the sender asks for such a word */
    SCHEMA_NOTE_ENDED,     /* the sender's VQP is gone: nothing more of it is sent */
    SCHEMA_NOTE_READS,     /* the receiver READs that one, which is large: it is not to go again */
};

/* Of one stream. */
struct schema_note {
    uint64_t stream; /* never 0 */
    uint32_t number;
    uint32_t wait_us; /* REFUSED; else 0 */
    uint8_t kind;     /* enum schema_note_kind */
    uint8_t status;   /* enum ibv_wc_status of FAILED, which is no success; else 0 */
    uint16_t aside;   /* TAKEN, ANSWER: so many from `number` on have a receive set aside; else 0 */
};

struct schema_datagram {
    uint8_t from_gid[16];
    uint32_t from_incarnation, to_incarnation; /* to: 0: whichever it is */
    uint16_t pool;
    uint16_t lid;       /* the sender's; 0 on Ethernet */
    uint32_t qpn, qkey; /* where it hears the answer */
    /* As a sender of messages: of which account it has credits, up to where those are settled, and
     * how many more it has use for. */
    uint32_t purse_epoch, settled, wants;
    uint8_t behind; /* 0 or 1: WRITEs or READs stand behind its messages */
    /* As their receiver: what it grants, cumulative, and one past the last of those that are over;
     * epoch 0: it has no account of that peer. */
    uint32_t account_epoch, granted, used;
    uint32_t notes;
    struct schema_note note[SCHEMA_DATAGRAM_NOTES];
};

/* Into SCHEMA_DATAGRAM_BYTES and SCHEMA_NOTE_BYTES for each note. Returns how many bytes. */
size_t schema_datagram_write(const struct schema_datagram *d, void *out);
/* As schema_message_read(). */
int schema_datagram_read(const void *from, size_t bytes, struct schema_datagram *out);

#endif
