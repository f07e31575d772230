/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets and deadlines of the HTTP server. libmicrohttpd parses and writes; accepting is done
 * here, so that one bound holds for both sockets and a client above it gets an answer instead of
 * silence. */
#include "base/http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "http_listen.h"
#include "server_private.h"
#include "tls_tunnel.h"

enum {
    ACCEPTS_PER_RUN = 4,   /* so that those who connect keep nobody waiting who is connected */
    ROUNDS_PER_RUN = 8,    /* of libmicrohttpd, while it has more to do */
    SILENT_CLIENTS = 1024, /* addresses without a connection that are remembered */
    ENDING_MAX = 64,       /* connections that were hung up on and are not closed yet */
    SPARED_IDLE_MS = 1000, /* a connection that became idle less long ago is not sacrificed */
    SCRAPS = 16,           /* of 2 KiB: no more is read of what a client sent that is refused */
};

static uint64_t timeout_ns(const struct http_server *s, enum http_wait wait)
{
    const unsigned ms[HTTP_WAITS_TIMED] = {[HTTP_WAIT_IDLE] = s->config.idle_timeout_ms,
                                           [HTTP_WAIT_REQUEST] = s->config.request_timeout_ms,
                                           [HTTP_WAIT_STREAM] = s->config.stream_timeout_ms,
                                           [HTTP_WAIT_TLS] = s->config.handshake_timeout_ms};
    return BASE_NS_PER_MS * ms[wait];
}

void http_connection_wait(struct http_connection *c, enum http_wait wait, bool idle)
{
    struct http_server *s = c->server;
    if (c->wait != HTTP_WAIT_NOTHING)
        TAILQ_REMOVE(&s->waiting[c->wait], c, link);
    c->wait = wait;
    c->idle = idle;
    if (wait == HTTP_WAIT_NOTHING)
        return;
    c->since_ns = base_clock_ns();
    TAILQ_INSERT_TAIL(&s->waiting[wait], c, link);
}

void http_connection_hang_up(struct http_connection *c)
{
    http_connection_wait(c, HTTP_WAIT_NOTHING, false);
    http_admission_leave(c);
    shutdown(c->fd, SHUT_RDWR);
}

void http_connection_refuse(struct http_connection *c, int status, const char *why)
{
    char answer[HTTP_RAW_BYTES];
    http_raw_problem(status, why, answer, sizeof answer);
    send(c->fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
    c->server->stats.rejected++;
    http_connection_hang_up(c);
}

static bool is_loopback(const struct sockaddr_storage *a)
{
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)a)->sin6_addr;
    if (a->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->ss_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127));
}

static void name_peer(struct http_connection *c)
{
    struct sockaddr_storage address, own;
    socklen_t length = sizeof address, own_length = sizeof own;
    char host[INET6_ADDRSTRLEN];
    struct ucred cred;
    socklen_t cred_length = sizeof cred;
    snprintf(c->peer, sizeof c->peer, "unknown");
    if (getpeername(c->wire, (struct sockaddr *)&address, &length) != 0)
        return;
    c->has_key = http_client_key(&address, c->key);
    c->on_loopback =
        getsockname(c->wire, (struct sockaddr *)&own, &own_length) == 0 && is_loopback(&own);
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(c->peer, sizeof c->peer, "%s:%u", host, ntohs(v4->sin_port));
    } else if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(c->peer, sizeof c->peer, "[%s]:%u", host, ntohs(v6->sin6_port));
    } else if (own_length > sizeof own.ss_family && /* a pair has no name: that is no client's */
               getsockopt(c->wire, SOL_SOCKET, SO_PEERCRED, &cred, &cred_length) == 0) {
        snprintf(c->peer, sizeof c->peer, "unix");
        c->local = true;
        c->uid = cred.uid;
    }
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = cls;
    struct http_connection *c = *context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (c == NULL)
            return;
        s->stats.handshakes_failed += c->tunnel != NULL && !c->asked;
        http_connection_wait(c, HTTP_WAIT_NOTHING, false);
        http_request_free(c->request);
        http_admission_leave(c);
        http_tunnel_leave(c);
        free(c);
        s->stats.open--;
        return;
    }
    int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c = calloc(1, sizeof *c);
    *context = c;
    if (c == NULL) {
        shutdown(fd, SHUT_RDWR);
        return;
    }
    c->server = s;
    c->fd = fd;
    c->uid = (uid_t)-1;
    c->wait = HTTP_WAIT_NOTHING;
    c->wire = http_tunnel_join(c);
    name_peer(c);
    http_admission_join(c);
    s->stats.open++;
    http_connection_wait(c, c->tunnel != NULL ? HTTP_WAIT_TLS : HTTP_WAIT_IDLE, true);
    if (!c->local && !c->has_key && s->tunnels != NULL) /* and its tunnel is gone */
        http_connection_hang_up(c);
}

