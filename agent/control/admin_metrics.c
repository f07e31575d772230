/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's metrics. What a pool counts has its name as a label, and goes with it. */
#include <stdio.h>

#include "admin_counters.h"
#include "agent/connector.h"
#include "agent_query.h"
#include "applied_report.h"
#include "base/latency.h"
#include "base/metrics.h"
#include "clock_watch.h"
#include "control/world_log.h"
#include "dci.h"
#include "names.h"
#include "node.h"
#include "pool_lanes.h"
#include "pools.h"
#include "prefer.h"
#include "proofs.h"
#include "publications.h"
#include "quotas.h"
#include "register.h"
#include "windows.h"

static const enum base_metric_type GAUGE = BASE_METRIC_GAUGE, COUNTER = BASE_METRIC_COUNTER;
static const enum base_metric_type HISTOGRAM = BASE_METRIC_HISTOGRAM;

/* Its name; and of a pool with several lanes, which one. How many labels that is. */
enum { LANE_TEXT = 12 };
static size_t label_lane(const struct pool *p, struct base_metric_label out[2],
                         char text[LANE_TEXT])
{
    const bool several = agent_lanes_count(p) > 1;
    snprintf(text, LANE_TEXT, "%u", p->lane_number);
    out[0] = (struct base_metric_label){"pool", p->name};
    out[1] = (struct base_metric_label){"lane", text};
    return several ? 2 : 1;
}

/* What each tenant has of what its quotas bound. */
static void tenant_metrics(const struct agent *a, const struct used *used, struct base_text *t)
{
    static const char *const names[][2] = {
        {"kedge_agent_tenant_sessions", "Sessions of a tenant that count against its quota."},
        {"kedge_agent_tenant_sessions_ended",
         "Of them, those that have ended and that their workers' processes have not closed."},
        {"kedge_agent_tenant_arena_bytes",
         "Memory of arenas that counts against a tenant's quota."},
        {"kedge_agent_tenant_vqps", "Connected virtual queue pairs of a tenant."},
        {"kedge_agent_tenant_mrs", "Registered memory regions of a tenant."},
        {"kedge_agent_tenant_control_ops_total",
         "What workers of a tenant asked for beside data operations, and got."},
    };
    enum { CONTROL_OPS = 5, COUNT };
    for (int m = 0; m < COUNT; m++) {
        base_metric_head(t, names[m][0], m == CONTROL_OPS ? COUNTER : GAUGE, names[m][1]);
        for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
            if (a->tenants.at[i].state == AGENT_TENANT_FREE)
                continue;
            const struct base_metric_label label = {"tenant", a->tenants.at[i].config.name};
            const struct used *u = &used[i];
            const uint64_t values[] = {u->now.sessions, u->now.ended, u->now.bytes,
                                       u->vqps,         u->mrs,       u->so_far.control_ops};
            base_metric_u64(t, names[m][0], &label, 1, values[m]);
        }
    }
}

/* By the quota that was used up. */
static void refusal_metrics(const struct agent *a, const struct used *used, struct base_text *t)
{
    static const char name[] = "kedge_agent_tenant_quota_refused_total";
    base_metric_head(t, name, COUNTER, "What a tenant asked for beyond its quotas.");
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        if (a->tenants.at[i].state == AGENT_TENANT_FREE)
            continue;
        for (int which = 0; which < LANE_QUOTAS; which++) {
            const struct base_metric_label labels[] = {{"tenant", a->tenants.at[i].config.name},
                                                       {"quota", agent_quota_name(which)}};
            base_metric_u64(t, name, labels, 2, used[i].so_far.refused[which]);
        }
    }
}

static void apart_metrics(const struct agent *a, struct base_text *t)
{
    static const char name[] = "kedge_agent_tenant_quarantined";
    base_metric_head(
        t, name, GAUGE,
        "Pools where a tenant's requests go apart from others', whose queue pairs they "
        "have broken.");
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        const struct base_metric_label label = {"tenant", a->tenants.at[i].config.name};
        uint64_t pools = 0;
        if (a->tenants.at[i].state == AGENT_TENANT_FREE)
            continue;
        for (const struct pool *p = agent_pools_next(a, NULL); p != NULL;
             p = agent_pools_next(a, p))
            pools += p->quarantined[i];
        base_metric_u64(t, name, &label, 1, pools);
    }
}

