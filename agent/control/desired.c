/* SPDX-License-Identifier: Apache-2.0 */
#include "control/desired.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

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

/* ---- tenants */

/* 1000 or "1000-1999" */
static int decode_uid(const json_t *value, struct agentd_uids *out)
{
    const json_int_t uid = json_integer_value(value);
    uint64_t first, last;
    if (json_is_integer(value) && uid >= 0 && uid < UINT32_MAX) {
        out->first = out->last = (uid_t)uid;
        return 0;
    }
    if (!json_is_string(value) ||
        base_parse_range(json_string_value(value), UINT32_MAX - 1, &first, &last) != 0)
        return -EINVAL;
    *out = (struct agentd_uids){(uid_t)first, (uid_t)last};
    return 0;
}

static int decode_uids(const json_t *object, struct agentd_tenant_config *t,
                       struct base_errbuf *why)
{
    const json_t *array = json_object_get(object, "uids");
    const size_t count = json_array_size(array);
    if (!json_is_array(array) || count > AGENTD_UID_RANGES)
        return base_err(why, -EINVAL, "tenant %s: uids must be at most %d users and ranges",
                        t->name, AGENTD_UID_RANGES);
    for (size_t i = 0; i < count; i++)
        if (decode_uid(json_array_get(array, i), &t->uids[i]) != 0)
            return base_err(why, -EINVAL, "tenant %s: uids[%zu] is neither a uid nor a range",
                            t->name, i);
    t->uid_ranges = (uint32_t)count;
    return 0;
}

/* Of its workers; older metaservers say none. */
static int decode_tokens(const json_t *object, struct agentd_tenant_config *t,
                         struct base_errbuf *why)
{
    const json_t *array = json_object_get(object, "tokens");
    if (array == NULL)
        return 0;
    if (!json_is_array(array) || json_array_size(array) > AGENTD_TOKENS)
        return base_err(why, -EINVAL, "tenant %s: tokens must be at most %d", t->name,
                        AGENTD_TOKENS);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *one = json_array_get(array, i);
        const char *hash = json_string_value(json_object_get(one, "sha256"));
        struct agentd_token *token = &t->token[i];
        if (hash == NULL || base_hex_decode(hash, token->sha256, sizeof token->sha256) != 0)
            return base_err(why, -EINVAL, "tenant %s: tokens[%zu] has no sha256", t->name, i);
        int status = parse_number(one, t->name, "expires_ms", &token->expires_ms, why);
        if (status != 0)
            return status;
    }
    t->tokens = (uint32_t)json_array_size(array);
    return 0;
}

static int add_window(struct agentd_desired *s, const struct agentd_window *w,
                      struct base_errbuf *why)
{
    if (w->most.bytes == 0 && w->most.ops == 0)
        return 0;
    if (s->windows == AGENTD_WINDOWS)
        return base_err(why, -EINVAL, "there are more than %d windows", AGENTD_WINDOWS);
    s->window[s->windows++] = *w;
    return 0;
}

static int decode_tenant_numbers(const json_t *object, const char *of, struct tenant_numbers *out,
                                 struct base_errbuf *why)
{
    const struct resource_table *table = resource_table(RESOURCE_TENANT);
    int status = 0;
    for (size_t i = 0; i < table->fields && status == 0; i++)
        if (table->field[i].is_number)
            status = parse_number(object, of, table->field[i].name,
                                  resource_number(&table->field[i], out), why);
    return status;
}

static int decode_tenant(const json_t *object, struct agentd_desired *s, struct base_errbuf *why)
{
    struct agentd_window w = {.scope = AGENTD_TENANT};
    struct tenant_numbers n;
    if (s->tenants == AGENTD_TENANTS)
        return base_err(why, -EINVAL, "there are more than %d tenants", AGENTD_TENANTS);
    struct agentd_tenant_config *t = &s->tenant[s->tenants++];
    int status = parse_name(object, "name", sizeof t->name, t->name, why);
    if (status != 0)
        return status;
    t->id = agentd_tenant_id(t->name);
    memcpy(w.tenant, t->name, sizeof w.tenant);
    if (json_object_get(object, "pool") != NULL &&
        (status = parse_name(object, "pool", sizeof t->pool, t->pool, why)) != 0)
        return status;
    if ((status = decode_uids(object, t, why)) != 0 ||
        (status = decode_tokens(object, t, why)) != 0 ||
        (status = decode_tenant_numbers(object, t->name, &n, why)) != 0)
        return status;
    t->sessions = n.sessions != 0 ? n.sessions : UINT64_MAX;
    t->memory = n.memory_bytes != 0 ? n.memory_bytes : UINT64_MAX;
    t->vqps = n.vqps;
    t->mrs = n.mrs;
    t->control_ops_per_s = n.control_ops_per_s;
    w.most = (struct agentd_limits){.bytes = n.window_bytes, .ops = n.window_ops};
    return add_window(s, &w, why);
}

/* ---- windows */

