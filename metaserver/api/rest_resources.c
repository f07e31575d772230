/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/tenants, /v1/windows, /v1/tokens, /v1/pools and /v1/nodes/{id}/settings: the same for all,
 * but for what is in them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "metaserver/resources_json.h"
#include "rest_private.h"
#include "metaserver/secret.h"

/* ---- conditions */

/* One entity tag at *text, and what follows up to the next. One that is not ours, or weak, matches
 * nothing: it is left out. 0 or -EINVAL. */
static int read_tag(const char **text, struct meta_resource_match *out)
{
    char digits[24];
    uint64_t revision;
    bool weak = strncmp(*text, "W/", 2) == 0;
    const char *begin = *text + (weak ? 2 : 0);
    const char *end = *begin == '"' ? strchr(begin + 1, '"') : NULL;
    if (end == NULL)
        return -EINVAL;
    size_t length = (size_t)(end - begin - 1);
    snprintf(digits, sizeof digits, "%.*s", length < sizeof digits ? (int)length : 0, begin + 1);
    if (!weak && base_parse_u64(digits, 1, UINT64_MAX, &revision) == 0) {
        if (out->count == META_RESOURCE_TAGS)
            return -EINVAL;
        out->revision[out->count++] = revision;
    }
    *text = end + 1 + strspn(end + 1, " \t");
    return **text == ',' || **text == '\0' ? 0 : -EINVAL;
}

static int read_tags(const char *text, struct meta_resource_match *out)
{
    out->listed = true;
    do {
        text += strspn(text, ", \t");
        if (read_tag(&text, out) != 0)
            return -EINVAL;
    } while (*text != '\0');
    return 0;
}

/* Else the answer has been given. */
static bool read_match(struct call *c, struct meta_resource_match *out)
{
    const char *match = c->request->if_match, *none = c->request->if_none_match;
    *out = (struct meta_resource_match){.absent = none != NULL,
                                        .any = match != NULL && strcmp(match, "*") == 0};
    if (none != NULL && strcmp(none, "*") != 0) {
        meta_rest_malformed(c, "If-None-Match", "must be *");
        return false;
    }
    if (match != NULL && !out->any && read_tags(match, out) != 0) {
        meta_rest_malformed(c, "If-Match",
                            "must be * or the ETag of an answer, at most eight of them");
        return false;
    }
    return true;
}

/* ---- one */

static void refuse_change(struct call *c, int status, const struct meta_violation *violation)
{
    const struct {
        int status;
        enum meta_rest_problem problem;
    } problems[] = {{-EINVAL, REST_MALFORMED},
                    {-EREMCHG, REST_CHANGED},
                    {-EEXIST, c->kind == META_POOL ? REST_POOL_TAKEN : REST_UID_TAKEN},
                    {-EPERM, REST_FIXED},
                    {-ENOENT, REST_DANGLING},
                    {-EBUSY, REST_IN_USE},
                    {-ENOSPC, REST_FULL}};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        if (problems[i].status == status)
            meta_rest_problem_of(c, problems[i].problem, violation->field, violation->detail);
}

static void answer_missing(struct call *c)
{
    static const enum meta_rest_problem problems[] = {[META_TENANT] = REST_NO_TENANT,
                                                      [META_WINDOW] = REST_NO_WINDOW,
                                                      [META_TOKEN] = REST_NO_TOKEN,
                                                      [META_NODE] = REST_NOTHING_SET,
                                                      [META_POOL] = REST_NO_POOL};
    meta_rest_problem(c, problems[c->kind], NULL);
}

static void show_resource(struct call *c, const struct meta_resource *resource)
{
    c->answer->revision = resource->revision;
    meta_json_write_resource(c->body, resource, c->wall_ms);
    base_text_append(c->body, "\n", 1);
}

/* Once: nobody can be told again. */
static void show_secret(struct call *c, const struct meta_resource *token, const char *secret)
{
    c->answer->revision = token->revision;
    meta_json_write_new_token(c->body, token, secret);
    base_text_append(c->body, "\n", 1);
}

void meta_rest_get_resource(struct call *c)
{
    const struct meta_resource *found = meta_resources_find(c->s->resources, c->kind, c->id);
    if (found == NULL)
        answer_missing(c);
    else
        show_resource(c, found);
}

/* ---- changing one */

/* Planned when its turn comes. */
struct resource_write {
    struct meta_write base;
    bool removes;
    struct meta_resource_match match;
    struct meta_resource to;
    char secret[SECRET_TEXT];      /* of a token that gets one; else "" */
    bool confirms;                 /* that what it was decided on is all that is stored */
    struct meta_service_change *x; /* from its turn on */
};

/* Unless the client says a secret, a token keeps its own, and a new one gets one. 0, or the answer
 * has been given. */
