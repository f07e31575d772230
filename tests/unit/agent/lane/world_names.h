/* SPDX-License-Identifier: Apache-2.0 */
/* Metaservers' tables of names, and what their names are keyed by. */
#ifndef UNIT_AGENT_LANE_WORLD_NAMES_H
#define UNIT_AGENT_LANE_WORLD_NAMES_H

#include "world.h"

/* A metaserver's table of names. */
struct world_names {
    struct fab_mem memory;
    struct fab_mr *mr;
    struct schema_table table;
};

/* An empty one, behind the target of the world's metaserver; before that is closed it goes. */
struct world_names *world_names_open(struct world *w, uint64_t generation);
void world_names_close(struct world *w, struct world_names *n);
/* Where the world's tables of endpoints and of names are. */
void world_tables(const struct world *w, struct lane_metaserver *m);
/* A session's tenant is called "tenant-NUMBER". */
void world_name_tenant(struct world_worker *k, uint32_t tenant);
/* The key of a tenant's name in that table. */
void world_name_key(const struct world_names *n, uint32_t tenant, const char *name,
                    uint8_t key[16]);

#endif
