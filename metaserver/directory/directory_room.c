/* SPDX-License-Identifier: Apache-2.0 */
#include "directory_private.h"

bool meta_directory_take_room(const struct meta_directory *m, const struct meta_store_node *node,
                              struct meta_directory_room *room)
{
    struct meta_directory_room with = *room;
    with.nodes += meta_directory_find_node(m, node->id) == NULL;
    for (uint32_t i = 0; i < node->endpoint_count; i++)
        with.endpoints +=
            meta_directory_find_endpoint(m, node->endpoint[i].gid, node->endpoint[i].pool) == NULL;
    if (m->by_id.count + with.nodes > m->limits.max_nodes ||
        m->by_key.count + with.endpoints > m->limits.max_endpoints)
        return false;
    *room = with;
    return true;
}
