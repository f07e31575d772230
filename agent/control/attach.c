/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of workers: who comes, what they say, and how their end is noticed. What they get
 * is admit.c's; their sockets are the world's.
 *
 * A connection is one worker: its session ends when the socket or the process does. Everything that
 * comes in is checked for size and kind before a byte of it is believed; a worker that sends too
 * much is told so and cut off. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "arenas.h"
#include "base/clock.h"
#include "connection.h"
#include "control/world_log.h"
#include "bounds.h"
#include "names.h"
#include "publications.h"
#include "quotas.h"
#include "sessions.h"
#include "worker_events.h"

#define UNFINISHED                                                                                 \
    "this uid has sent descriptors here that take long to close: it is refused until that is done"
#define TOO_MANY "too many connections are open: close some, or try again"

/* ---- ending */

static void unlist_connection(struct connection *c)
{
    *c->at = c->next;
    if (c->next != NULL)
        c->next->at = c->at;
    c->at = NULL;
    agent_connection_note(c);
    agent_waiting_leave(&c->agent->waiting, &c->waiting);
}

static void free_unless_used(struct connection *c)
{
    if (!c->resolving && !c->publishing && c->socket == NULL)
        free(c);
}

void agent_attach_closed(struct connection *c)
{
    c->socket = NULL;
    if (c->dirty)
        unlist_connection(c);
    free_unless_used(c);
}

/* One to which descriptors were sent counts until it is closed. */
void agent_connection_finish(struct connection *c)
{
    c->lingers = false;
    agent_unread_forget(&c->agent->unread, &c->unread);
    c->dirty = world_close(c->agent->world, c->socket);
    c->waiting.stays = true;
    if (c->dirty)
        agent_waiting_add(&c->agent->waiting, &c->waiting);
    else
        unlist_connection(c);
    agent_connection_note(c);
}

void agent_connection_close(struct connection *c)
{
    struct world *w = c->agent->world;
    if (c->closing)
        return;
    c->closing = true;
    world_timer_clear(w, &c->deadline);
    c->lingers = c->unread.count > 0 && world_unread(w, c->socket);
    if (c->lingers)
        world_linger(w, c->socket);
    else
        agent_connection_finish(c);
    agent_connection_note(c);
    if (c->turn.waits)
        agent_connection_leave_queue(c);
    if (c->attached)
        agent_session_release(c->pool, c->session, SCHEMA_REASON_CLOSED);
}

void agent_attach_close_all(struct agent *a)
{
    world_timer_clear(a->world, &a->strangers_timer);
    for (struct connection *c = a->connections, *next; c != NULL; c = next) {
        next = c->next;
        agent_connection_close(c);
        if (c->lingers)
            agent_connection_finish(c);
    }
}

static void mute_connection(struct connection *c)
{
    c->ended = true;
}

static void end_connection(struct connection *c)
{
    mute_connection(c);
    if (!c->closing)
        world_shut(c->agent->world, c->socket);
}

/* ---- answers */

static int send_message(struct world *w, struct world_socket *to, void *message, uint16_t type,
                        uint32_t size, uint32_t tag, const struct world_lent *lent)
{
    struct schema_control_header *h = message;
    *h = (struct schema_control_header){.magic = SCHEMA_CONTROL_MAGIC,
                                        .version = SCHEMA_CONTROL_VERSION,
                                        .type = type,
                                        .tag = tag,
                                        .size = size};
    return world_reply(w, to, message, size, lent);
}

int agent_connection_send(struct connection *c, void *message, uint16_t type, uint32_t size,
                          uint32_t tag, const struct world_lent *lent)
{
    return send_message(c->agent->world, c->socket, message, type, size, tag, lent);
}

static int send_error(struct world *w, struct world_socket *to, uint32_t tag, int status,
                      const char *text, uint32_t retry_ms)
{
    struct schema_control_error m = {.status = status, .retry_ms = retry_ms};
    snprintf(m.text, sizeof m.text, "%.*s", (int)sizeof m.text - 1, text);
    return send_message(w, to, &m, SCHEMA_CONTROL_ERROR, sizeof m, tag, NULL);
}

