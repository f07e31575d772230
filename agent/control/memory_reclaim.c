/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that sessions leave behind in malloc. */
#include "agent.h"
#include "base/clock.h" /* BASE_NS_PER_S */
#include "due.h"
#include "memory_reclaim.h"

static void on_reclaimed(void *agent)
{
    struct agent *a = agent;
    a->reclaiming = false;
}

uint64_t agent_memory_reclaim_due_ns(const struct agent *a)
{
    return due_if(a->unmade > 0 && !a->reclaiming, a->reclaimed_ns + BASE_NS_PER_S);
}

/* What one task thread allocates another one frees, and malloc keeps it for each of them: it gives
 * back what many sessions left. */
void agent_memory_reclaim(struct agent *a)
{
    if (world_now_ns(a->world) < agent_memory_reclaim_due_ns(a))
        return;
    a->unmade = 0;
    a->reclaimed_ns = world_now_ns(a->world);
    a->reclaiming = true;
    a->reclaim = (struct world_task){.work = WORLD_RECLAIM_MEMORY, .done = on_reclaimed, .user = a};
    world_run(a->world, &a->reclaim);
}
