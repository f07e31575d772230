/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and arenas: made ahead, lent, and taken back.
 *
 * A session's rings are never used again: a forked accomplice may still map them. An arena is used
 * again within its tenant alone, after the lane says that nothing of it is in flight or believed,
 * its registration is gone, and its pages are new; else it is given up (design: "Memory"). */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fds.h"
#include "base/log.h"
#include "daemon.h"

enum { MRS_PER_SESSION = 1024 };
static const unsigned ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

static struct agentd_tenant_config *tenant_of(struct agent *a, uint32_t number)
{
    return &a->config.tenant[number - 1];
}

/* ---- arenas
 * ---------------------------------------------------------------------------------------------- */

static void arena_free(struct agent *a, struct arena *arena)
{
    a->count.arenas--;
    a->count.arena_bytes -= arena->mem.size;
    kedge_fab_mem_free(&arena->mem);
    free(arena);
}

static int arena_register(struct agent *a, struct arena *arena)
{
    struct kedge_fab_ctl c = {.kind = KEDGE_FAB_REG_MR,
                              .mr = {.pd = a->device.pd,
                                     .mem = &arena->mem,
                                     .length = arena->mem.size,
                                     .access = ALL_ACCESS}};
    int status = kedge_fab_call(a->device.fab, &c);
    arena->mr = status == 0 ? c.mr.x : NULL;
    return status;
}

static int arena_make(struct agent *a, uint64_t bytes, struct arena **out)
{
    struct arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL)
        return -ENOMEM;
    int status = kedge_fab_mem_alloc(bytes, "kedge-arena", &arena->mem);
    if (status != 0) {
        free(arena);
        return status;
    }
    a->count.arenas++;
    a->count.arena_bytes += arena->mem.size;
    status = arena_register(a, arena);
    if (status != 0) {
        arena_free(a, arena);
        return status;
    }
    *out = arena;
    return 0;
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

/* Of the usual size: one that this tenant had before, else one that nobody had, else a new one. */
static int arena_take(struct agent *a, uint32_t tenant, uint64_t bytes, struct arena **out)
{
    struct arena *arena = NULL;
    if (bytes == a->config.arena_bytes) {
        arena = pop(&a->arenas_of[tenant - 1]);
        if (arena == NULL) {
            arena = pop(&a->arenas_ahead);
            a->count.arenas_ahead -= arena != NULL;
        }
    }
    if (arena == NULL) {
        int status = arena_make(a, bytes, &arena);
        if (status != 0)
            return status;
        a->count.not_ahead++;
    }
    arena->tenant = tenant;
    *out = arena;
    return 0;
}

/* Its registration is gone, so that no device reads old pages any more: now new pages, a new key,
 * and back. */
static void arena_deregistered(struct kedge_fab_ctl *ctl)
{
    struct arena *arena = ((struct arena **)ctl->user)[0];
    struct agent *a = ((struct agent **)ctl->user)[1];
    struct arena **list = &a->arenas_of[arena->tenant - 1];
    int fd = arena->mem.fd, status = ctl->status;
    free(ctl->user);
    free(ctl);
    if (status != 0) { /* still registered: never lent again, and not unmapped under a device */
        kedge_log(KEDGE_LOG_ERROR, "an arena could not be deregistered and is lost", "error=\"%s\"",
                  strerror(-status));
        return;
    }
    arena->mr = NULL;
    if (a->stopping || arena->mem.size != a->config.arena_bytes ||
        length_of(*list) >= a->config.arenas_ahead ||
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)arena->mem.size) != 0 ||
        fallocate(fd, 0, 0, (off_t)arena->mem.size) != 0 || arena_register(a, arena) != 0) {
        arena_free(a, arena);
        return;
    }
    a->count.recycled++;
    arena->next = *list;
    *list = arena;
}

