/* SPDX-License-Identifier: Apache-2.0 */
#include "base/deadline.h"

#include <errno.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"

static void *watch_time(void *arg)
{
    struct base_deadline *d = arg;
    const struct timespec end = {.tv_sec = (time_t)(d->end_ns / BASE_NS_PER_S),
                                 .tv_nsec = (long)(d->end_ns % BASE_NS_PER_S)};
    int status = 0;
    pthread_mutex_lock(&d->lock);
    while (!d->over && status != ETIMEDOUT)
        status = pthread_cond_timedwait(&d->change, &d->lock, &end);
    if (!d->over) {
        d->late(d->user); /* with the lock, so that the other thread does not go on meanwhile */
        BASE_ASSERT(!"late() ends the process");
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

void base_deadline_begin(struct base_deadline *d, uint64_t timeout_ns, void (*late)(void *user),
                         void *user)
{
    pthread_condattr_t attr;
    *d = (struct base_deadline){.late = late, .user = user, .end_ns = base_clock_ns() + timeout_ns};
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&d->change, &attr);
    pthread_condattr_destroy(&attr);
    d->runs = pthread_create(&d->thread, NULL, watch_time, d) == 0;
}

void base_deadline_end(struct base_deadline *d)
{
    pthread_mutex_lock(&d->lock);
    d->over = true;
    pthread_cond_signal(&d->change);
    pthread_mutex_unlock(&d->lock);
    if (d->runs)
        pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->change);
    pthread_mutex_destroy(&d->lock);
}
