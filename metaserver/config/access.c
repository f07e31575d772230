/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "metaserver/secret.h"
#include "schema/certificate.h"

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

static struct meta_caller find_token(const struct meta_resources *s, const char *authorization,
                                     uint64_t wall_ms)
{
    static const char scheme[] = "Bearer ";
    static const uint8_t nobody[META_TOKEN_HASH_BYTES]; /* of no secret that anybody knows */
    char name[META_RESOURCE_NAME_BYTES];
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

struct meta_caller meta_access_caller(const struct meta_resources *s,
                                      const struct meta_shown *shown, uint64_t wall_ms)
{
    const struct meta_certificate *certificate = shown->certificate;
    struct meta_caller c = {.kind = shown->local ? META_CALLER_LOCAL : META_CALLER_UNKNOWN};
    if (shown->authorization != NULL && shown->exposed)
        return wrong_caller("tokens are not taken over plain HTTP beyond loopback, where others "
                            "see them: set cert_file and key_file of kedge-metad and say "
                            "https://, or allow_plain_tokens = yes; and replace this token");
    if (shown->authorization != NULL)
        c = find_token(s, shown->authorization, wall_ms);
    const bool agent = c.kind == META_CALLER_TOKEN && c.token->token.scope == RESOURCE_SCOPE_AGENT;
    if (certificate == NULL || certificate->uri[0] == '\0' ||
        (c.kind != META_CALLER_UNKNOWN && !agent))
        return c;
    c.node = schema_certificate_node(certificate->uri);
    c.certificate = certificate;
    if (c.node == NULL)
        return wrong_caller(
            "the certificate's URI names no node: it must be " SCHEMA_CERTIFICATE_NODE "NAME");
    if (agent && strcmp(c.node, c.token->token.node) != 0)
        return wrong_caller("the token is for another node than the certificate");
    c.kind = agent ? META_CALLER_TOKEN : META_CALLER_NODE;
    return c;
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

static void explain_denial(const struct meta_caller *caller, enum meta_need need,
                           enum meta_need_agent agent, const char *id,
                           struct meta_violation *violation)
{
    const struct meta_resource *token = caller->token;
    char also[96] = "";
    if (agent == META_AGENT_ANY)
        snprintf(also, sizeof also, ", or agent");
    else if (agent == META_AGENT_OWN)
        snprintf(also, sizeof also, ", or agent for node %.63s", id);
    violation->field[0] = '\0';
    if (caller->kind == META_CALLER_NODE) {
        snprintf(violation->detail, sizeof violation->detail,
                 "this needs a token of the scope %s%s; the certificate is for node %.63s",
                 needs[need], also, caller->node);
        return;
    }
    snprintf(violation->detail, sizeof violation->detail,
             "this needs the scope %s%s; the token's is %s%s%.63s%s%.31s", needs[need], also,
             resource_token_scopes[token->token.scope],
             token->token.scope == RESOURCE_SCOPE_AGENT ? " for node " : "", token->token.node,
             token->token.scope == RESOURCE_SCOPE_WORKER ? " of tenant " : "", token->token.tenant);
}

/* Whose agent it is; NULL: it is none. */
static const char *agent_node(const struct meta_caller *caller)
{
    if (caller->kind == META_CALLER_NODE)
        return caller->node;
    return caller->token->token.scope == RESOURCE_SCOPE_AGENT ? caller->token->token.node : NULL;
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
    case META_CALLER_NODE:
        break;
    }
    const char *node = agent_node(caller);
    if (caller->kind == META_CALLER_TOKEN && scope_suffices(caller->token->token.scope, need))
        return 0;
    if (node != NULL &&
        (agent == META_AGENT_ANY || (agent == META_AGENT_OWN && strcmp(node, id) == 0)))
        return 0;
    explain_denial(caller, need, agent, id, violation);
    return -EACCES;
}

static bool is_listed(const uint8_t (*list)[16], uint32_t count, const uint8_t gid[16])
{
    for (uint32_t i = 0; i < count; i++)
        if (memcmp(list[i], gid, sizeof list[i]) == 0)
            return true;
    return false;
}

const char *meta_access_lacks_gid(const struct meta_caller *caller, const uint8_t gid[16])
{
    const bool token =
        caller->kind == META_CALLER_TOKEN && caller->token->token.scope == RESOURCE_SCOPE_AGENT;
    const struct meta_certificate *c = caller->certificate;
    if (token && !is_listed(caller->token->token.gids.gid, caller->token->token.gids.count, gid))
        return "token";
    /* One that lists none leaves it to the token, if there is one. */
    if (c != NULL && !(token && c->gids == 0) && !is_listed(c->gid, c->gids, gid))
        return "certificate";
    return NULL;
}
