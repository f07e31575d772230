/* SPDX-License-Identifier: Apache-2.0 */
#include "random.h"

#include <string.h>

#include "base/crc32c.h"

struct base_prng play_random_of(uint64_t seed, const char *purpose, uint64_t number)
{
    struct base_prng r;
    base_prng_seed(&r, seed);
    r.state = base_prng_next(&r) ^ ((uint64_t)base_crc32c(0, purpose, strlen(purpose)) << 32);
    r.state = base_prng_next(&r) ^ number;
    (void)base_prng_next(&r);
    return r;
}

uint64_t play_random_between(struct base_prng *r, uint64_t least, uint64_t most)
{
    return least + base_prng_below(r, most - least + 1);
}

bool play_random_happens(struct base_prng *r, uint32_t ppm)
{
    return base_prng_below(r, 1000000) < ppm;
}

/* -ln(u) by the halvings that u takes, and a straight line between two of them. */
uint64_t play_random_wait(struct base_prng *r, uint64_t mean_ns)
{
    enum { MOST_HALVINGS = 14, PARTS = 1 << 10 };
    const uint64_t ln2_of_1024 = 710, u = base_prng_next(r);
    const uint64_t halvings = u == 0 ? MOST_HALVINGS : (uint64_t)__builtin_clzll(u);
    const uint64_t whole = halvings < MOST_HALVINGS ? halvings : MOST_HALVINGS;
    const uint64_t parts = whole * PARTS + base_prng_below(r, PARTS);
    return mean_ns / PARTS * parts / PARTS * ln2_of_1024 + mean_ns / PARTS;
}

void play_random_fill(struct base_prng *r, void *bytes, uint64_t n)
{
    for (uint64_t at = 0; at < n; at += sizeof(uint64_t)) {
        const uint64_t word = base_prng_next(r);
        memcpy((uint8_t *)bytes + at, &word, n - at < sizeof word ? n - at : sizeof word);
    }
}
