/* SPDX-License-Identifier: Apache-2.0 */
/* Where the nodes are that windows name: agents are told their GIDs, since they know endpoints by
 * nothing else. One thread. */
#ifndef METASERVER_WINDOW_TARGETS_H
#define METASERVER_WINDOW_TARGETS_H

#include "metaserver/directory.h"
#include "metaserver/resources.h"

/* The GIDs of a node, each once: as many as this returns. 0: no such node is registered here. */
uint32_t meta_window_targets_of(const struct meta_directory *m, const char *node,
                                uint8_t out[META_STORE_NODE_ENDPOINTS][16]);
/* A hash of those of all nodes that windows name; 0: none names one. */
uint64_t meta_window_targets_hash(const struct meta_resources *s, const struct meta_directory *m);

#endif