/* Says so, but where TLS would have to begin for that, and closes. A head that the client sent
 * already is read, since closing with unread bytes may discard the answer. One that sends without
 * end may be faster than this reads. */
static void turn_away(struct http_server *s, int fd, bool says, int status, const char *why)
{
    char answer[HTTP_RAW_BYTES], scrap[2048];
    s->stats.refused++;
    s->stats.limited += status == 429;
    http_raw_problem(status, why, answer, sizeof answer);
    if (says && send(fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
        shutdown(fd, SHUT_WR);
        for (int i = 0; i < SCRAPS; i++)
            if (recv(fd, scrap, sizeof scrap, MSG_DONTWAIT) != (ssize_t)sizeof scrap)
                break;
    }
    close(fd);
    if (status != 503 || s->config.identify != NULL)
        return;
    struct http_connection *oldest = TAILQ_FIRST(&s->waiting[HTTP_WAIT_IDLE]);
    if (oldest != NULL && oldest->idle &&
        base_clock_ns() - oldest->since_ns > SPARED_IDLE_MS * BASE_NS_PER_MS)
        http_connection_hang_up(oldest);
}

/* Into libmicrohttpd, with TLS between where the listener has it. */
static void add_connection(struct http_server *s, int listener, int fd,
                           struct sockaddr_storage *address, socklen_t length)
{
    if (listener == s->tcp && s->tunnels != NULL)
        fd = http_tunnel_new(s->tunnels, fd);
    if (fd < 0 || MHD_add_connection(s->daemon, fd, (struct sockaddr *)address, length) != MHD_YES)
        s->stats.refused++; /* no memory or no descriptors; closed already */
}

/* Descriptors have run out: without this the listening socket would stay readable for ever. */
static void accept_and_drop(struct http_server *s, int listener)
{
    close(s->spare);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        turn_away(s, fd, listener != s->tcp || s->tunnels == NULL, 503,
                  "too many connections; try again soon");
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_some(struct http_server *s, int listener)
{
    const bool says = listener != s->tcp || s->tunnels == NULL;
    for (int i = 0; i < ACCEPTS_PER_RUN; i++) {
        struct sockaddr_storage address;
        socklen_t length = sizeof address;
        int fd =
            accept4(listener, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            accept_and_drop(s, listener);
            continue;
        }
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
            continue;
        if (fd < 0)
            return;
        const char *why;
        const int status = http_admit(s, &address, &why);
        s->stats.accepted++;
        if (status != 0)
            turn_away(s, fd, says, status, why);
        else
            add_connection(s, listener, fd, &address, length);
    }
}

/* A request that came in part has been promised nothing yet, so its 408 goes straight out. */
static void expire_waits(struct http_server *s)
{
    uint64_t now = base_clock_ns();
    for (int wait = 0; wait < HTTP_WAITS_TIMED; wait++) {
        struct http_connection *c;
        while ((c = TAILQ_FIRST(&s->waiting[wait])) != NULL &&
               now - c->since_ns >= timeout_ns(s, (enum http_wait)wait)) {
            if (wait == HTTP_WAIT_REQUEST)
                http_connection_refuse(c, 408, "the request did not arrive whole in time");
            else
                http_connection_hang_up(c);
        }
    }
}

/* Sets the timer to the earliest thing that will not announce itself on a descriptor. That also
 * clears one that has expired, so nobody reads it. */
static void arm_timer(struct http_server *s)
{
    uint64_t now = base_clock_ns(), wait_ns = UINT64_MAX;
    MHD_UNSIGNED_LONG_LONG ms;
    if (s->resumed)
        wait_ns = 0;
    else if (MHD_get_timeout(s->daemon, &ms) == MHD_YES)
        wait_ns = ms * BASE_NS_PER_MS;
    for (int wait = 0; wait < HTTP_WAITS_TIMED; wait++) {
        const struct http_connection *c = TAILQ_FIRST(&s->waiting[wait]);
        if (c == NULL)
            continue;
        uint64_t end = c->since_ns + timeout_ns(s, (enum http_wait)wait);
        uint64_t left = end > now ? end - now : 0;
        wait_ns = left < wait_ns ? left : wait_ns;
    }
    struct itimerspec t = {0};
    if (wait_ns != UINT64_MAX) {
        wait_ns = wait_ns == 0 ? 1 : wait_ns; /* zero would disarm it */
        t.it_value.tv_sec = (time_t)(wait_ns / BASE_NS_PER_S);
        t.it_value.tv_nsec = (long)(wait_ns % BASE_NS_PER_S);
    }
    timerfd_settime(s->timer, 0, &t, NULL);
}

void http_server_kick(struct http_server *s)
{
    s->resumed = true;
    arm_timer(s);
}

void http_server_run(struct http_server *s)
{
    struct epoll_event events[5];
    int n = epoll_wait(s->epoll, events, 5, 0);
    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == s->tcp || events[i].data.fd == s->local)
            accept_some(s, events[i].data.fd);
    }
    expire_waits(s);
    http_tunnels_begin_turn(s->tunnels);
    MHD_UNSIGNED_LONG_LONG ms;
    for (int i = 0; i < ROUNDS_PER_RUN; i++) {
        s->resumed = false; /* a handler may answer an earlier request */
        http_tunnels_run(s->tunnels);
        MHD_run(s->daemon);
        if (!s->resumed && (MHD_get_timeout(s->daemon, &ms) != MHD_YES || ms != 0))
            break;
    }
    http_tunnels_run(s->tunnels);
    arm_timer(s);
}

