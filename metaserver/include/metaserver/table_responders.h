/* SPDX-License-Identifier: Apache-2.0 */
/* Readers: the queue pairs through which agents on a device without DC READ the endpoint table.
 *
 * Each is the responder's end of a reliable connection that carries READs in one direction, so it
 * never leaves RTR and posts nothing. Each pool of a node has at most one. A few are made ahead of
 * time, and nothing here waits for the device: who asks for one gets it later, from
 * kedge_readers_next().
 *
 * One thread, the fabric's control thread. Owns the queue pairs and their completion queue.
 * Nothing grows: all memory is taken in kedge_readers_new(). */
#ifndef METASERVER_TABLE_RESPONDERS_H
#define METASERVER_TABLE_RESPONDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "metaserver/store.h"

enum {
    KEDGE_READERS_SPARES = 8,     /* made ahead of time */
    KEDGE_READERS_WAITING = 4096, /* asks at a time */
};

/* The agent's end, as it says itself. */
struct kedge_reader_peer {
    uint8_t gid[16];
    uint32_t qpn; /* 1 .. 2^24 - 1; 0: there is none */
    uint32_t psn; /* its first request's, 24 bits */
    uint16_t lid; /* 0 on Ethernet */
    uint16_t pool;
    enum ibv_mtu mtu;
};

/* One wish for a queue pair. The caller's memory, lent from kedge_readers_ask() until
 * kedge_readers_keep() or _discard(), or until kedge_readers_next() gave it back with a status. */
struct kedge_reader_ask {
    char id[KEDGE_STORE_ID_BYTES]; /* of the node */
    struct kedge_reader_peer peer;
    /* Whether anybody still waits for it: asked just before work is spent on it. NULL: yes. */
    bool (*wanted)(const struct kedge_reader_ask *ask);

    /* From kedge_readers_next() on: */
    int status;              /* 0; -ENOSPC, -ECANCELED, or the device's -errno */
    uint32_t qpn, psn;       /* with status 0: our end, and what the agent expects as our first */
    enum ibv_mtu mtu;        /* the path's: the smaller one of both ends' */
    uint8_t reads;           /* that it may have out at a time */
    struct kedge_errbuf err; /* with another one: a sentence */

    TAILQ_ENTRY(kedge_reader_ask) link; /* of the readers */
    uint64_t number;
    uint32_t responder;
    bool fresh;
};

struct kedge_readers_counts {
    uint32_t kept;     /* nodes' pools that have one */
    uint32_t spare;    /* ready for the next */
    uint32_t all;      /* queue pairs of any state */
    uint32_t asked;    /* asks that kedge_readers_next() has not given back */
    uint64_t refused;  /* asks: there was none left, or too many waited */
    uint64_t failed;   /* asks: the device refused */
    uint64_t given_up; /* asks: nobody waited any more, or the metaserver stopped */
};

struct kedge_readers;

/* For up to max_pools pools of all nodes together, and no more than the device has. ahead: make the
 * spare ones now, not when somebody has asked. pd is borrowed until free. -errno and a sentence. */
int kedge_readers_new(struct kedge_fab_pd *pd, uint32_t max_pools, bool ahead,
                      struct kedge_readers **out, struct kedge_errbuf *err);
/* Gives up what waits (kedge_readers_next() says so, with -ECANCELED) and destroys every queue
 * pair; blocks on the device. Asking is answered with -ECANCELED afterwards. */
void kedge_readers_stop(struct kedge_readers *r);
/* Stops, if that was not done. kedge_readers_next() must have given everything back by then. NULL
 * is allowed. */
void kedge_readers_free(struct kedge_readers *r);

/* Now and then: whether the device's port has another MTU. */
void kedge_readers_tick(struct kedge_readers *r, uint64_t now_ns);

/* Wishes for a queue pair that is connected to ask->peer. Never blocks. 0; or a
 * sentence in ask->err: -EAGAIN when too many wait, -ECANCELED after stop. */
int kedge_readers_ask(struct kedge_readers *r, struct kedge_reader_ask *ask);
/* The next one that is over, or NULL. Those of one node come in the order in which they were asked
 * for, so that the last one stays. One with status 0 must be kept or discarded at once. */
struct kedge_reader_ask *kedge_readers_next(struct kedge_readers *r);
/* The node's pool has it from now on; the one that it had goes. */
void kedge_readers_keep(struct kedge_readers *r, struct kedge_reader_ask *ask);
void kedge_readers_discard(struct kedge_readers *r, struct kedge_reader_ask *ask);

/* Whether a node has one of any pool. */
bool kedge_readers_has(const struct kedge_readers *r, const char *id);
/* Takes a node's away, but those of `count` pools. */
void kedge_readers_drop(struct kedge_readers *r, const char *id, const uint16_t *but,
                        uint32_t count);
/* Takes away those of all nodes that live() denies. */
void kedge_readers_sweep(struct kedge_readers *r, bool (*live)(void *user, const char *id),
                         void *user);

struct kedge_readers_counts kedge_readers_count(const struct kedge_readers *r);

#endif
