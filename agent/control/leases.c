/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that the operator revokes.
 *
 * The lane withdraws them, and their worker lives on. By force registrations of their own go at
 * once; of those that have none the arena that they are in gets another registration first, the
 * lane goes over to it, and the former one is deregistered: then no device carries out what peers
 * still believe. What its worker registers there in between waits for the other registration, or
 * hears with FORCE_OVER that there is none; nor does it wait for long (FORCE_LATE). The arena is
 * busy all the while, so that whatever becomes of its worker it is not lent again before that. All
 * arenas of a worker that are to go do so at once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent_query.h"
#include "arenas.h"
#include "base/assert.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "due.h"
#include "lane_setup.h"
#include "leases.h"
#include "pool.h"
#include "pools.h"
#include "publications.h"
#include "revocations.h"
#include "session_moves.h"
#include "sessions.h"

enum {
    ANSWER_MS = 30000, /* rdmactl waits a little longer */
    HELD_MS = 3000,    /* kedge_reg_mr() waits for 5 s */
};

int agent_leases_start(struct agent *a)
{
    return world_random(a->world, &a->serial, sizeof a->serial);
}

/* ---- whose */

bool agent_session_has_leases(const struct agent_session *s)
{
    return s->stage == STAGE_LIVE || s->stage == STAGE_ENDING;
}

/* Its number in its pool: what the lane knows it by. */
static uint32_t number_of(const struct revocation *r)
{
    return r->owner.id.session % (uint32_t)r->pool->config->max_sessions;
}

static uint32_t place_of_session(const struct agent_session *s)
{
    const struct pool *p = s->pool;
    return p->place * (uint32_t)p->config->max_sessions + (uint32_t)(s - p->sessions);
}

void agent_session_owner(const struct agent_session *s, struct lease_owner *out)
{
    const struct pool *p = s->pool;
    *out =
        (struct lease_owner){.id = {place_of_session(s), s->serial}, .uid = s->uid, .pid = s->pid};
    memcpy(out->tenant, p->agent->tenants.at[s->tenant - 1].config.name, sizeof out->tenant);
}

struct agent_session *agent_session_at(const struct agent *a, uint32_t place)
{
    const uint32_t each = (uint32_t)a->config.max_sessions;
    const struct pool *p = place / each < POOLS ? a->pools[place / each] : NULL;
    return p != NULL && p->sessions != NULL ? &p->sessions[place % each] : NULL;
}

struct agent_session *agent_session_of_worker(const struct agent *a,
                                              const struct agent_worker_id *id)
{
    struct agent_session *s = agent_session_at(a, id->session);
    return s != NULL && agent_session_has_leases(s) && s->serial == id->serial ? s : NULL;
}

static struct agent_session *live_session(const struct revocation *r)
{
    struct agent_session *s = agent_session_of_worker(r->pool->agent, &r->owner.id);
    return s != NULL && s->stage == STAGE_LIVE ? s : NULL;
}

/* ---- one revocation */

/* No other pool has the same: what a lane answers of another lane's session names it. */
static uint32_t next_tag(struct pool *p)
{
    return ++p->leases.tag * POOLS + p->place;
}

static struct revocation *find_revocation(struct pool *p, uint32_t tag)
{
    struct revocation *r = p->leases.list;
    while (r != NULL && r->tag != tag)
        r = r->next;
    return r;
}

static struct reregistration *find_reregistration(struct pool *p, uint32_t tag)
{
    for (struct revocation *r = p->leases.list; r != NULL; r = r->next)
        for (uint32_t i = 0; i < LANE_SESSION_MAX_ARENAS; i++)
            if (r->reregistration[i].arena != NULL &&
                r->reregistration[i].stage == REREGISTRATION_ASKED &&
                r->reregistration[i].tag == tag)
                return &r->reregistration[i];
    return NULL;
}

bool agent_session_find_lease(const struct agent_session *s, uint32_t number,
                              struct lane_lease *out)
{
    for (uint32_t i = 0; i < lane_leases(s->rings.memory); i++)
        if (lane_lease(s->rings.memory, i, out) && out->number == number)
            return true;
    return false;
}

