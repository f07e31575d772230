/* SPDX-License-Identifier: Apache-2.0 */
#include "fences.h"

#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "base/assert.h"
#include "base/clock.h"
#include "bounds.h"
#include "control/world_log.h"
#include "due.h"
#include "lane_setup.h"

/* A fence under way: the session may be over, and its number another's, when it is done. */
struct fencing {
    struct fab_ctl ctl; /* first */
    struct pool *pool;
    struct fencing *next; /* of those that are asked again */
    struct lane_command command;
};

static void on_fenced(struct fab_ctl *ctl)
{
    struct fencing *f = (struct fencing *)ctl;
    struct pool *p = f->pool;
    p->fab_ops--;
    if (ctl->status != 0 && !p->stopping && p->lane != NULL) {
        /* Nobody is told that memory is free before this is sure: it is asked again. */
        if (base_log_allow(&p->fence_log, world_now_ns(p->world), FENCES_LOGGED_S * BASE_NS_PER_S,
                           1, NULL))
            world_log(p->world, BASE_LOG_ERROR,
                      "the device cannot say whether remote operations are over: workers that give "
                      "memory back wait until it can",
                      "pool=%s error=\"%s\"", p->name, strerror(-ctl->status));
        f->next = p->fences_again;
        p->fences_again = f;
        return;
    }
    if (ctl->status == 0 && p->lane != NULL)
        agent_pool_command(p, &f->command);
    free(f);
}

uint64_t agent_fences_due_ns(const struct pool *p)
{
    return due_if(p->fences_again != NULL, DUE_NOW);
}

void agent_fences_again(struct pool *p)
{
    struct fencing *f = p->fences_again;
    p->fences_again = NULL;
    for (struct fencing *next; f != NULL; f = next) {
        next = f->next;
        p->fab_ops++;
        fab_submit(p->device.fab, &f->ctl);
    }
}

void agent_fences_forget(struct pool *p)
{
    for (struct fencing *f = p->fences_again, *next; f != NULL; f = next) {
        next = f->next;
        free(f);
    }
    p->fences_again = NULL;
}

void agent_fence_begin(struct pool *p, const struct lane_event *e)
{
    struct fencing *f = calloc(1, sizeof *f);
    BASE_ASSERT(f != NULL); /* a few bytes: without them nothing else works either */
    *f = (struct fencing){
        .ctl = {.kind = FAB_QUIESCE_MR, .done = on_fenced, .quiesce = {.rkey = e->fence.rkey}},
        .pool = p,
        .command = {.kind = LANE_COMMAND_FENCED, .session = e->session, .tag = e->fence.tag}};
    p->fab_ops++;
    fab_submit(p->device.fab, &f->ctl);
}