/* Ends what an arena is used for. Deregistering may take as long as a stopped process is inside. */
static void arena_retire(struct agent *a, struct arena *arena)
{
    struct kedge_fab_ctl *ctl = calloc(1, sizeof *ctl);
    void **user = calloc(2, sizeof *user);
    KEDGE_ASSERT(ctl != NULL &&
                 user != NULL); /* a few bytes: without them nothing else works either */
    user[0] = arena;
    user[1] = a;
    *ctl = (struct kedge_fab_ctl){.kind = KEDGE_FAB_DEREG_MR,
                                  .done = arena_deregistered,
                                  .user = user,
                                  .mr = {.x = arena->mr}};
    kedge_fab_submit(a->device.fab, ctl);
}

/* ---- sessions
 * -------------------------------------------------------------------------------------------- */

static void session_unmake(struct agent *a, struct agent_session *s)
{
    if (s->rw != NULL)
        munmap(s->rw, KEDGE_SESSION_RW_BYTES(a->config.sq_slots));
    if (s->ro != NULL)
        munmap(s->ro, KEDGE_SESSION_RO_BYTES(a->config.cq_slots));
    int fds[] = {s->rw_fd, s->ro_fd, s->doorbell};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    *s = (struct agent_session){.rw_fd = -1, .ro_fd = -1, .doorbell = -1};
}

static int session_make(struct agent *a, struct agent_session *s)
{
    void *rw = NULL, *ro = NULL;
    int status = kedge_memfd_new("kedge-rw", KEDGE_SESSION_RW_BYTES(a->config.sq_slots), false,
                                 &s->rw_fd, &rw);
    if (status == 0)
        status = kedge_memfd_new("kedge-ro", KEDGE_SESSION_RO_BYTES(a->config.cq_slots), true,
                                 &s->ro_fd, &ro);
    s->rw = rw;
    s->ro = ro;
    if (status == 0) {
        s->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        status = s->doorbell < 0 ? -errno : 0;
    }
    if (status != 0) {
        session_unmake(a, s);
        return status;
    }
    s->stage = STAGE_READY;
    a->count.ready++;
    return 0;
}

static struct agent_session *find_stage(struct agent *a, enum stage stage)
{
    for (uint64_t i = 0; i < a->config.max_sessions; i++)
        if (a->sessions[i].stage == stage)
            return &a->sessions[i];
    return NULL;
}

int sessions_start(struct agent *a, struct kedge_errbuf *err)
{
    a->sessions = calloc(a->config.max_sessions, sizeof a->sessions[0]);
    if (a->sessions == NULL)
        return kedge_err(err, -ENOMEM, "out of memory for %llu sessions",
                         (unsigned long long)a->config.max_sessions);
    for (uint64_t i = 0; i < a->config.max_sessions; i++)
        a->sessions[i] = (struct agent_session){.rw_fd = -1, .ro_fd = -1, .doorbell = -1};
    sessions_refill(a);
    if (a->count.ready == 0 || a->count.arenas_ahead == 0)
        return kedge_err(err, -ENOMEM,
                         "no session could be made ahead: is /dev/shm or memory full, or "
                         "LimitNOFILE below 1024?");
    return 0;
}

/* A little each time, so that nobody waits long behind it. */
void sessions_refill(struct agent *a)
{
    for (int i = 0; i < 8 && a->count.ready < a->config.sessions_ahead; i++) {
        struct agent_session *s = find_stage(a, STAGE_EMPTY);
        if (s == NULL || session_make(a, s) != 0)
            break;
    }
    for (int i = 0; i < 8 && a->count.arenas_ahead < a->config.arenas_ahead; i++) {
        struct arena *arena;
        if (arena_make(a, a->config.arena_bytes, &arena) != 0)
            break;
        arena->next = a->arenas_ahead;
        a->arenas_ahead = arena;
        a->count.arenas_ahead++;
    }
}

