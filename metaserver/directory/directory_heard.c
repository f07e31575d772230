/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/directory_heard.h"

#include <errno.h>
#include <string.h>

#include "directory_private.h"
#include "fingerprint.h"

static bool is_same_life(const struct node *n, const struct meta_store_node *node)
{
    return n->incarnation == node->incarnation &&
           meta_store_fingerprint_matches(&n->fingerprint, &node->fingerprint);
}

/* Whether it finds a place; an expired node may have to make it, which the store still knows. */
static bool has_room(const struct meta_directory *m, const struct node *n,
                     const struct meta_store_node *node)
{
    uint32_t added = 0;
    for (uint32_t i = 0; i < node->endpoint_count; i++)
        added +=
            meta_directory_find_endpoint(m, node->endpoint[i].gid, node->endpoint[i].pool) == NULL;
    const bool evicts = n == NULL && m->free_node == NONE;
    return m->by_key.count + added <= m->limits.max_endpoints &&
           !(evicts && m->lists[SAVED].first == NONE);
}

static struct node *make_node(struct meta_directory *m, const char *id)
{
    if (m->free_node == NONE)
        (void)meta_directory_remove(m, m->nodes[m->lists[SAVED].first].id);
    return meta_directory_add_node(m, id);
}

static uint32_t *find_link(struct meta_directory *m, const struct endpoint *e)
{
    uint32_t *link = &m->nodes[e->node].endpoints;
    while (&m->endpoints[*link] != e)
        link = &m->endpoints[*link].next;
    return link;
}

static bool is_listed(const struct meta_store_node *node, const struct endpoint *e)
{
    for (uint32_t i = 0; i < node->endpoint_count; i++)
        if (e->pool == node->endpoint[i].pool &&
            memcmp(e->gid, node->endpoint[i].gid, sizeof e->gid) == 0)
            return true;
    return false;
}

/* Those that it has already stay as they are, in the table too. */
static void own_endpoints(struct meta_directory *m, struct node *n,
                          const struct meta_store_node *node)
{
    for (uint32_t *link = &n->endpoints; *link != NONE;) {
        if (is_listed(node, &m->endpoints[*link]))
            link = &m->endpoints[*link].next;
        else
            meta_directory_drop_endpoint(m, link);
    }
    for (uint32_t i = 0; i < node->endpoint_count; i++) {
        const uint8_t *gid = node->endpoint[i].gid;
        const uint16_t pool = node->endpoint[i].pool;
        const struct endpoint *e = meta_directory_find_endpoint(m, gid, pool);
        if (e != NULL && &m->nodes[e->node] == n)
            continue;
        if (e != NULL)
            meta_directory_drop_endpoint(m, find_link(m, e));
        meta_directory_add_endpoint(m, n, gid, pool);
    }
}

static void begin_life(struct meta_directory *m, struct node *n, const struct meta_store_node *node)
{
    meta_directory_drop_endpoints(m, n);
    meta_reach_drop(m->reach, (uint32_t)(n - m->nodes));
    n->report = (struct meta_report){.revision = 0};
    n->voted &= n->incarnation == node->incarnation;
    n->incarnation = node->incarnation;
    n->fingerprint = node->fingerprint;
}

int meta_directory_hear(struct meta_directory *m, const struct meta_store_node *node, uint64_t now,
                        struct meta_directory_before *before)
{
    struct node *n = meta_directory_find_node(m, node->id);
    *before = (struct meta_directory_before){.state = META_NODE_FREE};
    if (!has_room(m, n, node))
        return -ENOSPC;
    if (n != NULL)
        *before = (struct meta_directory_before){n->state, n->incarnation, n->since, false};
    else
        n = make_node(m, node->id);
    const bool leased = n->state == META_NODE_LIVE || n->state == META_NODE_WAITING;
    const bool same = n->state != META_NODE_FREE && is_same_life(n, node);
    if (same && (node->expired ? n->state == META_NODE_EXPIRED : leased)) {
        n->fingerprint = node->fingerprint;
        own_endpoints(m, n, node);
        if (leased) /* those of its pools that another metaserver has already */
            meta_directory_await_endpoints(m, n);
        return 0;
    }
    begin_life(m, n, node);
    own_endpoints(m, n, node);
    meta_directory_move_node(m, n, node->expired ? META_NODE_EXPIRED : META_NODE_WAITING, now);
    before->changed = true;
    return 0;
}

void meta_directory_vote(struct meta_directory *m, const struct meta_store_life *life)
{
    struct node *n = meta_directory_find_node(m, life->id);
    if (n != NULL && n->incarnation == life->incarnation)
        n->voted = true;
}

void meta_directory_heard_elsewhere(struct meta_directory *m, const struct meta_store_life *life,
                                    uint64_t now)
{
    struct node *n = meta_directory_find_node(m, life->id);
    if (n == NULL || n->incarnation != life->incarnation)
        return;
    if (n->state != META_NODE_LAPSED) /* it has come back meanwhile */
        return;
    meta_directory_move_node(m, n, META_NODE_WAITING, now);
    n->elsewhere = true;
}