/* A worker that does not read its answers loses them and its session. */
static void send_answer(struct connection *c, void *message, uint16_t type, uint32_t size,
                        uint32_t tag, const struct world_lent *lent)
{
    if (agent_connection_send(c, message, type, size, tag, lent) != 0)
        agent_connection_close(c);
}

static void answer_error(struct connection *c, uint32_t tag, int status, const char *text)
{
    if (send_error(c->agent->world, c->socket, tag, status, text, 0) != 0)
        agent_connection_close(c);
}

void agent_connection_refuse_for(struct connection *c, uint32_t tag, int status, const char *text,
                                 uint32_t retry_ms)
{
    c->agent->refused++;
    (void)send_error(c->agent->world, c->socket, tag, status, text, retry_ms);
    agent_connection_close(c);
}

void agent_connection_refuse(struct connection *c, uint32_t tag, int status, const char *text)
{
    agent_connection_refuse_for(c, tag, status, text, 0);
}

static void set_deadline(struct connection *c, uint64_t ms)
{
    world_timer_after(c->agent->world, &c->deadline, ms * BASE_NS_PER_MS);
}

void agent_connection_await(struct connection *c)
{
    if (c->watched) /* else agent_attach_watched() does */
        set_deadline(c, c->wait_ms);
}

/* The answer comes late, and until then the connection stays and counts, whatever its worker does,
 * unless it has to make room: so many guesses a second are all that there are without a flood. */
static void hold_connection(struct connection *c)
{
    world_mute(c->agent->world, c->socket);
    if (c->watched) /* else agent_attach_watched() does */
        set_deadline(c, WRONG_TOKEN_MS);
}

void agent_connection_refuse_token(struct connection *c, uint32_t tag)
{
    struct agent *a = c->agent;
    uint32_t suppressed;
    a->wrong_tokens++;
    if (base_log_allow(&a->token_limit, world_now_ns(a->world), TOKENS_LOGGED_S * BASE_NS_PER_S,
                       TOKENS_LOGGED, &suppressed))
        world_log(a->world, BASE_LOG_WARN, "a worker has shown a token that no tenant has",
                  "uid=%u pid=%d socket=\"%s\" suppressed=%u", (unsigned)c->peer.uid,
                  (int)c->peer.pid, c->peer.path, suppressed);
    c->held = true;
    c->held_tag = tag;
    hold_connection(c);
}

static void answer_arena(struct connection *c, int status, const struct arena *arena,
                         uint32_t number)
{
    if (c->closing || c->ended)
        return;
    if (status != 0) {
        answer_error(c, c->arena_tag, status,
                     status == -EDQUOT ? "this session has all the arenas that it can have"
                                       : "no arena could be made: the agent's log says why");
        return;
    }
    struct schema_control_arena_ok m = {.bytes = arena->mem.size, .arena = number};
    const struct world_lent lent = {.arena = &arena->mem};
    struct base_errbuf why;
    status = agent_connection_send(c, &m, SCHEMA_CONTROL_ARENA_OK, sizeof m, c->arena_tag, &lent);
    if (status == 0)
        agent_unread_sent(c, 1);
    else if (agent_unread_failed(c->agent, status,
                                 &why)) /* it has the arena, and does not know it */
        answer_error(c, c->arena_tag, -EAGAIN, why.text);
    else
        agent_connection_close(c);
}

static void on_resolved(void *user, int status, const uint8_t gid[16], uint16_t pool)
{
    struct connection *c = user;
    c->resolving = false;
    if (c->closing) {
        free_unless_used(c);
        return;
    }
    if (c->ended)
        return;
    if (status != 0) {
        answer_error(c, c->resolve_tag, status,
                     status == -ENOENT ? "no node has that name"
                     : status == -EAGAIN
                         ? "too many names are being asked for: try again in a second"
                         : "no metaserver could be asked for that name");
        return;
    }
    struct schema_control_resolved m = {.pool = pool};
    memcpy(m.gid, gid, sizeof m.gid);
    send_answer(c, &m, SCHEMA_CONTROL_RESOLVED, sizeof m, c->resolve_tag, NULL);
}

