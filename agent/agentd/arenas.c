/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: made ahead, lent, and taken back.
 *
 * What touches all of an arena's pages (making, zeroing, freeing) takes as long as several attaches
 * and runs on libuv's work threads; registering and all lists stay on the control thread. An arena
 * that a work thread has is busy, and nobody else's.
 *
 * An arena is used again within its tenant alone, after the lane says that nothing of it is in
 * flight or believed and its registration is gone; then it is zeroed and gets a new key (design:
 * "Memory"). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon.h"

static const unsigned ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

static void on_made(uv_work_t *work, int status);
static void on_zeroed(uv_work_t *work, int status);

/* ---- on a work thread */

static void make_memory(uv_work_t *work)
{
    struct arena *arena = work->data;
    /* soft is a CPU, and would have to touch them. */
    if (strcmp(arena->agent->config.provider, kedge_fab_soft.name) == 0)
        arena->status = kedge_fab_mem_alloc(arena->bytes, "kedge-arena", &arena->mem);
    else
        arena->status = kedge_fab_mem_alloc_huge(arena->bytes, "kedge-arena", &arena->mem);
}

static void zero_memory(uv_work_t *work)
{
    struct arena *arena = work->data;
    arena->status = 0;
    if (arena->mem.huge)
        arena->status = kedge_fab_mem_zero(&arena->mem);
    else
        memset(arena->mem.addr, 0, arena->mem.size);
}

static void free_memory(uv_work_t *work)
{
    struct arena *arena = work->data;
    kedge_fab_mem_free(&arena->mem);
}

static void on_freed(uv_work_t *work, int status)
{
    (void)status;
    free(work->data);
}

static void start(struct arena *arena, uv_work_cb work, uv_after_work_cb after)
{
    arena->busy = true;
    arena->work.data = arena;
    int status = uv_queue_work(&arena->agent->loop, &arena->work, work, after);
    KEDGE_ASSERT(status == 0); /* fails without a callback alone */
}

/* ---- on the control thread */

/* Counted as its tenant's from now on, until it is freed: another tenant never gets it. */
static void belong(struct arena *arena, uint32_t tenant)
{
    if (arena->tenant == 0 && tenant != 0)
        arena->agent->tenants.at[tenant - 1].arenas++;
    arena->tenant = tenant;
}

static struct arena *arena_new(struct agent *a, uint32_t tenant, uint64_t bytes)
{
    struct arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL)
        return NULL;
    *arena = (struct arena){.agent = a, .bytes = bytes, .mem = {.fd = -1}};
    belong(arena, tenant);
    return arena;
}

static void count_memory(struct agent *a, const struct arena *arena)
{
    a->count.arenas++;
    a->count.arena_bytes += arena->mem.size;
}

static void arena_free(struct arena *arena)
{
    struct agent *a = arena->agent;
    if (arena->tenant != 0)
        a->tenants.at[arena->tenant - 1].arenas--;
    if (arena->mem.addr == NULL) {
        free(arena);
        return;
    }
    a->count.arenas--;
    a->count.arena_bytes -= arena->mem.size;
    if (!a->stopping) {
        start(arena, free_memory, on_freed);
        return;
    }
    kedge_fab_mem_free(&arena->mem);
    free(arena);
}

struct kedge_fab_ctl arena_registration(const struct arena *arena)
{
    return (struct kedge_fab_ctl){.kind = KEDGE_FAB_REG_MR,
                                  .mr = {.pd = arena->agent->device.pd,
                                         .mem = &arena->mem,
                                         .length = arena->mem.size,
                                         .access = ALL_ACCESS}};
}

/* Registering takes a device long enough for other workers to notice: it goes on by itself. */
static void arena_register(struct arena *arena, void (*done)(struct kedge_fab_ctl *ctl))
{
    struct agent *a = arena->agent;
    arena->busy = true;
    arena->ctl = arena_registration(arena);
    arena->ctl.done = done;
    arena->ctl.user = arena;
    a->fab_ops++;
    kedge_fab_submit(a->device.fab, &arena->ctl);
}

static struct arena *registered(struct kedge_fab_ctl *ctl)
{
    struct arena *arena = ctl->user;
    arena->agent->fab_ops--;
    arena->busy = false;
    arena->mr = ctl->status == 0 ? ctl->mr.x : NULL;
    return arena;
}

