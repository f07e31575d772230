/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* glibc names it from 2.38 on */
#endif

enum { EVERY_NS = 1000000 };

static void on_interrupt(int sig)
{
    (void)sig; /* that it came is enough */
}

static void set(struct agent *a, long every_ns)
{
    struct itimerspec t = {.it_value.tv_nsec = every_ns, .it_interval.tv_nsec = every_ns};
    (void)timer_settime(a->interrupt_timer, 0, &t, NULL);
}

int interrupt_init(struct agent *a, struct kedge_errbuf *err)
{
    struct sigaction action = {.sa_handler = on_interrupt}; /* no SA_RESTART: calls are to end */
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = SIGRTMIN,
                             .sigev_notify_thread_id = gettid()};
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(SIGRTMIN, &action, NULL) != 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &a->interrupt_timer) != 0)
        return kedge_err(err, -errno, "no timer can be made: %s (raise LimitSIGPENDING?)",
                         strerror(errno));
    a->interrupt_made = true;
    return 0;
}

void interrupt_begin(struct agent *a)
{
    set(a, EVERY_NS);
}

void interrupt_end(struct agent *a)
{
    set(a, 0);
}

void interrupt_fini(struct agent *a)
{
    if (a->interrupt_made)
        (void)timer_delete(a->interrupt_timer);
    a->interrupt_made = false;
}
