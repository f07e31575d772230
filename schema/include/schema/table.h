/* SPDX-License-Identifier: Apache-2.0 */
/* A table of records, of 64 bytes (128 those of names), that remote nodes look up with ONE READ and
 * no CPU of the owner.
 *
 * A key's seeded hash gives its home; its record lives within SCHEMA_TABLE_SPAN slots from there,
 * so one READ of 1 KiB (2 KiB) always suffices (the array has SPAN - 1 slots more than homes, and
 * no span wraps). Records never move and the table never grows while the process lives. Capacity is
 * in entries; there are eight slots for each, because a span first overflows at a quarter full or
 * even less (measured).
 *
 * One thread writes, or several that share the slots by schema_table_share(); anybody reads at any
 * time, locally or by READ, and never believes a torn record: sequence even, CRC over record and
 * generation right. schema_table_* of the writer work on memory that the caller owns (registered
 * with the fabric, or plain in tests). */
#ifndef SCHEMA_TABLE_H
#define SCHEMA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/name_record.h"
#include "schema/record.h"

#define SCHEMA_TABLE_SPAN            16
#define SCHEMA_TABLE_SPAN_BYTES      (SCHEMA_TABLE_SPAN * SCHEMA_RECORD_BYTES)
#define SCHEMA_TABLE_SLOTS_PER_ENTRY 8
#define SCHEMA_NAME_SPAN_BYTES       (SCHEMA_TABLE_SPAN * SCHEMA_NAME_RECORD_BYTES)

enum schema_table_kind { SCHEMA_TABLE_ENDPOINTS = 1, SCHEMA_TABLE_MRS = 2, SCHEMA_TABLE_NAMES = 3 };

/* What a reader must know: given at registration (endpoint table), or made from the endpoint record
 * (MR table: schema_mr_table_desc()). */
struct schema_table_desc {
    uint64_t addr; /* of slot 0, as the owner registered it */
    uint32_t rkey;
    uint32_t log2_slots; /* homes; 1..30 */
    uint64_t seed;
    uint64_t generation; /* a restarted owner has another one */
    uint16_t version;    /* SCHEMA_RECORD_VERSION */
    uint16_t kind;       /* enum schema_table_kind */
};

/* Bytes that a table for `entries` entries takes (one of names), and log2 of its homes. entries
 * 1..2^27. */
size_t schema_table_bytes(uint32_t log2_slots);
size_t schema_name_table_bytes(uint32_t log2_slots);
uint32_t schema_table_log2_slots(uint32_t entries);

/* The home slot of a key. */
uint32_t schema_endpoint_home(const struct schema_table_desc *d, const uint8_t gid[16],
                              uint16_t pool);
uint32_t schema_mr_home(const struct schema_table_desc *d, uint32_t vkey);
uint32_t schema_name_home(const struct schema_table_desc *d, const uint8_t key[16]);

/* Of a span (SPAN records, a copy made by READ): the record of the key.
 * 0 and *out a whole, believed copy; -ENOENT: no such key; -EAGAIN: a torn record in the span may
 * be it: READ again. Never reads outside the span, whatever it contains.
 *
 * Of an endpoint also -EUNATCH: it is AWAITED there, and *out has its incarnation, which is its
 * node's and may be less than its own. */
int schema_endpoint_find(const struct schema_table_desc *d, const void *span, const uint8_t gid[16],
                         uint16_t pool, struct schema_endpoint_record *out);
int schema_mr_find(const struct schema_table_desc *d, const void *span, uint32_t vkey,
                   struct schema_mr_record *out);
int schema_name_find(const struct schema_table_desc *d, const void *span, const uint8_t key[16],
                     struct schema_name_record *out);

/* The MR table's descriptor as its endpoint's record implies it. */
struct schema_table_desc schema_mr_table_desc(const struct schema_endpoint_record *r);

/* ---- writer */

struct schema_table {
    struct schema_table_desc desc;
    uint8_t *slots; /* schema_table_bytes(), schema_name_table_bytes(): borrowed from the caller */
    uint32_t live;  /* records that are LIVE: of this writer */
    uint32_t awaited; /* that are AWAITED, likewise */
    /* NULL: it is the only writer. Else of each slot whose it is, 0: nobody's; and what it writes
     * there for its own ones. */
    _Atomic uint8_t *owners;
    uint8_t writer;
};

/* Zeroed memory, borrowed until the table is no longer used. */
void schema_table_init(struct schema_table *t, enum schema_table_kind kind, void *memory,
                       uint32_t log2_slots, uint64_t seed, uint64_t generation);
/* How many owners there are to a table of so many homes: one to each slot. */
size_t schema_table_owners(uint32_t log2_slots);
/* This one is writer number `writer`, from 1, of a table that several threads write, each by a
 * struct of its own: owners, zeroed, is the same for all, and borrowed. A slot belongs to whoever
 * has a record there, and nobody else writes it. No two may have the same key, which is the
 * callers' to see to. Before it has any record; of a table of kind MRS. */
void schema_table_share(struct schema_table *t, _Atomic uint8_t *owners, uint8_t writer);
/* Puts the record under its key: replaces the one with the same key, else takes a free slot of the
 * span, or where there is none that of another key that is AWAITED, which is forgotten with it. seq
 * and crc are set here. Returns the slot, or -ENOSPC: the span is full of LIVE records. */
int64_t schema_table_put(struct schema_table *t, const void *record);
/* The slot that schema_table_put() would take if the `count` slots of `taken` were LIVE records of
 * other keys; or -ENOSPC. */
int64_t schema_table_place(const struct schema_table *t, const void *record, const uint32_t *taken,
                           uint32_t count);
/* Has that endpoint AWAITED, of whose record no more than key and incarnation is taken; where it
 * finds no free slot nobody is told that it is. Not of one that is LIVE. */
void schema_table_await(struct schema_table *t, const struct schema_endpoint_record *key);
/* Removes by key (a record with the key's fields set), what is LIVE or AWAITED. The slot, or
 * -ENOENT. After it returns, a reader that begins finds nothing; the caller has a full barrier
 * before it relies on that. */
int64_t schema_table_remove(struct schema_table *t, const void *record);
/* This writer's own record of that key (a record with the key's fields set), copied to *out, unless
 * that is NULL. False: it has none. */
bool schema_table_get(const struct schema_table *t, const void *key, void *out);
/* The two halves of put, so that a test can stop a writer in the middle: writes an odd sequence,
 * then all the rest. */
int64_t schema_table_begin(struct schema_table *t, const void *record);
void schema_table_commit(struct schema_table *t, int64_t slot, const void *record);

#endif
