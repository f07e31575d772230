/* SPDX-License-Identifier: Apache-2.0 */
/* How much the pool keeps ready: what its settings say, which a metaserver's stand above, and as
 * much more as workers have asked for lately. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "daemon.h"

static uint32_t said_or(const struct pool_state *p, enum agentd_pool_number number, uint64_t own)
{
    return p->said.number[number] != AGENTD_UNSAID ? p->said.number[number] : (uint32_t)own;
}

/* What is always kept, and up to the ceiling as many as came in the busiest second of late. */
static uint32_t target(const struct pool_state *p, uint32_t floor)
{
    const uint32_t most = p->said.number[AGENTD_AHEAD_MOST];
    if (most == AGENTD_UNSAID || p->demand <= floor)
        return floor;
    const uint32_t wanted = p->demand < most ? p->demand : most;
    return wanted > floor ? wanted : floor;
}

static void aim(struct agent *a)
{
    struct pool_state *p = &a->pool;
    p->sessions = target(p, said_or(p, AGENTD_SESSIONS_AHEAD, a->config.sessions_ahead));
    p->arenas = target(p, said_or(p, AGENTD_ARENAS_AHEAD, a->config.arenas_ahead));
}

/* ---- what cannot be */

static void add_why(struct pool_state *p, const char *sentence)
{
    size_t used = strlen(p->why);
    snprintf(p->why + used, sizeof p->why - used, "%s%s", used > 0 ? "; " : "", sentence);
}

static void look_at_start(struct pool_state *p, enum agentd_pool_number number, uint64_t own,
                          uint64_t now)
{
    const uint32_t wanted = said_or(p, number, own);
    char text[120];
    if (wanted == now)
        return;
    snprintf(text, sizeof text, "%s %u needs a restart of the agent (%llu in force)",
             agentd_pool_number_name(number), wanted, (unsigned long long)now);
    add_why(p, text);
}

static void explain_spares(struct agent *a)
{
    struct pool_state *p = &a->pool;
    const uint32_t wanted = said_or(p, AGENTD_SPARES, a->config.spares);
    char text[160];
    if (wanted > a->device.max_spares)
        snprintf(text, sizeof text,
                 "spares %u are more than the %u that this start has room for (restart the agent)",
                 wanted, a->device.max_spares);
    else if (wanted > p->spares && p->spare_status != 0)
        snprintf(text, sizeof text, "spares %u cannot be made: %s (%u in force)", wanted,
                 strerror(-p->spare_status), p->spares);
    else
        return;
    add_why(p, text);
}

/* One after another, as long as there are others than there should be. */
static void step_spares(struct agent *a)
{
    struct pool_state *p = &a->pool;
    uint32_t wanted = said_or(p, AGENTD_SPARES, a->config.spares);
    if (wanted > a->device.max_spares)
        wanted = a->device.max_spares;
    if (a->device.rc || a->stopping || p->sparing || p->spares == wanted ||
        kedge_clock_ns() < p->spare_ns)
        return;
    p->sparing = true;
    paths_spare(a, p->spares < wanted);
}

void pool_spare(struct agent *a, int change, int status)
{
    struct pool_state *p = &a->pool;
    p->sparing = false;
    p->spares += (uint32_t)change;
    p->spare_status = change == 0 ? status : 0;
    if (change == 0)
        p->spare_ns = kedge_clock_ns() + KEDGE_NS_PER_S;
    else
        step_spares(a);
}

/* Whatever of what is said is not in force, and what to do about it. */
static void explain(struct agent *a)
{
    struct pool_state *p = &a->pool;
    const struct agentd_config *c = &a->config;
    const uint64_t pairs = c->connections + c->queue_pairs_ahead;
    char text[160];
    p->why[0] = '\0';
    if (!a->device.rc) {
        look_at_start(p, AGENTD_DCIS, c->dcis, p->dcis);
        explain_spares(a);
    } else if (said_or(p, AGENTD_QUEUE_PAIRS_AHEAD, c->queue_pairs_ahead) > pairs) {
        snprintf(text, sizeof text,
                 "queue_pairs_ahead is more than the %llu that there can be (raise connections in "
                 "[pool] of the agent)",
                 (unsigned long long)pairs);
        add_why(p, text);
    }
    if (p->sessions > c->max_sessions) {
        snprintf(text, sizeof text,
                 "sessions_ahead is more than max_sessions %llu (raise that in [pool] of the "
                 "agent)",
                 (unsigned long long)c->max_sessions);
        add_why(p, text);
    }
    if (a->sessions_failed || a->arenas_failed)
        add_why(p, "no more sessions or arenas can be made ahead: see the agent's log");
}

