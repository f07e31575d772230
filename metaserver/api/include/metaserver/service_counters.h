/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver counts, for its metrics. One thread. */
#ifndef METASERVER_SERVICE_COUNTERS_H
#define METASERVER_SERVICE_COUNTERS_H

#include <stdint.h>

#include "base/latency.h"

enum { META_SERVICE_ROUTES = 64 }; /* at most, with one for what has no route */

/* Zeroed to begin; only ever grows. */
struct meta_service_counters {
    uint64_t registrations; /* accepted, repetitions included */
    uint64_t renewals;
    uint64_t removals;
    uint64_t expiries;
    uint64_t stale;      /* refused: incarnation */
    uint64_t taken;      /* refused: another node's endpoint */
    uint64_t full;       /* refused: no room */
    uint64_t readerless; /* refused: no initiator, or one of no use */
    uint64_t put_off;    /* registrations that were told to come again */
    uint64_t left;       /* registrations whose clients had hung up before they were read */
    uint64_t store_errors;
    uint64_t changes;   /* of resources */
    uint64_t http[600]; /* answers by status */
    /* What the HTTP server did not let in: connections; requests; either, for their client's bound.
     */
    uint64_t http_refused, http_rejected, http_limited, http_over_time;
    uint64_t http_dropped;                       /* connections that made room for others */
    uint64_t tls_handshakes_failed, tls_refused; /* connections; clients' certificates */
    uint64_t log_dropped;                        /* lines of the log */
    /* Which there are now: without a token, with one that only reads, with another one. */
    uint64_t http_connections[3];
    struct base_latency store_took; /* of transactions, from when they went to the store */
    /* By route (routes.c), the last one of requests that have none. Its owner records there, when
     * an answer is on its way (meta_service_answer). */
    struct base_latency took[META_SERVICE_ROUTES];
};

#endif
