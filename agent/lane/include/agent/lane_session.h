/* SPDX-License-Identifier: Apache-2.0 */
/* A session as a lane sees it, and what a lane keeps for one (agent/lane.h). */
#ifndef AGENT_LANE_SESSION_H
#define AGENT_LANE_SESSION_H

#include <stdint.h>

#include "schema/session.h"

struct lane_quota;

/* Registered memory that a worker may use. */
struct lane_arena {
    uint64_t iova; /* where its registration has its first byte; the lane touches none of
                    * them, but for messages (lane_command.touch) */
    uint64_t bytes;
    uint32_t lkey, rkey; /* real */
};

/* What a lane keeps for one session. The control side makes it, off the lane's thread since that
 * takes system calls and page faults; it is the lane's from SESSION_ADD to SESSION_OVER. NULL: no
 * memory. Any thread. */
struct lane_memory;
struct lane_memory *lane_memory_new(uint32_t max_grants, uint32_t max_inflight, uint32_t max_vqps,
                                    uint32_t max_mrs);
void lane_memory_free(struct lane_memory *memory);
/* Before its session may go to another lane for the first time: 0 or -ENOMEM. */
int lane_memory_let_move(struct lane_memory *memory);
/* The name of the tenant whose session it will be, cut off behind LANE_TENANT_NAME bytes; before
 * SESSION_ADD. */
void lane_memory_set_tenant(struct lane_memory *memory, const char *name);

/* A session as the lane sees it. Mappings are the control side's until LANE_EVENT_SESSION_OVER. */
struct lane_session {
    uint32_t id; /* below max_sessions, not in use; names it in commands and events */
    struct schema_session_rw *rw;
    struct schema_session_ro *ro; /* filled in: geometry, tenant, gid; doorbell set */
    uint32_t sq_slots, cq_slots;  /* powers of two */
    uint32_t tenant;
    uint32_t tenant_slot; /* below max_tenants: which window and whose turn it is */
    uint32_t max_vqps, max_inflight, max_mrs;
    struct lane_quota *quota;   /* the tenant's, borrowed */
    struct lane_memory *memory; /* for these numbers and the lane's max_grants */
    struct lane_arena arena;    /* number 0 */
};

#endif
