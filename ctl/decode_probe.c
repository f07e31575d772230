/* SPDX-License-Identifier: Apache-2.0 */
/* A probe's report from JSON to plain structs; beside decode.c the one place that knows jansson. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "ctl/probe.h"

static void read_word(json_t *object, const char *name, char *out, size_t size)
{
    (void)base_copy_printable(out, size, json_string_value(json_object_get(object, name)));
}

static int check_from(json_t *object, struct ctl_check *c, struct base_errbuf *err)
{
    static const char *const results[] = {"ok", "warning", "failed", "skipped"};
    char result[16];
    size_t level = 0;
    *c = (struct ctl_check){.name = ""};
    read_word(object, "check", c->name, sizeof c->name);
    read_word(object, "result", result, sizeof result);
    read_word(object, "found", c->found, sizeof c->found);
    read_word(object, "advice", c->advice, sizeof c->advice);
    while (level < sizeof results / sizeof results[0] && strcmp(results[level], result) != 0)
        level++;
    if (c->name[0] == '\0' || level == sizeof results / sizeof results[0])
        return base_err(err, -EBADMSG, "the report holds a check without a name or a result");
    c->level = (enum ctl_level)level;
    if (json_object_size(json_object_get(object, "numbers")) > 0)
        c->numbers = json_dumps(json_object_get(object, "numbers"), JSON_COMPACT);
    return 0;
}

static void candidate_from(json_t *object, struct ctl_candidate *c)
{
    json_int_t port = json_integer_value(json_object_get(object, "port"));
    *c = (struct ctl_candidate){.chosen = json_is_true(json_object_get(object, "chosen"))};
    read_word(object, "device", c->device, sizeof c->device);
    read_word(object, "driver", c->driver, sizeof c->driver);
    read_word(object, "firmware", c->firmware, sizeof c->firmware);
    read_word(object, "state", c->state, sizeof c->state);
    read_word(object, "gid", c->gid, sizeof c->gid);
    read_word(object, "gid_kind", c->kind, sizeof c->kind);
    read_word(object, "why", c->why, sizeof c->why);
    if (port > 0)
        snprintf(c->port, sizeof c->port, "%u", (unsigned)port & 0xff);
}

static int fill_probe(json_t *root, struct ctl_probe *p, struct base_errbuf *err)
{
    json_t *verdict = json_object_get(root, "verdict"), *each;
    json_t *checks = json_object_get(root, "checks"), *candidates;
    size_t i;
    read_word(root, "provider", p->provider, sizeof p->provider);
    p->by_proc = json_is_true(json_object_get(root, "by_proc"));
    read_word(root, "device", p->device, sizeof p->device);
    read_word(root, "gid", p->gid, sizeof p->gid);
    json_array_foreach(checks, i, each)
    {
        if (p->checks == CTL_PROBE_CHECKS)
            return base_err(err, -EBADMSG, "the report holds more than %d checks",
                            CTL_PROBE_CHECKS);
        int status = check_from(each, &p->check[p->checks], err);
        if (status != 0)
            return status;
        p->checks++;
    }
    candidates = json_object_get(root, "candidates");
    json_array_foreach(candidates, i, each)
    {
        if (p->candidates < CTL_PROBE_CANDIDATES)
            candidate_from(each, &p->candidate[p->candidates++]);
    }
    p->usable = json_is_true(json_object_get(verdict, "usable"));
    p->rc = json_is_true(json_object_get(verdict, "rc"));
    p->dc = json_is_true(json_object_get(verdict, "dc"));
    read_word(verdict, "sentence", p->sentence, sizeof p->sentence);
    if (!json_is_object(verdict) || !json_is_array(checks) || p->sentence[0] == '\0')
        return base_err(err, -EBADMSG, "the report has no checks or no verdict");
    (void)json_object_del(root, "checks");
    (void)json_object_del(root, "verdict");
    p->rest = json_dumps(root, JSON_COMPACT);
    return p->rest != NULL ? 0 : base_err(err, -ENOMEM, "out of memory");
}

int ctl_probe_decode(const char *body, size_t bytes, struct ctl_probe *out, struct base_errbuf *err)
{
    char report[32];
    json_error_t error;
    json_t *root = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, &error);
    memset(out, 0, sizeof *out);
    if (root == NULL)
        return base_err(err, -EBADMSG, "the report is not JSON (%.100s)", error.text);
    read_word(root, "report", report, sizeof report);
    json_int_t version = json_integer_value(json_object_get(root, "version"));
    int status;
    if (strcmp(report, "kedge-probe") != 0 || version != CTL_PROBE_VERSION)
        status = base_err(err, -EBADMSG,
                          "the report is of another kind or version than this rdmactl knows: "
                          "install both programs from one release");
    else
        status = fill_probe(root, out, err);
    json_decref(root);
    if (status != 0)
        ctl_probe_fini(out);
    return status;
}

void ctl_probe_fini(struct ctl_probe *probe)
{
    for (size_t i = 0; i < CTL_PROBE_CHECKS; i++)
        free(probe->check[i].numbers);
    free(probe->rest);
    memset(probe, 0, sizeof *probe);
}
