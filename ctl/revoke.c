/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl lease revoke: of one lease, of all of a worker's, or of all workers' of a node, worker by
 * worker. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_items_private.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "ctl/commands.h"
#include "ctl/json.h"

enum { MAX_PAGES = 100000, FAILED_BYTES = 4 << 20 };

/* ---- one lease, or a worker */

static int revoke_path(const struct ctl_options *o, const struct ctl_agent_item_kind *kind,
                       char out[CTL_AGENT_ITEM_PATH_BYTES], struct base_errbuf *err)
{
    int status = 0;
    if (o->id != NULL)
        status = ctl_agent_item_path(o, kind, out, err);
    else
        snprintf(out, CTL_AGENT_ITEM_PATH_BYTES, "/v1/%s", kind->plural);
    if (status == 0 && o->id == NULL)
        status = ctl_agent_item_of_worker(o, out, err);
    if (status == 0)
        status = ctl_add_query(out, CTL_AGENT_ITEM_PATH_BYTES, "force", o->force ? "1" : NULL, err);
    return status;
}

static int print_revoked(const struct ctl_options *o, const struct ctl_agent_item_kind *kind,
                         const struct ctl_revoked *r, struct base_errbuf *err)
{
    struct ctl_table *table;
    if (r->leases.count == 0) {
        puts("it has no lease that could be revoked");
        return 0;
    }
    int status = ctl_agent_item_table_new(kind, o->wide, &table);
    if (status == 0) {
        ctl_agent_item_rows(table, kind, o->wide, &r->leases);
        status = ctl_table_print(table);
        ctl_table_free(table);
    }
    if (status != 0)
        return base_err(err, status, "printing failed: %s", strerror(-status));
    printf("\nwhat breaks: %s\n", r->breaks);
    return 0;
}

/* 0, also when they are not over yet: *body is the answer's object, the caller's to fini as *out.
 */
static int revoke_leases(const struct ctl_options *o, struct http_result *body,
                         struct ctl_revoked *out, struct base_errbuf *err)
{
    char path[CTL_AGENT_ITEM_PATH_BYTES];
    int status = revoke_path(o, ctl_agent_item_kind_find("lease"), path, err);
    if (status == 0)
        status = ctl_agent_item_call(o, "DELETE", path, body, err);
    if (status != 0)
        return status;
    status = ctl_decode_revoked(body->body, body->body_length, out, err);
    if (status != 0)
        http_result_fini(body);
    return status;
}

static int check_over(const struct ctl_revoked *r, struct base_errbuf *err)
{
    return r->over ? 0
                   : base_err(err, -ETIMEDOUT,
                              "they are withdrawn, but somebody may still reach them: see "
                              "rdmactl lease list for when that is over");
}

static int revoke_one(const struct ctl_options *o, struct base_errbuf *err)
{
    struct http_result result;
    struct ctl_revoked r;
    int status = revoke_leases(o, &result, &r, err);
    if (status != 0)
        return status;
    if (o->json)
        status = ctl_json_print(result.body, err);
    else
        status = print_revoked(o, ctl_agent_item_kind_find("lease"), &r, err);
    if (status == 0)
        status = check_over(&r, err);
    http_result_fini(&result);
    ctl_agent_item_page_fini(&r.leases);
    return status;
}

/* ---- all of a node */

/* Workers that have leases. */
struct holders {
    char (*id)[CTL_CELL_BYTES]; /* owned */
    size_t count;
};

static const char *cell_of(const struct ctl_agent_item_kind *kind,
                           const struct ctl_agent_item *item, const char *field)
{
    for (size_t i = 0; i < kind->columns; i++)
        if (strcmp(kind->column[i].field, field) == 0)
            return item->cell[i];
    return "";
}

