/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant has of its quotas. Any thread. */
#ifndef LANE_QUOTA_H
#define LANE_QUOTA_H

#include "agent/lane.h"

/* One more of what the tenant has (its vqps or mrs): false when it has all that it may. */
bool lane_quota_take(struct lane_quota *quota, enum lane_quota_kind which, _Atomic uint32_t *used,
                     uint32_t most);
void lane_quota_give(_Atomic uint32_t *used);
/* A control operation that is done in any case: what comes after it waits for the longer, up to a
 * second more. */
void lane_quota_charge(struct lane_quota *quota, uint64_t now_ns);

#endif
