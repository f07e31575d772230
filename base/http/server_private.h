/* SPDX-License-Identifier: Apache-2.0 */
/* What server.c (sockets, deadlines) and exchange.c (requests, answers) share. */
#ifndef BASE_HTTP_SERVER_PRIVATE_H
#define BASE_HTTP_SERVER_PRIVATE_H

#include <microhttpd.h>
#include <sys/queue.h>

#include "base/http/server.h"

/* Where a connection waits, and for how long at most. */
enum http_wait {
    HTTP_WAIT_IDLE,    /* for a request, or for the client to take an answer: idle_timeout_ms */
    HTTP_WAIT_REQUEST, /* for the rest of a request: request_timeout_ms */
    HTTP_WAIT_NOTHING, /* the handler has it, or it is being closed: no deadline */
};
enum { HTTP_WAITS_TIMED = 2 };

struct http_request;

/* One accepted connection; libmicrohttpd's socket context. */
struct http_connection {
    struct kedge_http_server *server;
    struct http_request *request; /* the one under way, or NULL */
    int fd;                       /* libmicrohttpd's */
    enum http_wait wait;
    bool idle; /* between requests: nothing is lost when it is closed */
    uint64_t since_ns;
    TAILQ_ENTRY(http_connection) link; /* in waiting[wait], oldest first */
    char peer[56];
    bool local;
    uid_t uid;
};
TAILQ_HEAD(http_connections, http_connection);

enum http_stage { HTTP_RECEIVING, HTTP_HANDLING, HTTP_DEFERRED, HTTP_ANSWERED };

struct http_request {
    struct kedge_http_request public; /* first: handlers see this */
    struct http_connection *connection;
    struct MHD_Connection *mhd;
    enum http_stage stage;
    bool begun; /* its headers were looked at */
    int reject; /* an HTTP status that the server answers itself, or 0 */
    char *body; /* owned */
    size_t capacity;
    size_t discarded;              /* bytes of a body that is too large */
    struct MHD_Response *response; /* owned until queued */
    int status;
    TAILQ_ENTRY(http_request) link; /* in server->deferred */
};
TAILQ_HEAD(http_requests, http_request);

struct kedge_http_server {
    struct kedge_http_server_config config; /* without its strings */
    struct MHD_Daemon *daemon;
    char *unix_path; /* owned */
    uint64_t unix_inode, unix_device;
    uint16_t port;
    int epoll, timer, tcp, local; /* -1: none */
    int spare;                    /* given up for a moment when descriptors run out */
    struct http_connections waiting[HTTP_WAITS_TIMED];
    struct http_requests deferred;
    size_t bodies_bytes;
    bool resumed; /* libmicrohttpd does not say by itself that it has to run for this */
    struct kedge_http_server_stats stats;
};

/* Moves a connection to where it waits now; its time starts anew. */
void http_connection_wait(struct http_connection *c, enum http_wait wait, bool idle);

/* Has run() called soon: a deferred request was resumed. */
void http_server_kick(struct kedge_http_server *s);

/* A whole answer, head included, that does not go through libmicrohttpd. Returns out. */
const char *http_raw_problem(int status, const char *detail, char *out, size_t bytes);

/* libmicrohttpd's callbacks. */
void *http_on_uri(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result http_on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_bytes, void **context);
void http_on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                       enum MHD_RequestTerminationCode code);

void http_request_free(struct http_request *r);

/* Answers a deferred request with 503 and lets its owner know. */
void http_request_abandon(struct http_request *r);

#endif
