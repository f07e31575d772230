/* SPDX-License-Identifier: Apache-2.0 */
/* A store that forgets when it is closed: for tests of what uses one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "memory_private.h"

/* 0, or as it was told to fail, what writes or only reads. */
static int check_told(const struct memory *s, bool write, struct base_errbuf *err)
{
    if (s->fail == NULL || *s->fail == 0 || (*s->fail < 0 && !write))
        return 0;
    return base_err(err, -abs(*s->fail), "the store was told to fail");
}

/* The place of id, or where it belongs. */
static uint32_t place_of(const struct memory *s, const char *id, bool *found)
{
    uint32_t at = 0, end = s->count;
    while (at < end) {
        const uint32_t middle = at + (end - at) / 2;
        if (strcmp(s->nodes[middle].id, id) < 0)
            at = middle + 1;
        else
            end = middle;
    }
    *found = at < s->count && strcmp(s->nodes[at].id, id) == 0;
    return at;
}

const struct meta_store_node *meta_memory_find(const struct memory *s, const char *id)
{
    bool found;
    const uint32_t at = place_of(s, id, &found);
    return found ? &s->nodes[at] : NULL;
}

static void memory_close(struct meta_store *store)
{
    struct memory *s = (struct memory *)store;
    free(s->nodes);
    free(s->endpoints);
    meta_memory_free_resources(s);
    free(s);
}

static int memory_load(struct meta_store *store, meta_store_visit *visit, void *user,
                       struct base_errbuf *err)
{
    const struct memory *s = (const struct memory *)store;
    (void)err;
    for (uint32_t i = 0; i < s->count; i++) {
        int status = visit(user, &s->nodes[i]);
        if (status != 0)
            return status;
    }
    return 0;
}

/* Notes that somebody has these endpoints. Returns whether somebody may have had one of them. */
static bool note_endpoints(struct memory *s, const struct meta_store_node *node)
{
    bool had = false;
    for (uint32_t i = 0; i < node->endpoint_count; i++) {
        const struct meta_store_endpoint *e = &node->endpoint[i];
        const uint64_t bit = base_hash_gid(e->gid, e->pool, 0) % META_MEMORY_ENDPOINT_BITS;
        had |= (s->endpoints[bit / 64] >> bit % 64 & 1) != 0;
        s->endpoints[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    return had;
}

/* Takes from every other node the endpoints that node has. */
static void take_endpoints(struct memory *s, const struct meta_store_node *node)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct meta_store_node *other = &s->nodes[i];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < other->endpoint_count; k++) {
            bool taken = false;
            for (uint32_t j = 0; j < node->endpoint_count; j++)
                taken |= other->endpoint[k].pool == node->endpoint[j].pool &&
                         memcmp(other->endpoint[k].gid, node->endpoint[j].gid, 16) == 0;
            if (!taken)
                other->endpoint[kept++] = other->endpoint[k];
        }
        other->endpoint_count = kept;
    }
}