static int give_hash(struct call *c, struct resource_write *r)
{
    const struct meta_resource *there = meta_resources_find(c->s->resources, META_TOKEN, c->id);
    struct meta_token *token = &r->to.token;
    if (!meta_token_is_bare(token))
        return 0;
    if (there != NULL && !meta_token_is_bare(&there->token)) {
        memcpy(token->hash, there->token.hash, sizeof token->hash);
        return 0;
    }
    int status = meta_secret_make(c->s->world, c->id, r->secret, token->hash);
    if (status != 0)
        meta_rest_problem(c, REST_STORE, "there are no random numbers: nothing was changed");
    return status;
}

/* Whether it would end before it begins. One that has expired may stay as it is. */
static bool is_born_expired(const struct call *c, const struct meta_resource *to)
{
    const struct meta_resource *there = meta_resources_find(c->s->resources, META_TOKEN, c->id);
    return meta_token_is_over(&to->token, c->wall_ms) &&
           (there == NULL || there->token.expires != to->token.expires);
}

/* Whether a token can be as it is said; else the answer has been given. */
static bool prepare_token(struct call *c, struct resource_write *r)
{
    if (c->kind != META_TOKEN)
        return true;
    if (!is_born_expired(c, &r->to))
        return give_hash(c, r) == 0;
    meta_rest_malformed(c, "expires",
                        "is not in the future: say a later time, or leave it out for none; to end "
                        "a token, delete it");
    return false;
}

static void answer_change(struct call *c, const struct resource_write *r)
{
    const struct meta_resource_change *change = &r->x->change;
    if (r->removes) {
        c->answer->status = 204;
        return;
    }
    c->answer->status = change->had ? 200 : 201;
    if (r->secret[0] != '\0')
        show_secret(c, &change->to, r->secret);
    else
        show_resource(c, &change->to);
}

/* Into the transaction; else the answer has been given. */
static bool write_plan(struct call *c, struct resource_write *r)
{
    struct meta_resource_change *change = &r->x->change;
    change->time_ms = c->wall_ms;
    snprintf(change->who, sizeof change->who, "%s", c->who);
    if (meta_service_write_change(c->s, r->x, &r->base.job.txn) == 0)
        return true;
    meta_rest_problem(c, REST_STORE, "out of memory: try again");
    return false;
}

static int plan_change(struct call *c, struct resource_write *r, struct meta_violation *violation)
{
    const struct meta_resources *all = c->s->resources;
    return r->removes ? meta_resources_plan_remove(all, c->kind, c->id, &r->match, &r->x->change,
                                                   violation)
                      : meta_resources_plan_put(all, &r->to, &r->match, &r->x->change, violation);
}

/* Nothing is written: it is refused, or there already. */
static void answer_unwritten(struct call *c, const struct resource_write *r, int status,
                             const struct meta_violation *violation)
{
    if (status == 0)
        answer_change(c, r);
    else if (r->removes && status == -ENOENT)
        answer_missing(c);
    else
        refuse_change(c, status, violation);
}

static bool begin_change(struct call *c, struct meta_write *w)
{
    struct resource_write *r = (struct resource_write *)w;
    struct meta_violation violation = {.field = ""};
    if (r->x == NULL) /* else it is not its first turn */
        r->x = calloc(1, sizeof *r->x);
    if (r->x == NULL) {
        meta_rest_problem(c, REST_STORE, "out of memory: try again");
        return false;
    }
    if (!r->removes && !prepare_token(c, r))
        return false;
    const int status = plan_change(c, r, &violation);
    r->confirms = false;
    if (status == 0 && r->x->change.revision != 0)
        return write_plan(c, r);
    if (status == -EINVAL || !c->s->hearing.shared) {
        answer_unwritten(c, r, status, &violation);
        return false;
    }
    /* Another metaserver may have changed what is known here: who is told that nothing is to be
     * done would find that undone. */
    r->confirms = true;
    w->job.txn =
        (struct meta_store_txn){.compare = true, .last = meta_resources_revision(c->s->resources)};
    return true;
}

static void end_change(struct call *c, struct meta_write *w)
{
    struct resource_write *r = (struct resource_write *)w;
    struct meta_violation violation = {.field = ""};
    if (!meta_write_is_stored(c, w))
        return;
    if (r->confirms) { /* nothing was heard meanwhile, so it is planned as it was */
        const int status = plan_change(c, r, &violation);
        answer_unwritten(c, r, status, &violation);
        return;
    }
    meta_service_changed(c->s, r->x, &w->job.outcome);
    answer_change(c, r);
}

static void free_change(struct meta_write *w)
{
    struct resource_write *r = (struct resource_write *)w;
    if (r->x != NULL)
        meta_service_change_fini(r->x);
    free(r->x);
    explicit_bzero(r->secret, sizeof r->secret);
    free(r);
}