static int check_quota(struct agent *a, uint32_t tenant, uint64_t more_sessions,
                       uint64_t more_bytes)
{
    const struct agentd_tenant_config *t = tenant_of(a, tenant);
    uint64_t sessions = more_sessions, bytes = more_bytes;
    for (uint64_t i = 0; i < a->config.max_sessions; i++) {
        const struct agent_session *s = &a->sessions[i];
        if (s->stage < STAGE_LIVE || s->tenant != tenant)
            continue;
        sessions += s->stage == STAGE_LIVE;
        for (uint32_t n = 0; n < s->arenas; n++)
            bytes += s->arena[n]->mem.size;
    }
    return sessions > t->sessions || bytes > t->memory ? -EDQUOT : 0;
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
    int status = check_quota(a, tenant, 1, a->config.arena_bytes);
    if (status != 0)
        return status;
    struct agent_session *s = find_stage(a, STAGE_READY);
    if (s == NULL) {
        s = find_stage(a, STAGE_EMPTY);
        status = s == NULL ? -EAGAIN : session_make(a, s);
        a->count.not_ahead += status == 0;
    }
    if (status == 0)
        status = arena_take(a, tenant, a->config.arena_bytes, &arena);
    if (status != 0)
        return status;
    *number = (uint32_t)(s - a->sessions);
    status = lane_thread_watch(a, *number, s->doorbell);
    if (status != 0) {
        arena_retire(a, arena);
        return status;
    }
    s->stage = STAGE_LIVE;
    s->tenant = tenant;
    s->uid = uid;
    s->pid = pid;
    s->connection = c;
    s->arena[0] = arena;
    s->arenas = 1;
    a->count.ready--;
    a->count.live++;
    a->count.attached++;
    fill_in(a, s);
    struct kedge_command command = {.kind = KEDGE_COMMAND_SESSION_ADD,
                                    .session = *number,
                                    .add = {.id = *number,
                                            .rw = s->rw,
                                            .ro = s->ro,
                                            .tenant = s->ro->tenant,
                                            .max_vqps = s->ro->max_vqps,
                                            .max_inflight = s->ro->max_inflight,
                                            .max_mrs = MRS_PER_SESSION,
                                            .arena = lane_arena(arena)}};
    lane_thread_command(a, &command);
    return 0;
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
        return -EDQUOT;
    bytes = (bytes + page - 1) & ~(page - 1);
    int status = check_quota(a, s->tenant, 0, bytes);
    if (status == 0)
        status = arena_take(a, s->tenant, bytes, &s->arena_asked);
    if (status != 0)
        return status;
    struct kedge_command command = {
        .kind = KEDGE_COMMAND_ARENA_ADD, .session = number, .arena = lane_arena(s->arena_asked)};
    lane_thread_command(a, &command);
    return 0;
}

static void end(struct agent *a, struct agent_session *s)
{
    s->stage = STAGE_ENDING;
    s->connection = NULL;
    a->count.live--;
    a->count.ending++;
}

void session_release(struct agent *a, uint32_t number, uint32_t reason)
{
    struct agent_session *s = &a->sessions[number];
    if (s->stage != STAGE_LIVE)
        return;
    end(a, s);
    struct kedge_command command = {
        .kind = KEDGE_COMMAND_SESSION_END, .session = number, .reason = reason};
    lane_thread_command(a, &command);
}

static void over(struct agent *a, struct agent_session *s)
{
    lane_thread_unwatch(a, s->doorbell);
    if (s->stage == STAGE_LIVE)
        end(a, s);
    for (uint32_t i = 0; i < s->arenas; i++)
        arena_retire(a, s->arena[i]);
    if (s->arena_asked != NULL)
        arena_retire(a, s->arena_asked);
    a->count.ending--;
    session_unmake(a, s);
}

