/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as resources: what is right by itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "resources_private.h"

static int refuse_field(struct meta_violation *violation, const char *field, const char *detail)
{
    snprintf(violation->field, sizeof violation->field, "%s", field);
    snprintf(violation->detail, sizeof violation->detail, "%s", detail);
    return -EINVAL;
}

static int compare_gids(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

static int validate_agent(struct meta_token *t, struct meta_violation *violation)
{
    char field[32];
    if (!meta_resource_is_name(t->node, META_RESOURCE_NAME_BYTES - 1))
        return refuse_field(violation, "node", "must be a node's id: the scope is agent");
    if (t->gids.count == 0)
        return refuse_field(violation, "gids",
                            "must list the GIDs of the node's endpoints: the scope is agent");
    for (uint32_t i = 0; i < t->gids.count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (memcmp(t->gids.gid[i], t->gids.gid[k], 16) == 0) {
                snprintf(field, sizeof field, "gids[%" PRIu32 "]", i);
                return refuse_field(violation, field, "is there twice");
            }
    qsort(t->gids.gid, t->gids.count, sizeof t->gids.gid[0], compare_gids);
    return 0;
}

int meta_token_validate(struct meta_resource *resource, struct meta_violation *violation)
{
    struct meta_token *t = &resource->token;
    BASE_ASSERT(t->gids.count <= RESOURCE_GIDS_MAX);
    if (t->scope != RESOURCE_SCOPE_WORKER && t->tenant[0] != '\0')
        return refuse_field(violation, "tenant", "is for the scope worker alone");
    if (t->scope == RESOURCE_SCOPE_AGENT)
        return validate_agent(t, violation);
    if (t->scope == RESOURCE_SCOPE_WORKER &&
        !meta_resource_is_name(t->tenant, RESOURCE_TENANT_NAME_MAX))
        return refuse_field(violation, "tenant", "must be a tenant's name: the scope is worker");
    if (t->node[0] != '\0')
        return refuse_field(violation, "node", "is for the scope agent alone");
    if (t->gids.count != 0)
        return refuse_field(violation, "gids", "are for the scope agent alone");
    return 0;
}

/* ---- workers' */

uint32_t meta_resources_worker_tokens(const struct meta_resources *s,
                                      const struct meta_resource *out[META_WORKER_TOKENS_MAX])
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < meta_resources_count(s, META_TOKEN); i++) {
        const struct meta_resource *token = meta_resources_at(s, META_TOKEN, i);
        if (token->token.scope != RESOURCE_SCOPE_WORKER)
            continue;
        BASE_ASSERT(found < META_WORKER_TOKENS_MAX);
        out[found++] = token;
    }
    return found;
}

int meta_token_check(const struct meta_resources *s, const struct meta_resource *to,
                     struct meta_violation *violation)
{
    const struct meta_resource *all[META_WORKER_TOKENS_MAX];
    uint32_t count = meta_resources_worker_tokens(s, all), others = 0;
    if (to->token.scope != RESOURCE_SCOPE_WORKER)
        return 0;
    if (meta_resources_find(s, META_TENANT, to->token.tenant) == NULL) {
        (void)refuse_field(violation, "tenant", "there is no such tenant: create it first");
        return -ENOENT;
    }
    for (uint32_t i = 0; i < count; i++)
        others += strcmp(all[i]->token.tenant, to->token.tenant) == 0 &&
                  strcmp(all[i]->name, to->name) != 0;
    if (others < META_TENANT_TOKENS)
        return 0;
    (void)refuse_field(violation, "tenant", "has 16 tokens for workers already: delete one");
    return -ENOSPC;
}

const struct meta_resource *meta_token_of(const struct meta_resources *s, const char *tenant)
{
    const struct meta_resource *all[META_WORKER_TOKENS_MAX];
    uint32_t count = meta_resources_worker_tokens(s, all);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(all[i]->token.tenant, tenant) == 0)
            return all[i];
    return NULL;
}

bool meta_token_is_over(const struct meta_token *t, uint64_t wall_ms)
{
    return t->expires != 0 && wall_ms >= t->expires;
}

bool meta_token_is_bare(const struct meta_token *t)
{
    static const uint8_t none[META_TOKEN_HASH_BYTES];
    return memcmp(t->hash, none, sizeof none) == 0;
}
