/* SPDX-License-Identifier: Apache-2.0 */
/* A store that forgets when it is closed: for tests of what uses one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory_private.h"

int meta_memory_failing(const struct memory *s, struct base_errbuf *err)
{
    if (s->fail == NULL || *s->fail == 0)
        return 0;
    return base_err(err, -*s->fail, "the store was told to fail");
}

/* The place of id, or where it belongs. */
static uint32_t place_of(const struct memory *s, const char *id, bool *found)
{
    uint32_t at = 0;
    while (at < s->count && strcmp(s->nodes[at].id, id) < 0)
        at++;
    *found = at < s->count && strcmp(s->nodes[at].id, id) == 0;
    return at;
}

static void memory_close(struct meta_store *store)
{
    struct memory *s = (struct memory *)store;
    free(s->nodes);
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

static int memory_put(struct meta_store *store, const struct meta_store_node *node,
                      struct base_errbuf *err)
{
    struct memory *s = (struct memory *)store;
    bool found;
    uint32_t at = place_of(s, node->id, &found);
    int status = meta_memory_failing(s, err);
    if (status != 0)
        return status;
    if (found && s->nodes[at].incarnation > node->incarnation)
        return base_err(err, -ESTALE, "a newer incarnation of %s is stored", node->id);
    if (!found && s->count == s->room) {
        uint32_t room = s->room == 0 ? 16 : 2 * s->room;
        struct meta_store_node *nodes = realloc(s->nodes, room * sizeof *nodes);
        if (nodes == NULL)
            return base_err(err, -ENOMEM, "out of memory");
        s->nodes = nodes;
        s->room = room;
    }
    take_endpoints(s, node);
    if (!found) {
        memmove(&s->nodes[at + 1], &s->nodes[at], (s->count - at) * sizeof s->nodes[0]);
        s->count++;
    }
    s->nodes[at] = *node;
    return 0;
}

static int memory_expire(struct meta_store *store, const char *const *ids, uint32_t n,
                         struct base_errbuf *err)
{
    struct memory *s = (struct memory *)store;
    int status = meta_memory_failing(s, err);
    for (uint32_t i = 0; i < n && status == 0; i++) {
        bool found;
        uint32_t at = place_of(s, ids[i], &found);
        if (!found)
            continue;
        s->nodes[at].expired = true;
        s->nodes[at].endpoint_count = 0;
    }
    return status;
}

static int memory_remove(struct meta_store *store, const char *id, struct base_errbuf *err)
{
    struct memory *s = (struct memory *)store;
    bool found;
    uint32_t at = place_of(s, id, &found);
    int status = meta_memory_failing(s, err);
    if (status != 0)
        return status;
    if (!found)
        return base_err(err, -ENOENT, "no node %s is stored", id);
    s->count--;
    memmove(&s->nodes[at], &s->nodes[at + 1], (s->count - at) * sizeof s->nodes[0]);
    return 0;
}

static int memory_check(struct meta_store *store, struct base_errbuf *err)
{
    return meta_memory_failing((const struct memory *)store, err);
}

static int memory_put_item(struct memory *s, const struct meta_store_item *item,
                           struct base_errbuf *err)
{
    if (item->kind == META_STORE_NODE)
        return memory_put(&s->base, &item->node, err);
    meta_memory_keep(s, item);
    return 0;
}

static int memory_replace(struct meta_store *store, meta_store_next *next, void *user,
                          struct base_errbuf *err)
{
    struct memory *s = (struct memory *)store, fresh = {.base = s->base, .fail = s->fail};
    struct meta_store_item item;
    int status, more = 0;
    status = meta_memory_failing(s, err);
    while (status == 0 && (more = next(user, &item, err)) == 1)
        status = memory_put_item(&fresh, &item, err);
    struct memory *gone = status == 0 && more == 0 ? s : &fresh;
    free(gone->nodes);
    meta_memory_free_resources(gone);
    if (gone == s)
        *s = fresh;
    return status != 0 ? status : more;
}

static const struct meta_store_ops memory_ops = {
    .name = "memory",
    .close = memory_close,
    .load = memory_load,
    .put = memory_put,
    .expire = memory_expire,
    .remove = memory_remove,
    .check = memory_check,
    .change = meta_memory_change,
    .load_settings = meta_memory_load_resources,
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
