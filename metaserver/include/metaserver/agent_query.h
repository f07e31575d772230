/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to agents: what a client wants to know of a node that its agent alone knows.
 *
 * A question goes out as a line on the stream by which the node's agent follows its configuration,
 * and the agent answers with a request of its own (PUT /v1/nodes/{id}/answers/{question}). Nothing
 * of an answer is kept here. Questions are few at a time, of each node, of each token and in all,
 * and end after a while. Those that change something have places of their own, so that whoever only
 * looks keeps nobody from revoking, and wait in their order for those that the agent has. One
 * thread; times are given, as in directory.h. */
#ifndef METASERVER_AGENT_QUERY_H
#define METASERVER_AGENT_QUERY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/text.h"
#include "metaserver/store.h"

enum {
    KEDGE_ASKS_MAX = 32,         /* looks that are open at a time */
    KEDGE_ASKS_OF_NODE = 4,      /* likewise, at one node */
    KEDGE_ASKS_OF_TOKEN = 8,     /* likewise, of one token */
    KEDGE_CHANGES_MAX = 256,     /* changes that are open at a time */
    KEDGE_CHANGES_OF_TOKEN = 64, /* likewise, of one token */
    KEDGE_CHANGES_SENT = 4,      /* of these, those that one agent has at a time */
    KEDGE_ASK_BYTES = 768,       /* of its members */
    KEDGE_ASK_ID_BYTES = 16 + 1, /* of its id, as a text */
};

struct kedge_service;
struct kedge_watch;

/* Of the asker, who sets all before the state, and reads that. */
struct kedge_ask {
    char node[KEDGE_STORE_ID_BYTES];
    char members[KEDGE_ASK_BYTES];    /* of its JSON object: "\"method\":\"GET\"" */
    uint64_t due_ns;                  /* when it ends */
    bool change;                      /* it changes something; else it looks */
    char token[KEDGE_STORE_ID_BYTES]; /* that its asker has shown; "": none */
    enum kedge_ask_state {
        KEDGE_ASK_NONE,
        KEDGE_ASK_OPEN,
        KEDGE_ASK_ANSWERED,
        KEDGE_ASK_LOST, /* the agent's stream has ended */
        KEDGE_ASK_LATE,
        KEDGE_ASK_STOPPED, /* this metaserver stops */
    } state;
    char id[KEDGE_ASK_ID_BYTES];
    struct kedge_watch *watch; /* by which it goes */
    bool sent;
    LIST_ENTRY(kedge_ask) link;
};

/* Zeroed to begin; only ever grows. */
struct kedge_asks_counters {
    uint64_t asked, answered;
    uint64_t unreachable; /* no stream, or one that ended */
    uint64_t late, refused;
    uint64_t senseless; /* answers that made no sense */
    uint64_t unwanted;  /* answers that nobody waited for */
};

struct kedge_asks {
    LIST_HEAD(, kedge_ask) open;
    uint32_t count; /* of both kinds */
    struct kedge_asks_counters n;
};

/* Asks. 0, and the state is OPEN until the question ends, when it is told to nobody: look at it in
 * kedge_service_advance(). -ENOTCONN: the node's agent does not listen here; -EAGAIN: there are too
 * many questions; -EIO: there are no random numbers. Then the state stays NONE. */
int kedge_ask(struct kedge_service *s, struct kedge_ask *ask);
/* No longer wanted, or read: ends it, whatever its state. */
void kedge_ask_end(struct kedge_service *s, struct kedge_ask *ask);

/* The open question of that node and id, which its agent answers; NULL: nobody waits for that. */
struct kedge_ask *kedge_ask_find(struct kedge_service *s, const char *node, const char *id);
/* It has its answer. */
void kedge_ask_answered(struct kedge_service *s, struct kedge_ask *ask, bool makes_sense);

/* Ends those whose time is over. */
void kedge_asks_lapse(struct kedge_service *s, uint64_t now);
/* Ends all: this metaserver stops. */
void kedge_asks_stop(struct kedge_service *s);

/* Of watch.c. Appends the next line for that stream; false: there is none. */
bool kedge_asks_next(struct kedge_service *s, const struct kedge_watch *w, struct kedge_text *out);
/* The stream is over. */
void kedge_asks_lose(struct kedge_service *s, const struct kedge_watch *w);

#endif
