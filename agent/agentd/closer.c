/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that closes connections to which descriptors were sent.
 *
 * Whoever drops the last reference pays for the end of what was sent: 0.1 s for each GiB of a
 * memfd, and as long as its sender wants for a TCP socket that lingers, whose wait a signal ends.
 * On the control thread every worker that attaches would wait for it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fds.h"
#include "daemon.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* glibc names it from 2.38 on */
#endif

enum { INTERRUPT_EVERY_NS = 1000000 };

struct closing {
    int fd;
    struct connection *c; /* that hears when it is closed, or NULL */
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

/* The next that waits, or NULL at the end. */
static struct closing *await_next(struct closer *r)
{
    (void)pthread_mutex_lock(&r->lock);
    while (r->first == NULL && !r->stop)
        (void)pthread_cond_wait(&r->more, &r->lock);
    struct closing *one = r->first;
    if (one != NULL)
        r->first = one->next;
    if (r->first == NULL)
        r->last = NULL;
    (void)pthread_mutex_unlock(&r->lock);
    return one;
}

static void say_closed(struct closer *r, struct closing *one)
{
    (void)pthread_mutex_lock(&r->lock);
    one->next = r->closed;
    r->closed = one;
    if (!r->mute)
        (void)uv_async_send(&r->news);
    (void)pthread_mutex_unlock(&r->lock);
}

static void *run(void *argument)
{
    struct closer *r = argument;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = SIGRTMIN,
                             .sigev_notify_thread_id = gettid()};
    timer_t timer;
    r->status = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 ? 0 : -errno;
    (void)sem_post(&r->begun);
    if (r->status != 0)
        return NULL;
    for (struct closing *one; (one = await_next(r)) != NULL;) {
        set_timer(timer, INTERRUPT_EVERY_NS);
        close(one->fd);
        set_timer(timer, 0);
        say_closed(r, one);
    }
    (void)timer_delete(timer);
    return NULL;
}

static void take_closed(struct closer *r)
{
    (void)pthread_mutex_lock(&r->lock);
    struct closing *one = r->closed;
    r->closed = NULL;
    (void)pthread_mutex_unlock(&r->lock);
    while (one != NULL) {
        struct closing *next = one->next;
        if (one->c != NULL)
            connection_closed(one->c);
        else
            r->strangers--;
        free(one);
        one = next;
    }
}

static void on_news(uv_async_t *news)
{
    take_closed(news->data);
}

int closer_start(struct agent *a, struct kedge_errbuf *err)
{
    struct closer *r = &a->closer;
    struct sigaction action = {.sa_handler = on_interrupt}; /* no SA_RESTART: calls are to end */
    (void)sigemptyset(&action.sa_mask);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->more, NULL);
    (void)sem_init(&r->begun, 0, 0);
    (void)uv_async_init(&a->loop, &r->news, on_news);
    r->news.data = r;
    if (sigaction(SIGRTMIN, &action, NULL) != 0)
        return kedge_err(err, -errno, "no signal can be had: %s", strerror(errno));
    int status = -pthread_create(&r->thread, NULL, run, r);
    if (status != 0)
        return kedge_err(err, status, "no thread can be made: %s (raise TasksMax?)",
                         strerror(-status));
    r->runs = true;
    while (sem_wait(&r->begun) != 0) {
        /* Interrupted. */
    }
    if (r->status != 0)
        return kedge_err(err, r->status, "no timer can be made: %s (raise LimitSIGPENDING?)",
                         strerror(-r->status));
    return 0;
}

bool closer_is_needed(const struct listener *at, int fd)
{
    (void)shutdown(fd, SHUT_RDWR); /* nothing more comes */
    int status = kedge_fds_drain(fd);
    return status != 0 && !at->refuses_fds;
}

bool closer_is_full(const struct agent *a)
{
    return a->closer.strangers >= CLOSING_STRANGERS;
}

int closer_take(struct agent *a, int fd, struct connection *c)
{
    struct closer *r = &a->closer;
    struct closing *one = calloc(1, sizeof *one);
    if (one == NULL)
        return -ENOMEM;
    *one = (struct closing){.fd = fd, .c = c};
    r->strangers += c == NULL;
    (void)pthread_mutex_lock(&r->lock);
    if (r->last == NULL)
        r->first = one;
    else
        r->last->next = one;
    r->last = one;
    (void)pthread_cond_signal(&r->more);
    (void)pthread_mutex_unlock(&r->lock);
    return 0;
}

void closer_mute(struct agent *a)
{
    (void)pthread_mutex_lock(&a->closer.lock);
    a->closer.mute = true;
    (void)pthread_mutex_unlock(&a->closer.lock);
}

void closer_stop(struct agent *a)
{
    struct closer *r = &a->closer;
    if (!r->runs)
        return;
    (void)pthread_mutex_lock(&r->lock);
    r->stop = true;
    (void)pthread_cond_signal(&r->more);
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL);
    r->runs = false;
    take_closed(r);
}
