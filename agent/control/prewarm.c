/* SPDX-License-Identifier: Apache-2.0 */
/* How much the pool keeps ready: what its settings say, which a metaserver's stand above, and as
 * much more as workers have asked for lately. */
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "agent/connector.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "bounds.h"
#include "control/lane_choice.h"
#include "control/world_log.h"
#include "due.h"
#include "peer_setup.h"
#include "pool_lanes.h"
#include "pools.h"
#include "prewarm.h"
#include "quotas.h"

static uint32_t desired_or(uint64_t desired, uint64_t own)
{
    return (uint32_t)(desired != RESOURCE_UNSAID ? desired : own);
}

/* What is always kept, and up to the ceiling as many as came in the busiest second of late. */
static uint32_t target_of(const struct prewarm *k, uint32_t floor)
{
    const uint64_t most = k->desired.numbers.ahead_max;
    if (most == RESOURCE_UNSAID || k->demand <= floor)
        return floor;
    const uint32_t wanted = k->demand < most ? k->demand : (uint32_t)most;
    return wanted > floor ? wanted : floor;
}

/* What the device has, but for what is said of the pool. */
static struct fab_service desired_service(const struct pool *p)
{
    const struct pool_numbers *n = &p->prewarm.desired.numbers;
    struct fab_service s = p->config->service;
    if (n->service_level != RESOURCE_UNSAID)
        s.service_level = (uint8_t)n->service_level;
    if (n->traffic_class != RESOURCE_UNSAID)
        s.traffic_class = (uint8_t)n->traffic_class;
    if (n->flow_label != RESOURCE_UNSAID)
        s.flow_label = (uint32_t)n->flow_label;
    if (n->udp_source_port != RESOURCE_UNSAID)
        s.flow_label = fab_flow_label((uint16_t)n->udp_source_port);
    if (n->pkey_index != RESOURCE_UNSAID)
        s.pkey_index = (uint16_t)n->pkey_index;
    if (n->mtu != RESOURCE_UNSAID)
        s.mtu = (enum ibv_mtu)(__builtin_ctzll(n->mtu) - 7);
    return s;
}

static bool is_service(const struct fab_service *a, const struct fab_service *b)
{
    return a->service_level == b->service_level && a->traffic_class == b->traffic_class &&
           a->flow_label == b->flow_label && a->pkey_index == b->pkey_index && a->mtu == b->mtu;
}

bool agent_prewarm_has_own_service(const struct pool *p)
{
    return !is_service(&p->prewarm.service, &p->config->service);
}

enum ibv_mtu agent_prewarm_mtu(const struct pool *p)
{
    const enum ibv_mtu port = p->agent->port.mtu, own = p->prewarm.service.mtu;
    return own != 0 && own < port ? own : port;
}

/* Its part of what the pool keeps; each lane has one of what there is any of. */
static uint32_t of_lane(const struct pool *p, uint32_t all)
{
    const uint32_t lanes = agent_lanes_count(p);
    return (all + lanes - 1) / lanes;
}

uint32_t agent_prewarm_connections(const struct pool *p)
{
    return agent_lane_connections(p->prewarm.connections, agent_lanes_count(p), p->device.rc);
}

/* Likewise, of what sessions begin with. */
static uint32_t of_home(const struct pool *p, uint32_t all)
{
    if (!agent_lanes_have_homes(p))
        return 0;
    return p->config->messages ? all : of_lane(p, all);
}

static void set_targets(struct pool *p)
{
    struct prewarm *k = &p->prewarm;
    const struct pool_numbers *n = &k->desired.numbers;
    k->sessions =
        target_of(k, of_home(p, desired_or(n->sessions_ahead, p->config->sessions_ahead)));
    k->arenas = target_of(k, of_home(p, desired_or(n->arenas_ahead, p->config->arenas_ahead)));
}

/* ---- what cannot be */

static void add_why(struct prewarm *k, const char *sentence)
{
    size_t used = strlen(k->why);
    snprintf(k->why + used, sizeof k->why - used, "%s%s", used > 0 ? "; " : "", sentence);
}

