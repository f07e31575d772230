/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of the shared tables (layout.h): which are free, and whether their memory is there.
 *
 * Any thread; blocks at most for as long as the file system takes. */
#ifndef SOFT_TABLES_H
#define SOFT_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "soft/layout.h"

struct soft_fab;

/* The first free slot of a table at or after `from`, which goes on at the table's beginning,
 * becomes this context's: its index below count, or -ENOSPC. The first `bytes` of it exist in
 * memory then. high: the table's count of slots that were ever used. The slot is given back by
 * storing 0 in its owner word, which is its first. */
int64_t soft_claim(struct soft_fab *f, void *table, size_t slot_bytes, size_t bytes, uint32_t count,
                   uint32_t from, _Atomic uint32_t *high);
/* Makes the memory of [at, at + bytes) of the shared tables exist: what a full tmpfs refuses is an
 * error here and not a SIGBUS later. 0 or -errno. */
int soft_reserve(const struct soft_fab *f, const void *at, size_t bytes);

/* The least power of two that is not below n, for 1 to 2^31. */
static inline uint32_t soft_power_of_two(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p <<= 1;
    return p;
}

#endif
