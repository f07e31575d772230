/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "metaserver/secret.h"

static const char *const needs[] = {[META_NEED_NOTHING] = "any",
                                    [META_NEED_READER] = "reader",
                                    [META_NEED_OPERATOR] = "operator",
                                    [META_NEED_ADMIN] = "admin",
                                    [META_NEED_LOCK] = "admin"};

const char *meta_need_name(enum meta_need need)
{
    return needs[need];
}

static struct meta_caller wrong_caller(const char *why)
{
    return (struct meta_caller){.kind = META_CALLER_WRONG, .why = why};
}

struct meta_caller meta_access_caller(const struct meta_resources *s, const char *authorization,
                                      bool local, uint64_t wall_ms)
{
    static const char scheme[] = "Bearer ";
    static const uint8_t nobody[META_TOKEN_HASH_BYTES]; /* of no secret that anybody knows */
    char name[META_RESOURCE_NAME_BYTES];
    if (authorization == NULL)
        return (struct meta_caller){.kind = local ? META_CALLER_LOCAL : META_CALLER_UNKNOWN};
    if (strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return wrong_caller("the Authorization header must be: Bearer TOKEN");
    const char *secret = authorization + sizeof scheme - 1;
    secret += strspn(secret, " ");
    if (s == NULL || meta_secret_name(secret, name) != 0)
        return wrong_caller("that is no token of a Kedge metaserver");
    const struct meta_resource *token = meta_resources_find(s, META_TOKEN, name);
    bool matches = meta_secret_matches(secret, token != NULL ? token->token.hash : nobody);
    if (token == NULL || !matches)
        return wrong_caller(
            "this metaserver does not know that token: it was deleted, or made elsewhere");
    if (meta_token_is_over(&token->token, wall_ms))
        return wrong_caller("the token has expired");
    return (struct meta_caller){.kind = META_CALLER_TOKEN, .token = token};
}

static bool scope_suffices(enum resource_token_scope scope, enum meta_need need)
{
    switch (scope) {
    case RESOURCE_SCOPE_READER:
        return need <= META_NEED_READER;
    case RESOURCE_SCOPE_OPERATOR:
        return need <= META_NEED_OPERATOR;
    case RESOURCE_SCOPE_ADMIN:
        return true;
    case RESOURCE_SCOPE_AGENT:
    case RESOURCE_SCOPE_WORKER:
        return need == META_NEED_NOTHING;
    }
    return false;
}

static void explain_denial(const struct meta_resource *token, enum meta_need need,
                           enum meta_need_agent agent, const char *id,
                           struct meta_violation *violation)
{
    char also[96] = "";
    if (agent == META_AGENT_ANY)
        snprintf(also, sizeof also, ", or agent");
    else if (agent == META_AGENT_OWN)
        snprintf(also, sizeof also, ", or agent for node %.63s", id);
    violation->field[0] = '\0';
    snprintf(violation->detail, sizeof violation->detail,
             "this needs the scope %s%s; the token's is %s%s%.63s%s%.31s", needs[need], also,
             resource_token_scopes[token->token.scope],
             token->token.scope == RESOURCE_SCOPE_AGENT ? " for node " : "", token->token.node,
             token->token.scope == RESOURCE_SCOPE_WORKER ? " of tenant " : "", token->token.tenant);
}

int meta_access_decide(const struct meta_caller *caller, bool open, enum meta_need need,
                       enum meta_need_agent agent, const char *id, struct meta_violation *violation)
{
    if (need == META_NEED_NOTHING)
        return 0;
    switch (caller->kind) {
    case META_CALLER_LOCAL:
        return 0;
    case META_CALLER_UNKNOWN:
        return open && need < META_NEED_LOCK ? 0 : -EKEYREJECTED;
    case META_CALLER_WRONG:
        return -EKEYREJECTED;
    case META_CALLER_TOKEN:
        break;
    }
    const struct meta_token *t = &caller->token->token;
    if (scope_suffices(t->scope, need))
        return 0;
    if (t->scope == RESOURCE_SCOPE_AGENT &&
        (agent == META_AGENT_ANY || (agent == META_AGENT_OWN && strcmp(t->node, id) == 0)))
        return 0;
    explain_denial(caller->token, need, agent, id, violation);
    return -EACCES;
}

bool meta_access_has_gid(const struct meta_caller *caller, const uint8_t gid[16])
{
    if (caller->kind != META_CALLER_TOKEN || caller->token->token.scope != RESOURCE_SCOPE_AGENT)
        return true;
    const struct meta_token *t = &caller->token->token;
    for (uint32_t i = 0; i < t->gids.count; i++)
        if (memcmp(t->gids.gid[i], gid, sizeof t->gids.gid[i]) == 0)
            return true;
    return false;
}
