/* SPDX-License-Identifier: Apache-2.0 */
/* Regions with registrations of their own: registered and deregistered for the lane, beside the
 * registration of the arena that they are in.
 *
 * One that is made ahead is of the whole arena, since nobody knows what will be asked for. A peer
 * can then do no more than with one of the region alone: its agent checks a region's bounds and
 * rights before anything is posted, the arena is one worker's, and the registration goes before the
 * region's memory is said to be free.
 *
 * The lane answers a worker that gives its region back when the registration is gone. When a
 * session is over the lane waits for nothing more, and what it left goes by itself; its arenas are
 * retired after that, so that no memory changes hands that a device still reaches under one of
 * these keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent/reserve.h"
#include "arenas.h"
#include "base/assert.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "dedicated_mrs.h"
#include "device_objects.h"
#include "lane_setup.h"
#include "bounds.h"
#include "names.h"
#include "pool.h"
#include "quotas.h"
#include "schema/record.h"

struct fenced {
    struct mr_op op; /* what is under way */
    struct arena *arena;
    struct fenced *next;        /* in the arena's list */
    struct fab_mr *mr;          /* NULL: it is being registered */
    bool ahead;                 /* nobody's yet */
    uint32_t tenant;            /* fenced: whose it is (its index + 1) */
    bool fenced;                /* counts to fenced_regions */
    bool going;                 /* it is being deregistered */
    bool over;                  /* its session is: nobody is to be answered */
    struct lane_command answer; /* to what is under way */
};

static struct fenced_counts *counts_of(const struct fenced *f)
{
    return &f->arena->pool->agent->fenced;
}

static void answer_lane(const struct fenced *f)
{
    struct pool *p = f->arena->pool;
    if (!f->over && p->lane != NULL)
        agent_pool_command(p, &f->answer);
}

/* In the turn of whose arena it is. What goes comes before what is to come: it makes room. */
static void submit_op(struct fenced *f, struct fab_ctl ctl, void (*done)(struct mr_op *op))
{
    f->op = (struct mr_op){.ctl = ctl,
                           .owner = f->arena->tenant,
                           .soon = ctl.kind == FAB_DEREG_MR,
                           .done = done,
                           .user = f};
    agent_mr_op_submit(f->arena->pool, &f->op);
}

/* It counts to fenced_regions from now on, or no more. */
static void count_fenced(const struct fenced *f, bool more)
{
    struct fenced_counts *c = counts_of(f);
    if (!f->fenced)
        return;
    c->now += more ? 1u : -1u;
    c->of[f->tenant - 1] += more ? 1u : -1u;
}

/* It is registered no more, or is said to be lost. */
static void forget_fenced(struct fenced *f)
{
    struct arena *arena = f->arena;
    struct fenced **at = &arena->fenced;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    count_fenced(f, false);
    counts_of(f)->own -= !f->ahead;
    counts_of(f)->ahead -= f->ahead;
    free(f);
    if (arena->fenced != NULL || !arena->unwanted || arena->busy)
        return;
    arena->unwanted = false;
    agent_arena_retire(arena);
}

/* ---- going */

static void on_deregistered(struct mr_op *op)
{
    struct fenced *f = op->user;
    if (op->ctl.status == 0) {
        answer_lane(f);
    } else { /* its worker is not told that the memory is its own: it is not */
        f->arena->lost = true;
        world_log(f->arena->pool->world, BASE_LOG_ERROR,
                  "a region's registration cannot be given back: its arena is lent no more",
                  "session=%u error=\"%s\"", f->answer.session, strerror(-op->ctl.status));
    }
    forget_fenced(f);
}

static void let_go(struct fenced *f)
{
    f->going = true;
    submit_op(f, (struct fab_ctl){.kind = FAB_DEREG_MR, .mr = {.x = f->mr}}, on_deregistered);
}

void agent_dedicated_mrs_drop(struct arena *arena)
{
    for (struct fenced *f = arena->fenced, *next; f != NULL; f = next) {
        next = f->next;
        f->over = true;
        if (f->mr != NULL && !f->going)
            let_go(f);
        else if (f->mr == NULL && agent_mr_op_cancel(&f->op)) /* the device has not heard of it */
            forget_fenced(f);
    }
}

static void want_dereg(struct pool *p, const struct lane_event *e)
{
    struct fenced *f = p->sessions[e->session].arena[e->fence.arena]->fenced;
    /* Of one that goes the device may have given the key to another one already. */
    while (f != NULL && (f->mr == NULL || f->going || f->ahead || f->mr->rkey != e->fence.rkey))
        f = f->next;
    BASE_ASSERT(f != NULL);
    f->answer = (struct lane_command){
        .kind = LANE_COMMAND_MR_GONE, .session = e->session, .mr = {.tag = e->fence.tag}};
    let_go(f);
}

/* ---- coming */

static void say_failed(const struct fenced *f, int status)
{
    struct fenced_counts *c = counts_of(f);
    struct base_errbuf why;
    c->failed++;
    if (!base_log_allow(&c->log, world_now_ns(f->arena->pool->world),
                        FENCED_LOGGED_S * BASE_NS_PER_S, 1, NULL))
        return;
    (void)agent_device_why(f->arena->pool->world, status, &why);
    world_log(f->arena->pool->world, BASE_LOG_ERROR, "a region could not be registered",
              "why=\"%s\"", why.text);
}

