/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "ctl/checks.h"
#include "ctl/commands.h"
#include "ctl/decode.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/probe.h"
#include "ctl/print_table.h"

enum { DOCTOR_VERSION = 1, HOST_CHECKS = 16, SERVER_CHECKS = 2, REPORT_BYTES = 8 << 20 };
static const char *const levels[] = {"ok", "warning", "failed", "skipped"};

/* All that was found, in the order in which it is shown. */
struct findings {
    struct ctl_check check[HOST_CHECKS + CTL_PROBE_CHECKS + SERVER_CHECKS];
    size_t count;
    size_t first_probed, end_probed; /* those of the probe stand between these */
    bool probed, usable;
    char sentence[1100];
};

/* What to do about a daemon that is not well: its own sentence says what is the matter. */
static const char *choose_advice(const char *name, bool answers)
{
    const bool agent = strcmp(name, "agent") == 0;
    if (answers)
        return agent ? "rdmactl agent status on this host says more, and the agent's log says when"
                     : "rdmactl status says more, and the metaserver's log says when";
    return agent ? "if this host is to run one, systemctl start kedge-agentd, or name its socket "
                   "with --agent-socket; if it runs, its log says more"
                 : "systemctl start kedge-metad where it is to run, or name it with --server; if "
                   "it runs, its log says more";
}

/* Of one that is ready, what it says is amiss all the same. */
static void tell_amiss(struct ctl_check *c, const struct http_result *result)
{
    struct ctl_pairs pairs = {.pair = NULL};
    struct base_errbuf err;
    const char *why = NULL;
    if (ctl_decode_pairs(result->body, result->body_length, &pairs, &err) == 0)
        why = ctl_pairs_find(&pairs, "why");
    if (why != NULL && why[0] != '\0') {
        c->level = CTL_WARN;
        const size_t used = strlen(c->found);
        snprintf(c->found + used, sizeof c->found - used, ", but %s", why);
        snprintf(c->advice, sizeof c->advice, "%s", choose_advice(c->name, true));
    }
    ctl_pairs_fini(&pairs);
}

/* Servers that do not run yet are no fault of the host. */
static void report_server(struct ctl_check *c, const char *name, const char *where, int status,
                          struct http_result *result, const struct base_errbuf *err)
{
    *c = (struct ctl_check){.level = status == 0 ? CTL_OK : CTL_WARN};
    snprintf(c->name, sizeof c->name, "%s", name);
    if (status == 0) {
        snprintf(c->found, sizeof c->found, "%.120s is ready", where);
        tell_amiss(c, result);
        http_result_fini(result);
        return;
    }
    snprintf(c->found, sizeof c->found, "%.120s is not ready: %.360s", where, err->text);
    snprintf(c->advice, sizeof c->advice, "%s", choose_advice(name, false));
}

/* The program's checks in place of those of the host that it knows better. */
static void add_probe(struct findings *f, const struct ctl_options *o, struct ctl_probe *probe)
{
    struct base_errbuf why = {.text = ""};
    int status = ctl_probe_run(o, probe, &why);
    f->probed = status == 0;
    if (f->probed) {
        f->count = ctl_checks_leave(f->check, f->count, probe->by_proc);
        f->first_probed = f->count;
        for (size_t i = 0; i < probe->checks; i++)
            f->check[f->count++] = probe->check[i];
        f->end_probed = f->count;
        return;
    }
    struct ctl_check *c = &f->check[f->count++];
    *c = (struct ctl_check){.name = "device", .level = status == -ENOENT ? CTL_WARN : CTL_FAIL};
    snprintf(c->found, sizeof c->found, "not tried: %.500s", why.text);
    snprintf(c->advice, sizeof c->advice, "%s",
             status == -ENOENT ? "install the agent on this host, if it is to run one"
                               : "do what it says, and run this again");
}

/* A check of the host that failed; the probe's own are in its verdict. */
static const struct ctl_check *find_obstacle(const struct findings *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->check[i].level == CTL_FAIL && (i < f->first_probed || i >= f->end_probed))
            return &f->check[i];
    return NULL;
}

static void judge_host(struct findings *f, const struct ctl_probe *probe)
{
    const struct ctl_check *bad = find_obstacle(f);
    bool device_is_bad = f->probed && !probe->usable;
    f->usable = bad == NULL && !device_is_bad;
    if (bad != NULL && !device_is_bad)
        snprintf(f->sentence, sizeof f->sentence,
                 "Kedge cannot run on this host, because %s failed: %s", bad->name, bad->found);
    else
        snprintf(f->sentence, sizeof f->sentence, "%s",
                 f->probed ? probe->sentence
                           : "Nothing keeps Kedge from running on this host, but its device was "
                             "not tried");
}

