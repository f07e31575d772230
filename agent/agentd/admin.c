/* SPDX-License-Identifier: Apache-2.0 */
/* Status and metrics over the agent's own Unix socket, for its operator alone (mode 0600). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/http/server.h"
#include "base/metrics.h"
#include "leases.h"

enum { ANSWER_MAX = 1 << 20 };

/* Every counter of the lane, named once for status and metrics. */
#define LANE_COUNTERS(C)                                                                           \
    C(passes, "Passes of the lane.", COUNTER)                                                      \
    C(sleeps, "Times that the lane went to sleep.", COUNTER)                                       \
    C(posted, "Requests posted to the fabric.", COUNTER)                                           \
    C(completed, "Requests that completed well.", COUNTER)                                         \
    C(failed, "Requests that completed with an error.", COUNTER)                                   \
    C(refused, "Requests that were refused before they reached a queue pair.", COUNTER)            \
    C(doorbells, "Lists handed to the fabric.", COUNTER)                                           \
    C(endpoint_reads, "READs of metaservers' tables.", COUNTER)                                    \
    C(mr_reads, "READs of other nodes' MR tables.", COUNTER)                                       \
    C(lookups_failed, "Lookups that no metaserver answered.", COUNTER)                             \
    C(wrong_keys, "Requests with an unknown virtual key.", COUNTER)                                \
    C(qp_broken, "Queue pairs that broke.", COUNTER)                                               \
    C(qp_overdue, "Queue pairs ended since a request was out for longer than any may take.",       \
      COUNTER)                                                                                     \
    C(reposted, "Requests posted again after a break.", COUNTER)                                   \
    C(paths_failed, "Endpoints that could not be reached to begin with.", COUNTER)                 \
    C(links_evicted, "Connections given up for another endpoint (rc).", COUNTER)                   \
    C(links, "Connections to endpoints (rc).", GAUGE)                                              \
    C(sessions, "Sessions of the lane.", GAUGE)                                                    \
    C(vqps, "Connected virtual queue pairs.", GAUGE)                                               \
    C(peers, "Known endpoints.", GAUGE)                                                            \
    C(flows, "Endpoints in use.", GAUGE)                                                           \
    C(inflight, "Requests in the lane.", GAUGE)                                                    \
    C(mrs, "Registered memory regions.", GAUGE)                                                    \
    C(suspects, "Endpoints that do not answer.", GAUGE)

/* Every counter of the connector, with rc. */
#define CONNECTOR_COUNTERS(C)                                                                      \
    C(requests, "Handshakes asked for, repeated messages included.", COUNTER)                      \
    C(connected, "Connections made to other nodes.", COUNTER)                                      \
    C(accepted, "Connections that other nodes made to this one.", COUNTER)                         \
    C(failed, "Connections that could not be made.", COUNTER)                                      \
    C(refused, "Requests for a connection that were refused.", COUNTER)                            \
    C(dropped, "Handshake messages that were late, or made no sense.", COUNTER)                    \
    C(lost, "Handshake messages that could not be sent.", COUNTER)                                 \
    C(reclaimed, "Connections of nodes that were gone.", COUNTER)                                  \
    C(initiators, "Queue pairs for requests to other nodes.", GAUGE)                               \
    C(initiators_ready, "Of them, those kept ready.", GAUGE)                                       \
    C(responders, "Queue pairs for requests of other nodes.", GAUGE)                               \
    C(responders_ready, "Of them, those kept ready.", GAUGE)                                       \
    C(outgoing, "Connections to other nodes.", GAUGE)                                              \
    C(incoming, "Connections of other nodes to this one.", GAUGE)                                  \
    C(addresses, "Address handles for handshakes.", GAUGE)

static const char *state_name(enum registration_state state)
{
    static const char *const names[] = {"none", "asking", "registered", "lost"};
    return names[state];
}

