/* SPDX-License-Identifier: Apache-2.0 */
/* What the store has to have before anybody is told of it.
 *
 * One transaction is with the store at a time, and the others wait in the order in which they
 * came; one that waits to hear what other metaservers did first lets those of other objects pass.
 * Each is decided when its turn comes, on what is there then, and nothing else that is written can
 * come between its decision and its end but what has nothing in common with it: registrations of
 * other nodes with other endpoints, which follow one another or names of other nodes' regions and
 * checks, are one transaction. So who claims what another one is about to get hears a conflict.
 * Meanwhile leases are renewed, and what is asked for is answered: what an end finds may have
 * lapsed since its beginning.
 *
 * One thread. */
#ifndef METASERVER_WRITES_H
#define METASERVER_WRITES_H

#include "metaserver/resources.h"
#include "metaserver/service.h"

enum {
    META_WRITES_MAX = 4096,          /* of clients, at a time */
    META_WRITES_OF_TOKEN = 256,      /* of them, those of one token */
    META_REGISTRATIONS_MAX = 1024,   /* of them, those that bring a node: operators find room */
    META_NAMES_WAITING_MAX = 64,     /* of them, those of names of regions, which workers ask for */
    META_NAMES_WAITING_OF_NODE = 16, /* of these, those of one node */
    META_CHECKS_MAX = 64, /* of them, those that only ask whether the store can be read */
};

struct call;
struct meta_write;

struct meta_write_kind {
    const char *what; /* "registering": for the log */
    bool check;    /* changes nothing; who waits is answered after a while in any case (due_ns) */
    bool must;     /* is done also while the metaserver stops */
    bool gathers;  /* is a registration: may go to the store with others */
    bool of_names; /* is of a region's name */
    /* Its turn: decides. True: w->job.txn goes to the store. False: it is over, and answered. */
    bool (*begin)(struct call *c, struct meta_write *w);
    /* NULL, or: whether it needs no write as things are; then begin answers it, before its turn if
     * nothing of what waits is of the same node. */
    bool (*is_kept)(struct call *c, const struct meta_write *w);
    /* The store has done it, or has not (w->job.outcome): answers. If the answer is to be
     * META_SERVICE_LATER it comes by another way. */
    void (*end)(struct call *c, struct meta_write *w);
    /* Of a check that has a client: the store has not answered in time, or has failed, which the
     * sentence says. */
    void (*late)(struct call *c, struct meta_write *w, const char *why);
    /* Frees it, whatever became of it. */
    void (*free)(struct meta_write *w);
    /* NULL, or: the store does not end, and so this does not. Gives back what others wait for. */
    void (*abandon)(struct meta_write *w);
};

/* The first member of what is to be written. */
struct meta_write {
    struct meta_store_job job;
    const struct meta_write_kind *kind;
    struct meta_write *next;
    enum { META_WRITE_WAITING, META_WRITE_UNDER_WAY, META_WRITE_DONE } state;
    bool has_client;          /* else nobody is answered */
    void *token;              /* of the answer */
    uint64_t came_ns, due_ns; /* of a check that has a client */
    /* Of one that the store has refused, since another metaserver was first: it is decided again
     * when that is known here. */
    uint32_t tries;
    uint64_t refused_ns, refused_at; /* when, and what had been heard by then */
    /* As in struct call: */
    char id[META_STORE_ID_BYTES];
    char who[META_RESOURCE_WHO_BYTES];
    enum meta_resource_kind resource;
    /* The token that the client has shown: "": none. It must still be what it was at its turn. */
    char shown[META_RESOURCE_NAME_BYTES];
    uint64_t shown_revision;
    char node[META_STORE_ID_BYTES]; /* that a certificate without a token names: "": none */
};

/* Of that kind, for the client of a call whose request is there. */
void meta_write_init(struct meta_write *w, const struct meta_write_kind *kind,
                     const struct call *c);
/* Decides it now, or when its turn comes; takes it. The answer is given, or comes later. */
void meta_write_decide(struct call *c, struct meta_write *w);
/* One without a client (zeroed but for its kind), or of a call that is answered by another way:
 * waits for its turn, which comes in meta_writes_advance(). Takes it. */
void meta_write_add(struct meta_service *s, struct meta_write *w);

/* In an end: whether the store has done it; else that is counted, logged, and answered. */
bool meta_write_is_stored(struct call *c, const struct meta_write *w);

/* Ends what the store is done with, and begins what comes next. */
void meta_writes_advance(struct meta_service *s, uint64_t now);
/* Refuses those that wait, but those that must be done. */
void meta_writes_stop(struct meta_service *s, uint64_t now);
/* Answers who still waits for a store that does not end. */
void meta_writes_abandon(struct meta_service *s, uint64_t now);

#endif
