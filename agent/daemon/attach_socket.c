/* SPDX-License-Identifier: Apache-2.0 */
/* One worker's socket: what comes in, how its end is noticed, and what is sent. */
#include "attach_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "fd_watch.h"
#include "loop_world.h"
#include "schema/control.h"
#include "world_socket.h"

/* ---- ending */

/* Whether descriptors are left there, so that only the closer may close it. What else was sent is
 * read, or the worker would hear of that and not of what it was told. */
static bool shut_down(struct world_socket *s)
{
    const uint64_t since_ns = base_clock_thread_ns();
    (void)shutdown(s->fd, SHUT_RDWR); /* nothing more comes */
    const int status = base_fds_drain(s->fd);
    agentd_attach_cost_charge(s, since_ns);
    return status != 0 && !s->at->refuses_fds;
}

static void free_socket(struct world_socket *s)
{
    agentd_attach_cost_forget(s);
    if (s->c != NULL)
        agent_attach_closed(s->c);
    free(s);
}

static void on_closed(struct closing *end)
{
    struct world_socket *s =
        (struct world_socket *)((char *)end - offsetof(struct world_socket, end));
    struct listener *at = s->at;
    at->closing -= s->c == NULL;
    free_socket(s);
    agentd_listener_go_on(at);
}

static void give_to_closer(struct world_socket *s)
{
    s->end.fd = s->fd;
    s->end.closed = on_closed;
    agentd_closer_take(&s->at->of->closer, &s->end);
}

static void on_ended_apart(struct socket_end *end)
{
    struct world_socket *s =
        (struct world_socket *)((char *)end - offsetof(struct world_socket, apart_end));
    if (end->dirty)
        give_to_closer(s);
    else
        on_closed(&s->end);
}

/* False: no thread is there for it. */
static bool end_apart(struct world_socket *s)
{
    s->apart_end =
        (struct socket_end){.fd = s->fd,
                            .keeps = !s->at->refuses_fds && closer_is_there(&s->at->of->closer),
                            .ended = on_ended_apart};
    if (agentd_socket_ender_take(&s->at->of->ender, &s->apart_end) != 0)
        return false;
    s->at->closing += s->c == NULL;
    return true;
}

static void end_socket(struct world_socket *s)
{
    if (s->pidfd >= 0)
        close(s->pidfd);
    if (s->apart && end_apart(s))
        return;
    if (s->apart)
        s->dirty = shut_down(s);
    if (s->dirty && closer_is_there(&s->at->of->closer)) {
        s->at->closing += s->c == NULL;
        give_to_closer(s);
        return;
    }
    const uint64_t since_ns = base_clock_thread_ns();
    close(s->fd);
    agentd_attach_cost_charge(s, since_ns);
    free_socket(s);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct world_socket *s = handle->data;
    if (handle == (uv_handle_t *)&s->process) {
        close(s->pidfd);
        s->pidfd = -1;
    }
    if (--s->handles == 0)
        end_socket(s);
}

static void end_watch(struct world_socket *s)
{
    if (s->unwatched)
        return;
    s->unwatched = true;
    if (s->poll.data != NULL)
        uv_close((uv_handle_t *)&s->poll, on_handle_closed);
    if (s->process.data != NULL)
        uv_close((uv_handle_t *)&s->process, on_handle_closed);
}

/* What comes of its worker is not read, and whoever sends finds that out. */
static void let_linger(struct world *w, struct world_socket *s)
{
    (void)w;
    s->muted = true;
    const uint64_t since_ns = base_clock_thread_ns();
    (void)shutdown(s->fd, SHUT_RDWR);
    agentd_attach_cost_charge(s, since_ns);
    end_watch(s);
}

static bool close_socket(struct world *w, struct world_socket *s)
{
    (void)w;
    s->closing = true;
    s->apart = s->costly || agentd_attach_cost_rests(s);
    if (!s->apart)
        s->dirty = shut_down(s);
    if (s->handles != 0) { /* else agentd_socket_accept() ends it */
        uv_close((uv_handle_t *)&s->anchor, on_handle_closed);
        end_watch(s);
    }
    return s->dirty || s->apart;
}

/* ---- what is sent */

