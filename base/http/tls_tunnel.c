/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_tunnel.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "tls_private.h"

enum {
    RECORD_BYTES = 16 << 10, /* the most that a record has */
    RECORDS_PER_TURN = 4,    /* of one tunnel, before others have theirs */
    EVENTS_PER_ROUND = 64,
    ROUNDS_PER_RUN = 4,
    HANDSHAKE_BYTES = 32 << 10, /* of one message of a client's */
    HANDSHAKES_PER_TURN = 8,    /* that are gone on with before everything else has its turn */
    MODULUS_BYTES = 1024 + 1,   /* of a client's RSA key, with the byte of its sign */
    EXPONENT_BYTES = 8,         /* likewise */
    LINGERING_MAX = 64,         /* who does not take its last answer for longest goes */
    LINGER_MS = 10000,          /* without an acknowledgement */
    SCRAPS = 16,                /* of 2 KiB: no more is read of what nobody takes any more */
};

enum end { WIRE, INSIDE, ENDS };

/* What epoll knows of one of the two. */
struct tunnel_end {
    struct http_tunnel *tunnel;
    int fd; /* -1: closed */
    uint32_t events;
};

struct http_tunnel {
    struct http_tunnels *all;
    struct http_connection *connection; /* NULL before it has begun and after its end */
    int given;                          /* libmicrohttpd's end, as long as nobody has joined */
    struct tunnel_end end[ENDS];
    gnutls_session_t session;
    struct http_tls_loaded *loaded; /* what the session refers to */
    bool open;                      /* the handshake is over */
    bool sending;                   /* the session keeps a record that the wire had no room for */
    bool client_ended, server_ended;
    bool lingers; /* libmicrohttpd is through with it, but not all is sent: in all->lingering */
    bool over;
    char *left; /* of what the client has sent: owned; NULL: none */
    size_t left_length, left_done;
    struct http_tls_peer peer;
    TAILQ_ENTRY(http_tunnel) link, linger;
};
TAILQ_HEAD(tunnel_list, http_tunnel);

struct http_tunnels {
    struct http_server *server;
    int epoll;
    gnutls_priority_t priorities;
    unsigned shaken;                    /* handshakes that were gone on with in this turn */
    struct tunnel_list list, lingering; /* the second ones are of the first, too */
    unsigned lingering_count;
    struct tunnel_list ended; /* to be freed after this round's events */
    char scratch[RECORD_BYTES];
};

/* ---- begin and end */

int http_tunnels_new(struct http_server *s, struct http_tunnels **out)
{
    static const char versions[] = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    struct http_tunnels *all = calloc(1, sizeof *all);
    if (all == NULL)
        return -ENOMEM;
    all->server = s;
    TAILQ_INIT(&all->list);
    TAILQ_INIT(&all->lingering);
    TAILQ_INIT(&all->ended);
    all->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (all->epoll < 0 || gnutls_priority_init(&all->priorities, versions, NULL) < 0) {
        const int status = all->epoll < 0 ? -errno : -ENOMEM;
        http_tunnels_free(all);
        return status;
    }
    *out = all;
    return 0;
}

static void close_end(struct tunnel_end *e)
{
    if (e->fd >= 0)
        close(e->fd); /* which takes it out of the epoll: nobody has another reference to it */
    e->fd = -1;
}

/* What was sent and is not read would make the kernel take back what the client was answered. */
static void drain_wire(const struct http_tunnel *t)
{
    char scrap[2048];
    for (int i = 0; i < SCRAPS; i++)
        if (recv(t->end[WIRE].fd, scrap, sizeof scrap, MSG_DONTWAIT) != (ssize_t)sizeof scrap)
            return;
}

static void free_tunnel(struct http_tunnel *t)
{
    TAILQ_REMOVE(&t->all->ended, t, link);
    gnutls_deinit(t->session);
    http_tls_release(t->loaded);
    free(t->left);
    free(t);
}

/* Nothing is carried any more. It is freed when libmicrohttpd is through with its end, too: its
 * request may look at the certificate until then. */
static void end_tunnel(struct http_tunnel *t)
{
    if (t->over)
        return;
    t->over = true;
    if (t->end[WIRE].fd >= 0)
        drain_wire(t);
    close_end(&t->end[WIRE]);
    close_end(&t->end[INSIDE]);
    if (t->connection != NULL)
        t->connection->wire = -1;
    if (t->lingers) {
        TAILQ_REMOVE(&t->all->lingering, t, linger);
        t->all->lingering_count--;
    }
    TAILQ_REMOVE(&t->all->list, t, link);
    TAILQ_INSERT_TAIL(&t->all->ended, t, link);
}

