/* SPDX-License-Identifier: Apache-2.0 */
/* Whom nodes reach: reach.h's numbers are places of nodes here. */
#include <string.h>

#include "directory_private.h"

enum { PEERS_LOOKED_AT = 256 };

int kedge_meta_reach(struct kedge_meta *m, const char *id, uint32_t incarnation,
                     const struct kedge_meta_reach *said, uint64_t now, uint32_t *known)
{
    struct node *n = meta_find_node(m, id);
    struct kedge_reach_report report = {.has_table = said->has_table, .table = said->table};
    int status = meta_check_live(n, incarnation, known);
    if (status != 0)
        return status;
    for (uint32_t i = 0; i < said->count; i++) {
        const struct kedge_meta_tried *t = &said->tried[i];
        const struct endpoint *e = meta_find_endpoint(m, t->gid, t->pool);
        if (e != NULL && m->nodes[e->node].state == KEDGE_META_LIVE)
            report.tried[report.count++] =
                (struct kedge_reach_tried){.node = e->node, .error = t->error, .for_ns = t->for_ns};
    }
    kedge_reach_put(m->reach, (uint32_t)(n - m->nodes), &report, now);
    return 0;
}

/* Its endpoint of that pool, or NULL. */
static const struct endpoint *endpoint_in(const struct kedge_meta *m, const struct node *n,
                                          uint16_t pool)
{
    for (uint32_t i = n->endpoints; i != NONE; i = m->endpoints[i].next)
        if (m->endpoints[i].pool == pool)
            return &m->endpoints[i];
    return NULL;
}

uint32_t kedge_meta_reach_peers(const struct kedge_meta *m, const char *id, uint16_t pool,
                                struct kedge_meta_peer out[KEDGE_REACH_PEERS])
{
    bool found;
    const uint32_t at = kedge_index_find(&m->by_id, id, &found), all = m->by_id.count;
    uint32_t count = 0;
    for (uint32_t i = found; i < all && i <= PEERS_LOOKED_AT && count < KEDGE_REACH_PEERS; i++) {
        const struct node *n = &m->nodes[m->by_id.items[(at + i) % all]];
        const struct endpoint *e = n->state == KEDGE_META_LIVE ? endpoint_in(m, n, pool) : NULL;
        if (e == NULL)
            continue;
        memcpy(out[count].id, n->id, sizeof out[count].id);
        memcpy(out[count++].gid, e->gid, sizeof e->gid);
    }
    return count;
}

const char *kedge_meta_reach_name(const struct kedge_meta *m, uint32_t node)
{
    return m->nodes[node].id;
}

struct kedge_reach_counts kedge_meta_reach_count(const struct kedge_meta *m)
{
    return kedge_reach_count(m->reach);
}
