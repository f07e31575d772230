/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of the shared tables. Every slot begins with its owner word. */
#include "soft/soft_tables.h"

#include <errno.h>
#include <fcntl.h>

#include "soft/soft.h"

int soft_reserve(const struct soft_fab *f, const void *at, size_t bytes)
{
    off_t offset = (const uint8_t *)at - (const uint8_t *)f->shared;
    if (fallocate(f->fd, FALLOC_FL_KEEP_SIZE, offset, (off_t)bytes) == 0 || errno == EOPNOTSUPP)
        return 0; /* a file system that cannot promise room gets no promise from us either */
    return -errno;
}

int64_t soft_claim(struct soft_fab *f, void *table, size_t slot_bytes, size_t bytes, uint32_t count,
                   uint32_t from, _Atomic uint32_t *high)
{
    for (uint32_t n = 0; n < count; n++) {
        uint32_t i = from + n < count ? from + n : from + n - count;
        uint8_t *slot = (uint8_t *)table + i * slot_bytes;
        _Atomic soft_owner *word = (_Atomic soft_owner *)slot;
        uint32_t known = atomic_load(high);
        soft_owner expected = 0;
        if (i < known ? atomic_load(word) != 0 : soft_reserve(f, slot, bytes) != 0) {
            if (i >= known)
                return -ENOSPC;
            continue;
        }
        if (!atomic_compare_exchange_strong(word, &expected, f->owner))
            continue;
        while (known <= i && !atomic_compare_exchange_weak(high, &known, i + 1))
            ;
        return i;
    }
    return -ENOSPC;
}
