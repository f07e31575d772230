/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 server with bounds, driven by its owner's event loop.
 *
 * One thread: every function, and every handler, runs on the thread that calls run(). Watch the one
 * descriptor for reading and call run() when it is readable; timers are inside it.
 *
 * Admission. A connection is an anonymous client's until a request on it has shown who it is
 * (`identify`), and again after one that has not. Anonymous clients share a part of the
 * connections, of the memory for bodies and a rate; when their part is used up the connection that
 * is an anonymous client's for longest goes, unless a request on it is being dealt with. Who is
 * known is counted by who it is, wherever it comes from, and nothing that an anonymous client does
 * is counted against it, nor what one who is not trusted takes of the thread.
 *
 * What it answers by itself, all as application/problem+json: 503 above the number of connections,
 * 429 above those of one client or above its rate of requests (and after a few of these it closes),
 * 408 for a request that is not whole in time, 413 for a body that is too large, 414 for a URI that
 * is too long or has too many parameters, 400 for a malformed URI, 403 for a Host or Origin that is
 * none of this server's on loopback, and, closing, so that nothing behind it is taken for another
 * request: 400 for a head that is not written as RFC 9112 says or says two things (a bare LF, a
 * NUL, folded lines, a blank before a colon, two Hosts or none, two Content-Lengths, Content-Length
 * with Transfer-Encoding, a Content-Length of other characters than digits; the first three with
 * the tested version of libmicrohttpd alone, see library.h), 411 for chunks, 431
 * for cookies that have no room, 501 for other codings, 417, 505. Unix sockets have no bounds of a
 * client. libmicrohttpd answers by itself, once, with a page of HTML, and closes: a header without
 * a colon (400), a first line (400, 414) or headers (431) that it has no use or no memory for,
 * HTTP/0 and HTTP/2 (505). Idle connections are closed. A deferred request has no time limit but
 * its owner's; nor has a stream whose client takes what it is given. */
#ifndef BASE_HTTP_SERVER_H
#define BASE_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/http/server_stats.h"
#include "base/http/tls.h"
#include "base/text.h"

struct http_server;

/* Borrowed by the handler: until it returns, or, when it deferred, until http_reply() or
 * `abandon`. So are all strings in it. */
struct http_request {
    const char *method; /* "GET" */
    const char *path;   /* percent-decoded, without the query; begins with '/' (or is "*") */
    const char *body;   /* NUL-terminated, "" when there is none; may hold NULs of its own */
    size_t body_length;
    bool local;     /* came over the Unix socket */
    uid_t peer_uid; /* of the process at the other end, when local */
    char peer[56];  /* "10.0.0.1:40000", "[::1]:40000" or "unix" */
    /* It came over a network as it is: whoever was on the way has seen it. */
    bool exposed;
    const struct http_certificate *certificate; /* that its client has; NULL: none */
    uint64_t whole_ns; /* base_clock_ns() when it was whole, and given to the handler */
    void *data;        /* the handler's own, NULL to begin */
};

struct http_header {
    const char *name;
    const char *value;
};

enum { HTTP_EXTRA_HEADERS = 8 };

/* All borrowed until http_reply() returns, which copies. */
struct http_response {
    int status;               /* 200 .. 599 */
    const char *content_type; /* NULL: application/json */
    const char *body;         /* NULL: none */
    size_t body_length;
    struct http_header headers[HTTP_EXTRA_HEADERS]; /* up to the first NULL name */
};

enum http_verdict {
    HTTP_REPLIED, /* http_reply() was called (if not, the server answers 500) */
    HTTP_DEFER,   /* it will be called later, from the same thread */
};

/* Called once for each whole request that was well-formed and within the bounds. */
typedef enum http_verdict (*http_handler)(void *user, struct http_request *request);

/* Who a request is of. */
struct http_who {
    enum http_rank rank;
    uint64_t id; /* which of that rank; 0: one without bounds of its own */
};

