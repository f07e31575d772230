/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's status, as its operator reads it: sums over the pools, then each pool's own. */
#include "admin_counters.h"
#include "agent/connector.h"
#include "applied_report.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "clock_watch.h"
#include "dci.h"
#include "fabric/model.h"
#include "follow.h"
#include "lane_setup.h"
#include "pool_lanes.h"
#include "names.h"
#include "node.h"
#include "pools.h"
#include "prefer.h"
#include "prewarm.h"
#include "proofs.h"
#include "publications.h"
#include "quotas.h"
#include "register.h"
#include "sessions.h"
#include "windows.h"

static const char *state_name(enum registration_state state)
{
    static const char *const names[] = {"none", "asking", "registered", "lost"};
    return names[state];
}

struct lane_stats agent_lanes_sum(const struct agent *a, const struct pool *endpoint)
{
    struct lane_stats s, sum = {.passes = 0};
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        if (endpoint != NULL && pool_endpoint(p) != endpoint)
            continue;
        lane_stats(p->lane, &s);
#define ADD(what, help, type) sum.what += s.what;
        LANE_COUNTERS(ADD)
#undef ADD
    }
    return sum;
}

static struct connector_stats sum_connectors(const struct agent *a)
{
    struct connector_stats s, sum = {.requests = 0};
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        connector_stats(p->device.connector, &s);
#define ADD(what, help, type) sum.what += s.what;
        CONNECTOR_COUNTERS(ADD)
#undef ADD
    }
    return sum;
}

static void print_lane(const struct lane_stats *s, struct base_text *t)
{
    base_json_object(t, "lane");
#define PRINT(what, help, type) base_json_u64(t, #what, s->what);
    LANE_COUNTERS(PRINT)
#undef PRINT
    base_json_object_end(t);
}

static void status_connectors(const struct agent *a, struct base_text *t)
{
    if (!a->rc && !a->hybrid)
        return;
    const struct connector_stats s = sum_connectors(a);
    base_json_object(t, "connections");
#define PRINT(what, help, type) base_json_u64(t, #what, s.what);
    CONNECTOR_COUNTERS(PRINT)
#undef PRINT
    base_json_object_end(t);
}

/* What a tenant has, and its quota: null without one. */
static void status_bounded(struct base_text *t, const char *what, uint64_t used, uint64_t most,
                           uint64_t none)
{
    char max[32];
    snprintf(max, sizeof max, "max_%s", what);
    base_json_u64(t, what, used);
    base_json_u64_or_null(t, max, most, none);
}

static void status_control_ops(struct base_text *t, const struct quota_counts *n, uint32_t rate)
{
    uint64_t all = 0;
    base_json_u64(t, "control_ops", n->control_ops);
    base_json_u64_or_null(t, "max_control_ops_per_s", rate, 0);
    base_json_object(t, "refused");
    for (int which = 0; which < LANE_QUOTAS; which++) {
        base_json_u64(t, agent_quota_name(which), n->refused[which]);
        all += n->refused[which];
    }
    base_json_object_end(t);
    base_json_u64(t, "quota_refused", all);
}

static void status_sessions(const struct pool *p, struct base_text *t)
{
    for (uint64_t i = 0; i < p->config->max_sessions; i++) {
        const struct agent_session *s = &p->sessions[i];
        if (s->stage != STAGE_LIVE)
            continue;
        base_json_object(t, NULL);
        base_json_u64(t, "id", i);
        base_json_string(t, "pool", p->name);
        base_json_u64(t, "lane", p->lane_number);
        base_json_string(t, "tenant", p->agent->tenants.at[s->tenant - 1].config.name);
        base_json_u64(t, "uid", s->uid);
        base_json_i64(t, "pid", s->pid);
        base_json_u64(t, "arenas", s->arenas);
        base_json_object_end(t);
    }
}

static void status_counts(const struct session_counts *c, uint64_t refused, struct base_text *t)
{
    base_json_object(t, "sessions");
    base_json_u64(t, "ready", c->ready);
    base_json_u64(t, "live", c->live);
    base_json_u64(t, "ending", c->ending);
    base_json_u64(t, "attached", c->attached);
    base_json_u64(t, "refused", refused);
    base_json_u64(t, "attached_ahead", c->attached_ahead);
    base_json_u64(t, "not_ahead", c->not_ahead);
    base_json_u64(t, "faults", c->faults);
    base_json_object_end(t);
    base_json_object(t, "memory");
    base_json_u64(t, "arenas", c->arenas);
    base_json_u64(t, "arenas_ahead", c->arenas_ahead);
    base_json_u64(t, "bytes", c->arena_bytes);
    base_json_u64(t, "recycled", c->recycled);
    base_json_object_end(t);
}