bool agent_revocation_is_over_for(const struct revocation *r, const struct lane_lease *lease)
{
    return lease->state == LANE_LEASE_REVOKED ||
           (!lease->own && (r->freed >> lease->arena & 1) != 0);
}

bool agent_revocation_is_over(const struct revocation *r)
{
    const struct agent_session *s = agent_session_of_worker(r->pool->agent, &r->owner.id);
    struct lane_lease now;
    for (uint32_t i = 0; s != NULL && i < r->count; i++)
        if (agent_session_find_lease(s, r->lease[i].number, &now) &&
            !agent_revocation_is_over_for(r, &now))
            return false;
    return true;
}

bool agent_revocation_is_awaited(const struct revocation *r)
{
    for (int i = 0; i < REVOCATION_ASKERS; i++)
        if (asker_waits(r->by[i]))
            return true;
    return false;
}

/* All who wait for it are known to have gone. */
static bool is_deserted(const struct revocation *r)
{
    for (int i = 0; i < REVOCATION_ASKERS; i++)
        if (asker_waits(r->by[i]) && !agent_asker_is_gone(r->by[i]))
            return false;
    return true;
}

static void forget_revocation(struct revocation *r)
{
    for (struct revocation **at = &r->pool->leases.list; *at != NULL; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    free(r);
}

static void tell_lane(const struct revocation *r, enum lane_command_kind kind)
{
    const struct lane_command command = {.kind = kind, .session = number_of(r)};
    if (r->pool->lane != NULL && live_session(r) != NULL)
        agent_session_command(r->pool, &command);
}

/* Nothing more is begun; who has asked is answered when it is over. */
static void end_revocation(struct revocation *r, int status)
{
    r->stage = SETTLED;
    if (r->force) /* its worker's new regions wait for no other registration any more */
        tell_lane(r, LANE_COMMAND_FORCE_OVER);
    if (agent_revocation_is_awaited(r) && status == 0 && r->failed == 0 &&
        !agent_revocation_is_over(r))
        return;
    agent_revocation_reply(r, status);
    forget_revocation(r);
}

static void add_lease(struct revocation *r, const struct lane_lease *lease)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->lease[i].number == lease->number)
            return;
    if (r->count < sizeof r->lease / sizeof r->lease[0])
        r->lease[r->count++] = *lease;
}

/* By force all that peers may still reach in those arenas. */
static bool takes_lease(const struct revocation *r, uint32_t arenas, const struct lane_lease *lease)
{
    const bool asked = r->number == 0 || lease->number == r->number;
    return asked ||
           ((arenas >> lease->arena & 1) != 0 && !lease->own && lease->state != LANE_LEASE_REVOKED);
}

static void collect_leases(struct revocation *r, const struct agent_session *s, uint32_t arenas,
                           uint32_t last)
{
    struct lane_lease lease;
    for (uint32_t i = 0; i < lane_leases(s->rings.memory); i++)
        if (lane_lease(s->rings.memory, i, &lease) && lease.number <= last &&
            takes_lease(r, arenas, &lease))
            add_lease(r, &lease);
}

/* Those of regions with registrations of their own have nothing to do with it: these go. */
static uint32_t arenas_of(const struct revocation *r)
{
    uint32_t arenas = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (r->lease[i].state != LANE_LEASE_REVOKED && !r->lease[i].own)
            arenas |= 1u << r->lease[i].arena;
    return arenas;
}

/* What its worker registered after we had looked, and before the lane was told. What came later
 * than that is not revoked, and not named. */
static void collect_revoked(struct revocation *r)
{
    const struct agent_session *s = agent_session_of_worker(r->pool->agent, &r->owner.id);
    const uint32_t arenas = r->force ? arenas_of(r) : 0;
    struct lane_lease lease;
    for (uint32_t i = 0; s != NULL && i < lane_leases(s->rings.memory); i++)
        if (lane_lease(s->rings.memory, i, &lease) && lease.revoked &&
            takes_lease(r, arenas, &lease))
            add_lease(r, &lease);
}