/* Zero: the default in parentheses; NULL: none. Strings are borrowed for the call of new(). */
struct http_server_config {
    const char *listen;            /* "127.0.0.1:7480", "[::1]:7480"; port 0: any */
    const char *unix_path;         /* at least one of the two */
    unsigned unix_mode;            /* of the socket file (0600) */
    const char *program;           /* for sentences: "kedge-metad" */
    const char *setting;           /* for sentences: "`listen` in /etc/kedge/metad.conf" */
    unsigned connections;          /* in all (1024) */
    unsigned anonymous;            /* of these (connections) */
    unsigned connections_per_ip;   /* of anonymous clients of one address (connections) */
    unsigned connections_per_id;   /* of one who is known (connections) */
    unsigned anonymous_per_second; /* requests of all anonymous clients (no bound) */
    unsigned requests_per_second;  /* of one client, on average (no bound); beyond it 429 */
    unsigned requests_burst;       /* and at once (requests_per_second) */
    /* Of the thread's time, for one who is HTTP_KNOWN and for all (no bound); beyond it 429. */
    unsigned percent_per_id, percent_known;
    size_t body_bytes;        /* of one request (1 MiB) */
    size_t bodies_bytes;      /* of all (64 MiB); of one client a quarter, or one body; else 503 */
    size_t header_bytes;      /* memory of a connection: headers and buffers (32 KiB) */
    unsigned idle_timeout_ms; /* a connection without a request, or taking an answer (60000) */
    unsigned request_timeout_ms;   /* from a request's first line to its last byte (10000) */
    unsigned handshake_timeout_ms; /* of TLS, to the first line of a request (10000) */
    unsigned stream_timeout_ms;    /* a stream's client that takes nothing is cut off (10000) */
    /* Names, with blanks or commas between them, that a request on loopback may be for, beside
     * localhost and addresses: a page that a browser shows reaches it by a name of its own (DNS
     * rebinding). NULL: any. */
    const char *hosts;
    /* TLS on `listen`, and not on the Unix socket: with a certificate; borrowed until free(). NULL:
     * none. Where it names authorities, a client's certificate has to be of them. */
    struct http_tls *tls;
    bool client_cert_auth; /* and each has to show one; else 403 */
    /* Of a client whose certificate is not believed, once for each of its requests. May be NULL. */
    void (*refused)(void *user, const char *peer, const char *why);
    http_handler handle;
    /* Who has sent a request, of which the headers are there. NULL: everybody is an anonymous
     * client, and none of them makes room for another one before it is idle. */
    struct http_who (*identify)(void *user, const struct http_request *request);
    /* A deferred request ends without a reply, because the server is freed: forget it. May be
     * NULL. */
    void (*abandon)(void *user, struct http_request *request);
    void *user;
};

/* Listens. 0 and *out (the caller's), or -errno and a sentence in err (NULL allowed): -EADDRINUSE,
 * -EACCES, -EADDRNOTAVAIL, -EINVAL for a malformed address. A socket file that nobody listens on
 * is replaced; a file that is no socket is left alone (-EEXIST). */
int http_server_new(const struct http_server_config *config, struct http_server **out,
                    struct base_errbuf *err);

/* Stops listening, closes every connection, calls `abandon` for what is deferred, removes the
 * socket file. Not from a handler. NULL is allowed. */
void http_server_free(struct http_server *server);

/* Borrowed: watch it for reading. */
int http_server_fd(const struct http_server *server);

/* Ends the streams of clients whose certificate holds no more: after http_tls_look(), and now and
 * then. Other requests are looked at when they come. */
void http_server_recheck(struct http_server *server);

/* Does what can be done now, calling handlers; never blocks. */
void http_server_run(struct http_server *server);

/* The TCP port in host order, 0 without one. */
uint16_t http_server_port(const struct http_server *server);

/* The value of a query parameter (decoded; "" for "?name"), NULL when absent. Only the first of
 * several. Borrowed as the request is. */
const char *http_query(const struct http_request *request, const char *name);
/* Tells of each, in the order in which they were sent. */
void http_queries(const struct http_request *request,
                  void (*each)(void *user, const char *name, const char *value), void *user);
/* The value of a header, whatever its name's case; NULL when absent. */
const char *http_header(const struct http_request *request, const char *name);

/* Answers, once; the request is gone when a deferred one was answered. 0, or -EINVAL when a header
 * or the status cannot be sent (or memory is out): then a 500 is sent instead. */
int http_reply(struct http_request *request, const struct http_response *response);

/* Answers with an error's row of the table: its status, its title and detail (a sentence that says
 * what to do; NULL: none) as application/problem+json. errnum: of either sign. */
void http_reply_error(struct http_request *request, int errnum, const char *detail);

/* An answer that comes piece by piece (chunked) and may never end. */
struct http_stream {
    /* What comes next: 0 and *length bytes, borrowed until the next call or `over`; *length 0:
     * there is nothing yet, call again after http_stream_wake(). Anything else than 0: the
     * stream is at its end. Called when the piece before was taken. May not call wake(). */
    int (*next)(void *data, const char **bytes, size_t *length);
    /* The stream is over: at its end, cut off, or the server is freed. Called exactly once, also
     * when http_stream() fails. */
    void (*over)(void *data);
    void *data;
};

/* Answers with a stream (response->body is not looked at), as http_reply() does; the request
 * stays until `over`. 0; -EINVAL or -ENOMEM: then a 500 is sent instead. */
int http_stream(struct http_request *request, const struct http_response *response,
                const struct http_stream *stream);
/* There may be more to send. */
void http_stream_wake(struct http_request *request);

/* Whether the client of a deferred request has gone (or sends no more, which no client of ours
 * does). Nothing tells the owner: look now and then, and answer to be rid of it. */
bool http_client_gone(const struct http_request *request);

#endif
