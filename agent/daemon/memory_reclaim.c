/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that sessions leave behind in malloc. */
#include <malloc.h>

#include "base/clock.h"
#include "agent.h"

static void reclaim_heap(void *agent)
{
    (void)agent;
    (void)malloc_trim(0);
}

static void on_trimmed(void *agent)
{
    struct agent *a = agent;
    a->trimming = false;
}

/* What one task thread allocates another one frees, and malloc keeps it for each of them: it gives
 * back what many sessions left. */
void memory_reclaim(struct agent *a)
{
    uint64_t now = base_clock_ns();
    if (a->unmade == 0 || a->trimming || now - a->trimmed_ns < BASE_NS_PER_S)
        return;
    a->unmade = 0;
    a->trimmed_ns = now;
    a->trimming = true;
    tasks_submit(&a->tasks, &a->trim, reclaim_heap, on_trimmed, a);
}
