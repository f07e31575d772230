/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a worker shares with one lane of its agent: two rings and a few words.
 *
 *   RW (memfd, worker and agent write):  the submission ring and the worker's indices
 *   RO (memfd, a description that cannot write; agent writes): completions, its indices, replies
 *
 * When a session is over and its worker has left, the agent takes the pages of both back: whoever
 * still maps them reads zeros.
 *
 * The lane believes nothing in RW: it copies a descriptor once and checks the copy; its own indices
 * are private and only published here. Nor does it read what it decides by in RO, which a worker of
 * the agent's own uid could write. Indices run freely (modulo 2^32); slots are powers of two.
 *
 * Everything that a worker asks for goes through the submission ring, in order: posts, and the few
 * control requests (connect, register, ...). Each of these carries a tag of the worker's choice,
 * not 0, and is answered in reply[tag % SCHEMA_REPLIES], so that several can be under way: a worker
 * uses a place again when it has read what is there. Nothing behind CONNECT, REG_MR, IMPORT,
 * IMPORT_MANY, MR_STATUS and LOOKUP is taken before they are answered; DEREG_MR holds nothing up.
 * Both rings are published by phases and by tails (schema/phase.h). The worker publishes, then a
 * full barrier, then loads `doorbell`; if set it writes its eventfd, unless `sq_head` is before
 * where it last did. The lane sets `doorbell`, full barrier, looks at the tail again, and only then
 * stops polling this session. For completions the same the other way: the worker sets `want_wake`,
 * full barrier, looks again, waits on `wake` (futex); the lane publishes, full barrier, loads
 * `want_wake`, adds 1 to `wake` and wakes, if that is there; or with `armed`, new each time, and a
 * completion channel. Models: tests/model/. */
#ifndef SCHEMA_SESSION_H
#define SCHEMA_SESSION_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/batch.h"
#include "schema/counter.h"
#include "schema/op.h"
#include "schema/reason.h"

#define SCHEMA_SESSION_MAGIC   0x4b454447u /* "KEDG" */
#define SCHEMA_SESSION_VERSION 2
#define SCHEMA_LINE            64

/* ---- submission */
#define SCHEMA_MAX_SGE    4   /* more than one: in the next slot, as struct schema_sq_sges */
#define SCHEMA_MAX_INLINE 128 /* bytes: two slots */
#define SCHEMA_MAX_EXTRA  320 /* bytes behind a descriptor: a tenant's name and a region's */

struct schema_sge {
    uint64_t offset; /* into the arena */
    uint32_t length;
    uint32_t arena; /* its number: libkedge calls number + 1 an lkey, so that 0 is none */
};

enum {
    SCHEMA_SESSION_IMPORTS = 256, /* IMPORTs that every session has room for */
    SCHEMA_REPLIES = 32,          /* places for answers: control requests under way at a time */
    SCHEMA_DEREG_MORE = 11,       /* regions that one DEREG_MR names, beside the first */
};

/* 64 bytes, one cache line. A descriptor takes so many slots; the rest follow it in the ring. */
struct schema_sq_desc {
    uint8_t op;    /* enum schema_op */
    uint8_t flags; /* enum schema_op_flag */
    uint8_t num_sge;
    uint8_t slots;    /* 1 + those of the payload or the SGEs, and its phase (schema/phase.h) */
    uint16_t vqp;     /* index below max_vqps */
    uint16_t vqp_gen; /* the worker's generation of that index */
    union {
        struct {
            uint64_t wr_id;
            uint64_t remote_addr; /* as the region's owner names it */
            uint32_t vkey;
            uint32_t length; /* inline: bytes; else the one SGE's */
            uint64_t offset; /* the one SGE */
            uint32_t arena;
            uint32_t imm; /* with SCHEMA_OP_IMM, as the receiver is to find it; else 0 */
            uint64_t compare_add, swap;
        } post;
        struct {
            uint32_t peer_slot, peer_gen;
        } bind;
        struct {
            uint32_t zero, kind; /* kind: enum schema_send_to */
            uint64_t to;     /* a port, a counter's name, or a VQP's as schema_cqe_sender has it */
            uint64_t tenant; /* whose port it is; 0: the session's own */
            uint64_t secret; /* the counter's */
        } send_to;
        struct schema_sq_counter counter;
        struct {
            uint32_t tag, port, tenant; /* BIND_PORT: port; PORT_GRANT and so on: tenant; else 0 */
        } bind_port;
        struct {
            uint32_t tag;
            uint16_t pool, reserved;
            uint8_t gid[16];
        } connect;
        struct {
            uint32_t tag, arena;
            uint64_t offset, length;
            uint64_t vaddr;  /* the name of its first byte for peers */
            uint32_t access; /* enum schema_record_flag: READ, WRITE, ATOMIC; SCHEMA_REG_FENCED */
        } reg_mr;
        struct {
            uint32_t tag, vkey;
            uint32_t more; /* how many of the following; MR_STATUS: 0 */
            uint32_t vkeys[SCHEMA_DEREG_MORE];
        } dereg_mr;
        struct {
            uint32_t tag, vkey;
            uint8_t secret[16];
        } import;
        struct {
            uint32_t tag;
            uint32_t count; /* 1 to SCHEMA_IMPORTS_AT_ONCE */
        } import_many;
        struct {
            uint32_t tag;
            uint32_t length; /* of the name, whose bytes are in the next slots, without a NUL */
            uint32_t owner;  /* bytes of its tenant's name before it; 0: the session's own */
        } lookup;
        union schema_sq_batch batch; /* SCHEMA_OP_BATCH and so on */
        uint8_t bytes[56];
    };
};
static_assert(sizeof(struct schema_sq_desc) == SCHEMA_LINE, "one cache line");
static_assert(offsetof(struct schema_sq_desc, post.compare_add) == 48, "layout");

