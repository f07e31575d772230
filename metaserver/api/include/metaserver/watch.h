/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the REST interface, without their sockets: what comes next for who watches the
 * configuration or the trail of changes.
 *
 * A watch is asked for its next piece when the one before was taken. So one that is slow holds one
 * piece, and of the configuration it gets the newest alone. One thread. */
#ifndef METASERVER_WATCH_H
#define METASERVER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "metaserver/resources.h"
#include "metaserver/trail.h"

#define META_WATCH_BEAT_NS                                                                         \
    UINT64_C(3000000000) /* what is silent for so long gets an empty line                          \
                          */

struct meta_service;
struct meta_watch;

/* The streams of a metaserver: zeroed. */
struct meta_watches {
    LIST_HEAD(, meta_watch) all, readers; /* readers: of the trail and of names */
    struct meta_watch **chain;            /* those of agents, by their nodes; NULL: none */
    uint32_t chains;                      /* a power of two */
};

/* Who watches a configuration, and what comes of it. */
enum meta_watch_answers {
    META_ANSWERS_NONE,  /* not the node's agent: the configuration */
    META_ANSWERS_ALL,   /* the agent: queries (agent_query.h) beside the configuration */
    META_ANSWERS_ALONE, /* likewise, of which it has another one's configuration: queries alone */
};

/* The configuration of a node: at once unless `known` and its revision is this one and no window
 * names a node, then whenever it changes, or the GIDs of such a node. An agent gets each query as a
 * line with a member "ask", and of more than two such streams of a node the oldest ends. token:
 * what s->wake() is called with when there may be more. 0 and *out; -EAGAIN: there are
 * s->max_watches, or, if it is no agent's, s->reader_watches of those; -ENOMEM. */
int meta_watch_configuration(struct meta_service *s, const char *node,
                             enum meta_watch_answers answers, bool known, uint64_t revision,
                             void *token, uint64_t now, struct meta_watch **out);
/* The newest stream of that node whose client does; NULL: there is none. */
struct meta_watch *meta_watch_of_agent(struct meta_service *s, const char *node);
/* Streams of agents that take their settings from here. */
uint32_t meta_watch_followers(const struct meta_service *s);
/* That node's agent, if it has a stream here, is told to renew its lease now. */
void meta_watch_ask_renewal(struct meta_service *s, const char *node);
/* All agents that have a stream here are. */
void meta_watches_ask_renewals(struct meta_service *s);

/* The trail above a revision that it has, and what becomes of nodes after a position. */
int meta_watch_events(struct meta_service *s, const struct meta_watch_filter *filter,
                      uint64_t revision, uint64_t position, void *token, uint64_t now,
                      struct meta_watch **out);

/* Whether the names of regions differ from what they were at a position, "GENERATION-VERSION" of an
 * answer: each time that they do, the position of the list that is to be fetched again. So it goes
 * on at any metaserver, whose list is the same: of a position of another one it says so at once. */
int meta_watch_regions(struct meta_service *s, bool known, uint64_t version, void *token,
                       uint64_t now, struct meta_watch **out);

/* Ends the watch as soon as that token, which its client has shown, expires, is changed or is gone.
 * wall_ms and now: the same moment. */
void meta_watch_bind(struct meta_watch *w, const struct meta_resource *token, uint64_t wall_ms,
                     uint64_t now);

/* The next piece: whole lines of JSON, or an empty line when nothing came for long. 0 and *length,
 * 0 if there is nothing yet; *bytes is borrowed until the next call or free. -ECANCELED: the node
 * is gone, the token is not what it was, or the watcher fell behind the trail; -ENOMEM. Then
 * nothing comes any more. */
int meta_watch_next(struct meta_watch *w, uint64_t now, const char **bytes, size_t *length);
void meta_watch_free(struct meta_watch *w);

/* Wakes one: there may be more for it. */
void meta_watch_wake(struct meta_watch *w);
/* Wakes all: something has changed. */
void meta_watches_wake(struct meta_service *s);
/* Wakes those that have been silent for long, and those for whom there is news of nodes: at a tick
 * and not at once, since a storm of those is to cost no look at all watches each. */
void meta_watches_beat(struct meta_service *s, uint64_t now);
/* When that wakes any; 0: at the next tick; UINT64_MAX: not as it is now. */
uint64_t meta_watches_due(const struct meta_service *s);

#endif
