/* SPDX-License-Identifier: Apache-2.0 */
/* Where workers attach to a simulated agent (agent/daemon/attach_socket.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent_process.h"
#include "base/assert.h"
#include "control/attach.h"
#include "control/sockets.h"
#include "os.h"
#include "os_calls.h"
#include "schema/control.h"

struct world_socket {
    struct world_socket *next;
    struct play_agent *agent;
    struct os_socket *os;
    struct connection *c; /* the core's */
    uid_t uid;
    pid_t pid;
    bool muted, closing;
    struct play_post connected, sent, hung_up, closed;
};

static void drop_socket(struct world_socket *s)
{
    struct world_socket **at = &s->agent->sockets;
    struct play_inbox *inbox = &s->agent->inbox;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    play_inbox_take_back(inbox, &s->connected);
    play_inbox_take_back(inbox, &s->sent);
    play_inbox_take_back(inbox, &s->hung_up);
    play_inbox_take_back(inbox, &s->closed);
    os_socket_close(s->os);
    free(s);
}

/* ---- what is heard */

static void take_message(struct world_socket *s)
{
    _Alignas(8) uint8_t packet[SCHEMA_CONTROL_MAX_BYTES];
    const size_t bytes = os_socket_take(s->os, packet, sizeof packet);
    if (bytes > sizeof packet)
        agent_attach_received(s->c, -EPROTO, NULL, 0);
    else if (bytes > 0)
        agent_attach_received(s->c, 0, packet, bytes);
}

static void has_connected(void *user)
{
    struct world_socket *s = user;
    const struct attach_peer peer = {.uid = s->uid, .pid = s->pid, .path = s->agent->path};
    s->c = agent_attach_connected(s->agent->agent, s, &peer);
    if (s->c == NULL) {
        drop_socket(s);
        return;
    }
    take_message(s);
    if (!s->closing)
        agent_attach_watched(s->c, 0, "");
}

static void has_sent(void *user)
{
    struct world_socket *s = user;
    if (s->muted || s->closing)
        return;
    if (os_socket_has_more(s->os))
        play_inbox_put(&s->agent->inbox, &s->sent);
    take_message(s);
}

static void has_hung_up(void *user)
{
    const struct world_socket *s = user;
    if (!s->muted && !s->closing)
        agent_attach_hung_up(s->c);
}

static void has_closed(void *user)
{
    struct world_socket *s = user;
    agent_attach_closed(s->c);
    drop_socket(s);
}

/* ---- what comes of the machine */

static void on_connected(void *user, struct os_socket *os, uid_t uid)
{
    struct play_agent *a = user;
    struct world_socket *s = calloc(1, sizeof *s);
    BASE_ASSERT(s != NULL);
    *s = (struct world_socket){.next = a->sockets,
                               .agent = a,
                               .os = os,
                               .uid = uid,
                               .pid = 1000,
                               .connected = {.run = has_connected, .user = s},
                               .sent = {.run = has_sent, .user = s},
                               .hung_up = {.run = has_hung_up, .user = s},
                               .closed = {.run = has_closed, .user = s}};
    a->sockets = s;
    os_socket_set_user(os, s);
    play_inbox_put(&a->inbox, &s->connected);
}

static void on_sent(void *user, struct os_socket *os)
{
    struct world_socket *s = user;
    (void)os;
    if (!s->connected.queued)
        play_inbox_put(&s->agent->inbox, &s->sent);
}

static void on_hung_up(void *user, struct os_socket *os)
{
    struct world_socket *s = user;
    (void)os;
    play_inbox_put(&s->agent->inbox, &s->hung_up);
}

void play_agent_listen(struct play_agent *a)
{
    a->listener = (struct os_listener){
        .connected = on_connected, .sent = on_sent, .hung_up = on_hung_up, .user = a};
    os_listen(a->path, &a->listener);
    a->listens = true;
}

/* Who has connected, and was not accepted, is cut off with that. */
void play_agent_unlisten(struct play_agent *a)
{
    if (a->listens)
        os_unlisten(a->path);
    a->listens = false;
    for (struct world_socket *s = a->sockets, *next; s != NULL; s = next) {
        next = s->next;
        if (s->connected.queued)
            drop_socket(s);
    }
}

void play_agent_drop_sockets(struct play_agent *a)
{
    while (a->sockets != NULL)
        drop_socket(a->sockets);
}

/* ---- what is said */

static int send_message(struct world *w, struct world_socket *s, const void *message, size_t bytes,
                        const struct world_lent *lent)
{
    int fds[SCHEMA_FD_COUNT];
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
    if (lent == NULL || lent->channel == 0)
        return os_socket_send(s->os, message, bytes, fds, count);
    fds[count++] = lent->channel - 1; /* which is the worker's alone from here on */
    const int status = os_socket_send(s->os, message, bytes, fds, count);
    (void)os_close(lent->channel - 1);
    return status;
}

static void shut_socket(struct world *w, struct world_socket *s)
{
    (void)w;
    os_socket_shut(s->os);
}

static void mute_socket(struct world *w, struct world_socket *s)
{
    (void)w;
    s->muted = true;
}

static bool close_socket(struct world *w, struct world_socket *s)
{
    (void)w;
    s->closing = true;
    play_inbox_put(&s->agent->inbox, &s->closed);
    return false;
}

static uint32_t find_room(struct world *w, uint32_t most)
{
    (void)w;
    return most;
}

static bool has_unread(struct world *w, struct world_socket *s)
{
    (void)w;
    return os_socket_has_unread(s->os);
}

static void let_linger(struct world *w, struct world_socket *s)
{
    mute_socket(w, s);
    os_socket_shut(s->os);
}

const struct world_socket_ops PLAY_SOCKET_OPS = {.reply = send_message,
                                                 .shut = shut_socket,
                                                 .mute = mute_socket,
                                                 .room = find_room,
                                                 .unread = has_unread,
                                                 .linger = let_linger,
                                                 .close = close_socket};