/* NULL: the answer has been given. */
static struct resource_write *new_change(struct call *c)
{
    static const struct meta_write_kind changing = {.what = "changing a setting",
                                                    .begin = begin_change,
                                                    .end = end_change,
                                                    .free = free_change};
    struct resource_write *r = calloc(1, sizeof *r);
    if (r == NULL) {
        meta_rest_problem(c, REST_CROWDED, "out of memory: try again");
        return NULL;
    }
    meta_write_init(&r->base, &changing, c);
    if (read_match(c, &r->match))
        return r;
    free(r);
    return NULL;
}

void meta_rest_put_resource(struct call *c)
{
    struct meta_violation violation = {.field = ""};
    if (!meta_rest_has_json(c))
        return;
    struct resource_write *r = new_change(c);
    if (r == NULL)
        return;
    int status = meta_json_resource(c->kind, c->id, c->request->body, c->request->body_bytes,
                                    &r->to, &violation);
    if (status == 0) {
        meta_write_decide(c, &r->base);
        return;
    }
    refuse_change(c, status, &violation);
    free(r);
}

void meta_rest_delete_resource(struct call *c)
{
    struct resource_write *r = new_change(c);
    if (r == NULL)
        return;
    r->removes = true;
    meta_write_decide(c, &r->base);
}

/* ---- all */

struct filter {
    bool of_uid, of_scope;
    uint64_t uid;
    int scope;          /* of a window or a token, whichever the list is of */
    const char *tenant; /* or NULL */
};

static bool has_uid(const struct resource_tenant *t, uint64_t uid)
{
    for (uint32_t i = 0; i < t->uids.count; i++)
        if (uid >= t->uids.range[i].first && uid <= t->uids.range[i].last)
            return true;
    return false;
}

static bool filter_wants(const struct filter *f, const struct meta_resource *s)
{
    if (s->kind == META_TENANT)
        return !f->of_uid || has_uid(&s->tenant, f->uid);
    if (s->kind == META_POOL)
        return true;
    if (s->kind == META_TOKEN)
        return !f->of_scope || (int)s->token.scope == f->scope;
    return (!f->of_scope || (int)s->window.scope == f->scope) &&
           (f->tenant == NULL || strcmp(f->tenant, s->window.tenant) == 0);
}

static bool read_scope(struct call *c, const char *word, int *out)
{
    const char *const *words =
        c->kind == META_WINDOW ? resource_window_scopes : resource_token_scopes;
    char text[RESOURCE_MUST_BYTES], must[sizeof text + 16];
    *out = resource_word_find(words, word);
    if (*out >= 0)
        return true;
    snprintf(must, sizeof must, "must be %s", resource_words_text(words, "", text));
    meta_rest_malformed(c, "scope", must);
    return false;
}

static bool read_filter(struct call *c, struct filter *out)
{
    const char *uid = c->request->parameter[META_PARAMETER_UID];
    const char *scope = c->request->parameter[META_PARAMETER_SCOPE];
    *out = (struct filter){.of_uid = uid != NULL,
                           .of_scope = scope != NULL,
                           .tenant = c->request->parameter[META_PARAMETER_TENANT]};
    if (c->kind == META_TENANT && uid != NULL &&
        base_parse_u64(uid, 0, UINT32_MAX - 1, &out->uid) != 0) {
        meta_rest_malformed(c, "uid", "must be a number below 4294967295");
        return false;
    }
    if ((c->kind == META_WINDOW || c->kind == META_TOKEN) && scope != NULL)
        return read_scope(c, scope, &out->scope);
    return true;
}

void meta_rest_list_resources(struct call *c)
{
    struct filter filter;
    struct rest_page page;
    const struct meta_resource *s;
    char all[META_JSON_PLURAL_BYTES];
    uint64_t n = 0, looks = 0;
    if (!meta_rest_read_page(c, &page) || !read_filter(c, &filter))
        return;
    base_json_object(c->body, NULL);
    base_json_u64(c->body, "revision", meta_resources_revision(c->s->resources));
    base_json_array(c->body, meta_json_plural(c->kind, all));
    while ((s = meta_resources_after(c->s->resources, c->kind, page.after)) != NULL &&
           n < page.limit && looks < REST_LOOKS) {
        snprintf(page.after, sizeof page.after, "%s", s->name);
        if (!filter_wants(&filter, s)) {
            looks++;
            continue;
        }
        base_text_printf(c->body, n++ == 0 ? "\n" : ",\n");
        meta_json_write_resource(c->body, s, c->wall_ms);
    }
    base_json_array_end(c->body);
    if (s != NULL)
        meta_rest_next_cursor(c, page.after);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}
