/* SPDX-License-Identifier: Apache-2.0 */
#include "stop_watch.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "closer.h"
#include "fabric/fabric.h"

/* What destructors and exit handlers would do belongs to the thread that waits for the device. */
static void end_process(const struct stop_watch *w)
{
    const uint32_t kind = w->fab != NULL ? atomic_load(&w->fab->waits_for) : 0;
    base_log(BASE_LOG_ERROR,
             "the device does not answer: what the agent has of it is left to the kernel, and the "
             "agent ends",
             "waited_ms=%d for=\"%s\"", STOP_DEVICE_MS, fab_ctl_name(kind));
    closer_stop(w->closer);
    _exit(w->code);
}

static void *watch_stop(void *arg)
{
    struct stop_watch *w = arg;
    const struct timespec end = {.tv_sec = (time_t)(w->end_ns / BASE_NS_PER_S),
                                 .tv_nsec = (long)(w->end_ns % BASE_NS_PER_S)};
    int status = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->over && status != ETIMEDOUT)
        status = pthread_cond_timedwait(&w->change, &w->lock, &end);
    if (!w->over)
        end_process(w); /* with the lock, so that the other thread does not go on meanwhile */
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void stop_watch_begin(struct stop_watch *w, const struct fab *fab, struct closer *closer, int code)
{
    pthread_condattr_t attr;
    *w = (struct stop_watch){.fab = fab,
                             .closer = closer,
                             .code = code,
                             .end_ns = base_clock_ns() + STOP_DEVICE_MS * BASE_NS_PER_MS};
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->change, &attr);
    pthread_condattr_destroy(&attr);
    w->runs = pthread_create(&w->thread, NULL, watch_stop, w) == 0;
}

void stop_watch_end(struct stop_watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->change);
    pthread_mutex_unlock(&w->lock);
    if (w->runs)
        pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->lock);
}
