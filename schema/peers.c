/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/peers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"

enum {
    MAX_PEERS = 1 << 24,
    ENTRIES_PER_PEER = 3, /* at the least: clusters of PROBES then practically never form */
    MIN_LOG2_INDEX = 6,
    MAX_LOG2_INDEX = 27,
    ALIGN = 64,
};

/* What follows the sequence in a peer, word by word: readers copy while the writer writes. */
enum { PEER_WORDS = (sizeof(struct schema_peer) - sizeof(uint32_t)) / sizeof(uint32_t) };
union body {
    struct {
        uint32_t gen, incarnation;
        uint16_t pool, valid;
        uint8_t gid[16];
    };
    uint32_t words[PEER_WORDS];
};
static_assert(sizeof(union body) == sizeof(struct schema_peer) - sizeof(uint32_t), "layout");
static_assert(offsetof(union body, gid) + 4 == offsetof(struct schema_peer, gid), "layout");
static_assert(offsetof(union body, pool) + 4 == offsetof(struct schema_peer, pool), "layout");

static const uint32_t *index_of(const struct schema_peers_header *h)
{
    return (const uint32_t *)((const uint8_t *)h + h->index_offset);
}

static struct schema_peer *peer_of(const struct schema_peers_header *h, uint32_t slot)
{
    return (struct schema_peer *)((uint8_t *)(uintptr_t)h + h->peers_offset) + slot;
}

static uint32_t *words_of(struct schema_peer *p)
{
    return &p->gen;
}

static uint32_t log2_index_for(uint32_t max_peers)
{
    uint32_t log2_index = MIN_LOG2_INDEX;
    while ((1ull << log2_index) < (uint64_t)max_peers * ENTRIES_PER_PEER)
        log2_index++;
    return log2_index;
}

