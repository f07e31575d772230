/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "secret.h"

static const char *const needs[] = {[KEDGE_NEED_NOTHING] = "any",
                                    [KEDGE_NEED_READER] = "reader",
                                    [KEDGE_NEED_OPERATOR] = "operator",
                                    [KEDGE_NEED_ADMIN] = "admin",
                                    [KEDGE_NEED_LOCK] = "admin"};

const char *kedge_need_name(enum kedge_need need)
{
    return needs[need];
}

static struct kedge_caller wrong_caller(const char *why)
{
    return (struct kedge_caller){.kind = KEDGE_CALLER_WRONG, .why = why};
}

struct kedge_caller kedge_access_caller(const struct kedge_settings *s, const char *authorization,
                                        bool local, uint64_t wall_ms)
{
    static const char scheme[] = "Bearer ";
    static const uint8_t nobody[KEDGE_TOKEN_HASH_BYTES]; /* of no secret that anybody knows */
    char name[KEDGE_SETTING_NAME_BYTES];
    if (authorization == NULL)
        return (struct kedge_caller){.kind = local ? KEDGE_CALLER_LOCAL : KEDGE_CALLER_UNKNOWN};
    if (strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return wrong_caller("the Authorization header must be: Bearer TOKEN");
    const char *secret = authorization + sizeof scheme - 1;
    secret += strspn(secret, " ");
    if (s == NULL || secret_name(secret, name) != 0)
        return wrong_caller("that is no token of a Kedge metaserver");
    const struct kedge_setting *token = kedge_settings_find(s, KEDGE_TOKEN, name);
    bool matches = secret_matches(secret, token != NULL ? token->token.hash : nobody);
    if (token == NULL || !matches)
        return wrong_caller(
            "this metaserver does not know that token: it was deleted, or made elsewhere");
    if (kedge_token_is_over(&token->token, wall_ms))
        return wrong_caller("the token has expired");
    return (struct kedge_caller){.kind = KEDGE_CALLER_TOKEN, .token = token};
}

static bool scope_suffices(enum kedge_scope scope, enum kedge_need need)
{
    switch (scope) {
    case KEDGE_SCOPE_READER:
        return need <= KEDGE_NEED_READER;
    case KEDGE_SCOPE_OPERATOR:
        return need <= KEDGE_NEED_OPERATOR;
    case KEDGE_SCOPE_ADMIN:
        return true;
    case KEDGE_SCOPE_AGENT:
    case KEDGE_SCOPE_WORKER:
        return need == KEDGE_NEED_NOTHING;
    }
    return false;
}

static void explain_denial(const struct kedge_setting *token, enum kedge_need need,
                           enum kedge_need_agent agent, const char *id, struct kedge_fault *fault)
{
    char also[96] = "";
    if (agent == KEDGE_AGENT_ANY)
        snprintf(also, sizeof also, ", or agent");
    else if (agent == KEDGE_AGENT_OWN)
        snprintf(also, sizeof also, ", or agent for node %.63s", id);
    fault->field[0] = '\0';
    snprintf(fault->detail, sizeof fault->detail,
             "this needs the scope %s%s; the token's is %s%s%.63s%s%.31s", needs[need], also,
             kedge_scope_name(token->token.scope),
             token->token.scope == KEDGE_SCOPE_AGENT ? " for node " : "", token->token.node,
             token->token.scope == KEDGE_SCOPE_WORKER ? " of tenant " : "", token->token.tenant);
}

int kedge_access_decide(const struct kedge_caller *caller, bool open, enum kedge_need need,
                        enum kedge_need_agent agent, const char *id, struct kedge_fault *fault)
{
    if (need == KEDGE_NEED_NOTHING)
        return 0;
    switch (caller->kind) {
    case KEDGE_CALLER_LOCAL:
        return 0;
    case KEDGE_CALLER_UNKNOWN:
        return open && need < KEDGE_NEED_LOCK ? 0 : -EKEYREJECTED;
    case KEDGE_CALLER_WRONG:
        return -EKEYREJECTED;
    case KEDGE_CALLER_TOKEN:
        break;
    }
    const struct kedge_token *t = &caller->token->token;
    if (scope_suffices(t->scope, need))
        return 0;
    if (t->scope == KEDGE_SCOPE_AGENT &&
        (agent == KEDGE_AGENT_ANY || (agent == KEDGE_AGENT_OWN && strcmp(t->node, id) == 0)))
        return 0;
    explain_denial(caller->token, need, agent, id, fault);
    return -EACCES;
}

bool kedge_access_has_gid(const struct kedge_caller *caller, const uint8_t gid[16])
{
    if (caller->kind != KEDGE_CALLER_TOKEN || caller->token->token.scope != KEDGE_SCOPE_AGENT)
        return true;
    const struct kedge_token *t = &caller->token->token;
    for (uint32_t i = 0; i < t->gid_count; i++)
        if (memcmp(t->gids[i], gid, sizeof t->gids[i]) == 0)
            return true;
    return false;
}