static void status_dcis(const struct pool *endpoint, struct base_text *t)
{
    struct dci_counts sum = {.resting = 0};
    for (const struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        agent_dcis_count(p, &sum);
    agent_dcis_status(&sum, world_now_ns(endpoint->world), t);
}

/* Name, lease and what it keeps ready, of all its lanes. */
static void status_pool(const struct pool *p, const char *key, struct base_text *t)
{
    base_json_object(t, key);
    base_json_string(t, "name", p->name);
    base_json_u64(t, "number", p->number);
    base_json_u64(t, "mr_lease_ms", p->mr_lease_ns / BASE_NS_PER_MS);
    agent_prewarm_status(p, t);
    status_dcis(p, t);
}

static void status_lane(const struct pool *p, struct base_text *t)
{
    struct lane_stats s;
    struct dci_counts dcis = {.resting = 0};
    base_json_object(t, NULL);
    base_json_u64(t, "number", p->lane_number);
    base_json_u64_or_null(t, "cpu", agent_lane_cpu(p), AGENT_ANY_CPU);
    base_json_u64(t, "requests_per_s", p->lane_rate.per_s);
    base_json_u64(t, "lodgers", p->moves.lodgers);
    base_json_u64(t, "moves", p->moves.moved);
    base_json_u64(t, "moves_refused", p->moves.refused);
    status_counts(&p->count, 0, t);
    agent_dcis_count(p, &dcis);
    agent_dcis_status(&dcis, world_now_ns(p->world), t);
    lane_stats(p->lane, &s);
    print_lane(&s, t);
    agent_windows_lane_status(p, t);
    base_json_object_end(t);
}

static void status_lanes(const struct pool *endpoint, struct base_text *t)
{
    base_json_array(t, "lanes");
    for (const struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        status_lane(p, t);
    base_json_array_end(t);
}

/* Sums over its lanes, then each lane's own where there are several. */
static void status_pools(const struct agent *a, struct base_text *t)
{
    base_json_array(t, "pools");
    for (struct pool *p = agent_pools_next_endpoint(a, NULL); p != NULL;
         p = agent_pools_next_endpoint(a, p)) {
        const struct session_counts c = agent_pools_count_lanes(p);
        const struct lane_stats s = agent_lanes_sum(a, p);
        status_pool(p, NULL, t);
        base_json_string(t, "state", agent_pools_state(p));
        base_json_u64(t, "metaservers", agent_registrations_count(p));
        status_counts(&c, 0, t);
        print_lane(&s, t);
        agent_windows_pool_status(p, t);
        agent_messages_status(p, t);
        if (agent_lanes_count(p) > 1)
            status_lanes(p, t);
        base_json_object_end(t);
    }
    base_json_array_end(t);
}

void agent_tenants_add_up(const struct agent *a, struct used used[AGENT_TENANT_SLOTS])
{
    struct quota_used now[AGENT_TENANT_SLOTS];
    agent_quotas_used(a, now);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        used[i] = (struct used){.now = now[i], .so_far = a->quotas_before[i]};
    for (const struct pool *p = agent_pools_next_endpoint(a, NULL); p != NULL;
         p = agent_pools_next_endpoint(a, p))
        for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
            used[i].vqps += p->quota[i].vqps;
            used[i].mrs += p->quota[i].mrs;
            agent_quotas_add(&used[i].so_far, &p->quota[i]);
        }
}

/* In how many pools its requests go apart from others', and how often they have rested. */
static void status_breaks(const struct agent *a, uint32_t i, struct base_text *t)
{
    uint64_t quarantined = 0, rests = 0;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        quarantined += p->quarantined[i];
        rests += lane_rests(p->lane, i);
    }
    base_json_u64(t, "quarantined", quarantined);
    base_json_u64(t, "rests", rests);
}