/* Whatever the device says, to a worker it has no room: of EAGAIN, which an rdma cgroup's limit is
 * to the kernel, kedge_reg_mr(3) says to try again soon. */
static void on_registered(struct mr_op *op)
{
    struct fenced *f = op->user;
    f->answer.mr.status = op->ctl.status != 0 ? -ENOMEM : 0;
    if (op->ctl.status != 0) {
        f->answer.mr.reason = SCHEMA_REASON_REGISTER;
        say_failed(f, op->ctl.status);
        answer_lane(f);
        forget_fenced(f);
        return;
    }
    f->mr = op->ctl.mr.x;
    f->answer.mr.rkey = f->mr->rkey;
    f->answer.mr.iova = f->mr->addr;
    counts_of(f)->registered++;
    answer_lane(f);
    if (f->over)
        let_go(f);
}

static unsigned device_access(uint32_t flags)
{
    const bool written = (flags & (SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC)) != 0;
    return (flags & SCHEMA_RECORD_READ ? IBV_ACCESS_REMOTE_READ : 0u) |
           (flags & SCHEMA_RECORD_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0u) |
           (flags & SCHEMA_RECORD_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0u) |
           (written ? IBV_ACCESS_LOCAL_WRITE : 0u);
}

static struct fenced *add_fenced(struct arena *arena)
{
    struct fenced *f = calloc(1, sizeof *f);
    BASE_ASSERT(f != NULL); /* a few bytes: without them nothing else works either */
    *f = (struct fenced){.arena = arena, .next = arena->fenced};
    arena->fenced = f;
    return f;
}

static void on_ahead(struct mr_op *op)
{
    struct fenced *f = op->user;
    if (op->ctl.status != 0) { /* a region that comes asks the device, and hears why */
        say_failed(f, op->ctl.status);
        forget_fenced(f);
        return;
    }
    f->mr = op->ctl.mr.x;
    if (f->over)
        let_go(f);
}

void agent_dedicated_mrs_ahead(struct arena *arena)
{
    struct pool *p = arena->pool;
    uint32_t have = 0;
    if (p->device.fab->caps.deadlines || p->stopping || arena->bytes != p->config->arena_bytes)
        return;
    for (const struct fenced *f = arena->fenced; f != NULL; f = f->next)
        have += f->ahead;
    for (; have < p->config->regions_ahead; have++) {
        struct fenced *f = add_fenced(arena);
        f->ahead = true;
        counts_of(f)->ahead++;
        submit_op(f, agent_arena_whole(arena), on_ahead);
    }
}

/* One that is made already, for what the lane asks for: it is answered. */
static bool draw_fenced(struct arena *arena, const struct lane_command *answer, uint64_t offset,
                        uint32_t tenant, bool fenced)
{
    struct fenced *f = arena->fenced;
    while (f != NULL && (!f->ahead || f->mr == NULL || f->going))
        f = f->next;
    if (f == NULL)
        return false;
    struct fenced_counts *c = counts_of(f);
    f->ahead = false;
    f->tenant = tenant;
    f->fenced = fenced;
    c->ahead--;
    c->own++;
    count_fenced(f, true);
    c->drawn++;
    f->answer = *answer;
    f->answer.mr.rkey = f->mr->rkey;
    f->answer.mr.iova = f->mr->addr + offset;
    agent_pool_command(arena->pool, &f->answer);
    agent_dedicated_mrs_ahead(arena);
    return true;
}

static bool has_room(const struct pool *p, uint32_t tenant)
{
    const struct agent *a = p->agent;
    uint32_t reserved[AGENT_TENANT_SLOTS];
    agent_quotas_reserve(a, NULL, p->config->fenced_regions, reserved);
    return lane_reserve_allows(p->config->fenced_regions, a->fenced.of, reserved,
                               AGENT_TENANT_SLOTS, tenant - 1);
}

static void want_mr(struct pool *p, const struct lane_event *e)
{
    const uint32_t tenant = p->sessions[e->session].tenant;
    struct arena *arena = p->sessions[e->session].arena[e->want_mr.arena];
    struct lane_command answer = {
        .kind = LANE_COMMAND_MR_READY, .session = e->session, .mr = {.tag = e->want_mr.tag}};
    struct fenced_counts *c = &p->agent->fenced;
    if (e->want_mr.fenced && !has_room(p, tenant)) {
        c->refused++;
        answer.mr.status = -EDQUOT;
        answer.mr.reason = SCHEMA_REASON_FENCED_REGIONS;
        agent_pool_command(p, &answer);
        return;
    }
    if (draw_fenced(arena, &answer, e->want_mr.offset, tenant, e->want_mr.fenced))
        return;
    struct fenced *f = add_fenced(arena);
    f->answer = answer;
    f->tenant = tenant;
    f->fenced = e->want_mr.fenced;
    c->own++;
    count_fenced(f, true);
    submit_op(f,
              agent_arena_registration(arena, e->want_mr.offset, e->want_mr.length,
                                       device_access(e->want_mr.access)),
              on_registered);
}

/* The session's arenas are what they were when the lane said this: its end comes after it. */
void agent_dedicated_mrs_event(struct pool *p, const struct lane_event *e)
{
    if (e->kind == LANE_EVENT_WANT_MR)
        want_mr(p, e);
    else
        want_dereg(p, e);
}
