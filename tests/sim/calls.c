/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "process.h"
#include "random.h"
#include "trace.h"

enum { SERVERS = 16, CUTS = 64, CONNECT_MS = 5000, CALL_MS = 10000 };

/* What is on its way to the client. */
struct piece {
    struct piece *next;
    int status; /* of the whole answer, or of a stream's end: 0; or -errno */
    bool whole; /* and the call is over */
    char content_type[64];
    size_t length;
    char bytes[]; /* NUL-terminated */
};

struct play_call {
    struct play_call *next, **link; /* of all that are under way */
    uint64_t id;
    struct play_host *from;
    struct play_inbox *client;  /* NULL: it has gone */
    struct play_server *server; /* NULL: it is over there, or was never there */
    bool asked, streams;
    char *method, *target, *token, *body, *authority;
    size_t body_length;
    void *data;
    /* the client's */
    http_done done;
    int (*on_line)(void *user, const char *line, size_t length);
    void *user;
    uint64_t silence_ns;
    struct play_event arrival, timeout, silence, landing;
    struct play_post ask, pump, hear; /* hear: what has landed */
    struct piece *flying, **flying_last, *landed, **landed_last;
    uint64_t lands_ns; /* the last that was sent */
    char line[16 << 10];
    size_t line_length;
};

static struct {
    struct base_prng random;
    struct play_calls_network network;
    struct play_server *server[SERVERS];
    struct {
        const struct play_host *from, *to;
    } cut[CUTS];
    struct play_call *calls;
    uint64_t last_id;
    uint32_t open;
} all;

/* ---- the network */

void play_calls_init(uint64_t seed, const struct play_calls_network *network)
{
    memset(&all, 0, sizeof all);
    all.random = play_random_of(seed, "calls", 0);
    all.network = *network;
}

void play_calls_set_network(const struct play_calls_network *network)
{
    all.network = *network;
}

uint32_t play_calls_open(void)
{
    return all.open;
}

static bool is_pair(uint32_t i, const struct play_host *from, const struct play_host *to)
{
    return all.cut[i].from == from && all.cut[i].to == to;
}

static bool is_cut(const struct play_host *from, const struct play_host *to)
{
    for (uint32_t i = 0; i < CUTS; i++)
        if (is_pair(i, from, to))
            return true;
    return false;
}

void play_calls_cut(const struct play_host *from, const struct play_host *to, bool cut)
{
    for (uint32_t i = 0; i < CUTS; i++)
        if (is_pair(i, from, to))
            all.cut[i].from = all.cut[i].to = NULL;
    for (uint32_t i = 0; cut && i < CUTS; i++) {
        if (all.cut[i].from != NULL)
            continue;
        all.cut[i].from = from;
        all.cut[i].to = to;
        return;
    }
    BASE_ASSERT(!cut);
}

static uint64_t draw_delay(void)
{
    return all.network.delay_ns + base_prng_below(&all.random, all.network.jitter_ns + 1);
}

/* ---- a call's life */

static void free_pieces(struct piece *p)
{
    for (struct piece *next; p != NULL; p = next) {
        next = p->next;
        free(p);
    }
}

static void free_call(struct play_call *c)
{
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    play_event_cancel(&c->arrival);
    play_event_cancel(&c->timeout);
    play_event_cancel(&c->silence);
    play_event_cancel(&c->landing);
    free_pieces(c->flying);
    free_pieces(c->landed);
    free(c->method);
    free(c->target);
    free(c->token);
    free(c->body);
    free(c->authority);
    free(c);
    all.open--;
}

static void leave_server(struct play_call *c)
{
    struct play_server *s = c->server;
    if (s == NULL)
        return;
    play_inbox_take_back(s->inbox, &c->ask);
    play_inbox_take_back(s->inbox, &c->pump);
    c->server = NULL;
}

