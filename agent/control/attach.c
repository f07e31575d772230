/* SPDX-License-Identifier: Apache-2.0 */
/* The attach socket: who comes, what they say, and how their end is noticed. What they get is
 * admit.c's.
 *
 * A connection is one worker: its session ends when the socket or the process does. Everything that
 * comes in is checked for size and kind before a byte of it is believed; who sends too much is told
 * so and cut off. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "connection.h"
#include "agent.h"
#include "fd_watch.h"

#define TOO_MANY "too many connections are open: close some, or try again"

/* ---- ending
 * ---------------------------------------------------------------------------------------------- */

static void unlist_connection(struct connection *c)
{
    struct agent *a = c->agent;
    for (struct connection **at = &a->connections; *at != NULL; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    waiting_leave(&a->waiting, &c->waiting);
}

static void free_unless_used(struct connection *c)
{
    if (!c->resolving && !c->with_closer)
        free(c);
}

static void connection_free(struct connection *c)
{
    if (c->pidfd >= 0)
        close(c->pidfd);
    c->with_closer = c->dirty && closer_take(c->at, c->fd, c->peer.uid, c) == 0;
    if (c->with_closer)
        return;
    close(c->fd);
    if (c->dirty)
        unlist_connection(c);
    free_unless_used(c);
}

void connection_closed(struct connection *c)
{
    c->with_closer = false;
    unlist_connection(c);
    free_unless_used(c);
}

static void handle_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    if (--c->handles == 0)
        connection_free(c);
}

/* One to which descriptors were sent counts until it is closed. */
void connection_close(struct connection *c)
{
    if (c->closing)
        return;
    c->closing = true;
    c->dirty = closer_is_needed(c->at, c->fd);
    c->waiting.stays = true;
    if (c->dirty)
        waiting_add(&c->agent->waiting, &c->waiting);
    else
        unlist_connection(c);
    if (c->queued)
        connection_leave_queue(c);
    if (c->attached)
        session_release(c->pool, c->session, SCHEMA_REASON_CLOSED);
    if (c->handles == 0) /* whoever has accepted it frees it */
        return;
    uv_close((uv_handle_t *)&c->deadline, handle_closed);
    if (c->poll.data != NULL)
        uv_close((uv_handle_t *)&c->poll, handle_closed);
    if (c->process.data != NULL)
        uv_close((uv_handle_t *)&c->process, handle_closed);
}

void connections_close(struct agent *a)
{
    for (struct connection *c = a->connections, *next; c != NULL; c = next) {
        next = c->next;
        connection_close(c);
    }
}

void connection_mute(struct connection *c)
{
    c->ended = true;
}

void connection_end(struct connection *c)
{
    connection_mute(c);
    (void)shutdown(c->fd, SHUT_WR);
}

/* ---- answers
 * --------------------------------------------------------------------------------------------- */

int connection_send(int fd, void *message, uint16_t type, uint32_t size, uint32_t tag,
                    const int *fds, unsigned count)
{
    struct schema_control_header *h = message;
    *h = (struct schema_control_header){.magic = SCHEMA_CONTROL_MAGIC,
                                        .version = SCHEMA_CONTROL_VERSION,
                                        .type = type,
                                        .tag = tag,
                                        .size = size};
    return base_fds_send(fd, message, size, fds, count);
}

static int send_error(int fd, uint32_t tag, int status, const char *text, uint32_t retry_ms)
{
    struct schema_control_error m = {.status = status, .retry_ms = retry_ms};
    snprintf(m.text, sizeof m.text, "%.*s", (int)sizeof m.text - 1, text);
    return connection_send(fd, &m, SCHEMA_CONTROL_ERROR, sizeof m, tag, NULL, 0);
}

/* Non-blocking: who does not read its answers loses them and its session. */
static void send_answer(struct connection *c, void *message, uint16_t type, uint32_t size,
                        uint32_t tag, const int *fds, unsigned count)
{
    if (connection_send(c->fd, message, type, size, tag, fds, count) != 0)
        connection_close(c);
}

static void answer_error(struct connection *c, uint32_t tag, int status, const char *text)
{
    if (send_error(c->fd, tag, status, text, 0) != 0)
        connection_close(c);
}

void connection_refuse_for(struct connection *c, uint32_t tag, int status, const char *text,
                           uint32_t retry_ms)
{
    c->agent->refused++;
    (void)send_error(c->fd, tag, status, text, retry_ms);
    connection_close(c);
}

