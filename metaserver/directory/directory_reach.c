/* SPDX-License-Identifier: Apache-2.0 */
/* Whom nodes reach: reach.h's numbers are indices of nodes here. */
#include "metaserver/directory_reach.h"

#include <string.h>

#include "directory_private.h"

enum { PEERS_LOOKED_AT = 256 };

int meta_directory_reach(struct meta_directory *m, const char *id, uint32_t incarnation,
                         const struct meta_reach_claims *said, uint64_t now, uint32_t *known)
{
    struct node *n = meta_directory_find_node(m, id);
    struct meta_reach_report report = {.has_table = said->has_table, .table = said->table};
    int status = meta_directory_check_live(n, incarnation, known);
    if (status != 0)
        return status;
    for (uint32_t i = 0; i < said->count; i++) {
        const struct meta_reach_attempt *t = &said->tried[i];
        const struct endpoint *e = meta_directory_find_endpoint(m, t->gid, t->pool);
        if (e != NULL && m->nodes[e->node].state == META_NODE_LIVE)
            report.tried[report.count++] =
                (struct meta_reach_tried){.node = e->node, .error = t->error, .for_ns = t->for_ns};
    }
    meta_reach_put(m->reach, (uint32_t)(n - m->nodes), &report, now);
    return 0;
}

/* Its endpoint of that pool, or NULL. */
static const struct endpoint *endpoint_in(const struct meta_directory *m, const struct node *n,
                                          uint16_t pool)
{
    for (uint32_t i = n->endpoints; i != NONE; i = m->endpoints[i].next)
        if (m->endpoints[i].pool == pool)
            return &m->endpoints[i];
    return NULL;
}

uint32_t meta_directory_reach_peers(const struct meta_directory *m, const char *id, uint16_t pool,
                                    struct meta_reach_peer out[META_REACH_PEERS])
{
    bool found;
    const uint32_t at = meta_index_find(&m->by_id, id, &found), all = m->by_id.count;
    uint32_t count = 0;
    for (uint32_t i = found; i < all && i <= PEERS_LOOKED_AT && count < META_REACH_PEERS; i++) {
        const struct node *n = &m->nodes[m->by_id.items[(at + i) % all]];
        const struct endpoint *e = n->state == META_NODE_LIVE ? endpoint_in(m, n, pool) : NULL;
        if (e == NULL)
            continue;
        memcpy(out[count].id, n->id, sizeof out[count].id);
        memcpy(out[count++].gid, e->gid, sizeof e->gid);
    }
    return count;
}

bool meta_directory_is_unreached(const struct meta_directory *m, const char *id, uint64_t now,
                                 struct meta_reach_unreached *out)
{
    const struct node *n = meta_directory_find_node(m, id);
    return n != NULL && n->state == META_NODE_LIVE &&
           meta_reach_is_unreached(m->reach, (uint32_t)(n - m->nodes), now, out);
}

const char *meta_directory_reach_name(const struct meta_directory *m, uint32_t node)
{
    return m->nodes[node].id;
}

struct meta_reach_counts meta_directory_reach_count(const struct meta_directory *m)
{
    return meta_reach_count(m->reach);
}
