/* SPDX-License-Identifier: Apache-2.0 */
/* Between memory_store.c (nodes), memory_resources.c and memory_names.c. */
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
    struct meta_store_name *names; /* in their order */
    uint32_t name_count;
    const int *fail;
};

/* Of the last change; 0: there is none. */
uint64_t meta_memory_last(const struct memory *s);
/* Returns its revision. */
uint64_t meta_memory_change(struct memory *s, const struct meta_store_change *change);
int meta_memory_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                               struct base_errbuf *err);
/* A resource, an entry of the trail, behind those that are there, or a name. */
void meta_memory_keep(struct memory *s, const struct meta_store_item *item);
void meta_memory_free_resources(struct memory *s);

/* The node that is stored under this id; NULL: none. */
const struct meta_store_node *meta_memory_find(const struct memory *s, const char *id);
/* Whether a transaction's name may be published: as meta_store_name_check(). */
int meta_memory_check_name(const struct memory *s, const struct meta_store_name *name,
                           struct base_errbuf *err);
void meta_memory_put_name(struct memory *s, const struct meta_store_name *name);
void meta_memory_withdraw(struct memory *s, const struct meta_store_name *name);
int meta_memory_load_names(const struct memory *s, const struct meta_store_visitor *visitor);

#endif
