/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/record.h"

#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/crc32c.h"

enum {
    LEASE_SHIFT = 6,
    MANTISSA_BITS = 6,
    MANTISSA_MAX = (1 << MANTISSA_BITS) - 1,
    EXPONENT_MAX = 15
};

uint32_t schema_tenant_number(const char *name)
{
    return base_crc32c(0, name, strlen(name)) | 1u << 31;
}

uint16_t schema_record_lease_flags(uint64_t period_ns)
{
    uint64_t mantissa = period_ns / BASE_NS_PER_MS;
    uint32_t exponent = 0;
    for (; mantissa > MANTISSA_MAX; mantissa >>= 1)
        exponent++;
    BASE_ASSERT(mantissa > 0);
    if (exponent > EXPONENT_MAX) { /* the longest that can be said, which is shorter */
        mantissa = MANTISSA_MAX;
        exponent = EXPONENT_MAX;
    }
    return (uint16_t)((exponent << MANTISSA_BITS | mantissa) << LEASE_SHIFT);
}

uint64_t schema_record_lease_ns(uint16_t flags)
{
    const uint32_t packed = flags >> LEASE_SHIFT;
    return ((uint64_t)(packed & MANTISSA_MAX) << (packed >> MANTISSA_BITS)) * BASE_NS_PER_MS;
}
