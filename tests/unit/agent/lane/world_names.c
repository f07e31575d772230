/* SPDX-License-Identifier: Apache-2.0 */
#include "world_names.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world_rc.h"

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

void world_region_secret(const struct world *w, uint32_t node, uint32_t vkey, uint8_t secret[16])
{
    const struct schema_table *t = &w->node[node].mr_table;
    struct schema_mr_record r;
    const uint8_t *span = t->slots + (size_t)schema_mr_home(&t->desc, vkey) * SCHEMA_RECORD_BYTES;
    ck_assert_int_eq(schema_mr_find(&t->desc, span, vkey, &r), 0);
    memcpy(secret, r.secret, 16);
}

void world_names_tell_two(struct world *w, const struct world_names *first, bool silent)
{
    struct lane_command list = {.kind = LANE_COMMAND_METASERVERS, .metaservers.count = 2};
    struct world_node *n = &w->node[0];
    if (w->rc)
        (void)world_rc_metaserver(w, n);
    for (uint32_t i = 0; i < 2; i++) {
        struct lane_metaserver *m = &list.metaservers.at[i];
        *m = (struct lane_metaserver){.ah = n->metaserver_ah,
                                      .dctn = w->meta_dct->dctn ^ (i == 0 && silent ? 0x800000 : 0),
                                      .dc_key = w->meta_dct->dc_key,
                                      .number = i};
        world_tables(w, m);
        if (w->rc)
            m->qp = i == 0 ? n->former_qp : n->metaserver_qp;
    }
    if (first != NULL)
        list.metaservers.at[0].names = first->table.desc;
    else if (!silent)
        list.metaservers.at[0].names = (struct schema_table_desc){.log2_slots = 0};
    ck_assert_int_eq(lane_command(n->lane, &list), 0);
    world_run(w, 2);
}
