/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/link_choice.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

int lane_link_choice_init(struct link_choice *c, uint32_t endpoints, uint32_t tenants,
                          uint32_t most)
{
    *c = (struct link_choice){.tenants = tenants, .endpoints = endpoints, .most = most};
    c->of = calloc(endpoints, sizeof c->of[0]);
    c->holders = calloc(most, sizeof c->holders[0]);
    c->tenant_held = calloc(tenants, sizeof c->tenant_held[0]);
    if (c->of == NULL || c->holders == NULL || c->tenant_held == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < endpoints; i++)
        c->of[i].tenant = LINK_NOBODY;
    return 0;
}

void lane_link_choice_fini(struct link_choice *c)
{
    free(c->of);
    free(c->holders);
    free(c->tenant_held);
    *c = (struct link_choice){.most = 0};
}

/* ---- points */

/* What is left of them now. */
static void decay_score(struct link_score *s, uint32_t now_ms)
{
    const uint32_t halves = (now_ms - s->at_ms) / LINK_HALF_MS;
    if (halves == 0)
        return;
    s->at_ms += halves * LINK_HALF_MS;
    s->points = halves < 32 ? s->points >> halves : 0;
    s->own = halves < 32 ? s->own >> halves : 0;
    if (s->points >= LINK_IDLE)
        s->idle_ms = 0;
    else if (s->idle_ms == 0)
        s->idle_ms = now_ms | 1;
}

static void charge_tenant(struct link_choice *c, struct link_score *s, uint32_t tenant)
{
    if (s->state != LINK_FREE) {
        c->tenant_held[s->tenant]--;
        c->tenant_held[tenant]++;
    }
    s->tenant = (uint16_t)tenant;
    s->own = 0;
}

void lane_link_choice_sample(struct link_choice *c, uint32_t endpoint, uint32_t tenant,
                             uint32_t weight, uint32_t now_ms)
{
    struct link_score *s = &c->of[endpoint];
    if (s->points == 0)
        s->at_ms = now_ms;
    decay_score(s, now_ms);
    const uint32_t added = weight * LINK_SAMPLE;
    s->points = s->points + added < LINK_POINTS_MOST ? s->points + added : LINK_POINTS_MOST;
    if (s->tenant != tenant && (s->tenant == LINK_NOBODY || s->own < LINK_IDLE))
        charge_tenant(c, s, tenant);
    if (s->tenant == tenant)
        s->own = s->own + added < LINK_POINTS_MOST ? s->own + added : LINK_POINTS_MOST;
    if (s->points >= LINK_IDLE)
        s->idle_ms = 0;
}

/* ---- who gets one */

uint32_t lane_link_choice_share(const struct link_choice *c, uint32_t tenant)
{
    uint32_t tenants = 0;
    for (uint32_t i = 0; i < c->tenants; i++)
        tenants += c->tenant_held[i] > 0 || i == tenant;
    return c->most > tenants ? c->most / tenants : 1;
}

/* Whether it may go for an endpoint with so many points, of that tenant. */
static bool may_go(const struct link_choice *c, const struct link_score *h, uint32_t tenant,
                   uint32_t points, uint32_t share, uint32_t now_ms)
{
    if (h->state != LINK_HELD || now_ms - h->since_ms < LINK_HELD_MS)
        return false;
    if (h->points < LINK_IDLE)
        return true;
    if (h->tenant == tenant)
        return points / 2 >= h->points;
    return c->tenant_held[h->tenant] > share && c->tenant_held[tenant] < share;
}

/* Of LOOKS connections the one with the fewest points that may go, or LINK_NONE. */
static uint32_t find_victim(struct link_choice *c, const struct link_score *s, uint32_t now_ms)
{
    const uint32_t share = lane_link_choice_share(c, s->tenant);
    uint32_t best = LINK_NONE;
    for (uint32_t i = 0; i < LINK_LOOKS && i < c->held; i++) {
        c->hand = c->hand + 1 < c->held ? c->hand + 1 : 0;
        struct link_score *h = &c->of[c->holders[c->hand]];
        decay_score(h, now_ms);
        if (may_go(c, h, s->tenant, s->points, share, now_ms) &&
            (best == LINK_NONE || h->points < c->of[best].points))
            best = c->holders[c->hand];
    }
    return best;
}

