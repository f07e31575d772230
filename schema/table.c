/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/table.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/device_order.h"
#include "base/hash.h"

static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "records are little-endian and used as they are");

/* What both kinds of record begin with, and where the rest starts. */
struct head {
    uint32_t seq;
    uint32_t crc;
};
#define BODY_OFFSET sizeof(struct head)
#define MOST_BYTES  SCHEMA_NAME_RECORD_BYTES /* of a record of whatever kind */

static size_t record_bytes(enum schema_table_kind kind)
{
    return kind == SCHEMA_TABLE_NAMES ? SCHEMA_NAME_RECORD_BYTES : SCHEMA_RECORD_BYTES;
}

static size_t count_slots(uint32_t log2_slots)
{
    return ((size_t)1 << log2_slots) + SCHEMA_TABLE_SPAN - 1;
}

size_t schema_table_bytes(uint32_t log2_slots)
{
    return count_slots(log2_slots) * SCHEMA_RECORD_BYTES;
}

size_t schema_name_table_bytes(uint32_t log2_slots)
{
    return count_slots(log2_slots) * SCHEMA_NAME_RECORD_BYTES;
}

uint32_t schema_table_log2_slots(uint32_t entries)
{
    uint64_t wanted = (uint64_t)entries * SCHEMA_TABLE_SLOTS_PER_ENTRY;
    uint32_t log2_slots = 4;
    BASE_ASSERT(entries >= 1 && entries <= 1u << 27);
    while (((uint64_t)1 << log2_slots) < wanted)
        log2_slots++;
    return log2_slots;
}

uint32_t schema_endpoint_home(const struct schema_table_desc *d, const uint8_t gid[16],
                              uint16_t pool)
{
    return (uint32_t)(base_hash_gid(gid, pool, d->seed) & ((1ull << d->log2_slots) - 1));
}

uint32_t schema_mr_home(const struct schema_table_desc *d, uint32_t vkey)
{
    return (uint32_t)(base_hash_u64(vkey, d->seed) & ((1ull << d->log2_slots) - 1));
}

uint32_t schema_name_home(const struct schema_table_desc *d, const uint8_t key[16])
{
    uint64_t low; /* of a hash already */
    memcpy(&low, key, sizeof low);
    return (uint32_t)(low & ((1ull << d->log2_slots) - 1));
}

/* The CRC over the sequence, the body and the generation. */
static uint32_t record_crc(const struct schema_table_desc *d, const void *record, uint32_t seq)
{
    uint32_t crc = base_crc32c(0, &seq, sizeof seq);
    crc = base_crc32c(crc, (const uint8_t *)record + BODY_OFFSET,
                      record_bytes(d->kind) - BODY_OFFSET);
    return base_crc32c(crc, &d->generation, sizeof d->generation);
}

/* The flags stand at different places in the records. */
static uint16_t record_flags(enum schema_table_kind kind, const void *record)
{
    size_t at = kind == SCHEMA_TABLE_ENDPOINTS ? offsetof(struct schema_endpoint_record, flags)
                : kind == SCHEMA_TABLE_NAMES   ? offsetof(struct schema_name_record, flags)
                                               : offsetof(struct schema_mr_record, flags);
    uint16_t flags;
    memcpy(&flags, (const uint8_t *)record + at, sizeof flags);
    return flags;
}

static bool same_key(enum schema_table_kind kind, const void *a, const void *b)
{
    if (kind == SCHEMA_TABLE_ENDPOINTS) {
        const struct schema_endpoint_record *x = a, *y = b;
        return x->pool == y->pool && memcmp(x->gid, y->gid, sizeof x->gid) == 0;
    }
    if (kind == SCHEMA_TABLE_NAMES) {
        const struct schema_name_record *x = a, *y = b;
        return memcmp(x->key, y->key, sizeof x->key) == 0;
    }
    return ((const struct schema_mr_record *)a)->vkey == ((const struct schema_mr_record *)b)->vkey;
}

