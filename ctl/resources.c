/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl tenant|window|pool|token list|get|create|set|delete. */
#include "ctl/resources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/commands.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/notes.h"
#include "ctl/pool_force.h"
#include "ctl/secret_out.h"
#include "ctl/rows.h"

enum {
    MAX_PAGES = 100000,
    CURSOR_BYTES = 256,
    LIST_BYTES = 1000,
    PATH_BYTES = CTL_RESOURCE_PATH_BYTES,
    HEADER_BYTES = 64
};

int ctl_resource_path(const struct resource_table *kind, const char *name,
                      char out[CTL_RESOURCE_PATH_BYTES], struct base_errbuf *err)
{
    char encoded[3 * CTL_ID_BYTES + 1];
    if (name[0] == '\0' || ctl_percent_encode(name, encoded, sizeof encoded) != 0)
        return base_err(err, -EINVAL, "a %s's name has 1 to %d characters", kind->name,
                        CTL_ID_BYTES - 1);
    snprintf(out, PATH_BYTES, "/v1/%s/%s%s", kind->plural, encoded, kind->suffix);
    return 0;
}

/* ---- showing */

static int list_path(const struct ctl_options *o, const struct resource_table *kind,
                     const char *cursor, char out[LIST_BYTES], struct base_errbuf *err)
{
    snprintf(out, LIST_BYTES, "/v1/%s?limit=1000", kind->plural);
    int status = ctl_add_query(out, LIST_BYTES, "scope", o->scope, err);
    if (status == 0)
        status = ctl_add_query(out, LIST_BYTES, "tenant", o->tenant, err);
    if (status == 0)
        status = ctl_add_query(out, LIST_BYTES, "uid", o->uid, err);
    if (status == 0)
        status = ctl_add_query(out, LIST_BYTES, "cursor", cursor[0] != '\0' ? cursor : NULL, err);
    return status;
}

int ctl_resources_fetch(const struct ctl_options *o, const struct resource_table *kind,
                        struct ctl_resources *all, struct base_errbuf *err)
{
    char path[LIST_BYTES], next[CURSOR_BYTES] = "";
    int status = 0;
    for (unsigned page = 0; page < MAX_PAGES; page++) {
        struct http_result result;
        status = list_path(o, kind, next, path, err);
        if (status == 0)
            status = ctl_fetch_server(o, path, &result, err);
        if (status != 0)
            break;
        status = ctl_decode_resources(kind, result.body, result.body_length, all, next, sizeof next,
                                      err);
        http_result_fini(&result);
        if (status != 0 || next[0] == '\0')
            break;
    }
    return status;
}

/* ---- list */

static void add_rows(const struct ctl_options *o, const struct resource_table *kind,
                     const struct ctl_resources *all, struct ctl_rows *rows)
{
    const char *cells[RESOURCE_FIELDS_MAX + 2] = {"NAME"};
    size_t shown[RESOURCE_FIELDS_MAX], columns = 0;
    for (size_t i = 0; i < kind->fields; i++) {
        if (kind->field[i].wide && !o->wide)
            continue;
        shown[columns++] = i;
        cells[columns] = kind->field[i].heading;
    }
    cells[columns + 1] = "REVISION";
    ctl_rows_head(rows, cells, columns + 1 + (o->wide ? 1 : 0));
    for (size_t n = 0; n < all->count; n++) {
        char revision[24];
        snprintf(revision, sizeof revision, "%" PRIu64, all->item[n].revision);
        cells[0] = all->item[n].name;
        for (size_t i = 0; i < columns; i++)
            cells[i + 1] = all->item[n].value[shown[i]];
        cells[columns + 1] = revision;
        ctl_rows_add(rows, all->item[n].name, all->item[n].json, cells);
    }
}

static int fill_rows(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    const struct resource_table *kind = resource_table_find(o->kind);
    struct ctl_resources all = {.item = NULL};
    const int status = ctl_resources_fetch(o, kind, &all, err);
    if (status == 0)
        add_rows(o, kind, &all, rows);
    ctl_resources_fini(&all);
    return status;
}

static void say_none(const struct ctl_options *o)
{
    const struct resource_table *kind = resource_table_find(o->kind);
    if (o->scope != NULL || o->tenant != NULL || o->uid != NULL)
        printf("there is no such %s\n", kind->name);
    else
        printf("there is no %s yet: rdmactl %s %s NAME KEY=VALUE... makes one\n", kind->name,
               kind->name, kind->secret ? "create" : "set");
}

