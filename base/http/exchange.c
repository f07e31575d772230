/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its answer. */
#include "base/http/server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/problem.h"
#include "base/text.h"
#include "server_private.h"
#include "tls_tunnel.h"

enum {
    FIRST_BODY_BYTES = 4096,
    /* Of a body that is too large so much is read and thrown away, so that its sender gets to read
     * the 413; a longer one is cut off. */
    DISCARDED_BYTES_MAX = 8 << 20,
    /* Whoever says nothing of the length, and has sent so much, is told without being heard out. */
    DISCARDED_BYTES_SILENT = 1 << 20,
    PROBLEM_BYTES_MAX = 16 << 10,
};

static struct http_exchange *request_of(const struct http_request *public)
{
    return (struct http_exchange *)public;
}

const char *http_raw_problem(int status, const char *detail, char *out, size_t bytes)
{
    struct base_text body;
    const char *title = status == 503 ? "too busy" : base_problem_title(status);
    /* Where the same request can do better later. */
    const char *retry = status == 503 || status == 429 ? "Retry-After: 1\r\n" : "";
    base_text_init(&body, HTTP_RAW_BYTES / 2);
    base_problem_write(&body, status, title, detail);
    if (body.error != 0) /* without memory, without a body */
        base_text_reset(&body);
    const int n = snprintf(out, bytes,
                           "HTTP/1.1 %d %s\r\nContent-Type: " BASE_PROBLEM_TYPE
                           "\r\nContent-Length: %zu\r\n%sConnection: close\r\n\r\n%s",
                           status, title, body.length, retry, base_text_str(&body));
    BASE_ASSERT(n > 0 && (size_t)n < bytes);
    base_text_fini(&body);
    return out;
}

/* Both halves of libmicrohttpd's decoding are lenient; here a bad escape, a NUL, and a '/' that is
 * hidden in a path are refused. */
static bool uri_is_sound(const char *uri)
{
    bool query = false;
    for (const char *p = uri; *p != '\0';) {
        uint8_t byte;
        query |= *p == '?';
        if ((unsigned char)*p <= 0x20 || *p == 0x7f)
            return false;
        const int length = base_percent_decode(p, &byte);
        if (length < 0 || (length > 1 && (byte == 0 || (!query && byte == '/'))))
            return false;
        p += length;
    }
    return true;
}

static void look_at_certificate(struct http_exchange *r)
{
    struct http_connection *c = r->connection;
    const struct http_server_config *config = &c->server->config;
    const char *why = http_tls_check(c);
    r->public.exposed = !c->local && !c->on_loopback && c->tunnel == NULL;
    r->public.certificate = http_tls_certificate(c);
    if (why == NULL)
        return;
    r->reject = 403;
    r->why = why;
    r->closes = true;
    if (config->refused != NULL)
        config->refused(config->user, c->peer, why);
}

void *http_on_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    (void)cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_connection *c = info == NULL ? NULL : info->socket_context;
    struct http_exchange *r = c == NULL ? NULL : calloc(1, sizeof *r);
    if (r == NULL)
        return NULL; /* http_on_request() closes the connection */
    http_request_free(c->request);
    c->request = r;
    c->asked = true;
    r->connection = c;
    r->mhd = mhd;
    if (!uri_is_sound(uri)) {
        r->reject = 400;
        r->why = "the URI is malformed";
        r->closes = true;
    }
    look_at_certificate(r);
    r->public.body = "";
    r->public.local = c->local;
    r->public.peer_uid = c->uid;
    memcpy(r->public.peer, c->peer, sizeof r->public.peer);
    http_connection_wait(c, HTTP_WAIT_REQUEST, false);
    const char *why;
    const int status = http_head_look_at_uri(r, uri, &why);
    if (status != 0)
        http_connection_refuse(c, status, why);
    return r;
}

void http_request_free(struct http_exchange *r)
{
    if (r == NULL)
        return;
    struct http_server *s = r->connection->server;
    if (r->stage == HTTP_DEFERRED) {
        TAILQ_REMOVE(&s->deferred, r, link);
        s->stats.deferred--;
        if (s->config.abandon != NULL)
            s->config.abandon(s->config.user, &r->public);
    }
    http_stream_forget(r);
    if (r->response != NULL)
        MHD_destroy_response(r->response);
    http_admission_count_body(r, 0);
    free(r->body);
    r->connection->request = NULL;
    free(r);
}

