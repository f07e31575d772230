/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that close connections to which descriptors were sent.
 *
 * Whoever drops the last reference pays for the end of what was sent: 0.1 s for each GiB of a
 * memfd, some ms for an inotify descriptor, and as long as its sender wants for a TCP socket that
 * lingers, whose wait a signal ends. On the control thread every worker that attaches would wait
 * for it. Most of it is waiting, so that there are several threads, made when they are needed; and
 * one uid never has them all. */
#include "attach_socket.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fds.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* glibc names it from 2.38 on */
#endif

enum { INTERRUPT_EVERY_NS = 1000000, STACK_BYTES = 256 << 10 };

struct closing {
    int fd;
    uid_t uid;              /* who connected */
    struct listener *at;    /* a connection of nobody counts there */
    struct world_socket *s; /* that hears when it is closed, or NULL */
    struct closing *next;
};

static void on_interrupt(int sig)
{
    (void)sig; /* that it came is enough */
}

static void set_timer(timer_t timer, long every_ns)
{
    struct itimerspec t = {.it_value.tv_nsec = every_ns, .it_interval.tv_nsec = every_ns};
    (void)timer_settime(timer, 0, &t, NULL);
}

static bool has_enough(const struct closer *r, uid_t uid)
{
    uint32_t busy = 0;
    for (uint32_t i = 0; i < CLOSERS; i++)
        busy += r->busy[i] && r->uid[i] == uid;
    return busy >= CLOSERS_OF_UID;
}

/* The first whose uid does not have as many threads as it may; NULL: there is none. */
static struct closing *pick_next(struct closer *r)
{
    struct closing *before = NULL, *one = r->first;
    while (one != NULL && has_enough(r, one->uid)) {
        before = one;
        one = one->next;
    }
    if (one == NULL)
        return NULL;
    *(before != NULL ? &before->next : &r->first) = one->next;
    if (r->last == one)
        r->last = before;
    r->queued--;
    return one;
}

/* The next that waits, or NULL at the end. What it leaves because its uid has enough threads, one
 * of those takes. */
static struct closing *await_next(struct closer *r, uint32_t thread)
{
    struct closing *one;
    (void)pthread_mutex_lock(&r->lock);
    r->busy[thread] = false;
    r->idle++;
    while ((one = pick_next(r)) == NULL && !(r->stop && r->first == NULL))
        (void)pthread_cond_wait(&r->more, &r->lock);
    r->idle--;
    if (one != NULL) {
        r->busy[thread] = true;
        r->uid[thread] = one->uid;
    }
    if (r->stop)
        (void)pthread_cond_broadcast(&r->more);
    (void)pthread_mutex_unlock(&r->lock);
    return one;
}

static void say_closed(struct closer *r, struct closing *one)
{
    (void)pthread_mutex_lock(&r->lock);
    one->next = r->closed;
    r->closed = one;
    (void)pthread_mutex_unlock(&r->lock);
    wake_up(&r->news);
}

static void *run_closer(void *argument)
{
    struct closer *r = argument;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = SIGRTMIN,
                             .sigev_notify_thread_id = gettid()};
    sigset_t others;
    timer_t timer;
    (void)sigfillset(&others);
    (void)sigdelset(&others, SIGRTMIN);
    (void)pthread_sigmask(SIG_SETMASK, &others, NULL);
    const int status = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 ? 0 : -errno;
    const uint32_t thread = atomic_fetch_add(&r->begun_threads, 1);
    if (thread == 0) {
        r->status = status;
        (void)sem_post(&r->begun);
    }
    if (status != 0)
        return NULL;
    for (struct closing *one; (one = await_next(r, thread)) != NULL;) {
        set_timer(timer, INTERRUPT_EVERY_NS);
        close(one->fd);
        set_timer(timer, 0);
        say_closed(r, one);
    }
    (void)timer_delete(timer);
    return NULL;
}

static int make_thread(struct closer *r)
{
    pthread_attr_t attr;
    int status = -pthread_attr_init(&attr);
    if (status != 0)
        return status;
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    status = -pthread_create(&r->thread[r->threads], &attr, run_closer, r);
    (void)pthread_attr_destroy(&attr);
    r->threads += status == 0;
    return status;
}

static void take_closed(void *closer)
{
    struct closer *r = closer;
    (void)pthread_mutex_lock(&r->lock);
    struct closing *one = r->closed;
    r->closed = NULL;
    (void)pthread_mutex_unlock(&r->lock);
    while (one != NULL) {
        struct closing *next = one->next;
        if (one->s != NULL)
            socket_closed(one->s);
        else
            one->at->closing--;
        if (!r->stop)
            listener_go_on(one->at);
        free(one);
        one = next;
    }
}

int closer_start(struct closer *r, uv_loop_t *loop, struct base_errbuf *err)
{
    struct sigaction action = {.sa_handler = on_interrupt}; /* no SA_RESTART: calls are to end */
    (void)sigemptyset(&action.sa_mask);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->more, NULL);
    (void)sem_init(&r->begun, 0, 0);
    int status = wake_init(&r->news, loop, take_closed, r, err);
    if (status != 0)
        return status;
    if (sigaction(SIGRTMIN, &action, NULL) != 0)
        return base_err(err, -errno, "no signal can be had: %s", strerror(errno));
    status = make_thread(r);
    if (status != 0)
        return base_err(err, status, "no thread can be made: %s (raise TasksMax?)",
                        strerror(-status));
    while (sem_wait(&r->begun) != 0) {
        /* Interrupted. */
    }
    if (r->status != 0)
        return base_err(err, r->status, "no timer can be made: %s (raise LimitSIGPENDING?)",
                        strerror(-r->status));
    return 0;
}

bool closer_is_needed(const struct listener *at, int fd)
{
    (void)shutdown(fd, SHUT_RDWR); /* nothing more comes */
    int status = base_fds_drain(fd);
    return status != 0 && !at->refuses_fds;
}

/* The descriptors of all of them are this process's. */
bool closer_is_full(const struct listener *at)
{
    const uint32_t listeners = at->of->listeners > 0 ? at->of->listeners : 1;
    const uint32_t part = CLOSING_STRANGERS / listeners;
    return at->closing >= (part > CLOSING_LEAST ? part : CLOSING_LEAST);
}

int closer_take(struct listener *at, int fd, uid_t uid, struct world_socket *s)
{
    struct closer *r = &at->of->closer;
    struct closing *one = calloc(1, sizeof *one);
    if (one == NULL)
        return -ENOMEM;
    *one = (struct closing){.fd = fd, .uid = uid, .at = at, .s = s};
    at->closing += s == NULL;
    (void)pthread_mutex_lock(&r->lock);
    if (r->last == NULL)
        r->first = one;
    else
        r->last->next = one;
    r->last = one;
    const bool more = ++r->queued > r->idle && r->threads < CLOSERS;
    (void)pthread_cond_signal(&r->more);
    (void)pthread_mutex_unlock(&r->lock);
    if (more) /* those that there are do the work, if there can be no more */
        (void)make_thread(r);
    return 0;
}

void closer_stop(struct closer *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->stop = true;
    (void)pthread_cond_broadcast(&r->more);
    (void)pthread_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i < r->threads; i++)
        (void)pthread_join(r->thread[i], NULL);
    r->threads = 0;
    take_closed(r);
    wake_fini(&r->news);
}
