/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: a FIFO in the device's directory that anybody writes a byte to, and a timer for what
 * waits, behind one epoll descriptor. */
#include "soft/chan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "soft/soft.h"

/* Named by the context, so that what it leaves behind is known for its own. */
static void fifo_name(char name[48], soft_owner owner, uint32_t number)
{
    snprintf(name, 48, "chan.%" PRIx64 ".%u", owner, number);
}

struct soft_chan {
    struct fab_chan base;
    uint32_t number;
    int fifo;
    int timer;
    _Atomic uint64_t due_ns; /* what the timer is set to; 0: not set */
    _Atomic uint32_t users;
};

static void free_chan(struct soft_fab *f, struct soft_chan *chan)
{
    char name[48];
    fifo_name(name, f->owner, chan->number);
    (void)unlinkat(f->dir_fd, name, 0);
    int fds[] = {chan->base.fd, chan->timer, chan->fifo};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(chan);
}

int soft_chan_create(struct soft_fab *f, struct fab_ctl *ctl)
{
    char name[48];
    struct epoll_event event = {.events = EPOLLIN};
    struct soft_chan *chan = calloc(1, sizeof *chan);
    if (chan == NULL)
        return -ENOMEM;
    chan->number = ++f->chans;
    chan->fifo = -1;
    chan->base.fab = &f->base;
    chan->base.fd = epoll_create1(EPOLL_CLOEXEC);
    chan->timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    fifo_name(name, f->owner, chan->number);
    if (mkfifoat(f->dir_fd, name, 0600) == 0)
        chan->fifo = openat(f->dir_fd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (chan->base.fd < 0 || chan->timer < 0 || chan->fifo < 0 ||
        epoll_ctl(chan->base.fd, EPOLL_CTL_ADD, chan->fifo, &event) != 0 ||
        epoll_ctl(chan->base.fd, EPOLL_CTL_ADD, chan->timer, &event) != 0) {
        int status = -errno;
        free_chan(f, chan);
        return status;
    }
    ctl->chan.x = &chan->base;
    return 0;
}

int soft_chan_destroy(struct soft_fab *f, struct fab_ctl *ctl)
{
    struct soft_chan *chan = (struct soft_chan *)ctl->chan.x;
    if (atomic_load(&chan->users) != 0)
        return -EBUSY;
    free_chan(f, chan);
    return 0;
}

void soft_chan_use(struct soft_chan *chan, int by)
{
    atomic_fetch_add(&chan->users, (uint32_t)by);
}

uint32_t soft_chan_number(const struct soft_chan *chan)
{
    return chan->number;
}

void soft_chan_clean(struct soft_fab *f)
{
    int fd = openat(f->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return; /* only litter */
    }
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        soft_owner owner;
        if (sscanf(e->d_name, "chan.%" SCNx64 ".", &owner) == 1 && (uint32_t)owner >= 1 &&
            (uint32_t)owner <= SOFT_CONTEXTS && !soft_context_lives(f, owner))
            (void)unlinkat(f->dir_fd, e->d_name, 0);
    }
    closedir(dir);
}

/* ---- waking */

/* The byte first, then disarm what was seen: a process that dies in between has woken it once too
 * often. A full FIFO has woken its reader already. */
void soft_cq_notify(struct soft_fab *f, struct soft_cq_shared *cq, bool solicited)
{
    uint32_t armed = atomic_load(&cq->armed);
    char name[48];
    if (!soft_is_wanted(armed, solicited))
        return;
    fifo_name(name, atomic_load(&cq->owner), atomic_load(&cq->chan));
    int fd = openat(f->dir_fd, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return; /* gone; or no descriptor is left, and the next completion tries again */
    if (write(fd, "", 1) < 0) {
    }
    close(fd);
    (void)atomic_compare_exchange_strong(&cq->armed, &armed, armed & ~3u);
}

void soft_wake_all(struct soft_fab *f)
{
    for (uint32_t i = 0; i < atomic_load(&f->shared->cq_high); i++)
        if (atomic_load(&f->shared->cq[i].owner) != 0)
            soft_cq_notify(f, &f->shared->cq[i], true);
}

void soft_chan_wake(struct soft_chan *chan)
{
    if (write(chan->fifo, "", 1) < 0) {
        /* Full, and so readable. */
    }
}

void soft_chan_set_timer(struct soft_chan *chan, uint64_t due_ns)
{
    uint64_t set = atomic_load(&chan->due_ns);
    if (due_ns == UINT64_MAX || (set != 0 && set <= due_ns))
        return;
    atomic_store(&chan->due_ns, due_ns);
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(due_ns / BASE_NS_PER_S),
                                           .tv_nsec = (long)(due_ns % BASE_NS_PER_S)}};
    (void)timerfd_settime(chan->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void soft_chan_drain(struct fab_chan *base)
{
    struct soft_chan *chan = (struct soft_chan *)base;
    char bytes[256];
    uint64_t expirations;
    while (read(chan->fifo, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        ;
    const uint64_t due_ns = atomic_load(&chan->due_ns);
    if (due_ns == 0 || base_clock_ns() < due_ns ||
        read(chan->timer, &expirations, sizeof expirations) < 0)
        return;                     /* not due: it stays set */
    atomic_store(&chan->due_ns, 0); /* a CQ that still waits sets it again at its next poll */
}
