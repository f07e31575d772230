/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/target.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "fault/fault_control.h"
#include "fault/layer.h"

void fault_dct_made(struct fault_fab *f, struct fault_dct *dct, const struct fab_ctl *inner,
                    struct fab_ctl *outer)
{
    *dct = (struct fault_dct){
        .base = *inner->dct.x, .inner = inner->dct.x, .fab = f, .next = f->targets.first};
    dct->base.pd = outer->dct.pd;
    f->targets.first = dct;
    outer->dct.x = &dct->base;
}

void fault_dct_gone(struct fault_fab *f, struct fault_dct *dct)
{
    struct fault_dct **link = &f->targets.first;
    while (*link != dct)
        link = &(*link)->next;
    *link = dct->next;
    free(dct);
}

static void end_silent(struct fault_dct *dct, struct fab_ctl *outer)
{
    struct fault_fab *f = dct->fab;
    fault_dct_gone(f, dct);
    f->objects--;
    fault_finish(f, outer, 0);
}

static void on_silent(struct fab_ctl *ctl)
{
    struct fault_dct *dct = ctl->user;
    dct->inner = NULL;
    if (dct->owner != NULL)
        end_silent(dct, dct->owner);
}

bool fault_dct_leaves(struct fab_ctl *outer)
{
    struct fault_dct *dct = (struct fault_dct *)outer->dct.x;
    dct->leaves = true;
    if (dct->silent.done == NULL)
        return false;
    if (dct->inner == NULL)
        end_silent(dct, outer);
    else
        dct->owner = outer;
    return true;
}

/* When the plan's file was made; 0: it is not there. */
static uint64_t made_ns(struct fault_fab *f)
{
    struct stat s;
    pthread_mutex_lock(&f->lock);
    const char *path = f->now.plan.dct_silent_when;
    const bool is_there = path[0] != '\0' && stat(path, &s) == 0;
    pthread_mutex_unlock(&f->lock);
    return is_there ? (uint64_t)s.st_ctim.tv_sec * BASE_NS_PER_S + (uint64_t)s.st_ctim.tv_nsec : 0;
}

void fault_dct_look(struct fault_fab *f)
{
    const uint64_t before_ns = f->targets.file_ns;
    f->targets.file_ns = made_ns(f);
    if (f->targets.file_ns == 0 || f->targets.file_ns == before_ns)
        return;
    for (struct fault_dct *dct = f->targets.first; dct != NULL; dct = dct->next) {
        if (dct->leaves)
            continue;
        atomic_fetch_add(&f->count, 1);
        dct->leaves = true;
        dct->silent = (struct fab_ctl){
            .kind = FAB_DESTROY_DCT, .dct.x = dct->inner, .done = on_silent, .user = dct};
        fab_submit(f->inner, &dct->silent);
    }
}
