/* SPDX-License-Identifier: Apache-2.0 */
/* Connectors of several nodes in one process, on soft, with losses where a test wants them; the
 * time is the test's. */
#ifndef UNIT_AGENT_CONNECT_WORLD_H
#define UNIT_AGENT_CONNECT_WORLD_H

#include "agent/connector.h"

enum { NODES = 10, WANTED = 64, WORLD_EVENTS = 256 };

struct node {
    struct world *world;
    struct fab *fab;
    struct fab_pd *pd, *system_pd;
    struct fab_cq *cq;
    struct fab_srq *srq; /* or NULL */
    struct fab_mem mem;
    struct fab_mr *mr;
    struct connector_config config;
    bool only_asks;   /* it has no responders */
    uint64_t gone_ns; /* of the device's queue pairs */
    struct connector *c;
    struct connector_event event[WORLD_EVENTS]; /* by tag; those that came */
    bool came[WORLD_EVENTS];
};

struct world {
    char dir[64];
    uint64_t now_ns, random;
    uint32_t loss_ppm;       /* of messages, for nodes that are opened from now on */
    uint64_t packet_life_ns; /* likewise: what an RC queue pair's former life has sent is late */
    bool resets_are_final;   /* likewise: a queue pair that was put to RESET is of no more use */
    bool numbers_return;     /* likewise: a new queue pair has the number of one that is gone */
    bool no_atomics;         /* likewise */
    uint32_t stuck_ppm; /* likewise: of the queue pairs that were used so many never come back */
    bool same_psn;      /* every connection begins with the same packet number */
    bool has_srq;       /* for nodes that are opened from now on: responders share receives */
    uint32_t nodes;
    struct node node[NODES];
};

void world_open(struct world *w, uint32_t nodes);
void world_close(struct world *w);
/* Opens one node's connector (again), as this incarnation. config's queue pairs as set in
 * w->node[i].config, or the defaults where 0. */
void node_start(struct world *w, uint32_t i, uint32_t incarnation);
/* As if its process had died: nobody is told. */
void node_kill(struct world *w, uint32_t i);
/* Once: when it wants to be stepped again. */
uint64_t node_step(struct world *w, uint32_t i);
/* Milliseconds of all nodes. */
void world_run(struct world *w, uint32_t ms);
struct connector_peer peer_of(const struct world *w, uint32_t i);
void ask(struct world *w, uint32_t from, uint32_t to, uint32_t tag);
/* Runs until the event with that tag came; its status. */
int await(struct world *w, uint32_t node, uint32_t tag);
/* One READ through the connection with that tag: the completion's status. */
enum ibv_wc_status read_through(struct world *w, uint32_t from, uint32_t to, uint32_t tag);
enum ibv_wc_status read_bytes(struct world *w, uint32_t from, uint32_t to, uint32_t tag,
                              uint32_t bytes);
/* One WRITE of this byte to the other's byte 128, likewise. */
enum ibv_wc_status write_through(struct world *w, uint32_t from, uint32_t to, uint32_t tag,
                                 char byte);
struct connector_stats stats_of(const struct world *w, uint32_t i);

#endif
