/* SPDX-License-Identifier: Apache-2.0 */
/* What agents say of the configuration that they follow. */
#include "directory_private.h"

int meta_directory_report(struct meta_directory *m, const char *id, uint32_t incarnation,
                          const struct meta_report *report, uint32_t *known)
{
    struct node *n = meta_directory_find_node(m, id);
    int status = meta_directory_check_live(n, incarnation, known);
    if (status == 0)
        n->report = *report;
    return status;
}

uint32_t meta_directory_count_behind(const struct meta_directory *m, uint64_t revision)
{
    uint32_t count = 0;
    for (uint32_t i = m->lists[LEASED].first; i != NONE; i = m->nodes[i].next)
        count += m->nodes[i].state == META_NODE_LIVE && m->nodes[i].report.revision != revision;
    return count;
}
