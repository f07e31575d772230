/* SPDX-License-Identifier: Apache-2.0 */
/* The peer table as workers read it: which endpoints this host knows. Never a key, never an
 * address.
 *
 * One sealed memfd per agent: a header, a hash index, the peers. The agent's lane writes, workers
 * read their read-only mapping at any time. Each peer is guarded by a sequence (odd while written).
 * A slot that is given to another endpoint gets a new generation; BIND carries it and the lane
 * compares. */
#ifndef SCHEMA_PEERS_H
#define SCHEMA_PEERS_H

#include <assert.h>
#include <stdint.h>

#define SCHEMA_PEERS_MAGIC   0x4b504552u /* "KPER" */
#define SCHEMA_PEERS_VERSION 1
#define SCHEMA_PEERS_PROBES  32 /* index entries from home that a key can be in */

struct schema_peer {
    _Atomic uint32_t seq;
    uint32_t gen; /* of this slot; 0: never used */
    uint32_t incarnation;
    uint16_t pool;
    uint16_t valid; /* 0: forgotten */
    uint8_t gid[16];
};
static_assert(sizeof(struct schema_peer) == 32, "two in a cache line");

struct schema_peers_header {
    uint32_t magic;
    uint16_t version;
    uint16_t reserved;
    uint32_t max_peers;  /* slots */
    uint32_t log2_index; /* entries of the index: uint32_t, slot + 1 or 0 */
    uint64_t seed;
    uint64_t index_offset, peers_offset; /* from the header, bytes */
    uint64_t bytes;                      /* of the whole */
    /* The lane's sign of life, on a line of its own: 0 before its first pass, and never again.
     * While the lane is awake it changes every few milliseconds, and once a second at least while
     * the lane sleeps; a doorbell wakes it. */
    _Alignas(64) _Atomic uint32_t beat;
};

/* What the mapping takes for max_peers (1..2^24). */
uint64_t schema_peers_bytes(uint32_t max_peers);
/* Lays out zeroed memory. Writer. */
void schema_peers_format(void *memory, uint32_t max_peers, uint64_t seed);
/* Checks a header that came from elsewhere against the mapping's size. 0 or -EPROTO. */
int schema_peers_check(const void *memory, uint64_t bytes);
/* Finds (gid, pool): 0, *slot and *gen; or -ENOENT. Any thread of any process; never blocks: a peer
 * that is being written counts as unknown. No system call. */
int schema_peers_find(const void *memory, const uint8_t gid[16], uint16_t pool, uint32_t *slot,
                      uint32_t *gen);

/* The lane's sign of life as it is now: one that stays the same is no life. Any thread of any
 * process. */
uint32_t schema_peers_beat(const void *memory);

/* Writer (one thread). Shows that it lives. */
void schema_peers_live(void *memory);
/* Writer. Adds or updates (gid, pool), returning its slot; the generation changes when
 * the slot gets another key or a newer incarnation. -ENOSPC: no slot or no index entry within
 * PROBES. */
int64_t schema_peers_put(void *memory, uint32_t slot_hint, const uint8_t gid[16], uint16_t pool,
                         uint32_t incarnation);
/* Forgets a slot. */
void schema_peers_remove(void *memory, uint32_t slot);

#endif