static void look_at_start(struct pool *p, const char *name, uint64_t desired, uint64_t own,
                          uint64_t now)
{
    struct prewarm *k = &p->prewarm;
    const uint32_t wanted = desired_or(desired, own);
    char text[120];
    if (wanted == now)
        return;
    snprintf(text, sizeof text, "%s %u needs %s (%llu in force)", name, wanted,
             pool_is_own(p) ? "a restart of the agent" : "the pool to be made anew",
             (unsigned long long)now);
    add_why(k, text);
}

static void explain_spares(struct pool *p)
{
    struct prewarm *k = &p->prewarm;
    const uint32_t wanted = desired_or(k->desired.numbers.spares, p->config->spares);
    struct base_errbuf why;
    char text[320];
    if (wanted > p->device.max_spares)
        snprintf(text, sizeof text,
                 "spares %u are more than the %u that this start has room for (restart the agent)",
                 wanted, p->device.max_spares);
    else if (wanted > k->spares && agent_device_why(p->world, k->spare_status, &why) != 0)
        snprintf(text, sizeof text, "spares %u cannot be made (%u in force): %.240s", wanted,
                 k->spares, why.text);
    else
        return;
    add_why(k, text);
}

static uint32_t wanted_spares(const struct pool *p)
{
    const uint32_t wanted = desired_or(p->prewarm.desired.numbers.spares, p->config->spares);
    return wanted < p->device.max_spares ? wanted : p->device.max_spares;
}

static uint64_t spares_due_ns(const struct pool *p)
{
    const struct prewarm *k = &p->prewarm;
    return due_if(!p->device.rc && !p->stopping && !k->sparing && k->spares != wanted_spares(p),
                  k->spare_ns);
}

/* One after another, as long as there are others than there should be. */
static void step_spares(struct pool *p)
{
    struct prewarm *k = &p->prewarm;
    if (world_now_ns(p->world) < spares_due_ns(p))
        return;
    k->sparing = true;
    agent_peer_setup_spare(p, k->spares < wanted_spares(p));
}

void agent_prewarm_spare(struct pool *p, int change, int status)
{
    struct prewarm *k = &p->prewarm;
    k->sparing = false;
    k->spares += (uint32_t)change;
    k->spare_status = change == 0 ? status : 0;
    if (change == 0)
        k->spare_ns = world_now_ns(p->world) + BASE_NS_PER_S;
    else
        step_spares(p);
}

/* Of the own pool it is the file's. */
static void explain_lease(struct pool *p)
{
    const uint64_t desired = p->prewarm.desired.numbers.mr_lease_ms,
                   now = p->mr_lease_ns / BASE_NS_PER_MS;
    char text[160];
    if (pool_is_own(p) || desired == RESOURCE_UNSAID || desired == now)
        return;
    snprintf(text, sizeof text, "mr_lease_ms %llu needs the pool to be made anew (%llu in force)",
             (unsigned long long)desired, (unsigned long long)now);
    add_why(&p->prewarm, text);
}

/* Likewise; that it says another number is said all the same. */
static void explain_lanes(struct pool *p)
{
    const struct agent_pool_config *desired = &p->prewarm.desired;
    const uint32_t wanted = agent_desired_lanes(desired), now = agent_lanes_count(p);
    char text[160];
    if (wanted == now || (pool_is_own(p) && desired->numbers.lanes == RESOURCE_UNSAID))
        return;
    snprintf(text, sizeof text,
             pool_is_own(p) ? "lanes %u are not for the agent's own pool: its file says that (%u "
                              "in force)"
                            : "lanes %u needs the pool to be made anew (%u in force)",
             wanted, now);
    add_why(&p->prewarm, text);
}

static void explain_service(struct pool *p)
{
    const struct fab_service desired = desired_service(p);
    char now[FAB_SERVICE_TEXT], text[FAB_SERVICE_TEXT + 80];
    if (is_service(&desired, &p->prewarm.service))
        return;
    snprintf(text, sizeof text, "another service needs %s (%s in force)",
             pool_is_own(p) ? "a restart of the agent" : "the pool to be made anew",
             fab_service_format(&p->prewarm.service, now));
    add_why(&p->prewarm, text);
}

