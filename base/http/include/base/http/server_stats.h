/* SPDX-License-Identifier: Apache-2.0 */
/* What an HTTP server counts. The server's thread. */
#ifndef BASE_HTTP_SERVER_STATS_H
#define BASE_HTTP_SERVER_STATS_H

#include <stdint.h>

struct http_server;

/* Who a request is of, by rank. */
enum http_rank {
    HTTP_ANONYMOUS, /* it has shown nothing */
    HTTP_KNOWN,     /* all of these together leave half of everything free */
    HTTP_TRUSTED,   /* nobody else takes room of theirs */
    HTTP_RANKS,
};

/* Counted since new(), except the last ones, which are now. */
struct http_server_stats {
    uint64_t accepted;
    uint64_t refused;           /* connections above a bound */
    uint64_t limited;           /* connections and requests above a bound of their client: 429 */
    uint64_t over_time;         /* of these, requests of those that had taken too much time */
    uint64_t requests;          /* given to the handler */
    uint64_t rejected;          /* answered by the server itself */
    uint64_t handshakes_failed; /* connections of TLS that ended before a request */
    uint64_t dropped;           /* anonymous clients' connections that made room for another one */
    uint32_t open;
    uint32_t ranked[HTTP_RANKS]; /* of these */
    uint32_t deferred, streams;
};
void http_server_stats(const struct http_server *server, struct http_server_stats *out);

#endif