void connection_refuse(struct connection *c, uint32_t tag, int status, const char *text)
{
    connection_refuse_for(c, tag, status, text, 0);
}

static void on_deadline(uv_timer_t *timer);

void connection_await(struct connection *c)
{
    if (c->handles > 0) /* else connection_watch() does */
        (void)uv_timer_start(&c->deadline, on_deadline, WAIT_MS, 0);
}

/* The answer comes late, and until then the connection stays and counts, whatever its worker does:
 * so many guesses a second are all that there are. */
static void hold_connection(struct connection *c)
{
    if (c->handles == 0) /* connection_watch() does */
        return;
    if (c->poll.data != NULL) {
        (void)uv_poll_stop(&c->poll);
        (void)uv_poll_stop(&c->process);
    }
    (void)uv_timer_start(&c->deadline, on_deadline, WRONG_TOKEN_MS, 0);
}

void connection_refuse_token(struct connection *c, uint32_t tag)
{
    struct agent *a = c->agent;
    uint32_t suppressed;
    a->wrong_tokens++;
    if (base_log_allow(&a->token_limit, world_now_ns(a->world), TOKENS_LOGGED_S * BASE_NS_PER_S,
                       TOKENS_LOGGED, &suppressed))
        base_log(BASE_LOG_WARN, "a worker has shown a token that no tenant has",
                 "uid=%u pid=%d socket=\"%s\" suppressed=%u", (unsigned)c->peer.uid,
                 (int)c->peer.pid, c->at->path, suppressed);
    c->held = true;
    c->held_tag = tag;
    c->waiting.silent = false;
    hold_connection(c);
}

void connection_arena(struct connection *c, int status, const struct arena *arena, uint32_t number)
{
    if (c->closing || c->ended)
        return;
    if (status != 0) {
        answer_error(c, c->arena_tag, status,
                     status == -EDQUOT ? "this session has all the arenas that it can have"
                                       : "no arena could be made: the agent's log may say why");
        return;
    }
    struct schema_control_arena_ok m = {.bytes = arena->mem.size, .arena = number};
    send_answer(c, &m, SCHEMA_CONTROL_ARENA_OK, sizeof m, c->arena_tag, &arena->mem.fd, 1);
}

static void on_resolved(void *user, int status, const uint8_t gid[16], uint16_t pool)
{
    struct connection *c = user;
    c->resolving = false;
    if (c->closing) {
        if (c->handles == 0)
            free_unless_used(c);
        return;
    }
    if (c->ended)
        return;
    if (status != 0) {
        answer_error(c, c->resolve_tag, status,
                     status == -ENOENT   ? "no node has that name"
                     : status == -EAGAIN ? "too many names are being asked for: try again"
                                         : "no metaserver could be asked for that name");
        return;
    }
    struct schema_control_resolved m = {.pool = pool};
    memcpy(m.gid, gid, sizeof m.gid);
    send_answer(c, &m, SCHEMA_CONTROL_RESOLVED, sizeof m, c->resolve_tag, NULL, 0);
}

static void resolve_name(struct connection *c, const struct schema_control_resolve *m)
{
    if (c->resolving) {
        answer_error(c, m->h.tag, -EAGAIN, "one name at a time");
        return;
    }
    c->resolving = true;
    c->resolve_tag = m->h.tag;
    registrations_resolve(c->agent, c->pool->number, m->name, on_resolved, c);
}

/* ---- what comes in
 * --------------------------------------------------------------------------------------- */

static bool is_flood(struct connection *c)
{
    uint64_t second = world_now_ns(c->agent->world) / BASE_NS_PER_S;
    if (second != c->second) {
        c->second = second;
        c->messages = 0;
    }
    return ++c->messages > MESSAGES_PER_S;
}

/* In the worker's own version, which its library reads: an error looks the same in all. */
static void refuse_version(struct connection *c, uint16_t version)
{
    struct schema_control_error m = {.h = {.magic = SCHEMA_CONTROL_MAGIC,
                                           .version = version,
                                           .type = SCHEMA_CONTROL_ERROR,
                                           .size = sizeof m},
                                     .status = -EPROTONOSUPPORT};
    snprintf(m.text, sizeof m.text, SCHEMA_CONTROL_VERSIONS, SCHEMA_CONTROL_VERSION, version);
    c->agent->refused++;
    (void)base_fds_send(c->fd, &m, sizeof m, NULL, 0);
    connection_close(c);
}

