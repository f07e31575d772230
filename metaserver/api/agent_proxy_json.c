/* SPDX-License-Identifier: Apache-2.0 */
#include "agent_proxy_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "metaserver/json.h"

enum { PREFIXED_BYTES = META_RESOURCE_NAME_BYTES + META_PROXY_ID_BYTES };

/* ---- answers */

/* Puts the node before an id that the agent has. */
static int prefix_id(const struct json_at *at, json_t *object, const char *name, const char *node)
{
    const char *id = json_string_value(json_object_get(object, name));
    char text[PREFIXED_BYTES];
    if (id == NULL || !meta_proxy_is_id(id))
        return meta_json_bad(at, name, "must be an id");
    snprintf(text, sizeof text, "%s:%s", node, id);
    return json_object_set_new(object, name, json_string(text)) == 0
               ? 0
               : meta_json_bad(at, name, "out of memory");
}

static int append_object(const struct json_at *at, json_t *object, size_t most,
                         struct base_text *out)
{
    char *text = json_dumps(object, JSON_COMPACT);
    int status = 0;
    if (text == NULL || strlen(text) > most)
        status = meta_json_bad(at, "", text == NULL ? "cannot be shown" : "is too large");
    else
        base_text_append(out, text, strlen(text));
    free(text);
    return status;
}

/* A worker or a lease, as it is shown. */
static int name_node(const struct json_at *at, json_t *object, const char *node, bool lease)
{
    if (!json_is_object(object))
        return meta_json_bad(at, "", "must be an object");
    int status = prefix_id(at, object, "id", node);
    if (status == 0 && lease)
        status = prefix_id(at, object, "worker", node);
    if (status == 0 && json_object_set_new(object, "node", json_string(node)) != 0)
        status = meta_json_bad(at, "node", "out of memory");
    return status;
}

static int append_one(const struct json_at *at, json_t *object, const struct proxy_query *q,
                      struct base_text *out)
{
    const char *id = json_string_value(json_object_get(object, "id"));
    if (q->what == PROXY_ONE && (id == NULL || strcmp(id, q->id) != 0))
        return meta_json_bad(at, "id", "is not the one that was asked for");
    int status = name_node(at, object, q->node, q->leases);
    return status == 0 ? append_object(at, object, PROXY_ITEM_BYTES, out) : status;
}

static int append_items(const struct json_at *at, json_t *array, const struct proxy_query *q,
                        bool more, struct base_text *out)
{
    struct json_at inner = {.violation = at->violation};
    json_t *item;
    size_t i;
    json_array_foreach(array, i, item)
    {
        snprintf(inner.prefix, sizeof inner.prefix, "body.%s[%u].",
                 q->leases ? "leases" : "workers", (unsigned)i);
        base_text_printf(out, "%s\n", i > 0 || more ? "," : "");
        int status = append_one(&inner, item, q, out);
        if (status != 0)
            return status;
    }
    return 0;
}

