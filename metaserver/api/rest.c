/* SPDX-License-Identifier: Apache-2.0 */
/* The REST interface: what is said, and nodes. schema/openapi.yaml describes it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "base/version.h"
#include "metaserver/json.h"
#include "metaserver/json_read.h"
#include "reach_json.h"
#include "rest_private.h"

#define DEFAULT_LIMIT 100
#define MAX_LIMIT     1000

/* ---- problems ------------------------------------------------------------------------------- */

static const struct {
    const char *type;
    int status;
    const char *title;
} problems[] = {
    [REST_MALFORMED] = {"malformed", 400, "the request is malformed"},
    [REST_NO_VALID_TOKEN] = {"no-valid-token", 401, "a valid token is needed"},
    [REST_FORBIDDEN] = {"forbidden", 403, "the token does not allow that"},
    [REST_NO_ROUTE] = {"unknown-route", 404, "there is nothing at this path"},
    [REST_NO_NODE] = {"unknown-node", 404, "no such node"},
    [REST_REGISTER_AGAIN] = {"register-again", 404, "the node has to register again"},
    [REST_NO_TENANT] = {"unknown-tenant", 404, "no such tenant"},
    [REST_NO_WINDOW] = {"unknown-window", 404, "no such window"},
    [REST_NO_TOKEN] = {"unknown-token", 404, "no such token"},
    [REST_NO_POOL] = {"unknown-pool", 404, "no such pool"},
    [REST_NO_LEASE] = {"unknown-lease", 404, "no such lease"},
    [REST_NO_WORKER] = {"unknown-worker", 404, "no such worker"},
    [REST_NO_QUESTION] = {"unknown-question", 404, "nobody waits for that answer"},
    [REST_NOTHING_SET] = {"nothing-set", 404, "nothing is set of this node"},
    [REST_METHOD] = {"method-not-allowed", 405, "this path does not know that method"},
    [REST_STALE] = {"stale-incarnation", 409, "a newer incarnation of the node is known"},
    [REST_TAKEN] = {"endpoint-taken", 409, "the endpoint belongs to another node"},
    [REST_UID_TAKEN] = {"uid-taken", 409, "a uid belongs to another tenant"},
    [REST_POOL_TAKEN] = {"pool-taken", 409, "a number or a tenant belongs to another pool"},
    [REST_FIXED] = {"fixed", 409, "that cannot be changed"},
    [REST_DANGLING] = {"dangling-reference", 409, "it refers to what is not there"},
    [REST_IN_USE] = {"in-use", 409, "something refers to it"},
    [REST_BUSY] = {"busy", 409, "it is being dealt with at this moment"},
    [REST_GONE] = {"revision-gone", 410, "that revision is not in the trail"},
    [REST_CHANGED] = {"changed", 412, "what is there is not what was expected"},
    [REST_TOO_LARGE] = {"too-large", 413, "the body is too large"},
    [REST_MEDIA_TYPE] = {"unsupported-media-type", 415, "the body must be application/json"},
    [REST_READER] = {"wrong-reader", 422, "the registration needs another `reader`"},
    [REST_FULL] = {"full", 507, "there is no room"},
    [REST_STORE] = {"store-failed", 503, "the store cannot be used: nothing was changed"},
    [REST_NO_QUEUE_PAIR] = {"no-queue-pair", 503,
                            "there is no queue pair for the reader: nothing was changed"},
    [REST_WATCHES] = {"too-many-watches", 503, "there are too many streams"},
    [REST_ASKS] = {"too-many-questions", 503, "too much is being asked of agents"},
    [REST_UNREACHABLE] = {"agent-unreachable", 503, "the node's agent cannot be asked"},
    [REST_LATE] = {"agent-late", 504, "the node's agent has not answered in time"},
    [REST_SENSELESS] = {"senseless-answer", 502, "the node's agent answered what makes no sense"},
};

const char *meta_rest_problem_name(enum meta_rest_problem p)
{
    return problems[p].type;
}