static int print_json(const struct findings *f, const struct ctl_probe *probe)
{
    struct base_text t;
    base_text_init(&t, REPORT_BYTES);
    ctl_json_begin(&t);
    base_json_string(&t, "report", "kedge-doctor");
    base_json_i64(&t, "version", DOCTOR_VERSION);
    base_json_string(&t, "kedge", KEDGE_VERSION);
    base_json_array(&t, "checks");
    for (size_t i = 0; i < f->count; i++) {
        const struct ctl_check *c = &f->check[i];
        base_json_object(&t, NULL);
        base_json_string(&t, "check", c->name);
        base_json_string(&t, "result", levels[c->level]);
        base_json_string(&t, "found", c->found);
        base_json_string(&t, "advice", c->advice);
        base_json_raw(&t, "numbers", c->numbers != NULL ? c->numbers : "{}");
        base_json_object_end(&t);
    }
    base_json_array_end(&t);
    base_json_object(&t, "verdict");
    base_json_bool(&t, "usable", f->usable);
    base_json_bool(&t, "rc", f->probed && probe->rc);
    base_json_bool(&t, "dc", f->probed && probe->dc);
    base_json_string(&t, "sentence", f->sentence);
    base_json_object_end(&t);
    base_json_raw(&t, "probe", f->probed ? probe->rest : "null");
    base_json_object_end(&t);
    struct base_errbuf err;
    return ctl_json_finish(&t, &err);
}

static int print_candidates(const struct ctl_probe *probe)
{
    static const char *const headings[] = {"",      "DEVICE", "DRIVER", "FIRMWARE", "PORT",
                                           "STATE", "GID",    "KIND",   "WHY"};
    struct ctl_table *table;
    if (probe->candidates == 0)
        return 0;
    int status = ctl_table_new(headings, 9, &table);
    if (status != 0)
        return status;
    for (size_t i = 0; i < probe->candidates; i++) {
        const struct ctl_candidate *c = &probe->candidate[i];
        ctl_table_row(table, (const char *const[]){c->chosen ? "->" : "", c->device, c->driver,
                                                   c->firmware, c->port, c->state, c->gid, c->kind,
                                                   c->why});
    }
    status = ctl_table_print(table);
    ctl_table_free(table);
    putchar('\n');
    return status;
}

static int print_text(const struct findings *f, const struct ctl_probe *probe)
{
    static const char *const headings[] = {"RESULT", "CHECK", "FOUND"};
    struct ctl_table *table;
    int status = f->probed ? print_candidates(probe) : 0;
    if (status == 0)
        status = ctl_table_new(headings, 3, &table);
    if (status != 0)
        return status;
    for (size_t i = 0; i < f->count; i++) {
        const struct ctl_check *c = &f->check[i];
        char advice[sizeof c->advice + 16];
        ctl_table_row(table, (const char *const[]){levels[c->level], c->name, c->found});
        snprintf(advice, sizeof advice, "what to do: %s", c->advice);
        if (c->advice[0] != '\0')
            ctl_table_row(table, (const char *const[]){"", "", advice});
    }
    status = ctl_table_print(table);
    ctl_table_free(table);
    if (status == 0)
        printf("\n%s.\nTo send this report to whoever can help: rdmactl doctor -o json "
               ">report.json\n",
               f->sentence);
    return status;
}

int ctl_doctor(const struct ctl_options *o, struct base_errbuf *err)
{
    static struct findings f;
    static struct ctl_probe probe;
    struct http_result result;
    struct base_errbuf why = {.text = ""};
    if (o->serve != NULL)
        return ctl_probe_serve(o, err);
    f.count = ctl_checks_host(f.check, HOST_CHECKS);
    add_probe(&f, o, &probe);
    int status = ctl_fetch_agent(o, "/readyz", &result, &why);
    report_server(&f.check[f.count++], "agent", o->agent_socket, status, &result, &why);
    status = ctl_fetch_server(o, "/readyz", &result, &why);
    report_server(&f.check[f.count++], "metaserver", ctl_server_asked(o), status, &result, &why);
    judge_host(&f, &probe);
    status = o->json ? print_json(&f, &probe) : print_text(&f, &probe);
    ctl_probe_fini(&probe); /* and the numbers of its checks, which f has borrowed */
    if (status != 0)
        return base_err(err, status, "printing failed: %s", strerror(-status));
    return f.usable ? 0
                    : base_err(err, -EIO, "something failed: do what the rows of the report say");
}
