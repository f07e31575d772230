/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: what a worker's descriptors of them have (schema/session.h), and how they stand in the
 * page that it reads. */
#ifndef SCHEMA_BATCH_H
#define SCHEMA_BATCH_H

#include <assert.h>
#include <stdint.h>

#define SCHEMA_BATCHES    32     /* of a session */
#define SCHEMA_BATCH_MOST 100000 /* descriptors of one */
/* A batch's in schema_cqe.opcode, where it is none of enum ibv_wc_opcode, nor a receive's bit. */
#define SCHEMA_WC_BATCH     64
#define SCHEMA_BATCH_FILLED 13 /* that one BATCH_FILL brings, one directly behind the other */

/* What is READ or WRITTEN, by BATCH_FILL's operation: bytes of BATCH_FILL's arena. */
struct schema_batch_entry {
    uint64_t remote_addr; /* as the region's owner names it */
    uint64_t offset;      /* into the arena */
    uint32_t length;      /* not 0 */
    uint32_t vkey;
};
static_assert(sizeof(struct schema_batch_entry) == 24, "thirteen in five slots");

/* How a batch stands, in the page that its worker reads. Written while it is posted, `ended` last,
 * with release. */
struct schema_batch_shown {
    _Atomic uint32_t begun;  /* so many times has the lane taken it */
    _Atomic uint32_t ended;  /* and is it over */
    _Atomic uint32_t done;   /* descriptors carried out, when it was posted last */
    _Atomic uint32_t failed; /* the first that was not; or SCHEMA_BATCH_NONE */
    _Atomic uint32_t why;    /* enum ibv_wc_status, and enum schema_reason << 8 */
    uint32_t reserved[3];
};
#define SCHEMA_BATCH_NONE UINT32_MAX

union schema_sq_batch {
    struct {
        uint64_t wr_id;
        uint32_t number, gen; /* as BATCH_NEW has said */
    } post;
    struct {
        uint32_t tag, count; /* 1 to SCHEMA_BATCH_MOST */
    } make;
    struct {
        uint32_t tag, number, gen;
    } ask;
    struct {
        uint32_t number, gen;
        uint32_t count; /* 1 to SCHEMA_BATCH_FILLED */
        uint32_t arena;
        uint32_t op; /* SCHEMA_OP_READ, SCHEMA_OP_WRITE */
    } fill;
};

#endif
