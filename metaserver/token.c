/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as settings: what is right by itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "settings_private.h"

static const char *const scopes[] = {[KEDGE_SCOPE_READER] = "reader",
                                     [KEDGE_SCOPE_OPERATOR] = "operator",
                                     [KEDGE_SCOPE_ADMIN] = "admin",
                                     [KEDGE_SCOPE_AGENT] = "agent"};

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

static int bad(struct kedge_fault *fault, const char *field, const char *detail)
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
        return bad(fault, "node", "must be a node's id: the scope is agent");
    if (t->gid_count == 0)
        return bad(fault, "gids", "must list the GIDs of the node's endpoints: the scope is agent");
    for (uint32_t i = 0; i < t->gid_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (memcmp(t->gids[i], t->gids[k], 16) == 0) {
                snprintf(field, sizeof field, "gids[%" PRIu32 "]", i);
                return bad(fault, field, "is there twice");
            }
    qsort(t->gids, t->gid_count, sizeof t->gids[0], compare_gids);
    return 0;
}

int kedge_token_validate(struct kedge_setting *setting, struct kedge_fault *fault)
{
    struct kedge_token *t = &setting->token;
    KEDGE_ASSERT(t->gid_count <= KEDGE_TOKEN_GIDS);
    if (t->scope == KEDGE_SCOPE_AGENT)
        return validate_agent(t, fault);
    if (t->node[0] != '\0')
        return bad(fault, "node", "is for the scope agent alone");
    if (t->gid_count != 0)
        return bad(fault, "gids", "are for the scope agent alone");
    return 0;
}

bool kedge_token_same(const struct kedge_setting *one, const struct kedge_setting *other)
{
    const struct kedge_token *a = &one->token, *b = &other->token;
    return a->scope == b->scope && strcmp(a->node, b->node) == 0 &&
           a->expires_ms == b->expires_ms && a->gid_count == b->gid_count &&
           memcmp(a->gids, b->gids, a->gid_count * sizeof a->gids[0]) == 0 &&
           memcmp(a->hash, b->hash, sizeof a->hash) == 0;
}

bool kedge_token_is_bare(const struct kedge_token *t)
{
    static const uint8_t none[KEDGE_TOKEN_HASH_BYTES];
    return memcmp(t->hash, none, sizeof none) == 0;
}
