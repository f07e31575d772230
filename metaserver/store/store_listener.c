/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/store_listener.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TURN_NS                                                                                    \
    UINT64_C(1000000000) /* that the thread waits for something to be heard at a time              \
                          */

struct meta_store_listener {
    struct meta_store_watch *watch;
    pthread_t thread;
    int fd;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t room;
    struct meta_store_heard_list unheard;
    uint32_t count;
    int state; /* as meta_store_listener_state() */
    struct base_errbuf why;
    bool ends;
};

static void wake_owner(struct meta_store_listener *l)
{
    const uint64_t one = 1;
    /* It blocks, or fails, when nobody has read it 2^64 times. */
    (void)!write(l->fd, &one, sizeof one);
}

/* Takes heard. False: the thread ends. */
static bool put_heard(struct meta_store_listener *l, struct meta_store_heard *heard)
{
    pthread_mutex_lock(&l->lock);
    while (l->count >= META_STORE_UNHEARD_MAX && !l->ends)
        pthread_cond_wait(&l->room, &l->lock);
    const bool goes_on = !l->ends;
    if (goes_on) {
        STAILQ_INSERT_TAIL(&l->unheard, heard, link);
        l->count++;
        l->state = 1;
    } else {
        meta_store_heard_free(heard);
    }
    pthread_mutex_unlock(&l->lock);
    wake_owner(l);
    return goes_on;
}

static bool put_state(struct meta_store_listener *l, int state, const struct base_errbuf *why)
{
    pthread_mutex_lock(&l->lock);
    l->state = state;
    if (state < 0)
        l->why = *why;
    const bool goes_on = !l->ends;
    pthread_mutex_unlock(&l->lock);
    wake_owner(l);
    return goes_on;
}

static void *listen_to_store(void *user)
{
    struct meta_store_listener *l = user;
    bool goes_on = true;
    while (goes_on) {
        struct meta_store_heard *heard = NULL;
        struct base_errbuf err = {.text = ""};
        const int status = meta_store_watch_next(l->watch, TURN_NS, &heard, &err);
        if (status == 1)
            goes_on = put_heard(l, heard);
        else
            goes_on = status != -ECANCELED && put_state(l, status == 0 ? 1 : status, &err);
    }
    return NULL;
}

/* Its owner's thread takes the signals. */
static int start_thread(struct meta_store_listener *l)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&l->thread, NULL, listen_to_store, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

int meta_store_listener_new(struct meta_store_watch *watch, struct meta_store_listener **out,
                            struct base_errbuf *err)
{
    struct meta_store_listener *l = calloc(1, sizeof *l);
    int status = -ENOMEM;
    if (l == NULL)
        goto no_listener;
    l->watch = watch;
    STAILQ_INIT(&l->unheard);
    l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    status = -errno;
    if (l->fd < 0)
        goto no_fd;
    status = -pthread_mutex_init(&l->lock, NULL);
    if (status != 0)
        goto no_lock;
    status = -pthread_cond_init(&l->room, NULL);
    if (status != 0)
        goto no_condition;
    status = start_thread(l);
    if (status == 0) {
        *out = l;
        return 0;
    }
    pthread_cond_destroy(&l->room);
no_condition:
    pthread_mutex_destroy(&l->lock);
no_lock:
    close(l->fd);
no_fd:
    free(l);
no_listener:
    meta_store_watch_close(watch);
    return base_err(err, status, "the thread that listens to the store cannot begin: %s",
                    strerror(-status));
}

void meta_store_listener_free(struct meta_store_listener *l)
{
    struct meta_store_heard *heard;
    if (l == NULL)
        return;
    meta_store_watch_stop(l->watch);
    pthread_mutex_lock(&l->lock);
    l->ends = true;
    pthread_cond_signal(&l->room);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    while ((heard = meta_store_listener_take(l)) != NULL)
        meta_store_heard_free(heard);
    meta_store_watch_close(l->watch);
    pthread_cond_destroy(&l->room);
    pthread_mutex_destroy(&l->lock);
    close(l->fd);
    free(l);
}

int meta_store_listener_fd(const struct meta_store_listener *l)
{
    return l->fd;
}

struct meta_store_heard *meta_store_listener_take(struct meta_store_listener *l)
{
    uint64_t times;
    (void)!read(l->fd, &times, sizeof times);
    pthread_mutex_lock(&l->lock);
    struct meta_store_heard *heard = STAILQ_FIRST(&l->unheard);
    if (heard != NULL) {
        STAILQ_REMOVE_HEAD(&l->unheard, link);
        l->count--;
        pthread_cond_signal(&l->room);
    }
    pthread_mutex_unlock(&l->lock);
    return heard;
}

int meta_store_listener_state(struct meta_store_listener *l, struct base_errbuf *why)
{
    pthread_mutex_lock(&l->lock);
    const int state = l->state;
    if (state < 0)
        *why = l->why;
    l->state = 0;
    pthread_mutex_unlock(&l->lock);
    return state;
}

void meta_store_listener_ask(struct meta_store_listener *l)
{
    meta_store_watch_ask(l->watch);
}
