/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: made ahead, lent, and taken back. A session's rings are never used again: a forked
 * accomplice may still map them. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "daemon.h"

static struct agentd_tenant_config *tenant_of(struct agent *a, uint32_t number)
{
    return &a->tenants.at[number - 1].config;
}

/* ---- rings, made and given back on a work thread */

static void unmake_rings(struct agent_session *s)
{
    const struct agent *a = s->agent;
    if (s->rw != NULL)
        munmap(s->rw, KEDGE_SESSION_RW_BYTES(a->config.sq_slots));
    if (s->ro != NULL)
        munmap(s->ro, KEDGE_SESSION_RO_BYTES(a->config.cq_slots));
    int fds[] = {s->rw_fd, s->ro_fd, s->doorbell};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    kedge_lane_memory_free(s->memory);
    s->memory = NULL;
    s->rw = NULL;
    s->ro = NULL;
    s->rw_fd = s->ro_fd = s->doorbell = -1;
}

static int make_rings(struct agent_session *s)
{
    const struct agentd_config *c = &s->agent->config;
    void *rw = NULL, *ro = NULL;
    int status =
        kedge_memfd_new("kedge-rw", KEDGE_SESSION_RW_BYTES(c->sq_slots), false, &s->rw_fd, &rw);
    if (status == 0)
        status =
            kedge_memfd_new("kedge-ro", KEDGE_SESSION_RO_BYTES(c->cq_slots), true, &s->ro_fd, &ro);
    s->rw = rw;
    s->ro = ro;
    if (status == 0) {
        s->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        status = s->doorbell < 0 ? -errno : 0;
    }
    if (status == 0) {
        s->memory = kedge_lane_memory_new(MAX_GRANTS, (uint32_t)c->max_inflight,
                                          (uint32_t)c->max_vqps, MRS_PER_SESSION);
        status = s->memory == NULL ? -ENOMEM : 0;
    }
    if (status != 0)
        unmake_rings(s);
    return status;
}

static void make_work(uv_work_t *work)
{
    struct agent_session *s = work->data;
    s->status = make_rings(s);
}

static void unmake_work(uv_work_t *work)
{
    unmake_rings(work->data);
}

static void on_made(uv_work_t *work, int cancelled)
{
    struct agent_session *s = work->data;
    struct agent *a = s->agent;
    (void)cancelled; /* nothing here cancels */
    a->count.making--;
    a->sessions_failed = s->status != 0;
    s->stage = s->status == 0 ? STAGE_READY : STAGE_EMPTY;
    a->count.ready += s->status == 0;
}

static void on_unmade(uv_work_t *work, int cancelled)
{
    struct agent_session *s = work->data;
    (void)cancelled;
    s->stage = STAGE_EMPTY;
    s->agent->unmade++;
}

static void start(struct agent_session *s, enum stage stage, uv_work_cb work,
                  uv_after_work_cb after)
{
    s->stage = stage;
    s->work.data = s;
    int status = uv_queue_work(&s->agent->loop, &s->work, work, after);
    KEDGE_ASSERT(status == 0); /* fails without a callback alone */
}

/* ---- sessions */

static struct agent_session *find_stage(struct agent *a, enum stage stage)
{
    for (uint64_t i = 0; i < a->config.max_sessions; i++)
        if (a->sessions[i].stage == stage)
            return &a->sessions[i];
    return NULL;
}

static uint32_t bound_of(uint64_t setting)
{
    return setting == 0 || setting > UINT32_MAX ? UINT32_MAX : (uint32_t)setting;
}

void sessions_quotas(struct agent *a)
{
    for (uint32_t i = 0; i < AGENTD_TENANTS; i++) {
        a->quota[i].max_vqps = bound_of(a->tenants.at[i].config.vqps);
        a->quota[i].max_mrs = bound_of(a->tenants.at[i].config.mrs);
    }
    windows_apply(a);
}

