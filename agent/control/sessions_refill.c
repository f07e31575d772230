/* SPDX-License-Identifier: Apache-2.0 */
/* How many sessions and arenas are kept ready: made when some are missing, given back when there
 * are too many. */
#include "agent.h"
#include "arenas.h"
#include "base/clock.h"
#include "bounds.h"
#include "due.h"
#include "fences.h"
#include "leases.h"
#include "memory_reclaim.h"
#include "pools.h"
#include "prewarm.h"
#include "sessions.h"

/* For one more: all pools share what the agent may have. */
static struct agent_session *find_place(const struct pool *p)
{
    return agent_pools_sessions(p->agent) < p->config->max_sessions
               ? TAILQ_FIRST(&p->sessions_empty)
               : NULL;
}

static bool are_too_many(const struct pool *p)
{
    return p->count.ready > p->prewarm.sessions + p->queue.by_tenant.waiting;
}

/* Some at a time of what is ready and is to be kept no more. */
static void shed_some(struct pool *p)
{
    for (uint32_t most = SHED_AT_ONCE; most > 0 && are_too_many(p); most--)
        agent_session_shed(p);
    agent_arenas_shed(p, SHED_AT_ONCE);
}

/* Whether a worker waits there for a session that is not being made. */
static bool is_awaited(const struct pool *p)
{
    return !p->stopping && p->queue.by_tenant.waiting > p->count.ready + p->count.making;
}

static bool is_awaited_elsewhere(const struct pool *p)
{
    for (const struct pool *o = agent_pools_next(p->agent, NULL); o != NULL;
         o = agent_pools_next(p->agent, o))
        if (o != p && is_awaited(o))
            return true;
    return false;
}

/* Of those that are ready and nobody waits for there: the one with the most; NULL: none has any. */
static struct pool *find_most(const struct pool *p)
{
    struct pool *most = NULL;
    for (struct pool *o = agent_pools_next(p->agent, NULL); o != NULL;
         o = agent_pools_next(p->agent, o))
        if (o != p && o->count.ready > o->queue.by_tenant.waiting &&
            (most == NULL || o->count.ready > most->count.ready))
            most = o;
    return most;
}

/* Another pool gives up one. */
static bool can_make_room(const struct pool *p)
{
    return is_awaited(p) && !TAILQ_EMPTY(&p->sessions_empty) && find_most(p) != NULL;
}

/* Who waits comes before what pools keep ready, be it another pool that he waits for. */
static bool has_turn(const struct pool *p)
{
    return is_awaited(p) || !is_awaited_elsewhere(p);
}

static struct agent_session *find_room(struct pool *p)
{
    if (!has_turn(p))
        return NULL;
    struct agent_session *s = find_place(p);
    if (s != NULL || !can_make_room(p))
        return s;
    agent_session_shed(find_most(p));
    return find_place(p);
}

/* Beside those for which workers wait. One after another when the last one failed: a limit is not
 * run into many times at once. */
static bool lacks_sessions(const struct pool *p, uint32_t kept)
{
    const uint32_t wanted = kept + p->queue.by_tenant.waiting;
    uint32_t most = p->prewarm.sessions > MAKING_AT_ONCE ? p->prewarm.sessions : MAKING_AT_ONCE;
    if (p->sessions_failed)
        most = 1;
    return !p->stopping && p->count.making < most && p->count.ready + p->count.making < wanted;
}

void agent_sessions_refill(struct pool *p)
{
    while (lacks_sessions(p, agent_prewarm_now(p, p->prewarm.sessions))) {
        struct agent_session *s = find_room(p);
        if (s == NULL)
            break;
        agent_session_make(s);
    }
    agent_arenas_refill(p);
    if (!p->stopping)
        agent_memory_reclaim(p->agent);
}

/* When refilling does anything, unless workers have come just now. What has no room has some when
 * something happens. */
static uint64_t refill_due_ns(const struct pool *p)
{
    const bool has_room = has_turn(p) && (find_place(p) != NULL || can_make_room(p));
    const bool now = lacks_sessions(p, agent_prewarm_now(p, p->prewarm.sessions));
    const uint64_t room_ns =
        due_if(lacks_sessions(p, p->prewarm.sessions), now ? DUE_NOW : agent_prewarm_quiet_ns(p));
    const uint64_t rest_ns = due_first(agent_arenas_refill_due_ns(p),
                                       due_if(!p->stopping, agent_memory_reclaim_due_ns(p->agent)));
    return due_first(due_if(has_room, room_ns), rest_ns);
}

static bool is_low(const struct pool *p)
{
    return agent_prewarm_share_is_low(&p->sessions_share, p->count.ready, p->prewarm.sessions) ||
           agent_prewarm_share_is_low(&p->arenas_share, p->count.arenas_ahead, p->prewarm.arenas);
}

uint64_t agent_sessions_due_ns(const struct pool *p)
{
    const bool waits = p->queue.by_tenant.waiting == 0 && !is_low(p);
    const uint64_t quiet_ns = agent_prewarm_quiet_ns(p);
    const uint64_t rest_ns = due_first(agent_prewarm_due_ns(p),
                                       due_first(agent_fences_due_ns(p), agent_leases_due_ns(p)));
    if (are_too_many(p) || agent_arenas_are_too_many(p))
        return DUE_NOW;
    return due_first(rest_ns, due_last(refill_due_ns(p), waits ? quiet_ns : DUE_NOW));
}

/* What is made ahead takes processors and the device while the worker that has just come makes its
 * first requests: that waits until it is quiet, or little is left of what some tenant may take. */
void agent_sessions_tick(struct pool *p)
{
    agent_prewarm_tick(p);
    agent_fences_again(p);
    shed_some(p);
    agent_leases_tick(p);
    if (p->queue.by_tenant.waiting > 0 || world_now_ns(p->world) >= agent_prewarm_quiet_ns(p))
        agent_sessions_refill(p);
    else
        agent_sessions_taken(p);
}

void agent_sessions_taken(struct pool *p)
{
    if (is_low(p))
        agent_sessions_refill(p);
}
