/* SPDX-License-Identifier: Apache-2.0 */
/* When nodes came, expired and went: the newest of it, in memory alone.
 *
 * No I/O, no clock; one thread. It is no part of the store's trail and has no revision of its own:
 * a thousand nodes that expire at once write nothing. An event is known by its node, incarnation
 * and state, so that it is one event however many metaservers see it. What happens to a node again
 * in the same incarnation takes the place of the former event, and of a node the newest
 * KEDGE_LIVENESS_OF_NODE are kept: one that comes and goes all the time takes others' room no
 * further than that. Positions number the events of one life of the process; they grow, and some
 * are missing.
 * Invariant: events stand in the order of their positions, and none has a smaller revision than the
 * one before. */
#ifndef METASERVER_LIVENESS_H
#define METASERVER_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/directory.h"
#include "metaserver/resources.h"

enum { KEDGE_LIVENESS_OF_NODE = 8 };

enum kedge_liveness_state { KEDGE_LIVENESS_LIVE, KEDGE_LIVENESS_EXPIRED, KEDGE_LIVENESS_REMOVED };

struct kedge_liveness_event {
    uint64_t position; /* from 1 */
    uint64_t revision; /* the settings' at that time */
    uint64_t time_ms;  /* since 1970 */
    uint64_t heard_ms; /* of one that expired: when it was heard of; 0: never by this process */
    uint32_t incarnation;
    uint32_t times; /* that this node came to this state in this incarnation: 1, ... */
    enum kedge_liveness_state state;
    enum kedge_meta_state from; /* KEDGE_META_FREE: it was not known */
    uint32_t from_incarnation;
    char node[KEDGE_STORE_ID_BYTES];
    char who[KEDGE_SETTING_WHO_BYTES]; /* of one that was removed: who did it; else "" */
};

struct kedge_liveness;

/* events: as many are kept, at least 1. generation: of this life of the process. NULL: no memory.
 */
struct kedge_liveness *kedge_liveness_new(uint32_t events, uint64_t generation);
void kedge_liveness_free(struct kedge_liveness *l); /* NULL is allowed */

/* "live", ...: a literal. */
const char *kedge_liveness_state_name(enum kedge_liveness_state state);

/* Adds *event, of which position and times are given here. */
void kedge_liveness_add(struct kedge_liveness *l, const struct kedge_liveness_event *event);

/* The first event after a position; NULL: there is none. Borrowed until the next one is added. */
const struct kedge_liveness_event *kedge_liveness_after(const struct kedge_liveness *l,
                                                        uint64_t position);
/* The position of the newest event; 0: there was none yet. */
uint64_t kedge_liveness_newest(const struct kedge_liveness *l);
/* The position of the last event that was given up for want of room; 0: none was. */
uint64_t kedge_liveness_dropped(const struct kedge_liveness *l);
/* Whether nothing after that position was. */
bool kedge_liveness_has(const struct kedge_liveness *l, uint64_t position);
uint64_t kedge_liveness_generation(const struct kedge_liveness *l);

#endif
