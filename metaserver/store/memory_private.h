/* SPDX-License-Identifier: Apache-2.0 */
/* Between memory.c (nodes) and memory_resources.c. */
#ifndef METASERVER_STORE_MEMORY_PRIVATE_H
#define METASERVER_STORE_MEMORY_PRIVATE_H

#include "metaserver/store.h"

#define META_MEMORY_ENDPOINT_BITS (1u << 20)

struct memory {
    struct meta_store base;
    struct meta_store_node *nodes; /* sorted by id */
    uint32_t count, room;
    uint64_t *endpoints; /* a bit each that some node had once, by its hash; NULL: none yet */
    struct meta_store_change *resources; /* sorted by kind and name; each the last one to it */
    uint32_t setting_count;
    struct meta_store_change *trail; /* oldest first */
    uint32_t trail_count;
    const int *fail;
};

/* Of the last change; 0: there is none. */
uint64_t meta_memory_last(const struct memory *s);
/* Returns its revision. */
uint64_t meta_memory_change(struct memory *s, const struct meta_store_change *change);
int meta_memory_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                               struct base_errbuf *err);
/* A resource or an entry of the trail, behind those that are there. */
void meta_memory_keep(struct memory *s, const struct meta_store_item *item);
void meta_memory_free_resources(struct memory *s);

#endif
