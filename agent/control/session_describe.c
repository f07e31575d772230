/* SPDX-License-Identifier: Apache-2.0 */
/* A session, and its memory, as lanes are told of them. */
#include "agent.h"
#include "arenas.h"
#include "pool.h"
#include "sessions.h"

struct lane_arena agent_arena_describe(const struct arena *arena)
{
    return (struct lane_arena){.iova = arena->mr->addr,
                               .bytes = arena->mem.size,
                               .lkey = arena->mr->lkey,
                               .rkey = arena->mr->rkey};
}

struct lane_command agent_session_describe(const struct agent_session *s)
{
    const struct pool *p = s->pool;
    const uint32_t number = (uint32_t)(s - p->sessions);
    return (struct lane_command){.kind = LANE_COMMAND_SESSION_ADD,
                                 .session = number,
                                 .add = {.id = number,
                                         .rw = s->rings.rw,
                                         .ro = s->rings.ro,
                                         .sq_slots = s->rings.sq_slots,
                                         .cq_slots = s->rings.cq_slots,
                                         .tenant = p->agent->tenants.at[s->tenant - 1].config.id,
                                         .tenant_slot = s->tenant - 1,
                                         .max_vqps = s->rings.max_vqps,
                                         .max_inflight = s->rings.max_inflight,
                                         .max_mrs = s->rings.max_mrs,
                                         .quota = pool_quota(p, s->tenant - 1),
                                         .memory = s->rings.memory,
                                         .arena = agent_arena_describe(s->arena[0])}};
}
