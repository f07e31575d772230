/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets (SOCK_SEQPACKET) of simulated workers. Messages are whole, and come at once; who
 * waits for one goes on a little later. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/fds.h"
#include "os.h"
#include "os_calls.h"
#include "process.h"
#include "shared.h"

enum { LISTENERS = 2048, QUEUE_MOST = 64 };

struct message {
    struct message *next;
    size_t bytes;
    unsigned count;
    struct shared_object *object[BASE_FDS_MAX];
    uint8_t content[];
};

struct queue {
    struct message *first, **last;
    uint32_t count;
};

struct os_socket {
    struct play_process *worker; /* NULL: its end is closed */
    const struct os_listener *listener;
    void *user;      /* the agent's end's */
    bool agent_ends; /* closed */
    bool shut;
    struct queue to_agent, to_worker;
    uint64_t timeout_ns; /* of what the worker waits for; 0: none */
};

static struct listening {
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    const struct os_listener *listener;
} listeners[LISTENERS];

/* ---- messages */

static void put_message(struct queue *q, const void *content, size_t bytes, const int *fds,
                        unsigned count)
{
    struct message *m = malloc(sizeof *m + bytes);
    BASE_ASSERT(m != NULL && count <= BASE_FDS_MAX);
    *m = (struct message){.bytes = bytes, .count = count};
    memcpy(m->content, content, bytes);
    for (unsigned i = 0; i < count; i++) {
        m->object[i] = shared_of(fds[i]);
        BASE_ASSERT(m->object[i] != NULL);
        m->object[i]->refs++;
    }
    if (q->first == NULL)
        q->last = &q->first;
    *q->last = m;
    q->last = &m->next;
    q->count++;
}

static struct message *take_message(struct queue *q)
{
    struct message *m = q->first;
    q->first = m->next;
    q->count--;
    return m;
}

static void free_message(struct message *m)
{
    for (unsigned i = 0; i < m->count; i++)
        shared_drop(m->object[i]);
    free(m);
}

static void empty_queue(struct queue *q)
{
    while (q->first != NULL)
        free_message(take_message(q));
}

static void free_socket(struct os_socket *s)
{
    if (s->worker != NULL || !s->agent_ends)
        return;
    empty_queue(&s->to_agent);
    empty_queue(&s->to_worker);
    free(s);
}

/* ---- the agent's end */

static struct listening *find_path(const char *path)
{
    for (uint32_t i = 0; i < LISTENERS; i++)
        if (listeners[i].listener != NULL && strcmp(listeners[i].path, path) == 0)
            return &listeners[i];
    return NULL;
}

void os_listen(const char *path, const struct os_listener *listener)
{
    uint32_t at = 0;
    BASE_ASSERT(find_path(path) == NULL);
    while (at < LISTENERS && listeners[at].listener != NULL)
        at++;
    BASE_ASSERT(at < LISTENERS);
    (void)snprintf(listeners[at].path, sizeof listeners[at].path, "%s", path);
    listeners[at].listener = listener;
}

void os_unlisten(const char *path)
{
    struct listening *l = find_path(path);
    if (l != NULL)
        l->listener = NULL;
}

void os_socket_set_user(struct os_socket *s, void *user)
{
    s->user = user;
}

bool os_socket_has_more(const struct os_socket *s)
{
    return s->to_agent.first != NULL;
}

bool os_socket_has_unread(const struct os_socket *s)
{
    return s->worker != NULL && s->to_worker.first != NULL;
}

size_t os_socket_take(struct os_socket *s, void *content, size_t capacity)
{
    if (s->to_agent.first == NULL)
        return 0;
    struct message *m = take_message(&s->to_agent);
    const size_t bytes = m->bytes;
    memcpy(content, m->content, bytes < capacity ? bytes : capacity);
    free_message(m);
    return bytes;
}

int os_socket_send(struct os_socket *s, const void *content, size_t bytes, const int *fds,
                   unsigned count)
{
    if (s->worker == NULL || s->shut)
        return -EPIPE;
    if (s->to_worker.count == QUEUE_MOST)
        return -EAGAIN;
    put_message(&s->to_worker, content, bytes, fds, count);
    play_process_wake(s->worker);
    return 0;
}

