/* SPDX-License-Identifier: Apache-2.0 */
/* What a node's lane hands to its device, and a device that takes no lists of pieces. One node at a
 * time. */
#ifndef UNIT_AGENT_LANE_WORLD_MERGE_H
#define UNIT_AGENT_LANE_WORLD_MERGE_H

#include "world.h"

struct world_posts {
    uint32_t requests;       /* work requests, so far */
    uint32_t signaled;       /* of them */
    int most_sges;           /* of one of them */
    uint64_t most_bytes;     /* likewise */
    uint64_t bytes;          /* of all */
    uint64_t last_not_after; /* of the last one */
    /* Not NULL: the device takes nothing after its not_after_ns by this clock, and so much passes
     * between the lane's look at it and the doorbell. */
    const uint64_t *now_ns;
    uint64_t pauses_ns;
    uint32_t refused;      /* work requests */
    bool refuses_lists;    /* of more than one piece */
    uint32_t refuse_every; /* doorbells of which one has -ENOMEM; 0: none */
    uint32_t doorbells;
    uint64_t counted; /* the lane's work_requests at the last doorbell; they have been */
    bool fell;        /* fewer than at the one before it */
    /* Not NULL: called once, before the device is given the list that ends with that request, or
     * goes beyond it. */
    void (*before)(void);
    uint32_t before_request; /* the first is 1 */
};

/* From now on, from 0. */
struct world_posts *world_watch_posts(struct world_node *n);
/* The device is what it was. */
void world_watch_end(void);

/* Owners on node 1, each of whom has a region with all of its arena, and workers on node 0, each of
 * whom is connected and knows the first owner's record. */
enum { WORLD_MERGERS = 9 };
struct world_mergers {
    struct world_worker owner, worker[WORLD_MERGERS];
    uint32_t workers, vkey;
};
/* Where deadlines are kept it is by the test's clock, and watched from the first post on. */
void world_mergers_open(struct world *w, struct world_mergers *m, uint32_t workers);
void world_mergers_close(struct world *w, struct world_mergers *m);
/* A worker on node 0 that is connected to an owner on node 2, and knows its region: of the same
 * tenant. */
struct world_elsewhere {
    struct world_worker owner, worker;
    uint32_t vkey;
};
void world_elsewhere_open(struct world *w, struct world_elsewhere *e);
void world_elsewhere_close(struct world *w, struct world_elsewhere *e);
/* All workers of node 0 are looked at in the next pass. */
void world_mergers_ring(struct world *w, const struct world_mergers *m);

#endif
