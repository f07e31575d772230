/* SPDX-License-Identifier: Apache-2.0 */
/* Regions as tokens, which workers hand to each other. */
#include "request.h"

#include <errno.h>
#include <string.h>

#include "schema/token.h"

static_assert(KEDGE_TOKEN_MAX == SCHEMA_TOKEN_TEXT, "the same");

int kedge_mr_export(const struct kedge_mr *mr, char *text, size_t size)
{
    if (client_is_null(mr) || client_is_null(text))
        return -EINVAL;
    const int status = client_check_lent(mr);
    if (status != 0)
        return status;
    if (size < KEDGE_TOKEN_MAX)
        return client_fail(-ENOSPC, "a token takes %d bytes", KEDGE_TOKEN_MAX);
    struct schema_token t = {.pool = mr->session->pool,
                             .access = (uint16_t)client_access_flags(mr->access),
                             .vkey = mr->vkey,
                             .addr = (uintptr_t)mr->addr,
                             .length = mr->length};
    client_gid(mr->session, t.gid);
    memcpy(t.secret, mr->secret, sizeof t.secret);
    schema_token_format(&t, text);
    return 0;
}

/* Who reads it from a file or a pipe has a newline behind it. */
static int refuse_token(const char *text)
{
    char bare[KEDGE_TOKEN_MAX];
    struct schema_token t;
    const size_t length = strcspn(text, " \t\r\n");
    if (length < sizeof bare && text[length] != '\0') {
        memcpy(bare, text, length);
        bare[length] = '\0';
        if (schema_token_parse(bare, &t) == 0)
            return client_fail_text(-EINVAL, "behind the region's token there is more, such as a "
                                             "newline: cut it off");
    }
    return client_fail_text(-EINVAL, "the text is no region's token as kedge_mr_export() writes "
                                     "it, or it is damaged");
}

int kedge_import(struct kedge_session *s, const char *text, struct kedge_remote *out)
{
    struct schema_token t;
    struct client_reply reply;
    if (client_is_null(s) || client_is_null(text) || client_is_null(out))
        return -EINVAL;
    int status = client_usable(s);
    if (status != 0)
        return status;
    if (schema_token_parse(text, &t) != 0)
        return refuse_token(text);
    if (t.pool != s->pool)
        return client_fail(-EXDEV,
                           "the region is in pool number %u and this session in %u, which are kept "
                           "apart: both workers must be of one pool",
                           t.pool, s->pool);
    struct schema_sq_desc d = {.op = SCHEMA_OP_IMPORT, .import = {.vkey = t.vkey}};
    memcpy(d.import.secret, t.secret, sizeof d.import.secret);
    /* While there is room for certain the answer can only be yes, and whatever is posted comes
     * after the request: it is not waited for. */
    status =
        s->imports < SCHEMA_SESSION_IMPORTS ? client_ask(s, &d) : client_request(s, &d, &reply);
    s->imports++;
    if (status != 0)
        return status;
    *out = (struct kedge_remote){
        .addr = t.addr, .length = t.length, .rkey = t.vkey, .access = client_access_of(t.access)};
    memcpy(out->gid, t.gid, sizeof out->gid);
    return 0;
}

int kedge_unimport(struct kedge_session *s, const struct kedge_remote *remote)
{
    struct client_reply reply;
    if (client_is_null(s) || client_is_null(remote))
        return -EINVAL;
    int status = client_usable(s);
    if (status != 0)
        return status;
    if ((s->features & SCHEMA_FEATURE_UNIMPORT) == 0)
        return client_fail_text(-EOPNOTSUPP, "this host's agent is of before kedge_unimport(): run "
                                             "a newer kedge-agentd, or open another session");
    struct schema_sq_desc d = {.op = SCHEMA_OP_UNIMPORT, .import = {.vkey = remote->rkey}};
    status = client_request(s, &d, &reply);
    if (status == 0)
        s->imports = (uint32_t)reply.value[0];
    if (status == -ENOENT)
        return client_fail(status, "this session has imported no region with the rkey 0x%08x",
                           remote->rkey);
    return status;
}