static int send_message(struct world *w, struct world_socket *s, const void *message, size_t bytes,
                        const struct world_lent *lent)
{
    int fds[SCHEMA_CONTROL_MAX_FDS] = {-1};
    unsigned count = 0;
    (void)w;
    if (lent != NULL && lent->rings != NULL) {
        fds[count++] = lent->rings->rw_fd;
        fds[count++] = lent->rings->ro_fd;
        fds[count++] = lent->rings->doorbell;
    }
    if (lent != NULL && lent->peers != NULL)
        fds[count++] = lent->peers->fd;
    if (lent != NULL && lent->arena != NULL)
        fds[count++] = lent->arena->fd;
    if (lent != NULL && lent->channel != 0)
        fds[count++] = lent->channel - 1;
    const uint64_t since_ns = base_clock_thread_ns();
    const int status = base_fds_send(s->fd, message, bytes, fds, count);
    agentd_attach_cost_charge(s, since_ns);
    if (lent != NULL && lent->channel != 0)
        close(lent->channel - 1);
    return status;
}

static void shut_socket(struct world *w, struct world_socket *s)
{
    const uint64_t since_ns = base_clock_thread_ns();
    (void)w;
    (void)shutdown(s->fd, SHUT_WR);
    agentd_attach_cost_charge(s, since_ns);
}

static void mute_socket(struct world *w, struct world_socket *s)
{
    (void)w;
    s->muted = true;
    if (s->poll.data == NULL || s->closing || s->unwatched)
        return;
    (void)uv_poll_stop(&s->poll);
    (void)uv_poll_stop(&s->process);
}

static uint32_t find_room(struct world *w, uint32_t most)
{
    uint32_t room = most;
    (void)w;
    (void)base_fds_room(most, &room); /* else there is nothing to go by */
    return room;
}

static bool has_unread(struct world *w, struct world_socket *s)
{
    (void)w;
    return base_fds_unread(s->fd);
}

static void keep_out(struct world *w, const uid_t *uids, uint32_t count)
{
    agentd_listeners_keep_out(&loop_world_of(w)->sockets, uids, count);
}

const struct world_socket_ops SOCKET_OPS = {.reply = send_message,
                                            .shut = shut_socket,
                                            .mute = mute_socket,
                                            .room = find_room,
                                            .unread = has_unread,
                                            .linger = let_linger,
                                            .close = close_socket,
                                            .keep_out = keep_out};

/* ---- what comes in */

/* A message. -EPROTO: descriptors are with it, that nobody asked for; it is left where it is. */
static int receive_message(struct world_socket *s, void *packet, size_t *bytes)
{
    unsigned count;
    int status = s->at->refuses_fds ? 0 : base_fds_look(s->fd);
    if (status != 0)
        return status;
    return base_fds_recv(s->fd, packet, SCHEMA_CONTROL_MAX_BYTES, bytes, NULL, 0, &count);
}

/* What is left is there in the next turn still. */
static bool may_take(const struct world_socket *s)
{
    struct attach_sockets *all = s->at->of;
    const uint32_t owner = agent_attach_owner(s->c);
    if (owner == 0)
        return true;
    if (all->of[owner].turn != all->turn)
        all->of[owner].messages = 0;
    all->of[owner].turn = all->turn;
    return all->of[owner].messages++ < TURN_MESSAGES;
}