static void set_defaults(struct http_server_config *c)
{
    c->connections = c->connections != 0 ? c->connections : 1024;
    c->anonymous = c->anonymous != 0 ? c->anonymous : c->connections;
    c->connections_per_id = c->connections_per_id != 0 ? c->connections_per_id : c->connections;
    c->connections_per_ip = c->connections_per_ip != 0 ? c->connections_per_ip : c->connections;
    c->requests_burst = c->requests_burst != 0 ? c->requests_burst : c->requests_per_second;
    c->body_bytes = c->body_bytes != 0 ? c->body_bytes : 1 << 20;
    c->bodies_bytes = c->bodies_bytes != 0 ? c->bodies_bytes : 64 << 20;
    c->header_bytes = c->header_bytes != 0 ? c->header_bytes : 32 << 10;
    c->idle_timeout_ms = c->idle_timeout_ms != 0 ? c->idle_timeout_ms : 60000;
    c->request_timeout_ms = c->request_timeout_ms != 0 ? c->request_timeout_ms : 10000;
    c->handshake_timeout_ms = c->handshake_timeout_ms != 0 ? c->handshake_timeout_ms : 10000;
    c->stream_timeout_ms = c->stream_timeout_ms != 0 ? c->stream_timeout_ms : 10000;
    c->listen = c->unix_path = c->program = c->setting = c->hosts =
        NULL; /* borrowed for new() alone */
}

static int watch_fd(int epoll, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

/* Whether its head is there, and it was neither given to http_on_request() nor answered. */
static bool is_passed_over(const struct http_exchange *r)
{
    return r != NULL && !r->begun &&
           MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) != NULL &&
           MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_HTTP_STATUS) == NULL;
}

/* libmicrohttpd complains before it answers a request by itself, twice if that was for the length
 * of its body, but does not say of whom. It gives a head to http_on_request() as soon as that is
 * there, so a request that was passed over is the one. What it sends then finds the connection
 * shut. */
static void on_complaint(void *cls, const char *format, va_list args)
{
    struct http_server *s = cls;
    struct http_connection *c, *next;
    const char *why;
    (void)format, (void)args;
    for (c = TAILQ_FIRST(&s->waiting[HTTP_WAIT_REQUEST]); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        if (!is_passed_over(c->request))
            continue;
        const int status = http_head_find_fault(c->request, &why);
        http_connection_refuse(c, status, why);
    }
}

static int start_daemon(struct http_server *s)
{
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0,
        NULL, NULL, http_on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_complaint, s,
        MHD_OPTION_CONNECTION_LIMIT, s->config.connections + ENDING_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->config.header_bytes, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, s,
        MHD_OPTION_URI_LOG_CALLBACK, http_on_uri, s,
        /* What it would be strict with it closes upon or answers with HTML: head.c is stricter. */
        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_END);
    if (s->daemon == NULL)
        return -ENOMEM;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info == NULL ? -EIO : watch_fd(s->epoll, info->epoll_fd);
}

static int make_descriptors(struct http_server *s)
{
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->epoll < 0 || s->timer < 0 || s->spare < 0)
        return -errno;
    return watch_fd(s->epoll, s->timer);
}