static struct prewarm_reasons reasons_now(const struct pool *p)
{
    const struct prewarm *k = &p->prewarm;
    return (struct prewarm_reasons){.sessions = k->sessions,
                                    .spares = k->spares,
                                    .spare_status = k->spare_status,
                                    .failed = p->sessions_failed || p->arenas_status != 0};
}

static bool are_explained(const struct pool *p)
{
    const struct prewarm_reasons now = reasons_now(p), *then = &p->prewarm.reasons;
    return now.sessions == then->sessions && now.spares == then->spares &&
           now.spare_status == then->spare_status && now.failed == then->failed;
}

/* Whatever of what is said is not in force, and what to do about it. */
static void explain_prewarm(struct pool *p)
{
    struct prewarm *k = &p->prewarm;
    const struct agent_config *c = p->config;
    const uint64_t pairs = agent_prewarm_connections(p) + c->queue_pairs_ahead;
    char text[160];
    k->why[0] = '\0';
    k->reasons = reasons_now(p);
    explain_lease(p);
    explain_lanes(p);
    explain_service(p);
    if (!p->device.rc) {
        look_at_start(p, "dcis", k->desired.numbers.dcis, c->dcis, k->dcis);
        explain_spares(p);
    }
    if (p->device.rc || p->device.hybrid) {
        look_at_start(p, "connections", k->desired.numbers.connections, c->connections,
                      k->connections);
        look_at_start(p, "responders", k->desired.numbers.responders, c->responders, k->responders);
    }
    if ((p->device.rc || p->device.hybrid) &&
        desired_or(k->desired.numbers.queue_pairs_ahead, c->queue_pairs_ahead) > pairs) {
        snprintf(text, sizeof text,
                 "queue_pairs_ahead is more than the %llu that there can be (raise connections)",
                 (unsigned long long)pairs);
        add_why(k, text);
    }
    if (k->sessions > c->max_sessions) {
        snprintf(text, sizeof text,
                 "sessions_ahead is more than max_sessions %llu (raise that in [pool] of the "
                 "agent)",
                 (unsigned long long)c->max_sessions);
        add_why(k, text);
    }
    if (k->reasons.failed)
        add_why(k, "no more sessions or arenas can be made ahead: see the agent's log");
}

/* ---- what is said */

void agent_prewarm_init(struct pool *p, const struct agent_pool_config *desired)
{
    struct prewarm *k = &p->prewarm;
    k->desired = *desired;
    k->dcis = desired_or(k->desired.numbers.dcis, p->config->dcis);
    /* Those of a pool that is made while workers attach come later, one after the other. */
    k->spares = pool_is_own(p) ? desired_or(k->desired.numbers.spares, p->config->spares) : 0;
    k->connections = desired_or(k->desired.numbers.connections, p->config->connections);
    k->responders = desired_or(k->desired.numbers.responders, p->config->responders);
    k->service = desired_service(p);
    set_targets(p);
}

bool agent_prewarm_is_desired(const struct pool *p)
{
    const struct agent_config *c = p->config;
    const struct prewarm *k = &p->prewarm;
    return desired_or(k->desired.numbers.dcis, c->dcis) != c->dcis ||
           desired_or(k->desired.numbers.spares, c->spares) != c->spares ||
           desired_or(k->desired.numbers.connections, c->connections) != c->connections ||
           desired_or(k->desired.numbers.responders, c->responders) != c->responders ||
           (pool_is_own(p) && !is_service(&k->service, &c->service));
}

void agent_prewarm_own(struct pool *p)
{
    const struct agent_config *c = p->config;
    p->prewarm.dcis = (uint32_t)c->dcis;
    p->prewarm.spares = pool_is_own(p) ? (uint32_t)c->spares : 0;
    p->prewarm.connections = (uint32_t)c->connections;
    p->prewarm.responders = (uint32_t)c->responders;
    if (pool_is_own(p)) /* another one's must not be in a partition that is not its own */
        p->prewarm.service = c->service;
}

