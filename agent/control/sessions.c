/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: made ahead, lent, and taken back. A session's rings are never used again: a forked
 * accomplice may still map them. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "arenas.h"
#include "base/assert.h"
#include "base/clock.h"
#include "connection.h"
#include "control/world_log.h"
#include "due.h"
#include "dedicated_mrs.h"
#include "device_objects.h"
#include "fences.h"
#include "lane_setup.h"
#include "leases.h"
#include "bounds.h"
#include "memory_reclaim.h"
#include "pools.h"
#include "prewarm.h"
#include "publications.h"
#include "quotas.h"
#include "revocations.h"
#include "schema/reason.h"
#include "session_moves.h"
#include "sessions.h"
#include "worker_events.h"

/* Of what a tenant may have at a time so many may be being taken back when its next one comes. */
enum { UNMAKING_PART = 4, UNMAKING_LEAST = 8 };

/* ---- made and given back by tasks */

/* Those that came last are first: their memory is the warmest. */
static void move_session(struct agent_session *s, enum stage stage)
{
    struct pool *p = s->pool;
    if (s->stage == STAGE_EMPTY)
        TAILQ_REMOVE(&p->sessions_empty, s, by_stage);
    else if (s->stage == STAGE_READY)
        TAILQ_REMOVE(&p->sessions_ready, s, by_stage);
    p->count.ready += (stage == STAGE_READY) - (s->stage == STAGE_READY);
    s->stage = stage;
    if (stage == STAGE_EMPTY)
        TAILQ_INSERT_HEAD(&p->sessions_empty, s, by_stage);
    else if (stage == STAGE_READY)
        TAILQ_INSERT_HEAD(&p->sessions_ready, s, by_stage);
}

/* Where the start could hold pages, and those of this one's rings are not held: its worker may have
 * the lane stand still (base/hold.h). */
static void say_unheld(struct agent_session *s)
{
    struct pool *p = s->pool;
    struct base_errbuf why;
    if (!p->world->keeps_whole || s->rings.hold >= 0 ||
        !base_log_allow(&p->unheld_log, world_now_ns(p->world), UNHELD_LOGGED_S * BASE_NS_PER_S, 1,
                        NULL))
        return;
    (void)agent_device_why(p->world, s->rings.hold, &why);
    world_log(
        p->world, BASE_LOG_WARN,
        "a session's memory is lent, and its pages cannot be held: a worker may keep its lane "
        "waiting",
        "pool=%s error=\"%s\" advice=\"see kedge-agentd's LimitNOFILE and "
        "fs.pipe-user-pages-soft and -hard\"",
        p->name, why.text);
}

static void on_made(void *session)
{
    struct agent_session *s = session;
    struct pool *p = s->pool;
    p->works--;
    p->count.making--;
    p->sessions_failed = s->task.status != 0;
    move_session(s, s->task.status == 0 ? STAGE_READY : STAGE_EMPTY);
    if (s->task.status != 0) {
        p->agent->worker_events->failed(p, s->task.status);
        return;
    }
    say_unheld(s);
    agent_prewarm_share_made(&p->sessions_share);
    p->agent->worker_events->ready(p);
}

/* That of those it has left one less is being taken back lets a tenant's next worker in. */
static void on_unmade(void *session)
{
    struct agent_session *s = session;
    struct pool *p = s->pool;
    p->works--;
    move_session(s, STAGE_EMPTY);
    p->agent->unmade++;
    if (s->task.tenant == 0)
        return;
    p->unmaking[s->task.tenant - 1]--;
    p->agent->worker_events->ready(p);
}

static void start_task(struct agent_session *s, enum stage stage, enum world_work work,
                       uint32_t tenant, void (*done)(void *session))
{
    move_session(s, stage);
    s->pool->works++;
    s->task = (struct world_task){
        .work = work, .rings = &s->rings, .tenant = tenant, .done = done, .user = s};
    s->task.let_go = !s->pool->stopping; /* else a worker that outlives the agent looks why */
    world_run(s->pool->world, &s->task);
}

/* ---- sessions */

void agent_session_make(struct agent_session *s)
{
    s->pool->count.making++;
    start_task(s, STAGE_MAKING, WORLD_MAKE_RINGS, 0, on_made);
}