static int start_listening(struct http_server *s, const struct http_server_config *config,
                           struct base_errbuf *err)
{
    int status = 0;
    struct stat st;
    if (config->listen != NULL) {
        status = http_listen_tcp(config, &s->tcp, &s->port, err);
        if (status == 0 && (status = watch_fd(s->epoll, s->tcp)) != 0)
            base_err(err, status, "cannot listen on %s: %s", config->listen, strerror(-status));
    }
    if (status != 0 || config->unix_path == NULL)
        return status;
    s->unix_path = strdup(config->unix_path);
    if (s->unix_path == NULL)
        return base_err(err, -ENOMEM, "cannot listen on %s: out of memory", config->unix_path);
    status = http_listen_unix(config, &s->local, err);
    if (status != 0)
        return status;
    if (lstat(s->unix_path, &st) == 0) {
        s->unix_inode = st.st_ino;
        s->unix_device = st.st_dev;
    }
    status = watch_fd(s->epoll, s->local);
    if (status != 0)
        base_err(err, status, "cannot listen on %s: %s", config->unix_path, strerror(-status));
    return status;
}

int http_server_new(const struct http_server_config *config, struct http_server **out,
                    struct base_errbuf *err)
{
    if (config->handle == NULL || (config->listen == NULL && config->unix_path == NULL))
        return base_err(err, -EINVAL, "the HTTP server needs an address and a handler");
    if (config->tls != NULL && http_tls_expiry(config->tls) == 0)
        return base_err(err, -EINVAL, "a server with TLS needs a certificate of its own");
    struct http_server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return base_err(err, -ENOMEM, "cannot start the HTTP server: out of memory");
    s->config = *config;
    set_defaults(&s->config);
    s->epoll = s->timer = s->tcp = s->local = s->spare = -1;
    for (int wait = 0; wait < HTTP_WAITS_TIMED; wait++)
        TAILQ_INIT(&s->waiting[wait]);
    TAILQ_INIT(&s->deferred);
    TAILQ_INIT(&s->streams);
    s->clients.max_connections = s->config.connections_per_ip;
    s->clients.per_second = s->config.requests_per_second;
    s->clients.burst = s->config.requests_burst;
    TAILQ_INIT(&s->anonymous);
    s->known.per_second = s->config.requests_per_second;
    s->known.burst = s->config.requests_burst;
    const uint32_t room = s->config.connections + ENDING_MAX + SILENT_CLIENTS;
    int status = http_clients_init(&s->clients, room);
    if (status == 0)
        status = http_clients_init(&s->known, room);
    if (status == 0 && config->hosts != NULL && (s->hosts = strdup(config->hosts)) == NULL)
        status = -ENOMEM;
    if (status == 0)
        status = make_descriptors(s);
    if (status == 0)
        status = start_daemon(s);
    if (status == 0 && config->tls != NULL)
        status = http_tunnels_new(s, &s->tunnels);
    if (status == 0 && s->tunnels != NULL)
        status = watch_fd(s->epoll, http_tunnels_fd(s->tunnels));
    if (status != 0)
        base_err(err, status, "cannot start the HTTP server: %s", strerror(-status));
    else
        status = start_listening(s, config, err);
    if (status != 0) {
        http_server_free(s);
        return status;
    }
    *out = s;
    return 0;
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

void http_server_free(struct http_server *s)
{
    if (s == NULL)
        return;
    struct http_exchange *r;
    struct stat st;
    if (s->local >= 0 && lstat(s->unix_path, &st) == 0 && st.st_ino == s->unix_inode &&
        st.st_dev == s->unix_device)
        unlink(s->unix_path);
    /* libmicrohttpd may not be stopped while a connection is suspended; and it reads what clients
     * have sent meanwhile while it ends those that are. */
    s->ending = true;
    while ((r = TAILQ_FIRST(&s->deferred)) != NULL)
        http_request_abandon(r);
    TAILQ_FOREACH(r, &s->streams, stream.link)
        http_stream_end(r);
    if (s->daemon != NULL) {
        for (int i = 0; i < ROUNDS_PER_RUN; i++) {
            MHD_run(s->daemon);
            http_tunnels_run(s->tunnels);
        }
        MHD_stop_daemon(s->daemon);
    }
    http_tunnels_free(s->tunnels);
    http_clients_fini(&s->clients);
    http_clients_fini(&s->known);
    close_all((const int[]){s->tcp, s->local, s->timer, s->spare, s->epoll}, 5);
    free(s->unix_path);
    free(s->hosts);
    free(s);
}

int http_server_fd(const struct http_server *s)
{
    return s->epoll;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

void http_server_stats(const struct http_server *s, struct http_server_stats *out)
{
    *out = s->stats;
    for (int rank = 0; rank < HTTP_RANKS; rank++)
        out->ranked[rank] = s->ranked[rank];
}
