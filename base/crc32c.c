/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include <string.h>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#define STEP8(crc, v) ((uint32_t)_mm_crc32_u64(crc, v))
#define STEP4(crc, v) _mm_crc32_u32(crc, v)
#define STEP1(crc, v) _mm_crc32_u8(crc, v)
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define STEP8(crc, v) __crc32cd(crc, v)
#define STEP4(crc, v) __crc32cw(crc, v)
#define STEP1(crc, v) __crc32cb(crc, v)
#endif

/* Four bits at a time: 16 entries, small enough to be read and trusted. Reflected polynomial
 * 0x82f63b78. */
uint32_t base_crc32c_portable(uint32_t crc, const void *bytes, size_t length)
{
    static const uint32_t nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const uint8_t *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ nibble[crc & 15];
        crc = (crc >> 4) ^ nibble[crc & 15];
    }
    return ~crc;
}

uint32_t base_crc32c(uint32_t crc, const void *bytes, size_t length)
{
#ifdef STEP8
    const uint8_t *p = bytes;
    crc = ~crc;
    for (; length >= 8; length -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        crc = STEP8(crc, v);
    }
    if (length >= 4) { /* a record is 60 bytes: seven steps and this one */
        uint32_t v;
        memcpy(&v, p, 4);
        crc = STEP4(crc, v);
        length -= 4, p += 4;
    }
    for (; length > 0; length--, p++)
        crc = STEP1(crc, *p);
    return ~crc;
#else
    return base_crc32c_portable(crc, bytes, length);
#endif
}