static void arena_answered(struct agent_session *s, const struct kedge_lane_event *e,
                           struct agent *a)
{
    struct arena *arena = s->arena_asked;
    s->arena_asked = NULL;
    if (arena == NULL)
        return;
    if (e->arena.status != 0) {
        arena_retire(a, arena);
        arena = NULL;
    } else {
        s->arena[s->arenas++] = arena;
    }
    if (s->connection != NULL)
        connection_arena(s->connection, e->arena.status, arena, e->arena.number);
}

static void make_ah(struct agent *a, const struct kedge_lane_event *e)
{
    struct kedge_fab_ctl c = {.kind = KEDGE_FAB_CREATE_AH, .ah = {.pd = a->device.pd}};
    struct kedge_command command = {.kind = KEDGE_COMMAND_AH_READY};
    c.ah.attr.is_global = 1;
    c.ah.attr.port_num = a->device.fab->caps.port_num;
    memcpy(c.ah.attr.grh.dgid.raw, e->want_ah.gid, 16);
    command.ah.flow = e->want_ah.flow;
    command.ah.status = kedge_fab_call(a->device.fab, &c);
    command.ah.ah = command.ah.status == 0 ? c.ah.x : NULL;
    lane_thread_command(a, &command);
}

void sessions_event(struct agent *a, const struct kedge_lane_event *e)
{
    struct kedge_command command = {.kind = KEDGE_COMMAND_QP_READY};
    struct kedge_fab_ctl drop = {.kind = KEDGE_FAB_DESTROY_AH};
    struct agent_session *s = &a->sessions[e->session];
    switch (e->kind) {
    case KEDGE_EVENT_SESSION_FAULT:
        kedge_log(KEDGE_LOG_WARN, "session ended by the agent",
                  "session=%u tenant=%u uid=%u pid=%d reason=%u", e->session, s->tenant,
                  (unsigned)s->uid, (int)s->pid, e->reason);
        if (s->connection != NULL)
            connection_close(s->connection);
        if (s->stage == STAGE_LIVE)
            end(a, s);
        return;
    case KEDGE_EVENT_SESSION_OVER:
        over(a, s);
        return;
    case KEDGE_EVENT_ARENA_ADDED:
        arena_answered(s, e, a);
        return;
    case KEDGE_EVENT_WANT_AH:
        make_ah(a, e);
        return;
    case KEDGE_EVENT_DROP_AH:
        drop.ah.x = e->ah;
        (void)kedge_fab_call(a->device.fab, &drop);
        return;
    case KEDGE_EVENT_QP_BROKEN:
        kedge_log(KEDGE_LOG_INFO, "queue pair repaired", "qpn=%u", e->qp->qpn);
        if (device_raise_dci(&a->device, e->qp) != 0)
            return; /* it stays out of use */
        command.qp = e->qp;
        lane_thread_command(a, &command);
        return;
    }
}

/* After the lane thread has ended: nothing is posted any more. */
void sessions_stop(struct agent *a)
{
    for (uint64_t i = 0; a->sessions != NULL && i < a->config.max_sessions; i++) {
        struct agent_session *s = &a->sessions[i];
        for (uint32_t n = 0; n < s->arenas; n++)
            arena_retire(a, s->arena[n]);
        if (s->arena_asked != NULL)
            arena_retire(a, s->arena_asked);
        session_unmake(a, s);
    }
    struct arena **lists[AGENTD_TENANTS + 1];
    for (int i = 0; i < AGENTD_TENANTS; i++)
        lists[i] = &a->arenas_of[i];
    lists[AGENTD_TENANTS] = &a->arenas_ahead;
    for (int i = 0; i <= AGENTD_TENANTS; i++)
        for (struct arena *arena; (arena = pop(lists[i])) != NULL;) {
            if (arena->tenant == 0)
                arena->tenant = 1;
            arena_retire(a, arena);
        }
    if (a->device.fab != NULL)
        (void)kedge_fab_run(a->device.fab);
    free(a->sessions);
    a->sessions = NULL;
}