static void resolve_name(struct connection *c, const struct schema_control_resolve *m)
{
    if (c->resolving) {
        answer_error(c, m->h.tag, -EAGAIN, "one name at a time");
        return;
    }
    c->resolving = true;
    c->resolve_tag = m->h.tag;
    agent_names_resolve(c->agent, c->tenant, c->pool->number, m->name, on_resolved, c);
}

static void on_published(void *user, int status, const char *why)
{
    struct connection *c = user;
    c->publishing = false;
    if (c->closing) {
        free_unless_used(c);
        return;
    }
    if (c->ended)
        return;
    if (status != 0) {
        answer_error(c, c->publish_tag, status, why);
        return;
    }
    struct schema_control_published m = {
        .names = agent_publications_of(&c->pool->sessions[c->session], c->publish_vkey)};
    send_answer(c, &m, SCHEMA_CONTROL_PUBLISHED, sizeof m, c->publish_tag, NULL);
}

/* PUBLISH, UNPUBLISH and PUBLISH_FOR begin alike. */
static void publish_name(struct connection *c, const struct schema_control_publish *m)
{
    const char *reader = m->h.type == SCHEMA_CONTROL_PUBLISH_FOR
                             ? ((const struct schema_control_publish_for *)m)->reader
                             : "";
    struct agent_session *s = &c->pool->sessions[c->session];
    if (c->publishing || s->stage != STAGE_LIVE) {
        answer_error(c, m->h.tag, c->publishing ? -EAGAIN : -ECANCELED,
                     c->publishing ? "one name at a time" : "the session is over");
        return;
    }
    c->publishing = true;
    c->publish_tag = m->h.tag;
    c->publish_vkey = m->vkey;
    if (m->h.type == SCHEMA_CONTROL_UNPUBLISH)
        agent_unpublish(s, m->vkey, m->name, on_published, c);
    else
        agent_publish(s, m->vkey, m->name, reader, on_published, c);
}

/* The tag is that of the one that is being made, as long as there is one. */
static void ask_arena(struct connection *c, const struct schema_control_arena *m)
{
    struct base_errbuf why;
    int status = agent_unread_check(c->agent, c->tenant, &why);
    if (status == 0)
        status = agent_session_add_arena(c->pool, c->session, m->bytes, &why);
    if (status == 0)
        c->arena_tag = m->h.tag; /* the lane answers later */
    else
        answer_error(c, m->h.tag, status, why.text);
}

static void ask_channel(struct connection *c, uint32_t tag)
{
    struct schema_control_channel m = {.h = {.tag = 0}};
    struct world_lent lent = {.channel = 0};
    struct base_errbuf why;
    int fd;
    int status = agent_unread_check(c->agent, c->tenant, &why);
    /* What an earlier one has in it is the agent's memory until the worker's end is closed. */
    if (status == 0 && ++c->channels > CHANNELS_IN_ALL)
        status = base_err(&why, -EDQUOT,
                          "a session has %d completion channels in its life, and "
                          "this one has had them: open another",
                          CHANNELS_IN_ALL);
    if (status == 0)
        status = agent_session_add_channel(c->pool, c->session, &fd, &why);
    if (status != 0) {
        answer_error(c, tag, status, why.text);
        return;
    }
    lent.channel = fd + 1;
    status = agent_connection_send(c, &m, SCHEMA_CONTROL_CHANNEL_OK, sizeof m, tag, &lent);
    if (status == 0)
        agent_unread_sent(c, 1);
    else if (agent_unread_failed(c->agent, status, &why))
        answer_error(c, tag, -EAGAIN, why.text);
    else
        agent_connection_close(c);
}

/* ---- what comes in */

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
    (void)world_reply(c->agent->world, c->socket, &m, sizeof m, NULL);
    agent_connection_close(c);
}

static void take_request(struct connection *c, const struct schema_control_header *h)
{
    struct base_errbuf why;
    const int status = agent_quota_ask(c->pool, c->tenant, &why);
    if (status != 0)
        answer_error(c, h->tag, status, why.text);
    else if (h->type == SCHEMA_CONTROL_RESOLVE)
        resolve_name(c, (const struct schema_control_resolve *)h);
    else if (h->type == SCHEMA_CONTROL_ARENA)
        ask_arena(c, (const struct schema_control_arena *)h);
    else if (h->type == SCHEMA_CONTROL_CHANNEL)
        ask_channel(c, h->tag);
    else
        publish_name(c, (const struct schema_control_publish *)h);
}