static bool is_same_worker(const struct lease_owner *a, const struct lease_owner *b)
{
    return a->id.session == b->id.session && a->id.serial == b->id.serial;
}

/* The same, asked for by somebody else meanwhile, as by two metaservers. All of a worker's is the
 * same as long as the lane looks what that is. */
static bool join_revocation(struct pool *p, struct asker by, const struct lease_owner *owner,
                            uint32_t number, bool force)
{
    for (struct revocation *r = p->leases.list; r != NULL; r = r->next) {
        if (r->number != number || r->force != force || !is_same_worker(&r->owner, owner) ||
            !agent_revocation_is_awaited(r) || (number == 0 && r->stage != REVOKING))
            continue;
        for (int i = 0; i < REVOCATION_ASKERS; i++)
            if (!asker_waits(r->by[i])) {
                r->by[i] = by;
                return true;
            }
    }
    return false;
}

int agent_revocation_begin(struct asker by, struct agent_session *s, uint32_t number, bool force)
{
    struct pool *p = s->pool;
    struct lease_owner owner;
    agent_session_owner(s, &owner);
    if (join_revocation(p, by, &owner, number, force))
        return 0;
    for (const struct revocation *r = p->leases.list; r != NULL; r = r->next)
        if (r->force && r->stage != SETTLED && is_same_worker(&r->owner, &owner))
            return -EBUSY;
    struct revocation *r = calloc(1, sizeof *r);
    if (r == NULL)
        return -ENOMEM;
    r->pool = p;
    r->by[0] = by;
    r->owner = owner;
    r->number = number;
    r->force = force;
    r->tag = next_tag(p);
    r->begun_ns = world_now_ns(p->world);
    uint32_t arenas = 0;
    collect_leases(r, s, 0, UINT32_MAX);
    if (force) {
        arenas = arenas_of(r);
        collect_leases(r, s, arenas, UINT32_MAX);
        /* A worker can use an arena a moment before we have heard of it. */
        r->arenas = arenas & ((1u << s->arenas) - 1);
    }
    r->next = p->leases.list;
    p->leases.list = r;
    struct lane_command command = {.kind = LANE_COMMAND_REVOKE,
                                   .session = number_of(r),
                                   .revoke = {.tag = r->tag,
                                              .number = arenas != 0 ? 0 : number,
                                              .arenas = force ? arenas : UINT32_MAX,
                                              .own = number == 0,
                                              .force = force}};
    agent_session_command(p, &command);
    return 0;
}

/* ---- by force */

/* What its worker left waits no longer. */
static void release_arena(struct reregistration *n)
{
    struct arena *arena = n->arena;
    n->arena = NULL;
    n->of->under_way--;
    arena->busy = false;
    if (!arena->unwanted)
        return;
    arena->unwanted = false;
    agent_arena_retire(arena);
}

static void submit_op(struct reregistration *n, void (*done)(struct fab_ctl *ctl))
{
    n->ctl.done = done;
    n->ctl.user = n;
    n->of->pool->fab_ops++;
    fab_submit(n->of->pool->device.fab, &n->ctl);
}

static struct reregistration *end_op(struct fab_ctl *ctl)
{
    struct reregistration *n = ctl->user;
    n->of->pool->fab_ops--;
    return n;
}

static void go_on(struct revocation *r);

static void say_lost(struct reregistration *n, int status)
{
    if (status == 0)
        return;
    n->of->failed = status;
    n->arena->lost = true;
    world_log(n->of->pool->world, BASE_LOG_ERROR,
              "a registration cannot be given back: its arena is lent no more",
              "session=%u arena=%u error=\"%s\"", n->of->owner.id.session, n->number,
              strerror(-status));
}

static void say_freed(const struct reregistration *n)
{
    const struct revocation *r = n->of;
    const struct lane_command command = {
        .kind = LANE_COMMAND_FENCED, .session = number_of(r), .tag = n->fence_tag};
    world_log(r->pool->world, BASE_LOG_WARN,
              "an arena's registration was taken away by the operator",
              "session=%u tenant=%s pid=%d arena=%u took_us=%llu", r->owner.id.session,
              r->owner.tenant, (int)r->owner.pid, n->number,
              (unsigned long long)((world_now_ns(r->pool->world) - r->begun_ns) / 1000));
    if (r->pool->lane != NULL && live_session(r) != NULL)
        agent_session_command(r->pool, &command);
}

