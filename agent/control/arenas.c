/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: made ahead, lent, and taken back.
 *
 * What touches all of an arena's pages (making, zeroing, freeing) takes as long as several attaches
 * and is done by tasks; registering and all lists stay on the control thread. An
 * arena that a task thread has is busy, and nobody else's.
 *
 * An arena is used again within its tenant alone, after the lane says that nothing of it is in
 * flight or believed and its registration is gone; then it is zeroed and
 * registered where no record has it (fabric/iova.h; docs/leases.md#memory). */
#include <errno.h>
#include <stdlib.h>

#include "agent.h"
#include "arenas.h"
#include "base/assert.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "due.h"
#include "dedicated_mrs.h"
#include "device_objects.h"
#include "bounds.h"
#include "names.h"
#include "quotas.h"
#include "worker_events.h"

static void on_made(void *user);
static void on_zeroed(void *user);

/* Its bytes are the tenant's: what it has is what it asked for and is not free yet, whoever has
 * left since. */
static void charge_tenant(struct arena *arena)
{
    if (arena->tenant == 0 || arena->charged)
        return;
    arena->charged = true;
    arena->pool->agent->tenants.at[arena->tenant - 1].arena_bytes += arena->bytes;
}

static void discharge_tenant(struct arena *arena)
{
    if (arena->charged)
        arena->pool->agent->tenants.at[arena->tenant - 1].arena_bytes -= arena->bytes;
    arena->charged = false;
}

/* Nothing of it is its tenant's any more. */
static void leave_tenant(struct arena *arena)
{
    discharge_tenant(arena);
    if (arena->tenant != 0)
        arena->pool->agent->tenants.at[arena->tenant - 1].arenas--;
}

/* Its memory is the host's again, if it had any. */
static void forget_arena(struct arena *arena, uint64_t bytes)
{
    struct pool *p = arena->pool;
    leave_tenant(arena);
    p->count.arenas -= bytes != 0;
    p->count.arena_bytes -= bytes;
    free(arena);
}

static void on_freed(void *user)
{
    struct arena *arena = user;
    arena->pool->works--;
    forget_arena(arena, arena->made_bytes);
}

static struct world_task describe_task(struct arena *arena, enum world_work work,
                                       void (*done)(void *user))
{
    return (struct world_task){.work = work,
                               .arena = {.memory = &arena->mem,
                                         .bytes = arena->bytes,
                                         .huge = arena->pool->device.fab->caps.huge_pages,
                                         .unwanted = &arena->unwanted},
                               /* else a worker that outlives the agent has it still */
                               .let_go = !arena->pool->agent->stopping,
                               /* work for what its workers have, or had: they may make it take
                                * long, and it has its turn among other tenants' */
                               .tenant = arena->tenant,
                               .done = done,
                               .user = arena};
}

static void start_task(struct arena *arena, enum world_work work, void (*done)(void *user))
{
    arena->busy = true;
    arena->pool->works++;
    arena->task = describe_task(arena, work, done);
    world_run(arena->pool->world, &arena->task);
}

/* Its tenant's from now on, until it is freed: another tenant never gets it. */
static void assign_tenant(struct arena *arena, uint32_t tenant)
{
    if (arena->tenant == 0 && tenant != 0)
        arena->pool->agent->tenants.at[tenant - 1].arenas++;
    arena->tenant = tenant;
    charge_tenant(arena);
}

/* Its memory counts to the host's from now on. */
static void make_arena(struct arena *arena)
{
    arena->pool->agent->arenas_coming += arena->bytes;
    start_task(arena, WORLD_MAKE_ARENA, on_made);
}

static struct arena *arena_new(struct pool *p, uint32_t tenant, uint64_t bytes)
{
    struct arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL)
        return NULL;
    *arena = (struct arena){.pool = p, .bytes = bytes, .mem = {.fd = -1}};
    assign_tenant(arena, tenant);
    return arena;
}

static void count_memory(struct pool *p, struct arena *arena)
{
    p->count.arenas++;
    p->count.arena_bytes += arena->mem.size;
    arena->made_bytes = arena->mem.size;
}

static void arena_free(struct arena *arena)
{
    struct pool *p = arena->pool;
    if (arena->mem.addr == NULL) {
        forget_arena(arena, 0);
        return;
    }
    if (!p->stopping) {
        start_task(arena, WORLD_FREE_ARENA, on_freed);
        return;
    }
    arena->task = describe_task(arena, WORLD_FREE_ARENA, NULL);
    world_run_here(p->world, &arena->task);
    forget_arena(arena, arena->made_bytes);
}

