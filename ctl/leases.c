/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl worker|lease list|get: asked of the local agent, which alone knows; or of other nodes'
 * agents, through the metaserver. And region list, which is the metaserver's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent_items_private.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "ctl/commands.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/rows.h"

enum {
    MAX_PAGES = 100000,
    PART_BYTES = 300,              /* of one name in it, encoded */
    REVOKE_MS = 35 * 1000,         /* the agent answers within 30 s */
    THROUGH_MS = 15 * 1000,        /* the metaserver waits 7 s for agents */
    REVOKE_THROUGH_MS = 40 * 1000, /* and then 35 */
    GAPS_BYTES = 4 << 20,
};

/* ---- tables */

static size_t columns_of(const struct ctl_agent_item_kind *kind, bool wide, size_t *shown)
{
    size_t n = 0;
    for (size_t i = 0; i < kind->columns; i++)
        if (wide || !kind->column[i].wide)
            shown[n++] = i;
    return n;
}

int ctl_agent_item_table_new(const struct ctl_agent_item_kind *kind, bool wide,
                             struct ctl_table **out)
{
    const char *headings[CTL_AGENT_ITEM_COLUMNS];
    size_t shown[CTL_AGENT_ITEM_COLUMNS], columns = columns_of(kind, wide, shown);
    for (size_t i = 0; i < columns; i++)
        headings[i] = kind->column[shown[i]].heading;
    return ctl_table_new(headings, columns, out);
}

void ctl_agent_item_rows(struct ctl_table *table, const struct ctl_agent_item_kind *kind, bool wide,
                         const struct ctl_agent_item_page *page)
{
    const char *cells[CTL_AGENT_ITEM_COLUMNS];
    size_t shown[CTL_AGENT_ITEM_COLUMNS], columns = columns_of(kind, wide, shown);
    for (size_t n = 0; n < page->count; n++) {
        for (size_t i = 0; i < columns; i++)
            cells[i] = page->item[n].cell[shown[i]];
        ctl_table_row(table, cells);
    }
}

/* ---- whom to ask */

/* Ids that the metaserver has shown begin with their node. */
static bool is_of_node(const char *id)
{
    return id != NULL && strchr(id, ':') != NULL;
}

static bool asks_server(const struct ctl_options *o)
{
    return ctl_agent_item_kind_find(o->kind)->of_server || o->node != NULL || o->all_nodes ||
           is_of_node(o->id) || is_of_node(o->worker);
}

int ctl_agent_item_call(const struct ctl_options *o, const char *method, const char *path,
                        struct http_result *out, struct base_errbuf *err)
{
    const bool revokes = strcmp(method, "DELETE") == 0;
    const struct ctl_request request = {
        .method = method, .path = path, .timeout_ms = revokes ? REVOKE_THROUGH_MS : THROUGH_MS};
    if (asks_server(o))
        return ctl_call_server(o, &request, out, err);
    return revokes ? ctl_delete_agent(o, path, REVOKE_MS, out, err)
                   : ctl_fetch_agent(o, path, out, err);
}

/* An id as whom we ask has it, as a part of a URL. */
static int encode_id(const struct ctl_options *o, const char *what, const char *id,
                     char out[PART_BYTES], struct base_errbuf *err)
{
    char own[PART_BYTES];
    const bool add = o->node != NULL && !is_of_node(id);
    const int length = snprintf(own, sizeof own, "%s%s%s", add ? o->node : "", add ? ":" : "", id);
    const size_t node = o->node != NULL ? strlen(o->node) : 0;
    if (!add && o->node != NULL && (strncmp(id, o->node, node) != 0 || id[node] != ':'))
        return base_err(err, -EINVAL, "%.110s is not of node %.63s", id, o->node);
    if (id[0] == '\0' || length >= (int)sizeof own || ctl_percent_encode(own, out, PART_BYTES) != 0)
        return base_err(err, -EINVAL, "\"%.60s\" is no %s's id: see rdmactl %s list", id, what,
                        what);
    return 0;
}

/* ---- list and get */