/* Room for so many more, so that nothing fails once something is changed. */
static int make_room(struct memory *s, uint32_t more, struct base_errbuf *err)
{
    if (s->endpoints == NULL)
        s->endpoints = calloc(META_MEMORY_ENDPOINT_BITS / 64, sizeof s->endpoints[0]);
    if (s->endpoints == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    if (s->count + more <= s->room)
        return 0;
    uint32_t room = 2 * s->room + META_STORE_PUTS_MAX;
    struct meta_store_node *nodes = realloc(s->nodes, room * sizeof *nodes);
    if (nodes == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    s->nodes = nodes;
    s->room = room;
    return 0;
}

static void put_node(struct memory *s, const struct meta_store_node *node)
{
    bool found;
    if (note_endpoints(s, node)) /* each looks at all nodes: 10,000 of them would take long */
        take_endpoints(s, node);
    uint32_t at = place_of(s, node->id, &found);
    if (!found) {
        memmove(&s->nodes[at + 1], &s->nodes[at], (s->count - at) * sizeof s->nodes[0]);
        s->count++;
    }
    s->nodes[at] = *node;
}

/* The node, unless it has a later life; or NULL. */
static struct meta_store_node *find_life(struct memory *s, const struct meta_store_life *life)
{
    bool found;
    uint32_t at = place_of(s, life->id, &found);
    return found && s->nodes[at].incarnation <= life->incarnation ? &s->nodes[at] : NULL;
}

static void expire_life(struct memory *s, const struct meta_store_life *life)
{
    struct meta_store_node *node = find_life(s, life);
    if (node == NULL)
        return;
    node->expired = true;
    node->endpoint_count = 0;
}

/* Returns how many nodes went. */
static uint32_t remove_life(struct memory *s, const struct meta_store_life *life)
{
    struct meta_store_node *node = find_life(s, life);
    if (node == NULL)
        return 0;
    s->count--;
    memmove(node, node + 1, (size_t)(&s->nodes[s->count] - node) * sizeof *node);
    return 1;
}

static void check_put(const struct memory *s, struct meta_store_put *put)
{
    const struct meta_store_node *known = meta_memory_find(s, put->node->id);
    if (known != NULL && known->incarnation > put->node->incarnation)
        put->status =
            base_err(&put->err, -ESTALE, "a newer incarnation of %s is stored", put->node->id);
}

/* Whether it can be done, and which registrations of several. */
static int check_txn(struct memory *s, const struct meta_store_txn *txn, struct base_errbuf *err)
{
    int status = check_told(s, true, err);
    if (status == 0 && txn->compare && meta_memory_last(s) != txn->last)
        status = base_err(err, -EREMCHG, "another change came before");
    for (uint32_t i = 0; status == 0 && i < txn->put_count; i++)
        check_put(s, &txn->puts[i]);
    if (status == 0 && txn->put_count == 1 && txn->puts[0].status != 0) {
        *err = txn->puts[0].err;
        status = txn->puts[0].status;
    }
    if (status == 0 && txn->publish != NULL)
        status = meta_memory_check_name(s, txn->publish, err);
    return status == 0 ? make_room(s, txn->put_count, err) : status;
}

static int memory_commit(struct meta_store *store, const struct meta_store_txn *txn,
                         struct meta_store_outcome *out)
{
    struct memory *s = (struct memory *)store;
    int status = check_txn(s, txn, &out->err);
    if (status != 0)
        return status;
    for (uint32_t i = 0; i < txn->remove_count; i++)
        out->removed += remove_life(s, &txn->remove[i]);
    for (uint32_t i = 0; i < txn->expire_count; i++)
        expire_life(s, &txn->expire[i]);
    out->expire_count = txn->expire_count;
    for (uint32_t i = 0; i < txn->put_count; i++)
        if (txn->puts[i].status == 0)
            put_node(s, txn->puts[i].node);
    out->put_count = txn->put_count;
    if (txn->change != NULL)
        out->revision = meta_memory_change(s, txn->change);
    for (uint32_t i = 0; i < txn->withdraw_count; i++)
        meta_memory_withdraw(s, &txn->withdraw[i]);
    if (txn->publish != NULL)
        meta_memory_put_name(s, txn->publish);
    return 0;
}

static int memory_check(struct meta_store *store, bool write, struct base_errbuf *err)
{
    return check_told((const struct memory *)store, write, err);
}

static int memory_put_item(struct memory *s, const struct meta_store_item *item,
                           struct base_errbuf *err)
{
    if (item->kind != META_STORE_NODE) {
        meta_memory_keep(s, item);
        return 0;
    }
    int status = make_room(s, 1, err);
    if (status == 0)
        put_node(s, &item->node);
    return status;
}

static int memory_replace(struct meta_store *store, meta_store_next *next, void *user,
                          struct base_errbuf *err)
{
    struct memory *s = (struct memory *)store, fresh = {.base = s->base, .fail = s->fail};
    struct meta_store_item item;
    int status, more = 0;
    status = check_told(s, true, err);
    while (status == 0 && (more = next(user, &item, err)) == 1)
        status = memory_put_item(&fresh, &item, err);
    struct memory *gone = status == 0 && more == 0 ? s : &fresh;
    free(gone->nodes);
    free(gone->endpoints);
    meta_memory_free_resources(gone);
    if (gone == s)
        *s = fresh;
    return status != 0 ? status : more;
}

static const struct meta_store_ops memory_ops = {
    .name = "memory",
    .close = memory_close,
    .load = memory_load,
    .check = memory_check,
    .commit = memory_commit,
    .load_resources = meta_memory_load_resources,
    .replace = memory_replace,
};

struct meta_store *meta_store_memory(const int *fail)
{
    struct memory *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->base.ops = &memory_ops;
    s->fail = fail;
    return &s->base;
}