/* The client has its end, or is dead: a stream's server hears of that, others find out. */
static void leave_client(struct play_call *c)
{
    play_inbox_take_back(c->client, &c->hear);
    c->client = NULL;
    play_event_cancel(&c->timeout);
    play_event_cancel(&c->silence);
    if (c->server == NULL || !c->asked) {
        leave_server(c);
        free_call(c);
    } else if (c->streams) {
        play_inbox_put(c->server->inbox, &c->pump);
    }
}

static void end_for_client(struct play_call *c, const struct http_answer *answer)
{
    const http_done done = c->done;
    void *user = c->user;
    leave_client(c);
    done(user, answer);
}

static void fail_call(struct play_call *c, int status, const char *why)
{
    const struct http_answer answer = {
        .status = status, .why = why, .body = "", .content_type = ""};
    end_for_client(c, &answer);
}

/* ---- to the client */

static bool is_under_way(const struct play_call *wanted, uint64_t id)
{
    for (const struct play_call *c = all.calls; c != NULL; c = c->next)
        if (c == wanted)
            return c->id == id;
    return false;
}

static bool take_line(struct play_call *c)
{
    const size_t length = c->line_length;
    c->line[length] = '\0';
    c->line_length = 0;
    return c->on_line(c->user, c->line, length) == 0;
}

/* False: the client wants no more. It may also have cancelled the call meanwhile. */
static bool take_bytes(struct play_call *c, const struct piece *p)
{
    const uint64_t id = c->id;
    for (size_t i = 0; i < p->length && is_under_way(c, id); i++) {
        if (p->bytes[i] == '\n') {
            if (!take_line(c))
                return !is_under_way(c, id);
            continue;
        }
        BASE_ASSERT(c->line_length + 1 < sizeof c->line);
        c->line[c->line_length++] = p->bytes[i];
    }
    return true;
}

static void hear_piece(struct play_call *c, struct piece *p)
{
    const struct http_answer answer = {.status = p->status,
                                       .why = p->status < 0 ? "the connection was reset" : "",
                                       .body = p->bytes,
                                       .body_length = p->length,
                                       .content_type = p->content_type};
    if (p->whole)
        end_for_client(c, &answer);
    else if (!take_bytes(c, p))
        fail_call(c, -ECANCELED, "it was given up");
    free(p);
}

static void hear_landed(void *user)
{
    struct play_call *c = user;
    const uint64_t id = c->id;
    if (c->silence_ns != 0)
        play_event_after(&c->silence, c->silence_ns);
    while (is_under_way(c, id) && c->client != NULL && c->landed != NULL) {
        struct piece *p = c->landed;
        c->landed = p->next;
        hear_piece(c, p);
    }
}

static void land_piece(void *user)
{
    struct play_call *c = user;
    struct piece *p = c->flying;
    c->flying = p->next;
    p->next = NULL;
    if (c->landed == NULL)
        c->landed_last = &c->landed;
    *c->landed_last = p;
    c->landed_last = &p->next;
    if (c->flying != NULL)
        play_event_after(&c->landing, draw_delay() / 8);
    if (c->client != NULL)
        play_inbox_put(c->client, &c->hear);
}

/* One after another, however long each is on its way. Nothing leaves a host that is cut off from
 * the client. */
static void send_piece(struct play_call *c, const struct play_host *server, struct piece *p)
{
    if (c->client == NULL || is_cut(server, c->from) ||
        (p->whole && play_random_happens(&all.random, all.network.lost_ppm))) {
        free(p);
        return;
    }
    if (p->whole && play_random_happens(&all.random, all.network.reset_ppm))
        p->status = -ECONNRESET;
    if (c->flying == NULL)
        c->flying_last = &c->flying;
    *c->flying_last = p;
    c->flying_last = &p->next;
    if (!play_event_is_set(&c->landing))
        play_event_after(&c->landing, draw_delay());
}

static struct piece *new_piece(const char *bytes, size_t length)
{
    struct piece *p = calloc(1, sizeof *p + length + 1);
    BASE_ASSERT(p != NULL);
    p->length = length;
    if (length > 0)
        memcpy(p->bytes, bytes, length);
    return p;
}

