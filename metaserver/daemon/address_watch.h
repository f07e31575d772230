/* SPDX-License-Identifier: Apache-2.0 */
/* The address by which agents reach this metaserver's table, asked for now and then and when the
 * device says that there is news (not every driver does): a GID that goes and comes back is at
 * another place of the port's table, and a subnet manager gives another LID. The thread of the
 * fabric's control operations. */
#ifndef METASERVER_ADDRESS_WATCH_H
#define METASERVER_ADDRESS_WATCH_H

#include "fabric/fabric.h"

struct meta_address_watch {
    struct fab *fab;
    /* It is at another place, or has another LID: fab says so from now on, and what there is still
     * has the former. */
    void (*moved)(void *user);
    void *user;
    struct fab_ctl ctl; /* while it is being asked for */
    bool asking, gone, stopping;
    uint64_t due_ns; /* it is asked for again */
};

/* Asks, unless it is being asked for. Whoever runs the fabric hears the answer. */
void meta_address_watch_look(struct meta_address_watch *w);
/* The same, every 2 s. */
void meta_address_watch_tick(struct meta_address_watch *w, uint64_t now_ns);
/* Blocks until it is not asked for any more: nothing is called then. */
void meta_address_watch_stop(struct meta_address_watch *w);

#endif
