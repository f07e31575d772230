/* SPDX-License-Identifier: Apache-2.0 */
#include "stop_watch.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "closer.h"

static void end_process(void *user)
{
    const struct stop_watch *w = user;
    const uint32_t kind = w->fab != NULL ? atomic_load(&w->fab->waits_for) : 0;
    base_log(BASE_LOG_ERROR,
             "the device does not answer: what the agent has of it is left to the kernel, and the "
             "agent ends",
             "waited_ms=%d for=\"%s\"", FAB_STOP_MS, fab_ctl_name(kind));
    closer_stop(w->closer);
    _exit(w->code);
}

void stop_watch_begin(struct stop_watch *w, const struct fab *fab, struct closer *closer, int code)
{
    w->fab = fab;
    w->closer = closer;
    w->code = code;
    base_deadline_begin(&w->deadline, FAB_STOP_MS * BASE_NS_PER_MS, end_process, w);
}

void stop_watch_end(struct stop_watch *w)
{
    base_deadline_end(&w->deadline);
}
