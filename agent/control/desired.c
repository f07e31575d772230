/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "base/text.h"
#include "control/desired.h"
#include "schema/resource_read.h"

/* ---- values */

/* A number that may be left out: then 0. */
static int parse_number(const json_t *object, const char *of, const char *key, uint64_t *out,
                        struct base_errbuf *why)
{
    const json_t *value = json_object_get(object, key);
    *out = 0;
    if (value == NULL)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return base_err(why, -EINVAL, "%s: %s is no number", of, key);
    *out = (uint64_t)json_integer_value(value);
    return 0;
}

static int parse_name(const json_t *object, const char *key, size_t size, char *out,
                      struct base_errbuf *why)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text == NULL || text[0] == '\0' || strlen(text) >= size)
        return base_err(why, -EINVAL, "%s must have 1 to %zu characters", key, size - 1);
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

/* "pool gold: dcis must be ..." */
static int refuse_field(struct base_errbuf *why, const struct resource_table *t, const char *name,
                        const char *field, const char *detail)
{
    return base_err(why, -EINVAL, "%s%s%s: %s %s", t->name, name[0] != '\0' ? " " : "", name, field,
                    detail);
}

/* The fields of a resource that are of use here: of these types. */
static int read_fields(json_t *object, enum resource_kind kind, const char *name, uint32_t types,
                       void *out, struct base_errbuf *why)
{
    const struct resource_table *table = resource_table(kind);
    struct resource_violation wrong;
    char must[RESOURCE_MUST_BYTES];
    if (resource_read(table, object, types, true, out, &wrong) != 0)
        return refuse_field(why, table, name, wrong.field, wrong.detail);
    const struct resource_field *number = resource_numbers_check(table, out);
    return number == NULL
               ? 0
               : refuse_field(why, table, name, number->name, resource_number_must(number, must));
}

/* ---- tenants */

/* Of its workers; older metaservers say none. */
static int decode_tokens(const json_t *object, struct agent_tenant_config *t,
                         struct base_errbuf *why)
{
    const json_t *array = json_object_get(object, "tokens");
    if (array == NULL)
        return 0;
    if (!json_is_array(array) || json_array_size(array) > AGENT_TOKENS)
        return base_err(why, -EINVAL, "tenant %s: tokens must be at most %d", t->name,
                        AGENT_TOKENS);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *one = json_array_get(array, i);
        const char *hash = json_string_value(json_object_get(one, "sha256"));
        struct agent_token *token = &t->token[i];
        if (hash == NULL || base_hex_decode(hash, token->sha256, sizeof token->sha256) != 0)
            return base_err(why, -EINVAL, "tenant %s: tokens[%zu] has no sha256", t->name, i);
        int status = parse_number(one, t->name, "expires_ms", &token->expires_ms, why);
        if (status != 0)
            return status;
    }
    t->tokens = (uint32_t)json_array_size(array);
    return 0;
}

static int add_window(struct agent_desired *s, const struct agent_window_config *w,
                      struct base_errbuf *why)
{
    if (w->most.bytes == 0 && w->most.ops == 0)
        return 0;
    if (s->windows == AGENT_WINDOWS)
        return base_err(why, -EINVAL, "there are more than %d windows", AGENT_WINDOWS);
    s->window[s->windows++] = *w;
    return 0;
}

