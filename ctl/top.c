/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl top nodes|tenants: all nodes' agents are asked for their workers, through the metaserver,
 * twice. What a worker did that ended between is not seen. */
#include "ctl/top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent_items_private.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "ctl/commands.h"
#include "ctl/format.h"
#include "ctl/rows.h"

enum {
    MAX_PAGES = 100000,
    INTERVAL_MS = 2000,
    INTERVAL_MAX_MS = 3600 * 1000,
    LINES_BYTES = 4 << 20,
    JSON_BYTES = 4096,
};

/* Nodes that could not be asked, at the second look. */
struct unasked {
    size_t count;
    struct base_text lines;
};

/* ---- looking */

static int add_page(const struct ctl_agent_item_page *page, struct ctl_top_look *look,
                    struct unasked *unasked, struct base_errbuf *err)
{
    int status = 0;
    for (size_t i = 0; i < page->count && status == 0; i++)
        status = ctl_top_add(look, page->item[i].json, err);
    for (size_t i = 0; i < page->gaps; i++, unasked->count++)
        base_text_printf(&unasked->lines, "rdmactl: %s was not asked: %s\n", page->gap[i].node,
                         page->gap[i].why);
    return status;
}

static int look_at_workers(const struct ctl_options *o, struct ctl_top_look *look,
                           struct unasked *unasked, struct base_errbuf *err)
{
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find("worker");
    struct ctl_agent_item_page page = {.next = ""};
    struct ctl_options of = *o;
    char cursor[sizeof page.next] = "";
    of.kind = kind->name;
    of.all_nodes = true;
    unasked->count = 0;
    base_text_reset(&unasked->lines);
    for (unsigned n = 0; n < MAX_PAGES; n++) {
        int status = ctl_agent_item_fetch(&of, kind, cursor, &page, err);
        if (status != 0)
            return status;
        status = add_page(&page, look, unasked, err);
        memcpy(cursor, page.next, sizeof cursor);
        ctl_agent_item_page_fini(&page);
        if (status != 0 || cursor[0] == '\0')
            return status;
    }
    return 0;
}

/* ---- shown */

static uint64_t rate_of(uint64_t count, uint64_t ns)
{
    return (uint64_t)((double)count * 1e9 / (double)(ns > 0 ? ns : 1) + 0.5);
}

static void add_row(const struct ctl_top_sum *s, uint64_t ns, bool by_node, struct ctl_rows *rows)
{
    char operations[24], sessions[24], leases[24], bytes[CTL_AMOUNT_BYTES],
        memory[CTL_AMOUNT_BYTES];
    struct base_text json;
    const bool counted = s->uncounted < s->sessions;
    base_text_init(&json, JSON_BYTES);
    base_json_object(&json, NULL);
    base_json_string(&json, by_node ? "node" : "tenant", s->name);
    if (counted) {
        base_json_u64(&json, "operations_per_s", rate_of(s->operations, ns));
        base_json_u64(&json, "bytes_per_s", rate_of(s->bytes, ns));
    } else {
        base_json_null(&json, "operations_per_s");
        base_json_null(&json, "bytes_per_s");
    }
    base_json_u64(&json, "sessions", s->sessions);
    base_json_u64(&json, "uncounted", s->uncounted);
    base_json_u64(&json, "arena_bytes", s->arena_bytes);
    base_json_u64(&json, "leases", s->leases);
    base_json_object_end(&json);
    snprintf(operations, sizeof operations, "%" PRIu64, rate_of(s->operations, ns));
    snprintf(sessions, sizeof sessions, "%zu", s->sessions);
    snprintf(leases, sizeof leases, "%" PRIu64, s->leases);
    ctl_rows_add(
        rows, s->name, base_text_str(&json),
        (const char *const[]){s->name, counted ? operations : "-",
                              counted ? ctl_format_rounded(rate_of(s->bytes, ns), bytes) : "-",
                              sessions, ctl_format_rounded(s->arena_bytes, memory), leases});
    base_text_fini(&json);
}

static int fill_rows(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    const bool by_node = strcmp(o->kind, "node") == 0;
    const char *const headings[] = {
        by_node ? "NODE" : "TENANT", "OPERATIONS/S", "BYTES/S", "SESSIONS", "MEMORY", "LEASES"};
    const uint64_t ms = o->interval_ms != 0 ? o->interval_ms : (uint64_t)INTERVAL_MS;
    struct ctl_top_look first = {.worker = NULL}, second = {.worker = NULL};
    size_t count;
    ctl_rows_head(rows, headings, 6);
    int status = look_at_workers(o, &first, rows->user, err);
    const uint64_t from = base_clock_ns();
    if (status == 0) {
        (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(ms / 1000),
                                           .tv_nsec = (long)(ms % 1000) * 1000000},
                        NULL);
        status = look_at_workers(o, &second, rows->user, err);
    }
    const uint64_t ns = base_clock_ns() - from;
    struct ctl_top_sum *sums = status == 0 ? ctl_top_sums(&first, &second, by_node, &count) : NULL;
    if (status == 0 && sums == NULL)
        status = base_err(err, -ENOMEM, "out of memory");
    for (size_t i = 0; sums != NULL && i < count; i++)
        add_row(&sums[i], ns, by_node, rows);
    if (o->json)
        base_json_u64(&rows->more, "interval_ms", ns / BASE_NS_PER_MS);
    free(sums);
    ctl_top_look_fini(&first);
    ctl_top_look_fini(&second);
    return status;
}

static void say_none(const struct ctl_options *o)
{
    (void)o;
    puts("no node has a worker now");
}

static int say_unasked(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    const struct unasked *unasked = rows->user;
    (void)o;
    if (unasked->count == 0)
        return 0;
    fflush(stdout);
    fputs(base_text_str(&unasked->lines), stderr);
    return base_err(err, -EHOSTUNREACH, "%zu of the nodes could not be asked", unasked->count);
}

int ctl_top(const struct ctl_options *o, struct base_errbuf *err)
{
    const struct ctl_list list = {.kind = o->kind,
                                  .plural = strcmp(o->kind, "node") == 0 ? "nodes" : "tenants",
                                  .fill = fill_rows,
                                  .say_none = say_none,
                                  .finish = say_unasked};
    struct unasked unasked = {.count = 0};
    struct ctl_options of = *o;
    if (o->interval_ms > INTERVAL_MAX_MS)
        return base_err(err, -EINVAL, "--interval is at most 1h");
    if (of.sort_by == NULL)
        of.sort_by = "-operations_per_s";
    base_text_init(&unasked.lines, LINES_BYTES);
    const int status = ctl_list_run(&of, &list, &unasked, err);
    base_text_fini(&unasked.lines);
    return status;
}
