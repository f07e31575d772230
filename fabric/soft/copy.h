/* SPDX-License-Identifier: Apache-2.0 */
/* Moving bytes as a device does. Any thread. */
#ifndef SOFT_COPY_H
#define SOFT_COPY_H

#include <stddef.h>
#include <stdint.h>

/* Copies, racing with whoever uses the memory too early. Aligned 1, 2, 4 and 8 bytes are copied
 * whole. Ranges may overlap. */
void soft_copy(uint8_t *to, const uint8_t *from, size_t n);

#endif
