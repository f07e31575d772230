/* SPDX-License-Identifier: Apache-2.0 */
/* Table responders: the queue pairs through which agents on a device without DC READ the endpoint
 * table.
 *
 * Each is the responder's end of a reliable connection that carries READs in one direction, so it
 * leaves RTR only when it breaks, and sends nothing. Each lane of a pool of a node has at most one,
 * and a node no more than META_RESPONDERS_OF_NODE. A few are made ahead of time, none is connected
 * before packets for what its number had before have had their time (fabric/reuse.h), and nothing
 * here waits for the device: who asks for one gets it later, from meta_responders_next().
 *
 * One thread, the fabric's control thread. Owns the queue pairs. Nothing blocks.
 * Nothing grows: all memory is taken in meta_responders_new(). */
#ifndef METASERVER_TABLE_RESPONDERS_H
#define METASERVER_TABLE_RESPONDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "metaserver/store.h"
#include "metaserver/world.h"

enum {
    META_RESPONDERS_SPARES = 8,                          /* made ahead of time */
    META_RESPONDERS_WAITING = 4096,                      /* requests at a time */
    META_RESPONDERS_OF_NODE = META_STORE_NODE_ENDPOINTS, /* kept; an agent has no more lanes */
    META_RESPONDERS_LANES = 8,                           /* of a pool */
};

/* The agent's end, as it says itself. */
struct meta_responder_peer {
    uint8_t gid[16];
    uint32_t qpn; /* 1 .. 2^24 - 1; 0: there is none */
    uint32_t psn; /* its first request's, 24 bits */
    uint16_t lid; /* 0 on Ethernet */
    uint16_t pool;
    uint8_t lane; /* of the pool; below META_RESPONDERS_LANES */
    enum ibv_mtu mtu;
};

/* One request for a queue pair. The caller's memory, lent from meta_responders_request() until
 * meta_responders_keep() or _discard(), or until meta_responders_next() gave it back with a status.
 */
struct meta_responder_request {
    char id[META_STORE_ID_BYTES]; /* of the node */
    struct meta_responder_peer peer;
    /* Whether anybody still waits for it: asked just before work is spent on it. NULL: yes. */
    bool (*wanted)(const struct meta_responder_request *request);

    /* From meta_responders_next() on: */
    int status;             /* 0; -ENOSPC, -ECANCELED, or the device's -errno */
    uint32_t qpn, psn;      /* with status 0: our end, and what the agent expects as our first */
    enum ibv_mtu mtu;       /* the path's: the smaller one of both ends' */
    uint8_t reads;          /* that it may have out at a time */
    struct base_errbuf err; /* with another one: a sentence */

    TAILQ_ENTRY(meta_responder_request) link; /* of the responders */
    uint64_t number;
    uint32_t responder;
    bool fresh;
};

struct meta_responders_counts {
    uint32_t kept;     /* lanes of nodes' pools that have one */
    uint32_t spare;    /* ready for the next */
    uint32_t resting;  /* made, and to be ready after a while */
    uint32_t all;      /* queue pairs of any state */
    uint32_t asked;    /* requests that meta_responders_next() has not given back */
    uint64_t refused;  /* requests: there was none left, or too many waited */
    uint64_t failed;   /* requests: the device refused */
    uint64_t given_up; /* requests: nobody waited any more, or the metaserver stopped */
    uint64_t taken;    /* further lanes' that went, for first ones */
};

struct meta_responders;

/* For up to max_pools pools of all nodes together, and as many further lanes of pools, and no more
 * than the device has. Further lanes have half of that at the most; where the device has too few
 * for all first lanes, these get what further ones have, of other nodes' each pool one in a minute.
 * ahead: make the spare ones now, not when
 * somebody has asked. now_ns: the process before has had its last queue pair by then. The world, pd
 * and cq are borrowed until free; in the cq, which has room for a receive of each and a channel,
 * nothing completes but those of queue pairs that broke. -errno and a sentence. */
int meta_responders_new(struct meta_world *world, struct fab_pd *pd, struct fab_cq *cq,
                        uint32_t max_pools, bool ahead, uint64_t now_ns,
                        struct meta_responders **out, struct base_errbuf *err);
/* Gives up what waits (meta_responders_next() says so, with -ECANCELED) and begins to destroy every
 * queue pair. What was taken with status 0 must have been kept or discarded. Asking is answered
 * with -ECANCELED afterwards. */
void meta_responders_stop(struct meta_responders *r);
/* Whether it has stopped, and the device has nothing of it any more: fab_run() gets there. */
bool meta_responders_stopped(const struct meta_responders *r);
/* meta_responders_next() must have given everything back by then. NULL is allowed. */
void meta_responders_free(struct meta_responders *r);

/* Whether the device's port has another MTU, and which queue pairs have rested. */
void meta_responders_tick(struct meta_responders *r, uint64_t now_ns);
/* When that is due, as meta_service_due(). */
uint64_t meta_responders_due_ns(const struct meta_responders *r);

/* Requests a queue pair that is connected to request->peer. Never blocks. 0; or a
 * sentence in request->err: -EAGAIN when too many wait, -ECANCELED after stop. */
int meta_responders_request(struct meta_responders *r, struct meta_responder_request *request);
/* The next one that is over, or NULL. Those of one node come in the order in which they were asked
 * for, so that the last one stays. One with status 0 must be kept or discarded, before
 * meta_responders_stop(). */
struct meta_responder_request *meta_responders_next(struct meta_responders *r);
/* The lane has it from now on; the one that it had goes, and where its node has too many, another
 * one of that node's. Where there is no room for it, a further lane's goes, its own
 * node's before others', of which its agent hears as of one that has broken. */
void meta_responders_keep(struct meta_responders *r, struct meta_responder_request *request);
void meta_responders_discard(struct meta_responders *r, struct meta_responder_request *request);

/* The completion queue's channel was readable, and was drained. */
void meta_responders_hear(struct meta_responders *r);
/* The next node one of whose queue pairs has broken since it was connected, once for each; NULL:
 * there are no more now. Borrowed until the next call of any of these. To be asked when
 * meta_responders_due_ns() says so, until it is NULL. Its agent is to hear of it, and to ask for
 * another one. */
const char *meta_responders_broken(struct meta_responders *r);
/* The number of the next one of that node that is broken, or was taken for a first lane; 0: there
 * are no more. *at: 0 at first. */
uint32_t meta_responders_broken_of(const struct meta_responders *r, const char *id, uint32_t *at);

/* Whether a node has one of any pool. */
bool meta_responders_has(const struct meta_responders *r, const char *id);
/* Takes a node's away, but those of `count` pools. NULL: it was removed, and its agents may READ
 * still. */
void meta_responders_drop(struct meta_responders *r, const char *id, const uint16_t *but,
                          uint32_t count);
/* Takes away those of all nodes that live() denies. */
void meta_responders_sweep(struct meta_responders *r, bool (*live)(void *user, const char *id),
                           void *user);

struct meta_responders_counts meta_responders_count(const struct meta_responders *r);

#endif