static int add_gid(const json_t *value, struct agentd_window *w, struct base_errbuf *why)
{
    static const uint8_t none[16];
    const char *text = json_string_value(value);
    if (w->gids == AGENTD_WINDOW_GIDS)
        return base_err(why, -EINVAL, "window %s: a node has at most %d GIDs", w->name,
                        AGENTD_WINDOW_GIDS);
    uint8_t *gid = w->gid[w->gids];
    if (text == NULL || base_gid_parse(text, gid) != 0 || memcmp(gid, none, sizeof none) == 0)
        return base_err(why, -EINVAL, "window %s: that is no GID", w->name);
    w->gids++;
    return 0;
}

/* Which one, if it is for one alone. */
static int decode_destination(const json_t *object, struct agentd_window *w,
                              struct base_errbuf *why)
{
    const json_t *gids = json_object_get(object, "gids"), *gid = json_object_get(object, "gid");
    int status = 0;
    if (json_object_get(object, "node") != NULL) {
        w->one = true;
        status = parse_name(object, "node", sizeof w->node, w->node, why);
        for (size_t i = 0; i < json_array_size(gids) && status == 0; i++)
            status = add_gid(json_array_get(gids, i), w, why);
    } else if (gid != NULL) {
        w->one = true;
        status = add_gid(gid, w, why);
    }
    if (status == 0 && json_object_get(object, "pool") != NULL)
        status = parse_name(object, "pool", sizeof w->pool, w->pool, why);
    return status;
}

static int decode_window(const json_t *object, struct agentd_desired *s, struct base_errbuf *why)
{
    static const char *const scopes[] = {"device", "destination", "tenant"};
    const char *scope = json_string_value(json_object_get(object, "scope"));
    struct agentd_window w = {.scope = AGENTD_DEVICE};
    const char *of = w.name;
    int status = parse_name(object, "name", sizeof w.name, w.name, why);
    if (status != 0)
        return status;
    int i = 0;
    while (i < 3 && (scope == NULL || strcmp(scope, scopes[i]) != 0))
        i++;
    if (i == 3)
        return base_err(why, -EINVAL, "window %s: its scope is not known here", of);
    w.scope = (enum agentd_window_scope)i;
    if (w.scope == AGENTD_TENANT &&
        (status = parse_name(object, "tenant", sizeof w.tenant, w.tenant, why)) != 0)
        return status;
    if (w.scope == AGENTD_DESTINATION && (status = decode_destination(object, &w, why)) != 0)
        return status;
    if ((status = parse_number(object, of, "bytes", &w.most.bytes, why)) != 0 ||
        (status = parse_number(object, of, "ops", &w.most.ops, why)) != 0)
        return status;
    return add_window(s, &w, why);
}

struct agentd_limits agentd_desired_window(const struct agentd_desired *s,
                                           enum agentd_window_scope scope, const char *tenant)
{
    struct agentd_limits least = {0};
    for (uint32_t i = 0; i < s->windows; i++) {
        const struct agentd_window *w = &s->window[i];
        if (w->scope == scope && !w->one &&
            (scope != AGENTD_TENANT || strcmp(w->tenant, tenant) == 0))
            least = agentd_narrower(least, w->most);
    }
    return least;
}

/* False: there is no room for one more. */
static bool narrow_destination(struct agentd_destination *out, uint32_t *count,
                               const uint8_t gid[16], struct agentd_limits most)
{
    uint32_t i = 0;
    while (i < *count && memcmp(out[i].gid, gid, sizeof out[i].gid) != 0)
        i++;
    if (i == AGENTD_DESTINATIONS)
        return false;
    if (i == *count) {
        out[i] = (struct agentd_destination){.most = {0}};
        memcpy(out[i].gid, gid, sizeof out[i].gid);
        ++*count;
    }
    out[i].most = agentd_narrower(out[i].most, most);
    return true;
}

uint32_t agentd_desired_destinations(const struct agentd_window *windows, uint32_t count,
                                     const char *pool,
                                     struct agentd_destination out[AGENTD_DESTINATIONS],
                                     uint32_t *left)
{
    uint32_t found = 0;
    *left = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct agentd_window *w = &windows[i];
        if (!w->one || (w->pool[0] != '\0' && strcmp(w->pool, pool) != 0))
            continue;
        for (uint32_t k = 0; k < w->gids; k++)
            *left += !narrow_destination(out, &found, w->gid[k], w->most);
    }
    return found;
}

/* ---- this node, and pools: older metaservers say nothing of them */

static int decode_node(const json_t *root, struct agentd_node *n, struct base_errbuf *why)
{
    const json_t *object = json_object_get(root, "node");
    const char *reason = json_string_value(json_object_get(object, "reason"));
    int status = parse_number(object, "node", "grace_ms", &n->grace_ms, why);
    if (status != 0)
        return status;
    if (n->grace_ms > RESOURCE_GRACE_MAX_MS)
        return base_err(why, -EINVAL, "node: grace_ms is more than %d days",
                        (int)(RESOURCE_GRACE_MAX_MS / 86400000));
    n->draining = json_is_true(json_object_get(object, "draining"));
    n->cordoned = n->draining || json_is_true(json_object_get(object, "cordoned"));
    snprintf(n->reason, sizeof n->reason, "%s", reason != NULL ? reason : "");
    for (char *c = n->reason; *c != '\0'; c++) /* workers print it */
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return 0;
}

