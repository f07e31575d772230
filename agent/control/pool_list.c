/* SPDX-License-Identifier: Apache-2.0 */
/* Which pools there are, what all of them have, and why some are not: asked by many, and changes
 * nothing. */
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "fabric/retire.h"
#include "pool.h"
#include "pools.h"
#include "sessions.h"

enum { START_LONG_MS = 3000 };

static struct pool *own_pool(const struct agent *a)
{
    return a->pools[0];
}

struct pool *agent_pools_next(const struct agent *a, const struct pool *p)
{
    for (uint32_t i = p == NULL ? 0 : p->place + 1; i < POOLS; i++)
        if (a->pools[i] != NULL && a->pools[i]->lane != NULL)
            return a->pools[i];
    return NULL;
}

struct pool *agent_pools_next_endpoint(const struct agent *a, const struct pool *p)
{
    struct pool *next = agent_pools_next(a, p);
    while (next != NULL && next->first != NULL)
        next = agent_pools_next(a, next);
    return next;
}

struct pool *agent_pools_next_lane(const struct pool *endpoint, const struct pool *p)
{
    struct pool *next = agent_pools_next(endpoint->agent, p);
    while (next != NULL && pool_endpoint(next) != endpoint)
        next = agent_pools_next(endpoint->agent, next);
    return next;
}

struct pool *agent_pools_next_part(const struct pool *endpoint, const struct pool *p)
{
    for (uint32_t i = p == NULL ? endpoint->place : p->place + 1; i < POOLS; i++) {
        struct pool *next = endpoint->agent->pools[i];
        if (next != NULL && pool_endpoint(next) == endpoint)
            return next;
    }
    return NULL;
}

uint32_t agent_pools_room(const struct agent *a)
{
    uint32_t room = 0;
    for (uint32_t i = 0; i < POOLS; i++)
        room += a->pools[i] == NULL;
    return room;
}

struct pool *agent_pools_find(const struct agent *a, const char *name)
{
    for (uint32_t i = 0; i < POOLS; i++)
        if (a->pools[i] != NULL && strcmp(a->pools[i]->name, name) == 0)
            return a->pools[i];
    return NULL;
}

/* Of the own pool that is before the device was opened: its state directory was locked, so that the
 * process before this one was gone. */
uint64_t agent_pool_begun_ns(const struct pool *p)
{
    return pool_is_own(p) ? p->agent->started_ns : world_now_ns(p->world);
}

bool agent_pools_drains(const struct pool *p)
{
    return p->stage != POOL_RUNS || p->agent->node.desired.draining;
}

uint32_t agent_sessions_left(const struct pool *p)
{
    return p->count.live + p->count.ending - p->count.held;
}

bool agent_pools_are_idle(const struct agent *a)
{
    for (uint32_t i = 0; i < POOLS; i++) {
        const struct pool *p = a->pools[i];
        if (p != NULL && (p->stage != POOL_RUNS || p->count.live + p->count.ending > 0))
            return false;
    }
    return true;
}

uint32_t agent_pools_workers_left(const struct agent *a)
{
    uint32_t n = 0;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        n += agent_sessions_left(p);
    return n;
}

uint32_t agent_pools_sessions(const struct agent *a)
{
    const struct session_counts c = agent_pools_count(a);
    return c.ready + c.making + c.live + c.ending;
}

/* What is counted for ever. */
void agent_session_counts_add(struct session_counts *sum, const struct session_counts *c)
{
    sum->attached += c->attached;
    sum->not_ahead += c->not_ahead;
    sum->attached_ahead += c->attached_ahead;
    sum->recycled += c->recycled;
    sum->faults += c->faults;
}

/* What is now, too. */
static void add_counts(struct session_counts *sum, const struct session_counts *c)
{
    sum->ready += c->ready;
    sum->making += c->making;
    sum->live += c->live;
    sum->ending += c->ending;
    sum->arenas += c->arenas;
    sum->arenas_ahead += c->arenas_ahead;
    sum->arena_bytes += c->arena_bytes;
    agent_session_counts_add(sum, c);
}

struct session_counts agent_pools_count(const struct agent *a)
{
    struct session_counts sum = a->gone;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        add_counts(&sum, &p->count);
    return sum;
}

