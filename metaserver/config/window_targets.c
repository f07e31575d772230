/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/window_targets.h"

#include <string.h>

#include "base/crc32c.h"

uint32_t meta_window_targets_of(const struct meta_directory *m, const char *node,
                                uint8_t out[META_STORE_NODE_ENDPOINTS][16])
{
    struct meta_node_view view;
    uint32_t count = 0;
    if (meta_directory_show(m, node, 0, &view) != 0)
        return 0;
    for (uint32_t i = 0; i < view.endpoint_count; i++) {
        uint32_t k = 0;
        while (k < count && memcmp(out[k], view.endpoint[i].gid, sizeof out[k]) != 0)
            k++;
        if (k == count) /* not of another pool's already */
            memcpy(out[count++], view.endpoint[i].gid, sizeof out[0]);
    }
    return count;
}

uint64_t meta_window_targets_hash(const struct meta_resources *s, const struct meta_directory *m)
{
    uint8_t gids[META_STORE_NODE_ENDPOINTS][16];
    uint64_t hash = 0;
    uint32_t crc = 0;
    for (const struct meta_resource *w = meta_resources_after(s, META_WINDOW, ""); w != NULL;
         w = meta_resources_after(s, META_WINDOW, w->name)) {
        if (w->window.node[0] == '\0')
            continue;
        uint32_t count = meta_window_targets_of(m, w->window.node, gids);
        crc = base_crc32c(crc, w->window.node, strlen(w->window.node) + 1);
        crc = base_crc32c(crc, gids, count * sizeof gids[0]);
        hash = UINT64_C(1) << 32 | crc;
    }
    return hash;
}
