/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of routes: by it requests are dispatched, callers are let in, so that none is
 * without a scope, and query parameters are taken. schema/openapi.yaml says the same, and
 * tests/e2e/access.sh and rest-settings.sh compare. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/latency.h"
#include "metaserver/json.h"
#include "rest_private.h"

enum { IDS_MAX = 2 };

struct route {
    const char *method; /* GET serves HEAD too */
    const char *path; /* the document's: {name} stands for an id, of which there are two at most */
    enum meta_need need;
    enum meta_need_agent agent;
    void (*handle)(struct call *c);
    enum meta_resource_kind kind; /* if it is about resources */
    uint32_t takes;               /* query parameters: bits of enum meta_service_parameter */
};

static const char *const queries[META_PARAMETERS] = {
    "limit", "cursor",  "incarnation", "uid",      "scope",  "tenant", "kind",
    "name",  "watch",   "revision",    "position", "label",  "node",   "worker",
    "force", "answers", "verbose",     "for",      "digest",
};
_Static_assert(META_PARAMETERS <= 31, "a bit of an enumerator each");
#define TAKES(name) (1 << META_PARAMETER_##name)
enum {
    PAGE = TAKES(LIMIT) | TAKES(CURSOR),
    WATCH = TAKES(WATCH) | TAKES(REVISION),
    AGENTS = PAGE | TAKES(NODE) | TAKES(WORKER) | TAKES(TENANT),
};

/* A collection of what operators set, and one of them. */
#define RESOURCES(path, read, write, kind, filters)                                                \
    {"GET", path, read, META_AGENT_NO, meta_rest_list_resources, kind, PAGE | (filters)},          \
        {"GET", path "/{name}", read, META_AGENT_NO, meta_rest_get_resource, kind, 0},             \
        {"PUT", path "/{name}", write, META_AGENT_NO, meta_rest_put_resource, kind, 0},            \
    {                                                                                              \
        "DELETE", path "/{name}", write, META_AGENT_NO, meta_rest_delete_resource, kind, 0         \
    }

static void get_metrics(struct call *c); /* of what is counted by route too */

