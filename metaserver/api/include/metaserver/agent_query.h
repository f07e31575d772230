/* SPDX-License-Identifier: Apache-2.0 */
/* Queries to agents: what a client wants to know of a node that its agent alone knows.
 *
 * A query goes out as a line on the stream by which the node's agent follows its configuration,
 * and the agent answers with a request of its own (PUT /v1/nodes/{id}/answers/{query}). Nothing
 * of an answer is kept here. Queries are few at a time, of each node, of each token and in all,
 * and end after a while. Those that change something have places of their own, and so have looks of
 * operators, so that whoever may only look keeps nobody from revoking, and no operator from
 * looking. Changes wait in their order for those that the agent has. One thread; times are given,
 * as in directory.h. */
#ifndef METASERVER_AGENT_QUERY_H
#define METASERVER_AGENT_QUERY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/text.h"
#include "metaserver/store.h"

enum {
    META_QUERIES_MAX = 32,             /* looks that are open at a time; operators' have as many */
    META_QUERIES_OF_NODE = 4,          /* likewise, at one node */
    META_QUERIES_OF_TOKEN = 8,         /* likewise, of one token */
    META_QUERIES_OF_TOKEN_AT_NODE = 2, /* likewise, of one token at one node */
    META_CHANGE_QUERIES_MAX = 256,     /* changes that are open at a time */
    META_CHANGE_QUERIES_OF_TOKEN = 64, /* likewise, of one token */
    META_CHANGE_QUERIES_SENT = 4,      /* of these, those that one agent has at a time */
    META_QUERY_BYTES = 768,            /* of its members */
    META_QUERY_ID_BYTES = 16 + 1,      /* of its id, as a text */
};

struct meta_service;
struct meta_watch;

/* Of the asker, who sets all before the state, and `held`, and reads the state. */
struct meta_query {
    char node[META_STORE_ID_BYTES];
    char members[META_QUERY_BYTES];  /* of its JSON object: "\"method\":\"GET\"" */
    uint64_t due_ns;                 /* when it ends */
    bool change;                     /* it changes something; else it looks */
    bool operators;                  /* its asker has shown that it may change something */
    char token[META_STORE_ID_BYTES]; /* that its asker has shown; "": none */
    enum meta_query_state {
        META_QUERY_NONE,
        META_QUERY_OPEN,
        META_QUERY_ANSWERED,
        META_QUERY_LOST, /* the agent's stream has ended */
        META_QUERY_LATE,
        META_QUERY_STOPPED, /* this metaserver stops */
    } state;
    char id[META_QUERY_ID_BYTES];
    struct meta_watch *watch; /* by which it goes */
    bool sent;
    bool held; /* not to be sent yet: meta_query_release() */
    LIST_ENTRY(meta_query) link;
};

/* Zeroed to begin; only ever grows. */
struct meta_queries_counters {
    uint64_t asked, answered;
    uint64_t unreachable; /* no stream, or one that ended */
    uint64_t late, refused;
    uint64_t senseless; /* answers that made no sense */
    uint64_t unwanted;  /* answers that nobody waited for */
};

struct meta_queries {
    LIST_HEAD(, meta_query) open;
    uint32_t count; /* of all kinds */
    struct meta_queries_counters n;
};

/* Sends a query. 0, and the state is OPEN until it ends, when it is told to nobody: look at it in
 * meta_service_advance(). -ENOTCONN: the node's agent does not listen here; -EAGAIN: there are too
 * many queries; -EIO: there are no random numbers. Then the state stays NONE. */
int meta_query_open(struct meta_service *s, struct meta_query *query);
/* One that was held, and is open, is sent, and ends at due_ns. */
void meta_query_release(struct meta_query *query, uint64_t due_ns);
/* No longer wanted, or read: ends it, whatever its state. */
void meta_query_close(struct meta_service *s, struct meta_query *query);

/* The open query of that node and id, which its agent answers; NULL: nobody waits for that. */
struct meta_query *meta_query_find(struct meta_service *s, const char *node, const char *id);
/* It has its answer. */
void meta_query_answered(struct meta_service *s, struct meta_query *query, bool makes_sense);

/* Ends those whose time is over. */
void meta_queries_expire(struct meta_service *s, uint64_t now);
/* Ends all: this metaserver stops. */
void meta_queries_stop(struct meta_service *s);

/* Of watch.c. Appends the next line for that stream; false: there is none. */
bool meta_queries_next(struct meta_service *s, const struct meta_watch *w, struct base_text *out);
/* The stream is over. */
void meta_queries_lose(struct meta_service *s, const struct meta_watch *w);

#endif