/* libmicrohttpd, told once of data and of the end behind it, looks for the end no more: such a
 * connection would stand until it has been idle for long. */
static bool has_ended(const struct http_connection *c)
{
    char next;
    return recv(c->fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void http_on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                       enum MHD_RequestTerminationCode code)
{
    (void)cls, (void)mhd, (void)code;
    struct http_exchange *r = *context;
    *context = NULL;
    if (r == NULL)
        return;
    struct http_connection *c = r->connection;
    http_request_free(r);
    http_connection_wait(c, HTTP_WAIT_IDLE, true);
    if (has_ended(c))
        http_connection_hang_up(c);
}

/* Appends to the body, or sets reject. */
static void take_body(struct http_exchange *r, const char *bytes, size_t length)
{
    struct http_server *s = r->connection->server;
    if (r->reject == 0 && length > s->config.body_bytes - r->public.body_length)
        r->reject = 413;
    size_t needed = r->public.body_length + length + 1;
    if (r->reject == 0 && needed > r->capacity) {
        size_t capacity = r->capacity == 0 ? FIRST_BODY_BYTES : r->capacity;
        while (capacity < needed)
            capacity *= 2;
        capacity = capacity > s->config.body_bytes + 1 ? s->config.body_bytes + 1 : capacity;
        char *body =
            http_admission_has_room(r, capacity - r->capacity) ? realloc(r->body, capacity) : NULL;
        if (body == NULL) {
            r->reject = 503;
        } else {
            r->body = body;
            http_admission_count_body(r, capacity);
        }
    }
    if (r->reject != 0) {
        r->discarded += length;
        return;
    }
    memcpy(r->body + r->public.body_length, bytes, length);
    r->public.body_length += length;
    r->body[r->public.body_length] = '\0';
    r->public.body = r->body;
}

/* Of a request that waits for its answer nothing is kept but what it holds: many may. */
static void fit_body(struct http_exchange *r)
{
    const size_t needed = r->public.body_length + 1;
    char *body = r->capacity > needed ? realloc(r->body, needed) : NULL;
    if (body == NULL)
        return;
    http_admission_count_body(r, needed);
    r->body = body;
    r->public.body = body;
}

static struct MHD_Response *make_response(const struct http_response *response)
{
    size_t length = response->body == NULL ? 0 : response->body_length;
    struct MHD_Response *m = MHD_create_response_from_buffer(
        length, (void *)(length == 0 ? "" : response->body),
        length == 0 ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
    return http_add_headers(m, response, length > 0);
}

struct MHD_Response *http_add_headers(struct MHD_Response *m, const struct http_response *response,
                                      bool has_body)
{
    if (m == NULL)
        return NULL;
    const char *type = response->content_type != NULL ? response->content_type : "application/json";
    bool ok =
        !has_body || MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES;
    for (int i = 0; ok && i < HTTP_EXTRA_HEADERS && response->headers[i].name != NULL; i++)
        ok = MHD_add_response_header(m, response->headers[i].name, response->headers[i].value) ==
             MHD_YES;
    if (!ok) {
        MHD_destroy_response(m);
        return NULL;
    }
    return m;
}

/* Makes the answer ready. A problem without memory for its text goes without one. */
static void prepare_problem(struct http_exchange *r, int status, const char *title,
                            const char *detail)
{
    struct base_text t;
    base_text_init(&t, PROBLEM_BYTES_MAX);
    base_problem_write(&t, status, title, detail);
    if (t.error == -EMSGSIZE) { /* a detail without end: the title must do */
        base_text_reset(&t);
        base_problem_write(&t, status, title, NULL);
    }
    struct http_response response = {.status = status,
                                     .content_type = BASE_PROBLEM_TYPE,
                                     .body = base_text_str(&t),
                                     .body_length = t.error == 0 ? t.length : 0};
    char seconds[16];
    if (r->retry_s > 0) {
        snprintf(seconds, sizeof seconds, "%u", r->retry_s);
        response.headers[0] = (struct http_header){MHD_HTTP_HEADER_RETRY_AFTER, seconds};
    }
    r->response = make_response(&response);
    r->status = status;
    base_text_fini(&t);
}

void http_request_answered(struct http_exchange *r)
{
    bool was_deferred = r->stage == HTTP_DEFERRED;
    r->stage = HTTP_ANSWERED;
    if (was_deferred) {
        struct http_server *s = r->connection->server;
        TAILQ_REMOVE(&s->deferred, r, link);
        s->stats.deferred--;
        MHD_resume_connection(r->mhd);
        http_server_kick(s);
    }
}

int http_reply(struct http_request *request, const struct http_response *response)
{
    struct http_exchange *r = request_of(request);
    int status = 0;
    BASE_ASSERT(r->stage == HTTP_HANDLING || r->stage == HTTP_DEFERRED);
    if (response->status < 200 || response->status > 599)
        status = -EINVAL;
    else if ((r->response = make_response(response)) == NULL)
        status = -EINVAL;
    r->status = response->status;
    if (status == 0)
        http_request_answered(r);
    else
        http_request_fail(r);
    return status;
}

void http_request_fail(struct http_exchange *r)
{
    prepare_problem(r, 500, base_problem_title(500), "the answer could not be sent");
    http_request_answered(r);
}

void http_reply_error(struct http_request *request, int errnum, const char *detail)
{
    struct http_exchange *r = request_of(request);
    const struct base_error *row = base_error_of(errnum);
    BASE_ASSERT(r->stage == HTTP_HANDLING || r->stage == HTTP_DEFERRED);
    prepare_problem(r, row->http, row->title, detail);
    http_request_answered(r);
}

void http_request_abandon(struct http_exchange *r)
{
    struct http_server *s = r->connection->server;
    if (s->config.abandon != NULL)
        s->config.abandon(s->config.user, &r->public);
    prepare_problem(r, 503, "stopping", "the server stops");
    http_request_answered(r);
}

static enum MHD_Result send_answer(struct http_exchange *r)
{
    if (r->response == NULL)
        return MHD_NO; /* no memory even for a problem: closes */
    enum MHD_Result queued = MHD_queue_response(r->mhd, (unsigned)r->status, r->response);
    MHD_destroy_response(r->response);
    r->response = NULL;
    http_connection_wait(r->connection, HTTP_WAIT_IDLE, false);
    return queued;
}

static enum MHD_Result send_rejection(struct http_exchange *r)
{
    char detail[HTTP_TLS_WHY];
    struct http_server *s = r->connection->server;
    s->stats.rejected++;
    if (r->why != NULL)
        snprintf(detail, sizeof detail, "%s", r->why);
    else if (r->reject == 413)
        snprintf(detail, sizeof detail, "a request's body has at most %zu bytes",
                 s->config.body_bytes);
    else if (r->reject == 429)
        snprintf(detail, sizeof detail,
                 "one client may make %u requests a second; try again in %u s",
                 s->config.requests_per_second, r->retry_s);
    else
        snprintf(detail, sizeof detail, "too many large requests at once; try again soon");
    r->stage = HTTP_ANSWERED;
    if (r->reject == 503)
        r->retry_s = 1;
    prepare_problem(r, r->reject, r->reject == 503 ? "too busy" : base_problem_title(r->reject),
                    detail);
    return send_answer(r);
}

/* libmicrohttpd answers no request before its end, or closes with bytes unread, which would discard
 * the answer on its way. So that of a body that is by far too large, or whose length nobody knows,
 * goes straight out, and nothing after it; a part of the body is still read, so that its sender
 * gets to read that. */
static void cut_short(struct http_exchange *r)
{
    char answer[HTTP_RAW_BYTES];
    r->cut_short = true;
    http_raw_problem(r->reject, r->why != NULL ? r->why : "the body is too large", answer,
                     sizeof answer);
    send(r->connection->fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(r->connection->fd, SHUT_WR);
    r->connection->server->stats.rejected++;
}

/* Looks at the headers. Whoever waits for "100 Continue" is answered before the body comes; who
 * would send without end, at once. */
static bool rejected_early(struct http_exchange *r)
{
    const char *text = http_header(&r->public, MHD_HTTP_HEADER_CONTENT_LENGTH);
    size_t most = r->connection->server->config.body_bytes;
    uint64_t length = 0;
    if (text != NULL && base_parse_u64(text, 0, UINT64_MAX, &length) != 0)
        length = UINT64_MAX;
    if (length > most && r->reject == 0)
        r->reject = 413;
    const bool waits = http_header(&r->public, MHD_HTTP_HEADER_EXPECT) != NULL;
    if (r->reject == 411 && !waits) {
        cut_short(r);
        return false;
    }
    if (r->closes || (r->reject != 0 && waits))
        return true; /* and libmicrohttpd closes after an answer that comes so early */
    if (r->reject == 413 && length > DISCARDED_BYTES_MAX)
        cut_short(r);
    return false;
}

static enum MHD_Result give_to_handler(struct http_exchange *r)
{
    struct http_server *s = r->connection->server;
    r->stage = HTTP_HANDLING;
    http_connection_wait(r->connection, HTTP_WAIT_NOTHING, false);
    r->public.whole_ns = base_clock_ns();
    fit_body(r);
    s->stats.requests++;
    if (s->ending) {
        r->stage = HTTP_ANSWERED;
        prepare_problem(r, 503, base_problem_title(503), "this program ends");
        return send_answer(r);
    }
    const bool has_price = http_admission_has_price(r->connection);
    const uint64_t began_ns = has_price ? base_clock_thread_ns() : 0;
    enum http_verdict verdict = s->config.handle(s->config.user, &r->public);
    if (has_price)
        http_admission_spend(r->connection, base_clock_thread_ns() - began_ns);
    if (r->stage == HTTP_ANSWERED)
        return send_answer(r);
    if (verdict == HTTP_DEFER) {
        r->stage = HTTP_DEFERRED;
        TAILQ_INSERT_TAIL(&s->deferred, r, link);
        s->stats.deferred++;
        MHD_suspend_connection(r->mhd);
        return MHD_YES;
    }
    r->stage = HTTP_ANSWERED;
    prepare_problem(r, 500, base_problem_title(500), "the handler gave no answer");
    return send_answer(r);
}

enum MHD_Result http_on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_bytes, void **context)
{
    (void)cls, (void)mhd;
    struct http_exchange *r = *context;
    if (r == NULL || r->connection->ending)
        return MHD_NO;
    if (!r->begun) {
        r->begun = true;
        r->public.method = method;
        r->public.path = url;
        if (http_head_leaves_no_room(r)) {
            http_connection_refuse(r->connection, 431, "the cookies are too large");
            return MHD_NO;
        }
        http_head_look(r, method, version);
        http_admission_look(r);
        return rejected_early(r) ? send_rejection(r) : MHD_YES;
    }
    if (*upload_bytes > 0) {
        take_body(r, upload, *upload_bytes);
        *upload_bytes = 0;
        if (r->reject == 413 && !r->cut_short && r->discarded > DISCARDED_BYTES_SILENT)
            cut_short(r);
        return r->discarded > DISCARDED_BYTES_MAX ? MHD_NO : MHD_YES;
    }
    if (r->cut_short)
        return MHD_NO;
    if (r->stage == HTTP_ANSWERED)
        return send_answer(r);
    return r->reject != 0 ? send_rejection(r) : give_to_handler(r);
}

const char *http_query(const struct http_request *request, const char *name)
{
    const char *value = NULL;
    size_t length = 0;
    if (MHD_lookup_connection_value_n(request_of(request)->mhd, MHD_GET_ARGUMENT_KIND, name,
                                      strlen(name), &value, &length) != MHD_YES)
        return NULL;
    return value == NULL ? "" : value;
}

struct each_query {
    void (*each)(void *user, const char *name, const char *value);
    void *user;
};

static enum MHD_Result on_query(void *cls, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    const struct each_query *q = cls;
    (void)kind;
    if (name[0] != '\0' || value != NULL) /* not what is between "&&" */
        q->each(q->user, name, value == NULL ? "" : value);
    return MHD_YES;
}

void http_queries(const struct http_request *request,
                  void (*each)(void *user, const char *name, const char *value), void *user)
{
    struct each_query q = {.each = each, .user = user};
    (void)MHD_get_connection_values(request_of(request)->mhd, MHD_GET_ARGUMENT_KIND, on_query, &q);
}

const char *http_header(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request_of(request)->mhd, MHD_HEADER_KIND, name);
}

bool http_client_gone(const struct http_request *request)
{
    struct pollfd p = {.fd = request_of(request)->connection->fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}