struct fab_ctl agent_arena_registration(const struct arena *arena, uint64_t offset, uint64_t length,
                                        unsigned access)
{
    struct pool *p = arena->pool;
    struct fab_ctl c = {.kind = FAB_REG_MR,
                        .mr = {.pd = p->device.pd,
                               .mem = &arena->mem,
                               .offset = offset,
                               .length = length,
                               .access = access}};
    if (fab_iova_take(&p->agent->iova, FAB_IOVA_REGION, &arena->mem, offset, length, &c.mr.iova) !=
        0)
        c.mr.length = 0; /* which is refused: after years there are no more addresses */
    return c;
}

struct fab_ctl agent_arena_whole(const struct arena *arena)
{
    const unsigned remote = fab_remote_access(arena->pool->device.fab);
    return agent_arena_registration(arena, 0, arena->mem.size, IBV_ACCESS_LOCAL_WRITE | remote);
}

/* Workers wait for arenas to attach: they come before regions. */
static void submit_op(struct arena *arena, struct fab_ctl ctl, void (*done)(struct mr_op *op))
{
    arena->op = (struct mr_op){
        .ctl = ctl, .owner = arena->tenant, .soon = true, .done = done, .user = arena};
    agent_mr_op_submit(arena->pool, &arena->op);
}

/* Registering takes a device long enough for other workers to notice: it goes on by itself. */
static void arena_register(struct arena *arena, void (*done)(struct mr_op *op))
{
    arena->busy = true;
    submit_op(arena, agent_arena_whole(arena), done);
}

static struct arena *end_registration(const struct mr_op *op)
{
    struct arena *arena = op->user;
    arena->busy = false;
    arena->mr = op->ctl.status == 0 ? op->ctl.mr.x : NULL;
    if (arena->mr != NULL && !arena->unwanted)
        agent_dedicated_mrs_ahead(arena);
    return arena;
}

static void push_arena(struct arena **list, struct arena *arena)
{
    arena->next = *list;
    *list = arena;
}

static struct arena *pop_arena(struct arena **list)
{
    struct arena *arena = *list;
    if (arena != NULL)
        *list = arena->next;
    return arena;
}

static struct arena *pop_kept(struct pool *p, uint32_t tenant)
{
    struct arena *arena = pop_arena(&p->arenas_of[tenant - 1]);
    p->arenas_of_all -= arena != NULL;
    return arena;
}

static uint32_t length_of(const struct arena *list)
{
    uint32_t n = 0;
    for (; list != NULL; list = list->next)
        n++;
    return n;
}

uint32_t agent_arenas_kept(const struct pool *p, uint32_t tenant)
{
    return length_of(p->arenas_of[tenant - 1]);
}

/* One that nobody had: there is one, and others find theirs still, as long as more can be made. */
static bool may_take_ahead(const struct pool *p, uint32_t tenant)
{
    const uint32_t ready = p->count.arenas_ahead;
    return p->arenas_ahead != NULL &&
           (agent_prewarm_share_allows(&p->arenas_share, tenant, ready) ||
            ready >= p->prewarm.arenas || p->arenas_status != 0 ||
            !agent_quotas_have_others(p, tenant));
}

/* One that is ready, of the usual size: one that this tenant had before, else one that nobody had.
 */
static struct arena *take_ready(struct pool *p, uint32_t tenant, uint64_t bytes)
{
    if (bytes != p->config->arena_bytes)
        return NULL;
    struct arena *arena = pop_kept(p, tenant);
    if (arena == NULL && may_take_ahead(p, tenant)) {
        agent_prewarm_share_take(&p->arenas_share, tenant,
                                 p->count.arenas_ahead >= p->prewarm.arenas);
        arena = pop_arena(&p->arenas_ahead);
        p->count.arenas_ahead--;
    }
    if (arena != NULL)
        assign_tenant(arena, tenant);
    return arena;
}

bool agent_arena_is_ready(const struct pool *p, uint32_t tenant)
{
    return p->arenas_of[tenant - 1] != NULL || may_take_ahead(p, tenant);
}

struct arena *agent_arena_take(struct pool *p, uint32_t tenant)
{
    return take_ready(p, tenant, p->config->arena_bytes);
}