static void free_ended(struct http_tunnels *all)
{
    struct http_tunnel *t = TAILQ_FIRST(&all->ended), *next;
    for (; t != NULL; t = next) {
        next = TAILQ_NEXT(t, link);
        if (t->connection == NULL)
            free_tunnel(t);
    }
}

void http_tunnels_free(struct http_tunnels *all)
{
    struct http_tunnel *t;
    if (all == NULL)
        return;
    http_tunnels_run(all); /* what libmicrohttpd has sent last */
    while ((t = TAILQ_FIRST(&all->list)) != NULL)
        end_tunnel(t);
    free_ended(all);
    BASE_ASSERT(TAILQ_EMPTY(&all->ended));
    if (all->priorities != NULL)
        gnutls_priority_deinit(all->priorities);
    if (all->epoll >= 0)
        close(all->epoll);
    free(all);
}

int http_tunnels_fd(const struct http_tunnels *all)
{
    return all->epoll;
}

/* Whether a key can be used in little time, whoever made it. */
static int check_key(gnutls_x509_crt_t crt)
{
    gnutls_datum_t modulus = {NULL, 0}, exponent = {NULL, 0};
    const int algorithm = gnutls_x509_crt_get_pk_algorithm(crt, NULL);
    if (algorithm < 0)
        return algorithm;
    if (algorithm != GNUTLS_PK_RSA && algorithm != GNUTLS_PK_RSA_PSS)
        return 0; /* those of curves have one size each */
    int code = gnutls_x509_crt_get_pk_rsa_raw(crt, &modulus, &exponent);
    if (code >= 0)
        code = modulus.size > MODULUS_BYTES || exponent.size > EXPONENT_BYTES
                   ? GNUTLS_E_CERTIFICATE_ERROR
                   : 0;
    gnutls_free(modulus.data);
    gnutls_free(exponent.data);
    return code;
}

/* Before a client has proved that its certificate is its own: what that proof costs here is as
 * large as the key that a stranger has made. */
static int check_proof(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                       const gnutls_datum_t *message)
{
    unsigned count = 0;
    gnutls_x509_crt_t crt;
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &count);
    (void)type, (void)when, (void)message;
    if (!incoming || shown == NULL || count == 0)
        return 0;
    if (gnutls_x509_crt_init(&crt) < 0)
        return GNUTLS_E_MEMORY_ERROR;
    int code = gnutls_x509_crt_import(crt, shown, GNUTLS_X509_FMT_DER);
    if (code >= 0)
        code = check_key(crt);
    gnutls_x509_crt_deinit(crt);
    return code;
}

/* A client that was let in and has not shown anything yet. 0 or -ENOMEM. */
static int begin_session(struct http_tunnel *t)
{
    gnutls_session_t session;
    if (gnutls_init(&session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0)
        return -ENOMEM;
    t->session = session;
    t->loaded = http_tls_hold(t->all->server->config.tls);
    const bool asks = t->loaded->file[HTTP_TLS_CA].data != NULL;
    gnutls_certificate_server_set_request(session, asks ? GNUTLS_CERT_REQUEST : GNUTLS_CERT_IGNORE);
    gnutls_handshake_set_max_packet_length(session, HANDSHAKE_BYTES);
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY,
                                       GNUTLS_HOOK_PRE, check_proof);
    gnutls_transport_set_int(session, t->end[WIRE].fd);
    if (gnutls_priority_set(session, t->all->priorities) < 0 ||
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, t->loaded->credentials) < 0)
        return -ENOMEM;
    return 0;
}

static int watch_end(struct tunnel_end *e, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = e};
    e->events = events;
    return epoll_ctl(e->tunnel->all->epoll, operation, e->fd, &event) == 0 ? 0 : -errno;
}