static void rests_metrics(const struct agent *a, struct base_text *t)
{
    static const char name[] = "kedge_agent_tenant_rests_total";
    base_metric_head(t, name, COUNTER,
                     "Times that a tenant's requests had to wait since they had broken queue "
                     "pairs, by pool.");
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        if (a->tenants.at[i].state == AGENT_TENANT_FREE)
            continue;
        for (const struct pool *p = agent_pools_next(a, NULL); p != NULL;
             p = agent_pools_next(a, p)) {
            char lane[LANE_TEXT];
            struct base_metric_label labels[3] = {{"tenant", a->tenants.at[i].config.name}};
            const size_t count = 1 + label_lane(p, &labels[1], lane);
            base_metric_u64(t, name, labels, count, lane_rests(p->lane, i));
        }
    }
}

static void print_sample(struct base_text *t, const char *name, const struct pool *p,
                         uint64_t value)
{
    struct base_metric_label labels[2];
    char lane[LANE_TEXT];
    base_metric_u64(t, name, labels, label_lane(p, labels, lane), value);
}

/* One series for each lane of each pool: `value` is of p. */
#define EACH_POOL(name, type, help, value)                                                         \
    base_metric_head(t, name, type, help);                                                         \
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))  \
    print_sample(t, name, p, value)

#define NAMED(prefix, what, type) (type == COUNTER ? prefix #what "_total" : prefix #what)

static struct lane_stats read_lane_stats(const struct pool *p)
{
    struct lane_stats s;
    lane_stats(p->lane, &s);
    return s;
}

static struct connector_stats read_connector_stats(const struct pool *p)
{
    struct connector_stats s;
    connector_stats(p->device.connector, &s);
    return s;
}

static void lane_metrics(const struct agent *a, struct base_text *t)
{
#define METRIC(what, help, type)                                                                   \
    EACH_POOL(NAMED("kedge_agent_lane_", what, type), type, help, read_lane_stats(p).what);
    LANE_COUNTERS(METRIC)
#undef METRIC
}

static void connector_metrics(const struct agent *a, struct base_text *t)
{
#define METRIC(what, help, type)                                                                   \
    EACH_POOL(NAMED("kedge_agent_connections_", what, type), type, help,                           \
              read_connector_stats(p).what);
    CONNECTOR_COUNTERS(METRIC)
#undef METRIC
}

static void pool_metrics(const struct agent *a, struct base_text *t)
{
    EACH_POOL("kedge_agent_sessions_ready", GAUGE, "Sessions made ahead.", p->count.ready);
    EACH_POOL("kedge_agent_sessions_live", GAUGE, "Attached workers.", p->count.live);
    EACH_POOL("kedge_agent_attached_total", COUNTER, "Workers that attached.", p->count.attached);
    EACH_POOL("kedge_agent_attached_ahead_total", COUNTER,
              "Workers for whom session and arena were ready when they came.",
              p->count.attached_ahead);
    EACH_POOL("kedge_agent_lane_lodgers", GAUGE,
              "Sessions of other lanes of the pool for which this one posts.", p->moves.lodgers);
    EACH_POOL("kedge_agent_lane_moves_total", COUNTER,
              "Sessions of other lanes that this one had, and that are back there.",
              p->moves.moved);
    EACH_POOL("kedge_agent_lane_moves_refused_total", COUNTER,
              "Sessions that were to come to this lane, and stayed in theirs.", p->moves.refused);
    EACH_POOL("kedge_agent_session_faults_total", COUNTER,
              "Sessions that the agent ended for what their workers did.", p->count.faults);
    EACH_POOL("kedge_agent_not_ahead_total", COUNTER,
              "Sessions or arenas made while a worker waited.", p->count.not_ahead);
    EACH_POOL("kedge_agent_arena_bytes", GAUGE, "Memory of arenas.", p->count.arena_bytes);
    EACH_POOL("kedge_agent_message_memory_bytes", GAUGE,
              "Memory into which messages come, before workers have them.",
              agent_messages_bytes(p));
    EACH_POOL("kedge_agent_arenas_ahead", GAUGE, "Arenas that are ready and nobody's.",
              p->count.arenas_ahead);
    EACH_POOL("kedge_agent_arenas_recycled_total", COUNTER, "Arenas given back to their tenant.",
              p->count.recycled);
    EACH_POOL("kedge_agent_sessions_ahead_target", GAUGE, "Sessions that are to be kept ready.",
              p->prewarm.sessions);
    EACH_POOL("kedge_agent_arenas_ahead_target", GAUGE, "Arenas that are to be kept ready.",
              p->prewarm.arenas);
    EACH_POOL("kedge_agent_pool_demand", GAUGE,
              "Most workers that came in the busiest second of the last 60 seconds.",
              p->prewarm.demand);
    EACH_POOL("kedge_agent_dcis_resting", GAUGE,
              "DC initiators that wait until no packet of their former lives is under way.",
              agent_dcis_resting(p));
    EACH_POOL("kedge_agent_dcis_missing", GAUGE,
              "DC initiators that were given up, until others take their places.",
              agent_dcis_missing(p));
    EACH_POOL("kedge_agent_dcis_replaced_total", COUNTER,
              "DC initiators that the device did not bring back, and that were given up.",
              p->repairs.replaced);
    EACH_POOL("kedge_agent_leases_revoked_total", COUNTER, "Leases that the operator revoked.",
              p->leases.revoked);
    EACH_POOL("kedge_agent_arenas_forced_total", COUNTER,
              "Registrations that the operator took away by force.", p->leases.forced);
}

