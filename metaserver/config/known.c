/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "metaserver/json_read.h"

static int compare_tokens(const void *a, const void *b)
{
    return strcmp(((const struct meta_known_token *)a)->name,
                  ((const struct meta_known_token *)b)->name);
}

int meta_known_of(const struct meta_resources *s, struct meta_known *out)
{
    const uint32_t count = meta_resources_count(s, META_TOKEN);
    *out = (struct meta_known){.token = calloc(count + 1, sizeof *out->token)};
    if (out->token == NULL)
        return -ENOMEM;
    for (const struct meta_resource *t = meta_resources_after(s, META_TOKEN, ""); t != NULL;
         t = meta_resources_after(s, META_TOKEN, t->name)) {
        struct meta_known_token *known = &out->token[out->count];
        if (meta_token_is_bare(&t->token))
            continue;
        memcpy(known->name, t->name, sizeof known->name);
        known->revision = t->revision;
        out->count++;
    }
    return 0;
}

void meta_known_fini(struct meta_known *k)
{
    free(k->token);
    *k = (struct meta_known){.count = 0};
}

/* ---- as JSON */

void meta_known_write(struct base_text *out, const struct meta_known *k)
{
    base_json_object(out, NULL);
    base_json_string(out, "store", k->store);
    base_json_u64(out, "generation", k->generation);
    base_json_u64(out, "revision", k->revision);
    base_json_object(out, "tokens");
    for (uint32_t i = 0; i < k->count; i++)
        base_json_u64(out, k->token[i].name, k->token[i].revision);
    base_json_object_end(out);
    base_json_object_end(out);
    base_text_append(out, "\n", 1);
}

static int read_tokens(json_t *tokens, struct meta_known *out)
{
    const char *name;
    json_t *revision;
    if (!json_is_object(tokens) || json_object_size(tokens) > META_TOKENS_MAX)
        return -EINVAL;
    out->token = calloc(json_object_size(tokens) + 1, sizeof *out->token);
    if (out->token == NULL)
        return -ENOMEM;
    json_object_foreach(tokens, name, revision)
    {
        struct meta_known_token *t = &out->token[out->count];
        if (!meta_resource_is_name(name, META_RESOURCE_NAME_BYTES - 1) ||
            !json_is_integer(revision) || json_integer_value(revision) <= 0)
            return -EINVAL;
        snprintf(t->name, sizeof t->name, "%s", name);
        t->revision = (uint64_t)json_integer_value(revision);
        out->count++;
    }
    qsort(out->token, out->count, sizeof *out->token, compare_tokens);
    return 0;
}

static int read_all(json_t *root, struct meta_known *out)
{
    static const char *const names[] = {"store", "generation", "revision", "tokens", NULL};
    struct meta_violation violation;
    const struct json_at at = {.violation = &violation};
    if (meta_json_only(&at, root, names) != 0 ||
        meta_json_text(&at, root, "store", out->store, sizeof out->store) != 0 ||
        meta_json_number(&at, root, "generation", true, 0, INT64_MAX, &out->generation) != 0 ||
        meta_json_number(&at, root, "revision", true, 0, META_KNOWN_REVISION_MAX, &out->revision) !=
            0)
        return -EINVAL;
    return read_tokens(json_object_get(root, "tokens"), out);
}

int meta_known_read(const char *text, size_t length, struct meta_known *out,
                    struct base_errbuf *err)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    *out = (struct meta_known){.count = 0};
    const int status = json_is_object(root) ? read_all(root, out) : -EINVAL;
    json_decref(root);
    if (status == 0)
        return 0;
    meta_known_fini(out);
    return base_err(err, status, status == -ENOMEM ? "out of memory" : "it makes no sense");
}

/* ---- what came back */

static bool was_there(const struct meta_known *k, const struct meta_resource *token)
{
    struct meta_known_token wanted = {.revision = 0};
    memcpy(wanted.name, token->name, sizeof wanted.name);
    const struct meta_known_token *found =
        bsearch(&wanted, k->token, k->count, sizeof *k->token, compare_tokens);
    return found != NULL && found->revision == token->revision;
}

uint32_t meta_known_void(const struct meta_known *k, struct meta_resources *s)
{
    uint32_t count = 0;
    for (const struct meta_resource *t = meta_resources_after(s, META_TOKEN, ""); t != NULL;
         t = meta_resources_after(s, META_TOKEN, t->name))
        if (t->revision <= k->revision && !was_there(k, t)) {
            meta_resources_void_token(s, t->name);
            count++;
        }
    return count;
}
