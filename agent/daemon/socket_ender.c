/* SPDX-License-Identifier: Apache-2.0 */
#include "socket_ender.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fds.h"
#include "schema/control.h"

#define COSTLY                                                                                     \
    "so much watches this socket that each answer takes the agent long: it is ended, and this "    \
    "uid refused for a while (watch it with few descriptors)"

static void tell_why(int fd)
{
    struct schema_control_error m = {.h = {.magic = SCHEMA_CONTROL_MAGIC,
                                           .version = SCHEMA_CONTROL_VERSION,
                                           .type = SCHEMA_CONTROL_ERROR,
                                           .size = sizeof m},
                                     .status = -EBUSY};
    snprintf(m.text, sizeof m.text, "%s", COSTLY);
    (void)base_fds_send(fd, &m, sizeof m, NULL, 0);
}

static void end_one(struct socket_end *e)
{
    tell_why(e->fd);
    (void)shutdown(e->fd, SHUT_RDWR);
    e->dirty = base_fds_drain(e->fd) != 0 && e->keeps;
    if (!e->dirty)
        close(e->fd);
}

static struct socket_end *take_first(struct socket_ender *r)
{
    struct socket_end *e = r->first;
    if (e != NULL && (r->first = e->next) == NULL)
        r->last = NULL;
    return e;
}

static void *run_ender(void *arg)
{
    struct socket_ender *r = arg;
    (void)pthread_mutex_lock(&r->lock);
    for (;;) {
        struct socket_end *e = take_first(r);
        if (e == NULL && r->stop)
            break;
        if (e == NULL) {
            (void)pthread_cond_wait(&r->more, &r->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&r->lock);
        end_one(e);
        (void)pthread_mutex_lock(&r->lock);
        e->next = r->done;
        r->done = e;
        agentd_wake_up(&r->wake);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void tell_ended(void *user)
{
    struct socket_ender *r = user;
    (void)pthread_mutex_lock(&r->lock);
    struct socket_end *e = r->done;
    r->done = NULL;
    (void)pthread_mutex_unlock(&r->lock);
    for (struct socket_end *next; e != NULL; e = next) {
        next = e->next;
        e->ended(e);
    }
}

int agentd_socket_ender_init(struct socket_ender *r, uv_loop_t *loop, struct base_errbuf *err)
{
    const int status = agentd_wake_init(&r->wake, loop, tell_ended, r, err);
    if (status != 0)
        return status;
    uv_unref((uv_handle_t *)&r->wake.poll);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->more, NULL);
    return 0;
}

void agentd_socket_ender_close(struct socket_ender *r)
{
    if (r->wake.heard != NULL && !uv_is_closing((uv_handle_t *)&r->wake.poll))
        uv_close((uv_handle_t *)&r->wake.poll, NULL);
}

static int start_ender(struct socket_ender *r)
{
    const int status = -pthread_create(&r->thread, NULL, run_ender, r);
    r->runs = status == 0;
    return status;
}

int agentd_socket_ender_take(struct socket_ender *r, struct socket_end *e)
{
    const int status = r->runs ? 0 : start_ender(r);
    if (status != 0)
        return status;
    e->next = NULL;
    (void)pthread_mutex_lock(&r->lock);
    if (r->last == NULL)
        r->first = e;
    else
        r->last->next = e;
    r->last = e;
    (void)pthread_cond_signal(&r->more);
    (void)pthread_mutex_unlock(&r->lock);
    return 0;
}

static void end_thread(struct socket_ender *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->stop = true;
    (void)pthread_cond_signal(&r->more);
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL);
    r->runs = false;
    tell_ended(r);
}

void agentd_socket_ender_stop(struct socket_ender *r)
{
    if (r->wake.heard == NULL)
        return;
    if (r->runs)
        end_thread(r);
    agentd_wake_fini(&r->wake);
    (void)pthread_cond_destroy(&r->more);
    (void)pthread_mutex_destroy(&r->lock);
}