static void on_deregistered(struct fab_ctl *ctl)
{
    struct reregistration *n = end_op(ctl);
    struct revocation *r = n->of;
    say_lost(n, ctl->status);
    if (ctl->status == 0) {
        r->freed |= 1u << n->number;
        r->pool->leases.forced++;
        say_freed(n);
    }
    release_arena(n);
    go_on(r);
}

/* The new registration is of no use: its worker has ended, and with it goes the former. */
static void on_given_up(struct fab_ctl *ctl)
{
    struct reregistration *n = end_op(ctl);
    struct revocation *r = n->of;
    say_lost(n, ctl->status);
    release_arena(n);
    r->arenas = 0;
    go_on(r);
}

static void give_up(struct reregistration *n)
{
    n->stage = REREGISTRATION_DEREGISTERING;
    n->ctl = (struct fab_ctl){.kind = FAB_DEREG_MR, .mr = {.x = n->mr}};
    submit_op(n, on_given_up);
}

/* All at once are twice as much locked memory as there was, where one after the other takes one
 * arena more: that is tried before it is given up. */
static void on_not_registered(struct reregistration *n, int status)
{
    struct revocation *r = n->of;
    release_arena(n);
    if (n->alone) {
        r->failed = status;
        r->arenas = 0;
    } else {
        r->in_turn = true;
        r->arenas |= 1u << n->number;
    }
    go_on(r);
}

static void on_registered(struct fab_ctl *ctl)
{
    struct reregistration *n = end_op(ctl);
    struct revocation *r = n->of;
    struct pool *p = r->pool;
    if (ctl->status != 0) {
        on_not_registered(n, ctl->status);
        return;
    }
    n->mr = ctl->mr.x;
    if (p->stopping || live_session(r) == NULL) {
        give_up(n);
        return;
    }
    n->stage = REREGISTRATION_ASKED;
    n->tag = next_tag(p);
    struct lane_command command = {.kind = LANE_COMMAND_ARENA_REREGISTER,
                                   .session = number_of(r),
                                   .reregister = {.tag = n->tag,
                                                  .number = n->number,
                                                  .lkey = n->mr->lkey,
                                                  .rkey = n->mr->rkey,
                                                  .iova = n->mr->addr}};
    agent_session_command(p, &command);
}

static void begin_reregistration(struct revocation *r, struct agent_session *s, uint32_t number)
{
    struct reregistration *n = &r->reregistration[number];
    BASE_ASSERT(number < s->arenas && !s->arena[number]->busy);
    *n = (struct reregistration){.of = r,
                                 .arena = s->arena[number],
                                 .number = number,
                                 .alone = r->in_turn || (r->arenas == 0 && r->under_way == 0),
                                 .ctl = agent_arena_whole(s->arena[number])};
    n->arena->busy = true;
    r->under_way++;
    submit_op(n, on_registered);
}

/* All at once: what a worker registers in one arena meanwhile does not wait for another one's
 * registration, or for a dead peer that its requests from there are out to. */
static void go_on(struct revocation *r)
{
    struct agent_session *s = live_session(r);
    if (s == NULL || r->pool->stopping)
        r->arenas = 0;
    while (r->arenas != 0 && (r->under_way == 0 || !r->in_turn)) {
        const uint32_t number = (uint32_t)__builtin_ctz(r->arenas);
        r->arenas &= ~(1u << number);
        begin_reregistration(r, s, number);
    }
    if (r->under_way == 0)
        end_revocation(r, 0);
}

/* ---- what the lane answers */