/* Of each pool a family's histogram. */
static void print_latency(const struct agent *a, struct base_text *t, const char *name,
                          const char *help,
                          const struct base_latency *(*of)(const struct pool *, int which),
                          int which)
{
    base_metric_head(t, name, HISTOGRAM, help);
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        struct base_metric_label labels[2];
        char lane[LANE_TEXT];
        base_latency_print(t, name, labels, label_lane(p, labels, lane), of(p, which));
    }
}

static const struct base_latency *latency_of_lane(const struct pool *p, int which)
{
    return lane_latency(p->lane, (enum lane_latency)which);
}

static const struct base_latency *latency_of_attach(const struct pool *p, int which)
{
    (void)which;
    return &p->attach_latency;
}

static void latency_metrics(const struct agent *a, struct base_text *t)
{
    print_latency(a, t, "kedge_agent_attach_seconds",
                  "How long workers that attached had waited for their sessions since they asked.",
                  latency_of_attach, 0);
    print_latency(a, t, "kedge_agent_connect_seconds",
                  "How long workers' connects took that had to ask the agent for an endpoint.",
                  latency_of_lane, LANE_LATENCY_CONNECT);
    print_latency(a, t, "kedge_agent_control_operation_seconds",
                  "How long took what else workers ask lanes for beside data, withdrawals apart.",
                  latency_of_lane, LANE_LATENCY_CONTROL);
    print_latency(a, t, "kedge_agent_operation_seconds",
                  "How long requests were out that completed well: a sample, of each pool at most "
                  "one in a millisecond.",
                  latency_of_lane, LANE_LATENCY_OPERATION);
}

static void fenced_metrics(const struct agent *a, struct base_text *t)
{
    base_metric_one(t, "kedge_agent_fenced_regions", GAUGE,
                    "Regions that wait for no lease when they go.", a->fenced.now);
    base_metric_one(t, "kedge_agent_own_registrations", GAUGE,
                    "Regions with registrations of their own, those among them.", a->fenced.own);
    base_metric_one(t, "kedge_agent_registrations_ahead", GAUGE,
                    "Registrations that are made for regions to come.", a->fenced.ahead);
    base_metric_one(t, "kedge_agent_registrations_drawn_total", COUNTER,
                    "Regions that had a registration made ahead.", a->fenced.drawn);
    base_metric_one(t, "kedge_agent_fenced_registered_total", COUNTER,
                    "Registrations that were made when a region asked for one.",
                    a->fenced.registered);
    base_metric_one(t, "kedge_agent_fenced_refused_total", COUNTER,
                    "Such regions that were refused because fenced_regions are in use.",
                    a->fenced.refused);
    base_metric_one(t, "kedge_agent_fenced_failed_total", COUNTER,
                    "Regions' registrations that the device did not make.", a->fenced.failed);
}