struct schema_sq_sges {
    struct schema_sge sge[SCHEMA_MAX_SGE];
};
static_assert(sizeof(struct schema_sq_sges) == SCHEMA_LINE, "one cache line");

/* ---- the two mappings */

/* RW: page 0 has the worker's words; the submission ring begins at SCHEMA_SQ_OFFSET. */
struct schema_session_rw {
    _Alignas(SCHEMA_LINE) _Atomic uint32_t sq_tail; /* worker writes, as all of these */
    _Alignas(SCHEMA_LINE) _Atomic uint32_t cq_head;
    _Alignas(SCHEMA_LINE) _Atomic uint32_t want_wake; /* schema/wake.h */
    /* cpu: the processor, + 1, where the worker last rang, waited or polled in vain, which may be
     * wrong. armed: 2 for each time, 1 more while it is. Either is 0 of who says it not, or cannot.
     * sleeps_on: schema_wake_word() of the `wake` on which it sleeps; written before want_wake. */
    _Atomic uint32_t cpu, armed, sleeps_on; /* worker writes */
};
#define SCHEMA_SQ_OFFSET 4096
#define SCHEMA_SESSION_RW_BYTES(sq_slots)                                                          \
    (SCHEMA_SQ_OFFSET + (size_t)(sq_slots) * sizeof(struct schema_sq_desc))

struct schema_reply {
    _Alignas(SCHEMA_LINE) _Atomic uint32_t tag; /* written last, with release */
    int32_t status;                             /* 0 or -errno */
    uint32_t reason, reserved;                  /* reason: enum schema_reason */
    union {
        struct {
            /* [0] of REASON_QUOTA_MRS and _CONTROL_OPS: how much the quota is */
            uint64_t value[2];
            uint8_t secret[16];
        };
        struct schema_found found; /* LOOKUP */
    };
};
static_assert(sizeof(struct schema_reply) == SCHEMA_LINE, "one cache line");

/* RO: page 0 has the agent's words; the completion ring begins at SCHEMA_CQ_OFFSET. */
struct schema_session_ro {
    /* constant while the session lives */
    _Atomic uint32_t magic; /* agent writes: 0 before it takes the pages back. What was read before
                             * the magic number was read once more is of the session */
    uint16_t version, lane;
    uint32_t sq_slots, cq_slots; /* powers of two */
    uint32_t max_vqps;
    uint32_t max_inflight; /* posts that the lane takes before the first completes */
    uint32_t tenant;
    uint16_t pool, reserved;
    uint8_t gid[16]; /* this host's endpoint */
    /* agent writes, in batches: slots it has taken; completions it has written */
    _Alignas(SCHEMA_LINE) _Atomic uint32_t sq_head;
    _Alignas(SCHEMA_LINE) _Atomic uint32_t cq_tail;
    /* 1: the lane does not poll this session: ring */
    _Alignas(SCHEMA_LINE) _Atomic uint32_t doorbell;
    _Alignas(SCHEMA_LINE) _Atomic uint32_t wake; /* futex */
    _Atomic uint32_t ended;                      /* enum schema_reason, 0 while it lives */
    _Atomic uint32_t drains;   /* agent writes: 1 while the operator wants its worker to go */
    _Atomic uint32_t revoked;  /* agent adds 1: a region of it was revoked (MR_STATUS) */
    _Atomic uint32_t lane_cpu; /* agent writes: where the lane ran lately, as rw.cpu */
    _Atomic uint32_t raised;   /* agent adds 1: one of counter[] was */
    _Alignas(SCHEMA_LINE) struct schema_reply reply[SCHEMA_REPLIES]; /* by tag */
    /* This host's endpoint, when it has become another one: so many times (0: gid above holds), and
     * as it is in memory, the latest one in present_gid[changes % 2]. */
    _Atomic uint32_t changes;
    _Atomic uint64_t present_gid[2][2];
    struct schema_batch_shown batch[SCHEMA_BATCHES];                 /* by number */
    _Alignas(SCHEMA_LINE) _Atomic uint64_t counter[SCHEMA_COUNTERS]; /* by number: what it says */
};
#define SCHEMA_CQ_OFFSET 4096
#define SCHEMA_SESSION_RO_BYTES(cq_slots)                                                          \
    (SCHEMA_CQ_OFFSET + (size_t)(cq_slots) * sizeof(struct schema_cqe))
static_assert(sizeof(struct schema_session_rw) <= SCHEMA_SQ_OFFSET, "page 0");
static_assert(sizeof(struct schema_session_ro) <= SCHEMA_CQ_OFFSET, "page 0");

#endif