static int decode_tenant(json_t *object, struct agent_desired *s, struct base_errbuf *why)
{
    const uint32_t types = RESOURCE_TYPES_NUMBERS | RESOURCE_TYPE(FIELD_UIDS);
    struct agent_window_config w = {.scope = RESOURCE_WINDOW_TENANT};
    struct resource_tenant is;
    if (s->tenants == AGENT_TENANTS)
        return base_err(why, -EINVAL, "there are more than %d tenants", AGENT_TENANTS);
    struct agent_tenant_config *t = &s->tenant[s->tenants++];
    memset(t, 0, sizeof *t);
    int status = parse_name(object, "name", sizeof t->name, t->name, why);
    if (status != 0)
        return status;
    t->id = agent_tenant_id(t->name);
    memcpy(w.tenant, t->name, sizeof w.tenant);
    if (json_object_get(object, "pool") != NULL &&
        (status = parse_name(object, "pool", sizeof t->pool, t->pool, why)) != 0)
        return status;
    if (json_object_get(object, "uids") == NULL) /* metaservers always say them */
        return base_err(why, -EINVAL, "tenant %s: uids are missing", t->name);
    if ((status = read_fields(object, RESOURCE_TENANT, t->name, types, &is, why)) != 0 ||
        (status = decode_tokens(object, t, why)) != 0)
        return status;
    for (uint32_t i = 0; i < is.uids.count; i++)
        t->uids[i] = (struct agent_uids){is.uids.range[i].first, is.uids.range[i].last};
    t->uid_ranges = is.uids.count;
    t->sessions = is.numbers.sessions != 0 ? is.numbers.sessions : UINT64_MAX;
    t->memory = is.numbers.memory_bytes != 0 ? is.numbers.memory_bytes : UINT64_MAX;
    t->vqps = is.numbers.vqps;
    t->mrs = is.numbers.mrs;
    t->control_ops_per_s = is.numbers.control_ops_per_s;
    t->region_names = is.numbers.region_names != RESOURCE_UNSAID ? is.numbers.region_names : 0;
    w.most = (struct agent_limits){.bytes = is.numbers.window_bytes, .ops = is.numbers.window_ops};
    return add_window(s, &w, why);
}

/* ---- windows */

/* Those that its node has: what a metaserver adds to what operators say. */
static int add_gids(const json_t *array, struct agent_window_config *w, struct base_errbuf *why)
{
    static const uint8_t none[16];
    if (json_array_size(array) > AGENT_WINDOW_GIDS)
        return base_err(why, -EINVAL, "window %s: a node has at most %d GIDs", w->name,
                        AGENT_WINDOW_GIDS);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *text = json_string_value(json_array_get(array, i));
        uint8_t *gid = w->gid[w->gids];
        if (text == NULL || base_gid_parse(text, gid) != 0 || memcmp(gid, none, sizeof none) == 0)
            return base_err(why, -EINVAL, "window %s: gids[%zu] is no GID", w->name, i);
        w->gids++;
    }
    return 0;
}

/* Which one, if it is for one alone. */
static int name_destination(const json_t *object, const struct resource_window *is,
                            struct agent_window_config *w, struct base_errbuf *why)
{
    static const uint8_t none[16];
    memcpy(w->node, is->node, sizeof w->node);
    memcpy(w->pool, is->pool, sizeof w->pool);
    if (is->node[0] != '\0') {
        w->one = true;
        return add_gids(json_object_get(object, "gids"), w, why);
    }
    if (memcmp(is->gid, none, sizeof none) != 0) {
        w->one = true;
        w->gids = 1;
        memcpy(w->gid[0], is->gid, sizeof w->gid[0]);
    }
    return 0;
}

static int decode_window(json_t *object, struct agent_desired *s, struct base_errbuf *why)
{
    struct agent_window_config w = {.gids = 0};
    struct resource_window is;
    int status = parse_name(object, "name", sizeof w.name, w.name, why);
    if (status == 0)
        status = read_fields(object, RESOURCE_WINDOW, w.name, RESOURCE_TYPES_ALL, &is, why);
    if (status != 0)
        return status;
    w.scope = is.scope;
    w.most = (struct agent_limits){.bytes = is.numbers.bytes, .ops = is.numbers.ops};
    if (w.scope == RESOURCE_WINDOW_TENANT && is.tenant[0] == '\0')
        return base_err(why, -EINVAL, "window %s: tenant is missing", w.name);
    if (w.scope == RESOURCE_WINDOW_TENANT)
        memcpy(w.tenant, is.tenant, sizeof w.tenant);
    if (w.scope == RESOURCE_WINDOW_DESTINATION &&
        (status = name_destination(object, &is, &w, why)) != 0)
        return status;
    return add_window(s, &w, why);
}