int sessions_start(struct agent *a, struct kedge_errbuf *err)
{
    agentd_tenants_init(&a->tenants, &a->config);
    sessions_quotas(a);
    a->sessions = calloc(a->config.max_sessions, sizeof a->sessions[0]);
    if (a->sessions == NULL)
        return kedge_err(err, -ENOMEM, "out of memory for %llu sessions",
                         (unsigned long long)a->config.max_sessions);
    int status = leases_start(a);
    if (status != 0)
        return kedge_err(err, status, "there are no random numbers: %s", strerror(-status));
    for (uint64_t i = 0; i < a->config.max_sessions; i++)
        a->sessions[i] =
            (struct agent_session){.agent = a, .rw_fd = -1, .ro_fd = -1, .doorbell = -1};
    sessions_refill(a);
    while (a->count.making > 0 || a->arenas_making > 0)
        (void)uv_run(&a->loop, UV_RUN_ONCE);
    if (a->count.ready == 0 || a->count.arenas_ahead == 0)
        return kedge_err(err, -ENOMEM,
                         "no session could be made ahead: is /dev/shm or memory full, or "
                         "LimitNOFILE below 1024?");
    return 0;
}

/* Some at a time of what is ready and is to be kept no more: nobody has it. */
static void shed(struct agent *a)
{
    for (uint32_t most = SHED_AT_ONCE; most > 0 && a->count.ready > a->pool.sessions; most--) {
        struct agent_session *s = find_stage(a, STAGE_READY);
        KEDGE_ASSERT(s != NULL);
        a->count.ready--;
        start(s, STAGE_UNMAKING, unmake_work, on_unmade);
    }
    arenas_shed(a, SHED_AT_ONCE);
}

/* One after another when the last one failed: a limit is not run into many times at once. */
void sessions_refill(struct agent *a)
{
    uint32_t most = a->sessions_failed ? 1 : a->pool.sessions;
    while (!a->stopping && a->count.making < most &&
           a->count.ready + a->count.making < a->pool.sessions) {
        struct agent_session *s = find_stage(a, STAGE_EMPTY);
        if (s == NULL)
            break;
        a->count.making++;
        start(s, STAGE_MAKING, make_work, on_made);
    }
    arenas_refill(a);
    if (!a->stopping)
        memory_trim(a);
}

static bool has_sessions(const struct agent *a, uint32_t tenant)
{
    for (uint64_t i = 0; i < a->config.max_sessions; i++)
        if ((a->sessions[i].stage == STAGE_LIVE || a->sessions[i].stage == STAGE_ENDING) &&
            a->sessions[i].tenant == tenant)
            return true;
    return false;
}

/* Those that nobody says any more: their memory goes when the last session is over, and the place
 * when the memory is gone. */
static void tenants_rest(struct agent *a)
{
    for (uint32_t i = 0; i < AGENTD_TENANTS; i++) {
        if (a->tenants.at[i].state != AGENTD_TENANT_LEAVING || has_sessions(a, i + 1))
            continue;
        arenas_forget(a, i + 1);
        agentd_tenant_rest(&a->tenants, i);
        if (a->tenants.at[i].state == AGENTD_TENANT_FREE) {
            a->quota[i].refused = 0;
            windows_forget_tenant(a, i + 1);
        }
    }
}

/* What is made ahead takes processors and the device while the worker that has just come makes its
 * first requests: that waits until it is quiet, or little is left. */
void sessions_tick(struct agent *a)
{
    tenants_rest(a);
    pool_tick(a);
    shed(a);
    leases_tick(a);
    if (kedge_clock_ns() - a->taken_ns > QUIET_MS * KEDGE_NS_PER_MS)
        sessions_refill(a);
    else
        sessions_taken(a);
}

void sessions_taken(struct agent *a)
{
    if (2 * a->count.ready < a->pool.sessions || 2 * a->count.arenas_ahead < a->pool.arenas)
        sessions_refill(a);
}

uint32_t sessions_of_tenant(const struct agent *a, uint32_t tenant)
{
    uint32_t n = 0;
    for (uint64_t i = 0; i < a->config.max_sessions; i++)
        n += a->sessions[i].stage == STAGE_LIVE && a->sessions[i].tenant == tenant;
    return n;
}

static int over_quota(struct agent *a, uint32_t tenant)
{
    a->quota[tenant - 1].refused++;
    return -EDQUOT;
}

