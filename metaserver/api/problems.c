/* SPDX-License-Identifier: Apache-2.0 */
/* What every route of the REST interface has: problems (RFC 9457), the checks of bodies, and the
 * pages of lists. It calls nothing of the routes. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/digest.h"
#include "base/json_writer.h"
#include "metaserver/json.h"
#include "metaserver/json_read.h"
#include "rest_private.h"

#define DEFAULT_LIMIT 100
#define MAX_LIMIT     1000

/* ---- problems */

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
    [REST_NO_REGION] = {"unknown-region", 404, "no such name of a region"},
    [REST_NO_QUESTION] = {"unknown-query", 404, "nobody waits for that answer"},
    [REST_NOTHING_SET] = {"nothing-set", 404, "nothing is set of this node"},
    [REST_METHOD] = {"method-not-allowed", 405, "this path does not know that method"},
    [REST_STALE] = {"stale-incarnation", 409, "a newer incarnation of the node is known"},
    [REST_TAKEN] = {"endpoint-taken", 409, "the endpoint belongs to another node"},
    [REST_NAME_TAKEN] = {"name-taken", 409, "the name belongs to another region"},
    [REST_QUOTA] = {"over-quota", 403, "the tenant has as much as it may have"},
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
    [REST_STORE] = {"store-failed", 503, "the store cannot be used"},
    [REST_TABLE] = {"table-unreachable", 503, "no agent can read this metaserver's table"},
    [REST_CROWDED] = {"too-many-changes", 503, "too many changes wait for the store"},
    [REST_NAMES_WAIT] = {"too-many-names", 429, "too many names of regions wait for the store"},
    [REST_STORM] = {"too-many-registrations", 429, "too many nodes register at once"},
    [REST_NO_QUEUE_PAIR] = {"no-queue-pair", 503,
                            "there is no queue pair for the reader: nothing was changed"},
    [REST_WATCHES] = {"too-many-watches", 503, "there are too many streams"},
    [REST_BEHIND] = {"behind", 503, "this metaserver has not heard of that revision"},
    [REST_SETTLING] = {"settling", 503, "the store was put back: names wait for who had them"},
    [REST_ASKS] = {"too-many-queries", 503, "too much is being asked of agents"},
    [REST_UNREACHABLE] = {"agent-unreachable", 503, "the node's agent cannot be asked"},
    [REST_LATE] = {"agent-late", 504, "the node's agent has not answered in time"},
    [REST_SENSELESS] = {"senseless-answer", 502, "the node's agent answered what makes no sense"},
};

const char *meta_rest_problem_name(enum meta_rest_problem p)
{
    return problems[p].type;
}

/* More members may follow, then end_problem(). */
static void begin_problem(struct call *c, enum meta_rest_problem p, const char *detail)
{
    char type[64];
    c->answer->status = problems[p].status;
    c->answer->retry_after_s =
        p == REST_CROWDED || p == REST_BEHIND || p == REST_NAMES_WAIT || p == REST_SETTLING;
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

static void end_problem(struct call *c)
{
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

void meta_rest_problem(struct call *c, enum meta_rest_problem p, const char *detail)
{
    begin_problem(c, p, detail);
    end_problem(c);
}

void meta_rest_problem_of(struct call *c, enum meta_rest_problem p, const char *field,
                          const char *detail)
{
    begin_problem(c, p, detail);
    if (field[0] != '\0')
        base_json_string(c->body, "field", field);
    end_problem(c);
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
    begin_problem(c, REST_STALE, "start with an incarnation above the known one");
    base_json_u64(c->body, "known_incarnation", known);
    end_problem(c);
}

void meta_rest_write_digest(struct call *c, const struct meta_store_name *name)
{
    char digest[BASE_DIGEST_NAME];
    if (base_digest_name(name->grant, digest) == 0)
        base_json_string(c->body, "digest", digest);
}

void meta_rest_not_published(struct call *c, const struct meta_store_name *known)
{
    begin_problem(c, REST_NO_REGION,
                  known == NULL ? "the node has not published it in this life"
                                : "the node has published it for another region");
    if (known != NULL)
        meta_rest_write_digest(c, known);
    end_problem(c);
}

void meta_rest_name_taken(struct call *c, const struct meta_store_name *known)
{
    char detail[160];
    snprintf(detail, sizeof detail, "it is of a region of node %s, which takes it back or ends",
             known != NULL ? known->node : "another one");
    begin_problem(c, REST_NAME_TAKEN, detail);
    base_json_string(c->body, "field", "name");
    if (known != NULL) {
        base_json_string(c->body, "node", known->node);
        base_json_u64(c->body, "incarnation", known->incarnation);
        if (strcmp(known->node, c->id) == 0)
            meta_rest_write_digest(c, known);
    }
    end_problem(c);
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

/* ---- pages */

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
