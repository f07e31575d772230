/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's status, as its operator reads it: sums over the pools, then each pool's own. */
#include "admin_counters.h"
#include "base/clock.h"

static const char *state_name(enum registration_state state)
{
    static const char *const names[] = {"none", "asking", "registered", "lost"};
    return names[state];
}

/* Of all lanes together. */
static struct lane_stats sum_lanes(const struct agent *a)
{
    struct lane_stats s, sum = {.passes = 0};
    for (const struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p)) {
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
    for (const struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p)) {
        connector_stats(p->device.connector, &s);
#define ADD(what, help, type) sum.what += s.what;
        CONNECTOR_COUNTERS(ADD)
#undef ADD
    }
    return sum;
}

static void print_lane(const struct lane_stats *s, struct base_text *t)
{
    const char *comma = "";
    base_text_printf(t, "\"lane\":{");
#define PRINT(what, help, type)                                                                    \
    base_text_printf(t, "%s\"" #what "\":%llu", comma, (unsigned long long)s->what);               \
    comma = ",";
    LANE_COUNTERS(PRINT)
#undef PRINT
    base_text_printf(t, "}");
}

static void status_connectors(const struct agent *a, struct base_text *t)
{
    const char *comma = "";
    if (!a->rc)
        return;
    const struct connector_stats s = sum_connectors(a);
    base_text_printf(t, ",\"connections\":{");
#define PRINT(what, help, type)                                                                    \
    base_text_printf(t, "%s\"" #what "\":%llu", comma, (unsigned long long)s.what);                \
    comma = ",";
    CONNECTOR_COUNTERS(PRINT)
#undef PRINT
    base_text_printf(t, "}");
}

/* What a tenant has, and its quota: null without one. */
static void status_bounded(struct base_text *t, const char *what, uint64_t used, uint64_t most,
                           uint64_t none)
{
    base_text_printf(t, "\"%s\":%llu,\"max_%s\":", what, (unsigned long long)used, what);
    if (most == none)
        base_text_printf(t, "null,");
    else
        base_text_printf(t, "%llu,", (unsigned long long)most);
}

static void status_control_ops(struct base_text *t, const struct quota_counts *n, uint32_t rate)
{
    uint64_t all = 0;
    base_text_printf(
        t, "\"control_ops\":%llu,\"max_control_ops_per_s\":", (unsigned long long)n->control_ops);
    if (rate == 0)
        base_text_printf(t, "null");
    else
        base_text_printf(t, "%u", rate);
    base_text_printf(t, ",\"refused\":{");
    for (int which = 0; which < LANE_QUOTAS; which++) {
        base_text_printf(t, "%s\"%s\":%llu", which == 0 ? "" : ",", quota_name(which),
                         (unsigned long long)n->refused[which]);
        all += n->refused[which];
    }
    base_text_printf(t, "},\"quota_refused\":%llu", (unsigned long long)all);
}

static void status_sessions(const struct pool *p, struct base_text *t, const char **comma)
{
    for (uint64_t i = 0; i < p->config->max_sessions; i++) {
        const struct agent_session *s = &p->sessions[i];
        if (s->stage != STAGE_LIVE)
            continue;
        base_text_printf(t, "%s{\"id\":%llu,\"pool\":", *comma, (unsigned long long)i);
        base_text_json(t, p->name);
        base_text_printf(t, ",\"tenant\":");
        base_text_json(t, p->agent->tenants.at[s->tenant - 1].config.name);
        base_text_printf(t, ",\"uid\":%u,\"pid\":%d,\"arenas\":%u}", (unsigned)s->uid, (int)s->pid,
                         s->arenas);
        *comma = ",";
    }
}

static void status_counts(const struct session_counts *c, uint64_t refused, struct base_text *t)
{
    base_text_printf(
        t,
        "\"sessions\":{\"ready\":%u,\"live\":%u,\"ending\":%u,\"attached\":%llu,\"refused\":%llu,"
        "\"attached_ahead\":%llu,\"not_ahead\":%llu,\"faults\":%llu},",
        c->ready, c->live, c->ending, (unsigned long long)c->attached, (unsigned long long)refused,
        (unsigned long long)c->attached_ahead, (unsigned long long)c->not_ahead,
        (unsigned long long)c->faults);
    base_text_printf(
        t, "\"memory\":{\"arenas\":%u,\"arenas_ahead\":%u,\"bytes\":%llu,\"recycled\":%llu},",
        c->arenas, c->arenas_ahead, (unsigned long long)c->arena_bytes,
        (unsigned long long)c->recycled);
}

/* Name, lease and what it keeps ready. */
static void status_pool(const struct pool *p, struct base_text *t)
{
    base_text_printf(t, "{\"name\":");
    base_text_json(t, p->name);
    base_text_printf(t, ",\"number\":%u,\"mr_lease_ms\":%llu,", p->number,
                     (unsigned long long)(p->mr_lease_ns / BASE_NS_PER_MS));
    stock_status(p, t);
}

static void status_pools(const struct agent *a, struct base_text *t)
{
    struct lane_stats s;
    const char *comma = "";
    base_text_printf(t, ",\"pools\":[");
    for (struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p), comma = ",") {
        base_text_printf(t, "%s", comma);
        status_pool(p, t);
        base_text_printf(t, ",\"state\":\"%s\",\"metaservers\":%u,", pools_state(p),
                         registrations_of(p));
        status_counts(&p->count, 0, t);
        lane_stats(p->lane, &s);
        print_lane(&s, t);
        windows_pool_status(p, t);
        base_text_printf(t, "}");
    }
    base_text_printf(t, "]");
}

void used_by_all(const struct agent *a, struct used used[AGENTD_TENANT_PLACES])
{
    struct quota_used now[AGENTD_TENANT_PLACES];
    quotas_used(a, now);
    for (uint32_t i = 0; i < AGENTD_TENANT_PLACES; i++)
        used[i] = (struct used){.now = now[i], .so_far = a->quotas_before[i]};
    for (const struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
        for (uint32_t i = 0; i < AGENTD_TENANT_PLACES; i++) {
            used[i].vqps += p->quota[i].vqps;
            used[i].mrs += p->quota[i].mrs;
            quotas_add(&used[i].so_far, &p->quota[i]);
        }
}

/* In how many pools its requests go apart from others', and how often they have rested. */
static void status_breaks(const struct agent *a, uint32_t i, struct base_text *t)
{
    uint64_t apart = 0, rests = 0;
    for (const struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p)) {
        apart += p->apart[i];
        rests += lane_rests(p->lane, i);
    }
    base_text_printf(t, ",\"apart\":%llu,\"rests\":%llu", (unsigned long long)apart,
                     (unsigned long long)rests);
}

static void status_tenant(const struct agent *a, uint32_t i, const struct used *u,
                          struct base_text *t)
{
    const struct agentd_tenant *tenant = &a->tenants.at[i];
    const struct lane_quota *q = &a->pools[0]->quota[i];
    base_text_printf(t, "{\"name\":");
    base_text_json(t, tenant->config.name);
    base_text_printf(
        t, ",\"from\":\"%s\",\"leaving\":%s,\"pool\":", tenant->central ? "metaserver" : "file",
        tenant->state == AGENTD_TENANT_LEAVING ? "true" : "false");
    base_text_json(t, tenant->config.pool[0] != '\0' ? tenant->config.pool : a->config.pool);
    base_text_printf(t, ",");
    status_bounded(t, "sessions", u->now.sessions, tenant->config.sessions, UINT64_MAX);
    base_text_printf(t, "\"sessions_ended\":%llu,", (unsigned long long)u->now.ended);
    status_bounded(t, "memory_bytes", u->now.bytes, tenant->config.memory, UINT64_MAX);
    status_bounded(t, "vqps", u->vqps, q->max_vqps, UINT32_MAX);
    status_bounded(t, "mrs", u->mrs, q->max_mrs, UINT32_MAX);
    status_control_ops(t, &u->so_far, q->control_ops_per_s);
    status_breaks(a, i, t);
    base_text_printf(t, ",\"tokens\":%u,\"socket\":", tenant->config.tokens);
    base_text_json(t, tenant->own.socket);
    base_text_printf(t, "}");
}

static void status_tenants(const struct agent *a, struct base_text *t)
{
    struct used used[AGENTD_TENANT_PLACES];
    const char *comma = "";
    used_by_all(a, used);
    for (uint32_t i = 0; i < AGENTD_TENANT_PLACES; i++) {
        if (a->tenants.at[i].state == AGENTD_TENANT_FREE)
            continue;
        base_text_printf(t, "%s", comma);
        comma = ",";
        status_tenant(a, i, &used[i], t);
    }
}

static void status_lists(struct agent *a, struct base_text *t)
{
    const char *comma = "";
    char why[SETTINGS_WHY];
    base_text_printf(t, ",\"metaservers\":[");
    for (uint32_t i = 0; i < a->config.metaservers; i++, comma = ",") {
        const struct registration *r = registrations_with(a, i);
        base_text_printf(t, "%s{\"url\":", comma);
        base_text_json(t, r->url);
        base_text_printf(t, ",\"state\":\"%s\",\"pool\":", state_name(r->state));
        base_text_json(t, r->state != REGISTRATION_DONE ? r->pool->name : "");
        base_text_printf(t, ",\"why\":");
        base_text_json(t, r->why);
        base_text_printf(t, "}");
    }
    base_text_printf(t, "],\"settings\":{\"revision\":%llu,\"seen\":%llu,\"why\":",
                     (unsigned long long)a->follow.applied, (unsigned long long)a->follow.seen);
    settings_why(a, why);
    base_text_json(t, why);
    base_text_printf(t, "},\"tenants\":[");
    status_tenants(a, t);
    base_text_printf(t, "],\"sessions_list\":[");
    comma = "";
    for (const struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
        status_sessions(p, t, &comma);
    base_text_printf(t, "],\"wrong_tokens\":%llu", (unsigned long long)a->wrong_tokens);
}

void status_print(struct agent *a, struct base_text *t)
{
    char gid[BASE_GID_TEXT];
    const struct session_counts c = pools_count(a);
    const struct lane_stats s = sum_lanes(a);
    base_text_printf(t, "{\"version\":\"%s\",\"node\":", KEDGE_VERSION);
    base_text_json(t, a->config.node);
    base_text_printf(t,
                     ",\"gid\":\"%s\",\"provider\":\"%s\",\"transport\":\"%s\",\"port\":\"%s\","
                     "\"address\":\"%s\",\"mtu\":%u,\"incarnation\":%u,"
                     "\"uptime_ms\":%llu,\"pool\":",
                     base_gid_format(a->fab->caps.gid, gid), a->config.provider,
                     a->rc ? "rc" : "dc", a->address.down ? "down" : "up",
                     a->address.gone ? "gone" : "up", 128u << a->port.mtu, a->incarnation,
                     (unsigned long long)((base_clock_ns() - a->started_ns) / BASE_NS_PER_MS));
    status_pool(a->pools[0], t);
    base_text_printf(t, "},");
    status_counts(&c, a->refused, t);
    print_lane(&s, t);
    status_connectors(a, t);
    status_pools(a, t);
    windows_status(a, t);
    clock_status(a, t);
    node_status(a, t);
    proofs_status(a, t);
    status_lists(a, t);
    base_text_printf(t, "}\n");
}
