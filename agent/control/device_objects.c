/* SPDX-License-Identifier: Apache-2.0 */
/* The device objects of a pool: what an error of theirs means to an operator, and their end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "control/lanes.h"
#include "device_objects.h"
#include "fabric/limits.h"

int device_why(struct world *w, int status, struct base_errbuf *err)
{
    const uint64_t limit = world_lock_limit(w);
    return fab_limit_explain(
        status, limit, limit != UINT64_MAX ? ", and /dev/shm must have room for the arenas" : "",
        err);
}

/* What the device is destroying. */
struct retired {
    struct fab_ctl ctl; /* first */
    struct agent_device *device;
    uint32_t *ops;
    struct agent_table *table; /* that it was of, or NULL */
};

static void on_retired(struct fab_ctl *ctl)
{
    struct retired *r = (struct retired *)ctl;
    (*r->ops)--;
    r->device->going[ctl->kind]--;
    if (r->table != NULL) {
        fab_mem_free(&r->table->memory);
        free(r->table);
    }
    free(r);
}

static void retire_object(struct agent_device *d, enum fab_ctl_kind kind, void *x,
                          struct agent_table *table, uint32_t *ops)
{
    struct retired *r = calloc(1, sizeof *r);
    BASE_ASSERT(r != NULL); /* a few bytes: without them nothing else works either */
    *r = (struct retired){
        .ctl = {.kind = kind, .done = on_retired}, .device = d, .ops = ops, .table = table};
    r->ctl.pd.x = x; /* every kind names its object first */
    (*ops)++;
    d->going[kind]++;
    fab_submit(d->fab, &r->ctl);
}

void device_retire(struct agent_device *d, enum fab_ctl_kind kind, void *x, uint32_t *ops)
{
    if (x != NULL)
        retire_object(d, kind, x, NULL, ops);
}

void device_retire_table(struct agent_device *d, struct agent_table *table, uint32_t *ops)
{
    if (table != NULL)
        retire_object(d, FAB_DEREG_MR, table->mr, table, ops);
}

uint32_t device_waits_for(const struct agent_device *d)
{
    static_assert(FAB_DESTROY_DCT > FAB_DESTROY_QP && FAB_DESTROY_QP > FAB_DESTROY_SRQ &&
                      FAB_DESTROY_SRQ > FAB_DESTROY_CQ && FAB_DESTROY_CQ > FAB_DESTROY_CHAN &&
                      FAB_DESTROY_CHAN > FAB_DEREG_MR && FAB_DEREG_MR > FAB_FREE_PD,
                  "what needs another comes behind it");
    uint32_t kind = FAB_QUERY_QP;
    while (kind > 0 && d->going[kind] == 0)
        kind--;
    return kind != 0 ? kind : UINT32_MAX;
}
