/* SPDX-License-Identifier: Apache-2.0 */
/* Regions as tokens, which workers hand to each other. */
#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

static int refuse_pool(const struct kedge_session *s, uint16_t pool)
{
    return client_fail(-EXDEV,
                       "the region is in pool number %u and this session in %u, which are kept "
                       "apart: both workers must be of one pool",
                       pool, s->pool);
}

static void fill_remote(struct kedge_remote *out, const struct schema_token *t)
{
    *out = (struct kedge_remote){.addr = t->addr,
                                 .length = t->length,
                                 .rkey = t->vkey,
                                 .access = client_access_of(t->access)};
    memcpy(out->gid, t->gid, sizeof out->gid);
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
        return refuse_pool(s, t.pool);
    struct schema_sq_desc d = {.op = SCHEMA_OP_IMPORT, .import = {.vkey = t.vkey}};
    memcpy(d.import.secret, t.secret, sizeof d.import.secret);
    /* While there is room for certain the answer can only be yes, and whatever is posted comes
     * after the request: it is not waited for. */
    status =
        s->imports < SCHEMA_SESSION_IMPORTS ? client_ask(s, &d) : client_request(s, &d, &reply);
    s->imports++;
    if (status != 0)
        return status;
    fill_remote(out, &t);
    return 0;
}

/* ---- many */

/* status with its sentence, and whose it is. */
static int say_which(int status, size_t which)
{
    char said[400];
    snprintf(said, sizeof said, "%s", kedge_last_error());
    return client_fail(status, "texts[%zu]: %s", which, said);
}

static int parse_all(const struct kedge_session *s, const char *const *texts, size_t n,
                     struct schema_token *t)
{
    for (size_t i = 0; i < n; i++) {
        if (texts[i] == NULL)
            return client_fail(-EINVAL, "kedge_import_many: texts[%zu] is NULL, and no token", i);
        if (schema_token_parse(texts[i], &t[i]) != 0)
            return say_which(refuse_token(texts[i]), i);
        if (t[i].pool != s->pool)
            return say_which(refuse_pool(s, t[i].pool), i);
    }
    return 0;
}

/* So many as one message takes, all of which have room in the ring. */
static size_t count_at_once(const struct kedge_session *s, size_t n)
{
    size_t most = (size_t)s->sq_mask * SCHEMA_LINE / sizeof(struct schema_grant);
    most = most < SCHEMA_IMPORTS_AT_ONCE ? most : SCHEMA_IMPORTS_AT_ONCE;
    return n < most ? n : most;
}

/* As of one: while there is room for certain the answer is not waited for. */
static int ask_for_some(struct kedge_session *s, const struct schema_token *t, size_t n)
{
    struct schema_grant grants[SCHEMA_IMPORTS_AT_ONCE];
    struct schema_sq_desc d = {.op = SCHEMA_OP_IMPORT_MANY, .import_many.count = (uint32_t)n};
    struct client_reply reply;
    const bool fits = s->imports + n <= SCHEMA_SESSION_IMPORTS;
    for (size_t i = 0; i < n; i++) {
        grants[i].vkey = t[i].vkey;
        memcpy(grants[i].secret, t[i].secret, sizeof grants[i].secret);
    }
    s->imports += (uint32_t)n;
    if (fits)
        return client_ask_with(s, &d, grants, n * sizeof grants[0]);
    const int status = client_request_with(s, &d, grants, n * sizeof grants[0], &reply);
    if (status == 0)
        s->imports = (uint32_t)reply.value[0];
    return status;
}

/* An agent of before such messages. */
static int import_each(struct kedge_session *s, const char *const *texts, size_t n)
{
    struct kedge_remote unused;
    int status = 0;
    for (size_t i = 0; i < n && status == 0; i++)
        status = kedge_import(s, texts[i], &unused);
    return status;
}

static int import_all(struct kedge_session *s, const char *const *texts, size_t n,
                      const struct schema_token *t)
{
    int status = 0;
    if ((s->features & SCHEMA_FEATURE_IMPORT_MANY) == 0)
        return import_each(s, texts, n);
    for (size_t i = 0, count; i < n && status == 0; i += count) {
        count = count_at_once(s, n - i);
        status = ask_for_some(s, &t[i], count);
    }
    return status;
}

int kedge_import_many(struct kedge_session *s, const char *const *texts, size_t n,
                      struct kedge_remote *out)
{
    if (client_is_null(s) || (n > 0 && (client_is_null(texts) || client_is_null(out))))
        return -EINVAL;
    int status = client_usable(s);
    if (status != 0 || n == 0)
        return status;
    struct schema_token *t = calloc(n, sizeof *t);
    if (t == NULL)
        return client_fail(-ENOMEM, "no memory for %zu tokens", n);
    status = parse_all(s, texts, n, t);
    if (status == 0)
        status = import_all(s, texts, n, t);
    for (size_t i = 0; i < n && status == 0; i++)
        fill_remote(&out[i], &t[i]);
    explicit_bzero(t, n * sizeof *t);
    free(t);
    return status;
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