static bool is_awaited(enum schema_table_kind kind, const void *record)
{
    return kind == SCHEMA_TABLE_ENDPOINTS && (record_flags(kind, record) & SCHEMA_RECORD_AWAITED);
}

/* Whether it says something of its key. */
static bool is_used(enum schema_table_kind kind, const void *record)
{
    return (record_flags(kind, record) & SCHEMA_RECORD_LIVE) || is_awaited(kind, record);
}

/* Looks for wanted's key among the span's records. An odd sequence or a wrong CRC hides which key
 * a slot has, so a span without a hit but with such a slot means "READ again", not "not there".
 */
static int find_record(const struct schema_table_desc *d, enum schema_table_kind kind,
                       const void *span, const void *wanted, void *out)
{
    const size_t bytes = record_bytes(kind);
    bool torn = false;
    for (unsigned i = 0; i < SCHEMA_TABLE_SPAN; i++) {
        _Alignas(8) uint8_t record[MOST_BYTES];
        struct head head;
        memcpy(&head, (const uint8_t *)span + i * bytes, sizeof head);
        if (head.seq == 0)
            continue;
        if (head.seq & 1) {
            torn = true;
            continue;
        }
        memcpy(record, (const uint8_t *)span + i * bytes, bytes);
        if (!is_used(kind, record) || !same_key(kind, record, wanted)) {
            /* A torn copy can show another key under an even sequence. */
            torn |= record_crc(d, record, head.seq) != head.crc;
            continue;
        }
        if (record_crc(d, record, head.seq) != head.crc) {
            torn = true;
            continue;
        }
        memcpy(out, record, bytes);
        return record_flags(kind, record) & SCHEMA_RECORD_LIVE ? 0 : -EUNATCH;
    }
    return torn ? -EAGAIN : -ENOENT;
}

int schema_endpoint_find(const struct schema_table_desc *d, const void *span, const uint8_t gid[16],
                         uint16_t pool, struct schema_endpoint_record *out)
{
    struct schema_endpoint_record wanted = {.pool = pool};
    memcpy(wanted.gid, gid, sizeof wanted.gid);
    return find_record(d, SCHEMA_TABLE_ENDPOINTS, span, &wanted, out);
}

int schema_mr_find(const struct schema_table_desc *d, const void *span, uint32_t vkey,
                   struct schema_mr_record *out)
{
    struct schema_mr_record wanted = {.vkey = vkey};
    return find_record(d, SCHEMA_TABLE_MRS, span, &wanted, out);
}

int schema_name_find(const struct schema_table_desc *d, const void *span, const uint8_t key[16],
                     struct schema_name_record *out)
{
    struct schema_name_record wanted = {.flags = 0};
    memcpy(wanted.key, key, sizeof wanted.key);
    return find_record(d, SCHEMA_TABLE_NAMES, span, &wanted, out);
}

struct schema_table_desc schema_mr_table_desc(const struct schema_endpoint_record *r)
{
    return (struct schema_table_desc){
        .addr = (uint64_t)r->mr_table_addr_hi << 32 | r->mr_table_addr_lo,
        .rkey = r->mr_table_rkey,
        .log2_slots = r->udqpn_slots >> 24,
        .seed = base_hash_gid(r->gid, r->pool, r->incarnation),
        .generation = r->incarnation,
        .version = SCHEMA_RECORD_VERSION,
        .kind = SCHEMA_TABLE_MRS,
    };
}

/* ---- writer */

void schema_table_init(struct schema_table *t, enum schema_table_kind kind, void *memory,
                       uint32_t log2_slots, uint64_t seed, uint64_t generation)
{
    BASE_ASSERT(log2_slots >= 1 && log2_slots <= 30);
    *t = (struct schema_table){
        .desc = {.addr = (uintptr_t)memory,
                 .log2_slots = log2_slots,
                 .seed = seed,
                 .generation = generation,
                 .version = SCHEMA_RECORD_VERSION,
                 .kind = kind},
        .slots = memory,
    };
}

size_t schema_table_owners(uint32_t log2_slots)
{
    return count_slots(log2_slots);
}

