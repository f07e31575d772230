/* SPDX-License-Identifier: Apache-2.0 */
/* The metaserver itself in the REST interface. schema/openapi.yaml describes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "base/version.h"
#include "metaserver/directory_reach.h"
#include "rest_private.h"

#define CHECK_NS (2 * BASE_NS_PER_S) /* then a store that has not answered cannot be used */

/* /healthz, and /livez as Kubernetes calls it: the loop turns, whatever store and device do. */
void meta_rest_get_health(struct call *c)
{
    base_json_object(c->body, NULL);
    base_json_string(c->body, "status", "ok");
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

/* ---- whether it is ready */

enum { READY_CHECKS = 4, READY_WHY_BYTES = 96 };

struct check {
    struct meta_write write;
    bool verbose;
};

/* One of what there is to check, alone: why it failed; "": it has not. */
struct finding {
    const char *name, *why;
    enum meta_rest_problem problem;
};

/* Those who tried may be wrong, but not most of several. */
static const char *find_unread(const struct meta_service *s, char why[READY_WHY_BYTES])
{
    const struct meta_reach_counts n = meta_directory_reach_count(s->directory);
    why[0] = '\0';
    if (n.table_failed >= 2 && 2 * n.table_failed > n.table_tried)
        snprintf(why, READY_WHY_BYTES, "%u of %u nodes that tried cannot READ it", n.table_failed,
                 n.table_tried);
    return why;
}

/* Of a store that others write to as well. */
static const char *find_unheard(const struct meta_service *s, uint64_t now)
{
    if (!s->hearing.shared || !meta_service_is_behind(s, now))
        return "";
    return s->hearing.why.text[0] != '\0' ? s->hearing.why.text
                                          : "not all that other metaservers have written is here";
}

static void write_findings(struct call *c, const struct finding *at, int count)
{
    bool ready = true;
    for (int i = 0; i < count; i++) {
        const bool failed = at[i].why[0] != '\0';
        ready &= !failed;
        base_text_printf(c->body, "%s %s%s%s\n", at[i].name, failed ? "failed" : "ok",
                         failed ? ": " : "", at[i].why);
    }
    c->answer->status = ready ? 200 : 503;
    c->answer->content_type = "text/plain; charset=utf-8";
}

static void say_ready(struct call *c, const struct meta_write *w, const char *store_why)
{
    const struct meta_service *s = c->s;
    char unread[READY_WHY_BYTES];
    const struct finding at[READY_CHECKS] = {
        {"store", store_why, REST_STORE},
        {"device", s->table_why, REST_TABLE},
        {"table", find_unread(s, unread), REST_TABLE},
        {"watch", find_unheard(s, c->now), REST_STORE},
    };
    const int count = s->hearing.shared ? READY_CHECKS : READY_CHECKS - 1;
    if (((const struct check *)w)->verbose) {
        write_findings(c, at, count);
        return;
    }
    for (int i = 0; i < count; i++)
        if (at[i].why[0] != '\0') {
            meta_rest_problem(c, at[i].problem, at[i].why);
            return;
        }
    base_json_object(c->body, NULL);
    base_json_string(c->body, "status", "ready");
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

/* A transaction in which there is nothing: when the last one failed, the store tries to write. */
static bool begin_check(struct call *c, struct meta_write *w)
{
    (void)c;
    w->job.txn = (struct meta_store_txn){.compare = false};
    return true;
}

static void end_check(struct call *c, struct meta_write *w)
{
    say_ready(c, w, w->job.outcome.status != 0 ? w->job.outcome.err.text : "");
}

static void fail_check(struct call *c, struct meta_write *w, const char *why)
{
    say_ready(c, w, why);
}

static void free_check(struct meta_write *w)
{
    free(w);
}

void meta_rest_get_ready(struct call *c)
{
    static const struct meta_write_kind checking = {.what = "checking",
                                                    .check = true,
                                                    .begin = begin_check,
                                                    .end = end_check,
                                                    .late = fail_check,
                                                    .free = free_check};
    const char *verbose = c->request->parameter[META_PARAMETER_VERBOSE];
    if (verbose != NULL && verbose[0] != '\0' && strcmp(verbose, "1") != 0) {
        meta_rest_malformed(c, "verbose", "has no value, or 1");
        return;
    }
    struct check *check = calloc(1, sizeof *check);
    if (check == NULL) {
        meta_rest_problem(c, REST_CROWDED, "out of memory: try again");
        return;
    }
    meta_write_init(&check->write, &checking, c);
    check->verbose = verbose != NULL;
    check->write.came_ns = c->now;
    check->write.due_ns = c->now + CHECK_NS;
    meta_write_decide(c, &check->write);
}

void meta_rest_get_metrics(struct call *c)
{
    c->answer->content_type = BASE_METRICS_TYPE;
    meta_service_metrics(c->s, c->body);
}

void meta_rest_get_version(struct call *c)
{
    base_json_object(c->body, NULL);
    base_json_string(c->body, "program", "kedge-metad");
    base_json_string(c->body, "version", KEDGE_VERSION);
    base_json_string(c->body, "commit", base_version_commit());
    base_json_u64(c->body, "record_version", SCHEMA_RECORD_VERSION);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}