static void take_message(struct connection *c, const void *packet, size_t bytes)
{
    const struct schema_control_header *h = packet;
    struct base_errbuf why;
    int status = schema_control_check(packet, bytes);
    if (status != 0) {
        if (status == -EPROTONOSUPPORT)
            refuse_version(c, h->version);
        else
            connection_refuse(c, 0, status, "malformed message");
        return;
    }
    if (h->type == SCHEMA_CONTROL_ATTACH) {
        connection_attach(c, packet);
        return;
    }
    if (!c->attached) {
        connection_refuse(c, h->tag, -EPROTO, "attach first");
        return;
    }
    if (h->type != SCHEMA_CONTROL_ARENA && h->type != SCHEMA_CONTROL_RESOLVE) {
        connection_refuse(c, h->tag, -EPROTO, "that message is an agent's to send");
        return;
    }
    status = quota_ask(c->pool, c->tenant, &why);
    if (status != 0) {
        answer_error(c, h->tag, status, why.text);
    } else if (h->type == SCHEMA_CONTROL_RESOLVE) {
        resolve_name(c, packet);
    } else {
        const struct schema_control_arena *m = packet;
        c->arena_tag = h->tag;
        status = session_more(c->pool, c->session, m->bytes, &why);
        if (status != 0)
            answer_error(c, h->tag, status, why.text);
    }
}

/* A message. -EPROTO: descriptors are with it, that nobody asked for; it is left where it is. */
static int receive_message(struct connection *c, void *packet, size_t *bytes)
{
    unsigned count;
    int status = c->at->refuses_fds ? 0 : base_fds_look(c->fd);
    if (status != 0)
        return status;
    return base_fds_recv(c->fd, packet, SCHEMA_CONTROL_MAX_BYTES, bytes, NULL, 0, &count);
}

/* The rest of what was sent is taken after what others sent. */
static void take_next(struct connection *c)
{
    _Alignas(8) uint8_t packet[SCHEMA_CONTROL_MAX_BYTES];
    size_t bytes = 0;
    int got = receive_message(c, packet, &bytes);
    if (got == -EAGAIN || got == -EINTR)
        return;
    if (got == 0 && !is_flood(c)) {
        if (!c->ended)
            take_message(c, packet, bytes);
        explicit_bzero(packet, bytes); /* a token was in it, perhaps */
        return;
    }
    const bool malformed = got == -EMSGSIZE || got == -EPROTO;
    if (c->ended || (got != 0 && !malformed))
        connection_close(c);
    else
        connection_refuse(c, 0, malformed ? -EPROTO : -EAGAIN,
                          malformed ? "malformed message"
                                    : "too many messages: the rings are for that");
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct connection *c = poll->data;
    (void)events;
    if (status < 0)
        connection_close(c);
    else
        take_next(c);
}

static void on_process_end(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    connection_close(poll->data);
}

static void on_deadline(uv_timer_t *timer)
{
    struct connection *c = timer->data;
    if (c->queued)
        connection_waited(c);
    else if (c->held)
        connection_refuse(
            c, c->held_tag, -EACCES,
            "no tenant has the token that was shown: it is wrong, or was deleted, or has expired");
    else
        connection_refuse(c, 0, -ETIMEDOUT, "attach within 5 s of connecting");
}

static void say_crowded(const struct connection *c)
{
    struct agent *a = c->agent;
    uint32_t suppressed;
    a->crowded++;
    if (base_log_allow(&a->crowd_limit, world_now_ns(a->world), CROWD_LOGGED_S * BASE_NS_PER_S, 1,
                       &suppressed))
        base_log(BASE_LOG_WARN, "too many connections that have not attached are open",
                 "uid=%u pid=%d socket=\"%s\" suppressed=%u", (unsigned)c->peer.uid,
                 (int)c->peer.pid, c->at->path, suppressed);
}

/* Whoever connects sends at once, so that one that has said nothing is given up for one that may.
 */
static int find_room(struct connection *c)
{
    struct agent *a = c->agent;
    struct waiter *goes = NULL;
    int status = waiting_enter(&a->waiting, a->config.max_sessions, &c->waiting, &goes);
    if (status != 0 || goes != NULL)
        say_crowded(c);
    if (goes != NULL)
        connection_refuse(
            (struct connection *)((char *)goes - offsetof(struct connection, waiting)), 0, -EAGAIN,
            TOO_MANY);
    return status;
}