static void status_lane(struct agent *a, struct kedge_text *t)
{
    struct kedge_lane_stats s;
    const char *comma = "";
    kedge_lane_stats(a->lane, &s);
    kedge_text_printf(t, "\"lane\":{");
#define PRINT(what, help, type)                                                                    \
    kedge_text_printf(t, "%s\"" #what "\":%llu", comma, (unsigned long long)s.what);               \
    comma = ",";
    LANE_COUNTERS(PRINT)
#undef PRINT
    kedge_text_printf(t, "}");
}

static void status_connector(struct agent *a, struct kedge_text *t)
{
    struct kedge_connector_stats s;
    const char *comma = "";
    if (a->device.connector == NULL)
        return;
    kedge_connector_stats(a->device.connector, &s);
    kedge_text_printf(t, ",\"connections\":{");
#define PRINT(what, help, type)                                                                    \
    kedge_text_printf(t, "%s\"" #what "\":%llu", comma, (unsigned long long)s.what);               \
    comma = ",";
    CONNECTOR_COUNTERS(PRINT)
#undef PRINT
    kedge_text_printf(t, "}");
}

/* What a tenant has, and its quota: null without one. */
static void status_bounded(struct kedge_text *t, const char *what, uint32_t used, uint64_t most,
                           uint64_t none)
{
    kedge_text_printf(t, "\"%s\":%u,\"max_%s\":", what, used, what);
    if (most == none)
        kedge_text_printf(t, "null,");
    else
        kedge_text_printf(t, "%llu,", (unsigned long long)most);
}

static void status_lists(struct agent *a, struct kedge_text *t)
{
    const char *comma = "";
    kedge_text_printf(t, ",\"metaservers\":[");
    for (uint32_t i = 0; i < a->config.metaservers; i++, comma = ",") {
        kedge_text_printf(t, "%s{\"url\":", comma);
        kedge_text_json(t, a->registration[i].url);
        kedge_text_printf(t, ",\"state\":\"%s\",\"why\":", state_name(a->registration[i].state));
        kedge_text_json(t, a->registration[i].why);
        kedge_text_printf(t, "}");
    }
    kedge_text_printf(t, "],\"settings\":{\"revision\":%llu,\"seen\":%llu,\"why\":",
                      (unsigned long long)a->follow.applied, (unsigned long long)a->follow.seen);
    kedge_text_json(t, a->follow.why);
    kedge_text_printf(t, "},\"tenants\":[");
    comma = "";
    for (uint32_t i = 0; i < AGENTD_TENANTS; i++) {
        const struct agentd_tenant *tenant = &a->tenants.at[i];
        if (tenant->state == AGENTD_TENANT_FREE)
            continue;
        kedge_text_printf(t, "%s{\"name\":", comma);
        comma = ",";
        kedge_text_json(t, tenant->config.name);
        kedge_text_printf(t, ",\"from\":\"%s\",\"leaving\":%s,",
                          tenant->central ? "metaserver" : "file",
                          tenant->state == AGENTD_TENANT_LEAVING ? "true" : "false");
        status_bounded(t, "sessions", sessions_of_tenant(a, i + 1), tenant->config.sessions,
                       UINT64_MAX);
        status_bounded(t, "vqps", a->quota[i].vqps, a->quota[i].max_vqps, UINT32_MAX);
        status_bounded(t, "mrs", a->quota[i].mrs, a->quota[i].max_mrs, UINT32_MAX);
        kedge_text_printf(t, "\"quota_refused\":%llu}", (unsigned long long)a->quota[i].refused);
    }
    kedge_text_printf(t, "],\"sessions_list\":[");
    comma = "";
    for (uint64_t i = 0; i < a->config.max_sessions; i++) {
        const struct agent_session *s = &a->sessions[i];
        if (s->stage != STAGE_LIVE)
            continue;
        kedge_text_printf(t, "%s{\"id\":%llu,\"tenant\":", comma, (unsigned long long)i);
        kedge_text_json(t, a->tenants.at[s->tenant - 1].config.name);
        kedge_text_printf(t, ",\"uid\":%u,\"pid\":%d,\"arenas\":%u}", (unsigned)s->uid, (int)s->pid,
                          s->arenas);
        comma = ",";
    }
    kedge_text_printf(t, "]");
}

static void status(struct agent *a, struct kedge_text *t)
{
    char gid[KEDGE_GID_TEXT];
    const struct session_counts *c = &a->count;
    kedge_text_printf(t, "{\"version\":\"%s\",\"node\":", KEDGE_VERSION);
    kedge_text_json(t, a->config.node);
    kedge_text_printf(t,
                      ",\"gid\":\"%s\",\"provider\":\"%s\",\"transport\":\"%s\",\"port\":\"%s\","
                      "\"incarnation\":%u,"
                      "\"uptime_ms\":%llu,\"pool\":{\"name\":",
                      kedge_gid_format(a->device.fab->caps.gid, gid), a->config.provider,
                      a->device.rc ? "rc" : "dc", a->port_down ? "down" : "up", a->incarnation,
                      (unsigned long long)((kedge_clock_ns() - a->started_ns) / KEDGE_NS_PER_MS));
    kedge_text_json(t, a->config.pool);
    kedge_text_printf(t, ",\"mr_lease_ms\":%llu,",
                      (unsigned long long)(a->config.mr_lease_ns / KEDGE_NS_PER_MS));
    pool_status(a, t);
    kedge_text_printf(t, "},");
    kedge_text_printf(
        t,
        "\"sessions\":{\"ready\":%u,\"live\":%u,\"ending\":%u,\"attached\":%llu,\"refused\":%llu,"
        "\"attached_ahead\":%llu,\"not_ahead\":%llu,\"faults\":%llu},",
        c->ready, c->live, c->ending, (unsigned long long)c->attached,
        (unsigned long long)c->refused, (unsigned long long)c->attached_ahead,
        (unsigned long long)c->not_ahead, (unsigned long long)c->faults);
    kedge_text_printf(
        t, "\"memory\":{\"arenas\":%u,\"arenas_ahead\":%u,\"bytes\":%llu,\"recycled\":%llu},",
        c->arenas, c->arenas_ahead, (unsigned long long)c->arena_bytes,
        (unsigned long long)c->recycled);
    status_lane(a, t);
    status_connector(a, t);
    windows_status(a, t);
    node_status(a, t);
    status_lists(a, t);
    kedge_text_printf(t, "}\n");
}

/* What each tenant has of what its quotas bound. */
static void tenant_metrics(struct agent *a, struct kedge_text *t)
{
    static const char *const names[][2] = {
        {"kedge_agent_tenant_sessions", "Attached workers of a tenant."},
        {"kedge_agent_tenant_vqps", "Connected virtual queue pairs of a tenant."},
        {"kedge_agent_tenant_mrs", "Registered memory regions of a tenant."},
        {"kedge_agent_tenant_quota_refused_total", "What a tenant asked for beyond its quotas."},
    };
    enum { REFUSED = 3, COUNT };
    for (int m = 0; m < COUNT; m++) {
        kedge_metric_head(t, names[m][0], m == REFUSED ? KEDGE_METRIC_COUNTER : KEDGE_METRIC_GAUGE,
                          names[m][1]);
        for (uint32_t i = 0; i < AGENTD_TENANTS; i++) {
            if (a->tenants.at[i].state == AGENTD_TENANT_FREE)
                continue;
            const struct kedge_metric_label label = {"tenant", a->tenants.at[i].config.name};
            const uint64_t values[] = {sessions_of_tenant(a, i + 1), a->quota[i].vqps,
                                       a->quota[i].mrs, a->quota[i].refused};
            kedge_metric_u64(t, names[m][0], &label, 1, values[m]);
        }
    }
}

static const enum kedge_metric_type GAUGE = KEDGE_METRIC_GAUGE, COUNTER = KEDGE_METRIC_COUNTER;

static void connector_metrics(struct agent *a, struct kedge_text *t)
{
    struct kedge_connector_stats s;
    if (a->device.connector == NULL)
        return;
    kedge_connector_stats(a->device.connector, &s);
#define METRIC(what, help, type)                                                                   \
    kedge_metric_one(t,                                                                            \
                     type == COUNTER ? "kedge_agent_connections_" #what "_total"                   \
                                     : "kedge_agent_connections_" #what,                           \
                     type, help, s.what);
    CONNECTOR_COUNTERS(METRIC)
#undef METRIC
}

static void metrics(struct agent *a, struct kedge_text *t)
{
    struct kedge_lane_stats s;
    const struct session_counts *c = &a->count;
    kedge_lane_stats(a->lane, &s);
#define METRIC(what, help, type)                                                                   \
    kedge_metric_one(                                                                              \
        t, type == COUNTER ? "kedge_agent_lane_" #what "_total" : "kedge_agent_lane_" #what, type, \
        help, s.what);
    LANE_COUNTERS(METRIC)
#undef METRIC
    kedge_metric_one(t, "kedge_agent_sessions_ready", KEDGE_METRIC_GAUGE, "Sessions made ahead.",
                     c->ready);
    kedge_metric_one(t, "kedge_agent_sessions_live", KEDGE_METRIC_GAUGE, "Attached workers.",
                     c->live);
    kedge_metric_one(t, "kedge_agent_attached_total", KEDGE_METRIC_COUNTER,
                     "Workers that attached.", c->attached);
    kedge_metric_one(t, "kedge_agent_attach_refused_total", KEDGE_METRIC_COUNTER,
                     "Workers that were refused.", c->refused);
    kedge_metric_one(t, "kedge_agent_session_faults_total", KEDGE_METRIC_COUNTER,
                     "Sessions that the agent ended for what their workers did.", c->faults);
    kedge_metric_one(t, "kedge_agent_not_ahead_total", KEDGE_METRIC_COUNTER,
                     "Sessions or arenas made while a worker waited.", c->not_ahead);
    kedge_metric_one(t, "kedge_agent_arena_bytes", KEDGE_METRIC_GAUGE, "Memory of arenas.",
                     c->arena_bytes);
    kedge_metric_one(t, "kedge_agent_arenas_recycled_total", KEDGE_METRIC_COUNTER,
                     "Arenas given back to their tenant.", c->recycled);
    kedge_metric_one(t, "kedge_agent_port_up", KEDGE_METRIC_GAUGE,
                     "Whether the device's port is up.", !a->port_down);
    kedge_metric_one(t, "kedge_agent_qp_events_total", KEDGE_METRIC_COUNTER,
                     "Queue pairs of which the device said by itself that they broke.",
                     a->qp_events);
    connector_metrics(a, t);
    tenant_metrics(a, t);
    windows_metrics(a, t);
    leases_metrics(a, t);
    node_metrics(a, t);
    pool_metrics(a, t);
}

static bool is_registered(const struct agent *a)
{
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        if (a->registration[i].state == REGISTRATION_DONE)
            return true;
    return false;
}

void admin_refuse_method(struct kedge_http_request *request, const char *allow)
{
    struct kedge_text t;
    char detail[64];
    snprintf(detail, sizeof detail, "here it can be one of %s", allow);
    kedge_text_init(&t, 512);
    kedge_http_problem(&t, 405, "method not allowed", detail);
    struct kedge_http_response response = {.status = 405,
                                           .content_type = KEDGE_HTTP_PROBLEM_TYPE,
                                           .body = kedge_text_str(&t),
                                           .body_length = t.length,
                                           .headers = {{"Allow", allow}}};
    (void)kedge_http_reply(request, &response);
    kedge_text_fini(&t);
}

static enum kedge_http_verdict handle(void *user, struct kedge_http_request *request)
{
    struct agent *a = user;
    struct kedge_http_response response = {.status = 200};
    struct kedge_text *t = &a->answer;
    kedge_text_reset(t);
    enum kedge_http_verdict verdict;
    if (leases_handle(a, request, &verdict))
        return verdict;
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        admin_refuse_method(request, "GET, HEAD");
        return KEDGE_HTTP_REPLIED;
    }
    if (strcmp(request->path, "/v1/status") == 0) {
        status(a, t);
    } else if (strcmp(request->path, "/metrics") == 0) {
        metrics(a, t);
        response.content_type = KEDGE_METRICS_TYPE;
    } else if (strcmp(request->path, "/version") == 0) {
        kedge_text_printf(t, "{\"version\":\"%s\"}\n", KEDGE_VERSION);
    } else if (strcmp(request->path, "/healthz") == 0 || strcmp(request->path, "/readyz") == 0) {
        if (request->path[1] == 'r' && !is_registered(a)) {
            kedge_http_reply_error(request, EHOSTUNREACH,
                                   "registered with no metaserver yet: see /v1/status");
            return KEDGE_HTTP_REPLIED;
        }
        kedge_text_printf(t, "{\"status\":\"ok\"}\n");
    } else {
        kedge_http_reply_error(request, ENOENT,
                               "there are /v1/status, /v1/workers, /v1/leases, /metrics, /healthz, "
                               "/readyz and /version");
        return KEDGE_HTTP_REPLIED;
    }
    if (t->error != 0) {
        kedge_http_reply_error(request, t->error, NULL);
        return KEDGE_HTTP_REPLIED;
    }
    response.body = kedge_text_str(t);
    response.body_length = t->length;
    (void)kedge_http_reply(request, &response);
    return KEDGE_HTTP_REPLIED;
}

static void on_admin(uv_poll_t *poll, int polled, int events)
{
    struct agent *a = poll->data;
    (void)polled, (void)events;
    kedge_http_server_run(a->admin);
}

int admin_listen(struct agent *a, struct kedge_errbuf *err)
{
    struct kedge_http_server_config config = {.unix_path = a->config.admin_socket,
                                              .program = "kedge-agentd",
                                              .setting = "`admin_socket`",
                                              .connections = ADMIN_CONNECTIONS,
                                              .handle = handle,
                                              .abandon = leases_abandon,
                                              .user = a};
    kedge_text_init(&a->answer, ANSWER_MAX);
    int made = kedge_http_server_new(&config, &a->admin, err);
    if (made != 0)
        return made;
    a->admin_poll.data = a;
    (void)uv_poll_init(&a->loop, &a->admin_poll, kedge_http_server_fd(a->admin));
    (void)uv_poll_start(&a->admin_poll, UV_READABLE, on_admin);
    return 0;
}

void admin_stop(struct agent *a)
{
    kedge_text_fini(&a->answer);
    if (a->admin == NULL)
        return;
    uv_close((uv_handle_t *)&a->admin_poll, NULL);
    kedge_http_server_free(a->admin);
    a->admin = NULL;
}
