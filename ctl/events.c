/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl event list|watch, and tenant|window watch. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "ctl/commands.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/settings.h"
#include "ctl/table.h"

enum {
    MAX_PAGES = 100000,
    CURSOR_BYTES = 256,
    PATH_BYTES = 1024,
    SILENCE_MS = 15000, /* five heartbeats */
    LINE_BYTES = 1 << 20,
};

/* ---- list ----------------------------------------------------------------------------------- */

struct listing {
    bool json, any;
    struct ctl_table *table;
};

static void add_event(void *user, const struct ctl_event *e)
{
    struct listing *l = user;
    char revision[24], name[CTL_WORD_BYTES + CTL_ID_BYTES];
    if (l->json) {
        printf("%s%s", l->any ? "," : "", e->json);
    } else {
        snprintf(revision, sizeof revision, "%" PRIu64, e->revision);
        snprintf(name, sizeof name, "%s %s", e->kind, e->name);
        ctl_table_row(l->table, (const char *const[]){revision, e->time, e->who, name, e->what});
    }
    l->any = true;
}

static int list_pages(const struct ctl_options *o, struct listing *l, struct kedge_errbuf *err)
{
    char path[PATH_BYTES] = "/v1/events?limit=1000", next[CURSOR_BYTES], encoded[3 * CURSOR_BYTES];
    int status = 0;
    for (unsigned page = 0; page < MAX_PAGES; page++) {
        struct kedge_http_result result;
        status = ctl_fetch_server(o, path, &result, err);
        if (status != 0)
            break;
        if (l->json && page == 0)
            printf("{" CTL_FORMAT ",\"events\":[");
        status = ctl_decode_events(result.body, result.body_length, add_event, l, next, sizeof next,
                                   err);
        kedge_http_result_fini(&result);
        if (status != 0 || next[0] == '\0')
            break;
        (void)ctl_percent_encode(next, encoded, sizeof encoded); /* it always fits */
        snprintf(path, sizeof path, "/v1/events?limit=1000&cursor=%s", encoded);
    }
    return status;
}

int ctl_event_list(const struct ctl_options *o, struct kedge_errbuf *err)
{
    static const char *const headings[] = {"REVISION", "TIME", "WHO", "WHAT", "CHANGE"};
    struct listing l = {.json = o->json};
    int status = ctl_table_new(headings, 5, &l.table);
    if (status != 0)
        return kedge_err(err, status, "out of memory");
    status = list_pages(o, &l, err);
    if (status == 0 && o->json)
        puts("]}");
    else if (status == 0 && !l.any)
        puts("nobody has changed anything yet");
    else if (status == 0 && (status = ctl_table_print(l.table)) != 0)
        kedge_err(err, status, "printing failed: %s", strerror(-status));
    ctl_table_free(l.table);
    return status;
}

/* ---- watch ---------------------------------------------------------------------------------- */

struct watching {
    bool json, over;
    int status;        /* what it ended with, if not 0 */
    uint64_t revision; /* of the last event */
    struct kedge_errbuf *err;
};

static int on_line(void *user, const char *line, size_t length)
{
    struct watching *w = user;
    struct ctl_event e;
    if (length == 0) /* a heartbeat: time to see whether anybody reads this */
        return fflush(stdout) != 0;
    w->status = ctl_decode_event(line, length, &e, w->err);
    if (w->status != 0)
        return w->status;
    if (w->json)
        w->status = ctl_json_print(e.json, w->err);
    else
        printf("%s  %" PRIu64 "  %s %s  %s  (%s)\n", e.time, e.revision, e.kind, e.name, e.what,
               e.who);
    w->revision = e.revision;
    ctl_event_fini(&e);
    return w->status != 0 || fflush(stdout) != 0;
}

static void on_done(void *user, const struct kedge_http_answer *a)
{
    struct watching *w = user;
    w->over = true;
    if (w->status != 0)
        return; /* has been said */
    if (ferror(stdout)) {
        w->status = kedge_err(w->err, -EIO, "standard output cannot be written");
    } else if (a->status < 0) {
        w->status =
            kedge_err(w->err, a->status, "the metaserver cannot be watched: %.300s", a->why);
    } else if (a->status >= 300) {
        w->status = ctl_judge("the metaserver", a->status, a->body, a->body_length, w->err);
    } else {
        w->status = -ECONNRESET;
        kedge_err(w->err, w->status, "the stream has ended");
    }
}

static int watch_target(const struct ctl_options *o, struct ctl_target *out,
                        struct kedge_errbuf *err)
{
    char path[PATH_BYTES], revision[40] = "", kind[CTL_WORD_BYTES] = "";
    if (o->kind != NULL)
        snprintf(kind, sizeof kind, "&kind=%.40s", o->kind);
    if (o->from_revision)
        snprintf(revision, sizeof revision, "&revision=%" PRIu64, o->revision);
    snprintf(path, sizeof path, "/v1/events?watch=1%s%s", kind, revision);
    return ctl_target_of(o, path, out, err);
}

int ctl_event_watch(const struct ctl_options *o, struct kedge_errbuf *err)
{
    struct watching w = {.json = o->json, .err = err};
    struct kedge_http_client *client;
    struct ctl_target target;
    int status = watch_target(o, &target, err);
    if (status != 0)
        return status;
    struct kedge_http_call call = {.timeout_ms = UINT32_MAX,
                                   .silence_timeout_ms = SILENCE_MS,
                                   .max_response_bytes = LINE_BYTES,
                                   .on_line = on_line};
    ctl_aim(&call, &target);
    status = kedge_http_client_new(&client);
    if (status != 0)
        return kedge_err(err, status, "the HTTP client cannot begin: %s", strerror(-status));
    status = kedge_http_client_call(client, &call, on_done, &w, NULL);
    if (status != 0)
        kedge_err(err, status, "%.200s cannot be watched: %s", target.url, strerror(-status));
    struct pollfd p = {.fd = kedge_http_client_fd(client), .events = POLLIN};
    while (status == 0 && !w.over) {
        (void)poll(&p, 1, -1);
        kedge_http_client_run(client);
    }
    kedge_http_client_free(client);
    if (status != 0)
        return status;
    if (w.revision != 0) {
        struct kedge_errbuf why = *err;
        kedge_err(err, w.status, "%.300s; go on with --revision %" PRIu64, why.text, w.revision);
    }
    return w.status;
}
