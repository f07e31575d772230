/* SPDX-License-Identifier: Apache-2.0 */
/* What server.c (sockets, deadlines), admission.c (who is let in), exchange.c (requests, answers),
 * head.c (what a request may look like) and stream.c share. */
#ifndef BASE_HTTP_SERVER_PRIVATE_H
#define BASE_HTTP_SERVER_PRIVATE_H

#include <microhttpd.h>
#include <sys/queue.h>

#include "base/http/server.h"
#include "clients.h"

/* Where a connection waits, and for how long at most. */
enum http_wait {
    HTTP_WAIT_IDLE,    /* for a request, or for the client to take an answer: idle_timeout_ms */
    HTTP_WAIT_REQUEST, /* for the rest of a request: request_timeout_ms */
    HTTP_WAIT_STREAM,  /* for the client to take a piece of a stream: stream_timeout_ms */
    HTTP_WAIT_TLS,     /* for the end of a handshake and a request: handshake_timeout_ms */
    HTTP_WAIT_NOTHING, /* the handler has it, a stream has no more yet, or it is being closed */
};
enum { HTTP_WAITS_TIMED = 4 };

struct http_exchange;
struct http_tunnel;
struct http_tunnels;

/* One accepted connection; libmicrohttpd's socket context. */
struct http_connection {
    struct http_server *server;
    struct http_exchange *request; /* the one under way, or NULL */
    int fd;                        /* libmicrohttpd's */
    int wire;                      /* the network's end of it: the same without TLS */
    enum http_wait wait;
    bool idle; /* between requests: nothing is lost when it is closed */
    uint64_t since_ns;
    TAILQ_ENTRY(http_connection) link; /* in waiting[wait], oldest first */
    /* Whose it is, by its last request: of server->known, or of server->clients as long as it is an
     * anonymous client's; NULL: it has no bound of its own. */
    struct http_client_entry *owner;
    enum http_rank rank;
    TAILQ_ENTRY(http_connection) of_owner; /* in owner->own */
    TAILQ_ENTRY(http_connection) of_rank;  /* in server->anonymous, as long as it is one */
    uint8_t key[16];                       /* of its address */
    bool has_key;
    bool on_loopback;
    struct http_tunnel *tunnel; /* of TLS; NULL: it has none */
    bool asked;                 /* there was a request on it */
    bool ending;                /* it was hung up */
    unsigned limited;           /* requests of it that were told 429 */
    char peer[56];
    bool local;
    uid_t uid;
};

enum http_stage { HTTP_RECEIVING, HTTP_HANDLING, HTTP_DEFERRED, HTTP_ANSWERED };

/* Of an answer that is a stream. */
struct http_feed {
    struct http_stream calls; /* next NULL: the answer is no stream, or it is over */
    const char *bytes;        /* of the piece that is being sent: what is left of it */
    size_t length;
    bool asleep; /* the connection is suspended until there is more */
    bool ending;
    TAILQ_ENTRY(http_exchange) link; /* in server->streams */
};

struct http_exchange {
    struct http_request public; /* first: handlers see this */
    struct http_connection *connection;
    struct MHD_Connection *mhd;
    enum http_stage stage;
    const char *uri; /* as it came, and as long: libmicrohttpd's, decoded in place since */
    size_t uri_length;
    bool begun;       /* its headers were looked at */
    int reject;       /* an HTTP status that the server answers itself, or 0 */
    const char *why;  /* with `reject`: a sentence; NULL: the status' own */
    bool closes;      /* and its connection is closed then, whatever follows */
    unsigned retry_s; /* with 429 and 503: when to come back */
    bool cut_short;   /* its client was told 413 while it went on sending */
    char *body;       /* owned */
    size_t capacity;
    size_t discarded;              /* bytes of a body that is too large */
    struct MHD_Response *response; /* owned until queued */
    int status;
    TAILQ_ENTRY(http_exchange) link; /* in server->deferred */
    struct http_feed stream;
};
TAILQ_HEAD(http_exchanges, http_exchange);