static void on_revoked(struct revocation *r, const struct lane_event *e)
{
    if (e->answer.status == 0)
        collect_revoked(r);
    if (e->answer.taken > 0)
        world_log(r->pool->world, BASE_LOG_WARN, "leases were revoked by the operator",
                  "session=%u tenant=%s uid=%u pid=%d leases=%u lease=%u forced=%s",
                  r->owner.id.session, r->owner.tenant, (unsigned)r->owner.uid, (int)r->owner.pid,
                  e->answer.taken, r->number, r->force ? "true" : "false");
    if (e->answer.status != 0 || !r->force) {
        end_revocation(r, e->answer.status);
        return;
    }
    r->stage = FORCING;
    go_on(r);
}

static void on_reregistered(struct reregistration *n, const struct lane_event *e)
{
    struct revocation *r = n->of;
    struct agent_session *s = agent_session_of_worker(r->pool->agent, &r->owner.id);
    if (e->answer.status != 0) {
        give_up(n);
        return;
    }
    if (s != NULL) /* what the lane took with the arena; what is registered meanwhile waits there */
        collect_leases(r, s, 1u << n->number, e->answer.last);
    struct fab_mr *old = n->arena->mr;
    n->arena->mr = n->mr;
    n->mr = old;
    n->fence_tag = e->answer.fence_tag;
    n->stage = REREGISTRATION_DEREGISTERING;
    n->ctl = (struct fab_ctl){.kind = FAB_DEREG_MR, .mr = {.x = old}};
    submit_op(n, on_deregistered);
}

void agent_leases_event(struct pool *p, const struct lane_event *e)
{
    p->leases.revoked += e->answer.taken;
    agent_publications_look(p->agent);
    if (e->kind == LANE_EVENT_REVOKED) {
        struct revocation *r = find_revocation(p, e->answer.tag);
        BASE_ASSERT(r != NULL);
        on_revoked(r, e);
    } else {
        struct reregistration *n = find_reregistration(p, e->answer.tag);
        BASE_ASSERT(n != NULL);
        on_reregistered(n, e);
    }
}

/* Whoever asks at the admin socket may go at any time, and nothing tells. */
uint64_t agent_leases_due_ns(const struct pool *p)
{
    return due_if(p->leases.list != NULL, DUE_NOW);
}

/* By force, a peer that is dead, or a process that stands still inside the memory, makes it take
 * long. Who registers a region meanwhile hears so before he thinks that the agent is gone, and has
 * no region that he does not know of. */
void agent_leases_tick(struct pool *p)
{
    const uint64_t now = world_now_ns(p->world);
    for (struct revocation *r = p->leases.list, *next; r != NULL; r = next) {
        next = r->next;
        if (r->stage == FORCING && now - r->begun_ns > (uint64_t)HELD_MS * BASE_NS_PER_MS)
            tell_lane(r, LANE_COMMAND_FORCE_LATE);
        const bool over = r->stage == SETTLED && agent_revocation_is_over(r);
        if (over || now - r->begun_ns > (uint64_t)ANSWER_MS * BASE_NS_PER_MS || is_deserted(r))
            agent_revocation_reply(r, 0);
        if (!agent_revocation_is_awaited(r) && r->stage == SETTLED)
            forget_revocation(r);
    }
}

void agent_leases_forget_request(struct pool *p, const struct world_request *request)
{
    for (struct revocation *r = p->leases.list; r != NULL; r = r->next)
        for (int i = 0; i < REVOCATION_ASKERS; i++)
            if (r->by[i].request == request)
                r->by[i].request = NULL;
}

void agent_leases_forget_asked(struct agent *a)
{
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        for (struct revocation *r = p->leases.list; r != NULL; r = r->next)
            for (int i = 0; i < REVOCATION_ASKERS; i++)
                r->by[i].asked = NULL;
}

/* The lane answers no more, and posts no more; what the device is doing it goes on with. */
void agent_leases_stop(struct pool *p)
{
    for (struct revocation *r = p->leases.list, *next; r != NULL; r = next) {
        next = r->next;
        if (r->stage != FORCING) {
            forget_revocation(r);
            continue;
        }
        for (uint32_t i = 0; i < LANE_SESSION_MAX_ARENAS; i++)
            if (r->reregistration[i].arena != NULL &&
                r->reregistration[i].stage == REREGISTRATION_ASKED)
                give_up(&r->reregistration[i]);
    }
}
