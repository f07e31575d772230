/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded hashes of short keys, for tables. Not for secrets. Any thread. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>
#include <string.h>

/* Mixes 64 bits so that each input bit moves half of the output's. */
static inline uint64_t base_hash_u64(uint64_t x, uint64_t seed)
{
    x += seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    return x ^ (x >> 32);
}

/* A GID and a number. */
static inline uint64_t base_hash_gid(const uint8_t gid[16], uint64_t number, uint64_t seed)
{
    uint64_t a, b;
    memcpy(&a, gid, 8);
    memcpy(&b, gid + 8, 8);
    return base_hash_u64(base_hash_u64(a ^ (number << 40), seed) ^ b, seed);
}

#endif
