/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a metaserver that is a process: its host's clocks, random numbers and log, and its
 * store on a thread of its own. */
#ifndef METASERVER_LOOP_WORLD_H
#define METASERVER_LOOP_WORLD_H

#include "metaserver/store_order.h"
#include "metaserver/store_worker.h"
#include "metaserver/world.h"

struct meta_loop_world {
    struct meta_world base;
    struct meta_store_worker *worker; /* borrowed; who serves sets it */
    struct meta_store_order *order;   /* likewise, of a store that is shared; else NULL */
};

void meta_loop_world_init(struct meta_loop_world *w);

#endif
