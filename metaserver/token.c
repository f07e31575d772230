/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as settings: what is right by itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "resources_private.h"

static const char *const scopes[] = {[KEDGE_SCOPE_READER] = "reader",
                                     [KEDGE_SCOPE_OPERATOR] = "operator",
                                     [KEDGE_SCOPE_ADMIN] = "admin",
                                     [KEDGE_SCOPE_AGENT] = "agent",
                                     [KEDGE_SCOPE_WORKER] = "worker"};

const char *kedge_scope_name(enum kedge_scope scope)
{
    return scopes[scope];
}

int kedge_scope_parse(const char *name, enum kedge_scope *out)
{
    for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++)
        if (strcmp(scopes[i], name) == 0) {
            *out = (enum kedge_scope)i;
            return 0;
        }
    return -EINVAL;
}

static int refuse_field(struct kedge_fault *fault, const char *field, const char *detail)
{
    snprintf(fault->field, sizeof fault->field, "%s", field);
    snprintf(fault->detail, sizeof fault->detail, "%s", detail);
    return -EINVAL;
}

static int compare_gids(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

static int validate_agent(struct kedge_token *t, struct kedge_fault *fault)
{
    char field[32];
    if (!kedge_setting_is_name(t->node, KEDGE_SETTING_NAME_BYTES - 1))
        return refuse_field(fault, "node", "must be a node's id: the scope is agent");
    if (t->gid_count == 0)
        return refuse_field(fault, "gids",
                            "must list the GIDs of the node's endpoints: the scope is agent");
    for (uint32_t i = 0; i < t->gid_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (memcmp(t->gids[i], t->gids[k], 16) == 0) {
                snprintf(field, sizeof field, "gids[%" PRIu32 "]", i);
                return refuse_field(fault, field, "is there twice");
            }
    qsort(t->gids, t->gid_count, sizeof t->gids[0], compare_gids);
    return 0;
}

int kedge_token_validate(struct kedge_setting *setting, struct kedge_fault *fault)
{
    struct kedge_token *t = &setting->token;
    KEDGE_ASSERT(t->gid_count <= KEDGE_TOKEN_GIDS);
    if (t->scope != KEDGE_SCOPE_WORKER && t->tenant[0] != '\0')
        return refuse_field(fault, "tenant", "is for the scope worker alone");
    if (t->scope == KEDGE_SCOPE_AGENT)
        return validate_agent(t, fault);
    if (t->scope == KEDGE_SCOPE_WORKER && !kedge_setting_is_name(t->tenant, KEDGE_TENANT_NAME_MAX))
        return refuse_field(fault, "tenant", "must be a tenant's name: the scope is worker");
    if (t->node[0] != '\0')
        return refuse_field(fault, "node", "is for the scope agent alone");
    if (t->gid_count != 0)
        return refuse_field(fault, "gids", "are for the scope agent alone");
    return 0;
}

bool kedge_token_same(const struct kedge_setting *one, const struct kedge_setting *other)
{
    const struct kedge_token *a = &one->token, *b = &other->token;
    return a->scope == b->scope && strcmp(a->node, b->node) == 0 &&
           strcmp(a->tenant, b->tenant) == 0 && a->expires_ms == b->expires_ms &&
           a->gid_count == b->gid_count &&
           memcmp(a->gids, b->gids, a->gid_count * sizeof a->gids[0]) == 0 &&
           memcmp(a->hash, b->hash, sizeof a->hash) == 0;
}

/* ---- workers' ------------------------------------------------------------------------------- */

uint32_t kedge_settings_worker_tokens(const struct kedge_settings *s,
                                      const struct kedge_setting *out[KEDGE_WORKER_TOKENS_MAX])
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < kedge_settings_count(s, KEDGE_TOKEN); i++) {
        const struct kedge_setting *token = kedge_settings_at(s, KEDGE_TOKEN, i);
        if (token->token.scope != KEDGE_SCOPE_WORKER)
            continue;
        KEDGE_ASSERT(found < KEDGE_WORKER_TOKENS_MAX);
        out[found++] = token;
    }
    return found;
}

int kedge_token_check(const struct kedge_settings *s, const struct kedge_setting *to,
                      struct kedge_fault *fault)
{
    const struct kedge_setting *all[KEDGE_WORKER_TOKENS_MAX];
    uint32_t count = kedge_settings_worker_tokens(s, all), others = 0;
    if (to->token.scope != KEDGE_SCOPE_WORKER)
        return 0;
    if (kedge_settings_find(s, KEDGE_TENANT, to->token.tenant) == NULL) {
        (void)refuse_field(fault, "tenant", "there is no such tenant: create it first");
        return -ENOENT;
    }
    for (uint32_t i = 0; i < count; i++)
        others += strcmp(all[i]->token.tenant, to->token.tenant) == 0 &&
                  strcmp(all[i]->name, to->name) != 0;
    if (others < KEDGE_TENANT_TOKENS)
        return 0;
    (void)refuse_field(fault, "tenant", "has 16 tokens for workers already: delete one");
    return -ENOSPC;
}

const struct kedge_setting *kedge_token_of(const struct kedge_settings *s, const char *tenant)
{
    const struct kedge_setting *all[KEDGE_WORKER_TOKENS_MAX];
    uint32_t count = kedge_settings_worker_tokens(s, all);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(all[i]->token.tenant, tenant) == 0)
            return all[i];
    return NULL;
}

bool kedge_token_is_over(const struct kedge_token *t, uint64_t wall_ms)
{
    return t->expires_ms != 0 && wall_ms >= t->expires_ms;
}

bool kedge_token_is_bare(const struct kedge_token *t)
{
    static const uint8_t none[KEDGE_TOKEN_HASH_BYTES];
    return memcmp(t->hash, none, sizeof none) == 0;
}
