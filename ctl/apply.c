/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl apply: all files are read and looked through before anything is set. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apply_private.h"
#include "base/json_writer.h"
#include "ctl/commands.h"
#include "ctl/compare.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/manifest.h"
#include "ctl/notes.h"

enum { HEADER_BYTES = 64, LINE_BYTES = 512, FILE_BYTES = 1 << 20 };

/* All of a file ("-": standard input) up to a bound, owned; NULL: err says why. */
static char *read_file(const char *path, size_t *length, struct base_errbuf *err)
{
    bool input = strcmp(path, "-") == 0;
    FILE *file = input ? stdin : fopen(path, "r");
    char *text = malloc(FILE_BYTES + 1);
    if (file == NULL || text == NULL) {
        base_err(err, -EINVAL, "%.200s cannot be read: %s", path, strerror(errno));
    } else {
        *length = fread(text, 1, FILE_BYTES + 1, file);
        if (!ferror(file) && *length <= FILE_BYTES) {
            if (!input)
                fclose(file);
            return text;
        }
        base_err(err, -EINVAL, "%.200s %s", path,
                 ferror(file) ? "cannot be read" : "is larger than 1 MiB");
    }
    if (file != NULL && !input)
        fclose(file);
    free(text);
    return NULL;
}

int ctl_apply_read(const struct ctl_options *o, struct ctl_manifest *m, struct base_errbuf *err)
{
    int status = 0;
    for (size_t i = 0; i < o->files && status == 0; i++) {
        struct base_errbuf why;
        size_t length;
        char *text = read_file(o->file[i], &length, err);
        if (text == NULL)
            return -EINVAL;
        status = ctl_manifest_read(m, text, length, &why);
        if (status != 0)
            base_err(err, status, "%.100s: %.300s (nothing is applied)", o->file[i], why.text);
        free(text);
    }
    return status;
}

/* "the metaserver answers 412: If-Match: it has been changed" -> "it has been changed" */
static const char *detail_of(const char *sentence)
{
    static const char header[] = "If-Match: ";
    const char *found = strstr(sentence, header);
    return found != NULL ? found + sizeof header - 1 : sentence;
}

/* One of the fields may be a slip. */
static int say_fields(const struct resource_table *kind, int status, const char *refusal,
                      struct base_errbuf *err)
{
    char names[300];
    ctl_keys_of(kind->name, names, sizeof names);
    return base_err(err, status, "%.180s: of a %s there are %s", refusal, kind->name, names);
}

/* Without a revision it is set whatever is there. */
static int put_item(const struct ctl_options *o, const struct ctl_manifest_item *item,
                    struct http_result *out, struct base_errbuf *err)
{
    char path[CTL_RESOURCE_PATH_BYTES], header[HEADER_BYTES] = "";
    struct ctl_request request = {.method = "PUT", .path = path, .body = item->body};
    struct base_errbuf why;
    int status = ctl_resource_path(item->kind, item->name, path, err);
    if (status != 0)
        return status;
    if (item->revision != 0) {
        snprintf(header, sizeof header, "If-Match: \"%" PRIu64 "\"", item->revision);
        request.header = header;
    }
    status = ctl_call_server(o, &request, out, &why);
    if (status == -EREMCHG)
        return base_err(err, status,
                        "the file has it as of revision %" PRIu64
                        ", but %.200s, or take \"revision\" out "
                        "to set it whatever is there",
                        item->revision, detail_of(why.text));
    if (status == -EINVAL && item->strange)
        return say_fields(item->kind, status, why.text, err);
    return status == 0 ? 0 : base_err(err, status, "%s", why.text);
}

static void say_applied(const struct ctl_options *o, const struct ctl_manifest_item *item,
                        bool first, bool created)
{
    struct base_text t;
    if (!o->json) {
        printf("%s %s is %s\n", item->kind->name, item->name, created ? "created" : "set");
        return;
    }
    base_text_init(&t, LINE_BYTES);
    base_json_object(&t, NULL);
    base_json_string(&t, "kind", item->kind->name);
    base_json_string(&t, "name", item->name);
    base_json_bool(&t, "created", created);
    base_json_object_end(&t);
    ctl_json_list_item(first, base_text_str(&t));
    base_text_fini(&t);
}

