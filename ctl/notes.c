/* SPDX-License-Identifier: Apache-2.0 */
/* What is odd about resources that were taken as they are, which may be meant, or a slip. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/fetch.h"
#include "ctl/nodes.h"
#include "ctl/notes.h"
#include "ctl/pool_force.h"
#include "ctl/window_notes.h"

enum { NAME_BYTES = 128, TEXT_BYTES = 1 << 16 };

/* One of `text`'s words between commas: what is behind it, or NULL. */
static const char *next_word(const char *text, char out[NAME_BYTES])
{
    const size_t length = strcspn(text, ",");
    snprintf(out, NAME_BYTES, "%.*s", (int)length, text);
    return text[length] != '\0' ? text + length + 1 : NULL;
}

/* What was set, and the lists that the notes are made from, each fetched when it is needed first.
 */
struct notes {
    const struct ctl_options *o;
    const struct ctl_set *set;
    size_t count;
    bool has_nodes, no_nodes; /* fetched; they could not be */
    struct ctl_nodes nodes;
    bool asked_tokens; /* they were fetched, or could not be */
    int tokens_status; /* why, or 0 */
    struct ctl_resources tokens;
};

/* Else nothing can be said. */
static bool has_nodes(struct notes *n)
{
    struct base_errbuf err;
    if (!n->has_nodes && !n->no_nodes) {
        n->has_nodes = ctl_nodes_fetch(n->o, &n->nodes, &err) == 0;
        n->no_nodes = !n->has_nodes;
    }
    return n->has_nodes;
}

/* ---- what is named and is not there */

static void note_selector(struct notes *n, const struct ctl_set *set, const char *selector)
{
    size_t count = 0;
    if (strcmp(selector, "-") == 0 || strcmp(selector, "all") == 0 || !has_nodes(n))
        return;
    for (size_t i = 0; i < n->nodes.count; i++)
        count += ctl_node_is_selected(&n->nodes.node[i], selector);
    if (count == 0)
        fprintf(stderr,
                "note: %s %s: no node has the labels %s: rdmactl node label NODE gives them\n",
                set->kind->name, set->resource->name, selector);
}

static void note_tenants(const struct notes *n, const struct ctl_set *set, const char *tenants)
{
    const struct resource_table *kind = resource_table_find("tenant");
    char name[NAME_BYTES], path[CTL_RESOURCE_PATH_BYTES];
    for (const char *at = strcmp(tenants, "-") != 0 ? tenants : NULL; at != NULL;) {
        struct http_result result;
        struct base_errbuf err;
        at = next_word(at, name);
        if (ctl_resource_path(kind, name, path, &err) != 0)
            continue;
        const int status = ctl_fetch_server(n->o, path, &result, &err);
        if (status == 0)
            http_result_fini(&result);
        else if (status == -ENOENT)
            fprintf(stderr,
                    "note: %s %s: the metaserver knows no tenant %s: rdmactl tenant create %s "
                    "makes it, unless agents' own files have it\n",
                    set->kind->name, set->resource->name, name, name);
    }
}

static void note_node(struct notes *n, const struct ctl_set *set)
{
    const char *node = ctl_resource_value(set->kind, set->resource, "node");
    if (node[0] == '\0' || !has_nodes(n))
        return;
    for (size_t i = 0; i < n->nodes.count; i++)
        if (strcmp(n->nodes.node[i].id, node) == 0 && strcmp(n->nodes.node[i].state, "absent") != 0)
            return;
    fprintf(
        stderr,
        "note: window %s: node %s is not registered: until it is, the window holds for nobody\n",
        set->resource->name, node);
}

/* ---- tenants that nobody belongs to */

/* 0: they are there; or -errno, as of who may not see them. */
static int fetch_tokens(struct notes *n)
{
    struct base_errbuf err;
    if (!n->asked_tokens)
        n->tokens_status =
            ctl_resources_fetch(n->o, resource_table_find("token"), &n->tokens, &err);
    n->asked_tokens = true;
    return n->tokens_status;
}

