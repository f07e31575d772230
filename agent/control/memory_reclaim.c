/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that sessions leave behind in malloc. */
#include "agent.h"
#include "base/clock.h" /* BASE_NS_PER_S */
#include "memory_reclaim.h"

static void on_reclaimed(void *agent)
{
    struct agent *a = agent;
    a->reclaiming = false;
}

/* What one task thread allocates another one frees, and malloc keeps it for each of them: it gives
 * back what many sessions left. */
void memory_reclaim(struct agent *a)
{
    uint64_t now = world_now_ns(a->world);
    if (a->unmade == 0 || a->reclaiming || now - a->reclaimed_ns < BASE_NS_PER_S)
        return;
    a->unmade = 0;
    a->reclaimed_ns = now;
    a->reclaiming = true;
    a->reclaim = (struct world_task){.work = WORLD_RECLAIM_MEMORY, .done = on_reclaimed, .user = a};
    world_run(a->world, &a->reclaim);
}