/* -EACCES: nobody of its uid can attach, which `why` says. */
static int connection_new(struct listener *at, int fd, struct connection **out,
                          struct base_errbuf *why)
{
    struct agent *a = at->agent;
    struct connection *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    c->agent = a;
    c->at = at;
    c->fd = fd;
    c->pidfd = -1;
    int status = base_fds_peer(fd, &c->peer);
    c->waiting.uid = c->peer.uid;
    c->waiting.silent = true;
    if (status == 0)
        status = connection_share(at, c->peer.uid, &c->waiting.share, why);
    if (status == 0)
        status = find_room(c);
    if (status != 0) {
        free(c);
        return status;
    }
    c->next = a->connections;
    a->connections = c;
    *out = c;
    return 0;
}

/* 0; or -errno and a sentence. */
static int poll_begin(struct connection *c, uv_poll_t *poll, int fd, struct base_errbuf *why)
{
    const int status = uv_poll_init(&c->agent->loop, poll, fd);
    if (status != 0)
        return fd_watch_failed(status, why);
    poll->data = c;
    c->handles++;
    return 0;
}

/* How its process ends is noticed too. -ESRCH: it has ended. */
static int watch_worker(struct connection *c, struct base_errbuf *why)
{
    c->pidfd = base_fds_peer_pidfd(c->fd, c->peer.pid);
    if (c->pidfd < 0)
        return base_err(why, c->pidfd, "no descriptor of a process can be had: %s%s",
                        strerror(-c->pidfd), c->pidfd == -EMFILE ? " (raise LimitNOFILE)" : "");
    const int status = poll_begin(c, &c->poll, c->fd, why);
    return status == 0 ? poll_begin(c, &c->process, c->pidfd, why) : status;
}

/* One that has its session loses it, and hears no more than that. */
static void turn_away(struct connection *c, const char *why)
{
    struct agent *a = c->agent;
    uint32_t suppressed;
    if (base_log_allow(&a->accept_limit, world_now_ns(a->world), PAUSE_LOGGED_S * BASE_NS_PER_S, 1,
                       &suppressed))
        base_log(BASE_LOG_ERROR, "a worker is turned away",
                 "uid=%u pid=%d why=\"%s\" suppressed=%u", (unsigned)c->peer.uid, (int)c->peer.pid,
                 why, suppressed);
    if (c->attached)
        connection_close(c);
    else
        connection_refuse(c, c->queued ? c->queued_tag : 0, -EAGAIN,
                          "the agent can watch over no more workers: its log says why");
}

/* From now on what it sends and how it ends is noticed. */
static void connection_watch(struct connection *c)
{
    struct agent *a = c->agent;
    (void)uv_timer_init(&a->loop, &c->deadline);
    c->deadline.data = c;
    c->handles = 1;
    if (c->held) {
        hold_connection(c);
        return;
    }
    struct base_errbuf why;
    const int status = watch_worker(c, &why);
    if (status != 0) {
        if (status == -ESRCH)
            connection_close(c);
        else
            turn_away(c, why.text);
        return;
    }
    (void)uv_poll_start(&c->poll, UV_READABLE | UV_DISCONNECT, on_readable);
    (void)uv_poll_start(&c->process, UV_READABLE, on_process_end);
    if (!c->attached)
        (void)uv_timer_start(&c->deadline, on_deadline, c->queued ? WAIT_MS : ATTACH_MS, 0);
}

/* Who connects sends at once, most often: that is answered before anything else is done. */
static void connection_begin(struct connection *c)
{
    take_next(c);
    if (!c->closing)
        connection_watch(c);
    if (c->closing && c->handles == 0)
        connection_free(c);
}

void connection_accept(struct listener *at, int fd)
{
    struct base_peer_process peer = {0};
    struct connection *c;
    struct base_errbuf why = {.text = TOO_MANY};
    int status = connection_new(at, fd, &c, &why);
    if (status == 0) {
        connection_begin(c);
        return;
    }
    at->agent->refused++;
    (void)send_error(fd, 0, status == -EACCES ? status : -EAGAIN, why.text, 0);
    (void)base_fds_peer(fd, &peer);
    if (!closer_is_needed(at, fd) || closer_take(at, fd, peer.uid, NULL) != 0)
        close(fd);
}
