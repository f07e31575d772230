/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that sessions leave behind in malloc. */
#include <malloc.h>

#include "base/assert.h"
#include "base/clock.h"
#include "daemon.h"

static void trim_work(uv_work_t *work)
{
    (void)work;
    (void)malloc_trim(0);
}

static void on_trimmed(uv_work_t *work, int cancelled)
{
    (void)cancelled;
    work->data = NULL;
}

/* What one work thread allocates another one frees, and malloc keeps it for each of them: it gives
 * back what many sessions left. */
void memory_trim(struct agent *a)
{
    uint64_t now = kedge_clock_ns();
    if (a->unmade == 0 || a->trim.data != NULL || now - a->trimmed_ns < KEDGE_NS_PER_S)
        return;
    a->unmade = 0;
    a->trimmed_ns = now;
    a->trim.data = a;
    int status = uv_queue_work(&a->loop, &a->trim, trim_work, on_trimmed);
    KEDGE_ASSERT(status == 0);
}