static int check_quota(struct agent *a, uint32_t tenant, uint64_t more_sessions,
                       uint64_t more_bytes)
{
    const struct agentd_tenant_config *t = tenant_of(a, tenant);
    uint64_t sessions = more_sessions, bytes = more_bytes;
    for (uint64_t i = 0; i < a->config.max_sessions; i++) {
        const struct agent_session *s = &a->sessions[i];
        if ((s->stage != STAGE_LIVE && s->stage != STAGE_ENDING) || s->tenant != tenant)
            continue;
        sessions += s->stage == STAGE_LIVE || s->held;
        for (uint32_t n = 0; n < s->arenas; n++)
            bytes += s->arena[n]->bytes;
        bytes += s->arena_asked != NULL ? s->arena_asked->bytes : 0;
    }
    if (sessions <= t->sessions && bytes <= t->memory)
        return 0;
    return over_quota(a, tenant);
}

static struct kedge_lane_arena lane_arena(const struct arena *arena)
{
    return (struct kedge_lane_arena){.addr = arena->mem.addr,
                                     .bytes = arena->mem.size,
                                     .lkey = arena->mr->lkey,
                                     .rkey = arena->mr->rkey};
}

static void fill_in(struct agent *a, struct agent_session *s)
{
    struct kedge_session_ro *ro = s->ro;
    const struct agentd_tenant_config *t = tenant_of(a, s->tenant);
    ro->magic = KEDGE_SESSION_MAGIC;
    ro->version = KEDGE_SESSION_VERSION;
    ro->sq_slots = (uint32_t)a->config.sq_slots;
    ro->cq_slots = (uint32_t)a->config.cq_slots;
    ro->max_vqps = (uint32_t)a->config.max_vqps;
    ro->max_inflight = (uint32_t)a->config.max_inflight;
    ro->tenant = t->id;
    ro->pool = (uint16_t)a->config.pool_number;
    memcpy(ro->gid, a->device.fab->caps.gid, sizeof ro->gid);
    atomic_store(&ro->doorbell, 1);
}

int session_take(struct agent *a, uint32_t tenant, uid_t uid, pid_t pid, struct connection *c,
                 uint32_t *number)
{
    struct arena *arena = NULL;
    const uint64_t not_ahead = a->count.not_ahead;
    int status = check_quota(a, tenant, 1, a->config.arena_bytes);
    if (status != 0)
        return status;
    struct agent_session *s = find_stage(a, STAGE_READY);
    if (s == NULL) {
        s = find_stage(a, STAGE_EMPTY);
        status = s == NULL ? -EAGAIN : make_rings(s);
        if (status != 0)
            return status;
        s->stage = STAGE_READY;
        a->count.ready++;
        a->count.not_ahead++;
    }
    status = arena_take(a, tenant, &arena);
    if (status != 0)
        return status;
    *number = (uint32_t)(s - a->sessions);
    status = lane_thread_watch(a, *number, s->doorbell);
    if (status != 0) {
        arena_retire(arena);
        return status;
    }
    s->stage = STAGE_LIVE;
    s->serial = ++a->leases.serial;
    s->attached_ns = kedge_clock_ns();
    s->tenant = tenant;
    s->uid = uid;
    s->pid = pid;
    s->connection = c;
    s->arena[0] = arena;
    s->arenas = 1;
    a->count.ready--;
    a->count.live++;
    a->count.attached++;
    a->count.attached_ahead += a->count.not_ahead == not_ahead;
    pool_taken(a);
    a->taken_ns = s->attached_ns;
    fill_in(a, s);
    return 0;
}

void session_begin(struct agent *a, uint32_t number)
{
    struct agent_session *s = &a->sessions[number];
    struct kedge_command command = {.kind = KEDGE_COMMAND_SESSION_ADD,
                                    .session = number,
                                    .add = {.id = number,
                                            .rw = s->rw,
                                            .ro = s->ro,
                                            .tenant = s->ro->tenant,
                                            .tenant_slot = s->tenant - 1,
                                            .max_vqps = s->ro->max_vqps,
                                            .max_inflight = s->ro->max_inflight,
                                            .max_mrs = MRS_PER_SESSION,
                                            .quota = &a->quota[s->tenant - 1],
                                            .memory = s->memory,
                                            .arena = lane_arena(s->arena[0])}};
    lane_thread_command(a, &command);
}

