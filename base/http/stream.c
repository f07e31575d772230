/* SPDX-License-Identifier: Apache-2.0 */
/* An answer that comes piece by piece. libmicrohttpd asks for bytes when the socket takes some;
 * when there are none yet the connection is suspended, since it would ask again at once. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/http/server.h"
#include "server_private.h"
#include "tls_tunnel.h"

/* Of what HTTP/1.0 gets; what comes in chunks has the connection's own memory. libmicrohttpd holds
 * it as long as the stream lives: at 16 KiB that was 160 MiB for 10,000 agents. */
enum { BLOCK_BYTES = 1 << 10 };

static void fetch_piece(struct http_connection *c, struct http_feed *s)
{
    s->length = 0;
    if (s->ending)
        return;
    const bool has_price = http_admission_has_price(c);
    const uint64_t began_ns = has_price ? base_clock_thread_ns() : 0;
    const int status = s->calls.next(s->calls.data, &s->bytes, &s->length);
    if (has_price)
        http_admission_spend(c, base_clock_thread_ns() - began_ns);
    if (status == 0)
        return;
    s->length = 0;
    s->ending = true;
}

static ssize_t on_read(void *cls, uint64_t position, char *out, size_t max)
{
    struct http_exchange *r = cls;
    struct http_feed *s = &r->stream;
    (void)position;
    if (s->length == 0)
        fetch_piece(r->connection, s);
    if (s->length > 0) {
        size_t n = s->length < max ? s->length : max;
        memcpy(out, s->bytes, n);
        s->bytes += n;
        s->length -= n;
        http_connection_wait(r->connection, HTTP_WAIT_STREAM, false);
        return (ssize_t)n;
    }
    if (s->ending || r->connection->server->ending)
        return MHD_CONTENT_READER_END_OF_STREAM;
    s->asleep = true;
    http_connection_wait(r->connection, HTTP_WAIT_NOTHING, false);
    MHD_suspend_connection(r->mhd);
    return 0;
}

static void wake_stream(struct http_exchange *r)
{
    if (!r->stream.asleep)
        return;
    r->stream.asleep = false;
    http_connection_wait(r->connection, HTTP_WAIT_STREAM, false);
    MHD_resume_connection(r->mhd);
    http_server_kick(r->connection->server);
}

void http_stream_wake(struct http_request *request)
{
    wake_stream((struct http_exchange *)request);
}

void http_stream_end(struct http_exchange *r)
{
    r->stream.ending = true;
    wake_stream(r);
}

void http_stream_forget(struct http_exchange *r)
{
    struct http_server *s = r->connection->server;
    if (r->stream.calls.next == NULL)
        return;
    r->stream.calls.next = NULL;
    TAILQ_REMOVE(&s->streams, r, stream.link);
    s->stats.streams--;
    r->stream.calls.over(r->stream.calls.data);
}

int http_stream(struct http_request *request, const struct http_response *response,
                const struct http_stream *stream)
{
    struct http_exchange *r = (struct http_exchange *)request;
    struct http_server *s = r->connection->server;
    unsigned timeout_ms = s->config.stream_timeout_ms;
    BASE_ASSERT(r->stage == HTTP_HANDLING || r->stage == HTTP_DEFERRED);
    if (response->status >= 200 && response->status <= 599)
        r->response = http_add_headers(
            MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, r, NULL),
            response, true);
    r->status = response->status;
    if (r->response == NULL) {
        stream->over(stream->data);
        http_request_fail(r);
        return -EINVAL;
    }
    r->stream.calls = *stream;
    TAILQ_INSERT_TAIL(&s->streams, r, stream.link);
    s->stats.streams++;
    /* Heartbeats fit into the socket's buffer for hours: so it must be told when nobody
     * acknowledges them. A Unix socket does not know this, and its peers do not vanish. */
    (void)setsockopt(r->connection->wire, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
                     sizeof timeout_ms);
    http_request_answered(r);
    return 0;
}

void http_server_recheck(struct http_server *s)
{
    struct http_exchange *r;
    TAILQ_FOREACH(r, &s->streams, stream.link) {
        const char *why = http_tls_check(r->connection);
        if (why == NULL || r->stream.ending)
            continue;
        if (s->config.refused != NULL)
            s->config.refused(s->config.user, r->connection->peer, why);
        http_stream_end(r);
    }
}
