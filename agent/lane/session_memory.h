/* SPDX-License-Identifier: Apache-2.0 */
/* What a session has that is made by the control side and outlives its turn in the lane. Private to
 * agent/lane; others read what is shown, at any time. */
#ifndef LANE_SESSION_MEMORY_H
#define LANE_SESSION_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

#include "agent/lane.h"
#include "batch_state.h"
#include "counter_state.h"
#include "request/region.h"
#include "schedule/wait.h"

/* What others see of what a session waits for (waits.c), at any time. */
struct session_shown {
    const _Atomic uint32_t *_Atomic inflight; /* the session's; NULL: it has not begun yet */
    const struct schema_session_rw *rw;
    const struct schema_session_ro *ro;
    uint32_t sq_slots, cq_slots, max_inflight;
    _Atomic uint32_t waits[VQP_WAITS]; /* VQPs, by what they wait for */
    _Atomic uint32_t queued;           /* requests in the queues of VQPs */
    _Atomic uint32_t held; /* enum schema_wait: why its ring is not looked at, or NOTHING */
    _Atomic uint64_t operations, bytes; /* posted so far, also again */
};

/* VQPs of each session that no worker names, by which the lane READs large messages for it. */
enum { LANE_OWN_VQPS = 8 };

/* The endpoint of a VQP, by what another lane knows it by too. */
struct vqp_endpoint {
    uint8_t gid[16];
    uint32_t incarnation; /* 0: it is none that is known */
};

/* What one lane hands another with a session (lodgers.h). Written by the one that gives it, before
 * its event, and read by the other, after its command. */
struct session_handed {
    uint32_t sq_head, cq_head, cq_tail, cq_published, told_head, told_armed, wrong_keys;
    uint32_t vqps_high, grants_used, arenas;
    uint32_t fault; /* enum schema_reason, for which it ends when it is back; or 0 */
    uint64_t wrong_ns;
    struct wr *free_wr;
    struct lane_arena arena[LANE_SESSION_MAX_ARENAS];
    struct vqp_endpoint endpoint[LANE_MOVED_VQPS];
};

/* Made by the control side, which reads the leases, and what is shown of the session. */
struct lane_memory {
    struct wr *wrs, *free_wr;
    struct vqp *vqps;
    struct region *regions;
    struct grant *grants;
    struct withdrawal withdrawals[WITHDRAWALS];
    struct batch batches[SCHEMA_BATCHES];
    struct counter counters[SCHEMA_COUNTERS];
    _Atomic uint32_t regions_high; /* so many places were ever used */
    uint64_t *regions_taken;       /* bit i: place i is not free */
    /* Places of regions by key, and of grants by what they are: the first of each bucket, and the
     * next of each place, all + 1. */
    uint32_t region_mask, grant_mask;
    uint32_t *region_first, *region_next, *grant_first, *grant_next;
    uint64_t grant_seed; /* of the lane that has its session: of the hashes of its grants */
    struct session_handed *handed; /* NULL: it has gone to no other lane */
    struct session_shown shown;
    char tenant[LANE_TENANT_NAME + 1]; /* its name */
};

struct grant { /* an imported token */
    uint32_t vkey;
    uint8_t secret[16];
};

#endif
