/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/retire.h"

#include <stdlib.h>

#include "base/assert.h"

static void on_retired(struct fab_ctl *ctl)
{
    uint32_t *ops = ctl->user;
    (*ops)--;
    free(ctl);
}

void fab_retire(struct fab *fab, enum fab_ctl_kind kind, void *x, uint32_t *ops)
{
    if (x == NULL)
        return;
    struct fab_ctl *ctl = calloc(1, sizeof *ctl);
    BASE_ASSERT(ctl != NULL); /* a few bytes: without them nothing else works either */
    *ctl = (struct fab_ctl){.kind = kind, .done = on_retired, .user = ops};
    ctl->pd.x = x; /* every kind names its object first */
    (*ops)++;
    fab_submit(fab, ctl);
}
