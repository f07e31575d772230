/* SPDX-License-Identifier: Apache-2.0 */
/* The metaserver itself in the REST interface. schema/openapi.yaml describes it. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "base/version.h"
#include "rest_private.h"

#define CHECK_NS (2 * BASE_NS_PER_S) /* then a store that has not answered cannot be used */

void meta_rest_get_health(struct call *c)
{
    base_json_object(c->body, NULL);
    base_json_string(c->body, "status", "ok");
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
    if (w->job.outcome.status != 0) {
        meta_rest_problem(c, REST_STORE, w->job.outcome.err.text);
        return;
    }
    if (c->s->table_why[0] != '\0') {
        meta_rest_problem(c, REST_TABLE, c->s->table_why);
        return;
    }
    base_json_object(c->body, NULL);
    base_json_string(c->body, "status", "ready");
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
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
                                                    .free = free_check};
    struct meta_write *w = calloc(1, sizeof *w);
    if (w == NULL) {
        meta_rest_problem(c, REST_CROWDED, "out of memory: try again");
        return;
    }
    meta_write_init(w, &checking, c);
    w->came_ns = c->now;
    w->due_ns = c->now + CHECK_NS;
    meta_write_decide(c, w);
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
