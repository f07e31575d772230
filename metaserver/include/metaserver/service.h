/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver without its sockets: the core and the store kept in step, and the requests of the
 * REST interface answered. What a client was told is in the store first; what the store refuses has
 * not happened.
 *
 * One thread. Times are given, as in directory.h. Blocks only in the store. */
#ifndef METASERVER_SERVICE_H
#define METASERVER_SERVICE_H

#include <sys/queue.h>

#include "base/log.h"
#include "base/text.h"
#include "metaserver/agent_query.h"
#include "metaserver/directory.h"
#include "metaserver/liveness.h"
#include "metaserver/table_responders.h"
#include "metaserver/watch.h"

/* How agents reach the table: given to them when they register. */
struct kedge_service_endpoint {
    uint8_t gid[16];
    uint16_t lid;        /* 0 on Ethernet */
    uint32_t dct_number; /* 0: there is no DC target, agents need a reader */
    uint64_t dc_key;
    uint64_t table_addr;
    uint32_t table_rkey;
};

/* Zeroed to begin; only ever grows. */
struct kedge_service_counters {
    uint64_t registrations; /* accepted, repetitions included */
    uint64_t renewals;
    uint64_t removals;
    uint64_t expiries;
    uint64_t stale;      /* refused: incarnation */
    uint64_t taken;      /* refused: another node's endpoint */
    uint64_t full;       /* refused: no room */
    uint64_t readerless; /* refused: no reader, or one of no use */
    uint64_t store_errors;
    uint64_t changes;   /* of settings */
    uint64_t http[600]; /* answers by status */
    /* What the HTTP server did not let in: connections; requests; either, for their client's bound.
     */
    uint64_t http_refused, http_rejected, http_limited;
    uint64_t http_dropped; /* connections that made room for others */
    /* Which there are now: without a token, with one that only reads, with another one. */
    uint64_t http_connections[3];
};

struct kedge_service_answer;
struct kedge_held;

struct kedge_service {
    struct kedge_meta *meta;         /* borrowed */
    struct kedge_store *store;       /* borrowed */
    struct kedge_settings *settings; /* borrowed */
    struct kedge_readers *readers;   /* borrowed; NULL: the device has no RC */
    struct kedge_liveness *liveness; /* borrowed; NULL: nobody is told of it */
    uint64_t at, at_wall_ms;         /* one moment, by both clocks: the last that was said */
    /* Says what a request with that token, which was to be answered later, is answered. The answer
     * and its body are borrowed for the call. Called by kedge_service_advance(). */
    void (*answer)(void *token, const struct kedge_service_answer *answer,
                   const struct kedge_text *body);
    bool (*gone)(void *token); /* nobody waits for that answer; NULL: somebody does */
    /* The watch with that token may have more: kedge_watch_next() will be called soon, but not
     * inside this. Needed as soon as there is a watch. */
    void (*wake)(void *token);
    bool tokens_needed;       /* else whoever shows none may all but give access away */
    const char *admin_socket; /* where the first token is made; borrowed; NULL or "": nowhere */
    uint32_t max_watches, reader_watches; /* in all; of those who are no agents, 0: as many */
    uint32_t watch_count, agent_watches;
    LIST_HEAD(, kedge_watch) watches;
    struct kedge_watch_document *document; /* the newest that is being sent, or NULL */
    struct kedge_asks asks;                /* of agents */
    LIST_HEAD(, kedge_held) held;          /* what clients ask of them */
    uint64_t places; /* a hash of the GIDs of nodes that windows name; 0: none names one */
    struct kedge_service_endpoint endpoint;
    uint64_t node_lease_ns;
    struct kedge_service_counters count;
    uint64_t store_retry_at; /* after an error of its own writes, not of a client's */
    struct kedge_log_limit store_log, reader_log, access_log;
};

/* Fills the cores from the store. -errno and a sentence. */
int kedge_service_load(struct kedge_service *s, uint64_t now, struct kedge_errbuf *err);

/* What has to happen with time: leases end, the store and those who watch are told, old nodes are
 * forgotten. Call it every 100 ms or so; does a bounded amount of work. wall_ms: now, since 1970.
 */
void kedge_service_tick(struct kedge_service *s, uint64_t now, uint64_t wall_ms);

/* ---- REST ----------------------------------------------------------------------------------- */

enum kedge_service_query {
    KEDGE_QUERY_LIMIT,
    KEDGE_QUERY_CURSOR,
    KEDGE_QUERY_INCARNATION,
    KEDGE_QUERY_UID,
    KEDGE_QUERY_SCOPE,
    KEDGE_QUERY_TENANT,
    KEDGE_QUERY_KIND,
    KEDGE_QUERY_NAME,
    KEDGE_QUERY_WATCH,
    KEDGE_QUERY_REVISION,
    KEDGE_QUERY_POSITION,
    KEDGE_QUERY_LABEL,
    KEDGE_QUERY_NODE,
    KEDGE_QUERY_WORKER,
    KEDGE_QUERY_FORCE,
    KEDGE_QUERY_ANSWERS,
    KEDGE_QUERIES,
};

/* Strings are borrowed for the call; NULL: absent. */
struct kedge_service_request {
    const char *method;
    const char *path; /* decoded, without the query */
    const char *content_type;
    const char *if_match, *if_none_match;
    const char *query[KEDGE_QUERIES]; /* kedge_service_query() fills these */
    const char *unknown, *repeated;   /* names of parameters that cannot be in there */
    const char *authorization;
    bool local;       /* of root or the metaserver's own user, on the admin socket */
    const char *who;  /* for the trail, if it shows no token */
    uint64_t wall_ms; /* since 1970, likewise */
    const void *body;
    size_t body_bytes;
    void *token; /* the caller's, for an answer that comes later; kept until then */
};

/* Adds a query parameter, which is borrowed as the rest of it. One that its route does not take, or
 * that comes twice, will be refused. */
void kedge_service_query(struct kedge_service_request *request, const char *name,
                         const char *value);

enum { KEDGE_SERVICE_LATER = 0 };

struct kedge_service_answer {
    int status;               /* or KEDGE_SERVICE_LATER: through s->answer(), body is not used */
    const char *content_type; /* a literal */
    char allow[48];           /* value of the Allow header; "": there is none */
    char authenticate[96];    /* and of the WWW-Authenticate header */
    uint64_t revision;        /* of what is shown, for the ETag header; or 0 */
    /* Not NULL: the body comes from this, which is the caller's now, and the token is kept. */
    struct kedge_watch *watch;
};

/* Answers; body is initialised by the caller and is appended to. */
void kedge_service_handle(struct kedge_service *s, const struct kedge_service_request *request,
                          uint64_t now, struct kedge_text *body,
                          struct kedge_service_answer *answer);

/* Answers what was left for later and can be answered now. Call it after kedge_service_handle() and
 * after kedge_fab_run(); and after kedge_readers_stop(), when everything is answered. */
void kedge_service_advance(struct kedge_service *s, uint64_t now);

/* The counters and gauges, as Prometheus wants them. */
void kedge_service_metrics(const struct kedge_service *s, struct kedge_text *out);

#endif
