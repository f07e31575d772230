/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/resources_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "revocation_json.h"
#include "base/json_writer.h"
#include "metaserver/json_read.h"
#include "token_json.h"
#include "metaserver/window_targets.h"

static const struct resource_table *table_of(const struct meta_resource *s)
{
    return resource_table((enum resource_kind)s->kind);
}

/* ---- reading */

static int decode_restore(const struct json_at *at, json_t *root, struct meta_restore *r)
{
    static const char *const names[] = {"revision", "settled", NULL};
    const json_t *revision = json_object_get(root, "revision"),
                 *settled = json_object_get(root, "settled");
    int status = meta_json_only(at, root, names);
    if (status == 0 && (!json_is_integer(revision) || json_integer_value(revision) < 0))
        status = meta_json_bad(at, "revision", "must be an integer, at least 0");
    if (status == 0 && settled != NULL && !json_is_true(settled))
        status = meta_json_bad(at, "settled", "must be true");
    if (status == 0)
        *r = (struct meta_restore){.revision = (uint64_t)json_integer_value(revision),
                                   .settled = settled != NULL};
    return status;
}

static int decode_kind(const struct json_at *at, json_t *root, bool stored, struct meta_resource *s)
{
    static const char *const nothing[] = {NULL};
    int status;
    switch (s->kind) {
    case META_TENANT:
    case META_WINDOW:
    case META_NODE:
    case META_POOL:
        status = meta_json_only_fields(at, root, table_of(s), nothing);
        return status == 0 ? meta_json_fields(at, root, table_of(s), stored, &s->tenant) : status;
    case META_TOKEN:
        return meta_token_json_decode(at, root, s->name, stored, &s->token);
    case META_LEASE:
        return meta_revocation_json_decode(at, root, &s->revocation);
    case META_RESTORE:
        return decode_restore(at, root, &s->restore);
    case META_TRAIL_KINDS:
        break;
    }
    return meta_json_bad(at, "", "unknown kind");
}

static int decode_body(enum meta_resource_kind kind, const char *name, const void *body,
                       size_t bytes, bool stored, struct meta_resource *out,
                       struct meta_violation *violation)
{
    struct meta_resource s = {.kind = kind};
    struct json_at at = {.violation = violation};
    json_t *root;
    int status = meta_json_parse(body, bytes, &at, &root);
    if (status != 0)
        return status;
    if ((size_t)snprintf(s.name, sizeof s.name, "%s", name) >= sizeof s.name)
        status = meta_json_bad(&at, "name", "has at most 63 characters");
    if (status == 0)
        status = decode_kind(&at, root, stored, &s);
    json_decref(root);
    if (status == 0) {
        struct meta_resource checked = s; /* which puts uids in order */
        status = meta_resource_validate(&checked, violation);
    }
    if (status == 0)
        *out = s;
    return status;
}

int meta_json_resource(enum meta_resource_kind kind, const char *name, const void *body,
                       size_t bytes, struct meta_resource *out, struct meta_violation *violation)
{
    return decode_body(kind, name, body, bytes, false, out, violation);
}

int meta_json_resource_stored(enum meta_resource_kind kind, const char *name, const char *body,
                              struct meta_resource *out, struct meta_violation *violation)
{
    return decode_body(kind, name, body, strlen(body), true, out, violation);
}

int meta_json_check(const char *body, struct meta_violation *violation)
{
    const struct json_at at = {.violation = violation};
    json_t *root;
    int status = meta_json_parse(body, strlen(body), &at, &root);
    if (status == 0)
        json_decref(root);
    return status;
}

/* ---- writing */

static void write_members(struct base_text *out, const struct meta_resource *s)
{
    switch (s->kind) {
    case META_TENANT:
    case META_WINDOW:
    case META_TOKEN: /* but for its hash */
    case META_NODE:
    case META_POOL:
        resource_write(out, table_of(s), &s->tenant);
        return;
    case META_LEASE:
        meta_revocation_json_write(out, &s->revocation);
        return;
    case META_RESTORE:
        base_json_u64(out, "revision", s->restore.revision);
        if (s->restore.settled)
            base_json_bool(out, "settled", true);
        return;
    case META_TRAIL_KINDS:
        return;
    }
}

static void write_body(struct base_text *out, const char *key, const struct meta_resource *resource)
{
    base_json_object(out, key);
    write_members(out, resource);
    base_json_object_end(out);
}

void meta_json_write_body(struct base_text *out, const struct meta_resource *resource)
{
    write_body(out, NULL, resource);
}

void meta_json_write_stored(struct base_text *out, const struct meta_resource *resource)
{
    if (resource->kind != META_TOKEN) {
        meta_json_write_body(out, resource);
        return;
    }
    base_json_object(out, NULL);
    meta_token_json_write_stored(out, &resource->token);
    base_json_object_end(out);
}

/* All but the last brace. */
static void write_open(struct base_text *out, const struct meta_resource *resource)
{
    base_json_object(out, NULL);
    base_json_string(out, "name", resource->name);
    base_json_u64(out, "revision", resource->revision);
    write_members(out, resource);
}

void meta_json_write_resource(struct base_text *out, const struct meta_resource *resource,
                              uint64_t wall_ms)
{
    write_open(out, resource);
    if (resource->kind == META_TOKEN && meta_token_is_over(&resource->token, wall_ms))
        base_json_bool(out, "expired", true);
    base_json_object_end(out);
}

void meta_json_write_new_token(struct base_text *out, const struct meta_resource *token,
                               const char *secret)
{
    base_json_object(out, NULL);
    base_json_string(out, "name", token->name);
    base_json_u64(out, "revision", token->revision);
    base_json_string(out, "secret", secret);
    write_members(out, token);
    base_json_object_end(out);
}

