/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl describe worker|lease|region|metaserver: pages on what nobody sets. Workers and leases
 * are asked of the agent that has them, as worker get and lease get do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent_items_private.h"
#include "base/json_writer.h"
#include "ctl/commands.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/nodes.h"
#include "ctl/resources.h"
#include "describe_private.h"

enum { OUTPUT_BYTES = 1 << 22, TENANT_BYTES = 64 };

/* Its cell of that member of its JSON. */
static const char *cell_of(const struct ctl_agent_item_kind *kind,
                           const struct ctl_agent_item *item, const char *field)
{
    for (size_t i = 0; i < kind->columns; i++)
        if (strcmp(kind->column[i].field, field) == 0)
            return item->cell[i];
    return "-";
}

/* json NULL: to standard output, with what is above it on the page. */
static void show_item(const char *member, const struct ctl_agent_item_kind *kind,
                      const struct ctl_agent_item *item, struct base_text *json)
{
    if (json != NULL) {
        base_json_raw(json, member, item->json);
        return;
    }
    printf("\n%s\n", member);
    ctl_agent_item_print(kind, item);
}

/* What the page is on. */
static void show_status(const struct ctl_options *o, const struct ctl_agent_item *item,
                        struct base_text *json)
{
    if (json == NULL)
        printf("%s %s\n", o->kind, o->id);
    show_item("status", ctl_agent_item_kind_find(o->kind), item, json);
}

/* ---- of a worker its leases, of a lease its worker */

static int print_leases(const struct ctl_options *o, struct base_text *json,
                        struct base_errbuf *err)
{
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find("lease");
    struct ctl_agent_item_page page = {.next = ""};
    struct ctl_table *table = NULL;
    char cursor[sizeof page.next] = "";
    size_t count = 0;
    int status = json == NULL ? ctl_agent_item_table_new(kind, true, &table) : 0;
    if (json != NULL)
        base_json_array(json, "leases");
    do {
        if (status == 0)
            status = ctl_agent_item_fetch(o, kind, cursor, &page, err);
        if (status != 0)
            break;
        count += page.count;
        if (table != NULL)
            ctl_agent_item_rows(table, kind, true, &page);
        for (size_t i = 0; json != NULL && i < page.count; i++)
            base_json_raw(json, NULL, page.item[i].json);
        memcpy(cursor, page.next, sizeof cursor);
        ctl_agent_item_page_fini(&page);
    } while (cursor[0] != '\0');
    if (json != NULL)
        base_json_array_end(json);
    if (status == 0 && table != NULL) {
        puts("\nleases");
        status = count > 0 ? ctl_table_print(table) : (puts("it has none"), 0);
    }
    if (table != NULL)
        ctl_table_free(table);
    return status;
}

static int describe_worker(const struct ctl_options *o, struct base_text *json,
                           struct base_errbuf *err)
{
    struct ctl_options of = *o;
    struct ctl_agent_item item;
    int status = ctl_agent_item_fetch_one(o, &item, err);
    if (status != 0)
        return status;
    show_status(o, &item, json);
    ctl_agent_item_fini(&item);
    of.kind = "lease";
    of.worker = o->id;
    of.id = NULL;
    return print_leases(&of, json, err);
}

static int describe_lease(const struct ctl_options *o, struct base_text *json,
                          struct base_errbuf *err)
{
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find("lease");
    struct ctl_options of = *o;
    struct ctl_agent_item lease, worker;
    int status = ctl_agent_item_fetch_one(o, &lease, err);
    if (status != 0)
        return status;
    show_status(o, &lease, json);
    of.kind = "worker";
    of.id = cell_of(kind, &lease, "worker");
    status = ctl_agent_item_fetch_one(&of, &worker, err);
    ctl_agent_item_fini(&lease);
    if (status == -ENOENT) { /* its memory is still to come back */
        if (json == NULL)
            puts("\nworker\nit has left");
        return 0;
    }
    if (status != 0)
        return status;
    show_item("worker", ctl_agent_item_kind_find("worker"), &worker, json);
    ctl_agent_item_fini(&worker);
    return 0;
}