static int add_holders(const struct ctl_agent_item_kind *kind,
                       const struct ctl_agent_item_page *page, struct holders *h,
                       struct base_errbuf *err)
{
    void *grown = realloc(h->id, (h->count + page->count + 1) * sizeof h->id[0]);
    if (grown == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    h->id = grown;
    for (size_t i = 0; i < page->count; i++)
        if (strcmp(cell_of(kind, &page->item[i], "leases"), "0") != 0)
            snprintf(h->id[h->count++], sizeof h->id[0], "%s", cell_of(kind, &page->item[i], "id"));
    return 0;
}

static int find_holders(const struct ctl_options *o, struct holders *h, struct base_errbuf *err)
{
    const struct ctl_agent_item_kind *kind = ctl_agent_item_kind_find("worker");
    struct ctl_agent_item_page page = {.next = ""};
    char cursor[sizeof page.next] = "";
    for (unsigned n = 0; n < MAX_PAGES; n++) {
        int status = ctl_agent_item_fetch(o, kind, cursor, &page, err);
        if (status != 0)
            return status;
        status = add_holders(kind, &page, h, err);
        memcpy(cursor, page.next, sizeof cursor);
        ctl_agent_item_page_fini(&page);
        if (status != 0 || cursor[0] == '\0')
            return status;
    }
    return 0;
}

struct revoking {
    size_t done, failed;
    int status;            /* of the first that failed */
    struct base_text says; /* of those that failed, as JSON */
};

static void note_failure(const struct ctl_options *o, const char *worker, int status,
                         const struct base_errbuf *why, struct revoking *r)
{
    if (o->json) {
        base_json_object(&r->says, NULL);
        base_json_string(&r->says, "worker", worker);
        base_json_string(&r->says, "why", why->text);
        base_json_object_end(&r->says);
    }
    fflush(stdout);
    fprintf(stderr, "rdmactl: worker %s: %s\n", worker, why->text);
    if (r->failed++ == 0)
        r->status = status;
}

static void print_of(const struct ctl_options *o, const char *worker,
                     const struct http_result *result, const struct ctl_revoked *revoked,
                     struct revoking *r)
{
    struct base_errbuf why;
    if (o->json) {
        ctl_json_list_item(r->done == 0, result->body); /* the end of its line is a blank */
    } else {
        printf("%sworker %s:\n", r->done > 0 ? "\n" : "", worker);
        (void)print_revoked(o, ctl_agent_item_kind_find("lease"), revoked, &why);
    }
    r->done++;
    fflush(stdout);
}

/* One that fails does not keep the others'. */
static void revoke_of(const struct ctl_options *o, const char *worker, struct revoking *r)
{
    struct ctl_options of = *o;
    struct http_result result;
    struct base_errbuf why;
    struct ctl_revoked revoked;
    of.worker = worker;
    int status = revoke_leases(&of, &result, &revoked, &why);
    if (status == -ENOENT) /* it has ended meanwhile, and its leases with it */
        return;
    if (status == 0) {
        print_of(o, worker, &result, &revoked, r);
        status = check_over(&revoked, &why);
        http_result_fini(&result);
        ctl_agent_item_page_fini(&revoked.leases);
    }
    if (status != 0)
        note_failure(o, worker, status, &why, r);
}

static int revoke_all(const struct ctl_options *o, struct base_errbuf *err)
{
    struct holders h = {.id = NULL};
    struct revoking r = {.status = 0};
    int status = find_holders(o, &h, err);
    base_text_init(&r.says, FAILED_BYTES);
    if (status == 0 && o->json)
        ctl_json_list("revoked");
    for (size_t i = 0; i < h.count && status == 0; i++)
        revoke_of(o, h.id[i], &r);
    if (status == 0 && o->json)
        ctl_json_list_end_with("failed", base_text_str(&r.says));
    else if (status == 0 && r.done + r.failed == 0)
        puts("no worker there has a lease");
    if (r.status != 0)
        status = base_err(err, r.status, "of %zu workers the leases are not revoked, or not yet",
                          r.failed);
    base_text_fini(&r.says);
    free(h.id);
    return status;
}

int ctl_lease_revoke(const struct ctl_options *o, struct base_errbuf *err)
{
    return o->all ? revoke_all(o, err) : revoke_one(o, err);
}
