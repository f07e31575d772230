/* SPDX-License-Identifier: Apache-2.0 */
/* Liveness of peers: one thread per context that sleeps on their pidfds and marks their contexts
 * dead, so that the data path has one word to look at. What a hardware RNIC's transport timers are
 * for. */
#include "soft/soft_watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "soft/context.h"
#include "soft/soft.h"

struct soft_watch {
    pthread_t thread;
    int epfd, stop;
    _Atomic soft_owner seen[SOFT_CONTEXTS]; /* the last owner of each context that is watched */
    int pidfd[SOFT_CONTEXTS];               /* with lock held; -1: none */
    pthread_mutex_t lock;
};

/* With the lock held. */
static void forget_process(struct soft_watch *w, uint32_t index)
{
    if (w->pidfd[index] >= 0)
        close(w->pidfd[index]);
    w->pidfd[index] = -1;
}

/* The process of a context has died: from now on nobody reaches it. */
static void owner_died(struct soft_fab *f, soft_owner owner)
{
    struct soft_watch *w = f->watch;
    uint32_t index = (uint32_t)owner - 1;
    pthread_mutex_lock(&w->lock);
    if (atomic_load(&w->seen[index]) == owner) /* and not the context's next owner */
        forget_process(w, index);
    pthread_mutex_unlock(&w->lock);
    if (soft_owner_process_lives(f, owner))
        return;
    soft_reclaim(f, owner);
    fab_bell_ring(&f->ctl); /* its memory is to be unmapped */
}

static void *watch_thread(void *arg)
{
    struct soft_fab *f = arg;
    struct epoll_event event;
    for (;;) {
        int n = epoll_wait(f->watch->epfd, &event, 1, -1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != 1 || event.data.u64 == 0)
            return NULL;
        owner_died(f, event.data.u64);
    }
}

static void free_watch(struct soft_watch *w)
{
    for (int i = 0; i < SOFT_CONTEXTS; i++)
        forget_process(w, (uint32_t)i);
    if (w->epfd >= 0)
        close(w->epfd);
    if (w->stop >= 0)
        close(w->stop);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

int soft_watch_start(struct soft_fab *f)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};
    sigset_t all, before;
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
    if (w->epfd < 0 || w->stop < 0 || epoll_ctl(w->epfd, EPOLL_CTL_ADD, w->stop, &event) != 0) {
        status = -errno;
    } else { /* signals are the program's own threads' business */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        status = -pthread_create(&w->thread, NULL, watch_thread, f);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (status != 0) {
        free_watch(w);
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
    free_watch(w);
    f->watch = NULL;
}

bool soft_watch_add(struct soft_fab *f, soft_owner owner)
{
    struct soft_watch *w = f->watch;
    uint32_t index = (uint32_t)owner - 1;
    int32_t pid = atomic_load(&f->shared->context[index].pid);
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = owner};
    if (atomic_load(&w->seen[index]) == owner)
        return soft_context_lives(f, owner);
    if (pid == atomic_load(&f->me->pid)) { /* a context of our own process says that it closes */
        atomic_store(&w->seen[index], owner);
        return soft_context_lives(f, owner);
    }
    bool watched = false;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    pthread_mutex_lock(&w->lock);
    if (pidfd >= 0) {
        forget_process(w, index);
        w->pidfd[index] = pidfd;
        watched = epoll_ctl(w->epfd, EPOLL_CTL_ADD, pidfd, &event) == 0;
        if (watched)
            atomic_store(&w->seen[index], owner);
        else
            forget_process(w, index);
    }
    pthread_mutex_unlock(&w->lock);
    /* It may have died before we had the pidfd, and its number may be another process's by now. */
    if (!soft_owner_process_lives(f, owner)) {
        soft_reclaim(f, owner);
        return false;
    }
    return watched;
}