int http_tunnel_new(struct http_tunnels *all, int wire)
{
    const int on = 1;
    int pair[2] = {-1, -1};
    struct http_tunnel *t = calloc(1, sizeof *t);
    if (t == NULL ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
        free(t);
        close(wire);
        return -1;
    }
    t->all = all;
    t->given = pair[1];
    t->end[WIRE] = (struct tunnel_end){.tunnel = t, .fd = wire};
    t->end[INSIDE] = (struct tunnel_end){.tunnel = t, .fd = pair[0]};
    TAILQ_INSERT_TAIL(&all->list, t, link);
    (void)setsockopt(wire, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* records are whole */
    if (begin_session(t) == 0 && watch_end(&t->end[WIRE], EPOLL_CTL_ADD, EPOLLIN) == 0 &&
        watch_end(&t->end[INSIDE], EPOLL_CTL_ADD, 0) == 0)
        return pair[1];
    end_tunnel(t);
    close(pair[1]);
    return -1;
}

int http_tunnel_join(struct http_connection *c)
{
    struct http_tunnel *t;
    if (c->server->tunnels == NULL)
        return c->fd;
    TAILQ_FOREACH(t, &c->server->tunnels->list, link) {
        if (t->given != c->fd)
            continue;
        t->given = -1;
        t->connection = c;
        c->tunnel = t;
        return t->end[WIRE].fd;
    }
    return c->fd;
}

void http_tunnel_leave(struct http_connection *c)
{
    if (c->tunnel != NULL)
        c->tunnel->connection = NULL;
    c->tunnel = NULL;
}

struct gnutls_session_int *http_tunnel_session(const struct http_tunnel *t)
{
    return t->session;
}

struct http_tls_peer *http_tunnel_peer(struct http_tunnel *t)
{
    return &t->peer;
}

/* ---- carrying */

static bool is_later(ssize_t code)
{
    return code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED;
}

/* An alert says what the client thinks of us: that is worth more than how it ended. */
static void tell_failure(const struct http_tunnel *t, int code)
{
    const struct http_server_config *config = &t->all->server->config;
    char why[HTTP_TLS_WHY];
    const char *alert = code == GNUTLS_E_FATAL_ALERT_RECEIVED
                            ? gnutls_alert_get_name(gnutls_alert_get(t->session))
                            : NULL;
    if (config->refused == NULL || t->connection == NULL)
        return;
    if (alert != NULL)
        snprintf(why, sizeof why, "the client ended the handshake of TLS: %s", alert);
    else
        snprintf(why, sizeof why, "the handshake of TLS failed: %s%s", gnutls_strerror(code),
                 code == GNUTLS_E_DECRYPTION_FAILED /* what OpenSSL's alerts come as */
                     ? " (perhaps it does not believe this server's certificate)"
                     : "");
    config->refused(config->user, t->connection->peer, why);
}

static void shake_hands(struct http_tunnel *t)
{
    const int code = gnutls_handshake(t->session);
    if (code == GNUTLS_E_SUCCESS) {
        t->open = true;
    } else if (gnutls_error_is_fatal(code) != 0) {
        if (code != GNUTLS_E_PREMATURE_TERMINATION)
            tell_failure(t, code);
        gnutls_alert_send_appropriate(t->session, code);
        end_tunnel(t);
    }
}

/* False: the server takes no more at the moment. */
static bool give_to_server(struct http_tunnel *t, const char *bytes, size_t length, size_t *done)
{
    while (*done < length) {
        ssize_t n = send(t->end[INSIDE].fd, bytes + *done, length - *done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n < 0) { /* it takes nothing any more; what it has answered is still carried */
            *done = length;
            return true;
        }
        *done += (size_t)n;
    }
    return true;
}

static bool give_what_is_left(struct http_tunnel *t)
{
    if (t->left == NULL)
        return true;
    if (!give_to_server(t, t->left, t->left_length, &t->left_done))
        return false;
    free(t->left);
    t->left = NULL;
    return true;
}

static void keep_left(struct http_tunnel *t, const char *bytes, size_t length)
{
    t->left = malloc(length);
    if (t->left == NULL) {
        end_tunnel(t);
        return;
    }
    memcpy(t->left, bytes, length);
    t->left_length = length;
    t->left_done = 0;
}

static void carry_in(struct http_tunnel *t)
{
    char *bytes = t->all->scratch;
    for (int i = 0; i < RECORDS_PER_TURN && !t->over && !t->client_ended; i++) {
        if (!give_what_is_left(t))
            return;
        ssize_t n = gnutls_record_recv(t->session, bytes, RECORD_BYTES);
        size_t done = 0;
        if (is_later(n))
            return;
        if (n > 0) {
            if (!give_to_server(t, bytes, (size_t)n, &done))
                keep_left(t, bytes + done, (size_t)n - done);
        } else if (n == 0) {
            t->client_ended = true;
            shutdown(t->end[INSIDE].fd, SHUT_WR);
        } else if (gnutls_error_is_fatal((int)n) != 0 || n == GNUTLS_E_REHANDSHAKE) {
            end_tunnel(t); /* nobody negotiates anew, either */
        }
    }
}

static void end_answers(struct http_tunnel *t)
{
    t->server_ended = true;
    (void)gnutls_bye(t->session, GNUTLS_SHUT_WR);
    shutdown(t->end[WIRE].fd, SHUT_WR);
}

static void carry_out(struct http_tunnel *t)
{
    char *bytes = t->all->scratch;
    for (int i = 0; i < RECORDS_PER_TURN && !t->over && !t->server_ended; i++) {
        ssize_t n = 0, sent;
        if (!t->sending) {
            n = recv(t->end[INSIDE].fd, bytes, RECORD_BYTES, 0);
            if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
            if (n <= 0) {
                end_answers(t);
                return;
            }
        }
        sent = gnutls_record_send(t->session, t->sending ? NULL : bytes, (size_t)n);
        t->sending = is_later(sent);
        if (t->sending)
            return;
        if (sent < 0)
            end_tunnel(t);
    }
}

static void choose_events(struct http_tunnel *t)
{
    const bool carries_out = t->sending || (t->lingers && !t->server_ended);
    const bool writes = t->open ? carries_out : gnutls_record_get_direction(t->session) == 1;
    const bool reads = !t->client_ended && t->left == NULL && (t->open || !writes);
    const uint32_t wire = (writes ? EPOLLOUT : 0u) | (reads ? EPOLLIN : 0u);
    const uint32_t inside = (t->left != NULL ? EPOLLOUT : 0u) |
                            (t->open && !t->sending && !t->server_ended ? EPOLLIN : 0u);
    int status = 0;
    if (wire != t->end[WIRE].events)
        status = watch_end(&t->end[WIRE], EPOLL_CTL_MOD, wire);
    if (status == 0 && !t->lingers && inside != t->end[INSIDE].events)
        status = watch_end(&t->end[INSIDE], EPOLL_CTL_MOD, inside);
    if (status != 0)
        end_tunnel(t);
}

/* The server is through with it: that end is readable from now on, whether anything can be carried
 * or not, so it is looked at no more until the wire has room. */
static void let_linger(struct http_tunnel *t)
{
    struct http_tunnels *all = t->all;
    const unsigned ms = LINGER_MS;
    if (t->lingers)
        return;
    (void)epoll_ctl(all->epoll, EPOLL_CTL_DEL, t->end[INSIDE].fd, NULL);
    (void)setsockopt(t->end[WIRE].fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    t->lingers = true;
    TAILQ_INSERT_TAIL(&all->lingering, t, linger);
    if (++all->lingering_count > LINGERING_MAX)
        end_tunnel(TAILQ_FIRST(&all->lingering));
}

/* Before libmicrohttpd has taken its end nothing is given to it. */
static void carry_both(const struct tunnel_end *e, uint32_t events)
{
    struct http_tunnel *t = e->tunnel;
    const bool joined = t->given < 0, lost = (events & EPOLLERR) != 0;
    const bool gone = (events & EPOLLHUP) != 0;
    if (t->over)
        return;
    if (!t->open && e == &t->end[WIRE]) {
        if (!lost && !gone && t->all->shaken++ >= HANDSHAKES_PER_TURN)
            return; /* it stays readable */
        shake_hands(t);
    }
    if (t->open && joined) {
        carry_out(t);
        carry_in(t);
    }
    if (t->over)
        return;
    if ((t->client_ended && t->server_ended) || (e == &t->end[WIRE] && (lost || gone)) ||
        (gone && e == &t->end[INSIDE] && (!t->open || !joined || t->server_ended)) ||
        (t->lingers && t->server_ended)) {
        end_tunnel(t);
        return;
    }
    if (gone && e == &t->end[INSIDE])
        let_linger(t);
    if (!t->over)
        choose_events(t);
}

void http_tunnels_begin_turn(struct http_tunnels *all)
{
    if (all != NULL)
        all->shaken = 0;
}

void http_tunnels_run(struct http_tunnels *all)
{
    struct epoll_event events[EVENTS_PER_ROUND];
    int n = EVENTS_PER_ROUND;
    if (all == NULL)
        return;
    for (int round = 0; round < ROUNDS_PER_RUN && n == EVENTS_PER_ROUND; round++) {
        n = epoll_wait(all->epoll, events, EVENTS_PER_ROUND, 0);
        for (int i = 0; i < n; i++)
            carry_both(events[i].data.ptr, events[i].events);
        free_ended(all);
    }
}