/* One that is ready: nobody has it. */
void agent_session_shed(struct pool *p)
{
    struct agent_session *s = TAILQ_FIRST(&p->sessions_ready);
    BASE_ASSERT(s != NULL);
    start_task(s, STAGE_UNMAKING, WORLD_UNMAKE_RINGS, 0, on_unmade);
}

static void give_arena(struct pool *p, struct arena *arena, int status);

int agent_sessions_start(struct pool *p, struct base_errbuf *err)
{
    p->arena_made = give_arena;
    agent_quotas_apply(p);
    p->sessions = calloc(p->config->max_sessions, sizeof p->sessions[0]);
    if (p->sessions == NULL)
        return base_err(err, -ENOMEM, "out of memory for %llu sessions",
                        (unsigned long long)p->config->max_sessions);
    TAILQ_INIT(&p->sessions_empty);
    TAILQ_INIT(&p->sessions_ready);
    for (uint64_t i = 0; i < p->config->max_sessions; i++) {
        p->sessions[i] =
            (struct agent_session){.pool = p,
                                   .rings = {.lane = &p->stepping,
                                             .session = (uint32_t)i,
                                             .sq_slots = (uint32_t)p->config->sq_slots,
                                             .cq_slots = (uint32_t)p->config->cq_slots,
                                             .max_vqps = (uint32_t)p->config->max_vqps,
                                             .max_inflight = (uint32_t)p->config->max_inflight,
                                             .max_mrs = MRS_PER_SESSION,
                                             .max_grants = MAX_GRANTS}};
        TAILQ_INSERT_TAIL(&p->sessions_empty, &p->sessions[i], by_stage);
    }
    return 0;
}

bool agent_sessions_are_making(const struct pool *p)
{
    return p->count.making > 0 || p->arenas_making > 0;
}

int agent_sessions_check(struct pool *p, struct base_errbuf *err)
{
    if (p->count.ready == 0)
        return base_err(
            err, -ENOMEM,
            "no session could be made ahead: is memory full, or are more files open than "
            "the %llu that the agent reckons with?",
            (unsigned long long)FDS_OF(p->config->max_sessions));
    if (p->count.arenas_ahead == 0 && p->arenas_status != 0) {
        struct base_errbuf why;
        if (agent_quota_check_host_first(p->agent, p->config->arena_bytes, &why) == 0)
            (void)agent_device_why(p->world, p->arenas_status, &why);
        return base_err(err, p->arenas_status, "no arena could be made ahead: %s", why.text);
    }
    return 0;
}

/* Where the lane may write what messages bring; NULL: a worker could keep it waiting there. */
static uint8_t *touch_of(const struct arena *arena)
{
    const bool touches = agent_messages_are_for_workers(arena->pool) && arena->mem.whole;
    return touches ? arena->mem.addr : NULL;
}

static void fill_in(struct pool *p, struct agent_session *s)
{
    struct schema_session_ro *ro = s->rings.ro;
    const struct agent_tenant_config *t = agent_quota_tenant(p->agent, s->tenant);
    ro->magic = SCHEMA_SESSION_MAGIC;
    ro->version = SCHEMA_SESSION_VERSION;
    ro->sq_slots = (uint32_t)p->config->sq_slots;
    ro->cq_slots = (uint32_t)p->config->cq_slots;
    ro->max_vqps = (uint32_t)p->config->max_vqps;
    ro->max_inflight = (uint32_t)p->config->max_inflight;
    ro->tenant = t->id;
    ro->pool = p->number;
    memcpy(ro->gid, p->device.fab->caps.gid, sizeof ro->gid);
    atomic_store(&ro->drains, agent_pools_drains(p));
    atomic_store(&ro->doorbell, 1);
}

/* There is one, and others find theirs still, as long as more can be made. */
static bool may_take(const struct pool *p, uint32_t tenant)
{
    const uint32_t ready = p->count.ready;
    return ready > 0 && (agent_prewarm_share_allows(&p->sessions_share, tenant, ready) ||
                         ready >= p->prewarm.sessions || p->sessions_failed ||
                         agent_pools_sessions(p->agent) >= p->config->max_sessions ||
                         !agent_quotas_have_others(p, tenant));
}