static void time_out(void *user)
{
    struct play_call *c = user;
    play_event_cancel(&c->landing);
    free_pieces(c->flying);
    c->flying = NULL;
    struct piece *p = new_piece("", 0);
    p->status = -ETIMEDOUT;
    p->whole = true;
    c->flying = p;
    land_piece(c);
}

/* ---- the server's end */

static void ask_server(void *user)
{
    struct play_call *c = user;
    if (c->client == NULL) {
        leave_server(c);
        free_call(c);
        return;
    }
    c->asked = true;
    c->server->asked(c->server->user, c);
}

static void pump_stream(void *user)
{
    struct play_call *c = user;
    struct play_server *s = c->server;
    if (c->client != NULL) {
        s->pumped(s->user, c);
        return;
    }
    s->left(s->user, c);
    leave_server(c);
    free_call(c);
}

static struct play_server *find_server(const char *authority)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        if (all.server[i] != NULL && strcmp(all.server[i]->authority, authority) == 0)
            return all.server[i];
    return NULL;
}

/* A host without a process at that port refuses; one that is cut off is silent. */
static void arrive_request(void *user)
{
    struct play_call *c = user;
    struct play_server *s = find_server(c->authority);
    if (s == NULL || play_random_happens(&all.random, all.network.reset_ppm)) {
        struct piece *p = new_piece("", 0);
        p->status = s == NULL ? -ECONNREFUSED : -ECONNRESET;
        p->whole = true;
        send_piece(c, NULL, p);
        return;
    }
    if (is_cut(c->from, s->host) || play_random_happens(&all.random, all.network.lost_ppm))
        return;
    c->server = s;
    play_inbox_put(s->inbox, &c->ask);
}

void play_server_begin(struct play_server *server)
{
    for (uint32_t i = 0; i < SERVERS; i++) {
        if (all.server[i] != NULL)
            continue;
        all.server[i] = server;
        return;
    }
    BASE_ASSERT(!"more servers than there is room for");
}

static void cut_off_client(struct play_call *c)
{
    struct piece *p = new_piece("", 0);
    p->status = -ECONNRESET;
    p->whole = true;
    const struct play_host *host = c->server->host;
    leave_server(c);
    if (c->client != NULL)
        send_piece(c, host, p);
    else {
        free(p);
        free_call(c);
    }
}

void play_server_end(struct play_server *server)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        if (all.server[i] == server)
            all.server[i] = NULL;
    for (struct play_call *c = all.calls, *next; c != NULL; c = next) {
        next = c->next;
        if (c->server == server)
            cut_off_client(c);
    }
}

void *play_server_stream(const struct play_server *server)
{
    for (struct play_call *c = all.calls; c != NULL; c = c->next) {
        void *data = c->data;
        if (c->server != server || !c->streams || data == NULL)
            continue;
        c->data = NULL;
        return data;
    }
    return NULL;
}

void *play_call_server(const struct play_call *c)
{
    return c->server->user;
}

const char *play_call_method(const struct play_call *c)
{
    return c->method;
}

const char *play_call_target(const struct play_call *c)
{
    return c->target;
}

const char *play_call_token(const struct play_call *c)
{
    return c->token;
}

const char *play_call_client(const struct play_call *c)
{
    return c->from->name;
}

const char *play_call_body(const struct play_call *c, size_t *length)
{
    *length = c->body_length;
    return c->body;
}

bool play_call_is_gone(const struct play_call *c)
{
    return c->client == NULL;
}

void play_call_set_data(struct play_call *c, void *data)
{
    c->data = data;
}

void *play_call_data(const struct play_call *c)
{
    return c->data;
}

static void end_at_server(struct play_call *c, struct piece *p)
{
    const struct play_host *host = c->server->host;
    leave_server(c);
    if (c->client == NULL) {
        free(p);
        free_call(c);
    } else {
        send_piece(c, host, p);
    }
}

