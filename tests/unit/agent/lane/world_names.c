/* SPDX-License-Identifier: Apache-2.0 */
#include "world_names.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOG2_SLOTS = 8, SEED = 5 };

struct world_names *world_names_open(struct world *w, uint64_t generation)
{
    struct world_names *n = calloc(1, sizeof *n);
    struct fab_ctl c = {.kind = FAB_REG_MR,
                        .mr = {.pd = w->meta_pd, .access = IBV_ACCESS_REMOTE_READ}};
    ck_assert_int_eq(fab_mem_alloc(schema_name_table_bytes(LOG2_SLOTS), "names", &n->memory), 0);
    c.mr.mem = &n->memory;
    c.mr.length = n->memory.size;
    ck_assert_int_eq(fab_call(w->meta, &c), 0);
    n->mr = c.mr.x;
    schema_table_init(&n->table, SCHEMA_TABLE_NAMES, n->memory.addr, LOG2_SLOTS, SEED, generation);
    n->table.desc.rkey = n->mr->rkey;
    return n;
}

void world_names_close(struct world *w, struct world_names *n)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = n->mr}};
    ck_assert_int_eq(fab_call(w->meta, &c), 0);
    fab_mem_free(&n->memory);
    free(n);
}

void world_tables(const struct world *w, struct lane_metaserver *m)
{
    m->table = w->table.desc;
    m->table.rkey = w->meta_mr->rkey;
    m->names = w->names->table.desc;
}

static void format_tenant(uint32_t tenant, char text[LANE_TENANT_NAME + 1])
{
    snprintf(text, LANE_TENANT_NAME + 1, "tenant-%u", tenant);
}

void world_name_tenant(struct world_worker *k, uint32_t tenant)
{
    char text[LANE_TENANT_NAME + 1];
    format_tenant(tenant, text);
    lane_memory_set_tenant(k->memory, text);
}

void world_name_key(const struct world_names *n, uint32_t tenant, const char *name, uint8_t key[16])
{
    char text[LANE_TENANT_NAME + 1];
    format_tenant(tenant, text);
    schema_name_key(&n->table.desc, text, name, key);
}
