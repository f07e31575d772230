/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that the operator revokes: what the rest of the agent tells of them. Control thread. */
#ifndef CONTROL_LEASES_H
#define CONTROL_LEASES_H

#include <stdint.h>

struct agent;
struct lane_event;
struct pool;
struct revocation;
struct world_request;

struct leases {
    struct revocation *list; /* under way */
    uint32_t tag;
    uint64_t revoked, forced; /* leases; arenas */
};

/* REVOKED, ARENA_REREGISTERED. */
void agent_leases_event(struct pool *p, const struct lane_event *e);
/* Now and then: answers who has waited for long. */
void agent_leases_tick(struct pool *p);
uint64_t agent_leases_due_ns(const struct pool *p);
/* After the lane thread has ended, before arenas are retired. */
void agent_leases_stop(struct pool *p);

/* Chooses agent->serial: 0 or -errno. */
int agent_leases_start(struct agent *a);
/* A request of the admin socket gets no answer any more. */
void agent_leases_forget_request(struct pool *p, const struct world_request *r);

#endif