/* clang-format off */
static const struct route routes[] = {
    {"GET", "/v1/nodes", META_NEED_READER, META_AGENT_NO, meta_rest_list_nodes, 0,
     PAGE | TAKES(LABEL)},
    /* Of any: agents look up the nodes that their workers name. */
    {"GET", "/v1/nodes/{id}", META_NEED_READER, META_AGENT_ANY, meta_rest_get_node, 0, 0},
    {"PUT", "/v1/nodes/{id}", META_NEED_ADMIN, META_AGENT_OWN, meta_rest_put_node, 0, 0},
    {"DELETE", "/v1/nodes/{id}", META_NEED_OPERATOR, META_AGENT_OWN, meta_rest_delete_node, 0,
     TAKES(INCARNATION)},
    {"POST", "/v1/nodes/{id}/renew", META_NEED_ADMIN, META_AGENT_OWN, meta_rest_renew_node, 0, 0},
    {"GET", "/v1/nodes/{id}/configuration", META_NEED_READER, META_AGENT_OWN,
     meta_rest_get_configuration, 0, WATCH | TAKES(ANSWERS)},
    {"PUT", "/v1/nodes/{id}/applied", META_NEED_ADMIN, META_AGENT_OWN, meta_rest_put_applied, 0, 0},
    {"PUT", "/v1/nodes/{id}/reach", META_NEED_ADMIN, META_AGENT_OWN, meta_rest_put_reach, 0, 0},
    {"PUT", "/v1/nodes/{id}/regions", META_NEED_ADMIN, META_AGENT_OWN, meta_rest_put_region, 0, 0},
    {"DELETE", "/v1/nodes/{id}/regions", META_NEED_ADMIN, META_AGENT_OWN, meta_rest_delete_region,
     0, TAKES(INCARNATION) | TAKES(TENANT) | TAKES(FOR) | TAKES(NAME) | TAKES(DIGEST)},
    {"GET", "/v1/nodes/{id}/regions", META_NEED_ADMIN, META_AGENT_OWN,
     meta_rest_list_node_regions, 0, PAGE | TAKES(INCARNATION)},
    {"PUT", "/v1/nodes/{id}/answers/{query}", META_NEED_ADMIN, META_AGENT_OWN,
     meta_rest_put_answer, 0, 0},
    {"GET", "/v1/nodes/{id}/status", META_NEED_READER, META_AGENT_NO, meta_rest_get_agent_status, 0,
     0},
    {"GET", "/v1/nodes/{id}/settings", META_NEED_READER, META_AGENT_NO, meta_rest_get_resource,
     META_NODE, 0},
    {"PUT", "/v1/nodes/{id}/settings", META_NEED_OPERATOR, META_AGENT_NO, meta_rest_put_resource,
     META_NODE, 0},
    {"DELETE", "/v1/nodes/{id}/settings", META_NEED_OPERATOR, META_AGENT_NO,
     meta_rest_delete_resource, META_NODE, 0},
    RESOURCES("/v1/pools", META_NEED_READER, META_NEED_OPERATOR, META_POOL, 0),
    RESOURCES("/v1/tenants", META_NEED_READER, META_NEED_OPERATOR, META_TENANT, TAKES(UID)),
    RESOURCES("/v1/windows", META_NEED_READER, META_NEED_OPERATOR, META_WINDOW,
              TAKES(SCOPE) | TAKES(TENANT)),
    RESOURCES("/v1/tokens", META_NEED_LOCK, META_NEED_LOCK, META_TOKEN, TAKES(SCOPE)),
    {"GET", "/v1/leases", META_NEED_READER, META_AGENT_NO, meta_rest_list_leases, 0, AGENTS},
    {"DELETE", "/v1/leases", META_NEED_OPERATOR, META_AGENT_NO, meta_rest_delete_leases, 0,
     TAKES(WORKER) | TAKES(FORCE)},
    {"GET", "/v1/leases/{node}:{lease}", META_NEED_READER, META_AGENT_NO, meta_rest_get_lease, 0,
     0},
    {"DELETE", "/v1/leases/{node}:{lease}", META_NEED_OPERATOR, META_AGENT_NO,
     meta_rest_delete_lease, 0, TAKES(FORCE)},
    {"GET", "/v1/workers", META_NEED_READER, META_AGENT_NO, meta_rest_list_workers, 0, AGENTS},
    {"GET", "/v1/workers/{node}:{worker}", META_NEED_READER, META_AGENT_NO, meta_rest_get_worker, 0,
     0},
    {"GET", "/v1/regions", META_NEED_READER, META_AGENT_NO, meta_rest_list_regions, 0,
     PAGE | TAKES(NODE) | TAKES(TENANT) | TAKES(FOR) | TAKES(WATCH) | TAKES(POSITION)},
    {"GET", "/v1/events", META_NEED_READER, META_AGENT_NO, meta_rest_list_events, 0,
     PAGE | WATCH | TAKES(POSITION) | TAKES(KIND) | TAKES(NAME)},
    {"GET", "/v1/metaservers", META_NEED_READER, META_AGENT_ANY, meta_rest_list_metaservers, 0, 0},
    {"GET", "/healthz", META_NEED_NOTHING, META_AGENT_NO, meta_rest_get_health, 0, 0},
    {"GET", "/livez", META_NEED_NOTHING, META_AGENT_NO, meta_rest_get_health, 0, 0},
    {"GET", "/readyz", META_NEED_NOTHING, META_AGENT_NO, meta_rest_get_ready, 0, TAKES(VERBOSE)},
    {"GET", "/metrics", META_NEED_READER, META_AGENT_NO, get_metrics, 0, 0},
    {"GET", "/version", META_NEED_READER, META_AGENT_NO, meta_rest_get_version, 0, 0},
};
/* clang-format on */
#define ROUTES (sizeof routes / sizeof routes[0])
_Static_assert(ROUTES < META_SERVICE_ROUTES, "a histogram each, and one more");

