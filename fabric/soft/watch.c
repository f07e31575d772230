/* SPDX-License-Identifier: Apache-2.0 */
/* Liveness of peers: one thread per context that sleeps on their pidfds and marks their contexts
 * dead, so that the data path has one word to look at. What a hardware RNIC's transport timers are
 * for. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "soft/soft.h"

struct soft_watch {
    pthread_t thread;
    int epfd, stop;
    _Atomic soft_owner seen[SOFT_CONTEXTS]; /* the last owner of each context that is watched */
    int pidfd[SOFT_CONTEXTS];
    pthread_mutex_t lock; /* pidfd[] */
};

/* The process of a context has died: from now on nobody reaches it. Its slots are taken back at the
 * next open. */
static void context_died(struct soft_fab *f, uint32_t index)
{
    struct soft_watch *w = f->watch;
    soft_owner owner = atomic_load(&w->seen[index]);
    pthread_mutex_lock(&w->lock);
    if (w->pidfd[index] >= 0)
        close(w->pidfd[index]);
    w->pidfd[index] = -1;
    pthread_mutex_unlock(&w->lock);
    if (owner != 0 && !soft_owner_process_lives(f, owner))
        soft_reclaim(f, owner);
}

static void *watch_thread(void *arg)
{
    struct soft_fab *f = arg;
    struct epoll_event event;
    for (;;) {
        int n = epoll_wait(f->watch->epfd, &event, 1, -1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != 1 || event.data.u32 == SOFT_CONTEXTS)
            return NULL;
        context_died(f, event.data.u32);
    }
}

int soft_watch_start(struct soft_fab *f)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = SOFT_CONTEXTS};
    struct soft_watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return -ENOMEM;
    for (int i = 0; i < SOFT_CONTEXTS; i++)
        w->pidfd[i] = -1;
    pthread_mutex_init(&w->lock, NULL);
    w->epfd = epoll_create1(EPOLL_CLOEXEC);
    w->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    f->watch = w;
    int status = 0;
    if (w->epfd < 0 || w->stop < 0 || epoll_ctl(w->epfd, EPOLL_CTL_ADD, w->stop, &event) != 0)
        status = -errno;
    else
        status = -pthread_create(&w->thread, NULL, watch_thread, f);
    if (status != 0) {
        close(w->epfd);
        close(w->stop);
        free(w);
        f->watch = NULL;
    }
    return status;
}

void soft_watch_stop(struct soft_fab *f)
{
    struct soft_watch *w = f->watch;
    uint64_t one = 1;
    if (w == NULL)
        return;
    if (write(w->stop, &one, sizeof one) == sizeof one)
        pthread_join(w->thread, NULL);
    for (int i = 0; i < SOFT_CONTEXTS; i++)
        if (w->pidfd[i] >= 0)
            close(w->pidfd[i]);
    close(w->epfd);
    close(w->stop);
    pthread_mutex_destroy(&w->lock);
    free(w);
    f->watch = NULL;
}

void soft_watch_add(struct soft_fab *f, soft_owner owner)
{
    struct soft_watch *w = f->watch;
    uint32_t index = (uint32_t)owner - 1;
    const struct soft_context_shared *c = &f->shared->context[index];
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = index};
    if (atomic_exchange(&w->seen[index], owner) == owner || c->pid == getpid())
        return; /* a context of our own process says itself that it closes */
    int pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    pthread_mutex_lock(&w->lock);
    if (w->pidfd[index] >= 0)
        close(w->pidfd[index]);
    w->pidfd[index] = pidfd;
    if (pidfd >= 0 && epoll_ctl(w->epfd, EPOLL_CTL_ADD, pidfd, &event) != 0) {
        close(pidfd);
        w->pidfd[index] = -1;
    }
    pthread_mutex_unlock(&w->lock);
    /* It may have died before we had the pidfd, and its number may be another's by now. */
    if (pidfd < 0 || !soft_owner_process_lives(f, owner)) {
        if (!soft_owner_process_lives(f, owner))
            soft_reclaim(f, owner);
        atomic_store(&w->seen[index], 0);
    }
}
