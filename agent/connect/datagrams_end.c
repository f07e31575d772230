/* SPDX-License-Identifier: Apache-2.0 */
/* How a connector lets go of its datagrams. */
#include <stdlib.h>

#include "fabric/retire.h"
#include "internal.h"

void connector_datagrams_retire(struct connector *c)
{
    struct datagrams *d = &c->ud;
    struct fab *fab = c->res.fab;
    fab_retire(fab, FAB_DESTROY_QP, d->qp, c->ops);
    fab_retire(fab, FAB_DESTROY_QP, d->former.qp, c->ops);
    d->former.qp = NULL;
    fab_retire(fab, FAB_DESTROY_CQ, d->cq, c->ops);
    fab_retire(fab, FAB_DESTROY_CHAN, d->chan, c->ops);
    for (uint32_t i = 0; d->address != NULL && i < d->addresses; i++) {
        fab_retire(fab, FAB_DESTROY_AH, d->address[i].ah, c->ops);
        d->address[i].ah = NULL;
    }
    fab_retire(fab, FAB_DEREG_MR, d->mr, c->ops);
    d->qp = NULL;
    d->cq = NULL;
    d->chan = NULL;
    d->mr = NULL;
}

void connector_datagrams_fini(struct connector *c)
{
    struct datagrams *d = &c->ud;
    if (d->mem.addr != NULL)
        fab_mem_free(&d->mem);
    free(d->address);
}