/* By which those that are well, and of one zone, are asked before others. */
static void nearness_metrics(const struct agent *a, struct base_text *t)
{
    static const char trip[] = "kedge_agent_metaserver_round_trip_seconds",
                      place[] = "kedge_agent_metaserver_place";
    const struct registration *own = a->pools[0]->registration;
    base_metric_head(t, trip, GAUGE,
                     "The shortest of the last renewals at a metaserver; 0: it is not known.");
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        base_metric_double(t, trip, &(struct base_metric_label){"metaserver", own[i].url}, 1,
                           (double)agent_nearness_ns(&own[i]) / 1e9);
    base_metric_head(t, place, GAUGE, "Which metaserver is asked first (1), second, and so on.");
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        base_metric_u64(t, place, &(struct base_metric_label){"metaserver", own[i].url}, 1,
                        1 + agent_prefer_place(a->pools[0], i));
}

void agent_metrics_print(struct agent *a, struct base_text *t)
{
    struct used used[AGENT_TENANT_SLOTS];
    base_metric_build_info(t, "kedge_agent_build_info");
    base_metric_one(t, "kedge_agent_log_dropped_total", BASE_METRIC_COUNTER,
                    "Lines of the log that nobody took in time.", world_log_dropped(a->world));
    lane_metrics(a, t);
    pool_metrics(a, t);
    latency_metrics(a, t);
    if (a->rc || a->hybrid)
        connector_metrics(a, t);
    base_metric_one(t, "kedge_agent_attach_refused_total", COUNTER, "Workers that were refused.",
                    a->refused);
    base_metric_one(t, "kedge_agent_kept_out_total", COUNTER,
                    "Times that a uid of no tenant connected too often and was kept out.",
                    a->strangers.kept_out);
    base_metric_one(t, "kedge_agent_crowded_total", COUNTER,
                    "Connections that made room on the attach sockets before they attached, or "
                    "found none.",
                    a->crowded);
    base_metric_one(t, "kedge_agent_costly_sockets_total", COUNTER,
                    "Workers that were ended since so much watched their attach sockets that each "
                    "answer took long.",
                    a->costly);
    base_metric_one(t, "kedge_agent_memory_whole", GAUGE,
                    "Whether workers can punch no holes in memory that they are given.",
                    a->world->keeps_whole);
    base_metric_one(t, "kedge_agent_unread_descriptors", GAUGE,
                    "Descriptors that workers were sent and have not read.", a->unread.all);
    base_metric_one(t, "kedge_agent_unread_refused_total", COUNTER,
                    "Times that a worker was sent none, since too many were unread.",
                    a->unread.refused);
    base_metric_one(t, "kedge_agent_attach_deferred_total", COUNTER,
                    "Of the refused, workers that were told when to come again: more came than "
                    "sessions could be made for.",
                    a->deferred);
    base_metric_one(t, "kedge_agent_wrong_tokens_total", COUNTER,
                    "Tokens that workers have shown and no tenant has.", a->wrong_tokens);
    base_metric_one(t, "kedge_agent_port_up", GAUGE, "Whether the device's port is up.",
                    !a->address.down);
    base_metric_one(t, "kedge_agent_address_up", GAUGE,
                    "Whether the node's GID is on the device's port.", !a->address.gone);
    base_metric_one(t, "kedge_agent_address_changes_total", COUNTER,
                    "How often the node's GID went, came back, moved or changed.", a->address_news);
    agent_clock_metrics(a, t);
    base_metric_one(t, "kedge_agent_qp_events_total", COUNTER,
                    "Queue pairs of which the device said by itself that they broke.",
                    a->qp_events);
    agent_tenants_add_up(a, used);
    tenant_metrics(a, used, t);
    refusal_metrics(a, used, t);
    apart_metrics(a, t);
    rests_metrics(a, t);
    agent_windows_metrics(a, t);
    fenced_metrics(a, t);
    base_metric_one(t, "kedge_agent_metaservers", GAUGE,
                    "Metaservers that have this node, with all its pools.",
                    agent_registrations_done(a));
    nearness_metrics(a, t);
    base_metric_one(t, "kedge_agent_tls_certificate_expiry_timestamp_seconds", GAUGE,
                    "When the certificate that the agent shows ends, in seconds since 1970; 0: it "
                    "shows none.",
                    (uint64_t)a->tls_expires_s);
    agent_desired_metrics(a, t);
    agent_node_metrics(a, t);
    agent_proofs_metrics(a, t);
    agent_publications_metrics(a, t);
    agent_query_metrics(a, t);
}
