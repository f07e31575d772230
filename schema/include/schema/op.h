/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker asks of its lane in a descriptor of schema/session.h, and is answered there. */
#ifndef SCHEMA_OP_H
#define SCHEMA_OP_H

#include <assert.h>
#include <stdint.h>

enum schema_op {
    /* posts: complete in the completion ring */
    SCHEMA_OP_READ = 1,
    SCHEMA_OP_WRITE = 2,
    SCHEMA_OP_CAS = 3,
    SCHEMA_OP_FAA = 4,
    /* A message to whom SEND_TO has named. remote_addr, vkey: 0. Not more than SCHEMA_SEND_SGES
     * pieces, and SCHEMA_LARGE_MOST bytes, which the receiver READs where they are more than
     * SCHEMA_MESSAGE_MOST. It, and what follows below, ends the session of an
     * agent that has not said SCHEMA_FEATURE_MESSAGES (control.h) */
    SCHEMA_OP_SEND = 5,
    /* A buffer for one message to this VQP: to its name, or to the port that it hears. Completes
     * with one, in two places (schema_cqe.extra), signalled or not */
    SCHEMA_OP_RECV = 6,
    /* batch.post: all that it lists, in any order among themselves, behind what the VQP posted
     * before and before what it posts behind; one completion, signalled. Ends the session of an
     * agent that has not said SCHEMA_FEATURE_BATCHES, as the others of batches do */
    SCHEMA_OP_BATCH = 7,
    /* Behind a WRITE: a message, with post.imm, that says so: post.length is how many bytes that
     * has. No piece follows. It, and SCHEMA_OP_LISTED, end the session of an agent that has not
     * said SCHEMA_FEATURE_NOTIFY */
    SCHEMA_OP_WRITE_IMM = 8,
    /* on a VQP, without an answer: an error shows at the VQP's first post */
    SCHEMA_OP_BIND = 16, /* peer_slot, peer_gen: the VQP is from here on connected to this peer */
    /* the VQP's posts are flushed silently; its index may be used with generation + 1 */
    SCHEMA_OP_DESTROY = 17,
    /* send_to: whom the VQP's SENDs go to from here on, at the endpoint that BIND has named */
    SCHEMA_OP_SEND_TO = 18,
    /* of a batch that is not ready, without an answer: batch.fill.count of schema_batch_entry
     * follow. BATCH_READY says what was wrong with them */
    SCHEMA_OP_BATCH_FILL = 19,
    /* control: answered with the same tag */
    SCHEMA_OP_CONNECT = 32, /* gid, pool: resolve; values: peer_slot, peer_gen */
    SCHEMA_OP_REG_MR = 33,  /* arena, offset, length, access, vaddr; values: vkey, secret */
    /* some regions; answered when the lease of all of them is over, and the registrations of those
     * with one of their own are gone: their memory is free then. -ENOENT: one of them was none, or
     * is being withdrawn already; the others are gone all the same */
    SCHEMA_OP_DEREG_MR = 34,
    SCHEMA_OP_IMPORT = 35,    /* vkey, secret: this session may use that region of another tenant */
    SCHEMA_OP_MR_STATUS = 36, /* dereg_mr.vkey: -EACCES: the operator has revoked it */
    /* the region that has this name among those of the tenant; answered with reply.found. Ends the
     * session of an agent that has not said SCHEMA_FEATURE_LOOKUP (control.h) */
    SCHEMA_OP_LOOKUP = 37,
    /* import.vkey: the session may not use that region of another tenant any more; values: how many
     * imports it has then. -ENOENT: it had none with that key. Likewise ends the session of an
     * agent that has not said SCHEMA_FEATURE_UNIMPORT */
    SCHEMA_OP_UNIMPORT = 38,
    /* the same as so many IMPORTs, each of which costs what it costs alone; values: how many
     * imports the session has then. Of those for which there was no room, or that a quota refused,
     * the first one's status. Ends the session of an agent that has not said
     * SCHEMA_FEATURE_IMPORT_MANY */
    SCHEMA_OP_IMPORT_MANY = 39,
    /* bind_port: the VQP hears what is sent to that port of its tenant at this endpoint, until it
     * is destroyed. It need not be connected. -EADDRINUSE: another one does; -EDQUOT: as many as
     * may be are bound */
    SCHEMA_OP_BIND_PORT = 40,
    /* batch.make: room for so many descriptors; values: batch, generation. -EDQUOT: the session has
     * SCHEMA_BATCHES, or the tenant its part of what the agent has for batches */
    SCHEMA_OP_BATCH_NEW = 41,
    /* batch.ask, of these three: nothing more is added, it may be posted. -EINVAL, and the batch is
     * gone: one of its descriptors is none; value: the first such one. -ENOENT: no such batch */
    SCHEMA_OP_BATCH_READY = 42,
    /* what of it is not posted to the device is not; it completes when the rest is over. 0 also
     * where it is not posted */
    SCHEMA_OP_BATCH_CANCEL = 43,
    SCHEMA_OP_BATCH_FREE = 44, /* -EBUSY: it is posted */
    /* values: the counter's name and secret. -EDQUOT: the session has SCHEMA_COUNTERS. It, and what
     * follows, ends the session of an agent that has not said SCHEMA_FEATURE_NOTIFY */
    SCHEMA_OP_COUNTER_NEW = 45,
    SCHEMA_OP_COUNTER_FREE = 46, /* counter.name: nobody raises it any more. -ENOENT: none is */
    /* bind_port.tenant (schema_tenant_number()): workers of that tenant reach the ports that the
     * VQP hears, as those of its own. -EALREADY: they do; -EDQUOT: as many as may be are let in;
     * -ENOTCONN: it hears no port; -EINVAL: 0, or its own. It, and what follows, ends the session
     * of an agent that has not said SCHEMA_FEATURE_GUESTS */
    SCHEMA_OP_PORT_GRANT = 47,
    SCHEMA_OP_PORT_REVOKE = 48, /* and no more. -ENOENT: they did not */
};