/* While a worker waits: nothing was ready. */
static int arena_register_now(struct arena *arena)
{
    struct kedge_fab_ctl c = arena_registration(arena);
    int status = kedge_fab_call(arena->agent->device.fab, &c);
    arena->mr = status == 0 ? c.mr.x : NULL;
    return status;
}

static void push(struct arena **list, struct arena *arena)
{
    arena->next = *list;
    *list = arena;
}

static struct arena *pop(struct arena **list)
{
    struct arena *arena = *list;
    if (arena != NULL)
        *list = arena->next;
    return arena;
}

static uint32_t length_of(const struct arena *list)
{
    uint32_t n = 0;
    for (; list != NULL; list = list->next)
        n++;
    return n;
}

/* One that is ready, of the usual size: one that this tenant had before, else one that nobody had.
 */
static struct arena *take_ready(struct agent *a, uint32_t tenant, uint64_t bytes)
{
    if (bytes != a->config.arena_bytes)
        return NULL;
    struct arena *arena = pop(&a->arenas_of[tenant - 1]);
    if (arena == NULL) {
        arena = pop(&a->arenas_ahead);
        a->count.arenas_ahead -= arena != NULL;
    }
    if (arena != NULL)
        belong(arena, tenant);
    return arena;
}

int arena_take(struct agent *a, uint32_t tenant, struct arena **out)
{
    struct arena *arena = take_ready(a, tenant, a->config.arena_bytes);
    if (arena == NULL) {
        arena = arena_new(a, tenant, a->config.arena_bytes);
        if (arena == NULL)
            return -ENOMEM;
        make_memory(&(uv_work_t){.data = arena});
        int status = arena->status;
        if (status == 0) {
            count_memory(a, arena);
            status = arena_register_now(arena);
        }
        if (status != 0) {
            arena_free(arena);
            return status;
        }
        a->count.not_ahead++;
    }
    *out = arena;
    return 0;
}

int arena_ask(struct agent *a, uint32_t tenant, uint64_t bytes, uint32_t session,
              struct arena **out)
{
    struct arena *arena = take_ready(a, tenant, bytes);
    if (arena == NULL) {
        arena = arena_new(a, tenant, bytes);
        if (arena == NULL)
            return -ENOMEM;
        start(arena, make_memory, on_made);
        a->count.not_ahead++;
    }
    arena->session = session;
    arena->asked = arena->busy;
    *out = arena;
    return 0;
}

/* Workers that come are refused for want of it, and hear no more than that. */
static void say_failed(struct agent *a, int status)
{
    struct kedge_errbuf why;
    if (status == 0 || a->stopping || a->device_lost ||
        !kedge_log_allow(&a->arena_log, kedge_clock_ns(), ARENAS_LOGGED_S * KEDGE_NS_PER_S, 1,
                         NULL))
        return;
    (void)device_why(status, &why);
    kedge_log(KEDGE_LOG_ERROR, "no more arenas can be made for workers that come", "why=\"%s\"",
              why.text);
}

static void made(struct arena *arena, int status)
{
    struct agent *a = arena->agent;
    if (!arena->asked) {
        a->arenas_making--;
        say_failed(a, status);
        a->arenas_failed = status != 0;
        a->arenas_after_ns = kedge_clock_ns() + ARENAS_AFTER_MS * KEDGE_NS_PER_MS;
    } else if (!arena->unwanted) {
        session_arena(a, arena, status);
        if (status == 0)
            return;
    }
    if (status == 0 && !arena->unwanted) {
        push(&a->arenas_ahead, arena);
        a->count.arenas_ahead++;
    } else if (status == 0) {
        arena_retire(arena);
    } else {
        arena_free(arena);
    }
}

static void on_made_registered(struct kedge_fab_ctl *ctl)
{
    made(registered(ctl), ctl->status);
}

static void on_made(uv_work_t *work, int cancelled)
{
    struct arena *arena = work->data;
    struct agent *a = arena->agent;
    (void)cancelled; /* nothing here cancels */
    arena->busy = false;
    if (arena->status == 0)
        count_memory(a, arena);
    if (arena->status == 0 && !a->stopping)
        arena_register(arena, on_made_registered);
    else
        made(arena, arena->status != 0 ? arena->status : -ECANCELED);
}

