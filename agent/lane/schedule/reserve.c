/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/reserve.h"

uint32_t lane_reserve_each(uint64_t capacity, uint32_t tenants)
{
    if (tenants == 0 || capacity < tenants)
        return 0;
    const uint64_t each = capacity / 2 / tenants;
    return each == 0 ? 1 : (uint32_t)each;
}

uint32_t lane_reserve_lacks(uint32_t has, uint32_t reserved)
{
    return reserved > has ? reserved - has : 0;
}

bool lane_reserve_leaves(uint64_t capacity, uint64_t used, uint64_t kept, uint32_t lacks)
{
    return used < capacity && (lacks > 0 || used + kept < capacity);
}

bool lane_reserve_allows(uint64_t capacity, const uint32_t has[], const uint32_t reserved[],
                         uint32_t count, uint32_t which)
{
    uint64_t used = 0, kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        used += has[i];
        kept += lane_reserve_lacks(has[i], reserved[i]);
    }
    return lane_reserve_leaves(capacity, used, kept,
                               lane_reserve_lacks(has[which], reserved[which]));
}