static bool has_token(const struct notes *n, const char *tenant)
{
    const struct resource_table *kind = resource_table_find("token");
    for (size_t i = 0; i < n->tokens.count; i++)
        if (strcmp(ctl_resource_value(kind, &n->tokens.item[i], "tenant"), tenant) == 0)
            return true;
    return false;
}

/* It stands in the place of the one that agents' own files have, with that one's uids. */
static void note_workers(struct notes *n, const struct ctl_set *set)
{
    const char *name = set->resource->name;
    if (ctl_resource_value(set->kind, set->resource, "uids")[0] != '\0')
        return;
    const int status = fetch_tokens(n);
    if (status == 0 && has_token(n, name))
        return;
    fprintf(stderr,
            "note: tenant %s has no uids%s: no worker can come to it, also where an agent's own "
            "file gives a tenant of that name uids: rdmactl tenant set %s uids=...%s\n",
            name, status == 0 ? " and no token" : "", name,
            status == 0 ? "" : ", unless it has a token, which your own does not show you");
}

/* ---- windows */

static bool is_new(const struct notes *n, const struct ctl_window *w)
{
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->set[i].kind->name, w->kind) == 0 &&
            strcmp(n->set[i].resource->name, w->name) == 0)
            return true;
    return false;
}

/* Adds those of a kind to the list, which grows. False: they cannot be fetched. */
static bool add_windows(const struct notes *n, const char *name, struct ctl_window **list,
                        size_t *count)
{
    const struct resource_table *kind = resource_table_find(name);
    struct ctl_resources all = {.item = NULL};
    struct base_errbuf err;
    bool fetched = ctl_resources_fetch(n->o, kind, &all, &err) == 0;
    struct ctl_window *grown =
        fetched ? realloc(*list, (*count + all.count + 1) * sizeof *grown) : NULL;
    if (grown != NULL)
        *list = grown;
    for (size_t i = 0; grown != NULL && i < all.count; i++) {
        struct ctl_window *w = &grown[*count];
        if (!ctl_window_of(kind, &all.item[i], w))
            continue;
        w->is_new = is_new(n, w);
        ++*count;
    }
    ctl_resources_fini(&all);
    return grown != NULL;
}

static void note_windows(const struct notes *n)
{
    struct ctl_window *list = NULL, one;
    struct base_text text;
    size_t count = 0;
    bool any = false;
    for (size_t i = 0; i < n->count && !any; i++)
        any = ctl_window_of(n->set[i].kind, n->set[i].resource, &one);
    if (any && add_windows(n, "window", &list, &count) && add_windows(n, "tenant", &list, &count)) {
        base_text_init(&text, TEXT_BYTES);
        ctl_window_notes(list, count, &text);
        fputs(base_text_str(&text), stderr);
        base_text_fini(&text);
    }
    free(list);
}

/* ---- all of them */

static void note_names(struct notes *n, const struct ctl_set *set)
{
    for (size_t i = 0; i < set->kind->fields; i++) {
        const char *key = set->kind->field[i].name, *value = set->resource->value[i];
        if (strcmp(key, "tenants") == 0 || strcmp(key, "tenant") == 0)
            note_tenants(n, set, value);
        else if (set->kind->field[i].type == FIELD_SELECTOR)
            note_selector(n, set, value);
    }
    if (strcmp(set->kind->name, "window") == 0)
        note_node(n, set);
    if (strcmp(set->kind->name, "tenant") == 0)
        note_workers(n, set);
}

void ctl_resource_notes(const struct ctl_options *o, const struct ctl_set *set, size_t count)
{
    struct notes n = {.o = o, .set = set, .count = count};
    for (size_t i = 0; i < count; i++)
        note_names(&n, &set[i]);
    note_windows(&n);
    if (n.has_nodes)
        ctl_nodes_fini(&n.nodes);
    ctl_resources_fini(&n.tokens);
    for (size_t i = 0; i < count; i++)
        if (strcmp(set[i].kind->name, "pool") == 0)
            ctl_pool_settle(o, set[i].resource);
}