struct agent_limits agent_desired_window(const struct agent_desired *s,
                                         enum resource_window_scope scope, const char *tenant)
{
    struct agent_limits least = {0};
    for (uint32_t i = 0; i < s->windows; i++) {
        const struct agent_window_config *w = &s->window[i];
        if (w->scope == scope && !w->one &&
            (scope != RESOURCE_WINDOW_TENANT || strcmp(w->tenant, tenant) == 0))
            least = agent_limits_narrower(least, w->most);
    }
    return least;
}

/* False: there is no room for one more. */
static bool narrow_destination(struct agent_destination *out, uint32_t *count,
                               const uint8_t gid[16], struct agent_limits most)
{
    uint32_t i = 0;
    while (i < *count && memcmp(out[i].gid, gid, sizeof out[i].gid) != 0)
        i++;
    if (i == AGENT_DESTINATIONS)
        return false;
    if (i == *count) {
        out[i] = (struct agent_destination){.most = {0}};
        memcpy(out[i].gid, gid, sizeof out[i].gid);
        ++*count;
    }
    out[i].most = agent_limits_narrower(out[i].most, most);
    return true;
}

uint32_t agent_desired_destinations(const struct agent_window_config *windows, uint32_t count,
                                    const char *pool,
                                    struct agent_destination out[AGENT_DESTINATIONS],
                                    uint32_t *left)
{
    uint32_t found = 0;
    *left = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct agent_window_config *w = &windows[i];
        if (!w->one || (w->pool[0] != '\0' && strcmp(w->pool, pool) != 0))
            continue;
        for (uint32_t k = 0; k < w->gids; k++)
            *left += !narrow_destination(out, &found, w->gid[k], w->most);
    }
    return found;
}

/* ---- this node, and pools: older metaservers say nothing of them */

/* Its labels are the metaserver's, but for where it is; texts that are too long are cut off. */
static int decode_node(const json_t *root, struct agent_node_config *n, struct base_errbuf *why)
{
    json_t *object = json_object_get(root, "node");
    const char *reason = json_string_value(json_object_get(object, "reason"));
    const char *zone =
        json_string_value(json_object_get(json_object_get(object, "labels"), "zone"));
    struct resource_node is;
    const int status = read_fields(object, RESOURCE_NODE, "",
                                   RESOURCE_TYPES_NUMBERS | RESOURCE_TYPE(FIELD_BOOL), &is, why);
    if (status != 0)
        return status;
    n->grace_ms = is.numbers.grace_ms;
    n->draining = is.draining;
    n->cordoned = is.draining || is.cordoned;
    (void)base_copy_printable(n->reason, sizeof n->reason, reason); /* workers print it */
    (void)base_copy_printable(n->zone, sizeof n->zone, zone);
    return 0;
}

/* What nobody has said anything of. */
static struct agent_pool_config new_pool(void)
{
    struct agent_pool_config p = {.name = ""};
    resource_numbers_clear(resource_table(RESOURCE_POOL), &p.numbers);
    return p;
}

/* Of what only a metaserver that is wrong says twice. */
static int check_alone(const struct agent_desired *s, const struct agent_pool_config *p,
                       struct base_errbuf *why)
{
    for (uint32_t i = 0; i < s->pools; i++) {
        if (strcmp(s->pool[i].name, p->name) == 0)
            return base_err(why, -EINVAL, "there are two pools of the name %s", p->name);
        if (p->numbers.number != RESOURCE_UNSAID && s->pool[i].numbers.number == p->numbers.number)
            return base_err(why, -EINVAL, "pools %s and %s have one number, %u", s->pool[i].name,
                            p->name, (unsigned)p->numbers.number);
    }
    return 0;
}