static void get_metrics(struct call *c)
{
    static const char name[] = "kedge_metad_http_request_seconds";
    meta_rest_get_metrics(c);
    base_metric_head(c->body, name, BASE_METRIC_HISTOGRAM,
                     "How long answers took, or streams to begin, by the route of the request.");
    for (size_t i = 0; i <= ROUTES; i++) {
        const struct base_metric_label labels[] = {
            {"method", i < ROUTES ? routes[i].method : "other"},
            {"route", i < ROUTES ? routes[i].path : "other"}};
        const struct base_latency *took = &c->s->count.took[i];
        if (base_latency_count(took) > 0)
            base_latency_print(c->body, name, labels, 2, took);
    }
}

/* The ids in a path. */
struct ids {
    const char *at[IDS_MAX];
    size_t length[IDS_MAX];
    int count;
};

/* Whether a request's path is of this form. An id has no '/', and nothing of what comes after it
 * there. */
static bool path_matches(const char *form, const char *path, struct ids *out)
{
    *out = (struct ids){.count = 0};
    while (*form != '\0') {
        if (*form != '{') {
            if (*form++ != *path++)
                return false;
            continue;
        }
        form = strchr(form, '}') + 1;
        const char ends[] = {'/', *form, '\0'};
        const size_t length = strcspn(path, ends);
        BASE_ASSERT(out->count < IDS_MAX);
        out->at[out->count] = path;
        out->length[out->count++] = length;
        if (length == 0)
            return false;
        path += length;
    }
    return *path == '\0';
}

/* The route of a request; else the answer has been given. */
static const struct route *find_route(struct call *c, struct ids *ids)
{
    const char *method = strcmp(c->request->method, "HEAD") == 0 ? "GET" : c->request->method;
    char *allow = c->answer->allow, detail[sizeof c->answer->allow + 16];
    size_t used = 0, size = sizeof c->answer->allow;
    for (size_t i = 0; i < ROUTES; i++) {
        const struct route *r = &routes[i];
        if (!path_matches(r->path, c->request->path, ids))
            continue;
        if (strcmp(r->method, method) == 0) {
            allow[0] = '\0';
            return r;
        }
        if (used < size)
            used += (size_t)snprintf(allow + used, size - used, "%s%s%s", used > 0 ? ", " : "",
                                     r->method, strcmp(r->method, "GET") == 0 ? ", HEAD" : "");
    }
    if (used == 0) {
        meta_rest_problem(c, REST_NO_ROUTE,
                          strncmp(c->request->path, "/v1/leases/", 11) == 0 ||
                                  strncmp(c->request->path, "/v1/workers/", 12) == 0
                              ? "ids of leases and workers begin with their node's: NODE:ID"
                              : NULL);
        return NULL;
    }
    snprintf(detail, sizeof detail, "use one of %s", allow);
    meta_rest_problem(c, REST_METHOD, detail);
    return NULL;
}

/* ---- query parameters */

void meta_service_add_parameter(struct meta_service_request *r, const char *name, const char *value)
{
    int i = 0;
    while (i < META_PARAMETERS && strcmp(queries[i], name) != 0)
        i++;
    if (i == META_PARAMETERS)
        r->unknown = r->unknown != NULL ? r->unknown : name;
    else if (r->parameter[i] != NULL)
        r->repeated = queries[i];
    else
        r->parameter[i] = value;
}

/* Which one the route does not take; NULL: none. */
static const char *not_taken(const struct call *c, const struct route *route)
{
    for (int i = 0; i < META_PARAMETERS; i++)
        if (c->request->parameter[i] != NULL && (route->takes & (UINT32_C(1) << i)) == 0)
            return queries[i];
    return c->request->unknown;
}