/* Else a tenant whose sessions take long to be taken back could come and go until it had the places
 * of all. */
static bool leaves_places(const struct pool *p, uint32_t tenant)
{
    const uint64_t part = agent_quota_tenant(p->agent, tenant)->sessions / UNMAKING_PART;
    return p->unmaking[tenant - 1] < (part > UNMAKING_LEAST ? part : UNMAKING_LEAST);
}

bool agent_session_is_ready(const struct pool *p, uint32_t tenant)
{
    return may_take(p, tenant) && leaves_places(p, tenant) && agent_arena_is_ready(p, tenant);
}

int agent_session_take(struct pool *p, uint32_t tenant, uid_t uid, pid_t pid, struct connection *c,
                       uint32_t *number)
{
    struct agent_session *s = TAILQ_FIRST(&p->sessions_ready);
    struct arena *arena = s != NULL ? agent_arena_take(p, tenant) : NULL;
    if (arena == NULL)
        return -EAGAIN;
    *number = (uint32_t)(s - p->sessions);
    int status = world_lane_watch(p->world, &p->stepping, *number, &s->rings);
    if (status != 0) {
        agent_arena_retire(arena);
        return status;
    }
    agent_prewarm_share_take(&p->sessions_share, tenant, p->count.ready >= p->prewarm.sessions);
    move_session(s, STAGE_LIVE);
    s->serial = ++p->agent->serial;
    s->attached_ns = world_now_ns(p->world);
    s->tenant = tenant;
    s->uid = uid;
    s->pid = pid;
    s->connection = c;
    s->arena[0] = arena;
    s->arenas = 1;
    agent_quotas_note(s);
    p->count.live++;
    p->count.attached++;
    p->count.attached_ahead += c->queued_ns == 0;
    agent_prewarm_taken(p);
    p->taken_ns = s->attached_ns;
    fill_in(p, s);
    return 0;
}

static_assert(AGENT_NAME == LANE_TENANT_NAME + 1, "none is cut off");

void agent_session_begin(struct pool *p, uint32_t number)
{
    struct agent_session *s = &p->sessions[number];
    struct lane_command command = agent_session_describe(s);
    command.touch = touch_of(s->arena[0]);
    s->rest = (struct lane_rest){.until_ns = s->attached_ns + LANE_REST_MS * BASE_NS_PER_MS};
    s->operations = 0;
    s->awaits_lookups = false;
    lane_memory_set_tenant(s->rings.memory, agent_quota_tenant(p->agent, s->tenant)->name);
    agent_session_command(p, &command);
}

int agent_session_add_arena(struct pool *p, uint32_t number, uint64_t bytes,
                            struct base_errbuf *why)
{
    struct agent_session *s = &p->sessions[number];
    const uint64_t page = p->world->page_bytes;
    if (s->arena_asked != NULL)
        return base_err(why, -EAGAIN, "one arena at a time");
    if (s->arenas == LANE_SESSION_MAX_ARENAS)
        return base_err(why, -EDQUOT, "this session has all the arenas that it can have");
    if (bytes <= p->config->arena_bytes)
        bytes = p->config->arena_bytes;
    const struct agent_tenant_config *t = agent_quota_tenant(p->agent, s->tenant);
    if (bytes > t->memory) {
        (void)agent_quota_refuse(p, s->tenant, LANE_QUOTA_MEMORY, why);
        return agent_quota_say_arena(p->agent, s->tenant, bytes, why);
    }
    int status = agent_quota_check_host(p->agent, bytes, why);
    if (status != 0)
        return status;
    bytes = (bytes + page - 1) & ~(page - 1);
    status = agent_quota_check(p, s->tenant, 0, bytes, why);
    if (status == 0)
        status = agent_arena_check_room(p->agent, s->tenant, why);
    if (status != 0)
        return status;
    status = agent_arena_ask(p, s->tenant, bytes, number, &s->arena_asked);
    if (status != 0)
        return base_err(why, status, "no arena could be made: %s", strerror(-status));
    agent_quotas_note(s);
    if (!s->arena_asked->asked)
        give_arena(p, s->arena_asked, 0);
    return status;
}

