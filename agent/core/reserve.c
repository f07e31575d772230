/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/reserve.h"

uint32_t kedge_reserve_each(uint64_t capacity, uint32_t tenants)
{
    if (tenants == 0 || capacity < tenants)
        return 0;
    const uint64_t each = capacity / 2 / tenants;
    return each == 0 ? 1 : (uint32_t)each;
}

bool kedge_reserve_allows(uint64_t capacity, const uint32_t has[], const uint32_t reserved[],
                          uint32_t count, uint32_t which)
{
    uint64_t used = 0, kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        used += has[i];
        if (i != which && reserved[i] > has[i])
            kept += reserved[i] - has[i];
    }
    return used < capacity && (has[which] < reserved[which] || used + kept < capacity);
}