static bool has_place(const struct arena *arena)
{
    const struct agent *a = arena->agent;
    return a->tenants.at[arena->tenant - 1].state == AGENTD_TENANT_LIVE &&
           length_of(a->arenas_of[arena->tenant - 1]) < a->pool.arenas;
}

static void on_zeroed_registered(struct kedge_fab_ctl *ctl)
{
    struct arena *arena = registered(ctl);
    struct agent *a = arena->agent;
    if (ctl->status != 0) {
        arena_free(arena);
        return;
    }
    if (!has_place(arena)) { /* others were faster */
        arena_retire(arena);
        return;
    }
    a->count.recycled++;
    push(&a->arenas_of[arena->tenant - 1], arena);
}

static void on_zeroed(uv_work_t *work, int cancelled)
{
    struct arena *arena = work->data;
    struct agent *a = arena->agent;
    (void)cancelled;
    arena->busy = false;
    if (a->stopping || arena->status != 0 || !has_place(arena))
        arena_free(arena);
    else
        arena_register(arena, on_zeroed_registered);
}

/* Its registration is gone, so that no device reads or writes its pages any more. */
static void on_deregistered(struct kedge_fab_ctl *ctl)
{
    struct arena *arena = ctl->user;
    struct agent *a = arena->agent;
    int status = ctl->status;
    a->fab_ops--;
    if (status == 0 && arena->lost)
        status = -EIO; /* said when it was lost */
    if (status != 0) { /* still registered: never lent again, and not unmapped under a device */
        kedge_log(KEDGE_LOG_ERROR, "an arena could not be deregistered and is lost", "error=\"%s\"",
                  strerror(-status));
        if (arena->tenant != 0)
            a->tenants.at[arena->tenant - 1].arenas--;
        return;
    }
    arena->mr = NULL;
    if (a->stopping || arena->tenant == 0 || arena->mem.size != a->config.arena_bytes ||
        !has_place(arena))
        arena_free(arena);
    else
        start(arena, zero_memory, on_zeroed);
}

void arena_retire(struct arena *arena)
{
    if (arena->busy) {
        arena->unwanted = true;
        return;
    }
    arena->ctl = (struct kedge_fab_ctl){
        .kind = KEDGE_FAB_DEREG_MR, .done = on_deregistered, .user = arena, .mr = {.x = arena->mr}};
    arena->agent->fab_ops++;
    kedge_fab_submit(arena->agent->device.fab, &arena->ctl);
}

/* One after another, now and then, when the last one failed: a full tmpfs and a device without room
 * for more are not asked many times at once. */
void arenas_refill(struct agent *a)
{
    if (a->arenas_failed && kedge_clock_ns() < a->arenas_after_ns)
        return;
    uint32_t most = a->arenas_failed ? 1 : a->pool.arenas;
    while (!a->stopping && a->arenas_making < most &&
           a->count.arenas_ahead + a->arenas_making < a->pool.arenas) {
        struct arena *arena = arena_new(a, 0, a->config.arena_bytes);
        if (arena == NULL)
            return;
        a->arenas_making++;
        start(arena, make_memory, on_made);
    }
}

void arenas_shed(struct agent *a, uint32_t most)
{
    for (; most > 0 && a->count.arenas_ahead > a->pool.arenas; most--) {
        a->count.arenas_ahead--;
        arena_retire(pop(&a->arenas_ahead));
    }
    for (uint32_t i = 0; i < AGENTD_TENANTS; i++)
        for (uint32_t n = length_of(a->arenas_of[i]); most > 0 && n > a->pool.arenas; n--, most--)
            arena_retire(pop(&a->arenas_of[i]));
}

void arenas_forget(struct agent *a, uint32_t tenant)
{
    for (struct arena *arena; (arena = pop(&a->arenas_of[tenant - 1])) != NULL;)
        arena_retire(arena);
}

void arenas_stop(struct agent *a)
{
    for (struct arena *arena; (arena = pop(&a->arenas_ahead)) != NULL;)
        arena_retire(arena);
    for (uint32_t i = 0; i < AGENTD_TENANTS; i++)
        arenas_forget(a, i + 1);
}
