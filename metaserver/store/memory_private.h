/* SPDX-License-Identifier: Apache-2.0 */
/* Between memory.c (nodes) and memory_resources.c. */
#ifndef METASERVER_STORE_MEMORY_PRIVATE_H
#define METASERVER_STORE_MEMORY_PRIVATE_H

#include "metaserver/store.h"

struct memory {
    struct kedge_store base;
    struct kedge_store_node *nodes; /* sorted by id */
    uint32_t count, room;
    struct kedge_store_change *settings; /* sorted by kind and name; each the last one to it */
    uint32_t setting_count;
    struct kedge_store_change *trail; /* oldest first */
    uint32_t trail_count;
    const int *fail;
};

int memory_failing(const struct memory *s, struct kedge_errbuf *err);
int memory_change(struct kedge_store *store, const struct kedge_store_change *change,
                  struct kedge_errbuf *err);
int memory_load_settings(struct kedge_store *store, const struct kedge_store_visitor *visitor,
                         struct kedge_errbuf *err);
/* A setting or an entry of the trail, behind those that are there. */
void memory_keep(struct memory *s, const struct kedge_store_item *item);
void memory_free_settings(struct memory *s);

#endif
