/* SPDX-License-Identifier: Apache-2.0 */
#include "nearness.h"

#include "base/clock.h"
#include "pool.h"
#include "register.h"

/* By how much one has to be quicker than another one to come before it: a quarter, and so long. */
enum { NEARER_PART = 4 };
#define NEARER_NS (200 * UINT64_C(1000))

void agent_nearness_begin(struct pool *p)
{
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        p->registration[i].nearness = (struct nearness){.place = (uint8_t)i};
}

uint64_t agent_nearness_ns(const struct registration *r)
{
    const struct nearness *n = &r->nearness;
    const uint32_t known = n->count < NEARNESS_SAMPLES ? n->count : NEARNESS_SAMPLES;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < known; i++)
        least = n->took_ns[i] < least ? n->took_ns[i] : least;
    return known < NEARNESS_LEAST ? 0 : least;
}

static bool is_nearer(const struct registration *r, const struct registration *than)
{
    const uint64_t ns = agent_nearness_ns(r), other = agent_nearness_ns(than);
    return ns != 0 && other > NEARER_NS && ns < other - other / NEARER_PART &&
           ns < other - NEARER_NS;
}

static struct registration *find_place(struct pool *p, uint32_t place)
{
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        if (p->registration[i].nearness.place == place)
            return &p->registration[i];
    return NULL;
}

/* It alone has changed: it passes those before it that are farther, and those behind it pass it
 * that are nearer. */
static bool change_place(struct registration *r)
{
    struct nearness *n = &r->nearness;
    const uint8_t was = n->place;
    struct registration *other;
    while (n->place > 0 && (other = find_place(r->pool, n->place - 1u)) != NULL &&
           is_nearer(r, other)) {
        other->nearness.place++;
        n->place--;
    }
    while ((other = find_place(r->pool, n->place + 1u)) != NULL && is_nearer(other, r)) {
        other->nearness.place--;
        n->place++;
    }
    return n->place != was;
}

bool agent_nearness_measured(struct registration *r, uint64_t took_ns)
{
    struct nearness *n = &r->nearness;
    n->took_ns[n->count % NEARNESS_SAMPLES] = took_ns == 0 ? 1 : took_ns;
    if (++n->count == 2 * NEARNESS_SAMPLES)
        n->count = NEARNESS_SAMPLES;
    return change_place(r);
}
