/* SPDX-License-Identifier: Apache-2.0 */
/* Says to a pool's workers that they are to go, or may stay. */
#include <stdatomic.h>

#include "pool.h"
#include "sessions.h"

void agent_sessions_drain(struct pool *p, bool drains)
{
    for (uint64_t i = 0; p->sessions != NULL && i < p->config->max_sessions; i++) {
        struct schema_session_ro *ro = p->sessions[i].rings.ro;
        if (p->sessions[i].stage != STAGE_LIVE || atomic_load(&ro->drains) == drains)
            continue;
        atomic_store(&ro->drains, drains);
        if ((atomic_load(&p->sessions[i].rings.rw->armed) & 1) != 0)
            world_lane_tell(p->world, &p->stepping, (uint32_t)i);
        if (atomic_load(&p->sessions[i].rings.rw->want_wake) == 0)
            continue;
        atomic_fetch_add(&ro->wake, 1);
        world_wake(p->world, &ro->wake);
    }
}
