/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl diff, and apply --dry-run: what applying files would change. The metaserver is asked what
 * it has, and nothing else: what it alone can tell, such as a quota, shows when it is applied. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apply_private.h"
#include "base/json_writer.h"
#include "ctl/commands.h"
#include "ctl/compare.h"
#include "ctl/fetch.h"
#include "ctl/json.h"

enum { OUTPUT_BYTES = 1 << 20 };

/* What would become of one object. */
struct would {
    const struct ctl_manifest_item *item;
    uint64_t revision; /* that it has now; 0: it is not there */
    bool conflict;     /* the file has it as of another one */
    struct ctl_changes changes;
};

static const char *name_of(const struct would *w)
{
    return w->revision == 0 ? "created" : w->changes.count > 0 ? "changed" : "unchanged";
}

/* 0, the caller's to ctl_changes_fini(); or -errno. */
static int compare_item(const struct ctl_options *o, const struct ctl_manifest_item *item,
                        struct would *out, struct base_errbuf *err)
{
    char path[CTL_RESOURCE_PATH_BYTES];
    struct http_result there = {.body = NULL};
    struct ctl_resource resource = {.json = NULL};
    struct base_errbuf why;
    *out = (struct would){.item = item};
    int status = ctl_resource_path(item->kind, item->name, path, &why);
    if (status == 0)
        status = ctl_fetch_server(o, path, &there, &why);
    const bool is_there = status == 0;
    if (is_there)
        status = ctl_decode_resource(item->kind, there.body, there.body_length, &resource, &why);
    if (status == -ENOENT)
        status = 0;
    if (status == 0)
        status = ctl_compare(item->kind, resource.json, item->body, &out->changes, &why);
    out->revision = is_there ? resource.revision : 0;
    out->conflict = item->revision != 0 && item->revision != out->revision;
    ctl_resource_fini(&resource);
    if (is_there)
        http_result_fini(&there);
    return status == 0
               ? 0
               : base_err(err, status, "%s %.64s: %.400s", item->kind->name, item->name, why.text);
}

/* ---- shown */

static void print_json(const struct would *w, bool first, bool fields)
{
    struct base_text t;
    base_text_init(&t, OUTPUT_BYTES);
    base_json_object(&t, NULL);
    base_json_string(&t, "kind", w->item->kind->name);
    base_json_string(&t, "name", w->item->name);
    base_json_string(&t, "change", name_of(w));
    if (w->revision != 0)
        base_json_u64(&t, "revision", w->revision);
    if (w->conflict)
        base_json_bool(&t, "conflict", true);
    if (fields)
        base_json_array(&t, "fields");
    for (size_t i = 0; i < w->changes.count && fields; i++) {
        base_json_object(&t, NULL);
        base_json_string(&t, "field", w->changes.change[i].field->name);
        base_json_raw(&t, "before", w->changes.change[i].before_json);
        base_json_raw(&t, "after", w->changes.change[i].after_json);
        base_json_object_end(&t);
    }
    if (fields)
        base_json_array_end(&t);
    base_json_object_end(&t);
    ctl_json_list_item(first, base_text_str(&t));
    base_text_fini(&t);
}

static void print_conflict(const struct would *w)
{
    fflush(stdout);
    fprintf(stderr,
            "rdmactl: %s %s: the file has it as of revision %" PRIu64 ", and there it %s: apply "
            "would be refused\n",
            w->item->kind->name, w->item->name, w->item->revision,
            w->revision == 0 ? "is not" : "has another one");
}

/* As diff -u does, so that what colours that colours this. */
static void print_diff(const struct would *w)
{
    if (w->revision == 0)
        puts("--- /dev/null");
    else
        printf("--- %s %s\trevision %" PRIu64 "\n", w->item->kind->name, w->item->name,
               w->revision);
    printf("+++ %s %s\n", w->item->kind->name, w->item->name);
    for (size_t i = 0; i < w->changes.count; i++) {
        const struct ctl_change *c = &w->changes.change[i];
        if (strcmp(c->before, "-") != 0)
            printf("-%s: %s\n", c->field->name, c->before);
        if (strcmp(c->after, "-") != 0)
            printf("+%s: %s\n", c->field->name, c->after);
    }
}

/* ---- of all */

/* Counts those that would differ, and those that would be refused. */
static int compare_all(const struct ctl_options *o, const struct ctl_manifest *m, size_t *differ,
                       size_t *conflicts, struct base_errbuf *err)
{
    const bool diff = o->command == CTL_DIFF;
    size_t shown = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct would w;
        int status = compare_item(o, &m->item[i], &w, err);
        if (status != 0)
            return status;
        const bool differs = w.revision == 0 || w.changes.count > 0;
        *differ += differs;
        *conflicts += w.conflict;
        if (o->json && (differs || !diff))
            print_json(&w, shown++ == 0, diff);
        else if (!o->json && diff && differs)
            print_diff(&w);
        else if (!o->json && !diff)
            printf("%s %s %s (dry run)\n", w.item->kind->name, w.item->name,
                   w.revision == 0        ? "would be created"
                   : w.changes.count == 0 ? "is unchanged"
                                          : "would be changed");
        if (w.conflict)
            print_conflict(&w);
        ctl_changes_fini(&w.changes);
    }
    return 0;
}

static int compare_files(const struct ctl_options *o, size_t *differ, size_t *conflicts,
                         struct base_errbuf *err)
{
    struct ctl_manifest m = {.item = NULL};
    int status = ctl_apply_read(o, &m, err);
    if (o->json)
        ctl_json_list(o->command == CTL_DIFF ? "differences" : "dry_run");
    if (status == 0)
        status = compare_all(o, &m, differ, conflicts, err);
    if (o->json)
        ctl_json_list_end();
    else if (status == 0 && m.count == 0)
        puts("there is nothing to apply");
    ctl_manifest_fini(&m);
    return status;
}

int ctl_diff(const struct ctl_options *o, struct base_errbuf *err)
{
    size_t differ = 0, conflicts = 0;
    int status = compare_files(o, &differ, &conflicts, err);
    if (status != 0 || differ == 0)
        return status;
    return base_err(err, -EIO, "%zu %s by these files", differ,
                    differ == 1 ? "object differs" : "objects differ");
}

int ctl_apply_dry(const struct ctl_options *o, struct base_errbuf *err)
{
    size_t differ = 0, conflicts = 0;
    int status = compare_files(o, &differ, &conflicts, err);
    if (status != 0 || conflicts == 0)
        return status;
    return base_err(err, -EREMCHG, "of %zu apply would be refused", conflicts);
}
