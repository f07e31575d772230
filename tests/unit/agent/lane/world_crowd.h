/* SPDX-License-Identifier: Apache-2.0 */
/* Many workers of node 0 that post all the time, and a watch over node 0's device: it counts by
 * itself what is in flight there, at each post and each completion, and hands out completions as
 * slowly as the test wants. */
#ifndef UNIT_AGENT_LANE_WORLD_CROWD_H
#define UNIT_AGENT_LANE_WORLD_CROWD_H

#include "fabric/provider.h"
#include "world.h"

enum { CROWD_MAX = 120, CROWD_PHYS = 32, CROWD_SIZES = 4 };

/* Limits (0: none), or what is in flight. */
struct crowd_load {
    uint64_t bytes, ops;
};

/* What the device has of one posted request. */
struct crowd_posted {
    uint64_t wr_id, bytes;
    uint32_t tenant, node; /* of its target */
    bool own;              /* the lane's, which no window counts */
};

struct crowd_watch {
    struct fab *fab;
    const struct fab_ops *real;
    struct fab_ops ops;
    const struct world *w;
    struct crowd_posted ring[CROWD_PHYS][WORLD_SQ_DEPTH];
    uint32_t head[CROWD_PHYS], tail[CROWD_PHYS];
    bool failing[CROWD_PHYS]; /* one had an error: all are over when the last is back */
    uint32_t per_poll;        /* completions; 0: as many as there are */
    uint32_t refuse_every;    /* lists of which one is not taken, or not whole; 0: none */
    uint64_t lists, refused;
    struct crowd_load device, tenant[WORLD_TENANTS], node[WORLD_NODES];
    /* Held to at each post: */
    struct crowd_load max_device, max_tenant[WORLD_TENANTS];
    struct crowd_load max_each, max_own[WORLD_NODES]; /* of nodes: the narrower of both */
    /* A limit was lowered, and what had entered before is not all over yet. */
    bool over_tenant[WORLD_TENANTS], over_node[WORLD_NODES];
    uint64_t posts, full; /* posts after which the device's window had no room for one more */
};
extern struct crowd_watch crowd_watch;

struct crowd_member {
    struct world_worker k;
    uint32_t tenant, node, depth;
    uint32_t sizes[CROWD_SIZES]; /* in turn */
    bool write, signal_few;      /* signal_few: one of four */
    bool quiet;                  /* posts no more */
    uint32_t vkey;               /* 0: its tenant's on that node */
    uint64_t posted, done, failed, bytes;
};

struct crowd {
    struct world *w;
    struct world_worker owner[WORLD_TENANTS][WORLD_NODES];
    uint32_t vkey[WORLD_TENANTS][WORLD_NODES];
    struct crowd_member member[CROWD_MAX];
    uint32_t members;
};

/* Opens the world, with a region of 16 KiB of every tenant's on nodes 1 and 2. Tenants are numbers
 * below WORLD_TENANTS. */
void crowd_open(struct crowd *c, struct world *w);
/* One more worker, connected; it posts from the next crowd_run() on. */
struct crowd_member *crowd_join(struct crowd *c, uint32_t tenant, uint32_t node, uint32_t depth,
                                uint32_t size);
/* Its session ends, whatever it has out. */
void crowd_leave(struct crowd *c, struct crowd_member *m);
/* Passes, in each of which members take their completions and post anew. */
void crowd_run(struct crowd *c, unsigned passes);
/* Nobody posts any more; all that is out comes back, and every window is empty. */
void crowd_settle(struct crowd *c);
/* Sets limits, of the lane and of the watch. tenant: for TENANT. */
void crowd_limit(struct crowd *c, enum lane_window_scope scope, uint32_t tenant, uint64_t bytes,
                 uint64_t ops);
/* Likewise, of one node alone. */
void crowd_limit_node(struct crowd *c, uint32_t node, uint64_t bytes, uint64_t ops);
/* How the window of a node stands, which is in use. */
struct lane_window crowd_node_window(const struct crowd *c, uint32_t node);
/* The lane counts what the watch counts. */
void crowd_check(const struct crowd *c);
struct lane_window crowd_window(const struct crowd *c, enum lane_window_scope scope,
                                uint32_t number);
void crowd_close(struct crowd *c);

#endif
