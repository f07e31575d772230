/* SPDX-License-Identifier: Apache-2.0 */
/* What agents reach this metaserver's table by, asked for now and then and when the device says
 * that there is news (not every driver does): a GID that goes and comes back is at another place of
 * the port's table, and a subnet manager gives another LID, or moves the P_Key to another place.
 * The thread of the fabric's control operations. */
#ifndef METASERVER_ADDRESS_WATCH_H
#define METASERVER_ADDRESS_WATCH_H

#include "fabric/fabric.h"

struct meta_address_watch {
    struct fab *fab;
    struct fab_pd *pd; /* of the table; NULL: nobody asks for its P_Key */
    /* It is at another place, or has another LID: fab and pd say so from now on, and what there is
     * still has the former. */
    void (*moved)(void *user);
    /* What why() says is another thing. */
    void (*news)(void *user);
    void *user;
    struct fab_ctl ctl; /* while it is being asked for */
    bool asking, stopping;
    bool down, gone, pkey_gone; /* the port; from it, the GID and the P_Key */
    bool has_moved;             /* in this round */
    uint64_t due_ns;            /* it is asked for again */
};

/* Asks, unless it is being asked for. Whoever runs the fabric hears the answer. */
void meta_address_watch_look(struct meta_address_watch *w);
/* The same, every 2 s (fab_port_next_look_ns()). */
void meta_address_watch_tick(struct meta_address_watch *w, uint64_t now_ns);
uint64_t meta_address_watch_due_ns(const struct meta_address_watch *w);
/* The port's state, as the device says it. */
void meta_address_watch_port(struct meta_address_watch *w, bool down);
/* Why no agent can read the table, a sentence; empty: as far as is known they can. */
void meta_address_watch_why(const struct meta_address_watch *w, char *why, size_t bytes);
/* Blocks until it is not asked for any more: nothing is called then. */
void meta_address_watch_stop(struct meta_address_watch *w);

#endif