int ctl_agent_item_of_worker(const struct ctl_options *o, char *path, struct base_errbuf *err)
{
    char encoded[PART_BYTES];
    if (o->worker == NULL)
        return 0;
    const int status = encode_id(o, "worker", o->worker, encoded, err);
    if (status == 0)
        return ctl_add_encoded(path, CTL_AGENT_ITEM_PATH_BYTES, "worker", encoded, err);
    return status;
}

static int list_path(const struct ctl_options *o, const struct ctl_agent_item_kind *kind,
                     const char *cursor, char out[CTL_AGENT_ITEM_PATH_BYTES],
                     struct base_errbuf *err)
{
    snprintf(out, CTL_AGENT_ITEM_PATH_BYTES, "/v1/%s?limit=1000", kind->plural);
    int status = ctl_add_query(out, CTL_AGENT_ITEM_PATH_BYTES, "tenant", o->tenant, err);
    if (status == 0)
        status = ctl_agent_item_of_worker(o, out, err);
    if (status == 0)
        status = ctl_add_query(out, CTL_AGENT_ITEM_PATH_BYTES, "node", o->node, err);
    if (status == 0)
        status = ctl_add_query(out, CTL_AGENT_ITEM_PATH_BYTES, "cursor",
                               cursor[0] != '\0' ? cursor : NULL, err);
    return status;
}

int ctl_agent_item_fetch(const struct ctl_options *o, const struct ctl_agent_item_kind *kind,
                         const char *cursor, struct ctl_agent_item_page *out,
                         struct base_errbuf *err)
{
    struct http_result result;
    char path[CTL_AGENT_ITEM_PATH_BYTES];
    int status = list_path(o, kind, cursor, path, err);
    if (status == 0)
        status = ctl_agent_item_call(o, "GET", path, &result, err);
    if (status != 0)
        return status;
    status = ctl_decode_agent_items(kind, result.body, result.body_length, out, err);
    http_result_fini(&result);
    return status;
}

/* Nodes that could not be asked. */
struct gaps {
    size_t count;
    struct base_text lines;
};

static void add_page(const struct ctl_options *o, const struct ctl_agent_item_kind *kind,
                     const struct ctl_agent_item_page *page, struct ctl_rows *rows)
{
    struct gaps *gaps = rows->user;
    const char *cells[CTL_AGENT_ITEM_COLUMNS];
    size_t shown[CTL_AGENT_ITEM_COLUMNS], columns = columns_of(kind, o->wide, shown);
    for (size_t n = 0; n < page->count; n++) {
        const struct ctl_agent_item *item = &page->item[n];
        for (size_t i = 0; i < columns; i++)
            cells[i] = item->cell[shown[i]];
        ctl_rows_add(rows, item->cell[0], item->json, cells);
    }
    for (size_t i = 0; i < page->gaps; i++, gaps->count++) {
        base_json_raw(&rows->more, NULL, page->gap[i].json);
        base_text_printf(&gaps->lines, "rdmactl: %s was not asked: %s\n", page->gap[i].node,
                         page->gap[i].why);
    }
}

/* Page by page: there may be many. */
static int fill_pages(const struct ctl_options *o, const struct ctl_agent_item_kind *kind,
                      struct ctl_rows *rows, struct base_errbuf *err)
{
    struct ctl_agent_item_page page = {.next = ""};
    char cursor[sizeof page.next] = "";
    for (unsigned n = 0; n < MAX_PAGES; n++) {
        int status = ctl_agent_item_fetch(o, kind, cursor, &page, err);
        if (status != 0)
            return status;
        add_page(o, kind, &page, rows);
        memcpy(cursor, page.next, sizeof cursor);
        ctl_agent_item_page_fini(&page);
        if (cursor[0] == '\0')
            break;
    }
    return 0;
}

