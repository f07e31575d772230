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

/* What that node's lane keeps of a region, as its own agent learnt it. */
void world_region_secret(const struct world *w, uint32_t node, uint32_t vkey, uint8_t secret[16]);
/* Node 0 has two metaservers with tables of their own at one target: the first one has that table
 * of names (NULL: it has none), the second one w->names; with a wrong target, if the first is to be
 * silent. */
void world_names_tell_two(struct world *w, const struct world_names *first, bool silent);

#endif