void meta_rest_begin_problem(struct call *c, enum meta_rest_problem p, const char *detail)
{
    char type[64];
    c->answer->status = problems[p].status;
    c->answer->content_type = "application/problem+json";
    base_text_reset(c->body);
    snprintf(type, sizeof type, "urn:kedge:problem:%s", problems[p].type);
    base_json_object(c->body, NULL);
    base_json_string(c->body, "type", type);
    base_json_string(c->body, "title", problems[p].title);
    base_json_i64(c->body, "status", problems[p].status);
    if (detail != NULL && detail[0] != '\0')
        base_json_string(c->body, "detail", detail);
}

void meta_rest_end_problem(struct call *c)
{
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

void meta_rest_problem(struct call *c, enum meta_rest_problem p, const char *detail)
{
    meta_rest_begin_problem(c, p, detail);
    meta_rest_end_problem(c);
}

void meta_rest_problem_of(struct call *c, enum meta_rest_problem p, const char *field,
                          const char *detail)
{
    meta_rest_begin_problem(c, p, detail);
    if (field[0] != '\0')
        base_json_string(c->body, "field", field);
    meta_rest_end_problem(c);
}

void meta_rest_malformed(struct call *c, const char *field, const char *detail)
{
    meta_rest_problem_of(c, REST_MALFORMED, field, detail);
}

void meta_rest_forbidden(struct call *c, const char *scope, const struct meta_violation *violation)
{
    snprintf(c->answer->authenticate, sizeof c->answer->authenticate,
             "Bearer realm=\"kedge\", error=\"insufficient_scope\", scope=\"%s\"", scope);
    meta_rest_problem_of(c, REST_FORBIDDEN, violation->field, violation->detail);
}

void meta_rest_stale(struct call *c, uint32_t known)
{
    meta_rest_begin_problem(c, REST_STALE, "start with an incarnation above the known one");
    base_json_u64(c->body, "known_incarnation", known);
    meta_rest_end_problem(c);
}

bool meta_rest_has_json(struct call *c)
{
    return meta_rest_has_json_of(c, META_JSON_MAX_BYTES);
}

bool meta_rest_has_json_of(struct call *c, size_t most)
{
    char detail[64];
    static const char json[] = "application/json";
    const char *type = c->request->content_type;
    size_t length = sizeof json - 1;
    if (type == NULL || strncasecmp(type, json, length) != 0 ||
        (type[length] != '\0' && type[length] != ';' && type[length] != ' ')) {
        meta_rest_problem(c, REST_MEDIA_TYPE, "send Content-Type: application/json");
        return false;
    }
    if (c->request->body_bytes > most) {
        snprintf(detail, sizeof detail, "a body has at most %zu bytes", most);
        meta_rest_problem(c, REST_TOO_LARGE, detail);
        return false;
    }
    return true;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static uint64_t in_ms(uint64_t ns)
{
    return ns / BASE_NS_PER_MS;
}

/* What meta_directory_renew() says of an agent that is not the node's. */
static void refuse_agent(struct call *c, int status, uint32_t known)
{
    if (status == -ESTALE) {
        c->s->count.stale++;
        meta_rest_stale(c, known);
    } else if (status == -EUNATCH) {
        meta_rest_problem(c, REST_REGISTER_AGAIN,
                          "PUT the node: this metaserver does not hold its endpoints");
    } else {
        meta_rest_problem(c, REST_NO_NODE, NULL);
    }
}

void meta_rest_renew_node(struct call *c)
{
    struct meta_violation violation;
    uint32_t incarnation, known = 0;
    if (!meta_rest_has_json(c))
        return;
    if (meta_json_renewal(c->request->body, c->request->body_bytes, &incarnation, &violation) !=
        0) {
        meta_rest_malformed(c, violation.field, violation.detail);
        return;
    }
    int status = meta_directory_renew(c->s->directory, c->id, incarnation, c->now, &known);
    if (status != 0) {
        refuse_agent(c, status, known);
        return;
    }
    c->s->count.renewals++;
    base_json_object(c->body, NULL);
    base_json_u64(c->body, "expires_in_ms", in_ms(c->s->node_lease_ns));
    base_json_hex64(c->body, "generation", meta_directory_table(c->s->directory)->generation);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

void meta_rest_put_applied(struct call *c)
{
    struct meta_report report;
    struct meta_violation violation;
    uint32_t incarnation, known = 0;
    if (!meta_rest_has_json(c))
        return;
    if (meta_json_report(c->request->body, c->request->body_bytes, &incarnation, &report,
                         &violation) != 0) {
        meta_rest_malformed(c, violation.field, violation.detail);
        return;
    }
    int status = meta_directory_report(c->s->directory, c->id, incarnation, &report, &known);
    if (status != 0)
        refuse_agent(c, status, known);
    else
        c->answer->status = 204;
}

void meta_rest_put_reach(struct call *c)
{
    struct meta_reach_peer peers[META_REACH_PEERS];
    struct meta_reach_claims said;
    struct meta_violation violation;
    uint32_t incarnation, known = 0;
    uint16_t pool;
    if (!meta_rest_has_json(c))
        return;
    if (meta_reach_json_decode(c->request->body, c->request->body_bytes, &incarnation, &pool, &said,
                               &violation) != 0) {
        meta_rest_malformed(c, violation.field, violation.detail);
        return;
    }
    int status = meta_directory_reach(c->s->directory, c->id, incarnation, &said, c->now, &known);
    if (status != 0)
        refuse_agent(c, status, known);
    else
        meta_reach_json_peers(c->body, peers,
                              meta_directory_reach_peers(c->s->directory, c->id, pool, peers));
}

/* What the agent has said, beside what there is. */
static void write_report(struct call *c, const struct meta_report *r)
{
    if (!r->reported)
        return;
    base_json_object(c->body, "applied");
    base_json_u64(c->body, "revision", r->revision);
    base_json_u64(c->body, "seen", r->seen);
    base_json_bool(c->body, "behind", r->revision != meta_resources_revision(c->s->resources));
    if (r->sessions != UINT32_MAX)
        base_json_u64(c->body, "sessions", r->sessions);
    base_json_string(c->body, "why", r->why);
    base_json_object_end(c->body);
}

static void write_node(struct call *c, const struct meta_node_view *v)
{
    struct base_text *out = c->body;
    /* What is lapsed here is expired for everybody else. */
    bool expired = v->state == META_NODE_LAPSED || v->state == META_NODE_EXPIRED;
    bool absent = v->state == META_NODE_FREE;
    char gid[BASE_GID_TEXT];
    base_json_object(out, NULL);
    base_json_string(out, "id", v->id);
    if (!absent)
        base_json_u64(out, "incarnation", v->incarnation);
    base_json_string(out, "state",
                     absent    ? "absent"
                     : expired ? "expired"
                               : meta_node_state_name(v->state));
    base_json_u64(out, "expires_in_ms", in_ms(v->expires_in_ns));
    base_json_array(out, "endpoints");
    for (uint32_t i = 0; i < v->endpoint_count; i++) {
        bool dc = v->endpoint[i].flags & SCHEMA_RECORD_DC,
             rc = v->endpoint[i].flags & SCHEMA_RECORD_RC;
        base_json_object(out, NULL);
        base_json_string(out, "gid", base_gid_format(v->endpoint[i].gid, gid));
        base_json_u64(out, "pool", v->endpoint[i].pool);
        if (dc || rc) {
            base_json_array(out, "transports");
            if (dc)
                base_json_string(out, NULL, "dc");
            if (rc)
                base_json_string(out, NULL, "rc");
            base_json_array_end(out);
            base_json_u64(out, "mtu", v->endpoint[i].mtu);
        }
        base_json_object_end(out);
    }
    base_json_array_end(out);
    resource_write(out, resource_table(RESOURCE_NODE),
                   meta_resources_node_spec(c->s->resources, v->id));
    write_report(c, &v->report);
    meta_reach_json_write(out, c->s->directory, &v->reach);
    base_json_object_end(out);
}

/* One of which operators have set something, and that is not registered. */
static void view_absent(const char *id, struct meta_node_view *out)
{
    *out = (struct meta_node_view){.state = META_NODE_FREE};
    snprintf(out->id, sizeof out->id, "%s", id);
}

void meta_rest_get_node(struct call *c)
{
    struct meta_node_view view;
    if (meta_directory_show(c->s->directory, c->id, c->now, &view) != 0) {
        if (meta_resources_find(c->s->resources, META_NODE, c->id) == NULL) {
            meta_rest_problem(c, REST_NO_NODE, NULL);
            return;
        }
        view_absent(c->id, &view);
    }
    write_node(c, &view);
    base_text_append(c->body, "\n", 1);
}

/* An agent that ends says its own incarnation, so that it does not take away what a later one has
 * registered; an operator means the node, whatever it is. */
void meta_rest_delete_node(struct call *c)
{
    struct meta_node_view view;
    struct base_errbuf err;
    uint64_t incarnation = UINT32_MAX;
    if (c->request->parameter[META_PARAMETER_INCARNATION] != NULL &&
        base_parse_u64(c->request->parameter[META_PARAMETER_INCARNATION], 1, UINT32_MAX,
                       &incarnation) != 0) {
        meta_rest_malformed(c, "incarnation", "must be a number from 1 to 4294967295");
        return;
    }
    if (meta_directory_show(c->s->directory, c->id, c->now, &view) == 0 &&
        view.incarnation > incarnation) {
        c->s->count.stale++;
        meta_rest_stale(c, view.incarnation);
        return;
    }
    switch (meta_service_remove(c->s, c->id, c->who, c->now, &err)) {
    case 0:
        c->answer->status = 204;
        return;
    case -ENOENT:
        meta_rest_problem(c, REST_NO_NODE, NULL);
        return;
    default:
        meta_rest_problem(c, REST_STORE, err.text);
    }
}

bool meta_rest_read_limit(struct call *c, uint64_t *out)
{
    const char *limit = c->request->parameter[META_PARAMETER_LIMIT];
    *out = DEFAULT_LIMIT;
    if (limit == NULL || base_parse_u64(limit, 1, MAX_LIMIT, out) == 0)
        return true;
    meta_rest_malformed(c, "limit", "must be a number from 1 to 1000");
    return false;
}

void meta_rest_bad_cursor(struct call *c)
{
    meta_rest_malformed(c, "cursor", "must be the next_cursor of an earlier answer");
}

bool meta_rest_read_cursor(struct call *c, char out[REST_CURSOR_BYTES])
{
    const char *cursor = c->request->parameter[META_PARAMETER_CURSOR];
    size_t length = 0;
    if (cursor != NULL && (base_base64_decode(BASE_BASE64URL, cursor, strlen(cursor), out,
                                              REST_CURSOR_BYTES - 1, &length) != 0 ||
                           length == 0 || memchr(out, '\0', length) != NULL)) {
        meta_rest_bad_cursor(c);
        return false;
    }
    out[length] = '\0';
    return true;
}

bool meta_rest_read_page(struct call *c, struct rest_page *out)
{
    char after[REST_CURSOR_BYTES];
    *out = (struct rest_page){.limit = 0};
    if (!meta_rest_read_limit(c, &out->limit) || !meta_rest_read_cursor(c, after))
        return false;
    if (after[0] != '\0' && !meta_json_is_id(after)) {
        meta_rest_bad_cursor(c);
        return false;
    }
    memcpy(out->after, after, strlen(after) + 1);
    return true;
}

void meta_rest_next_cursor(struct call *c, const char *last)
{
    char cursor[BASE_BASE64_TEXT(REST_CURSOR_BYTES)];
    base_base64_encode(BASE_BASE64URL, last, strlen(last), cursor);
    base_json_string(c->body, "next_cursor", cursor);
}

/* The next one that is registered, or of which something is set. */
static int next_known(const struct call *c, const char *after, struct meta_node_view *out)
{
    const struct meta_resource *set = meta_resources_after(c->s->resources, META_NODE, after);
    int status = meta_directory_after(c->s->directory, after, c->now, out);
    if (set == NULL || (status == 0 && strcmp(out->id, set->name) <= 0))
        return status;
    view_absent(set->name, out);
    return 0;
}

/* The next one with all of these labels. */
static int next_node(const struct call *c, const struct resource_labels *labels, const char *after,
                     struct meta_node_view *out)
{
    int status = next_known(c, after, out);
    while (status == 0 &&
           !resource_labels_match(&meta_resources_node_spec(c->s->resources, out->id)->labels,
                                  labels)) {
        char last[META_STORE_ID_BYTES];
        memcpy(last, out->id, sizeof last);
        status = next_known(c, last, out);
    }
    return status;
}

void meta_rest_list_nodes(struct call *c)
{
    const char *label = c->request->parameter[META_PARAMETER_LABEL];
    struct resource_labels labels = {.text = ""};
    struct meta_node_view view;
    struct rest_page page;
    uint64_t n = 0;
    if (!meta_rest_read_page(c, &page))
        return;
    if (label != NULL && resource_labels_parse(label, &labels) != 0) {
        meta_rest_malformed(c, "label", "must be KEY=VALUE, or several with commas between them");
        return;
    }
    base_json_object(c->body, NULL);
    base_json_u64(c->body, "revision", meta_resources_revision(c->s->resources));
    meta_rest_write_position(c);
    base_json_array(c->body, "nodes");
    while (n < page.limit && next_node(c, &labels, page.after, &view) == 0) {
        base_text_printf(c->body, n++ == 0 ? "\n" : ",\n");
        write_node(c, &view);
        memcpy(page.after, view.id, sizeof page.after);
    }
    base_json_array_end(c->body);
    if (n == page.limit && next_node(c, &labels, page.after, &view) == 0)
        meta_rest_next_cursor(c, page.after);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

/* ---- the daemon ----------------------------------------------------------------------------- */

void meta_rest_get_health(struct call *c)
{
    base_json_object(c->body, NULL);
    base_json_string(c->body, "status", "ok");
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

void meta_rest_get_ready(struct call *c)
{
    struct base_errbuf err;
    if (meta_store_check(c->s->store, &err) != 0)
        meta_rest_problem(c, REST_STORE, err.text);
    else {
        base_json_object(c->body, NULL);
        base_json_string(c->body, "status", "ready");
        base_json_object_end(c->body);
        base_text_append(c->body, "\n", 1);
    }
}

void meta_rest_get_metrics(struct call *c)
{
    c->answer->content_type = BASE_METRICS_TYPE;
    meta_service_metrics(c->s, c->body);
}

void meta_rest_get_version(struct call *c)
{
    base_json_object(c->body, NULL);
    base_json_string(c->body, "program", "kedge-metad");
    base_json_string(c->body, "version", KEDGE_VERSION);
    base_json_string(c->body, "commit", base_version_commit());
    base_json_u64(c->body, "record_version", SCHEMA_RECORD_VERSION);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

void meta_service_handle(struct meta_service *s, const struct meta_service_request *request,
                         uint64_t now, struct base_text *body, struct meta_service_answer *out)
{
    struct call c = {.s = s, .request = request, .now = now, .body = body, .answer = out};
    *out = META_SERVICE_ANSWER;
    meta_service_at(s, now, request->wall_ms);
    meta_service_lapse(s, now);
    meta_rest_route(&c);
    if (out->status != META_SERVICE_LATER)
        s->count.http[out->status]++;
}
