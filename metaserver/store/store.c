/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/store.h"

#include <string.h>

#include "base/assert.h"

void meta_store_close(struct meta_store *store)
{
    if (store != NULL)
        store->ops->close(store);
}

int meta_store_load(struct meta_store *store, meta_store_visit *visit, void *user,
                    struct base_errbuf *err)
{
    return store->ops->load(store, visit, user, err);
}

int meta_store_put(struct meta_store *store, const struct meta_store_node *node,
                   struct base_errbuf *err)
{
    BASE_ASSERT(node->id[0] != '\0' && memchr(node->id, '\0', sizeof node->id) != NULL);
    BASE_ASSERT(node->incarnation > 0 && node->endpoint_count <= META_STORE_NODE_ENDPOINTS);
    return store->ops->put(store, node, err);
}

int meta_store_expire(struct meta_store *store, const char *const *ids, uint32_t n,
                      struct base_errbuf *err)
{
    return n == 0 ? 0 : store->ops->expire(store, ids, n, err);
}

int meta_store_remove(struct meta_store *store, const char *id, struct base_errbuf *err)
{
    return store->ops->remove(store, id, err);
}

int meta_store_check(struct meta_store *store, struct base_errbuf *err)
{
    return store->ops->check(store, err);
}

int meta_store_change(struct meta_store *store, const struct meta_store_change *change,
                      struct base_errbuf *err)
{
    BASE_ASSERT(change->revision > change->forget);
    BASE_ASSERT(change->before != NULL || change->after != NULL);
    BASE_ASSERT(change->after != NULL || change->resource == NULL);
    return store->ops->change(store, change, err);
}

int meta_store_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                              struct base_errbuf *err)
{
    return store->ops->load_settings(store, visitor, err);
}

int meta_store_replace(struct meta_store *store, meta_store_next *next, void *user,
                       struct base_errbuf *err)
{
    return store->ops->replace(store, next, user, err);
}
