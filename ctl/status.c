/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "ctl/commands.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/nodes.h"
#include "ctl/print_table.h"

enum { SUMMARY_BYTES = 700 };

/* One line of `status`. */
struct part {
    const char *name, *where;
    bool up;        /* it answers */
    bool ready;     /* and says so of itself */
    bool forbidden; /* this user, or what was shown, is refused: nothing is known of it */
    char summary[SUMMARY_BYTES];
};

static const char *state_of(const struct part *p)
{
    return p->ready ? "ready" : p->forbidden ? "forbidden" : p->up ? "not ready" : "down";
}

static bool is_refusal(int status)
{
    return status == -EACCES || status == -EPERM || status == -EKEYREJECTED;
}

static void count_nodes(const struct ctl_nodes *nodes, struct part *p, const char *version)
{
    size_t live = 0, waiting = 0, expired = 0, unreachable = 0, failing = 0, undecided = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        live += strcmp(nodes->node[i].state, "live") == 0;
        waiting += strcmp(nodes->node[i].state, "waiting") == 0;
        expired += strcmp(nodes->node[i].state, "expired") == 0;
        unreachable += strcmp(nodes->node[i].fabric.state, "unreachable") == 0;
        failing += strcmp(nodes->node[i].fabric.state, "failing") == 0;
        undecided += strcmp(nodes->node[i].fabric.state, "undecided") == 0;
    }
    snprintf(p->summary, sizeof p->summary, "version %s, nodes: %zu live, %zu waiting, %zu expired",
             version, live, waiting, expired);
    const size_t used = strlen(p->summary);
    char more[48] = "";
    if (undecided > 0)
        snprintf(more, sizeof more, ", %zu undecided", undecided);
    if (unreachable + failing + undecided > 0)
        snprintf(p->summary + used, sizeof p->summary - used,
                 "; over the fabric: %zu unreachable, %zu failing%s (rdmactl node list)",
                 unreachable, failing, more);
}

/* The status of the first question that failed. */
static int ask_metaserver(const struct ctl_options *o, struct part *p)
{
    struct http_result result;
    struct base_errbuf err;
    struct ctl_pairs pairs = {.pair = NULL};
    struct ctl_nodes nodes = {.node = NULL};
    const char *version = NULL;
    int status = ctl_fetch_server(o, "/version", &result, &err);
    if (status == 0) {
        status = ctl_decode_pairs(result.body, result.body_length, &pairs, &err);
        http_result_fini(&result);
    }
    p->up = status == 0;
    if (status == 0) {
        version = ctl_pairs_find(&pairs, "version");
        status = ctl_fetch_server(o, "/readyz", &result, &err);
    }
    if (status == 0) {
        http_result_fini(&result);
        status = ctl_nodes_fetch(o, &nodes, &err);
    }
    p->ready = status == 0;
    p->forbidden = is_refusal(status);
    if (p->ready)
        count_nodes(&nodes, p, version != NULL ? version : "unknown");
    else
        snprintf(p->summary, sizeof p->summary, "%s", err.text);
    ctl_nodes_fini(&nodes);
    ctl_pairs_fini(&pairs);
    return status;
}

/* What it says of itself: with whom it is registered, or why not. */
static void sum_up_agent(const struct http_result *result, struct part *p)
{
    struct ctl_pairs pairs = {.pair = NULL};
    struct base_errbuf err;
    const char *why = NULL, *metaservers = NULL;
    if (ctl_decode_pairs(result->body, result->body_length, &pairs, &err) == 0) {
        why = ctl_pairs_find(&pairs, "why");
        metaservers = ctl_pairs_find(&pairs, "metaservers");
    }
    if (why != NULL)
        snprintf(p->summary, sizeof p->summary, "%s", why);
    else
        snprintf(p->summary, sizeof p->summary, "workers attach, metaservers that have it: %s",
                 metaservers != NULL ? metaservers : "unknown");
    ctl_pairs_fini(&pairs);
}

static void ask_agent(const struct ctl_options *o, struct part *p)
{
    struct http_result result;
    struct base_errbuf err;
    int status = ctl_fetch_agent(o, "/healthz", &result, &err);
    p->up = status == 0;
    if (status == 0) {
        http_result_fini(&result);
        status = ctl_fetch_agent(o, "/readyz", &result, &err);
    }
    p->ready = status == 0;
    p->forbidden = is_refusal(status);
    if (p->ready) {
        sum_up_agent(&result, p);
        http_result_fini(&result);
    } else {
        snprintf(p->summary, sizeof p->summary, "%s", err.text);
    }
}

static void print_json(const struct part *part, size_t count)
{
    struct base_text t;
    struct base_errbuf err;
    base_text_init(&t, 1 << 16);
    ctl_json_begin(&t);
    for (size_t i = 0; i < count; i++) {
        base_json_object(&t, part[i].name);
        base_json_string(&t, "at", part[i].where);
        base_json_bool(&t, "up", part[i].up);
        base_json_bool(&t, "ready", part[i].ready);
        base_json_string(&t, "state", state_of(&part[i]));
        base_json_string(&t, "summary", part[i].summary);
        base_json_object_end(&t);
    }
    base_json_object_end(&t);
    (void)ctl_json_finish(&t, &err);
}

int ctl_status(const struct ctl_options *o, struct base_errbuf *err)
{
    static const char *const headings[] = {"PART", "AT", "STATE", "SUMMARY"};
    static struct part part[2];
    struct ctl_table *table;
    part[0] = (struct part){.name = "metaserver"};
    part[1] = (struct part){.name = "agent", .where = o->agent_socket};
    int failed = ask_metaserver(o, &part[0]);
    part[0].where = ctl_server_asked(o);
    ask_agent(o, &part[1]); /* this host need not have one */
    if (o->json) {
        print_json(part, 2);
    } else {
        int status = ctl_table_new(headings, 4, &table);
        for (size_t i = 0; i < 2 && status == 0; i++)
            ctl_table_row(table, (const char *const[]){part[i].name, part[i].where,
                                                       state_of(&part[i]), part[i].summary});
        if (status == 0) {
            status = ctl_table_print(table);
            ctl_table_free(table);
        }
        if (status != 0)
            return base_err(err, status, "printing failed: %s", strerror(-status));
    }
    return failed == 0 ? 0 : base_err(err, failed, "%s", part[0].summary);
}
