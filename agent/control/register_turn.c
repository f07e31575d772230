/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is to register a pool that no metaserver has.
 *
 * Metaservers of one store would all write the same, each finding out that others were writing it
 * too, where one write is enough: so one of them is asked first, and the others when it has the
 * pool, which they then know and need not write. One that says nothing has five seconds alone, and
 * whoever comes after it one. Which one is asked first differs from node to node, so
 * that each has its part of a storm. */
#include "base/clock.h"
#include "base/hash.h"
#include "bounds.h"
#include "pool.h"
#include "register_private.h"

uint32_t agent_registration_first(const struct pool *p)
{
    uint64_t hash = 0;
    for (const char *c = p->config->node; *c != '\0'; c++)
        hash = base_hash_u64(hash, (unsigned char)*c);
    return p->config->metaservers > 0 ? (uint32_t)(hash % p->config->metaservers) : 0;
}

bool agent_registration_must_wait(struct registration *r)
{
    const struct pool *p = r->pool;
    uint64_t until_ns = 0;
    r->waits = false;
    if (agent_registrations_count(p) > 0)
        return false;
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        if (&p->registration[i] != r && p->registration[i].turn_ns > until_ns)
            until_ns = p->registration[i].turn_ns;
    r->waits = until_ns > world_now_ns(p->world);
    if (r->waits)
        world_timer_at(p->world, &r->timer, until_ns);
    return r->waits;
}

uint64_t agent_registration_turn_ms(const struct registration *r)
{
    const struct pool *p = r->pool;
    bool silent = false;
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        silent |= &p->registration[i] != r && p->registration[i].putting != 0;
    if (r->backoff_ms != BACKOFF_MS || r->late_ms != 0)
        return TURN_FAILING_MS;
    return silent ? TURN_NEXT_MS : TURN_MS;
}

void agent_registration_begin_turn(struct registration *r, uint64_t ms)
{
    r->turn_ns = world_now_ns(r->pool->world) + ms * BASE_NS_PER_MS;
}

/* Others of its store have to hear of it first; else they would take it for one more that is to be
 * written, of which there may be too many. */
static uint64_t hearing_ms(const struct registration *r)
{
    uint32_t random = 0;
    if (r->state != REGISTRATION_DONE || r->standing.store[0] == '\0')
        return 0;
    (void)world_random(r->pool->world, &random, sizeof random); /* else none */
    return TURN_HEARD_MS + random % TURN_HEARD_MS;
}

void agent_registration_end_turn(struct registration *r)
{
    struct pool *p = r->pool;
    const uint64_t ms = hearing_ms(r);
    r->turn_ns = 0;
    for (uint32_t i = 0; i < p->config->metaservers && !p->stopping; i++) {
        struct registration *other = &p->registration[i];
        if (!other->waits)
            continue;
        other->waits = false;
        world_timer_after(p->world, &other->timer, ms * BASE_NS_PER_MS);
    }
}