int agent_session_add_channel(struct pool *p, uint32_t number, int *fd, struct base_errbuf *why)
{
    struct agent_session *s = &p->sessions[number];
    if (s->stage != STAGE_LIVE)
        return base_err(why, -ECANCELED, "the session is over");
    return world_lane_channel(p->world, &p->stepping, number, s->tenant, fd, why);
}

/* What a worker is told is -ENOMEM, whatever the device has said: EAGAIN, which an rdma cgroup's
 * limit is to the kernel, would have it ask again and again. */
static void give_arena(struct pool *p, struct arena *arena, int status)
{
    struct agent_session *s = &p->sessions[arena->session];
    BASE_ASSERT(s->arena_asked == arena);
    if (status == 0) {
        struct lane_command command = {.kind = LANE_COMMAND_ARENA_ADD,
                                       .session = arena->session,
                                       .touch = touch_of(arena),
                                       .arena = agent_arena_describe(arena)};
        agent_session_command(p, &command);
        return;
    }
    s->arena_asked = NULL;
    agent_quotas_note(s);
    if (s->connection != NULL)
        p->agent->worker_events->arena(s->connection, -ENOMEM, NULL, 0);
}

static void give_arenas(struct agent_session *s)
{
    struct arena *asked = s->arena_asked;
    const uint32_t arenas = s->arenas;
    s->arenas = 0;
    s->arena_asked = NULL;
    agent_quotas_note(s);
    for (uint32_t i = 0; i < arenas; i++)
        agent_arena_retire(s->arena[i]);
    if (asked != NULL)
        agent_arena_retire(asked);
}

/* All that it had. Its rings are its worker's as long as that likes, which may make each take long:
 * it has its turn among other tenants'. */
static void take_back(struct pool *p, struct agent_session *s)
{
    p->count.held -= s->held;
    s->held = false;
    give_arenas(s);
    p->count.ending--;
    p->unmaking[s->tenant - 1]++;
    start_task(s, STAGE_UNMAKING, WORLD_UNMAKE_RINGS, s->tenant, on_unmade);
    agent_quotas_note(s);
}

static void begin_ending(struct pool *p, struct agent_session *s)
{
    move_session(s, STAGE_ENDING);
    agent_publications_end(s);
    p->count.live--;
    p->count.ending++;
    agent_quotas_note(s);
}

static void tell_end(struct pool *p, uint32_t number, uint32_t reason)
{
    struct lane_command command = {
        .kind = LANE_COMMAND_SESSION_END, .session = number, .reason = reason};
    begin_ending(p, &p->sessions[number]);
    agent_session_command(p, &command);
}

void agent_session_release(struct pool *p, uint32_t number, uint32_t reason)
{
    struct agent_session *s = &p->sessions[number];
    s->connection = NULL;
    if (s->stage == STAGE_LIVE)
        tell_end(p, number, reason);
    else if (s->held)
        take_back(p, s);
    else
        agent_quotas_note(s);
}

/* tenant 0: of all. */
static void end_those(struct pool *p, uint32_t tenant, uint32_t reason)
{
    for (uint32_t i = 0; i < p->config->max_sessions; i++) {
        struct agent_session *s = &p->sessions[i];
        if (s->stage != STAGE_LIVE || (tenant != 0 && s->tenant != tenant))
            continue;
        tell_end(p, i, reason);
        if (s->connection != NULL) /* finish_session() tells it by its socket, with the reason */
            p->agent->worker_events->ending(s->connection);
    }
}

void agent_sessions_end_tenant(struct pool *p, uint32_t tenant)
{
    end_those(p, tenant, SCHEMA_REASON_TENANT);
    p->agent->worker_events->tenant_ended(p, tenant);
}

void agent_sessions_end_all(struct pool *p, uint32_t reason)
{
    end_those(p, 0, reason);
}

