/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as JSON. */
#include "token_json.h"

#include <errno.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "metaserver/secret.h"

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
    static const char *const kept[] = {"sha256", NULL}, *const shown[] = {"secret", "expired",
                                                                          NULL};
    const struct resource_table *table = resource_table(RESOURCE_TOKEN);
    const json_t *hash = json_object_get(root, "sha256"), *expired;
    int status = meta_json_only_fields(at, root, table, stored ? kept : shown);
    if (status == 0)
        status = meta_json_fields(at, root, table, stored, &t->said);
    /* Whoever edits what was shown sends it back; it is what it is. */
    expired = json_object_get(root, "expired");
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

/* ---- writing */

void meta_token_json_write_stored(struct base_text *out, const struct meta_token *t)
{
    char hash[2 * META_TOKEN_HASH_BYTES + 1];
    resource_write(out, resource_table(RESOURCE_TOKEN), &t->said);
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
        if (t->expires != 0)
            base_json_u64(out, "expires_ms", t->expires);
        base_json_object_end(out);
    }
    if (any)
        base_json_array_end(out);
}