int ctl_resource_list(const struct ctl_options *o, struct base_errbuf *err)
{
    const struct resource_table *kind = resource_table_find(o->kind);
    const struct ctl_list list = {.kind = kind->name,
                                  .plural = kind->plural,
                                  .says_kind = true,
                                  .events = kind->name,
                                  .fill = fill_rows,
                                  .say_none = say_none};
    return ctl_list_run(o, &list, NULL, err);
}

/* Names in a column that is wide enough for each. */
static void print_columns(const struct resource_table *kind, const struct ctl_resource *resource)
{
    int width = (int)strlen("revision");
    for (size_t i = 0; i < kind->fields; i++)
        if ((int)strlen(kind->field[i].name) > width)
            width = (int)strlen(kind->field[i].name);
    printf("%-*s %s\n%-*s %" PRIu64 "\n", width, "name", resource->name, width, "revision",
           resource->revision);
    for (size_t i = 0; i < kind->fields; i++)
        printf("%-*s %s\n", width, kind->field[i].name, resource->value[i]);
    if (resource->secret[0] != '\0')
        printf("%-*s %s\nnobody can show the secret again: keep it where its user alone can read "
               "it\n",
               width, "secret", resource->secret);
}

static int print_resource(const struct ctl_options *o, const struct resource_table *kind,
                          const struct ctl_resource *resource, bool changed,
                          struct base_errbuf *err)
{
    int status = 0;
    if (o->json)
        status = ctl_json_print_of(kind->name, resource->json, err);
    else
        print_columns(kind, resource);
    if (!changed && !o->json && strcmp(kind->name, "pool") == 0)
        status = ctl_pool_print(o, resource, err);
    if (changed) {
        fflush(stdout);
        ctl_resource_notes(o, &(struct ctl_set){kind, resource}, 1);
    }
    return status;
}

static int print_one(const struct ctl_options *o, const struct resource_table *kind,
                     const struct http_result *result, bool changed, struct base_errbuf *err)
{
    struct ctl_resource resource;
    int status = ctl_decode_resource(kind, result->body, result->body_length, &resource, err);
    if (status != 0)
        return status;
    status = print_resource(o, kind, &resource, changed, err);
    ctl_resource_fini(&resource);
    return status;
}

int ctl_resource_get(const struct ctl_options *o, struct base_errbuf *err)
{
    const struct resource_table *kind = resource_table_find(o->kind);
    struct http_result result;
    char path[PATH_BYTES];
    int status = ctl_resource_path(kind, o->id, path, err);
    if (status == 0)
        status = ctl_fetch_server(o, path, &result, err);
    if (status == -ENOENT)
        return ctl_no_such(kind->name, o->id, "", err);
    if (status != 0)
        return status;
    status = print_one(o, kind, &result, false, err);
    http_result_fini(&result);
    return status;
}

/* ---- changing */

/* What is there now: 0 and *out, or -ENOENT. */
static int put_setting(const struct ctl_options *o, const char *path, uint64_t revision,
                       const char *body, struct http_result *out, struct base_errbuf *err)
{
    char header[HEADER_BYTES] = "If-None-Match: *";
    const struct ctl_request request = {
        .method = "PUT", .path = path, .header = header, .body = body};
    if (revision != 0)
        snprintf(header, sizeof header, "If-Match: \"%" PRIu64 "\"", revision);
    int status = ctl_call_server(o, &request, out, err);
    if (status == -EREMCHG)
        return base_err(err, status,
                        "somebody else has changed it at the same moment: look, and try again");
    return status;
}

/* What is to be PUT: the words, and options that stand for such, over what is there (NULL:
 * nothing), and the secret of --secret-file. */
static int make_body(const struct ctl_options *o, const struct resource_table *kind,
                     const struct http_result *there, struct base_text *out, uint64_t *revision,
                     struct base_errbuf *err)
{
    char secret[HTTP_TOKEN_BYTES];
    struct ctl_field_words more;
    int status = ctl_field_words(o, &more, err);
    const char **words = calloc(o->word_count + more.count + 1, sizeof *words);
    if (status == 0 && words == NULL)
        status = base_err(err, -ENOMEM, "out of memory");
    for (size_t i = 0; status == 0 && i < o->word_count + more.count; i++)
        words[i] = i < o->word_count ? o->words[i] : more.word[i - o->word_count];
    if (status == 0)
        status = ctl_words_check(words, o->word_count + more.count, err);
    if (status == 0)
        status = ctl_edit_resource(kind, there != NULL ? there->body : NULL,
                                   there != NULL ? there->body_length : 0, words,
                                   o->word_count + more.count, out, revision, err);
    free(words);
    if (status != 0 || o->secret_file == NULL)
        return status;
    status = ctl_read_token(o->secret_file, secret, err);
    return status == 0 ? ctl_add_secret(out, secret, err) : status;
}

