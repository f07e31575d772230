/* SPDX-License-Identifier: Apache-2.0 */
#include "stop_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "closer.h"
#include "fabric/fabric.h"

static void set_of_stops(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
}

int agentd_stop_watch_told(void)
{
    sigset_t set;
    if (sigpending(&set) != 0)
        return 0;
    return sigismember(&set, SIGTERM) > 0 ? SIGTERM : sigismember(&set, SIGINT) > 0 ? SIGINT : 0;
}

/* With the lock, so that the control thread does not go on meanwhile. */
static _Noreturn void end_process(const struct stop_watch *w)
{
    const struct stop_step *step = &w->step;
    const uint32_t kind = step->fab != NULL ? atomic_load(&step->fab->waits_for) : 0;
    if (kind != 0)
        base_log(BASE_LOG_ERROR,
                 "the device does not answer: what the agent has of it is left to the kernel, and "
                 "the agent ends",
                 "waited_ms=%u for=\"%s\" during=\"%s\"", w->most_ms, fab_ctl_name(kind),
                 step->during);
    else
        base_log(BASE_LOG_ERROR,
                 "the agent was to end, and does not get on: what it has is left to the kernel, "
                 "and it ends",
                 "waited_ms=%u during=\"%s\"", w->most_ms, step->during);
    if (step->closer != NULL)
        agentd_closer_stop(step->closer);
    _exit(agentd_stop_watch_told() != 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Until something happens, or the end. */
static void await_change(const struct stop_watch *w, bool told, uint64_t end_ns)
{
    struct pollfd fds[] = {{.fd = w->change, .events = POLLIN},
                           {.fd = told ? -1 : w->told_fd, .events = POLLIN}};
    const uint64_t now_ns = base_clock_ns();
    const uint64_t in_ns = end_ns > now_ns ? end_ns - now_ns : 0;
    (void)poll(fds, 2, end_ns == UINT64_MAX ? -1 : (int)(in_ns / BASE_NS_PER_MS) + 1);
    uint64_t times;
    if (read(w->change, &times, sizeof times) < 0) {
        /* It was not that. */
    }
}

static void *watch_end(void *arg)
{
    struct stop_watch *w = arg;
    bool told = false;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        const uint64_t now_ns = base_clock_ns();
        if (!told && agentd_stop_watch_told() != 0) {
            told = true;
            if (w->end_ns == UINT64_MAX)
                w->end_ns = now_ns + w->most_ms * BASE_NS_PER_MS;
        }
        const uint64_t end_ns = w->end_ns;
        if (now_ns >= end_ns)
            end_process(w);
        pthread_mutex_unlock(&w->lock);
        await_change(w, told, end_ns);
    }
    return NULL;
}

int agentd_stop_watch_init(struct stop_watch *w, uint32_t most_ms, struct base_errbuf *err)
{
    sigset_t set;
    set_of_stops(&set);
    *w = (struct stop_watch){.most_ms = most_ms, .end_ns = UINT64_MAX, .step.during = "beginning"};
    w->told_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    w->change = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int status = w->told_fd < 0 || w->change < 0 ? -errno : 0;
    (void)pthread_mutex_init(&w->lock, NULL);
    if (status == 0)
        status = -pthread_create(&w->thread, NULL, watch_end, w);
    if (status == 0)
        return 0;
    return base_err(err, status, "signals cannot be heard: %s (raise LimitNOFILE or TasksMax?)",
                    strerror(-status));
}

static void wake_thread(const struct stop_watch *w)
{
    const uint64_t once = 1;
    if (write(w->change, &once, sizeof once) < 0) {
        /* Full, and so readable. */
    }
}

void agentd_stop_watch_begin(struct stop_watch *w)
{
    pthread_mutex_lock(&w->lock);
    if (w->end_ns == UINT64_MAX)
        w->end_ns = base_clock_ns() + w->most_ms * BASE_NS_PER_MS;
    pthread_mutex_unlock(&w->lock);
    wake_thread(w);
}

void agentd_stop_watch_end(struct stop_watch *w)
{
    pthread_mutex_lock(&w->lock);
    if (agentd_stop_watch_told() == 0)
        w->end_ns = UINT64_MAX;
    pthread_mutex_unlock(&w->lock);
}

void agentd_stop_watch_step(struct stop_watch *w, struct stop_step step)
{
    pthread_mutex_lock(&w->lock);
    w->step = step;
    pthread_mutex_unlock(&w->lock);
}