static void finish_session(struct pool *p, struct agent_session *s)
{
    if (!s->over) { /* else it was when the lane had ended it */
        world_lane_unwatch(p->world, &p->stepping, &s->rings);
        world_lane_channel_end(p->world, &p->stepping, s->rings.session);
    }
    for (uint32_t i = 0; i < s->arenas; i++)
        agent_dedicated_mrs_drop(s->arena[i]);
    if (s->connection != NULL)
        p->agent->worker_events->ended(s->connection);
    if (s->stage == STAGE_LIVE)
        begin_ending(p, s);
    /* The lane was given an arena and owes an answer, which must not meet the number's next
     * owner. */
    s->over = s->arena_asked != NULL && !s->arena_asked->busy;
    /* We have ended it, and its worker may still look at what has completed: what is lent again is
     * zeroed. */
    s->held = !s->over && s->connection != NULL;
    p->count.held += s->held;
    agent_quotas_note(s);
    if (!s->over && !s->held)
        take_back(p, s);
}

static void arena_answered(struct pool *p, struct agent_session *s, const struct lane_event *e)
{
    struct arena *arena = s->arena_asked;
    s->arena_asked = NULL;
    if (arena == NULL)
        return;
    if (e->arena.status != 0) {
        agent_arena_retire(arena);
        arena = NULL;
    } else {
        s->arena[s->arenas++] = arena;
    }
    agent_quotas_note(s);
    if (s->connection != NULL)
        p->agent->worker_events->arena(s->connection, e->arena.status, arena, e->arena.number);
    if (s->over)
        finish_session(p, s);
}

/* A worker can bring this about as often as it likes: it must not fill the log. */
static void log_fault(struct pool *p, const struct agent_session *s, const struct lane_event *e)
{
    char worker[AGENT_ID_BYTES];
    struct lease_owner owner = {.tenant = ""};
    uint32_t suppressed;
    p->count.faults++;
    if (s->tenant != 0)
        agent_session_owner(s, &owner);
    if (base_log_allow(&p->fault_log, world_now_ns(p->world), FAULTS_LOGGED_S * BASE_NS_PER_S,
                       FAULTS_LOGGED, &suppressed))
        world_log(p->world, BASE_LOG_WARN, "session ended by the agent",
                  "worker=%s pool=%s tenant=%s uid=%u pid=%d reason=%s suppressed=%u",
                  agent_worker_id_format(&owner.id, worker), p->name, owner.tenant,
                  (unsigned)s->uid, (int)s->pid, schema_reason_name(e->reason), suppressed);
}

void agent_sessions_event(struct pool *p, const struct lane_event *e)
{
    struct agent_session *s = &p->sessions[e->session];
    switch (e->kind) {
    case LANE_EVENT_SESSION_FAULT:
        log_fault(p, s, e);
        if (s->connection != NULL)
            p->agent->worker_events->ended(s->connection);
        if (s->stage == STAGE_LIVE)
            begin_ending(p, s);
        return;
    case LANE_EVENT_SESSION_OVER:
        finish_session(p, s);
        return;
    case LANE_EVENT_ARENA_ADDED:
        arena_answered(p, s, e);
        return;
    case LANE_EVENT_WANT_FENCE:
        agent_fence_begin(p, e);
        return;
    default: /* of others (lane_setup.c) */
        return;
    }
}

void agent_sessions_let_go(struct pool *p)
{
    for (uint64_t i = 0; i < p->config->max_sessions; i++)
        if (p->sessions[i].held)
            p->agent->worker_events->let_go(p->sessions[i].connection);
}

/* After the lane thread has ended: nothing is posted any more. What a worker hangs on its doorbell
 * may make giving that back slow, here too: but nobody waits for this thread any more. */
void agent_sessions_stop(struct pool *p)
{
    agent_leases_stop(p);
    agent_fences_forget(p);
    for (uint64_t i = 0; p->sessions != NULL && i < p->config->max_sessions; i++) {
        p->sessions[i].stage = STAGE_EMPTY;
        agent_session_moves_stop(&p->sessions[i]);
        give_arenas(&p->sessions[i]);
        p->sessions[i].task =
            (struct world_task){.work = WORLD_UNMAKE_RINGS, .rings = &p->sessions[i].rings};
        world_run_here(p->world, &p->sessions[i].task);
    }
}

void agent_sessions_free(struct pool *p)
{
    free(p->sessions);
    p->sessions = NULL;
}