int ctl_resource_set(const struct ctl_options *o, struct base_errbuf *err)
{
    const struct resource_table *kind = resource_table_find(o->kind);
    struct http_result there = {.body = NULL}, result;
    struct base_text body;
    char path[PATH_BYTES];
    uint64_t revision;
    int status = ctl_resource_path(kind, o->id, path, err);
    if (status == 0)
        status = ctl_fetch_server(o, path, &there, err);
    if (status == -ENOENT && kind->secret)
        return ctl_no_such(kind->name, o->id, "", err);
    if (status != 0 && status != -ENOENT)
        return status;
    base_text_init(&body, CTL_BODY_BYTES);
    status = make_body(o, kind, status == 0 ? &there : NULL, &body, &revision, err);
    if (status == 0)
        status = put_setting(o, path, revision, base_text_str(&body), &result, err);
    base_text_fini(&body);
    http_result_fini(&there);
    if (status != 0)
        return status;
    if (!o->json)
        printf("%s %s is set:\n", kind->name, o->id);
    status = print_one(o, kind, &result, true, err);
    http_result_fini(&result);
    return status;
}

/* A token whose secret nobody has got is of no use, and its name is taken. */
static int keep_secret(const struct ctl_options *o, struct ctl_secret_out *out,
                       struct ctl_resource *token, struct base_errbuf *err)
{
    struct base_errbuf why;
    const int status = ctl_secret_out_keep(out, token->secret, &why);
    if (status == 0)
        return ctl_hide_secret(token, err);
    return base_err(err, status,
                    "token %.64s is created, but its secret is lost: %.300s (then rdmactl token "
                    "delete %.64s, and create it again)",
                    o->id, why.text, o->id);
}

static int show_created(const struct ctl_options *o, const struct resource_table *kind,
                        const struct http_result *result, struct ctl_secret_out *out,
                        struct base_errbuf *err)
{
    struct ctl_resource resource;
    int status = ctl_decode_resource(kind, result->body, result->body_length, &resource, err);
    if (status != 0)
        return status;
    if (o->secret_out != NULL)
        status = keep_secret(o, out, &resource, err);
    if (status == 0 && !o->json)
        printf("%s %s is created%s%s:\n", kind->name, o->id,
               o->secret_out != NULL ? ", its secret is in " : "",
               o->secret_out != NULL ? o->secret_out : "");
    if (status == 0)
        status = print_resource(o, kind, &resource, true, err);
    explicit_bzero(resource.secret, sizeof resource.secret);
    ctl_resource_fini(&resource);
    return status;
}

static int create_resource(const struct ctl_options *o, struct ctl_secret_out *out,
                           struct base_errbuf *err)
{
    const struct resource_table *kind = resource_table_find(o->kind);
    struct http_result result;
    struct base_text body;
    char path[PATH_BYTES];
    uint64_t revision;
    struct ctl_request request = {.method = "PUT", .path = path, .header = "If-None-Match: *"};
    int status = ctl_resource_path(kind, o->id, path, err);
    if (status != 0)
        return status;
    base_text_init(&body, CTL_BODY_BYTES);
    status = make_body(o, kind, NULL, &body, &revision, err);
    request.body = base_text_str(&body);
    if (status == 0)
        status = ctl_call_server(o, &request, &result, err);
    base_text_fini(&body);
    if (status == -EREMCHG)
        return base_err(err, -EEXIST,
                        "there is a %s \"%.70s\" already: change it with rdmactl %s set",
                        kind->name, o->id, kind->name);
    if (status != 0)
        return status;
    status = show_created(o, kind, &result, out, err);
    http_result_fini(&result);
    return status;
}

int ctl_resource_create(const struct ctl_options *o, struct base_errbuf *err)
{
    struct ctl_secret_out out = {.fd = -1};
    int status = o->secret_out != NULL ? ctl_secret_out_open(&out, o->secret_out, err) : 0;
    if (status == 0)
        status = create_resource(o, &out, err);
    ctl_secret_out_close(&out);
    return status;
}

int ctl_resource_delete(const struct ctl_options *o, struct base_errbuf *err)
{
    const struct resource_table *kind = resource_table_find(o->kind);
    struct http_result result;
    char path[PATH_BYTES];
    const struct ctl_request request = {.method = "DELETE", .path = path};
    int status = ctl_resource_path(kind, o->id, path, err);
    if (status == 0)
        status = ctl_call_server(o, &request, &result, err);
    if (status == -ENOENT)
        return ctl_no_such(kind->name, o->id, "", err);
    if (status != 0)
        return status;
    http_result_fini(&result);
    if (o->json)
        return ctl_json_deleted(kind->name, o->id, err);
    printf("%s %s is deleted\n", kind->name, o->id);
    return 0;
}
