/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli): the processor's instruction where there is one, else a table. Any thread.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues crc (0 to begin) over bytes. base_crc32c(0, "123456789", 9) == 0xe3069283. */
uint32_t base_crc32c(uint32_t crc, const void *bytes, size_t length);
/* The same without the instruction. */
uint32_t base_crc32c_portable(uint32_t crc, const void *bytes, size_t length);

#endif