/* What was applied, for the notes. */
struct applied {
    struct ctl_set *set;
    struct ctl_resource *resource;
    size_t count;
};

/* What cannot be read of an answer has no notes. */
static void keep_applied(struct applied *a, const struct ctl_manifest_item *item,
                         const struct http_result *result)
{
    struct base_errbuf err;
    struct ctl_resource *r = &a->resource[a->count];
    if (ctl_decode_resource(item->kind, result->body, result->body_length, r, &err) != 0)
        return;
    a->set[a->count++] = (struct ctl_set){item->kind, r};
}

static int apply_all(const struct ctl_options *o, const struct ctl_manifest *m, struct applied *a,
                     struct base_errbuf *err)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct ctl_manifest_item *item = &m->item[i];
        struct http_result result;
        struct base_errbuf why;
        int status = put_item(o, item, &result, &why);
        if (status != 0)
            return base_err(err, status, "%s %.64s: %.400s (%zu before it %s applied)",
                            item->kind->name, item->name, why.text, i, i == 1 ? "is" : "are");
        say_applied(o, item, i == 0, result.status == 201);
        keep_applied(a, item, &result);
        http_result_fini(&result);
    }
    return 0;
}

/* Notes come when all is applied: of a file's windows the first may be wider than what is there,
 * and the last one not. */
static int apply_and_note(const struct ctl_options *o, const struct ctl_manifest *m,
                          struct applied *a, struct base_errbuf *err)
{
    a->set = calloc(m->count + 1, sizeof *a->set);
    a->resource = calloc(m->count + 1, sizeof *a->resource);
    int status = a->set != NULL && a->resource != NULL ? apply_all(o, m, a, err)
                                                       : base_err(err, -ENOMEM, "out of memory");
    if (o->json)
        ctl_json_list_end();
    else if (m->count == 0)
        puts("there is nothing to apply");
    fflush(stdout);
    ctl_resource_notes(o, a->set, a->count);
    while (a->count > 0)
        ctl_resource_fini(&a->resource[--a->count]);
    free(a->resource);
    free(a->set);
    return status;
}

/* Another version may take what this one does not know, and says itself what it does not take. */
static bool has_our_version(const struct ctl_options *o)
{
    struct http_result result;
    struct ctl_pairs pairs;
    struct base_errbuf err;
    if (ctl_fetch_server(o, "/version", &result, &err) != 0)
        return false;
    bool ours = false;
    if (ctl_decode_pairs(result.body, result.body_length, &pairs, &err) == 0) {
        const char *version = ctl_pairs_find(&pairs, "version");
        ours = version != NULL && strcmp(version, KEDGE_VERSION) == 0;
        ctl_pairs_fini(&pairs);
    }
    http_result_fini(&result);
    return ours;
}

/* Before the first one is set: a slip in the second would leave half of a file behind. */
static int check_all(const struct ctl_options *o, const struct ctl_manifest *m,
                     struct base_errbuf *err)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct ctl_manifest_item *item = &m->item[i];
        struct base_errbuf why;
        const int status = ctl_wanted_check(item->kind, item->body, &why);
        if (status == 0)
            continue;
        if (!has_our_version(o))
            return 0;
        return base_err(err, status, "%s %.64s: %.400s (nothing is applied)", item->kind->name,
                        item->name, why.text);
    }
    return 0;
}

int ctl_apply(const struct ctl_options *o, struct base_errbuf *err)
{
    struct ctl_manifest m = {.item = NULL};
    struct applied applied = {.set = NULL};
    if (o->dry_run)
        return ctl_apply_dry(o, err);
    int status = ctl_apply_read(o, &m, err);
    if (status == 0)
        status = check_all(o, &m, err);
    if (o->json)
        ctl_json_list("applied");
    if (status == 0)
        status = apply_and_note(o, &m, &applied, err);
    else if (o->json)
        ctl_json_list_end();
    ctl_manifest_fini(&m);
    return status;
}
