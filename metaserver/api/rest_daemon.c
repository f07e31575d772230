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
#define KNOWN_NS                                                                                   \
    (1 * BASE_NS_PER_S) /* what a shared store did last says so long whether it can                \
                         */

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
    bool hears_why; /* else that it fails alone: sentences name addresses and devices */
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

/* Of those who are to register here: it is ready for them, and what others READ of it waits. */
static void write_awaited(struct call *c)
{
    const struct meta_directory_counts n = meta_directory_count(c->s->directory);
    if (n.awaited > 0)
        base_text_printf(c->body,
                         "nodes ok: the agents of %u of %u nodes have still to register here, with "
                         "%u of %u endpoints\n",
                         n.waiting, n.nodes - n.expired, n.awaited, n.endpoints);
}

static const char hidden_why[] = "show a token of the scope reader to hear why";

static void hide_whys(struct finding *at, int count)
{
    for (int i = 0; i < count; i++)
        if (at[i].why[0] != '\0')
            at[i].why = hidden_why;
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
    const struct check *check = (const struct check *)w;
    char unread[READY_WHY_BYTES];
    struct finding at[READY_CHECKS] = {
        {"store", store_why, REST_STORE},
        {"device", s->table_why, REST_TABLE},
        {"table", find_unread(s, unread), REST_TABLE},
        {"watch", find_unheard(s, c->now), REST_STORE},
    };
    const int count = s->hearing.shared ? READY_CHECKS : READY_CHECKS - 1;
    if (!check->hears_why)
        hide_whys(at, count);
    if (check->verbose) {
        write_findings(c, at, count);
        if (check->hears_why) {
            write_awaited(c);
            if (meta_service_is_open_to_all(s))
                base_text_printf(c->body, "store ok: %s\n", meta_service_open_to_all);
        }
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

/* Whether what a shared store did last is answer enough: strangers' probes are to cost it nothing.
 */
static bool answer_known(struct call *c, const struct meta_write *w)
{
    const struct meta_writes *q = &c->s->writes;
    const bool fails = meta_service_is_read_only(c->s);
    const uint64_t as_of = fails ? q->failed_ns : q->did_ns;
    if (!c->s->hearing.shared || as_of == 0 || c->now - as_of >= KNOWN_NS)
        return false;
    say_ready(c, w, q->why.text);
    return true;
}

/* A transaction in which there is nothing: when the last one failed, the store tries to write. Of
 * those who wait for their turn with a shared store one costs it that, and the others hear of it.
 */
static bool begin_check(struct call *c, struct meta_write *w)
{
    if (answer_known(c, w))
        return false;
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
    struct meta_violation violation;
    check->verbose = verbose != NULL;
    check->hears_why = meta_access_decide(&c->caller, !c->s->tokens_needed, META_NEED_READER,
                                          META_AGENT_NO, "", &violation) == 0;
    if (answer_known(c, &check->write)) {
        free(check);
        return;
    }
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