static void write_side(struct base_text *out, const char *name, bool there,
                       const struct meta_resource *resource)
{
    if (there)
        write_body(out, name, resource);
    else
        base_json_null(out, name);
}

const char *meta_json_plural(enum meta_resource_kind kind, char out[META_JSON_PLURAL_BYTES])
{
    snprintf(out, META_JSON_PLURAL_BYTES, "%ss", meta_resource_kind_name(kind));
    return out;
}

const char *meta_json_time(uint64_t ms, char out[META_JSON_TIME_BYTES])
{
    char when[32] = "";
    struct tm tm;
    time_t seconds = (time_t)(ms / 1000);
    if (gmtime_r(&seconds, &tm) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, META_JSON_TIME_BYTES, "%s.%03uZ", when, (unsigned)(ms % 1000));
    return out;
}

static void write_foreign(struct base_text *out, const struct meta_foreign_entry *entry)
{
    base_json_string(out, "kind", entry->kind);
    base_json_string(out, "name", entry->name);
    base_json_raw(out, "from", entry->before != NULL ? entry->before : "null");
    base_json_raw(out, "to", entry->after != NULL ? entry->after : "null");
    base_json_object_end(out);
}

void meta_json_write_change(struct base_text *out, const struct meta_resource_change *change)
{
    char when[META_JSON_TIME_BYTES];
    base_json_object(out, NULL);
    base_json_u64(out, "revision", change->revision);
    base_json_string(out, "time", meta_json_time(change->time_ms, when));
    base_json_string(out, "who", change->who);
    if (change->foreign != NULL) {
        write_foreign(out, change->foreign);
        return;
    }
    base_json_string(out, "kind", meta_resource_kind_name(change->kind));
    base_json_string(out, "name", change->name);
    write_side(out, "from", change->had, &change->from);
    write_side(out, "to", change->has, &change->to);
    base_json_object_end(out);
}

static void write_gids(struct base_text *out, const struct meta_directory *m, const char *node)
{
    uint8_t gids[META_STORE_NODE_ENDPOINTS][16];
    char gid[BASE_GID_TEXT];
    uint32_t count = meta_window_targets_of(m, node, gids);
    base_json_array(out, "gids");
    for (uint32_t i = 0; i < count; i++)
        base_json_string(out, NULL, base_gid_format(gids[i], gid));
    base_json_array_end(out);
}

/* As it is shown, with what an agent needs of others; but for its end. */
static void write_told(struct base_text *out, const struct meta_resources *s,
                       const struct meta_directory *m, const struct meta_resource *item)
{
    const struct meta_resource *pool =
        item->kind == META_TENANT ? meta_resources_pool_of(s, item->name) : NULL;
    write_open(out, item);
    if (pool != NULL)
        base_json_string(out, "pool", pool->name);
    if (item->kind == META_WINDOW && item->window.node[0] != '\0')
        write_gids(out, m, item->window.node);
}

/* node: of pools alone. */
static void write_array(struct base_text *out, const struct meta_resources *s,
                        const struct meta_directory *m, enum meta_resource_kind kind,
                        const struct resource_node *node)
{
    const struct meta_resource *tokens[META_WORKER_TOKENS_MAX];
    const struct meta_resource *item = NULL;
    uint32_t token_count = kind == META_TENANT ? meta_resources_worker_tokens(s, tokens) : 0;
    const char *after = "";
    char all[META_JSON_PLURAL_BYTES];
    base_json_array(out, meta_json_plural(kind, all));
    while ((item = meta_resources_after(s, kind, after)) != NULL) {
        after = item->name;
        if (kind == META_POOL && !resource_labels_match(&node->labels, &item->pool.nodes))
            continue;
        write_told(out, s, m, item);
        if (kind == META_TENANT)
            meta_token_json_write_for_agents(out, tokens, token_count, item->name);
        base_json_object_end(out);
    }
    base_json_array_end(out);
}

/* Pools that the node may have had: how long those workers have that it still has of one. */
static void write_other_pools(struct base_text *out, const struct meta_resources *s,
                              const struct resource_node *node)
{
    const struct meta_resource *item = NULL;
    const char *after = "";
    bool any = false;
    while ((item = meta_resources_after(s, META_POOL, after)) != NULL) {
        after = item->name;
        if (resource_labels_match(&node->labels, &item->pool.nodes))
            continue;
        if (!any)
            base_json_array(out, "other_pools");
        any = true;
        base_json_object(out, NULL);
        base_json_string(out, "name", item->name);
        if (item->pool.numbers.number != RESOURCE_UNSAID)
            base_json_u64(out, "number", item->pool.numbers.number);
        if (item->pool.numbers.grace_ms != RESOURCE_UNSAID)
            base_json_u64(out, "grace_ms", item->pool.numbers.grace_ms);
        base_json_object_end(out);
    }
    if (any)
        base_json_array_end(out);
}

void meta_json_write_document(struct base_text *out, const struct meta_resources *s,
                              const struct meta_directory *m)
{
    base_json_object(out, NULL);
    base_json_u64(out, "revision", meta_resources_revision(s));
    write_array(out, s, m, META_TENANT, NULL);
    write_array(out, s, m, META_WINDOW, NULL);
    base_text_append(out, ",", 1); /* the end may be in another text */
}

void meta_json_write_document_end(struct base_text *out, const struct meta_resources *s,
                                  const char *node)
{
    const struct resource_node *n = meta_resources_node_spec(s, node);
    base_json_object(out, "node");
    resource_write(out, resource_table(RESOURCE_NODE), n);
    base_json_object_end(out);
    write_array(out, s, NULL, META_POOL, n);
    write_other_pools(out, s, n);
    base_json_object_end(out);
}