void play_call_answer(struct play_call *c, int status, const char *content_type, const char *body,
                      size_t length)
{
    struct piece *p = new_piece(body, length);
    p->status = status;
    p->whole = true;
    if (content_type != NULL)
        strncpy(p->content_type, content_type, sizeof p->content_type - 1);
    end_at_server(c, p);
}

void play_call_stream(struct play_call *c)
{
    c->streams = true;
    play_call_pump(c);
}

void play_call_pump(struct play_call *c)
{
    if (c->server != NULL)
        play_inbox_put(c->server->inbox, &c->pump);
}

void play_call_send(struct play_call *c, const char *bytes, size_t length)
{
    send_piece(c, c->server->host, new_piece(bytes, length));
}

void play_call_finish(struct play_call *c)
{
    struct piece *p = new_piece("", 0);
    p->status = 200;
    p->whole = true;
    end_at_server(c, p);
}

/* ---- the client's end */

static char *copy_text(const char *text)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    BASE_ASSERT(text == NULL || copy != NULL);
    return copy;
}

static void split_url(struct play_call *c, const char *url)
{
    const char *host = strstr(url, "://");
    BASE_ASSERT(host != NULL);
    host += 3;
    const size_t length = strcspn(host, "/");
    c->authority = strndup(host, length);
    c->target = copy_text(host[length] != '\0' ? host + length : "/");
}

static void set_events(struct play_call *c, const struct http_call *call)
{
    struct play_owner *of = &c->client->process->owner;
    const uint32_t ms = call->timeout_ms != 0 ? call->timeout_ms : CALL_MS;
    c->arrival = (struct play_event){.happen = arrive_request, .user = c};
    c->landing = (struct play_event){.happen = land_piece, .user = c};
    c->timeout = (struct play_event){.happen = time_out, .user = c, .owner = of};
    c->silence = (struct play_event){.happen = time_out, .user = c, .owner = of};
    c->ask = (struct play_post){.run = ask_server, .user = c};
    c->pump = (struct play_post){.run = pump_stream, .user = c};
    c->hear = (struct play_post){.run = hear_landed, .user = c};
    play_event_after(&c->arrival, draw_delay());
    if (ms != UINT32_MAX)
        play_event_after(&c->timeout, ms * BASE_NS_PER_MS);
    c->silence_ns = call->silence_timeout_ms * BASE_NS_PER_MS;
    if (c->silence_ns != 0)
        play_event_after(&c->silence, c->silence_ns);
}

int play_call_begin(struct play_inbox *inbox, const struct http_call *call, http_done done,
                    void *user, uint64_t *id)
{
    struct play_call *c = calloc(1, sizeof *c);
    BASE_ASSERT(c != NULL);
    c->id = ++all.last_id;
    c->from = inbox->process->host;
    c->client = inbox;
    c->method = copy_text(call->method != NULL ? call->method : "GET");
    c->token = copy_text(call->token);
    split_url(c, call->url);
    c->body_length = call->body != NULL ? call->body_length : 0;
    c->body = strndup(call->body != NULL ? call->body : "", c->body_length);
    c->done = done;
    c->on_line = call->on_line;
    c->user = user;
    c->next = all.calls;
    if (c->next != NULL)
        c->next->link = &c->next;
    c->link = &all.calls;
    all.calls = c;
    all.open++;
    set_events(c, call);
    if (id != NULL)
        *id = c->id;
    return 0;
}

int play_call_cancel(struct play_inbox *inbox, uint64_t id)
{
    for (struct play_call *c = all.calls; c != NULL; c = c->next)
        if (c->id == id && c->client == inbox) {
            leave_client(c);
            return 0;
        }
    return -ENOENT;
}

void play_calls_end(struct play_inbox *inbox, bool tell)
{
    for (struct play_call *c = all.calls, *next; c != NULL; c = next) {
        next = c->next;
        if (c->client != inbox)
            continue;
        if (tell)
            fail_call(c, -ECANCELED, "the program ends");
        else
            leave_client(c);
    }
}
