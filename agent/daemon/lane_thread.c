/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_thread.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/random.h"

enum { EVENTS = 64, LOOK_EVERY = 64 };
/* A busy lane tells the control thread of events at most so often; an idle one at once. */
#define TELL_NS (200 * KEDGE_NS_PER_US)

#define TAG_CONTROL (UINT64_C(1) << 32)
#define TAG_CHANNEL (UINT64_C(2) << 32)

static void ring(int fd)
{
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);
    (void)n; /* EAGAIN: it is rung already */
}

static void wake_worker(void *user, _Atomic uint32_t *word)
{
    (void)user;
    (void)kedge_futex_wake(word, INT_MAX);
}

static int fill_random(void *user, void *bytes, size_t n)
{
    (void)user;
    return kedge_random_bytes(bytes, n);
}

static int wait_for(struct agentd_lane *l, struct epoll_event *events, uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / KEDGE_NS_PER_S),
                         .tv_nsec = (long)(ns % KEDGE_NS_PER_S)};
    bool forever = ns == UINT64_MAX;
    if (ns == 0)
        return epoll_wait(l->epoll, events, EVENTS, 0);
    if (l->has_pwait2) {
        int n = epoll_pwait2(l->epoll, events, EVENTS, forever ? NULL : &t, NULL);
        if (n >= 0 || errno != ENOSYS)
            return n;
        l->has_pwait2 = false; /* before Linux 5.11 */
    }
    uint64_t ms = ns / KEDGE_NS_PER_MS + 1;
    return epoll_wait(l->epoll, events, EVENTS, forever ? -1 : ms > INT_MAX ? INT_MAX : (int)ms);
}

/* Waits up to ns (0: looks), and tells the lane which doorbells were rung. */
static void look(struct agentd_lane *l, uint64_t ns)
{
    struct epoll_event events[EVENTS];
    uint64_t count;
    int n = wait_for(l, events, ns);
    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == TAG_CHANNEL) {
            kedge_fab_chan_drain(l->chan);
        } else if (events[i].data.u64 == TAG_CONTROL) {
            ssize_t got = read(l->control_fd, &count, sizeof count);
            (void)got;
        } else {
            kedge_lane_doorbell(l->lane, (uint32_t)events[i].data.u64);
        }
    }
}

static void *run(void *user)
{
    struct agentd_lane *l = user;
    uint64_t told_ns = 0, passes = 0;
    uint32_t empty = 0;
    bool stirred = false;
    while (!atomic_load_explicit(&l->stop, memory_order_acquire)) {
        uint64_t now = kedge_clock_ns();
        if (kedge_lane_step(l->lane, now) > 0) {
            stirred = true;
            empty = 0;
        } else {
            empty++;
        }
        if (stirred && now - told_ns >= TELL_NS) {
            ring(l->event_fd);
            told_ns = now;
            stirred = false;
        }
        if (++passes % LOOK_EVERY == 0)
            look(l, 0);
        if (empty <= l->max_empty_polls)
            continue;
        empty = 0;
        now = kedge_clock_ns();
        uint64_t until = kedge_lane_prepare_sleep(l->lane, now);
        if (until == 0) {
            stirred = true;
            continue;
        }
        if (stirred)
            ring(l->event_fd);
        stirred = false;
        now = kedge_clock_ns();
        look(l, until == UINT64_MAX ? UINT64_MAX : until > now ? until - now : 0);
    }
    return NULL;
}

static int add(struct agentd_lane *l, int fd, uint32_t events, uint64_t tag)
{
    struct epoll_event e = {.events = events, .data.u64 = tag};
    return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

int agentd_lane_init(struct agentd_lane *l, struct kedge_lane *lane, struct kedge_fab_chan *chan,
                     uint32_t max_empty_polls)
{
    *l = (struct agentd_lane){
        .lane = lane, .chan = chan, .max_empty_polls = max_empty_polls, .has_pwait2 = true};
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->control_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->epoll < 0 || l->control_fd < 0 || l->event_fd < 0)
        return -EMFILE;
    kedge_lane_set_random(lane, fill_random, NULL);
    kedge_lane_set_wake(lane, wake_worker, NULL);
    int status = add(l, l->control_fd, EPOLLIN, TAG_CONTROL);
    return status != 0 ? status : add(l, chan->fd, EPOLLIN, TAG_CHANNEL);
}

int agentd_lane_start(struct agentd_lane *l)
{
    sigset_t all, before;
    sigfillset(&all); /* signals are the control thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = -pthread_create(&l->thread, NULL, run, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    l->running = status == 0;
    return status;
}

void agentd_lane_stop(struct agentd_lane *l)
{
    if (!l->running)
        return;
    atomic_store_explicit(&l->stop, true, memory_order_release);
    ring(l->control_fd);
    pthread_join(l->thread, NULL);
    l->running = false;
}

static void shut(int fd)
{
    if (fd >= 0)
        close(fd);
}

void agentd_lane_fini(struct agentd_lane *l)
{
    agentd_lane_stop(l);
    kedge_lane_free(l->lane);
    l->lane = NULL;
    shut(l->epoll);
    shut(l->control_fd);
    shut(l->event_fd);
    l->epoll = l->control_fd = l->event_fd = -1;
}

void agentd_lane_wake(struct agentd_lane *l)
{
    ring(l->control_fd);
}

int agentd_lane_watch(struct agentd_lane *l, int doorbell, uint32_t session)
{
    return add(l, doorbell, EPOLLIN | EPOLLET, session);
}

void agentd_lane_unwatch(struct agentd_lane *l, int doorbell)
{
    (void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, doorbell, NULL);
}
