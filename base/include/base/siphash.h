/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 with 128 bits of output (Aumasson and Bernstein): a keyed hash, for keys of tables
 * whose readers cannot foresee each other's. Any thread. */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* Of length bytes, under a key of 128 bits. */
void base_siphash128(const uint64_t key[2], const void *bytes, size_t length, uint8_t out[16]);

#endif
