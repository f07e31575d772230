/* SPDX-License-Identifier: Apache-2.0 */
/* What the clients of a server take of it, and whether that is too much: a table of those that have
 * shown who they are, by that, and one of all others, by their addresses.
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

struct http_connection;
TAILQ_HEAD(http_connections, http_connection);

struct http_client_entry {
    uint8_t key[16];
    unsigned connections;
    struct http_connections own; /* those, for the server: that it has for longest first */
    size_t bodies_bytes;         /* of its requests that are coming in: the server's */
    uint64_t whole_ns;           /* when its allowance is whole again: see http_allow() */
    uint64_t time_whole_ns;      /* likewise that of time: see http_spend() */
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

/* The key of an address: IPv4 as ::ffff:a.b.c.d; of IPv6 the network alone (/64), since a host has
 * as many addresses there as it likes. False: that is no address of a network. */
bool http_client_key(const struct sockaddr_storage *from, uint8_t key[16]);
/* NULL: nothing is known of it. */
struct http_client_entry *http_clients_find(const struct http_clients *c, const uint8_t key[16]);
/* Whether one more connection of it (NULL: nothing is known of it) is within the bound. */
bool http_clients_has_room(const struct http_clients *c, const struct http_client_entry *client);
/* Counts a connection. */
struct http_client_entry *http_clients_connect(struct http_clients *c, const uint8_t key[16]);
void http_clients_disconnect(struct http_clients *c, struct http_client_entry *client);

/* Counts a request against an allowance (the generic cell rate algorithm): *whole_ns is when that
 * is whole again. per_second 0: no bound. 0; or how many seconds to wait before another one. */
unsigned http_allow(uint64_t *whole_ns, unsigned per_second, unsigned burst, uint64_t now_ns);
/* Counts what a request has taken of the server's time, of which its client may have that part on
 * average: *whole_ns is when that is whole again. percent 0: no bound. */
void http_spend(uint64_t *whole_ns, unsigned percent, uint64_t spent_ns, uint64_t now_ns);
/* 0; or how many seconds to wait before another request, since more was spent than may be ahead of
 * time: HTTP_TIME_AHEAD_S of the time in which that part comes to as much. */
enum { HTTP_TIME_AHEAD_S = 2 };
unsigned http_time_left(uint64_t whole_ns, uint64_t now_ns);
/* Counts a request of a client (NULL: it has no bound). 0; or how many seconds to wait before
 * another one, at least 1. */
unsigned http_clients_request(struct http_clients *c, struct http_client_entry *client,
                              uint64_t now_ns);

#endif
