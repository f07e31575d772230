/* SPDX-License-Identifier: Apache-2.0 */
/* When nodes came, expired and went, and what becomes of this metaserver's own certificates: the
 * newest of it, in memory alone.
 *
 * No I/O, no clock; one thread. It is no part of the store's trail and has no revision of its own:
 * a thousand nodes that expire at once write nothing. An event is known by its node, incarnation
 * and state, so that it is one event however many metaservers see it. What happens to a node again
 * in the same incarnation takes the place of the former event, and of a node the newest
 * META_LIVENESS_OF_NODE are kept: one that comes and goes all the time takes others' room no
 * further than that. So it is with a certificate, whose end is what an incarnation is of a node,
 * and whose name is none of a node. Positions number the events of one life of the process; they
 * grow, and some are missing.
 *
 * Invariant: events stand in the order of their positions, and none has a smaller revision than the
 * one before. */
#ifndef METASERVER_LIVENESS_H
#define METASERVER_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/directory.h"

enum {
    META_LIVENESS_OF_NODE = 8,
    META_LIVENESS_WHO_BYTES = 80, /* as resources have it */
};

enum meta_liveness_state {
    META_LIVENESS_LIVE,
    META_LIVENESS_EXPIRED,
    META_LIVENESS_REMOVED,
};

/* Which of its own a metaserver shows to whom. */
enum meta_certificate_use {
    META_CERTIFICATE_NONE, /* the event is of a node */
    META_CERTIFICATE_API,
    META_CERTIFICATE_ETCD,
    META_CERTIFICATES,
};

enum meta_certificate_state {
    META_CERTIFICATE_EXPIRING,
    META_CERTIFICATE_EXPIRED,
    META_CERTIFICATE_RENEWED,
};

struct meta_liveness_event {
    uint64_t position; /* from 1 */
    uint64_t revision; /* the resources' at that time */
    uint64_t time_ms;  /* since 1970 */
    uint64_t heard_ms; /* of one that expired: when it was heard of; 0: never by this process */
    uint32_t incarnation;
    uint32_t times; /* that this node came to this state in this incarnation: 1, ... */
    enum meta_liveness_state state; /* of a node */
    enum meta_node_state from;      /* META_NODE_FREE: it was not known */
    uint32_t from_incarnation;
    enum meta_certificate_use certificate;
    enum meta_certificate_state certificate_state;
    uint64_t ends_ms;                  /* of a certificate: since 1970 */
    char node[META_STORE_ID_BYTES];    /* of a certificate: whose it is, the metaserver's name */
    char who[META_LIVENESS_WHO_BYTES]; /* of one that was removed: who did it; else "" */
};

struct meta_liveness;

/* events: as many are kept, at least 1. generation: of this life of the process. NULL: no memory.
 */
struct meta_liveness *meta_liveness_new(uint32_t events, uint64_t generation);
void meta_liveness_free(struct meta_liveness *l); /* NULL is allowed */

/* "live", ...: a literal. */
const char *meta_liveness_state_name(enum meta_liveness_state state);
/* "api", ...: likewise. */
const char *meta_certificate_name(enum meta_certificate_use certificate);
/* "expiring", ...: likewise. */
const char *meta_certificate_state_name(enum meta_certificate_state state);

/* Adds *event, of which position and times are given here. */
void meta_liveness_add(struct meta_liveness *l, const struct meta_liveness_event *event);

/* The first event after a position; NULL: there is none. Borrowed until the next one is added. */
const struct meta_liveness_event *meta_liveness_after(const struct meta_liveness *l,
                                                      uint64_t position);
/* The position of the newest event; 0: there was none yet. */
uint64_t meta_liveness_newest(const struct meta_liveness *l);
/* The position of the last event that was given up for want of room; 0: none was. */
uint64_t meta_liveness_dropped(const struct meta_liveness *l);
/* Whether nothing after that position was. */
bool meta_liveness_has(const struct meta_liveness *l, uint64_t position);
uint64_t meta_liveness_generation(const struct meta_liveness *l);

#endif