/* What is over is forgotten: a clock of 32 bits comes round, and half of it is always to come. */
static bool is_barred(struct link_score *s, uint32_t now_ms)
{
    if (s->barred_ms != 0 &&
        s->barred_ms - now_ms - 1 > ((uint32_t)LINK_BARRED_MS << LINK_BARRED_MOST))
        s->barred_ms = 0;
    return s->barred_ms != 0;
}

bool lane_link_choice_wants(struct link_choice *c, uint32_t endpoint, uint32_t now_ms,
                            uint32_t *victim)
{
    struct link_score *s = &c->of[endpoint];
    *victim = LINK_NONE;
    if (s->state != LINK_FREE || s->points < LINK_WANTS || c->making == LINK_MAKING)
        return false;
    if (is_barred(s, now_ms))
        return false;
    if (c->held < c->most)
        return true;
    *victim = find_victim(c, s, now_ms);
    return *victim != LINK_NONE;
}

uint32_t lane_link_choice_unused(struct link_choice *c, uint32_t now_ms)
{
    for (uint32_t i = 0; i < LINK_LOOKS && i < c->held; i++) {
        c->idle_hand = c->idle_hand + 1 < c->held ? c->idle_hand + 1 : 0;
        struct link_score *h = &c->of[c->holders[c->idle_hand]];
        decay_score(h, now_ms);
        if (h->state == LINK_HELD && h->points < LINK_IDLE && h->idle_ms != 0 &&
            now_ms - h->since_ms >= LINK_UNUSED_MS && now_ms - h->idle_ms >= LINK_UNUSED_MS)
            return c->holders[c->idle_hand];
    }
    return LINK_NONE;
}

/* ---- what becomes of one */

void lane_link_choice_begin(struct link_choice *c, uint32_t endpoint, uint32_t now_ms)
{
    struct link_score *s = &c->of[endpoint];
    BASE_ASSERT(s->state == LINK_FREE && c->held < c->most && s->tenant != LINK_NOBODY);
    s->state = LINK_MADE;
    s->since_ms = now_ms;
    s->place = c->held;
    c->holders[c->held++] = endpoint;
    c->tenant_held[s->tenant]++;
    c->making++;
}

void lane_link_choice_linked(struct link_choice *c, uint32_t endpoint, uint32_t now_ms)
{
    struct link_score *s = &c->of[endpoint];
    BASE_ASSERT(s->state == LINK_MADE);
    s->state = LINK_HELD;
    s->since_ms = now_ms;
    c->making--;
}

/* A connection that held for long says nothing of the next failure. */
static void bar_endpoint(struct link_score *s, uint32_t now_ms)
{
    if (s->state == LINK_HELD && now_ms - s->since_ms > LINK_UNUSED_MS)
        s->fails = 0;
    s->barred_ms = (now_ms + ((uint32_t)LINK_BARRED_MS << s->fails)) | 1;
    s->fails += s->fails < LINK_BARRED_MOST;
}

void lane_link_choice_leave(struct link_choice *c, uint32_t endpoint, bool failed, uint32_t now_ms)
{
    struct link_score *s = &c->of[endpoint];
    if (s->state == LINK_FREE || s->state == LINK_LEAVES)
        return;
    if (failed)
        bar_endpoint(s, now_ms);
    c->making -= s->state == LINK_MADE;
    s->state = LINK_LEAVES;
    s->since_ms = now_ms;
}

void lane_link_choice_over(struct link_choice *c, uint32_t endpoint, uint32_t now_ms)
{
    struct link_score *s = &c->of[endpoint];
    lane_link_choice_leave(c, endpoint, false, now_ms);
    if (s->state == LINK_FREE)
        return;
    const uint32_t last = c->holders[--c->held];
    c->holders[s->place] = last;
    c->of[last].place = s->place;
    c->tenant_held[s->tenant]--;
    s->state = LINK_FREE;
}

void lane_link_choice_forget(struct link_choice *c, uint32_t endpoint)
{
    BASE_ASSERT(c->of[endpoint].state == LINK_FREE);
    c->of[endpoint] = (struct link_score){.tenant = LINK_NOBODY};
}