static void refuse_query(struct call *c, const struct route *route, const char *name)
{
    char detail[200];
    size_t used = (size_t)snprintf(detail, sizeof detail, "%s takes %s here", route->method,
                                   route->takes == 0 ? "no parameters" : "these alone");
    const char *before = ": ";
    for (int i = 0; i < META_PARAMETERS; i++)
        if ((route->takes & (UINT32_C(1) << i)) != 0) {
            used +=
                (size_t)snprintf(detail + used, sizeof detail - used, "%s%s", before, queries[i]);
            before = ", ";
        }
    if (strcmp(name, queries[META_PARAMETER_WATCH]) == 0)
        snprintf(detail, sizeof detail,
                 "changes are watched at /v1/events?watch=1: kind=KIND and name=NAME there for "
                 "those of one kind, or of one thing");
    meta_rest_malformed(c, name, detail);
}

/* A name that is mistyped would filter nothing. Else the answer has been given. */
static bool takes_queries(struct call *c, const struct route *route)
{
    const char *name = not_taken(c, route);
    if (name != NULL)
        refuse_query(c, route, name);
    else if (c->request->repeated != NULL)
        meta_rest_malformed(c, c->request->repeated, "is there more than once");
    else
        return true;
    return false;
}

/* ---- who */

/* How who has no token gets one: by the admin socket, where none is needed. Of agents, whose log
 * has room for little more, with the words that it takes. */
static void explain_token(const struct call *c, const struct route *route, char *out, size_t size)
{
    const char *socket = c->s->admin_socket;
    const bool agents = route->agent == META_AGENT_OWN && route->need == META_NEED_ADMIN;
    char create[320], server[128] = "";
    if (socket != NULL && socket[0] != '\0')
        snprintf(server, sizeof server, "--server unix:%.108s ", socket);
    if (agents && meta_json_is_id(c->id))
        snprintf(create, sizeof create, "%.63s scope=agent node=%.63s gids=GID", c->id, c->id);
    else
        snprintf(create, sizeof create, "NAME scope=%s", meta_need_name(route->need));
    snprintf(out, size,
             "show a token (%s); on the metaserver's host `rdmactl %stoken create %s` makes one",
             agents ? "the agent's token_file"
                    : "Authorization: Bearer TOKEN; --token-file of rdmactl",
             server, create);
}

static void refuse_unknown(struct call *c, const struct route *route)
{
    char how[512];
    uint32_t suppressed;
    bool wrong = c->caller.kind == META_CALLER_WRONG;
    snprintf(c->answer->authenticate, sizeof c->answer->authenticate, "Bearer realm=\"kedge\"%s",
             wrong ? ", error=\"invalid_token\"" : "");
    if (!wrong)
        explain_token(c, route, how, sizeof how);
    meta_rest_problem(c, REST_NO_VALID_TOKEN, wrong ? c->caller.why : how);
    if (base_log_allow(&c->s->access_log, c->now, 10 * BASE_NS_PER_S, 10, &suppressed))
        meta_world_log(c->s->world, BASE_LOG_WARN, "a request without a valid token was refused",
                       "client=\"%s\" why=\"%s\" suppressed=%u", c->who,
                       wrong ? c->caller.why : "there is none", suppressed);
}

/* Whether the caller may; else the answer has been given. */
static bool caller_may(struct call *c, const struct route *route)
{
    struct meta_violation violation;
    switch (meta_access_decide(&c->caller, !c->s->tokens_needed, route->need, route->agent, c->id,
                               &violation)) {
    case 0:
        return true;
    case -EACCES:
        meta_rest_forbidden(c, meta_need_name(route->need), &violation);
        return false;
    default:
        refuse_unknown(c, route);
        return false;
    }
}