struct session_counts agent_pools_count_lanes(const struct pool *endpoint)
{
    struct session_counts sum = {.ready = 0};
    for (const struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        add_counts(&sum, &p->count);
    return sum;
}

static void add_reason(char *why, size_t size, const char *name, const char *sentence)
{
    const size_t used = strlen(why);
    snprintf(why + used, size - used, "%spool %.31s: %s", used > 0 ? "; " : "", name, sentence);
}

/* Whether it has been beginning for longer than a device that answers takes. */
static bool start_is_long(const struct pool *p)
{
    return world_now_ns(p->world) >= p->start.begun_ns + START_LONG_MS * BASE_NS_PER_MS;
}

/* The lane of it that is being made: those before it are. */
static const struct pool *lane_in_making(const struct pool *endpoint)
{
    const struct pool *at = endpoint, *next;
    while (at->start.stage == START_READY && (next = agent_pools_next_part(endpoint, at)) != NULL &&
           next->start.stage != START_IDLE)
        at = next;
    return at;
}

/* What for, as a literal; else NULL. */
static const char *start_waits_for(const struct pool *endpoint)
{
    const struct pool *p = lane_in_making(endpoint);
    const struct device_opening *o = &p->device.opening;
    if (!start_is_long(p))
        return NULL;
    return fab_ctl_name(o->is_under_way ? o->ctl.kind : fab_retiring(p->agent->fab));
}

static const char *why_it_starts(const struct pool *p, char *text, size_t size)
{
    const char *what = start_waits_for(p);
    if (what == NULL)
        return "";
    snprintf(text, size,
             "the device has been %s for long, and the pool begins when that is over (see dmesg)",
             what);
    return text;
}

static const char *why_no_room(const struct agent *a, uint32_t lanes, char *text, size_t size)
{
    const uint32_t room = agent_pools_room(a);
    if (room >= lanes)
        return "";
    if (lanes > 1)
        snprintf(text, size,
                 "lanes %u: there is room for %u, of %d pools and further lanes: lower lanes, or "
                 "delete a pool",
                 lanes, room, POOLS);
    else
        snprintf(text, size, "this agent has as many pools as it can have (%d)", POOLS);
    return text;
}

/* There is none of its name. */
static const char *why_it_is_not(const struct agent *a, const struct desired_pool *desired,
                                 char *text, size_t size)
{
    for (uint32_t i = 0; i < POOLS; i++) {
        const struct pool *p = a->pools[i];
        if (p != NULL && p->first == NULL && p->stage == POOL_STARTING &&
            start_waits_for(p) != NULL) {
            snprintf(text, size, "pool %.31s is being made, and it comes after that", p->name);
            return text;
        }
    }
    return why_no_room(a, agent_desired_lanes(&desired->is), text, size);
}

/* Of what is said, what is not in force, of all lanes: nearly always the first one's. */
static const char *why_in_part(const struct pool *endpoint)
{
    for (const struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        if (p->prewarm.why[0] != '\0')
            return p->prewarm.why;
    return "";
}

static const char *why_not(const struct agent *a, const struct desired_pool *desired, char *space,
                           size_t size)
{
    if (desired->why[0] != '\0')
        return desired->why;
    if (desired->is.numbers.number == RESOURCE_UNSAID)
        return "its metaserver says no number of it: update the metaserver";
    if (desired->is.numbers.number == own_pool(a)->number)
        return "it has the number of the agent's own pool: give it another one, or change `number` "
               "in [pool] of the agent";
    const struct pool *p = agent_pools_find(a, desired->is.name);
    if (p == NULL)
        return why_it_is_not(a, desired, space, size);
    if (p->stage == POOL_STARTING)
        return why_it_starts(p, space, size);
    return p->stage == POOL_RUNS ? why_in_part(p) : "the one of that name before is not gone yet";
}

/* No worker has been in it: also of a pool that ends so that it is made anew at once. */
static bool has_never_run(const struct pool *p)
{
    return p->stage == POOL_STARTING || (p->stage == POOL_ENDING && p->left_ns == 0);
}

/* They begin one after another, as their lanes do. */
static bool some_start_is_long(const struct agent *a)
{
    for (uint32_t i = 1; i < POOLS; i++) {
        const struct pool *p = a->pools[i];
        if (p != NULL && p->first == NULL && has_never_run(p) && start_is_long(lane_in_making(p)))
            return true;
    }
    return false;
}

static bool is_pending(const struct agent *a, const struct desired_pool *desired)
{
    char space[160];
    const struct pool *p = agent_pools_find(a, desired->is.name);
    if (some_start_is_long(a) || (p != NULL && !has_never_run(p)))
        return false;
    return p != NULL ? desired->why[0] == '\0'
                     : why_not(a, desired, space, sizeof space)[0] == '\0';
}

bool agent_pools_pending(const struct agent *a, const char *name)
{
    for (uint32_t i = 0; i < a->desired.count; i++)
        if (strcmp(a->desired.at[i].is.name, name) == 0)
            return is_pending(a, &a->desired.at[i]);
    return false;
}

bool agent_pools_any_pending(const struct agent *a)
{
    for (uint32_t i = 0; i < a->desired.count; i++)
        if (is_pending(a, &a->desired.at[i]))
            return true;
    return false;
}

void agent_pools_why(const struct agent *a, char *why, size_t size)
{
    if (own_pool(a)->prewarm.why[0] != '\0')
        add_reason(why, size, own_pool(a)->name, own_pool(a)->prewarm.why);
    for (uint32_t i = 0; i < a->desired.count; i++) {
        const struct desired_pool *desired = &a->desired.at[i];
        char space[160];
        const char *text = strcmp(desired->is.name, own_pool(a)->name) != 0
                               ? why_not(a, desired, space, sizeof space)
                               : "";
        if (text[0] != '\0')
            add_reason(why, size, desired->is.name, text);
    }
}
