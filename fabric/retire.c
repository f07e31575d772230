/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/retire.h"

#include <assert.h>
#include <stdlib.h>

#include "base/assert.h"

/* What the device is destroying. */
struct retired {
    struct fab_ctl ctl; /* first */
    struct fab *fab;
    uint32_t *ops;
    void (*then)(void *user, int status); /* or NULL */
    void *user;
};

static void on_retired(struct fab_ctl *ctl)
{
    const struct retired r = *(struct retired *)ctl;
    free(ctl);
    (*r.ops)--;
    r.fab->retiring[r.ctl.kind]--;
    if (r.ctl.status != 0)
        r.fab->undestroyed++;
    else if (r.ctl.kind == FAB_DESTROY_QP && r.fab->number_gone != NULL)
        r.fab->number_gone(r.fab->number_user);
    if (r.then != NULL)
        r.then(r.user, r.ctl.status);
}

void fab_retire_then(struct fab *fab, enum fab_ctl_kind kind, void *x, uint32_t *ops,
                     void (*then)(void *user, int status), void *user)
{
    struct retired *r = calloc(1, sizeof *r);
    BASE_ASSERT(r != NULL); /* a few bytes: without them nothing else works either */
    *r = (struct retired){.ctl = {.kind = kind, .done = on_retired},
                          .fab = fab,
                          .ops = ops,
                          .then = then,
                          .user = user};
    r->ctl.pd.x = x; /* every kind names its object first */
    (*ops)++;
    fab->retiring[kind]++;
    fab_submit(fab, &r->ctl);
}

void fab_retire(struct fab *fab, enum fab_ctl_kind kind, void *x, uint32_t *ops)
{
    if (x != NULL)
        fab_retire_then(fab, kind, x, ops, NULL, NULL);
}

uint32_t fab_retiring(const struct fab *fab)
{
    static_assert(FAB_DESTROY_AH > FAB_DESTROY_DCT && FAB_DESTROY_DCT > FAB_DESTROY_QP &&
                      FAB_DESTROY_QP > FAB_DESTROY_SRQ && FAB_DESTROY_SRQ > FAB_DESTROY_CQ &&
                      FAB_DESTROY_CQ > FAB_DESTROY_CHAN && FAB_DESTROY_CHAN > FAB_DEREG_MR &&
                      FAB_DEREG_MR > FAB_FREE_PD,
                  "what needs another comes behind it");
    uint32_t kind = FAB_CTL_KINDS - 1;
    while (kind > 0 && fab->retiring[kind] == 0)
        kind--;
    return kind;
}
