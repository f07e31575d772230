/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as JSON. */
#include "token_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "metaserver/secret.h"

#define TIME_FORM "must be a time in UTC such as \"2027-01-31T00:00:00Z\""

/* ---- times ---------------------------------------------------------------------------------- */

/* "2027-01-31T00:00:00Z", whole, of the years 1970 to 9999. 0 and ms since 1970, or -EINVAL. */
static int parse_time(const char *text, uint64_t *out)
{
    struct tm tm = {.tm_isdst = 0};
    char again[32];
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (end == NULL || *end != '\0')
        return -EINVAL;
    time_t seconds = timegm(&tm);
    /* strptime() lets blanks, short numbers and a 31st of February pass. */
    if (seconds <= 0 || gmtime_r(&seconds, &tm) == NULL ||
        strftime(again, sizeof again, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0 || strcmp(again, text) != 0)
        return -EINVAL;
    *out = (uint64_t)seconds * 1000;
    return 0;
}

static void write_time(struct base_text *out, uint64_t ms)
{
    char text[32] = "";
    struct tm tm;
    time_t seconds = (time_t)(ms / 1000);
    if (gmtime_r(&seconds, &tm) != NULL)
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    base_json_string(out, "expires", text);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int decode_gids(const struct json_at *at, json_t *root, struct meta_token *t)
{
    json_t *array = json_object_get(root, "gids"), *one;
    char field[32];
    size_t i;
    if (array == NULL)
        return 0;
    if (!json_is_array(array) || json_array_size(array) > META_TOKEN_GIDS)
        return meta_json_bad(at, "gids", "must be an array of at most 16 GIDs");
    json_array_foreach(array, i, one)
    {
        snprintf(field, sizeof field, "gids[%zu]", i);
        if (!json_is_string(one) || base_gid_parse(json_string_value(one), t->gids[i]) != 0)
            return meta_json_bad(at, field, "must be an IPv6 address");
    }
    t->gid_count = (uint32_t)json_array_size(array);
    return 0;
}

static int decode_secret(const struct json_at *at, json_t *root, const char *name,
                         struct meta_token *t)
{
    json_t *value = json_object_get(root, "secret");
    const char *secret = json_string_value(value);
    char of[META_RESOURCE_NAME_BYTES];
    if (value == NULL)
        return 0;
    if (secret == NULL || meta_secret_name(secret, of) != 0 || strcmp(of, name) != 0)
        return meta_json_bad(at, "secret",
                             "must be what another metaserver has shown for a token of this name");
    return meta_secret_hash(secret, t->hash);
}

int meta_token_json_decode(const struct json_at *at, json_t *root, const char *name, bool stored,
                           struct meta_token *t)
{
    static const char *const names[] = {"scope",   "node",   "gids", "tenant",
                                        "expires", "sha256", NULL};
    static const char *const shown[] = {"scope",   "node",   "gids",    "tenant",
                                        "expires", "secret", "expired", NULL};
    const char *scope = json_string_value(json_object_get(root, "scope"));
    json_t *node = json_object_get(root, "node"), *expires = json_object_get(root, "expires");
    json_t *hash = json_object_get(root, "sha256"), *tenant = json_object_get(root, "tenant");
    int status = meta_json_only(at, root, stored ? names : shown);
    if (status == 0 && (scope == NULL || meta_scope_parse(scope, &t->scope) != 0))
        status = meta_json_bad(
            at, "scope", "must be \"admin\", \"operator\", \"reader\", \"agent\" or \"worker\"");
    if (status == 0 && node != NULL) {
        const char *id = json_string_value(node);
        if (id == NULL || !meta_resource_is_name(id, sizeof t->node - 1))
            return meta_json_bad(at, "node", "must be a node's id");
        snprintf(t->node, sizeof t->node, "%s", id);
    }
    if (status == 0 && tenant != NULL) {
        const char *of = json_string_value(tenant);
        if (of == NULL || !meta_resource_is_name(of, sizeof t->tenant - 1))
            return meta_json_bad(at, "tenant", "must be a tenant's name");
        snprintf(t->tenant, sizeof t->tenant, "%s", of);
    }
    if (status == 0)
        status = decode_gids(at, root, t);
    if (status == 0 && expires != NULL &&
        (!json_is_string(expires) || parse_time(json_string_value(expires), &t->expires_ms) != 0))
        status = meta_json_bad(at, "expires", TIME_FORM);
    /* Whoever edits what was shown sends it back; it is what it is. */
    json_t *expired = json_object_get(root, "expired");
    if (status == 0 && expired != NULL && !json_is_boolean(expired))
        status = meta_json_bad(at, "expired", "must be true or false");
    if (status == 0)
        status = decode_secret(at, root, name, t);
    if (status == 0 && hash != NULL &&
        (!json_is_string(hash) ||
         base_hex_decode(json_string_value(hash), t->hash, sizeof t->hash) != 0))
        status = meta_json_bad(at, "sha256", "must be a string of 64 hexadecimal digits");
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

void meta_token_json_write(struct base_text *out, const struct meta_token *t, bool stored)
{
    char gid[BASE_GID_TEXT], hash[2 * META_TOKEN_HASH_BYTES + 1];
    base_json_string(out, "scope", meta_scope_name(t->scope));
    if (t->node[0] != '\0')
        base_json_string(out, "node", t->node);
    if (t->gid_count > 0) {
        base_json_array(out, "gids");
        for (uint32_t i = 0; i < t->gid_count; i++)
            base_json_string(out, NULL, base_gid_format(t->gids[i], gid));
        base_json_array_end(out);
    }
    if (t->tenant[0] != '\0')
        base_json_string(out, "tenant", t->tenant);
    if (t->expires_ms != 0)
        write_time(out, t->expires_ms);
    if (stored)
        base_json_string(out, "sha256", base_hex_encode(t->hash, sizeof t->hash, hash));
}

void meta_token_json_write_for_agents(struct base_text *out,
                                      const struct meta_resource *const all[], uint32_t count,
                                      const char *tenant)
{
    char hash[2 * META_TOKEN_HASH_BYTES + 1];
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct meta_token *t = &all[i]->token;
        if (strcmp(t->tenant, tenant) != 0)
            continue;
        if (!any)
            base_json_array(out, "tokens");
        any = true;
        base_json_object(out, NULL);
        base_json_string(out, "sha256", base_hex_encode(t->hash, sizeof t->hash, hash));
        if (t->expires_ms != 0)
            base_json_u64(out, "expires_ms", t->expires_ms);
        base_json_object_end(out);
    }
    if (any)
        base_json_array_end(out);
}
