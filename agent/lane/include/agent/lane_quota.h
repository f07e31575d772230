/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant has of what lanes give out, and may have (agent/lane.h). */
#ifndef AGENT_LANE_QUOTA_H
#define AGENT_LANE_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A tenant's quotas; sessions and memory are the control side's to bound. */
enum lane_quota_kind {
    LANE_QUOTA_SESSIONS,
    LANE_QUOTA_MEMORY,
    LANE_QUOTA_VQPS,
    LANE_QUOTA_MRS,
    LANE_QUOTA_CONTROL_OPS,
    LANE_QUOTAS
};

/* What a tenant has of what lanes give out, and may have at most; shared by the sessions and lanes
 * that it has. The control side's memory, while any of its sessions lives. */
struct lane_quota {
    _Atomic uint32_t vqps, mrs;
    _Atomic uint64_t refused[LANE_QUOTAS]; /* what was asked for beyond them */
    _Atomic uint32_t max_vqps, max_mrs;    /* UINT32_MAX: no bound; of what is asked from now on */
    _Atomic uint32_t reserved_mrs;         /* of the lane's max_mrs: agent/reserve.h */
    _Atomic uint64_t control_ops;          /* so far */
    _Atomic uint32_t control_ops_per_s;    /* 0: no bound; as many at once as in a second */
    _Atomic uint64_t control_due_ns;       /* quota.c's alone */
};

/* A control operation: whatever a worker asks for beside data operations, be it of a lane (to look
 * up an endpoint; to connect a queue pair; to register, deregister or import a region, or to ask
 * whether it was revoked) or of the control side. All of a tenant's share one budget. False: it is
 * used up, which is counted as refused; try again later. now_ns: of lane_step()'s clock. Any
 * thread. */
bool lane_quota_ask(struct lane_quota *quota, uint64_t now_ns);
/* Its place is another tenant's from now on: what was counted, and what is owed of the budget of
 * control operations, was the former one's. When that has no session any more. */
void lane_quota_forget(struct lane_quota *quota);

#endif