void schema_table_share(struct schema_table *t, _Atomic uint8_t *owners, uint8_t writer)
{
    BASE_ASSERT(writer != 0 && t->live == 0 && t->desc.kind == SCHEMA_TABLE_MRS);
    t->owners = owners;
    t->writer = writer;
}

/* Who it is not of does not look at what is in it: that is being written, perhaps. */
static bool is_mine(const struct schema_table *t, int64_t slot)
{
    return t->owners == NULL ||
           atomic_load_explicit(&t->owners[slot], memory_order_relaxed) == t->writer;
}

/* Acquires what its former owner has written there. False: it is another one's. */
static bool take_slot(struct schema_table *t, int64_t slot)
{
    uint8_t nobody = 0;
    return t->owners == NULL || is_mine(t, slot) ||
           atomic_compare_exchange_strong_explicit(&t->owners[slot], &nobody, t->writer,
                                                   memory_order_acquire, memory_order_relaxed);
}

static void leave_slot(struct schema_table *t, int64_t slot)
{
    if (t->owners != NULL)
        atomic_store_explicit(&t->owners[slot], 0, memory_order_release);
}

static uint8_t *slot_at(const struct schema_table *t, int64_t slot)
{
    return t->slots + (size_t)slot * record_bytes(t->desc.kind);
}

static uint32_t home_of(const struct schema_table *t, const void *record)
{
    if (t->desc.kind == SCHEMA_TABLE_ENDPOINTS) {
        const struct schema_endpoint_record *r = record;
        return schema_endpoint_home(&t->desc, r->gid, r->pool);
    }
    if (t->desc.kind == SCHEMA_TABLE_NAMES)
        return schema_name_home(&t->desc, ((const struct schema_name_record *)record)->key);
    return schema_mr_home(&t->desc, ((const struct schema_mr_record *)record)->vkey);
}

static bool is_taken(int64_t slot, const uint32_t *taken, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (taken[i] == slot)
            return true;
    return false;
}

/* The key's own slot, or -ENOENT. */
static int64_t own_slot(const struct schema_table *t, const void *record)
{
    const int64_t home = home_of(t, record);
    for (int64_t slot = home; slot < home + SCHEMA_TABLE_SPAN; slot++)
        if (is_mine(t, slot) && is_used(t->desc.kind, slot_at(t, slot)) &&
            same_key(t->desc.kind, slot_at(t, slot), record))
            return slot;
    return -ENOENT;
}

/* The first slot of the span that is free, or -ENOSPC. *awaited: the first of one that is AWAITED,
 * likewise. */
static int64_t free_slot(const struct schema_table *t, const void *record, const uint32_t *taken,
                         uint32_t count, int64_t *awaited)
{
    const int64_t home = home_of(t, record);
    *awaited = -ENOSPC;
    for (int64_t slot = home; slot < home + SCHEMA_TABLE_SPAN; slot++) {
        const uint8_t *at = slot_at(t, slot);
        if (is_taken(slot, taken, count))
            continue;
        if (t->owners != NULL ? atomic_load_explicit(&t->owners[slot], memory_order_relaxed) == 0
                              : !is_used(t->desc.kind, at))
            return slot;
        if (t->owners != NULL)
            continue;
        if (*awaited < 0 && !(record_flags(t->desc.kind, at) & SCHEMA_RECORD_LIVE))
            *awaited = slot;
    }
    return -ENOSPC;
}

int64_t schema_table_place(const struct schema_table *t, const void *record, const uint32_t *taken,
                           uint32_t count)
{
    int64_t awaited;
    const int64_t own = own_slot(t, record);
    if (own >= 0 && !is_taken(own, taken, count))
        return own;
    const int64_t slot = free_slot(t, record, taken, count, &awaited);
    return slot >= 0 ? slot : awaited;
}

/* Word by word, since readers look at any time; relaxed, since the sequence orders them. Readers
 * are devices, for peers that READ the table, and on `soft` other processes. */
