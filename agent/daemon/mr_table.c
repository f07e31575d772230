/* SPDX-License-Identifier: Apache-2.0 */
#include "mr_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "address_change.h"
#include "agent.h"
#include "base/assert.h"
#include "device_objects.h"
#include "fabric/retire.h"
#include "pool.h"
#include "pool_lanes.h"

/* The seed and the generation are what peers will work out from this node's endpoint record. */
static void init_mr_table(const struct pool *p, struct agent_table *table)
{
    const struct agent_device *d = &p->device;
    struct schema_endpoint_record r = {
        .pool = p->number, .incarnation = p->incarnation, .udqpn_slots = d->mr_log2 << 24};
    memcpy(r.gid, d->fab->caps.gid, sizeof r.gid);
    struct schema_table_desc desc = schema_mr_table_desc(&r);
    for (uint32_t i = 0; i < LANE_POOL_LANES; i++) {
        struct schema_table *t = &table->lane[i].table;
        schema_table_init(t, SCHEMA_TABLE_MRS, table->memory.addr, d->mr_log2, desc.seed,
                          desc.generation);
        if (table->owners != NULL)
            schema_table_share(t, table->owners, (uint8_t)(i + 1));
    }
}

/* Of which nothing is known yet, but whose its slots are; NULL: no memory. */
static struct agent_table *empty_table(const struct pool *p)
{
    struct agent_table *table = aligned_alloc(_Alignof(struct agent_table), sizeof *table);
    if (table == NULL)
        return NULL;
    memset(table, 0, sizeof *table);
    if (agent_lanes_count(p) == 1)
        return table;
    table->owners = calloc(schema_table_owners(p->device.mr_log2), sizeof table->owners[0]);
    if (table->owners != NULL)
        return table;
    free(table);
    return NULL;
}

/* At an address of its own: a pool that is made again has its table where nothing of its former
 * life is, whatever keys the device gives. */
static int table_registration(struct pool *p, const struct agent_table *table, struct fab_ctl *out)
{
    *out = (struct fab_ctl){.kind = FAB_REG_MR,
                            .mr = {.pd = p->device.pd,
                                   .mem = &table->memory,
                                   .length = table->memory.size,
                                   .access = IBV_ACCESS_REMOTE_READ}};
    return fab_iova_take(&p->agent->iova, FAB_IOVA_TABLE, &table->memory, 0, table->memory.size,
                         &out->mr.iova);
}

/* Memory that the device may use still is left to it. */
static void free_table(void *user, int status)
{
    struct agent_table *table = user;
    if (status == 0)
        fab_mem_free(&table->memory);
    else
        fab_mem_lose(&table->memory);
    free(table->owners);
    free(table);
}

void agentd_mr_table_retire(struct pool *p, struct agent_table *table)
{
    if (table != NULL && table->mr != NULL)
        fab_retire_then(p->device.fab, FAB_DEREG_MR, table->mr, &p->fab_ops, free_table, table);
    else if (table != NULL)
        free_table(table, 0);
}

/* Of which nothing is registered yet, as *c will; NULL and -errno. */
static struct agent_table *new_table(struct pool *p, struct fab_ctl *c, int *status)
{
    struct agent_table *table = empty_table(p);
    *status = table != NULL ? 0 : -ENOMEM;
    if (table == NULL)
        return NULL;
    *status =
        fab_mem_alloc(schema_table_bytes(p->device.mr_log2), "kedge-mr-table", &table->memory);
    if (*status == 0)
        *status = table_registration(p, table, c);
    if (*status == 0)
        return table;
    free_table(table, 0);
    return NULL;
}

static void take_table(struct pool *p, struct agent_table *table, struct fab_mr *mr)
{
    struct agent_device *d = &p->device;
    table->mr = mr;
    init_mr_table(p, table);
    BASE_ASSERT(d->table_before == NULL);
    d->table_before = d->table;
    d->table = table;
}

int agentd_mr_table_make(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    struct pool *p = pool;
    struct agent_device *d = &p->device;
    if (over > 0) {
        d->table->mr = ctl->mr.x;
        init_mr_table(p, d->table);
        return 0;
    }
    d->mr_log2 = schema_table_log2_slots((uint32_t)p->config->max_mrs);
    d->table = empty_table(p);
    if (d->table == NULL)
        return -ENOMEM;
    d->table->memory = p->start.table;
    p->start.table = (struct fab_mem){.fd = -1};
    const int status = table_registration(p, d->table, ctl);
    return status == 0 ? 1 : status;
}

/* A table that is being registered for a pool that has one. */
struct retable {
    struct fab_ctl ctl; /* first */
    struct pool *pool;
    struct agent_table *table;
};

static void on_table(struct fab_ctl *ctl)
{
    const struct retable r = *(struct retable *)ctl;
    r.pool->fab_ops--;
    free(ctl);
    if (r.ctl.status == 0 && !r.pool->stopping) {
        take_table(r.pool, r.table, r.ctl.mr.x);
    } else if (r.ctl.status == 0) {
        r.table->mr = r.ctl.mr.x;
        agentd_mr_table_retire(r.pool, r.table);
    } else {
        free_table(r.table, 0);
    }
    agent_address_step_done(r.pool, WORLD_DEVICE_TABLE, r.ctl.status);
}

int agentd_mr_table_begin(struct pool *p)
{
    int status = -ENOMEM;
    struct retable *r = calloc(1, sizeof *r);
    if (r != NULL)
        r->table = new_table(p, &r->ctl, &status);
    if (r == NULL || r->table == NULL) {
        free(r);
        return status;
    }
    r->pool = p;
    r->ctl.done = on_table;
    p->fab_ops++;
    fab_submit(p->device.fab, &r->ctl);
    return 0;
}
