/* SPDX-License-Identifier: Apache-2.0 */
/* Which pools there are, what all of them have, and why some are not: asked by many, and changes
 * nothing. */
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "pool.h"
#include "pools.h"
#include "sessions.h"

static struct pool *own_pool(const struct agent *a)
{
    return a->pools[0];
}

struct pool *pools_next(const struct agent *a, const struct pool *p)
{
    for (uint32_t i = p == NULL ? 0 : p->place + 1; i < POOLS; i++)
        if (a->pools[i] != NULL && a->pools[i]->lane != NULL)
            return a->pools[i];
    return NULL;
}

struct pool *pools_find(const struct agent *a, const char *name)
{
    for (uint32_t i = 0; i < POOLS; i++)
        if (a->pools[i] != NULL && strcmp(a->pools[i]->name, name) == 0)
            return a->pools[i];
    return NULL;
}

/* Of the own pool that is before the device was opened: its state directory was locked, so that the
 * process before this one was gone. */
uint64_t pool_begun_ns(const struct pool *p)
{
    return p->place == 0 ? p->agent->started_ns : world_now_ns(p->world);
}

bool pools_drains(const struct pool *p)
{
    return p->stage != POOL_RUNS || p->agent->node.desired.draining;
}

uint32_t sessions_left(const struct pool *p)
{
    return p->count.live + p->count.ending - p->count.held;
}

uint32_t pools_workers_left(const struct agent *a)
{
    uint32_t n = 0;
    for (const struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
        n += sessions_left(p);
    return n;
}

uint32_t pools_sessions(const struct agent *a)
{
    const struct session_counts c = pools_count(a);
    return c.ready + c.making + c.live + c.ending;
}

/* What is counted for ever. */
void session_counts_add(struct session_counts *sum, const struct session_counts *c)
{
    sum->attached += c->attached;
    sum->not_ahead += c->not_ahead;
    sum->attached_ahead += c->attached_ahead;
    sum->recycled += c->recycled;
    sum->faults += c->faults;
}

struct session_counts pools_count(const struct agent *a)
{
    struct session_counts sum = a->gone;
    for (const struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p)) {
        const struct session_counts *c = &p->count;
        sum.ready += c->ready;
        sum.making += c->making;
        sum.live += c->live;
        sum.ending += c->ending;
        sum.arenas += c->arenas;
        sum.arenas_ahead += c->arenas_ahead;
        sum.arena_bytes += c->arena_bytes;
        session_counts_add(&sum, c);
    }
    return sum;
}

static void add_reason(char *why, size_t size, const char *name, const char *sentence)
{
    const size_t used = strlen(why);
    snprintf(why + used, size - used, "%spool %.31s: %s", used > 0 ? "; " : "", name, sentence);
}

static const char *why_not(const struct agent *a, const struct desired_pool *desired)
{
    if (desired->why[0] != '\0')
        return desired->why;
    if (desired->is.numbers.number == RESOURCE_UNSAID)
        return "its metaserver says no number of it: update the metaserver";
    if (desired->is.numbers.number == own_pool(a)->number)
        return "it has the number of the agent's own pool: give it another one, or change `number` "
               "in [pool] of the agent";
    const struct pool *p = pools_find(a, desired->is.name);
    if (p == NULL)
        return "this agent has as many pools as it can have (8)";
    return p->stage == POOL_RUNS ? p->prewarm.why : "the one of that name before is not gone yet";
}

void pools_why(const struct agent *a, char *why, size_t size)
{
    if (own_pool(a)->prewarm.why[0] != '\0')
        add_reason(why, size, own_pool(a)->name, own_pool(a)->prewarm.why);
    for (uint32_t i = 0; i < a->desired.count; i++) {
        const struct desired_pool *desired = &a->desired.at[i];
        const char *text =
            strcmp(desired->is.name, own_pool(a)->name) != 0 ? why_not(a, desired) : "";
        if (text[0] != '\0')
            add_reason(why, size, desired->is.name, text);
    }
}
