/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the nodes of a directory reach, as their agents say: by GIDs and ids of nodes, which reach.h
 * knows by numbers. One thread; times as in directory.h. */
#ifndef METASERVER_DIRECTORY_REACH_H
#define METASERVER_DIRECTORY_REACH_H

#include "metaserver/directory.h"

/* What an agent says of one endpoint that it tried to reach. */
struct meta_reach_attempt {
    uint8_t gid[16];
    uint16_t pool;
    enum meta_reach_error error;
    uint64_t for_ns;
};
struct meta_reach_claims {
    bool has_table; /* this metaserver's table was tried */
    struct meta_reach_tried table;
    uint32_t count;
    struct meta_reach_attempt tried[META_REACH_TARGETS];
};
/* Keeps what the agent of a live node says of whom it reaches; of endpoints that are no live
 * node's, nothing. As meta_directory_report(). */
int meta_directory_reach(struct meta_directory *m, const char *id, uint32_t incarnation,
                         const struct meta_reach_claims *said, uint64_t now, uint32_t *known);
/* Whom the agent of a node is to try: of the live nodes that come next after its id (and again from
 * the first on) the endpoints of that pool, so that each node is tried by as many others. Returns
 * how many; looks at a bounded number of nodes. */
struct meta_reach_peer {
    char id[META_STORE_ID_BYTES];
    uint8_t gid[16];
};
uint32_t meta_directory_reach_peers(const struct meta_directory *m, const char *id, uint16_t pool,
                                    struct meta_reach_peer out[META_REACH_PEERS]);
/* meta_reach_is_unreached() of a live node. */
bool meta_directory_is_unreached(const struct meta_directory *m, const char *id, uint64_t now,
                                 struct meta_reach_unreached *out);
/* The id of a node in a meta_reach_view. Borrowed until the next change. */
const char *meta_directory_reach_name(const struct meta_directory *m, uint32_t node);
struct meta_reach_counts meta_directory_reach_count(const struct meta_directory *m);

#endif
