/* SPDX-License-Identifier: Apache-2.0 */
/* Where workers come: a socket for all, and one of each tenant that has its own. */
#include "attach_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "fd_watch.h"
#include "socket_acl.h"
#include "world_socket.h"

enum { ACCEPT_PAUSE_MS = 50, ACCEPT_AT_ONCE = 64 };

static void on_connection(uv_poll_t *poll, int status, int events);

static void on_accept_again(uv_timer_t *timer)
{
    struct listener *l = timer->data;
    l->waits = false;
    (void)uv_poll_start(&l->poll, UV_READABLE, on_connection);
}

/* No descriptor or no memory for one more, or too many to be closed: a worker that waits stays in
 * the backlog, and the loop does not spin on it. */
static void pause_accepting(struct listener *l, const char *why)
{
    uint32_t suppressed;
    if (base_log_allow(&l->of->limit, base_clock_ns(), PAUSE_LOGGED_S * BASE_NS_PER_S, 1,
                       &suppressed))
        base_log(BASE_LOG_WARN, "a worker has to wait", "error=\"%s\" suppressed=%u", why,
                 suppressed);
    (void)uv_poll_stop(&l->poll);
    (void)uv_timer_start(&l->again, on_accept_again, ACCEPT_PAUSE_MS, 0);
}

void agentd_listener_go_on(struct listener *l)
{
    if (!l->waits || agentd_listener_is_full(l))
        return;
    (void)uv_timer_stop(&l->again);
    on_accept_again(&l->again);
}

/* The descriptors of all of them are this process's. */
bool agentd_listener_is_full(const struct listener *l)
{
    const uint32_t listeners = l->of->listeners > 0 ? l->of->listeners : 1;
    const uint32_t part = CLOSING_STRANGERS / listeners;
    return l->closing >= (part > CLOSING_LEAST ? part : CLOSING_LEAST);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;
    (void)status, (void)events;
    for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
        if (agentd_listener_is_full(l)) {
            l->waits = true;
            pause_accepting(l, "refused connections, to which descriptors were sent, wait to be "
                               "closed");
            return;
        }
        struct world_socket *s = agentd_socket_new(l);
        int fd = s != NULL ? accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC) : -1;
        if (fd < 0) {
            const int why = s != NULL ? errno : ENOMEM;
            free(s);
            if (why != EAGAIN && why != ECONNABORTED && why != EINTR)
                pause_accepting(l, strerror(why));
            return;
        }
        agentd_socket_accept(s, fd);
    }
}

/* ---- who is refused */

_Static_assert(CLOSER_REFUSED + STRANGERS_KNOWN + COSTS_KNOWN <= SOCKET_ACL_UIDS,
               "all have room in a list");

/* Each once. */
static void add_refused(uid_t uids[SOCKET_ACL_UIDS], uint32_t *count, const uid_t *more,
                        uint32_t how_many)
{
    const uint32_t before = *count;
    for (uint32_t i = 0; i < how_many; i++) {
        uint32_t at = 0;
        while (at < before && uids[at] != more[i])
            at++;
        if (at == before)
            uids[(*count)++] = more[i];
    }
}

static void write_lists(struct attach_sockets *of)
{
    for (struct listener *l = of->listener; l < of->listener + of->listeners; l++) {
        uid_t uids[SOCKET_ACL_UIDS], resting[COSTS_KNOWN];
        uint32_t count = 0;
        add_refused(uids, &count, resting,
                    agentd_socket_costs_resting(&of->costs, l->tenant, base_clock_ns(), resting));
        if (!l->refuses_fds)
            add_refused(uids, &count, of->closer.refused, of->closer.refused_count);
        if (l->tenant == 0)
            add_refused(uids, &count, of->kept_out, of->kept_out_count);
        if (count == 0 && !l->listed)
            continue;
        l->listed = count > 0;
        const int status = agentd_socket_acl_refuse(l->file, l->mode, uids, count);
        if (status != 0 && !of->lists_failed)
            base_log(BASE_LOG_WARN, "the kernel cannot refuse uids at a socket, so the agent does",
                     "socket=\"%s\" error=\"%s\"", l->path, strerror(-status));
        of->lists_failed |= status != 0;
    }
}

void agentd_listeners_refuse(struct closer *r)
{
    write_lists((struct attach_sockets *)((char *)r - offsetof(struct attach_sockets, closer)));
}

void agentd_listeners_keep_out(struct attach_sockets *of, const uid_t *uids, uint32_t count)
{
    if (count > 0)
        memcpy(of->kept_out, uids, count * sizeof *uids);
    of->kept_out_count = count;
    write_lists(of);
}

void agentd_listeners_rest(struct attach_sockets *of)
{
    write_lists(of);
}

/* ---- listening */