/* The rest of what was sent is taken after what others sent. */
static void take_next(struct world_socket *s)
{
    if (!may_take(s))
        return;
    _Alignas(8) uint8_t packet[SCHEMA_CONTROL_MAX_BYTES];
    size_t bytes = 0;
    const uint64_t since_ns = base_clock_thread_ns();
    int got = receive_message(s, packet, &bytes);
    agentd_attach_cost_charge(s, since_ns);
    if (got == -EAGAIN || got == -EINTR)
        return;
    if (got == 0) {
        agent_attach_received(s->c, 0, packet, bytes);
        explicit_bzero(packet, bytes); /* a token was in it, perhaps */
    } else if (got == -EMSGSIZE || got == -EPROTO) {
        agent_attach_received(s->c, -EPROTO, NULL, 0);
    } else {
        agent_attach_hung_up(s->c);
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct world_socket *s = poll->data;
    if (status < 0 || (s->rests && (events & UV_DISCONNECT) != 0)) {
        agent_attach_hung_up(s->c);
    } else if (agentd_attach_cost_rests(s)) {
        agentd_attach_cost_rest(s);
        (void)uv_poll_start(&s->poll, UV_DISCONNECT, on_readable);
    } else {
        take_next(s);
    }
}

void agentd_socket_read_on(struct world_socket *s)
{
    if (!s->muted && !s->closing && !s->unwatched)
        (void)uv_poll_start(&s->poll, UV_READABLE | UV_DISCONNECT, on_readable);
}

static void on_process_end(uv_poll_t *poll, int status, int events)
{
    const struct world_socket *s = poll->data;
    (void)status, (void)events;
    agent_attach_hung_up(s->c);
}

/* ---- watching */

/* 0; or -errno and a sentence. */
static int begin_poll(struct world_socket *s, uv_poll_t *poll, int fd, struct base_errbuf *why)
{
    const int status = uv_poll_init(s->at->of->loop, poll, fd);
    if (status != 0)
        return agentd_fd_watch_failed(status, why);
    poll->data = s;
    s->handles++;
    return 0;
}

/* How its process ends is noticed too. -ESRCH: it has ended. */
static int watch_worker(struct world_socket *s, pid_t pid, struct base_errbuf *why)
{
    s->pidfd = base_fds_peer_pidfd(s->fd, pid);
    if (s->pidfd < 0)
        return base_err(why, s->pidfd, "no descriptor of a process can be had: %s%s",
                        strerror(-s->pidfd), s->pidfd == -EMFILE ? " (raise LimitNOFILE)" : "");
    const int status = begin_poll(s, &s->poll, s->fd, why);
    return status == 0 ? begin_poll(s, &s->process, s->pidfd, why) : status;
}

static void watch_socket(struct world_socket *s, pid_t pid)
{
    struct base_errbuf why = {""};
    (void)uv_timer_init(s->at->of->loop, &s->anchor);
    s->anchor.data = s;
    s->handles = 1;
    const int status = s->muted ? 0 : watch_worker(s, pid, &why);
    if (status == -ESRCH) {
        agent_attach_hung_up(s->c);
        return;
    }
    if (status == 0 && !s->muted) {
        (void)uv_poll_start(&s->poll, UV_READABLE | UV_DISCONNECT, on_readable);
        (void)uv_poll_start(&s->process, UV_READABLE, on_process_end);
    }
    agent_attach_watched(s->c, status, why.text);
}

struct world_socket *agentd_socket_new(struct listener *at)
{
    struct world_socket *s = calloc(1, sizeof *s);
    if (s != NULL)
        *s = (struct world_socket){.at = at, .fd = -1, .pidfd = -1};
    return s;
}

/* Nobody's: it has been told why, if it can be. */
static void drop_socket(struct world_socket *s)
{
    s->apart = agentd_attach_cost_rests(s);
    if (!s->apart)
        s->dirty = shut_down(s);
    end_socket(s);
}

/* Who connects sends at once, most often: that is answered before anything else is done. */
void agentd_socket_accept(struct world_socket *s, int fd)
{
    struct listener *at = s->at;
    struct base_peer_process peer;
    s->fd = fd;
    s->end.uid = CLOSER_NOBODY;
    if (base_fds_peer(fd, &peer) != 0) {
        drop_socket(s);
        return;
    }
    s->end.uid = peer.uid;
    if (agentd_attach_cost_rests(s)) {
        drop_socket(s);
        return;
    }
    const struct attach_peer who = {.uid = peer.uid,
                                    .pid = peer.pid,
                                    .tenant = at->tenant,
                                    .refused = agentd_closer_refuses(&at->of->closer, peer.uid),
                                    .path = at->path};
    s->c = agent_attach_connected(at->of->agent, s, &who);
    if (s->c == NULL) {
        drop_socket(s);
        return;
    }
    take_next(s);
    if (!s->closing)
        watch_socket(s, peer.pid);
    if (s->closing && s->handles == 0)
        end_socket(s);
}