static int fill_rows(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find(o->kind);
    const char *headings[CTL_AGENT_ITEM_COLUMNS];
    size_t shown[CTL_AGENT_ITEM_COLUMNS], columns = columns_of(kind, o->wide, shown);
    struct gaps *gaps = rows->user;
    for (size_t i = 0; i < columns; i++)
        headings[i] = kind->column[shown[i]].heading;
    ctl_rows_head(rows, headings, columns);
    gaps->count = 0;
    base_text_reset(&gaps->lines);
    if (o->all_nodes)
        base_json_array(&rows->more, "unreachable");
    const int status = fill_pages(o, kind, rows, err);
    if (o->all_nodes)
        base_json_array_end(&rows->more);
    if (status == 0 && o->watch) /* else what is not shown seems to be gone */
        fputs(base_text_str(&gaps->lines), stderr);
    return status;
}

static void say_none(const struct ctl_options *o)
{
    printf("there is no %s%s %s now\n", o->tenant != NULL || o->worker != NULL ? "such " : "",
           o->kind,
           o->all_nodes     ? "on any node"
           : asks_server(o) ? "there"
                            : "on this host");
}

static int say_gaps(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    const struct gaps *gaps = rows->user;
    if (gaps->count == 0)
        return 0;
    fflush(stdout);
    if (!o->json)
        fputs(base_text_str(&gaps->lines), stderr);
    return base_err(err, -EHOSTUNREACH, "%zu of the nodes could not be asked", gaps->count);
}

int ctl_agent_item_list(const struct ctl_options *o, struct base_errbuf *err)
{
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find(o->kind);
    const struct ctl_list list = {.kind = kind->name,
                                  .plural = kind->plural,
                                  .events = kind->of_server ? "/v1/regions" : NULL,
                                  .fill = fill_rows,
                                  .say_none = say_none,
                                  .finish = say_gaps};
    struct gaps gaps = {.count = 0};
    base_text_init(&gaps.lines, GAPS_BYTES);
    const int status = ctl_list_run(o, &list, &gaps, err);
    base_text_fini(&gaps.lines);
    return status;
}

int ctl_agent_item_path(const struct ctl_options *o, const struct ctl_agent_item_kind *kind,
                        char out[CTL_AGENT_ITEM_PATH_BYTES], struct base_errbuf *err)
{
    char encoded[PART_BYTES];
    const int status = encode_id(o, kind->name, o->id, encoded, err);
    if (status == 0)
        snprintf(out, CTL_AGENT_ITEM_PATH_BYTES, "/v1/%s/%s", kind->plural, encoded);
    return status;
}

/* What has a unit in its name in JSON has it behind the number here. */
static void print_field(const struct ctl_agent_item_column *column, const char *value)
{
    const bool timed = column->unit == CTL_MS || column->unit == CTL_AGE;
    const size_t length = strlen(column->field), unit = timed ? strlen("_ms") : 0;
    printf("%-12.*s %s\n", (int)(length - unit), column->field, value);
}

static void print_sentences(const char *sentences)
{
    for (const char *end; (end = strchr(sentences, '\n')) != NULL; sentences = end + 1)
        printf("  %.*s\n", (int)(end - sentences), sentences);
}

void ctl_agent_item_print(const struct ctl_agent_item_kind *kind, const struct ctl_agent_item *item)
{
    for (size_t i = 0; i < kind->columns; i++)
        print_field(&kind->column[i], item->cell[i]);
    print_sentences(item->sentences);
}

int ctl_agent_item_fetch_one(const struct ctl_options *o, struct ctl_agent_item *out,
                             struct base_errbuf *err)
{
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find(o->kind);
    struct http_result result;
    char path[CTL_AGENT_ITEM_PATH_BYTES];
    int status = ctl_agent_item_path(o, kind, path, err);
    if (status == 0)
        status = ctl_agent_item_call(o, "GET", path, &result, err);
    if (status != 0)
        return status;
    status = ctl_decode_agent_item(kind, result.body, result.body_length, out, err);
    http_result_fini(&result);
    return status;
}

int ctl_agent_item_get(const struct ctl_options *o, struct base_errbuf *err)
{
    struct ctl_agent_item item;
    int status = ctl_agent_item_fetch_one(o, &item, err);
    if (status != 0)
        return status;
    if (o->json)
        status = ctl_json_print(item.json, err);
    else
        ctl_agent_item_print(ctl_agent_item_kind_find(o->kind), &item);
    ctl_agent_item_fini(&item);
    return status;
}