/* A socket file that nobody listens on any more is in the way; anything else is somebody's. */
static int clear_the_way(const struct sockaddr_un *at, struct base_errbuf *err)
{
    struct stat st;
    if (lstat(at->sun_path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return base_err(err, -EEXIST, "%s exists and is no socket: remove it, or change `socket`",
                        at->sun_path);
    int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int status = connect(probe, (const struct sockaddr *)at, sizeof *at) == 0 ? 0 : errno;
    close(probe);
    if (status != ECONNREFUSED)
        return base_err(err, -EADDRINUSE,
                        "another agent listens on %s: stop it, or change `socket`", at->sun_path);
    (void)unlink(at->sun_path);
    return 0;
}

/* Nobody can connect before it listens, and then its mode is as it should be; and a connection
 * takes over then whether descriptors can be sent to it. */
static int open_socket(struct listener *l, const struct sockaddr_un *at, mode_t mode,
                       struct base_errbuf *err)
{
    l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    l->refuses_fds = l->fd >= 0 && base_fds_refuse(l->fd) == 0;
    l->mode = mode;
    int status = 0;
    if (l->fd < 0 || bind(l->fd, (const struct sockaddr *)at, sizeof *at) != 0)
        status = -errno;
    if (status == 0 && (l->file = agentd_socket_acl_open(l->path, mode)) < 0)
        status = l->file;
    if (status == 0 && listen(l->fd, BACKLOG) != 0)
        status = -errno;
    if (status == 0)
        return 0;
    if (l->file >= 0)
        close(l->file);
    if (l->fd >= 0)
        close(l->fd);
    return base_err(err, status,
                    "cannot listen on %s: %s (its directory must exist and be writable by uid %u)",
                    l->path, strerror(-status), (unsigned)geteuid());
}

static int listen_at(struct attach_sockets *of, const char *path, uint32_t tenant, mode_t mode,
                     struct base_errbuf *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct listener *l = &of->listener[of->listeners];
    if (strlen(path) >= sizeof at.sun_path)
        return base_err(err, -ENAMETOOLONG,
                        "`socket` is longer than the %zu bytes that a Unix socket's path can have",
                        sizeof at.sun_path - 1);
    *l = (struct listener){.of = of, .tenant = tenant, .file = -1};
    memcpy(at.sun_path, path, strlen(path));
    memcpy(l->path, path, strlen(path));
    int status = clear_the_way(&at, err);
    if (status == 0)
        status = open_socket(l, &at, mode, err);
    if (status != 0)
        return status;
    l->poll.data = l->again.data = l;
    status = agentd_fd_watch(of->loop, &l->poll, l->fd, on_connection, err);
    if (status != 0) {
        (void)unlink(path);
        close(l->file);
        close(l->fd);
        return status;
    }
    of->listeners++;
    (void)uv_timer_init(of->loop, &l->again);
    return 0;
}

static void begin_turn(uv_prepare_t *prepare)
{
    struct attach_sockets *of = prepare->data;
    of->turn++;
    agentd_attach_cost_turn(of);
}

int agentd_listeners_open(struct attach_sockets *of, const struct agent_config *config,
                          struct base_errbuf *err)
{
    (void)uv_prepare_init(of->loop, &of->turn_begins);
    of->turn_begins.data = of;
    (void)uv_prepare_start(&of->turn_begins, begin_turn);
    uv_unref((uv_handle_t *)&of->turn_begins);
    int status = agentd_attach_cost_init(of, err);
    if (status == 0)
        status = listen_at(of, config->socket, 0, 0666, err);
    for (uint32_t i = 0; i < config->tenants && status == 0; i++) {
        const struct agent_tenant_config *t = &config->tenant[i];
        if (t->socket[0] != '\0') /* the file's tenants have the first places, and keep them */
            status = listen_at(of, t->socket, i + 1, (mode_t)t->socket_mode, err);
    }
    return status;
}

static void on_listener_closed(struct closing *end)
{
    (void)end; /* part of what ends with the loop */
}

/* Whoever waits to be accepted may have sent descriptors, which end with the socket: then it
 * refuses connections at once, and its end is the closer's. */
static void close_socket(struct listener *l)
{
    (void)unlink(l->path);
    close(l->file);
    (void)shutdown(l->fd, SHUT_RDWR);
    l->end = (struct closing){.fd = l->fd, .uid = CLOSER_NOBODY, .closed = on_listener_closed};
    if (!l->refuses_fds && closer_is_there(&l->of->closer))
        agentd_closer_take(&l->of->closer, &l->end);
    else
        close(l->fd);
}

void agentd_listeners_close(struct attach_sockets *of)
{
    if (of->turn_begins.data != NULL)
        uv_close((uv_handle_t *)&of->turn_begins, NULL);
    of->turn_begins.data = NULL;
    agentd_attach_cost_stop(of);
    for (; of->listeners > 0; of->listeners--) {
        struct listener *l = &of->listener[of->listeners - 1];
        l->waits = false;
        uv_close((uv_handle_t *)&l->poll, NULL);
        uv_close((uv_handle_t *)&l->again, NULL);
        close_socket(l);
    }
    agent_attach_close_all(of->agent);
}