static void store_body(uint8_t *slot, const void *record, size_t bytes)
{
    for (size_t at = BODY_OFFSET; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)record + at, sizeof word);
        atomic_store_explicit((_Atomic uint64_t *)(slot + at), word, memory_order_relaxed);
    }
}

static void begin_slot(uint8_t *slot)
{
    uint32_t seq = ((const struct head *)slot)->seq;
    /* A writer that was stopped in the middle has left an odd one: stay odd. */
    atomic_store_explicit((_Atomic uint32_t *)slot, seq | 1, memory_order_relaxed);
    base_device_order();
}

static void commit_slot(struct schema_table *t, uint8_t *slot, const void *record)
{
    uint32_t seq = (((const struct head *)slot)->seq | 1) + 1;
    if (seq == 0)
        seq = 2; /* 0 is "never used" */
    store_body(slot, record, record_bytes(t->desc.kind));
    atomic_store_explicit((_Atomic uint32_t *)(slot + offsetof(struct head, crc)),
                          record_crc(&t->desc, record, seq), memory_order_relaxed);
    base_device_order();
    atomic_store_explicit((_Atomic uint32_t *)slot, seq, memory_order_release);
    base_device_order(); /* who hears of the record finds it */
}

int64_t schema_table_begin(struct schema_table *t, const void *record)
{
    int64_t slot;
    do /* another writer may have been faster */
        slot = schema_table_place(t, record, NULL, 0);
    while (slot >= 0 && !take_slot(t, slot));
    if (slot >= 0)
        begin_slot(slot_at(t, slot));
    return slot;
}

/* A slot becomes another record, or none. */
static void replace_slot(struct schema_table *t, int64_t slot, const void *record)
{
    uint8_t *at = slot_at(t, slot);
    t->live -= (record_flags(t->desc.kind, at) & SCHEMA_RECORD_LIVE) != 0;
    t->awaited -= is_awaited(t->desc.kind, at);
    commit_slot(t, at, record);
    t->live += (record_flags(t->desc.kind, at) & SCHEMA_RECORD_LIVE) != 0;
    t->awaited += is_awaited(t->desc.kind, at);
}

void schema_table_commit(struct schema_table *t, int64_t slot, const void *record)
{
    BASE_ASSERT(record_flags(t->desc.kind, record) & SCHEMA_RECORD_LIVE);
    BASE_ASSERT(!is_awaited(t->desc.kind, record));
    replace_slot(t, slot, record);
}

int64_t schema_table_put(struct schema_table *t, const void *record)
{
    int64_t slot = schema_table_begin(t, record);
    if (slot >= 0)
        schema_table_commit(t, slot, record);
    return slot;
}

void schema_table_await(struct schema_table *t, const struct schema_endpoint_record *key)
{
    struct schema_endpoint_record record = {
        .pool = key->pool, .flags = SCHEMA_RECORD_AWAITED, .incarnation = key->incarnation};
    int64_t others;
    BASE_ASSERT(t->desc.kind == SCHEMA_TABLE_ENDPOINTS);
    memcpy(record.gid, key->gid, sizeof record.gid);
    int64_t slot = own_slot(t, &record);
    if (slot < 0)
        slot = free_slot(t, &record, NULL, 0, &others);
    if (slot < 0)
        return;
    BASE_ASSERT(!(record_flags(t->desc.kind, slot_at(t, slot)) & SCHEMA_RECORD_LIVE));
    begin_slot(slot_at(t, slot));
    replace_slot(t, slot, &record);
}

bool schema_table_get(const struct schema_table *t, const void *key, void *out)
{
    const int64_t slot = own_slot(t, key);
    if (slot >= 0 && out != NULL)
        memcpy(out, slot_at(t, slot), record_bytes(t->desc.kind));
    return slot >= 0;
}

int64_t schema_table_remove(struct schema_table *t, const void *record)
{
    static const _Alignas(8) uint8_t nothing[MOST_BYTES];
    int64_t slot = own_slot(t, record);
    if (slot < 0)
        return slot;
    begin_slot(slot_at(t, slot));
    replace_slot(t, slot, nothing);
    leave_slot(t, slot);
    return slot;
}
