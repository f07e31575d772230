/* SPDX-License-Identifier: Apache-2.0 */
/* What the clients of a server take of it, by their addresses, and whether that is too much.
 *
 * Memory is taken once: whoever has no connection is forgotten first, the one that was silent for
 * longest before others. One thread. */
#ifndef BASE_HTTP_CLIENTS_H
#define BASE_HTTP_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

struct http_client_entry {
    uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
    unsigned connections;
    size_t bodies_bytes; /* of its requests that are coming in: the server's */
    /* When its allowance is whole again: a request moves that by its share of a second, and may be
     * ahead of now by the burst (the generic cell rate algorithm). */
    uint64_t whole_ns;
    LIST_ENTRY(http_client_entry) bucket;
    TAILQ_ENTRY(http_client_entry) age; /* the one that came last is last */
};
LIST_HEAD(http_client_bucket, http_client_entry);
TAILQ_HEAD(http_client_ages, http_client_entry);

struct http_clients {
    unsigned max_connections, per_second, burst; /* of one address; 0: no bound */
    uint64_t seed;
    uint32_t room, used, log2_buckets;
    struct http_client_entry *entry;
    struct http_client_bucket *buckets;
    struct http_client_ages idle, busy; /* without and with connections */
};

/* room: addresses that are remembered, more than there can be connections. 0 or -ENOMEM. */
int http_clients_init(struct http_clients *c, uint32_t room);
void http_clients_fini(struct http_clients *c);

/* Whether one more connection from there is within the bound. */
bool http_clients_has_room(const struct http_clients *c, const struct sockaddr_storage *from);
/* Counts it. NULL: that is no address of a network, and has no bounds. */
struct http_client_entry *http_clients_connect(struct http_clients *c,
                                               const struct sockaddr_storage *from);
void http_clients_disconnect(struct http_clients *c, struct http_client_entry *client);

/* Counts a request. 0; or how many seconds to wait before another one, at least 1. */
unsigned http_clients_request(struct http_clients *c, struct http_client_entry *client,
                              uint64_t now_ns);

#endif