void agent_prewarm_apply(struct pool *p, const struct agent_pool_config *desired)
{
    struct prewarm *k = &p->prewarm;
    const struct agent_pool_config before = k->desired;
    k->desired = *desired;
    set_targets(p);
    if (p->device.connector != NULL)
        connector_set_ahead(p->device.connector, desired_or(k->desired.numbers.queue_pairs_ahead,
                                                            p->config->queue_pairs_ahead));
    explain_prewarm(p);
    if (memcmp(&before.numbers, &desired->numbers, sizeof before.numbers) != 0)
        world_log(p->world, BASE_LOG_INFO, "the pool keeps as much ready as is said",
                  "pool=%s sessions=%u arenas=%u why=\"%s\"", p->name, k->sessions, k->arenas,
                  k->why);
    step_spares(p);
}

/* ---- what workers ask for */

uint64_t agent_prewarm_quiet_ns(const struct pool *p)
{
    return p->count.attached == 0 ? DUE_NOW : p->taken_ns + QUIET_MS * BASE_NS_PER_MS;
}

uint32_t agent_prewarm_now(const struct pool *p, uint32_t kept)
{
    const bool quiet = world_now_ns(p->world) >= agent_prewarm_quiet_ns(p);
    return quiet || agent_quotas_are_shared(p) ? kept : (kept + 1) / 2;
}

/* Forgets the seconds that have gone round. */
static uint64_t turn_seconds(struct world *w, struct prewarm *k)
{
    const uint64_t second = world_now_ns(w) / BASE_NS_PER_S;
    if (second - k->second >= POOL_SECONDS)
        memset(k->taken, 0, sizeof k->taken);
    else
        for (uint64_t i = k->second + 1; i <= second; i++)
            k->taken[i % POOL_SECONDS] = 0;
    k->second = second;
    return second;
}

void agent_prewarm_taken(struct pool *p)
{
    struct prewarm *k = &p->prewarm;
    const uint32_t now = ++k->taken[turn_seconds(p->world, k) % POOL_SECONDS];
    if (now > k->demand) {
        k->demand = now;
        set_targets(p);
    }
}

/* With each second one is forgotten in which workers came. */
uint64_t agent_prewarm_due_ns(const struct pool *p)
{
    const struct prewarm *k = &p->prewarm;
    return due_first(spares_due_ns(p),
                     due_if(k->demand > 0 || !are_explained(p), (k->second + 1) * BASE_NS_PER_S));
}

void agent_prewarm_tick(struct pool *p)
{
    struct prewarm *k = &p->prewarm;
    const uint64_t before = k->second;
    step_spares(p);
    if (turn_seconds(p->world, k) == before)
        return;
    k->demand = 0;
    for (uint32_t i = 0; i < POOL_SECONDS; i++)
        if (k->taken[i] > k->demand)
            k->demand = k->taken[i];
    set_targets(p);
    explain_prewarm(p);
}

/* ---- shown */

void agent_prewarm_status(const struct pool *p, struct base_text *t)
{
    const struct prewarm *k = &p->prewarm;
    const uint64_t most = k->desired.numbers.ahead_max;
    uint64_t sessions = 0, arenas = 0, demand = 0; /* of all lanes */
    for (const struct pool *l = p; l != NULL; l = agent_pools_next_lane(p, l)) {
        sessions += l->prewarm.sessions;
        arenas += l->prewarm.arenas;
        demand += l->prewarm.demand;
    }
    char service[FAB_SERVICE_TEXT];
    base_json_u64(t, "dcis", k->dcis);
    base_json_u64(t, "spares", k->spares);
    base_json_u64(t, "connections", k->connections);
    base_json_u64(t, "responders", k->responders);
    base_json_u64(t, "sessions_ahead", sessions);
    base_json_u64(t, "arenas_ahead", arenas);
    base_json_u64_or_null(t, "ahead_max", most, RESOURCE_UNSAID);
    base_json_u64(t, "demand_per_s", demand);
    base_json_string(t, "from", k->desired.name[0] != '\0' ? "metaserver" : "file");
    base_json_string(t, "why", k->why);
    base_json_string(t, "service", fab_service_format(&k->service, service));
}