int agent_arena_ask(struct pool *p, uint32_t tenant, uint64_t bytes, uint32_t session,
                    struct arena **out)
{
    struct arena *arena = take_ready(p, tenant, bytes);
    if (arena == NULL) {
        arena = arena_new(p, tenant, bytes);
        if (arena == NULL)
            return -ENOMEM;
        make_arena(arena);
        p->count.not_ahead++;
    }
    arena->session = session;
    arena->asked = arena->busy;
    *out = arena;
    return 0;
}

/* Workers are refused for want of it, and hear no more than that. */
static void say_none(struct pool *p, const char *why)
{
    if (base_log_allow(&p->arena_log, world_now_ns(p->world), ARENAS_LOGGED_S * BASE_NS_PER_S, 1,
                       NULL))
        world_log(p->world, BASE_LOG_ERROR, "no more arenas can be made for workers", "why=\"%s\"",
                  why);
}

static void say_failed(struct pool *p, int status)
{
    struct base_errbuf why;
    if (status == 0 || p->stopping || p->agent->device_lost)
        return;
    (void)agent_device_why(p->world, status, &why);
    say_none(p, why.text);
}

static void end_trial(struct pool *p, int status)
{
    p->arenas_status = status;
    p->arenas_after_ns = world_now_ns(p->world) + ARENAS_AFTER_MS * BASE_NS_PER_MS;
}

static void finish_making(struct arena *arena, int status)
{
    struct pool *p = arena->pool;
    if (!arena->asked) {
        p->arenas_making--;
        say_failed(p, status);
        end_trial(p, status);
        if (status != 0 && !p->stopping)
            p->agent->worker_events->failed(p, status);
    } else if (!arena->unwanted) {
        say_failed(p, status);
        p->arena_made(p, arena, status);
        if (status == 0)
            return;
    }
    if (status == 0 && !arena->unwanted) {
        push_arena(&p->arenas_ahead, arena);
        p->count.arenas_ahead++;
        agent_prewarm_share_made(&p->arenas_share);
        p->agent->worker_events->ready(p);
    } else if (status == 0) {
        agent_arena_retire(arena);
    } else {
        arena_free(arena);
    }
}

static void on_made_registered(struct mr_op *op)
{
    finish_making(end_registration(op), op->ctl.status);
}

static void on_made(void *user)
{
    struct arena *arena = user;
    struct pool *p = arena->pool;
    p->works--;
    arena->busy = false;
    p->agent->arenas_coming -= arena->bytes;
    if (arena->task.status == 0)
        count_memory(p, arena);
    if (arena->task.status == 0 && !p->stopping && !arena->unwanted)
        arena_register(arena, on_made_registered);
    else
        finish_making(arena, arena->task.status != 0 ? arena->task.status : -ECANCELED);
}

static bool has_place(const struct arena *arena)
{
    const struct pool *p = arena->pool;
    return p->agent->tenants.at[arena->tenant - 1].state == AGENT_TENANT_LIVE &&
           length_of(p->arenas_of[arena->tenant - 1]) <
               p->prewarm.arenas + p->queue.by_tenant.waiting;
}

static void on_zeroed_registered(struct mr_op *op)
{
    struct arena *arena = end_registration(op);
    struct pool *p = arena->pool;
    if (op->ctl.status != 0) {
        arena_free(arena);
        return;
    }
    if (!has_place(arena)) { /* others were faster */
        agent_arena_retire(arena);
        return;
    }
    p->count.recycled++;
    discharge_tenant(arena); /* so many are kept for it: it is charged when one is lent again */
    push_arena(&p->arenas_of[arena->tenant - 1], arena);
    p->arenas_of_all++;
    p->agent->worker_events->ready(p);
}

static void on_zeroed(void *user)
{
    struct arena *arena = user;
    struct pool *p = arena->pool;
    p->works--;
    arena->busy = false;
    if (p->stopping || arena->task.status != 0 || !has_place(arena))
        arena_free(arena);
    else
        arena_register(arena, on_zeroed_registered);
}

/* Its registration is gone, so that no device reads or writes its pages any more. */
static void on_deregistered(struct mr_op *op)
{
    struct arena *arena = op->user;
    struct pool *p = arena->pool;
    int status = op->ctl.status;
    if (status == 0 && arena->lost)
        status = -EIO; /* said when it was lost */
    if (status != 0) { /* still registered: never lent again, and not unmapped under a device */
        world_log(p->world, BASE_LOG_ERROR, "an arena could not be deregistered and is lost",
                  "error=\"%s\"", strerror(-status));
        leave_tenant(arena);
        fab_mem_lose(&arena->mem); /* it stays, as what it counts in the pool */
        free(arena);
        return;
    }
    arena->mr = NULL;
    if (p->stopping || arena->tenant == 0 || arena->mem.size != p->config->arena_bytes ||
        !arena->mem.whole || !has_place(arena)) /* in holes who had it could keep us waiting */
        arena_free(arena);
    else
        start_task(arena, WORLD_ZERO_ARENA, on_zeroed);
}