/* A page, of at most as many as were asked for. */
static int read_list(const struct json_at *at, json_t *body, const struct proxy_query *q, bool more,
                     struct base_text *out, struct proxy_answer *answer)
{
    json_t *array = json_object_get(body, q->leases ? "leases" : "workers");
    const char *next = json_string_value(json_object_get(body, "next_cursor"));
    if (!json_is_array(array) || json_array_size(array) > q->limit)
        return meta_json_bad(at, "body", "must hold as many as were asked for, or fewer");
    if (next != NULL &&
        (next[0] == '\0' || strlen(next) >= sizeof answer->next ||
         next[strspn(next, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")] !=
             '\0'))
        return meta_json_bad(at, "body.next_cursor", "is no cursor");
    answer->count = (uint32_t)json_array_size(array);
    snprintf(answer->next, sizeof answer->next, "%s", next != NULL ? next : "");
    return append_items(at, array, q, more, out);
}

/* What was revoked, what that breaks, and whether it is over. */
static int read_revoked(const struct json_at *at, json_t *body, const struct proxy_query *q,
                        struct base_text *out)
{
    const char *breaks = json_string_value(json_object_get(body, "breaks"));
    json_t *leases = json_object_get(body, "leases");
    if (!json_is_boolean(json_object_get(body, "forced")) ||
        !json_is_boolean(json_object_get(body, "over")) || breaks == NULL ||
        strlen(breaks) > PROXY_ITEM_BYTES || !json_is_array(leases))
        return meta_json_bad(at, "body", "must say forced, over, breaks and leases");
    int status = prefix_id(at, body, "worker", q->node);
    if (status != 0)
        return status;
    base_json_object(out, NULL);
    base_json_string(out, "worker", json_string_value(json_object_get(body, "worker")));
    base_json_bool(out, "forced", json_is_true(json_object_get(body, "forced")));
    base_json_array(out, "leases");
    status = append_items(at, leases, q, false, out);
    base_json_array_end(out);
    base_json_bool(out, "over", json_is_true(json_object_get(body, "over")));
    base_json_string(out, "breaks", breaks);
    base_json_object_end(out);
    return status;
}

/* Whatever an agent of that version says of itself, of its own node. */
static int read_status(const struct json_at *at, json_t *body, const struct proxy_query *q,
                       struct base_text *out)
{
    const char *node = json_string_value(json_object_get(body, "node"));
    if (node == NULL || strcmp(node, q->node) != 0)
        return meta_json_bad(at, "body.node", "is not the node that was asked");
    return append_object(at, body, META_JSON_MAX_ANSWER_BYTES, out);
}

static int read_body(const struct json_at *at, json_t *body, const struct proxy_query *q, bool more,
                     struct base_text *out, struct proxy_answer *answer)
{
    if (answer->status >= 400) { /* a problem, as the admin socket says it */
        const char *detail = json_string_value(json_object_get(body, "detail"));
        snprintf(answer->detail, sizeof answer->detail, "%s", detail != NULL ? detail : "");
        return 0;
    }
    switch (q->what) {
    case PROXY_LIST:
        return read_list(at, body, q, more, out, answer);
    case PROXY_ONE:
        return append_one(at, body, q, out);
    case PROXY_STATUS:
        return read_status(at, body, q, out);
    case PROXY_REVOKE:
        break;
    }
    return read_revoked(at, body, q, out);
}

static int read_answer(const struct json_at *at, json_t *root, const struct proxy_query *q,
                       bool more, struct base_text *out, struct proxy_answer *answer)
{
    static const char *const names[] = {"status", "body", NULL};
    json_t *body = json_object_get(root, "body");
    uint64_t http = 0;
    int status = meta_json_only(at, root, names);
    if (status == 0)
        status = meta_json_number(at, root, "status", true, 200, 599, &http);
    if (status != 0)
        return status;
    answer->status = (int)http;
    if (http < 400 && http != 200 && (http != 202 || q->what != PROXY_REVOKE))
        return meta_json_bad(at, "status", "is none that an agent gives");
    if (!json_is_object(body))
        return meta_json_bad(at, "body", "must be an object");
    return read_body(at, body, q, more, out, answer);
}

int meta_proxy_json_answer(const void *body, size_t bytes, const struct proxy_query *query,
                           bool more, struct base_text *out, struct proxy_answer *answer,
                           struct meta_violation *violation)
{
    const size_t before = out->length;
    struct json_at at = {.violation = violation};
    json_error_t error;
    *answer = (struct proxy_answer){.status = 0};
    json_t *root = bytes <= META_JSON_MAX_ANSWER_BYTES
                       ? json_loadb(body, bytes, JSON_REJECT_DUPLICATES, &error)
                       : NULL;
    int status = json_is_object(root) ? read_answer(&at, root, query, more, out, answer)
                                      : meta_json_bad(&at, "", "must be a JSON object");
    json_decref(root);
    if (status == 0 && out->error != 0)
        status = meta_json_bad(&at, "", "there is no room for it");
    if (status != 0)
        base_text_cut(out, before);
    return status;
}
