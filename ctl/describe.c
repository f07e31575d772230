/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl describe KIND NAME: all that the metaserver says of one thing, on a page: what is set of
 * it, how it is, what refers to it, and its newest events. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "ctl/commands.h"
#include "describe_private.h"
#include "ctl/events.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/nodes.h"
#include "ctl/pool_force.h"
#include "ctl/print_table.h"
#include "ctl/resources.h"

enum { EVENTS = 10, OUTPUT_BYTES = 1 << 22 };

/* What is known of it. Owned. */
struct page {
    const struct resource_table *kind;
    bool has_spec; /* nothing need be set of a node */
    struct ctl_resource spec;
    bool has_node;
    struct ctl_node node;
    struct ctl_event event[EVENTS];
    size_t events;
};

/* ---- asked */

/* Whether a text with commas has this word. */
static bool has_word(const char *text, const char *word)
{
    const size_t wanted = strlen(word);
    while (*text != '\0') {
        const size_t length = strcspn(text, ",");
        if (length == wanted && strncmp(text, word, length) == 0)
            return true;
        text += length + (text[length] == ',');
    }
    return false;
}

/* -ENOENT: it is not there. */
static int fetch_spec(const struct ctl_options *o, struct page *p, struct base_errbuf *err)
{
    char path[CTL_RESOURCE_PATH_BYTES];
    struct http_result result;
    int status = ctl_resource_path(p->kind, o->id, path, err);
    if (status == 0)
        status = ctl_fetch_server(o, path, &result, err);
    if (status != 0)
        return status;
    status = ctl_decode_resource(p->kind, result.body, result.body_length, &p->spec, err);
    http_result_fini(&result);
    p->has_spec = status == 0;
    return status;
}

static int fetch_node(const struct ctl_options *o, struct page *p, struct base_errbuf *err)
{
    char path[CTL_NODE_PATH_BYTES];
    struct http_result result;
    int status = ctl_node_path(o->id, path, err);
    if (status == 0)
        status = ctl_fetch_server(o, path, &result, err);
    if (status != 0)
        return status;
    status = ctl_decode_node(result.body, result.body_length, &p->node, err);
    http_result_fini(&result);
    p->has_node = status == 0;
    return status;
}

static int fetch_page(const struct ctl_options *o, struct page *p, struct base_errbuf *err)
{
    const bool node = p->kind == resource_table(RESOURCE_NODE);
    int status = node ? fetch_node(o, p, err) : 0;
    if (status == 0) {
        status = fetch_spec(o, p, err);
        if (node && status == -ENOENT)
            status = 0;
    }
    if (status == -ENOENT)
        return ctl_no_such(p->kind->name, o->id, "", err);
    if (status == 0)
        status = ctl_events_newest(o, node ? "node,liveness,lease" : p->kind->name, o->id, p->event,
                                   EVENTS, &p->events, err);
    return status;
}

/* ---- what refers to it */

/* Appends the resources of one kind that name it in this field: "window of-web, window b". */
static size_t add_references(const struct resource_table *kind, const struct ctl_resources *all,
                             const struct resource_field *f, const char *name,
                             struct base_text *out, size_t count)
{
    for (size_t i = 0; i < all->count; i++)
        if (has_word(ctl_resource_value(kind, &all->item[i], f->name), name))
            base_text_printf(out, "%s%s %s", count++ > 0 ? ", " : "", kind->name,
                             all->item[i].name);
    return count;
}

/* Who may not see a kind of resource, such as tokens, is told so. */
static void find_references(const struct ctl_options *o, const struct resource_table *of,
                            struct base_text *out)
{
    size_t count = 0;
    for (int k = 0; k < RESOURCE_KINDS; k++) {
        const struct resource_table *kind = resource_table((enum resource_kind)k);
        struct ctl_resources all = {.item = NULL};
        struct base_errbuf why;
        bool fetched = false, failed = false;
        for (size_t i = 0; i < kind->fields && !failed; i++) {
            const struct resource_field *f = &kind->field[i];
            if ((f->type != FIELD_REFERENCE && f->type != FIELD_REFERENCES) ||
                resource_table(f->of) != of)
                continue;
            failed = !fetched && ctl_resources_fetch(o, kind, &all, &why) != 0;
            fetched = true;
            if (failed)
                base_text_printf(out, "%s%s that this user may not see", count++ > 0 ? ", " : "",
                                 kind->plural);
            else
                count = add_references(kind, &all, f, o->id, out, count);
        }
        ctl_resources_fini(&all);
    }
    if (count == 0)
        base_text_printf(out, "nothing");
}