/* Nobody waits for what has not come to its turn: the device does not hear of it. */
static void cancel_registration(struct arena *arena)
{
    if (!agent_mr_op_cancel(&arena->op))
        return;
    arena->op.ctl.status = -ECANCELED;
    arena->op.done(&arena->op);
}

void agent_arena_retire(struct arena *arena)
{
    agent_dedicated_mrs_drop(arena);
    if (arena->busy || arena->fenced != NULL) {
        arena->unwanted = true;
        cancel_registration(arena);
        return;
    }
    submit_op(arena, (struct fab_ctl){.kind = FAB_DEREG_MR, .mr = {.x = arena->mr}},
              on_deregistered);
}

/* Of one more. Who waits for it hears that there is none unless another one is on its way, or what
 * sessions have left. */
static bool has_memory(struct pool *p)
{
    struct base_errbuf why;
    const int status = agent_quota_check_host_first(p->agent, p->config->arena_bytes, &why);
    if (status == 0 || status == -EAGAIN)
        return status == 0;
    say_none(p, why.text);
    end_trial(p, status);
    if (p->arenas_making + p->count.arenas_ahead == 0)
        p->agent->worker_events->failed(p, status);
    return false;
}

/* Beside those for which workers wait. */
static bool lacks_arenas(const struct pool *p, uint32_t kept)
{
    const uint32_t wanted = kept + p->queue.by_tenant.waiting;
    uint32_t most = p->prewarm.arenas > MAKING_AT_ONCE ? p->prewarm.arenas : MAKING_AT_ONCE;
    if (p->arenas_status != 0)
        most = 1;
    return !p->stopping && p->arenas_making < most &&
           p->count.arenas_ahead + p->arenas_making < wanted;
}

uint64_t agent_arenas_refill_due_ns(const struct pool *p)
{
    const bool waits = p->arenas_status != 0 && p->queue.by_tenant.waiting == 0;
    const bool now = lacks_arenas(p, agent_prewarm_now(p, p->prewarm.arenas));
    return due_if(
        lacks_arenas(p, p->prewarm.arenas),
        due_last(now ? DUE_NOW : agent_prewarm_quiet_ns(p), waits ? p->arenas_after_ns : DUE_NOW));
}

/* One after another, now and then, when the last one failed: a full tmpfs and a device without room
 * for more are not asked many times at once. */
void agent_arenas_refill(struct pool *p)
{
    if (world_now_ns(p->world) < agent_arenas_refill_due_ns(p))
        return;
    while (lacks_arenas(p, agent_prewarm_now(p, p->prewarm.arenas)) && has_memory(p)) {
        struct arena *arena = arena_new(p, 0, p->config->arena_bytes);
        if (arena == NULL)
            return;
        p->arenas_making++;
        make_arena(arena);
    }
}

static bool has_too_many_ahead(const struct pool *p)
{
    return p->count.arenas_ahead > p->prewarm.arenas + p->queue.by_tenant.waiting;
}

bool agent_arenas_are_too_many(const struct pool *p)
{
    bool some = has_too_many_ahead(p);
    for (uint32_t i = 0; !some && p->arenas_of_all > p->prewarm.arenas && i < AGENT_TENANT_SLOTS;
         i++)
        some = length_of(p->arenas_of[i]) > p->prewarm.arenas;
    return some;
}

void agent_arenas_shed(struct pool *p, uint32_t most)
{
    for (; most > 0 && has_too_many_ahead(p); most--) {
        p->count.arenas_ahead--;
        agent_arena_retire(pop_arena(&p->arenas_ahead));
    }
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        for (uint32_t n = length_of(p->arenas_of[i]); most > 0 && n > p->prewarm.arenas;
             n--, most--)
            agent_arena_retire(pop_kept(p, i + 1));
}

void agent_arenas_forget(struct pool *p, uint32_t tenant)
{
    for (struct arena *arena; (arena = pop_kept(p, tenant)) != NULL;)
        agent_arena_retire(arena);
}

void agent_arenas_stop(struct pool *p)
{
    for (struct arena *arena; (arena = pop_arena(&p->arenas_ahead)) != NULL;)
        agent_arena_retire(arena);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        agent_arenas_forget(p, i + 1);
}