static void identify_caller(struct call *c)
{
    const struct meta_service_request *r = c->request;
    c->caller = meta_access_caller(c->s->resources, &r->shown, r->wall_ms);
    if (c->caller.kind == META_CALLER_TOKEN)
        snprintf(c->who, sizeof c->who, "token %s", c->caller.token->name);
    else if (c->caller.kind == META_CALLER_NODE)
        snprintf(c->who, sizeof c->who, "node %s", c->caller.node);
    else
        snprintf(c->who, sizeof c->who, "%s", r->who != NULL ? r->who : "unknown");
}

/* "" for one that is too long, which is none. */
static void copy_id(const struct ids *ids, int which, char *out, size_t size)
{
    if (which < ids->count && ids->length[which] < size)
        memcpy(out, ids->at[which], ids->length[which]);
}

/* ---- all of it */

/* What the document calls it. */
static void name_of_id(const struct route *route, int which, char *out, size_t size)
{
    const char *name = strchr(route->path, '{') + 1;
    for (; which > 0; which--)
        name = strchr(name, '{') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(name, "}"), name);
}

/* Else the answer has been given. */
static bool id_is_sound(struct call *c, const struct route *route, int which)
{
    char field[16], detail[120];
    name_of_id(route, which, field, sizeof field);
    const uint32_t max = strcmp(field, "name") == 0 ? meta_resource_name_max(route->kind)
                                                    : (uint32_t)sizeof c->id - 1;
    if (which == 0 ? meta_resource_is_name(c->id, max) : meta_proxy_is_id(c->of_node))
        return true;
    if (which == 0)
        snprintf(detail, sizeof detail,
                 "must be 1 to %" PRIu32 " of a-z, 0-9, '.' and '-', and begin with a letter or "
                 "digit",
                 max);
    else
        snprintf(detail, sizeof detail, "an agent's own ids are 1 to 47 of 0-9, a-f and '-'");
    meta_rest_malformed(c, field, detail);
    return false;
}

/* Finds the request's route, sees whether the caller may, and has it answered. */
static void route_request(struct call *c)
{
    struct ids ids;
    const struct route *route = find_route(c, &ids);
    c->answer->took = &c->s->count.took[route != NULL ? (size_t)(route - routes) : ROUTES];
    if (route == NULL)
        return;
    copy_id(&ids, 0, c->id, sizeof c->id);
    copy_id(&ids, 1, c->of_node, sizeof c->of_node);
    identify_caller(c);
    if (!caller_may(c, route))
        return;
    for (int i = 0; i < ids.count; i++)
        if (!id_is_sound(c, route, i))
            return;
    if (!takes_queries(c, route))
        return;
    c->kind = route->kind;
    route->handle(c);
}

void meta_service_handle(struct meta_service *s, const struct meta_service_request *request,
                         uint64_t now, struct base_text *body, struct meta_service_answer *out)
{
    struct call c = {.s = s,
                     .request = request,
                     .now = now,
                     .wall_ms = request->wall_ms,
                     .body = body,
                     .answer = out};
    *out = META_SERVICE_ANSWER;
    meta_service_at(s, now, request->wall_ms);
    meta_service_lapse(s, now);
    route_request(&c);
    if (out->status != META_SERVICE_LATER)
        s->count.http[out->status]++;
}

void meta_service_advance(struct meta_service *s, uint64_t now)
{
    meta_writes_advance(s, now);
    meta_rest_proxy_advance(s, now);
    meta_rest_register_advance(s, now);
    meta_writes_advance(s, now);
}

void meta_service_stop(struct meta_service *s, uint64_t now)
{
    meta_queries_stop(s);
    meta_service_advance(s, now);
    meta_writes_stop(s, now);
}

bool meta_service_is_stopped(const struct meta_service *s)
{
    return s->writes.stopping && s->writes.first == NULL;
}

void meta_service_abandon(struct meta_service *s, uint64_t now)
{
    meta_writes_abandon(s, now);
    meta_rest_proxy_abandon(s, now);
}