/* ---- shown */

static void print_spec(const struct page *p)
{
    puts("spec");
    if (!p->has_spec)
        puts("  nothing is set");
    else
        printf("  %-18s %" PRIu64 "\n", "revision", p->spec.revision);
    for (size_t i = 0; i < p->kind->fields && p->has_spec; i++)
        printf("  %-18s %s\n", p->kind->field[i].name, p->spec.value[i]);
}

static int print_events(const struct ctl_event *event, size_t events, struct base_errbuf *err)
{
    static const char *const headings[] = {"REVISION", "TIME", "WHO", "CHANGE"};
    struct ctl_table *table;
    puts("\nevents");
    if (events == 0) {
        puts("none that the metaserver remembers");
        return 0;
    }
    int status = ctl_table_new(headings, 4, &table);
    for (size_t i = 0; i < events && status == 0; i++) {
        const struct ctl_event *e = &event[i];
        char revision[24];
        snprintf(revision, sizeof revision, "%" PRIu64, e->revision);
        ctl_table_row(table, (const char *const[]){revision, e->time, e->who, e->what});
    }
    if (status == 0) {
        status = ctl_table_print(table);
        ctl_table_free(table);
    }
    return status == 0 ? 0 : base_err(err, status, "printing failed: %s", strerror(-status));
}

static int print_page(const struct ctl_options *o, const struct page *p, struct base_errbuf *err)
{
    struct ctl_options wide = *o;
    struct base_text references;
    int status = 0;
    wide.wide = true;
    printf("%s %s\n\n", p->kind->name, o->id);
    print_spec(p);
    puts("\nstatus");
    if (p->has_node)
        status = ctl_node_print(&p->node, err);
    if (status == 0 && p->kind == resource_table(RESOURCE_POOL))
        status = ctl_pool_print(&wide, &p->spec, err);
    base_text_init(&references, OUTPUT_BYTES);
    find_references(o, p->kind, &references);
    if (status == 0)
        printf("named by %s\n", base_text_str(&references));
    base_text_fini(&references);
    return status == 0 ? print_events(p->event, p->events, err) : status;
}

static int print_json(const struct ctl_options *o, const struct page *p, struct base_errbuf *err)
{
    struct base_text t;
    base_text_init(&t, OUTPUT_BYTES);
    ctl_json_begin(&t);
    base_json_string(&t, "kind", p->kind->name);
    base_json_string(&t, "name", o->id);
    base_json_raw(&t, "spec", p->has_spec ? p->spec.json : "null");
    if (p->has_node) {
        struct base_text node;
        base_text_init(&node, OUTPUT_BYTES);
        ctl_node_json(&node, &p->node);
        base_json_raw(&t, "status", base_text_str(&node));
        base_text_fini(&node);
    }
    base_json_array(&t, "events");
    for (size_t i = 0; i < p->events; i++)
        base_json_raw(&t, NULL, p->event[i].json);
    base_json_array_end(&t);
    base_json_object_end(&t);
    return ctl_json_finish(&t, err);
}

int ctl_describe_events(const struct ctl_options *o, const char *kinds, const char *name,
                        struct base_text *json, struct base_errbuf *err)
{
    struct ctl_event event[EVENTS];
    size_t count = 0;
    int status = ctl_events_newest(o, kinds, name, event, EVENTS, &count, err);
    if (status == 0 && json == NULL)
        status = print_events(event, count, err);
    if (status == 0 && json != NULL) {
        base_json_array(json, "events");
        for (size_t i = 0; i < count; i++)
            base_json_raw(json, NULL, event[i].json);
        base_json_array_end(json);
    }
    for (size_t i = 0; i < count; i++)
        ctl_event_fini(&event[i]);
    return status;
}

int ctl_describe(const struct ctl_options *o, struct base_errbuf *err)
{
    if (resource_table_find(o->kind) == NULL) /* nothing is set of it */
        return ctl_describe_shown(o, err);
    struct page p = {.kind = resource_table_find(o->kind)};
    int status = fetch_page(o, &p, err);
    if (status == 0)
        status = o->json ? print_json(o, &p, err) : print_page(o, &p, err);
    for (size_t i = 0; i < p.events; i++)
        ctl_event_fini(&p.event[i]);
    ctl_resource_fini(&p.spec);
    return status;
}