int session_more(struct agent *a, uint32_t number, uint64_t bytes)
{
    struct agent_session *s = &a->sessions[number];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (s->arena_asked != NULL)
        return -EAGAIN;
    if (s->arenas == KEDGE_SESSION_MAX_ARENAS)
        return -EDQUOT;
    if (bytes <= a->config.arena_bytes)
        bytes = a->config.arena_bytes;
    if (bytes > tenant_of(a, s->tenant)->memory)
        return over_quota(a, s->tenant);
    bytes = (bytes + page - 1) & ~(page - 1);
    int status = check_quota(a, s->tenant, 0, bytes);
    if (status == 0)
        status = arena_ask(a, s->tenant, bytes, number, &s->arena_asked);
    if (status == 0 && !s->arena_asked->asked)
        session_arena(a, s->arena_asked, 0);
    return status;
}

void session_arena(struct agent *a, struct arena *arena, int status)
{
    struct agent_session *s = &a->sessions[arena->session];
    KEDGE_ASSERT(s->arena_asked == arena);
    if (status == 0) {
        struct kedge_command command = {
            .kind = KEDGE_COMMAND_ARENA_ADD, .session = arena->session, .arena = lane_arena(arena)};
        lane_thread_command(a, &command);
        return;
    }
    s->arena_asked = NULL;
    if (s->connection != NULL)
        connection_arena(s->connection, status, NULL, 0);
}

static void give_arenas(struct agent_session *s)
{
    for (uint32_t i = 0; i < s->arenas; i++)
        arena_retire(s->arena[i]);
    if (s->arena_asked != NULL)
        arena_retire(s->arena_asked);
    s->arenas = 0;
    s->arena_asked = NULL;
}

/* All that it had. */
static void take_back(struct agent *a, struct agent_session *s)
{
    s->held = false;
    give_arenas(s);
    a->count.ending--;
    start(s, STAGE_UNMAKING, unmake_work, on_unmade);
}

static void end(struct agent *a, struct agent_session *s)
{
    s->stage = STAGE_ENDING;
    a->count.live--;
    a->count.ending++;
}

static void tell_end(struct agent *a, uint32_t number, uint32_t reason)
{
    struct kedge_command command = {
        .kind = KEDGE_COMMAND_SESSION_END, .session = number, .reason = reason};
    end(a, &a->sessions[number]);
    lane_thread_command(a, &command);
}

void session_release(struct agent *a, uint32_t number, uint32_t reason)
{
    struct agent_session *s = &a->sessions[number];
    s->connection = NULL;
    if (s->stage == STAGE_LIVE)
        tell_end(a, number, reason);
    else if (s->held)
        take_back(a, s);
}

/* tenant 0: of all. */
static void end_those(struct agent *a, uint32_t tenant, uint32_t reason)
{
    for (uint32_t i = 0; i < a->config.max_sessions; i++) {
        struct agent_session *s = &a->sessions[i];
        if (s->stage != STAGE_LIVE || (tenant != 0 && s->tenant != tenant))
            continue;
        tell_end(a, i, reason);
        if (s->connection != NULL) /* its socket tells it when the lane has said why: over() */
            connection_mute(s->connection);
    }
}

void sessions_end_tenant(struct agent *a, uint32_t tenant)
{
    end_those(a, tenant, KEDGE_REASON_TENANT);
}

void sessions_end_all(struct agent *a, uint32_t reason)
{
    end_those(a, 0, reason);
}

uint32_t sessions_left(const struct agent *a)
{
    uint32_t held = 0;
    for (uint64_t i = 0; i < a->config.max_sessions; i++)
        held += a->sessions[i].held;
    return a->count.live + a->count.ending - held;
}

static void over(struct agent *a, struct agent_session *s)
{
    lane_thread_unwatch(a, s->doorbell);
    if (s->connection != NULL)
        connection_end(s->connection);
    if (s->stage == STAGE_LIVE)
        end(a, s);
    /* The lane was given an arena and owes an answer, which must not meet the number's next
     * owner. */
    s->over = s->arena_asked != NULL && !s->arena_asked->busy;
    /* We have ended it, and its worker may still look at what has completed: what is lent again is
     * zeroed. */
    s->held = !s->over && s->connection != NULL;
    if (!s->over && !s->held)
        take_back(a, s);
}