struct http_server {
    struct http_server_config config; /* without its strings */
    struct MHD_Daemon *daemon;
    struct http_tunnels *tunnels; /* NULL: without TLS */
    char *unix_path;              /* owned */
    char *hosts;                  /* owned: names that a Host may have on loopback; NULL: any */
    uint64_t unix_inode, unix_device;
    uint16_t port;
    int epoll, timer, tcp, local;      /* -1: none */
    int spare;                         /* given up for a moment when descriptors run out */
    struct http_clients clients;       /* anonymous ones, by their addresses */
    struct http_clients known;         /* the others, by who they are */
    struct http_connections anonymous; /* that is one for longest first */
    unsigned ranked[HTTP_RANKS];       /* connections, without those that end */
    uint64_t anonymous_whole_ns;       /* of the allowance of all anonymous clients */
    uint64_t known_time_whole_ns;      /* of the time of all who are HTTP_KNOWN */
    struct http_connections waiting[HTTP_WAITS_TIMED];
    struct http_exchanges deferred, streams;
    size_t bodies_bytes[HTTP_RANKS]; /* of requests that are coming in */
    bool resumed; /* libmicrohttpd does not say by itself that it has to run for this */
    bool ending;  /* it is being freed: nothing waits any more that begins now */
    struct http_server_stats stats;
};

/* Moves a connection to where it waits now; its time starts anew. */
void http_connection_wait(struct http_connection *c, enum http_wait wait, bool idle);

/* Ends it: libmicrohttpd notices, completes the request and closes. */
void http_connection_hang_up(struct http_connection *c);

/* Tells it that first, past libmicrohttpd: nothing else is being sent to it. */
void http_connection_refuse(struct http_connection *c, int status, const char *why);

/* Has run() called soon: a deferred request was resumed. */
void http_server_kick(struct http_server *s);

/* ---- admission.c: who has connections, and who makes room */

/* Before there is a connection from there: makes room for it if need be. 0; or the status that it
 * is told, and why. */
int http_admit(struct http_server *s, const struct sockaddr_storage *from, const char **why);
/* It is an anonymous client's, until it shows something. */
void http_admission_join(struct http_connection *c);
void http_admission_leave(struct http_connection *c);
/* Whose this request is, whether that has a connection too many or asks too often: then it is to be
 * rejected. Before its body is taken. */
void http_admission_look(struct http_exchange *r);
/* Whether what such a connection's requests take is bounded, and counts how much it was. */
bool http_admission_has_price(const struct http_connection *c);
void http_admission_spend(struct http_connection *c, uint64_t spent_ns);
/* Whether so much more of a body may be kept. */
bool http_admission_has_room(const struct http_exchange *r, size_t more);
/* The memory of its body is so large now. */
void http_admission_count_body(struct http_exchange *r, size_t capacity);

/* ---- head.c: what is no proper head of a request */

/* As soon as its first line is there. Not 0: it is refused at once, with that. */
int http_head_look_at_uri(struct http_exchange *r, const char *uri, const char **why);
/* Once all of it is there, before a body is taken: sets r->reject, if there is nothing there yet.
 */
void http_head_look(struct http_exchange *r, const char *method, const char *version);
/* Whether libmicrohttpd may lack the memory for an answer. */
bool http_head_leaves_no_room(const struct http_exchange *r);
/* Once all of it is there, of one that libmicrohttpd does not take: the status that it is refused
 * with, and why. */
int http_head_find_fault(struct http_exchange *r, const char **why);

/* A whole answer, head included, that does not go through libmicrohttpd: of so many bytes at most.
 * Returns out. */
enum { HTTP_RAW_BYTES = 640 };
const char *http_raw_problem(int status, const char *detail, char *out, size_t bytes);

/* libmicrohttpd's callbacks. */
void *http_on_uri(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result http_on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_bytes, void **context);
void http_on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                       enum MHD_RequestTerminationCode code);

void http_request_free(struct http_exchange *r);

/* Sends what is there already, then ends it. */
void http_stream_end(struct http_exchange *r);
/* Its request ends: forgets it and says so, if it is there. */
void http_stream_forget(struct http_exchange *r);
/* Adds the headers of `response` to m, and its type if it has a body. NULL: one cannot be sent, or
 * m is NULL; m is gone then. */
struct MHD_Response *http_add_headers(struct MHD_Response *m, const struct http_response *response,
                                      bool has_body);
/* The handler's part is over: sends at once, or when libmicrohttpd asks again. */
void http_request_answered(struct http_exchange *r);
/* The same with a 500, for an answer that cannot be sent. */
void http_request_fail(struct http_exchange *r);

/* Answers a deferred request with 503 and lets its owner know. */
void http_request_abandon(struct http_exchange *r);

#endif
