/* SPDX-License-Identifier: Apache-2.0 */
#include "prefer.h"

#include <string.h>

#include "agent.h"
#include "lane_setup.h"
#include "pool.h"
#include "pools.h"
#include "register.h"

/* By which they are sorted; those that are alike, by how near they are. */
enum { NEAR, SOUND, BEHIND, QUIET, UNREGISTERED };

bool agent_prefer_is_sound(const struct registration *r)
{
    return r->state == REGISTRATION_DONE && r->quiet[0] == '\0';
}

static bool is_near(const struct registration *r)
{
    const struct pool *p = r->pool;
    const char *zone = p->config->zone[0] != '\0' ? p->config->zone : p->agent->node.desired.zone;
    return zone[0] != '\0' && strcmp(zone, r->standing.zone) == 0;
}

/* One that writes nothing may soon have something older, and is asked as one that has. */
static bool is_impaired(const struct registration *r)
{
    return r->standing.behind || r->standing.read_only;
}

static int rank_of(const struct registration *r)
{
    if (r->state != REGISTRATION_DONE)
        return UNREGISTERED;
    return r->quiet[0] != '\0' ? QUIET : is_impaired(r) ? BEHIND : is_near(r) ? NEAR : SOUND;
}

bool agent_prefer_may_follow(const struct pool *p, uint32_t metaserver)
{
    if (!agent_prefer_is_sound(&p->registration[metaserver]))
        return false;
    if (!p->registration[metaserver].standing.behind)
        return true;
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        if (agent_prefer_is_sound(&p->registration[i]) && !p->registration[i].standing.behind)
            return false;
    return true;
}

static bool comes_before(const struct registration *r, const struct registration *other)
{
    const int rank = rank_of(r), others = rank_of(other);
    return rank < others || (rank == others && r->nearness.place < other->nearness.place);
}

uint32_t agent_prefer_order(const struct pool *p, uint8_t order[AGENT_METASERVERS])
{
    const uint32_t n = p->config->metaservers;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && comes_before(&p->registration[i], &p->registration[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
    return n;
}

uint32_t agent_prefer_place(const struct pool *p, uint32_t metaserver)
{
    uint8_t order[AGENT_METASERVERS];
    uint32_t place = 0;
    (void)agent_prefer_order(p, order);
    while (order[place] != metaserver)
        place++;
    return place;
}

static void list_reached(const struct pool *p, struct lane_command *c)
{
    uint8_t order[AGENT_METASERVERS];
    const uint32_t n = agent_prefer_order(p, order);
    *c = (struct lane_command){.kind = LANE_COMMAND_METASERVERS};
    for (uint32_t i = 0; i < n; i++) {
        const struct lane_metaserver *m = &p->registration[order[i]].lane;
        if (m->ah != NULL || m->qp != NULL)
            c->metaservers.at[c->metaservers.count++] = *m;
    }
}

/* A further lane with RC: its own ways there, or else those of the first one, which READs for it.
 */
static void tell_further(struct pool *p)
{
    struct lane_command c;
    list_reached(p, &c);
    const bool has_own = c.metaservers.count > 0;
    if (!has_own)
        list_reached(pool_endpoint(p), &c);
    for (uint32_t i = 0; i < c.metaservers.count && !has_own; i++) {
        c.metaservers.at[i].qp = NULL;
        c.metaservers.at[i].relayed = true;
    }
    agent_pool_command(p, &c);
}

/* All lanes that have the same ways there, and those that have none. */
void agent_prefer_tell_lane(struct pool *p)
{
    struct lane_command c;
    p = pool_registered(p);
    if (p->first != NULL) {
        tell_further(p);
        return;
    }
    list_reached(p, &c);
    agent_pool_command(p, &c);
    for (struct pool *l = p; (l = agent_pools_next_lane(p, l)) != NULL;)
        if (p->device.rc)
            tell_further(l);
        else
            agent_pool_command(l, &c);
}
