/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: the kernel's for keys, a seeded generator for tests and fault plans. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Fills buffer from getrandom(). 0 or -errno. Any thread. */
int base_random_bytes(void *buffer, size_t bytes);

/* splitmix64: the state is the caller's; the same seed gives the same numbers. */
struct base_prng {
    uint64_t state;
};

static inline void base_prng_seed(struct base_prng *p, uint64_t seed)
{
    p->state = seed;
}

static inline uint64_t base_prng_next(struct base_prng *p)
{
    uint64_t z = p->state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* 0 .. bound - 1 (bound > 0; the bias is below bound / 2^64). */
static inline uint64_t base_prng_below(struct base_prng *p, uint64_t bound)
{
    return (uint64_t)(((unsigned __int128)base_prng_next(p) * bound) >> 64);
}

#endif