static void take_message(struct connection *c, const void *packet, size_t bytes)
{
    const struct schema_control_header *h = packet;
    int status = schema_control_check(packet, bytes);
    if (status != 0) {
        if (status == -EPROTONOSUPPORT)
            refuse_version(c, h->version);
        else
            agent_connection_refuse(c, 0, status, "malformed message");
        return;
    }
    if (h->type == SCHEMA_CONTROL_ATTACH) {
        agent_connection_attach(c, packet);
        return;
    }
    if (!c->attached) {
        agent_connection_refuse(c, h->tag, -EPROTO, "attach first");
        return;
    }
    if (h->type != SCHEMA_CONTROL_ARENA && h->type != SCHEMA_CONTROL_RESOLVE &&
        h->type != SCHEMA_CONTROL_PUBLISH && h->type != SCHEMA_CONTROL_UNPUBLISH &&
        h->type != SCHEMA_CONTROL_PUBLISH_FOR && h->type != SCHEMA_CONTROL_CHANNEL) {
        agent_connection_refuse(c, h->tag, -EPROTO, "that message is an agent's to send");
        return;
    }
    take_request(c, h);
}

void agent_attach_received(struct connection *c, int status, const void *message, size_t bytes)
{
    if (c->closing)
        return;
    if (status == 0 && !is_flood(c)) {
        if (!c->ended)
            take_message(c, message, bytes);
    } else if (c->ended) {
        agent_connection_close(c);
    } else {
        agent_connection_refuse(c, 0, status != 0 ? -EPROTO : -EAGAIN,
                                status != 0 ? "malformed message"
                                            : "too many messages: the rings are for that");
    }
}

uint32_t agent_attach_owner(const struct connection *c)
{
    return c->attached || c->turn.waits ? c->tenant : 0;
}

void agent_attach_hung_up(struct connection *c)
{
    agent_connection_close(c);
}

static void on_deadline(void *connection)
{
    struct connection *c = connection;
    if (c->turn.waits)
        agent_connection_waited(c);
    else if (c->held)
        agent_connection_refuse(
            c, c->held_tag, -EACCES,
            "no tenant has the token that was shown: it is wrong, or was deleted, or has expired");
    else
        agent_connection_refuse(c, 0, -ETIMEDOUT, "attach within 5 s of connecting");
}

static void say_crowded(const struct connection *c)
{
    struct agent *a = c->agent;
    uint32_t suppressed;
    a->crowded++;
    if (base_log_allow(&a->crowd_limit, world_now_ns(a->world), CROWD_LOGGED_S * BASE_NS_PER_S, 1,
                       &suppressed))
        world_log(a->world, BASE_LOG_WARN, "too many connections that have not attached are open",
                  "uid=%u pid=%d socket=\"%s\" suppressed=%u", (unsigned)c->peer.uid,
                  (int)c->peer.pid, c->peer.path, suppressed);
}

/* Whoever connects sends at once, so that the oldest has had its time. */
static int find_room(struct connection *c)
{
    struct agent *a = c->agent;
    struct waiter *goes = NULL;
    int status = agent_waiting_enter(&a->waiting, a->config.max_sessions, &c->waiting, &goes);
    if (status != 0 || goes != NULL)
        say_crowded(c);
    if (goes != NULL) {
        char *at = (char *)goes - offsetof(struct connection, waiting);
        agent_connection_refuse((struct connection *)at, 0, -EAGAIN, TOO_MANY);
    }
    return status;
}

/* ---- who comes too often */

static bool is_stranger(void *user, uid_t uid)
{
    struct agent *a = user;
    return agent_tenants_find(&a->tenants, uid) < 0 && !agent_tenants_have_tokens(&a->tenants);
}

static void keep_strangers_out(struct agent *a)
{
    uid_t uids[STRANGERS_KNOWN];
    const uint32_t count = agent_strangers_out(&a->strangers, uids);
    world_keep_out(a->world, uids, count);
    if (count > 0)
        world_timer_after(a->world, &a->strangers_timer, BASE_NS_PER_S);
}

