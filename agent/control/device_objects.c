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

void device_destroy(struct agent_device *d, enum fab_ctl_kind kind, void *x)
{
    struct fab_ctl c = {.kind = kind};
    if (x == NULL)
        return;
    c.pd.x = x; /* every kind names its object first */
    (void)fab_call(d->fab, &c);
}

/* What the device is destroying. */
struct retired {
    struct fab_ctl ctl; /* first */
    uint32_t *ops;
    struct agent_table *table; /* that it was of, or NULL */
};

static void on_retired(struct fab_ctl *ctl)
{
    struct retired *r = (struct retired *)ctl;
    (*r->ops)--;
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
    *r = (struct retired){.ctl = {.kind = kind, .done = on_retired}, .ops = ops, .table = table};
    r->ctl.pd.x = x; /* every kind names its object first */
    (*ops)++;
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