/* What nobody has said anything of. */
static struct agentd_pool new_pool(void)
{
    struct agentd_pool p = {.name = ""};
    resource_numbers_clear(resource_table(RESOURCE_POOL), &p.numbers);
    return p;
}

/* One that is not there stays left out. */
static int decode_pool_number(const json_t *object, struct agentd_pool *p,
                              const struct resource_field *f, struct base_errbuf *why)
{
    uint64_t value;
    char of[sizeof p->name + 8], must[RESOURCE_MUST_BYTES];
    if (json_object_get(object, f->name) == NULL)
        return 0;
    snprintf(of, sizeof of, "pool %s", p->name);
    int status = parse_number(object, of, f->name, &value, why);
    if (status != 0)
        return status;
    if (!resource_number_is_right(f, value))
        return base_err(why, -EINVAL, "%s: %s %s", of, f->name, resource_number_must(f, must));
    *resource_number(f, &p->numbers) = value;
    return 0;
}

static int decode_named(const json_t *object, struct agentd_pool *p, const char *name,
                        struct base_errbuf *why)
{
    const struct resource_table *table = resource_table(RESOURCE_POOL);
    return decode_pool_number(object, p, resource_field_find(table, name), why);
}

/* Of what only a metaserver that is wrong says twice. */
static int check_alone(const struct agentd_desired *s, const struct agentd_pool *p,
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

static int check_service(const struct agentd_pool *p, struct base_errbuf *why)
{
    const struct pool_numbers *n = &p->numbers;
    if (n->mtu != RESOURCE_UNSAID && (n->mtu & (n->mtu - 1)) != 0)
        return base_err(why, -EINVAL, "pool %s: mtu must be 256, 512, 1024, 2048 or 4096", p->name);
    if (n->flow_label != RESOURCE_UNSAID && n->udp_source_port != RESOURCE_UNSAID)
        return base_err(why, -EINVAL,
                        "pool %s: flow_label and udp_source_port say the same: set one of them",
                        p->name);
    return 0;
}

/* Which one it is, and how long its workers have once it is given up. */
static int decode_any_pool(const json_t *object, uint32_t count, struct agentd_pool *p,
                           struct base_errbuf *why)
{
    if (count == AGENTD_POOLS)
        return base_err(why, -EINVAL, "there are more than %d pools", AGENTD_POOLS);
    *p = new_pool();
    int status = parse_name(object, "name", sizeof p->name, p->name, why);
    if (status == 0)
        status = decode_named(object, p, "number", why);
    return status == 0 ? decode_named(object, p, "grace_ms", why) : status;
}

static int decode_other_pool(const json_t *object, struct agentd_desired *s,
                             struct base_errbuf *why)
{
    int status = decode_any_pool(object, s->other_pools, &s->other_pool[s->other_pools], why);
    s->other_pools += status == 0;
    return status;
}

static int decode_pool(const json_t *object, struct agentd_desired *s, struct base_errbuf *why)
{
    const struct resource_table *table = resource_table(RESOURCE_POOL);
    struct agentd_pool *p = &s->pool[s->pools];
    int status = decode_any_pool(object, s->pools, p, why);
    for (size_t i = 0; i < table->fields && status == 0; i++)
        if (table->field[i].is_number)
            status = decode_pool_number(object, p, &table->field[i], why);
    if (status == 0)
        status = check_service(p, why);
    if (status == 0)
        status = check_alone(s, p, why);
    s->pools += status == 0;
    return status;
}

struct agentd_pool agentd_desired_pool(const struct agentd_desired *s, const char *name)
{
    for (uint32_t i = 0; i < s->pools; i++)
        if (strcmp(s->pool[i].name, name) == 0)
            return s->pool[i];
    return new_pool();
}

/* ---- the document */

static int decode_array(const json_t *root, const char *key,
                        int (*one)(const json_t *, struct agentd_desired *, struct base_errbuf *),
                        struct agentd_desired *s, struct base_errbuf *why)
{
    const json_t *array = json_object_get(root, key);
    int status = 0;
    if (!json_is_array(array))
        return base_err(why, -EINVAL, "%s is no array", key);
    for (size_t i = 0; i < json_array_size(array) && status == 0; i++)
        status = one(json_array_get(array, i), s, why);
    return status;
}

int agentd_desired_decode(const char *text, size_t length, struct agentd_desired *out,
                          struct base_errbuf *why)
{
    json_error_t fault;
    memset(out, 0, sizeof *out);
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
        out->tenant[i].window = agentd_desired_window(out, AGENTD_TENANT, out->tenant[i].name);
    return status;
}