/* ---- of a region's name its node */

static int show_node(const struct ctl_options *o, const char *id, struct base_text *json,
                     struct base_errbuf *err)
{
    struct http_result result;
    struct ctl_node node;
    char path[CTL_NODE_PATH_BYTES];
    int status = ctl_node_path(id, path, err);
    if (status == 0)
        status = ctl_fetch_server(o, path, &result, err);
    if (status == -ENOENT) { /* the name is about to be nobody's */
        if (json == NULL)
            puts("\nnode\nit is gone");
        return 0;
    }
    if (status != 0)
        return status;
    status = ctl_decode_node(result.body, result.body_length, &node, err);
    http_result_fini(&result);
    if (status == 0 && json != NULL) {
        struct base_text text;
        base_text_init(&text, OUTPUT_BYTES);
        ctl_node_json(&text, &node);
        base_json_raw(json, "node", base_text_str(&text));
        base_text_fini(&text);
    } else if (status == 0) {
        puts("\nnode");
        status = ctl_node_print(&node, err);
    }
    return status;
}

/* There may be many, and only lists of them are to be had: that of the tenant, which it names. */
static int find_region(const struct ctl_options *o, char node[CTL_CELL_BYTES],
                       struct base_text *json, struct base_errbuf *err)
{
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find("region");
    struct ctl_options of = *o;
    struct ctl_agent_item_page page = {.next = ""};
    char cursor[sizeof page.next] = "", tenant[TENANT_BYTES];
    bool found = false;
    snprintf(tenant, sizeof tenant, "%.*s", (int)strcspn(o->id, ",/"), o->id);
    of.tenant = tenant;
    do {
        int status = ctl_agent_item_fetch(&of, kind, cursor, &page, err);
        if (status != 0)
            return status;
        for (size_t i = 0; i < page.count && !found; i++) {
            const struct ctl_agent_item *item = &page.item[i];
            found = ctl_agent_item_is(item, o->id);
            if (!found)
                continue;
            show_status(o, item, json);
            snprintf(node, CTL_CELL_BYTES, "%s", cell_of(kind, item, "node"));
        }
        memcpy(cursor, page.next, sizeof cursor);
        ctl_agent_item_page_fini(&page);
    } while (!found && cursor[0] != '\0');
    return found ? 0 : ctl_no_such("region", o->id, "", err);
}

static int describe_region(const struct ctl_options *o, struct base_text *json,
                           struct base_errbuf *err)
{
    char node[CTL_CELL_BYTES] = "";
    int status = find_region(o, node, json, err);
    if (status == 0)
        status = show_node(o, node, json, err);
    return status == 0 ? ctl_describe_events(o, "node,liveness", node, json, err) : status;
}

/* ---- a metaserver */

static int describe_metaserver(const struct ctl_options *o, struct base_text *json,
                               struct base_errbuf *err)
{
    const int status = ctl_metaserver_describe(o, json, err);
    return status == 0 ? ctl_describe_events(o, "certificate", o->id, json, err) : status;
}

int ctl_describe_shown(const struct ctl_options *o, struct base_errbuf *err)
{
    static const struct {
        const char *kind;
        int (*describe)(const struct ctl_options *o, struct base_text *json,
                        struct base_errbuf *err);
    } kinds[] = {{"worker", describe_worker},
                 {"lease", describe_lease},
                 {"region", describe_region},
                 {"metaserver", describe_metaserver}};
    struct base_text json;
    int status = -EINVAL;
    base_text_init(&json, OUTPUT_BYTES);
    ctl_json_begin(&json);
    base_json_string(&json, "kind", o->kind);
    base_json_string(&json, "name", o->id);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, o->kind) == 0)
            status = kinds[i].describe(o, o->json ? &json : NULL, err);
    base_json_object_end(&json);
    if (status == 0 && o->json)
        return ctl_json_finish(&json, err);
    base_text_fini(&json);
    return status;
}