enum schema_op_flag {
    SCHEMA_OP_SIGNALED = 1 << 0,
    SCHEMA_OP_INLINE = 1 << 1, /* `length` bytes follow in whole slots, at most SCHEMA_MAX_INLINE */
    SCHEMA_OP_FENCE = 1 << 2,
    /* its bytes and those of the one before it, where it goes on, may be moved in any order. Not
     * for an agent that has not said SCHEMA_FEATURE_RELAXED, which refuses it */
    SCHEMA_OP_RELAXED = 1 << 3,
    SCHEMA_OP_IMM = 1 << 4, /* SEND, WRITE_IMM: with post.imm */
    /* Of a list. A post that has it completes never: how the first of these has failed says the
     * SEND (WRITE_IMM) with this flag that ends the list, as if it had failed so itself, but with
     * the opcode of a WRITE. */
    SCHEMA_OP_LISTED = 1 << 5,
};

enum schema_send_to { SCHEMA_SEND_TO_PORT = 1, SCHEMA_SEND_TO_VQP, SCHEMA_SEND_TO_COUNTER };

#define SCHEMA_SEND_SGES    3     /* of a SEND: one is its header's */
#define SCHEMA_MESSAGE_MOST 16384 /* bytes of a SEND that come with it */
#define SCHEMA_LARGE_MOST   (1u << 30)

/* In REG_MR's access: the region gets a registration of its own. An agent that does not know the
 * bit refuses it (-EINVAL): it is nothing that a worker may go without and not notice. */
#define SCHEMA_REG_FENCED (1u << 16)
/* The region has none, also where the device keeps no deadlines and every other one has: who still
 * believes in it is kept out by time alone. Likewise refused by who does not know it. */
#define SCHEMA_REG_LEASE_ONLY (1u << 17)

/* What a token grants. Those of IMPORT_MANY stand behind the descriptor, one directly behind the
 * other, across the borders of slots: so many at the most. */
#define SCHEMA_IMPORTS_AT_ONCE 16
struct schema_grant {
    uint32_t vkey;
    uint8_t secret[16];
};

/* A region that was looked up by its name. What grants it stays with the agent. */
struct schema_found {
    uint64_t addr, length; /* as its owner names it */
    uint8_t gid[16];       /* the owner's endpoint */
    uint32_t incarnation;  /* which life of its endpoint has published it */
    uint32_t vkey;
    uint16_t access; /* enum schema_record_flag */
    uint16_t reserved[3];
};

/* ---- completion */

struct schema_cqe {
    uint64_t wr_id;
    uint32_t byte_len;
    uint16_t vqp, vqp_gen;
    uint8_t status, opcode; /* enum ibv_wc_status, and enum ibv_wc_opcode */
    uint8_t extra;          /* 1: the next place is a schema_cqe_sender; it was published with this
                             * one, and is at the ring's beginning if this is at its end */
    uint8_t with_imm;       /* `imm` is the message's */
    uint32_t vendor_err;    /* enum schema_reason of a refusal by the agent, else 0 */
    uint32_t imm;
    uint32_t stretch; /* the phase, and how many places the stretch has (phase.h); or 0 */
};
static_assert(sizeof(struct schema_cqe) == 32, "two in a cache line");

/* Whose a message is: of each that was received well (IBV_WC_RECV, `extra`). A receive that was
 * flushed has none. */
struct schema_cqe_sender {
    uint8_t gid[16];      /* the endpoint's, and */
    uint32_t incarnation; /* which life of it */
    uint32_t tenant;      /* as its agent says */
    uint64_t vqp;         /* its VQP's name: for SEND_TO */
};
static_assert(sizeof(struct schema_cqe_sender) == sizeof(struct schema_cqe), "a place in the ring");

#endif
