/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker asks of its lane in a descriptor of schema/session.h, and is answered there. */
#ifndef SCHEMA_OP_H
#define SCHEMA_OP_H

#include <stdint.h>

enum schema_op {
    /* posts: complete in the completion ring */
    SCHEMA_OP_READ = 1,
    SCHEMA_OP_WRITE = 2,
    SCHEMA_OP_CAS = 3,
    SCHEMA_OP_FAA = 4,
    /* on a VQP, without an answer: an error shows at the VQP's first post */
    SCHEMA_OP_BIND = 16, /* peer_slot, peer_gen: the VQP is from here on connected to this peer */
    /* the VQP's posts are flushed silently; its index may be used with generation + 1 */
    SCHEMA_OP_DESTROY = 17,
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
};

enum schema_op_flag {
    SCHEMA_OP_SIGNALED = 1 << 0,
    SCHEMA_OP_INLINE = 1 << 1, /* `length` bytes follow in whole slots, at most SCHEMA_MAX_INLINE */
    SCHEMA_OP_FENCE = 1 << 2,
};

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

#endif