static void status_tenant(const struct agent *a, uint32_t i, const struct used *u,
                          struct base_text *t)
{
    const struct agent_tenant *tenant = &a->tenants.at[i];
    const struct lane_quota *q = &a->pools[0]->quota[i];
    base_json_object(t, NULL);
    base_json_string(t, "name", tenant->config.name);
    base_json_string(t, "from", tenant->central ? "metaserver" : "file");
    base_json_bool(t, "leaving", tenant->state == AGENT_TENANT_LEAVING);
    base_json_string(t, "pool",
                     tenant->config.pool[0] != '\0' ? tenant->config.pool : a->config.pool);
    status_bounded(t, "sessions", u->now.sessions, tenant->config.sessions, UINT64_MAX);
    base_json_u64(t, "sessions_ended", u->now.ended);
    status_bounded(t, "memory_bytes", u->now.bytes, tenant->config.memory, UINT64_MAX);
    status_bounded(t, "vqps", u->vqps, q->max_vqps, UINT32_MAX);
    status_bounded(t, "mrs", u->mrs, q->max_mrs, UINT32_MAX);
    status_control_ops(t, &u->so_far, q->control_ops_per_s);
    status_breaks(a, i, t);
    base_json_u64(t, "tokens", tenant->config.tokens);
    base_json_string(t, "socket", tenant->own.socket);
    base_json_object_end(t);
}

static void status_tenants(const struct agent *a, struct base_text *t)
{
    struct used used[AGENT_TENANT_SLOTS];
    agent_tenants_add_up(a, used);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        if (a->tenants.at[i].state == AGENT_TENANT_FREE)
            continue;
        status_tenant(a, i, &used[i], t);
    }
}

static void status_lists(struct agent *a, struct base_text *t)
{
    const struct registration *own = a->pools[0]->registration;
    char why[DESIRED_WHY];
    base_json_array(t, "metaservers");
    for (uint32_t i = 0; i < a->config.metaservers; i++) {
        const struct registration *r = agent_registrations_find(a, i);
        base_json_object(t, NULL);
        base_json_string(t, "url", r->url);
        base_json_string(t, "state", state_name(r->state));
        base_json_string(t, "pool", r->state != REGISTRATION_DONE ? r->pool->name : "");
        base_json_string(t, "why", r->state == REGISTRATION_DONE ? r->quiet : r->why);
        base_json_string(t, "zone", own[i].standing.zone);
        base_json_u64_or_null(t, "round_trip_us", (agent_nearness_ns(&own[i]) + 999) / 1000, 0);
        base_json_u64(t, "asked", 1 + agent_prefer_place(a->pools[0], i));
        base_json_object_end(t);
    }
    base_json_array_end(t);
    agent_desired_why(a, why);
    base_json_object(t, "settings");
    base_json_string(t, "metaserver", agent_follow_metaserver(a));
    base_json_u64(t, "revision", a->follow.applied);
    base_json_u64(t, "seen", a->follow.seen);
    base_json_string(t, "why", why);
    why[0] = '\0';
    (void)agent_follow_unkept_why(a, why, sizeof why);
    base_json_string(t, "not_kept", why);
    base_json_object_end(t);
    base_json_array(t, "tenants");
    status_tenants(a, t);
    base_json_array_end(t);
    base_json_array(t, "sessions_list");
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        status_sessions(p, t);
    base_json_array_end(t);
    base_json_u64(t, "wrong_tokens", a->wrong_tokens);
    base_json_bool(t, "memory_whole", a->world->keeps_whole);
}

void agent_status_print(struct agent *a, struct base_text *t)
{
    char gid[BASE_GID_TEXT];
    const struct session_counts c = agent_pools_count(a);
    const struct lane_stats s = agent_lanes_sum(a, NULL);
    base_json_object(t, NULL);
    base_json_string(t, "version", KEDGE_VERSION);
    base_json_string(t, "node", a->config.node);
    base_json_string(t, "gid", base_gid_format(a->fab->caps.gid, gid));
    base_json_string(t, "provider", a->config.provider);
    if (a->fab->model != NULL)
        base_json_string(t, "modelled", a->fab->model->preset);
    base_json_string(t, "transport", a->rc ? "rc" : a->hybrid ? "hybrid" : "dc");
    base_json_string(t, "port", a->address.down ? "down" : "up");
    base_json_string(t, "address", a->address.gone ? "gone" : "up");
    base_json_u64(t, "mtu", 128u << a->port.mtu);
    base_json_u64(t, "incarnation", a->incarnation);
    base_json_u64(t, "uptime_ms", (world_now_ns(a->world) - a->started_ns) / BASE_NS_PER_MS);
    status_pool(a->pools[0], "pool", t);
    base_json_object_end(t);
    status_counts(&c, a->refused, t);
    print_lane(&s, t);
    status_connectors(a, t);
    status_pools(a, t);
    agent_windows_status(a, t);
    agent_clock_status(a, t);
    agent_node_status(a, t);
    agent_proofs_status(a, t);
    agent_publications_status(a, t);
    status_lists(a, t);
    base_json_object_end(t);
    base_text_append(t, "\n", 1);
}