static void arena_answered(struct agent *a, struct agent_session *s,
                           const struct kedge_lane_event *e)
{
    struct arena *arena = s->arena_asked;
    s->arena_asked = NULL;
    if (arena == NULL)
        return;
    if (e->arena.status != 0) {
        arena_retire(arena);
        arena = NULL;
    } else {
        s->arena[s->arenas++] = arena;
    }
    if (s->connection != NULL)
        connection_arena(s->connection, e->arena.status, arena, e->arena.number);
    if (s->over)
        over(a, s);
}

/* A fence under way: the session may be over, and its number another's, when it is done. */
struct fencing {
    struct kedge_fab_ctl ctl; /* first */
    struct agent *agent;
    struct kedge_command command;
};

static void on_fenced(struct kedge_fab_ctl *ctl)
{
    struct fencing *f = (struct fencing *)ctl;
    f->agent->fab_ops--;
    if (ctl->status == 0 && f->agent->lane != NULL)
        lane_thread_command(f->agent, &f->command);
    free(f);
}

static void fence(struct agent *a, const struct kedge_lane_event *e)
{
    struct fencing *f = calloc(1, sizeof *f);
    KEDGE_ASSERT(f != NULL); /* a few bytes: without them nothing else works either */
    *f = (struct fencing){
        .ctl = {.kind = KEDGE_FAB_FENCE_MR, .done = on_fenced, .fence = {.rkey = e->fence.rkey}},
        .agent = a,
        .command = {.kind = KEDGE_COMMAND_FENCED, .session = e->session, .tag = e->fence.tag}};
    a->fab_ops++;
    kedge_fab_submit(a->device.fab, &f->ctl);
}

/* A worker can bring this about as often as it likes: it must not fill the log. */
static void log_fault(struct agent *a, const struct agent_session *s,
                      const struct kedge_lane_event *e)
{
    uint32_t suppressed;
    a->count.faults++;
    if (kedge_log_allow(&a->fault_log, kedge_clock_ns(), FAULTS_LOGGED_S * KEDGE_NS_PER_S,
                        FAULTS_LOGGED, &suppressed))
        kedge_log(KEDGE_LOG_WARN, "session ended by the agent",
                  "session=%u tenant=%u uid=%u pid=%d reason=%u suppressed=%u", e->session,
                  s->tenant, (unsigned)s->uid, (int)s->pid, e->reason, suppressed);
}

void sessions_event(struct agent *a, const struct kedge_lane_event *e)
{
    struct agent_session *s = &a->sessions[e->session];
    switch (e->kind) {
    case KEDGE_EVENT_SESSION_FAULT:
        log_fault(a, s, e);
        if (s->connection != NULL)
            connection_end(s->connection);
        if (s->stage == STAGE_LIVE)
            end(a, s);
        return;
    case KEDGE_EVENT_SESSION_OVER:
        over(a, s);
        return;
    case KEDGE_EVENT_ARENA_ADDED:
        arena_answered(a, s, e);
        return;
    case KEDGE_EVENT_WANT_FENCE:
        fence(a, e);
        return;
    case KEDGE_EVENT_REVOKED:
    case KEDGE_EVENT_ARENA_RENEWED:
        leases_event(a, e);
        return;
    case KEDGE_EVENT_SPARE_DROPPED:
        paths_spare_dropped(a, e->qp);
        return;
    case KEDGE_EVENT_WANT_PATH:
    case KEDGE_EVENT_DROP_PATH:
    case KEDGE_EVENT_QP_OVERDUE:
    case KEDGE_EVENT_QP_BROKEN:
        paths_event(a, e);
        return;
    }
}

/* After the lane thread has ended: nothing is posted any more. */
void sessions_stop(struct agent *a)
{
    leases_stop(a);
    for (uint64_t i = 0; a->sessions != NULL && i < a->config.max_sessions; i++) {
        give_arenas(&a->sessions[i]);
        unmake_rings(&a->sessions[i]);
    }
    if (a->device.fab != NULL) { /* some may still be registering */
        device_settle(&a->device, &a->fab_ops);
        arenas_stop(a);
        device_settle(&a->device, &a->fab_ops);
    }
    free(a->sessions);
    a->sessions = NULL;
}