void os_socket_shut(struct os_socket *s)
{
    s->shut = true;
    if (s->worker != NULL)
        play_process_wake(s->worker);
}

void os_socket_close(struct os_socket *s)
{
    os_socket_shut(s);
    s->agent_ends = true;
    free_socket(s);
}

/* ---- the worker's end */

void os_socket_end(struct os_socket *s)
{
    s->worker = NULL;
    if (s->listener != NULL && !s->agent_ends)
        s->listener->hung_up(s->user, s);
    else
        s->agent_ends = true; /* it was never connected */
    free_socket(s);
}

int os_socket(int domain, int type, int protocol)
{
    struct shared_object *o;
    struct os_socket *s = calloc(1, sizeof *s);
    (void)domain, (void)type, (void)protocol;
    const int fd = s != NULL ? shared_new(SHARED_SOCKET, &o) : -1;
    if (fd < 0) {
        free(s);
        errno = ENOMEM;
        return -1;
    }
    s->worker = play_process;
    o->socket = s;
    return fd;
}

static struct os_socket *socket_of(int fd)
{
    const struct shared_object *o = shared_of(fd);
    BASE_ASSERT(o != NULL && o->kind == SHARED_SOCKET);
    return o->socket;
}

int os_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    struct os_socket *s = socket_of(fd);
    const struct sockaddr_un *to = (const struct sockaddr_un *)address;
    const struct listening *l = find_path(to->sun_path);
    (void)length;
    if (l == NULL) {
        errno = ECONNREFUSED;
        return -1;
    }
    s->listener = l->listener;
    l->listener->connected(l->listener->user, s, play_process->uid);
    return 0;
}

int os_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    const struct timeval *t = value;
    BASE_ASSERT(level == SOL_SOCKET && length == sizeof *t);
    if (name == SO_RCVTIMEO)
        socket_of(fd)->timeout_ns =
            (uint64_t)t->tv_sec * BASE_NS_PER_S + (uint64_t)t->tv_usec * 1000;
    return 0;
}

int os_shutdown(int fd, int how)
{
    struct os_socket *s = socket_of(fd);
    (void)how;
    if (s->listener != NULL && !s->agent_ends)
        s->listener->hung_up(s->user, s);
    return 0;
}

int os_base_fds_send(int fd, const void *content, size_t bytes, const int *fds, unsigned count)
{
    struct os_socket *s = socket_of(fd);
    if (s->listener == NULL || s->agent_ends)
        return -EPIPE;
    put_message(&s->to_agent, content, bytes, fds, count);
    s->listener->sent(s->user, s);
    return 0;
}

int os_base_fds_recv(int fd, void *content, size_t capacity, size_t *bytes, int *fds,
                     unsigned max_fds, unsigned *count)
{
    struct os_socket *s = socket_of(fd);
    const struct play_host *h = play_process->host;
    const uint64_t until_ns =
        s->timeout_ns != 0 ? play_host_due(h, play_host_now_ns(h) + s->timeout_ns) : PLAY_NEVER;
    while (s->to_worker.first == NULL) {
        if (s->shut)
            return -EPIPE;
        if (!play_process_wait(until_ns) && play_now_ns() >= until_ns)
            return -EAGAIN;
    }
    struct message *m = take_message(&s->to_worker);
    BASE_ASSERT(m->bytes <= capacity && m->count <= max_fds);
    memcpy(content, m->content, m->bytes);
    for (unsigned i = 0; i < m->count; i++)
        fds[i] = shared_add(m->object[i]);
    *bytes = m->bytes;
    *count = m->count;
    free_message(m);
    return 0;
}

/* Whether the agent's end is closed is all that anybody asks, and nobody waits for it. */
int os_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    BASE_ASSERT(count == 1 && timeout_ms == 0);
    fds->revents = socket_of(fds->fd)->shut ? POLLRDHUP : 0;
    return fds->revents != 0;
}