static int check_service(const struct agent_pool_config *p, struct base_errbuf *why)
{
    const struct pool_numbers *n = &p->numbers;
    if (n->flow_label != RESOURCE_UNSAID && n->udp_source_port != RESOURCE_UNSAID)
        return base_err(why, -EINVAL,
                        "pool %s: flow_label and udp_source_port say the same: set one of them",
                        p->name);
    return 0;
}

/* Its numbers alone: which nodes and tenants it is for the metaserver has seen to. */
static int decode_any_pool(json_t *object, uint32_t count, struct agent_pool_config *p,
                           struct base_errbuf *why)
{
    struct resource_pool is;
    if (count == AGENT_POOLS)
        return base_err(why, -EINVAL, "there are more than %d pools", AGENT_POOLS);
    *p = new_pool();
    int status = parse_name(object, "name", sizeof p->name, p->name, why);
    if (status == 0)
        status = read_fields(object, RESOURCE_POOL, p->name, RESOURCE_TYPES_NUMBERS, &is, why);
    if (status == 0)
        p->numbers = is.numbers;
    return status;
}

static int decode_other_pool(json_t *object, struct agent_desired *s, struct base_errbuf *why)
{
    int status = decode_any_pool(object, s->other_pools, &s->other_pool[s->other_pools], why);
    s->other_pools += status == 0;
    return status;
}

static int decode_pool(json_t *object, struct agent_desired *s, struct base_errbuf *why)
{
    struct agent_pool_config *p = &s->pool[s->pools];
    int status = decode_any_pool(object, s->pools, p, why);
    if (status == 0)
        status = check_service(p, why);
    if (status == 0)
        status = check_alone(s, p, why);
    s->pools += status == 0;
    return status;
}

struct agent_pool_config agent_desired_pool(const struct agent_desired *s, const char *name)
{
    for (uint32_t i = 0; i < s->pools; i++)
        if (strcmp(s->pool[i].name, name) == 0)
            return s->pool[i];
    return new_pool();
}

uint32_t agent_desired_lanes(const struct agent_pool_config *p)
{
    return p->numbers.lanes != RESOURCE_UNSAID ? (uint32_t)p->numbers.lanes : 1;
}

/* ---- the document */

static int decode_array(const json_t *root, const char *key,
                        int (*one)(json_t *, struct agent_desired *, struct base_errbuf *),
                        struct agent_desired *s, struct base_errbuf *why)
{
    const json_t *array = json_object_get(root, key);
    int status = 0;
    if (!json_is_array(array))
        return base_err(why, -EINVAL, "%s is no array", key);
    for (size_t i = 0; i < json_array_size(array) && status == 0; i++)
        status = one(json_array_get(array, i), s, why);
    return status;
}

int agent_desired_decode(const char *text, size_t length, struct agent_desired *out,
                         struct base_errbuf *why)
{
    json_error_t fault;
    memset(out, 0, offsetof(struct agent_desired, tenant)); /* the rest is large */
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &fault);
    if (!json_is_object(root)) {
        json_decref(root);
        return base_err(why, -EINVAL, "the settings are no JSON object");
    }
    int status = parse_number(root, "settings", "revision", &out->revision, why);
    if (status == 0)
        status = decode_array(root, "tenants", decode_tenant, out, why);
    if (status == 0)
        status = decode_array(root, "windows", decode_window, out, why);
    if (status == 0)
        status = decode_node(root, &out->node, why);
    if (status == 0 && json_object_get(root, "pools") != NULL)
        status = decode_array(root, "pools", decode_pool, out, why);
    if (status == 0 && json_object_get(root, "other_pools") != NULL)
        status = decode_array(root, "other_pools", decode_other_pool, out, why);
    json_decref(root);
    for (uint32_t i = 0; i < out->tenants && status == 0; i++)
        out->tenant[i].window =
            agent_desired_window(out, RESOURCE_WINDOW_TENANT, out->tenant[i].name);
    return status;
}
