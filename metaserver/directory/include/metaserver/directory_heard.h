/* SPDX-License-Identifier: Apache-2.0 */
/* What other metaservers of a shared store did with nodes, put into a directory in the order of the
 * store: who owns which endpoint, and which life of a node is the last, is as the store says. What
 * the table holds of a node that another metaserver knows to have begun anew goes at once; it comes
 * again when its agent registers here. One thread, as directory.h. */
#ifndef METASERVER_DIRECTORY_HEARD_H
#define METASERVER_DIRECTORY_HEARD_H

#include "metaserver/directory.h"

/* What a node was until then. */
struct meta_directory_before {
    enum meta_node_state state; /* META_NODE_FREE: it was not known */
    uint32_t incarnation;
    uint64_t heard; /* of one that was live or waiting: since when it has not been heard of */
    bool changed;   /* it is another one now, or in another state */
};

/* Makes the node what the store says that it is. Its state stays what it is where it is the same
 * life, and is neither lapsed nor expired here. 0; -ENOSPC: max_nodes or max_endpoints are less
 * than what others allow; nothing has changed. */
int meta_directory_hear(struct meta_directory *m, const struct meta_store_node *node, uint64_t now,
                        struct meta_directory_before *before);
/* The store is told that nothing is heard of that life here, and whatever it answers may know it
 * from now on: until it registers here, which is to be told as well. */
void meta_directory_vote(struct meta_directory *m, const struct meta_store_life *life);
/* A node that lapsed here has not expired, since another metaserver hears of it: it waits for its
 * agent again. Nothing, if it has another life by now, or has not lapsed. */
void meta_directory_heard_elsewhere(struct meta_directory *m, const struct meta_store_life *life,
                                    uint64_t now);

#endif
