/* SPDX-License-Identifier: Apache-2.0 */
/* The two records that nodes READ from each other's memory: 64 bytes, one cache line,
 * little-endian.
 *
 * Both begin alike, so that one table (schema/table.h) holds either: a sequence, odd while the
 * record is written, and a CRC-32C over the other 60 bytes followed by the table's generation. A
 * record whose sequence is 0 was never used; a removed one has an even sequence and the EMPTY flag.
 */
#ifndef SCHEMA_RECORD_H
#define SCHEMA_RECORD_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define SCHEMA_RECORD_BYTES   64
#define SCHEMA_RECORD_VERSION 1 /* in the descriptor of the table; agents read no other */

enum schema_record_flag {
    SCHEMA_RECORD_LIVE = 1 << 0, /* without it: empty, removed */
    SCHEMA_RECORD_DC = 1 << 1,   /* endpoint: has a DC target */
    SCHEMA_RECORD_RC = 1 << 2,   /* endpoint: answers RC handshakes over UD */
    SCHEMA_RECORD_READ = 1 << 3, /* MR: what remote nodes may do */
    SCHEMA_RECORD_WRITE = 1 << 4,
    SCHEMA_RECORD_ATOMIC = 1 << 5,
    SCHEMA_RECORD_BACKED =
        1 << 1, /* MR: hardware refuses what comes after the region's end,
                 * whatever anybody's clock says. Without it nobody has said so */
    /* Endpoint, and not LIVE: its node has it, and nothing of it beside key and incarnation is
     * known here until its agent registers. To readers that do not know this it is not there. */
    SCHEMA_RECORD_AWAITED = 1 << 6,
};

/* What a node must know to reach an endpoint. Key: (gid, pool). */
struct schema_endpoint_record {
    uint32_t seq;
    uint32_t crc;
    uint8_t gid[16];
    uint16_t pool;
    uint16_t flags;
    uint32_t incarnation; /* seconds since 1970 or the saved one + 1, whichever is larger */
    uint32_t dctn_mtu;    /* DC target number, 24 bits; enum ibv_mtu << 24 */
    uint32_t
        udqpn_slots; /* UD queue pair for handshakes, 24 bits; log2 of the MR table's slots << 24 */
    uint64_t dc_key;
    uint32_t ud_qkey;
    uint16_t lid;
    uint16_t mr_table_addr_hi; /* bits 32..47 of the MR table's address */
    uint32_t mr_table_addr_lo;
    uint32_t mr_table_rkey;
};
static_assert(sizeof(struct schema_endpoint_record) == SCHEMA_RECORD_BYTES, "one cache line");
static_assert(offsetof(struct schema_endpoint_record, gid) == 8, "layout");
static_assert(offsetof(struct schema_endpoint_record, dc_key) == 40, "layout");
static_assert(offsetof(struct schema_endpoint_record, mr_table_rkey) == 60, "layout");

/* A memory region that remote nodes may use. Key: vkey. Real keys and addresses never reach
 * workers. */
struct schema_mr_record {
    uint32_t seq;
    uint32_t crc;
    uint32_t vkey; /* the virtual rkey: random, never 0 */
    uint32_t tenant;
    uint64_t vaddr;  /* first byte as the owner's worker names it, and its peers */
    uint64_t raddr;  /* the same byte as the owner's agent registered it */
    uint64_t length; /* bytes */
    uint32_t rkey;   /* real */
    uint16_t pool;
    uint16_t flags;     /* and the lease's period: schema_record_lease_ns() */
    uint8_t secret[16]; /* who shows it may cross tenants */
};
static_assert(sizeof(struct schema_mr_record) == SCHEMA_RECORD_BYTES, "one cache line");
static_assert(offsetof(struct schema_mr_record, vaddr) == 16, "layout");
static_assert(offsetof(struct schema_mr_record, rkey) == 40, "layout");
static_assert(offsetof(struct schema_mr_record, secret) == 48, "layout");

/* A tenant's number in records, the same on every node. */
uint32_t schema_tenant_number(const char *name);

/* How long the owner of a region lets others believe its record, in the upper 10 bits of the flags:
 * milliseconds, 6 bits shifted left by the other 4, so that what is read is never more than what
 * was written: of periods above 2064 s, which a pool may have, it is that. period_ns 1 ms or more.
 */
uint16_t schema_record_lease_flags(uint64_t period_ns);
/* Nanoseconds. */
uint64_t schema_record_lease_ns(uint16_t flags);

#endif