static void on_strangers_timer(void *user)
{
    struct agent *a = user;
    if (agent_strangers_let_in(&a->strangers, world_now_ns(a->world), is_stranger, a))
        keep_strangers_out(a);
    else
        world_timer_after(a->world, &a->strangers_timer, BASE_NS_PER_S);
}

static void note_stranger(struct agent *a, const struct attach_peer *peer)
{
    uint32_t suppressed;
    if (!agent_strangers_refused(&a->strangers, peer->uid, world_now_ns(a->world)))
        return;
    if (base_log_allow(&a->strangers_limit, world_now_ns(a->world),
                       STRANGERS_LOGGED_S * BASE_NS_PER_S, STRANGERS_LOGGED, &suppressed))
        world_log(a->world, BASE_LOG_WARN,
                  "a uid that no tenant has connects too often and is kept out for some seconds",
                  "uid=%u pid=%d socket=\"%s\" refusals=%d seconds=%d suppressed=%u",
                  (unsigned)peer->uid, (int)peer->pid, peer->path, STRANGER_REFUSALS,
                  STRANGER_OUT_S, suppressed);
    keep_strangers_out(a);
}

/* NULL: it has been told why not. */
struct connection *agent_attach_connected(struct agent *a, struct world_socket *s,
                                          const struct attach_peer *peer)
{
    struct base_errbuf why = {.text = TOO_MANY};
    struct connection *c = peer->refused ? NULL : calloc(1, sizeof *c);
    int status = -ENOMEM;
    if (peer->refused)
        status = base_err(&why, -EACCES, "%s", UNFINISHED);
    if (c != NULL) {
        *c = (struct connection){.agent = a,
                                 .socket = s,
                                 .peer = *peer,
                                 .deadline = {.fired = on_deadline, .user = c},
                                 .waiting = {.uid = peer->uid}};
        status = agent_connection_share(a, peer, &c->waiting.share, &why);
        if (status == 0)
            status = find_room(c);
        else
            note_stranger(a, peer);
    }
    if (status == 0) {
        c->next = a->connections;
        c->at = &a->connections;
        if (c->next != NULL)
            c->next->at = &c->next;
        a->connections = c;
        return c;
    }
    free(c);
    a->refused++;
    (void)send_error(a->world, s, 0, status == -EACCES ? status : -EAGAIN, why.text, 0);
    return NULL;
}

/* One that has its session loses it, and hears no more than that. */
static void turn_away(struct connection *c, const char *why)
{
    struct agent *a = c->agent;
    uint32_t suppressed;
    if (base_log_allow(&a->watch_limit, world_now_ns(a->world), PAUSE_LOGGED_S * BASE_NS_PER_S, 1,
                       &suppressed))
        world_log(a->world, BASE_LOG_ERROR, "a worker is turned away",
                  "uid=%u pid=%d why=\"%s\" suppressed=%u", (unsigned)c->peer.uid, (int)c->peer.pid,
                  why, suppressed);
    if (c->attached)
        agent_connection_close(c);
    else
        agent_connection_refuse(c, c->turn.waits ? c->queued_tag : 0, -EAGAIN,
                                "the agent can watch over no more workers: its log says why");
}

void agent_attach_watched(struct connection *c, int status, const char *why)
{
    c->watched = true;
    if (c->closing)
        return;
    if (status != 0)
        turn_away(c, why);
    else if (c->held)
        set_deadline(c, WRONG_TOKEN_MS);
    else if (!c->attached)
        set_deadline(c, c->turn.waits ? c->wait_ms : ATTACH_MS);
}

void agent_attach_init(struct agent *a)
{
    static const struct worker_events EVENTS = {.ready = agent_attach_serve,
                                                .failed = agent_attach_failed,
                                                .tenant_ended = agent_attach_end_tenant,
                                                .arena = answer_arena,
                                                .ending = mute_connection,
                                                .ended = end_connection,
                                                .let_go = agent_connection_close};
    a->worker_events = &EVENTS;
    a->strangers_timer = (struct world_timer){.fired = on_strangers_timer, .user = a};
}