/* ---- what is said */

void pool_init(struct agent *a, const struct agentd_pool *said)
{
    struct pool_state *p = &a->pool;
    p->said = *said;
    p->dcis = said_or(p, AGENTD_DCIS, a->config.dcis);
    p->spares = said_or(p, AGENTD_SPARES, a->config.spares);
    aim(a);
}

void pool_own(struct agent *a)
{
    a->pool.dcis = a->config.dcis;
    a->pool.spares = a->config.spares;
}

void pool_apply(struct agent *a, const struct agentd_pool *said)
{
    struct pool_state *p = &a->pool;
    const struct agentd_pool before = p->said;
    p->said = *said;
    aim(a);
    if (a->device.connector != NULL)
        kedge_connector_set_ahead(
            a->device.connector, said_or(p, AGENTD_QUEUE_PAIRS_AHEAD, a->config.queue_pairs_ahead));
    explain(a);
    if (memcmp(before.number, said->number, sizeof before.number) != 0)
        kedge_log(KEDGE_LOG_INFO, "the pool keeps as much ready as is said",
                  "pool=%s sessions=%u arenas=%u why=\"%s\"", a->config.pool, p->sessions,
                  p->arenas, p->why);
    sessions_refill(a);
    paths_step(a);
    step_spares(a);
}

/* ---- what workers ask for */

/* Forgets the seconds that have gone round. */
static uint64_t turn(struct pool_state *p)
{
    const uint64_t second = kedge_clock_ns() / KEDGE_NS_PER_S;
    if (second - p->second >= POOL_SECONDS)
        memset(p->taken, 0, sizeof p->taken);
    else
        for (uint64_t i = p->second + 1; i <= second; i++)
            p->taken[i % POOL_SECONDS] = 0;
    p->second = second;
    return second;
}

void pool_taken(struct agent *a)
{
    struct pool_state *p = &a->pool;
    const uint32_t now = ++p->taken[turn(p) % POOL_SECONDS];
    if (now > p->demand) {
        p->demand = now;
        aim(a);
    }
}

void pool_tick(struct agent *a)
{
    struct pool_state *p = &a->pool;
    const uint64_t before = p->second;
    step_spares(a);
    if (turn(p) == before)
        return;
    p->demand = 0;
    for (uint32_t i = 0; i < POOL_SECONDS; i++)
        if (p->taken[i] > p->demand)
            p->demand = p->taken[i];
    aim(a);
    explain(a);
}

/* ---- shown */

void pool_status(const struct agent *a, struct kedge_text *t)
{
    const struct pool_state *p = &a->pool;
    const uint32_t most = p->said.number[AGENTD_AHEAD_MOST];
    kedge_text_printf(t, "\"dcis\":%u,\"spares\":%u,\"sessions_ahead\":%u,\"arenas_ahead\":%u,",
                      p->dcis, p->spares, p->sessions, p->arenas);
    if (most == AGENTD_UNSAID)
        kedge_text_printf(t, "\"ahead_max\":null,");
    else
        kedge_text_printf(t, "\"ahead_max\":%u,", most);
    kedge_text_printf(t, "\"demand_per_s\":%u,\"from\":\"%s\",\"why\":", p->demand,
                      p->said.name[0] != '\0' ? "metaserver" : "file");
    kedge_text_json(t, p->why);
}

void pool_metrics(const struct agent *a, struct kedge_text *t)
{
    kedge_metric_one(t, "kedge_agent_sessions_ahead_target", KEDGE_METRIC_GAUGE,
                     "Sessions that are to be kept ready.", a->pool.sessions);
    kedge_metric_one(t, "kedge_agent_arenas_ahead_target", KEDGE_METRIC_GAUGE,
                     "Arenas that are to be kept ready.", a->pool.arenas);
    kedge_metric_one(t, "kedge_agent_arenas_ahead", KEDGE_METRIC_GAUGE,
                     "Arenas that are ready and nobody's.", a->count.arenas_ahead);
    kedge_metric_one(t, "kedge_agent_pool_demand", KEDGE_METRIC_GAUGE,
                     "Most workers that came in one second of the last minute.", a->pool.demand);
    kedge_metric_one(t, "kedge_agent_attached_ahead_total", KEDGE_METRIC_COUNTER,
                     "Workers for whom session and arena were ready when they came.",
                     a->count.attached_ahead);
}
