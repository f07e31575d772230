/* SPDX-License-Identifier: Apache-2.0 */
/* Flows of tenants in quarantine, each its tenant's alone: found by their peer's slot, and each
 * tenant's in turn. Private to agent/lane, and the lane thread's.
 *
 * A tenant in quarantine may have as many as any other has, thousands. So buckets are of few slots
 * each, and what is to look again at all flows of a tenant does so at a few in a pass. */
#ifndef LANE_QUARANTINED_FLOWS_H
#define LANE_QUARANTINED_FLOWS_H

#include <stdint.h>

#include "resolve/flow.h"

struct lane;

enum {
    QUARANTINED_SLOTS = 8,  /* of peers in a bucket, at most, where there are many */
    QUARANTINED_LOOKS = 16, /* at flows in a pass */
    QUARANTINED_OF_EACH = 4 /* at one tenant's flows in a pass */
};

struct quarantined_flows {
    struct flow **bucket; /* by the peer's slot */
    uint32_t buckets;     /* a power of two */
    uint32_t count;       /* of all flows */
    struct quarantined_tenant {
        struct flow_list flows; /* those that have looked last are last */
        uint32_t count;
        uint32_t left; /* so many, the first ones, are to look again */
    } * of;            /* by its place */
    uint32_t hand;     /* whose turn it is to look first */
};

/* 0 or -ENOMEM; freed in either case. */
int lane_quarantined_flows_new(struct lane *l);
void lane_quarantined_flows_free(struct lane *l);
void lane_quarantined_flow_link(struct lane *l, struct flow *f);
void lane_quarantined_flow_unlink(struct lane *l, struct flow *f);
/* What waits at flows of tenants that are marked (culprit.rejoins) looks again: at some of them.
 * lane->rejoins says whether more are left, for the next pass. */
void lane_quarantined_flows_rejoin(struct lane *l);

/* The flows of some few slots, with this one's among them. */
static inline struct flow **quarantined_bucket(const struct quarantined_flows *all, uint32_t slot)
{
    return &all->bucket[slot & (all->buckets - 1)];
}

#endif
