/* SPDX-License-Identifier: Apache-2.0 */
/* An owner on node 1, and three workers on node 0 that have a request each out to its region at the
 * same time: a WRITE, an addition and a READ. */
#ifndef WORLD_TRIO_H
#define WORLD_TRIO_H

#include "world.h"

struct world_trio {
    struct world_worker owner, writer, adder, reader;
    uint32_t key; /* of the owner's first 4 KiB; the addition is of 1 to its first word */
};

/* Opens a world on a layer over soft; all are connected, and know that the peer answers. */
void world_trio_open(struct world *w, struct world_trio *t);
/* All go, and the world is closed. */
void world_trio_close(struct world *w, struct world_trio *t);
/* A request of each, handed to the device. */
void world_trio_post(struct world *w, struct world_trio *t);
/* Connects a worker of node 0 to node 1, which is known to answer then. */
void world_warm(struct world *w, struct world_worker *k, uint32_t key);

/* Completions of node 0's device come so many polls late from now on, where there is a layer. */
void world_delay(struct world *w, uint32_t polls);

#endif