static uint64_t align_up(uint64_t bytes)
{
    return (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static void compute_layout(uint32_t max_peers, struct schema_peers_header *h)
{
    BASE_ASSERT(max_peers >= 1 && max_peers <= MAX_PEERS);
    h->max_peers = max_peers;
    h->log2_index = log2_index_for(max_peers);
    h->index_offset = align_up(sizeof *h);
    h->peers_offset = align_up(h->index_offset + (sizeof(uint32_t) << h->log2_index));
    h->bytes = h->peers_offset + (uint64_t)max_peers * sizeof(struct schema_peer);
}

uint64_t schema_peers_bytes(uint32_t max_peers)
{
    struct schema_peers_header h;
    compute_layout(max_peers, &h);
    return h.bytes;
}

void schema_peers_format(void *memory, uint32_t max_peers, uint64_t seed)
{
    struct schema_peers_header *h = memory;
    compute_layout(max_peers, h);
    h->seed = seed;
    h->version = SCHEMA_PEERS_VERSION;
    h->magic = SCHEMA_PEERS_MAGIC;
}

int schema_peers_check(const void *memory, uint64_t bytes)
{
    struct schema_peers_header h;
    if (bytes < sizeof h)
        return -EPROTO;
    memcpy(&h, memory, sizeof h);
    if (h.magic != SCHEMA_PEERS_MAGIC || h.version != SCHEMA_PEERS_VERSION)
        return -EPROTO;
    if (h.max_peers < 1 || h.max_peers > MAX_PEERS || h.log2_index < MIN_LOG2_INDEX ||
        h.log2_index > MAX_LOG2_INDEX || h.bytes > bytes)
        return -EPROTO;
    if (h.index_offset % ALIGN != 0 || h.peers_offset % ALIGN != 0 || h.index_offset < sizeof h ||
        h.index_offset > h.bytes || h.peers_offset > h.bytes)
        return -EPROTO;
    if (h.peers_offset < h.index_offset ||
        h.peers_offset - h.index_offset < sizeof(uint32_t) << h.log2_index ||
        h.bytes - h.peers_offset < (uint64_t)h.max_peers * sizeof(struct schema_peer))
        return -EPROTO;
    return 0;
}

/* A whole copy, or false while it is written. */
static bool copy_peer(const struct schema_peers_header *h, uint32_t slot, union body *out)
{
    struct schema_peer *p = peer_of(h, slot);
    uint32_t before = atomic_load_explicit(&p->seq, memory_order_acquire);
    if ((before & 1) != 0)
        return false;
    for (size_t i = 0; i < PEER_WORDS; i++)
        out->words[i] = __atomic_load_n(words_of(p) + i, __ATOMIC_RELAXED);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&p->seq, memory_order_relaxed) == before;
}

static bool is_key(const union body *b, const uint8_t gid[16], uint16_t pool)
{
    return b->valid != 0 && b->pool == pool && memcmp(b->gid, gid, sizeof b->gid) == 0;
}

/* The index entries in which a key can be: from its home on, round the end of the index. */
struct probes {
    const uint32_t *index;
    uint64_t home, mask;
};

static struct probes probes_of(const struct schema_peers_header *h, const uint8_t gid[16],
                               uint16_t pool)
{
    return (struct probes){.index = index_of(h),
                           .home = base_hash_gid(gid, pool, h->seed),
                           .mask = (1ull << h->log2_index) - 1};
}

static const uint32_t *entry_of(const struct probes *p, uint32_t probe)
{
    return p->index + ((p->home + probe) & p->mask);
}

/* Entries are cleared by removal, so an empty one does not end the search. */
static int64_t search_index(const struct schema_peers_header *h, const struct probes *probes,
                            const uint8_t gid[16], uint16_t pool, union body *out)
{
    for (uint32_t probe = 0; probe < SCHEMA_PEERS_PROBES; probe++) {
        uint32_t entry = __atomic_load_n(entry_of(probes, probe), __ATOMIC_ACQUIRE);
        if (entry == 0 || entry > h->max_peers)
            continue;
        if (copy_peer(h, entry - 1, out) && is_key(out, gid, pool))
            return entry - 1;
    }
    return -ENOENT;
}

int schema_peers_find(const void *memory, const uint8_t gid[16], uint16_t pool, uint32_t *slot,
                      uint32_t *gen)
{
    const struct probes probes = probes_of(memory, gid, pool);
    union body b;
    int64_t found = search_index(memory, &probes, gid, pool, &b);
    if (found < 0)
        return (int)found;
    *slot = (uint32_t)found;
    *gen = b.gen;
    return 0;
}

uint32_t schema_peers_beat(const void *memory)
{
    const struct schema_peers_header *h = memory;
    return atomic_load_explicit(&h->beat, memory_order_relaxed);
}

void schema_peers_live(void *memory)
{
    struct schema_peers_header *h = memory;
    uint32_t next = atomic_load_explicit(&h->beat, memory_order_relaxed) + 1;
    atomic_store_explicit(&h->beat, next == 0 ? 1 : next, memory_order_relaxed);
}

static void write_peer(struct schema_peer *p, const union body *b)
{
    uint32_t seq = atomic_load_explicit(&p->seq, memory_order_relaxed);
    BASE_ASSERT((seq & 1) == 0);
    atomic_store_explicit(&p->seq, seq + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < PEER_WORDS; i++)
        __atomic_store_n(words_of(p) + i, b->words[i], __ATOMIC_RELAXED);
    atomic_store_explicit(&p->seq, seq + 2, memory_order_release);
}

static uint32_t next_gen(uint32_t gen)
{
    return gen + 1 == 0 ? 1 : gen + 1;
}

/* A slot that nobody has, from the hint on. */
static int64_t free_slot(const struct schema_peers_header *h, uint32_t hint)
{
    uint32_t slot = hint % h->max_peers;
    for (uint32_t i = 0; i < h->max_peers; i++) {
        if (peer_of(h, slot)->valid == 0)
            return slot;
        slot = slot + 1 == h->max_peers ? 0 : slot + 1;
    }
    return -ENOSPC;
}

int64_t schema_peers_put(void *memory, uint32_t slot_hint, const uint8_t gid[16], uint16_t pool,
                         uint32_t incarnation)
{
    const struct schema_peers_header *h = memory;
    const struct probes probes = probes_of(h, gid, pool);
    uint32_t *entry = NULL;
    union body b;
    int64_t slot = search_index(h, &probes, gid, pool, &b);
    if (slot >= 0) {
        if (incarnation > b.incarnation) {
            b.incarnation = incarnation;
            b.gen = next_gen(b.gen);
            write_peer(peer_of(h, (uint32_t)slot), &b);
        }
        return slot; /* an older incarnation is old news */
    }
    for (uint32_t probe = 0; probe < SCHEMA_PEERS_PROBES && entry == NULL; probe++)
        if (*entry_of(&probes, probe) == 0)
            entry = (uint32_t *)(uintptr_t)entry_of(&probes, probe);
    slot = entry == NULL ? -ENOSPC : free_slot(h, slot_hint);
    if (slot < 0)
        return slot;
    struct schema_peer *p = peer_of(h, (uint32_t)slot);
    b = (union body){.gen = next_gen(p->gen), .incarnation = incarnation, .pool = pool, .valid = 1};
    memcpy(b.gid, gid, sizeof b.gid);
    write_peer(p, &b);
    __atomic_store_n(entry, (uint32_t)slot + 1, __ATOMIC_RELEASE);
    return slot;
}

void schema_peers_remove(void *memory, uint32_t slot)
{
    const struct schema_peers_header *h = memory;
    union body b;
    BASE_ASSERT(slot < h->max_peers);
    struct schema_peer *p = peer_of(h, slot);
    BASE_ASSERT(copy_peer(h, slot, &b));
    if (b.valid == 0)
        return;
    const struct probes probes = probes_of(h, b.gid, b.pool);
    for (uint32_t probe = 0; probe < SCHEMA_PEERS_PROBES; probe++) {
        uint32_t *entry = (uint32_t *)(uintptr_t)entry_of(&probes, probe);
        if (*entry == slot + 1) {
            __atomic_store_n(entry, 0, __ATOMIC_RELEASE);
            break;
        }
    }
    b.valid = 0;
    write_peer(p, &b);
}
