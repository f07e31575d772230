/* SPDX-License-Identifier: Apache-2.0 */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

static uint64_t rotate_left(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void mix_rounds(uint64_t v[4], int rounds)
{
    for (; rounds > 0; rounds--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate_left(v[1], 13) ^ v[0];
        v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] = rotate_left(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate_left(v[1], 17) ^ v[2];
        v[3] = rotate_left(v[3], 21) ^ v[0];
        v[2] = rotate_left(v[2], 32);
    }
}

static void mix_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix_rounds(v, 2);
    v[0] ^= word;
}

void base_siphash128(const uint64_t key[2], const void *bytes, size_t length, uint8_t out[16])
{
    const uint8_t *at = bytes;
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull ^ 0xee,
                     key[0] ^ 0x6c7967656e657261ull, key[1] ^ 0x7465646279746573ull};
    uint64_t word, last = (uint64_t)length << 56, half[2];
    for (size_t left = length; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        mix_word(v, le64toh(word));
    }
    for (size_t i = 0; i < length % 8; i++)
        last |= (uint64_t)at[i] << 8 * i;
    mix_word(v, last);
    v[2] ^= 0xee;
    mix_rounds(v, 4);
    half[0] = htole64(v[0] ^ v[1] ^ v[2] ^ v[3]);
    v[1] ^= 0xdd;
    mix_rounds(v, 4);
    half[1] = htole64(v[0] ^ v[1] ^ v[2] ^ v[3]);
    memcpy(out, half, 16);
}
