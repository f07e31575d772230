/* SPDX-License-Identifier: Apache-2.0 */
/* The control side of fenced regions: registers and deregisters at once, or when the test lets it.
 */
#include <check.h>

#include "world.h"
#include "world_fenced.h"

static struct world_worker *worker_of(struct world *w, const struct world_node *n, uint32_t session)
{
    for (int i = 0; i < WORLD_WORKERS; i++)
        if (w->worker[i] != NULL && &w->node[w->worker[i]->node] == n &&
            w->worker[i]->id == session)
            return w->worker[i];
    return NULL;
}

static struct world_fenced *place_of(struct world_node *n, uint32_t rkey)
{
    for (int i = 0; i < WORLD_FENCED; i++)
        if (rkey != 0 ? n->fenced[i].mr != NULL && n->fenced[i].rkey == rkey /* one at a time */
                      : n->fenced[i].mr == NULL)
            return &n->fenced[i];
    ck_abort_msg("no place for key %u", rkey);
    return NULL;
}

static void deregister(struct world_node *n, struct world_fenced *f)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = f->mr}};
    ck_assert_int_eq(fab_call(n->fab, &c), 0);
    *f = (struct world_fenced){.mr = NULL};
}

static void make(struct world *w, struct world_node *n, const struct lane_event *e,
                 struct lane_command *answer)
{
    const struct world_worker *k = worker_of(w, n, e->session);
    ck_assert_ptr_nonnull(k);
    ck_assert_uint_eq(e->want_mr.arena, 0);
    answer->mr.status = n->refuse;
    answer->mr.reason = n->refuse != 0 ? SCHEMA_REASON_REGISTER : 0;
    n->refuse = 0;
    if (answer->mr.status != 0)
        return;
    const uint32_t flags = e->want_mr.access;
    struct fab_mr *mr = world_mr(w, k, e->want_mr.offset, e->want_mr.length,
                                 IBV_ACCESS_LOCAL_WRITE |
                                     (flags & SCHEMA_RECORD_READ ? IBV_ACCESS_REMOTE_READ : 0) |
                                     (flags & SCHEMA_RECORD_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
                                     (flags & SCHEMA_RECORD_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0));
    answer->mr.rkey = mr->rkey;
    answer->mr.iova = mr->addr;
    *place_of(n, 0) = (struct world_fenced){.session = e->session, .rkey = mr->rkey, .mr = mr};
}

static void carry_out(struct world *w, struct world_node *n, const struct lane_event *e)
{
    struct lane_command answer = {.session = e->session};
    if (e->kind == LANE_EVENT_WANT_MR) {
        answer.kind = LANE_COMMAND_MR_READY;
        answer.mr.tag = e->want_mr.tag;
        make(w, n, e, &answer);
    } else {
        answer.kind = LANE_COMMAND_MR_GONE;
        answer.mr.tag = e->fence.tag;
        deregister(n, place_of(n, e->fence.rkey));
    }
    ck_assert_int_eq(lane_command(n->lane, &answer), 0);
}

void world_fenced_event(struct world *w, struct world_node *n, const struct lane_event *e)
{
    n->wanted += e->kind == LANE_EVENT_WANT_MR;
    n->let_go += e->kind == LANE_EVENT_WANT_DEREG;
    if (!n->hold) {
        carry_out(w, n, e);
        return;
    }
    ck_assert_uint_lt(n->held, WORLD_FENCED);
    n->held_event[n->held++] = *e;
}

void world_fenced_go_on(struct world *w, struct world_node *n)
{
    n->hold = false;
    for (uint32_t i = 0; i < n->held; i++)
        carry_out(w, n, &n->held_event[i]);
    n->held = 0;
}

void world_fenced_over(struct world_node *n, uint32_t session)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n->held; i++)
        if (n->held_event[i].session != session)
            n->held_event[kept++] = n->held_event[i];
    n->held = kept;
    for (int i = 0; i < WORLD_FENCED; i++)
        if (n->fenced[i].mr != NULL && n->fenced[i].session == session)
            deregister(n, &n->fenced[i]);
}

uint32_t world_fenced_count(const struct world_node *n)
{
    uint32_t count = 0;
    for (int i = 0; i < WORLD_FENCED; i++)
        count += n->fenced[i].mr != NULL;
    return count;
}

void world_close_empty(struct world *w, uint32_t tenant)
{
    for (int i = 0; i < WORLD_WORKERS; i++)
        if (w->worker[i] != NULL)
            world_detach(w, w->worker[i]);
    for (int i = 0; i < WORLD_NODES; i++) {
        ck_assert_uint_eq(world_fenced_count(&w->node[i]), 0);
        ck_assert_uint_eq(w->node[i].quota[tenant % WORLD_TENANTS].mrs, 0);
    }
    world_close(w);
}
