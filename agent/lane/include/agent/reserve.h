/* SPDX-License-Identifier: Apache-2.0 */
/* Who may take one more of what all tenants have together: regions, registrations.
 *
 * Half of it is reserved, an equal part for each tenant that there is; the other half is whose
 * comes first. So nobody can take all of it as long as there is another tenant, and one that is
 * alone has it all.
 *
 * No I/O. Any thread. */
#ifndef AGENT_RESERVE_H
#define AGENT_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

/* What is reserved for each of so many tenants. */
uint32_t lane_reserve_each(uint64_t capacity, uint32_t tenants);

/* has[0 .. count): what each tenant has; reserved[0 .. count): what is reserved for it, 0 for one
 * that is not there. Whether the tenant `which` may have one more of `capacity`. */
bool lane_reserve_allows(uint64_t capacity, const uint32_t has[], const uint32_t reserved[],
                         uint32_t count, uint32_t which);

/* The same for whoever counts along: what one tenant lacks of what is reserved for it; and whether
 * one that lacks so much may have one more, where all together have `used` and lack `kept`. */
uint32_t lane_reserve_lacks(uint32_t has, uint32_t reserved);
bool lane_reserve_leaves(uint64_t capacity, uint64_t used, uint64_t kept, uint32_t lacks);

#endif
