/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl event list|watch, and the other kinds' watch. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/commands.h"
#include "ctl/events.h"
#include "ctl/fetch.h"
#include "ctl/json.h"
#include "ctl/resources.h"
#include "ctl/rows.h"
#include "ctl/since.h"

enum {
    MAX_PAGES = 100000,
    CURSOR_BYTES = 256,
    PATH_BYTES = 1024,
    SILENCE_MS = 15000, /* five heartbeats */
    LINE_BYTES = 1 << 20,
};

/* ---- list */

struct listing {
    struct ctl_rows *rows;
    bool failed;
    const char *since;        /* older ones are left out; NULL: none are */
    struct ctl_event *newest; /* a ring of `room`, owned; NULL: all are shown as they come */
    uint64_t room, seen;
    uint64_t revision;             /* of the newest one, shown or not */
    char position[CTL_WORD_BYTES]; /* of the newest one of a node; "": there is none */
};

static void show_event(struct listing *l, const struct ctl_event *e)
{
    char revision[24], name[CTL_WORD_BYTES + CTL_ID_BYTES];
    snprintf(revision, sizeof revision, "%" PRIu64, e->revision);
    snprintf(name, sizeof name, "%s %s", e->kind, e->name);
    ctl_rows_add(l->rows, revision, e->json,
                 (const char *const[]){revision, e->time, e->who, name, e->what});
}

static void add_event(void *user, const struct ctl_event *e)
{
    struct listing *l = user;
    l->revision = e->revision > l->revision ? e->revision : l->revision;
    if (e->position[0] != '\0')
        memcpy(l->position, e->position, sizeof l->position);
    if (l->since != NULL && strcmp(e->time, l->since) < 0)
        return;
    if (l->newest == NULL) {
        show_event(l, e);
        return;
    }
    struct ctl_event *place = &l->newest[l->seen++ % l->room];
    ctl_event_fini(place);
    *place = *e;
    place->json = strdup(e->json);
    l->failed |= place->json == NULL;
}

static int show_newest(struct listing *l, struct base_errbuf *err)
{
    if (l->failed)
        return base_err(err, -ENOMEM, "out of memory");
    for (uint64_t i = l->seen > l->room ? l->seen - l->room : 0; i < l->seen; i++)
        show_event(l, &l->newest[i % l->room]);
    return 0;
}

/* What of the trail is asked for, behind its path. 0 or -EINVAL. */
static int add_filter(const struct ctl_options *o, char path[PATH_BYTES], struct base_errbuf *err)
{
    int status = ctl_add_query(path, PATH_BYTES, "kind", o->kind, err);
    return status == 0 ? ctl_add_query(path, PATH_BYTES, "name", o->name, err) : status;
}

static int fetch_pages(const struct ctl_options *o, struct listing *l, struct base_errbuf *err)
{
    char path[PATH_BYTES], next[CURSOR_BYTES] = "";
    int status = 0;
    for (unsigned page = 0; page < MAX_PAGES; page++) {
        struct http_result result;
        snprintf(path, sizeof path, "/v1/events?limit=1000");
        status = add_filter(o, path, err);
        if (status == 0)
            status = ctl_add_query(path, sizeof path, "cursor", next[0] != '\0' ? next : NULL, err);
        if (status == 0)
            status = ctl_fetch_server(o, path, &result, err);
        if (status != 0)
            break;
        status = ctl_decode_events(result.body, result.body_length, add_event, l, next, sizeof next,
                                   err);
        http_result_fini(&result);
        if (status != 0 || next[0] == '\0')
            break;
    }
    return status;
}

static int list_pages(const struct ctl_options *o, struct listing *l, struct base_errbuf *err)
{
    const int status = fetch_pages(o, l, err);
    return status == 0 && l->newest != NULL ? show_newest(l, err) : status;
}

int ctl_events_newest(const struct ctl_options *o, const char *kinds, const char *name,
                      struct ctl_event *out, size_t max, size_t *count, struct base_errbuf *err)
{
    struct ctl_options of = *o;
    struct listing l = {.room = max};
    of.kind = kinds;
    of.name = name;
    l.newest = calloc(max, sizeof *l.newest);
    int status = l.newest != NULL ? fetch_pages(&of, &l, err) : -ENOMEM;
    if (status == 0 && l.failed)
        status = -ENOMEM;
    if (status == -ENOMEM)
        base_err(err, status, "out of memory");
    *count = 0;
    for (uint64_t i = l.seen > max ? l.seen - max : 0; status == 0 && i < l.seen; i++) {
        out[(*count)++] = l.newest[i % max];
        l.newest[i % max].json = NULL;
    }
    for (size_t i = 0; l.newest != NULL && i < max; i++)
        ctl_event_fini(&l.newest[i]);
    free(l.newest);
    return status;
}

static int fill_rows(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    static const char *const headings[] = {"REVISION", "TIME", "WHO", "WHAT", "CHANGE"};
    struct listing *l = rows->user;
    l->rows = rows;
    ctl_rows_head(rows, headings, 5);
    if (l->room > 0 && (l->newest = calloc(l->room, sizeof *l->newest)) == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    return list_pages(o, l, err);
}

static void say_none(const struct ctl_options *o)
{
    puts(o->kind != NULL || o->name != NULL || o->since != NULL
             ? "there is no such event yet"
             : "nobody has changed anything yet");
}

/* The events behind those that were listed. */
static int watch_on(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    const struct listing *l = rows->user;
    struct ctl_options on = *o;
    on.from_revision = true;
    on.revision = l->revision;
    on.position = l->position[0] != '\0' ? l->position : NULL;
    if (fflush(stdout) != 0)
        return base_err(err, -EIO, "standard output cannot be written");
    return ctl_event_watch(&on, err);
}

int ctl_event_list(const struct ctl_options *o, struct base_errbuf *err)
{
    static const struct ctl_list list = {.kind = "event",
                                         .plural = "events",
                                         .fill = fill_rows,
                                         .say_none = say_none,
                                         .watch = watch_on};
    struct listing l = {.room = o->limit};
    char since[CTL_SINCE_BYTES];
    int status = o->since != NULL ? ctl_since_parse(o->since, since, err) : 0;
    if (status != 0)
        return status;
    l.since = o->since != NULL ? since : NULL;
    status = ctl_list_run(o, &list, &l, err);
    for (uint64_t i = 0; l.newest != NULL && i < l.room; i++)
        ctl_event_fini(&l.newest[i]);
    free(l.newest);
    return status;
}

/* ---- watch */

struct watching {
    bool json, over;
    int status; /* what it ended with, if not 0 */
    bool refused;
    bool lost;                     /* it ended as no stream does whose metaserver is well */
    uint64_t revision;             /* of the last change, or where it began */
    char position[CTL_WORD_BYTES]; /* of the last event of a node, likewise; "": not known */
    struct base_errbuf *err;
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
    w->revision = e.revision > w->revision ? e.revision : w->revision;
    if (e.position[0] != '\0')
        memcpy(w->position, e.position, sizeof w->position);
    ctl_event_fini(&e);
    return w->status != 0 || fflush(stdout) != 0;
}

static void on_done(void *user, const struct http_answer *a)
{
    struct watching *w = user;
    w->over = true;
    w->lost = false;
    if (w->status != 0)
        return; /* has been said */
    if (ferror(stdout)) {
        w->status = base_err(w->err, -EIO, "standard output cannot be written");
    } else if (a->status < 0) {
        w->lost = true;
        w->status = base_err(w->err, a->status, "the metaserver cannot be watched: %.300s", a->why);
    } else if (a->status >= 300) {
        w->lost = ctl_is_for_another(a->status);
        w->refused = !w->lost;
        w->status = ctl_judge("the metaserver", a->status, a->body, a->body_length, w->err);
    } else {
        w->lost = true;
        w->status = -ECONNRESET;
        base_err(w->err, w->status, "the stream has ended");
    }
}

/* Where the trail is now, as far as that is not said. */
static int find_end(const struct ctl_options *o, struct watching *w, struct base_errbuf *err)
{
    uint64_t revision;
    char position[CTL_WORD_BYTES];
    struct http_result result;
    struct base_errbuf why;
    int status = ctl_fetch_server(o, "/v1/events?limit=1", &result, &why);
    if (status != 0)
        return base_err(err, status, "the metaserver cannot be watched: %.300s", why.text);
    status = ctl_decode_revision(result.body, result.body_length, &revision, position, err);
    http_result_fini(&result);
    if (status != 0)
        return status;
    if (!o->from_revision)
        w->revision = revision;
    if (o->position == NULL)
        memcpy(w->position, position, sizeof w->position);
    return 0;
}

static int watch_target(const struct ctl_options *o, const struct watching *w,
                        struct ctl_target *out, struct base_errbuf *err)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/v1/events?watch=1&revision=%" PRIu64, w->revision);
    int status = add_filter(o, path, err);
    if (status == 0)
        status = ctl_add_query(path, sizeof path, "position",
                               w->position[0] != '\0' ? w->position : NULL, err);
    return status == 0 ? ctl_target_find(o, path, out, err) : status;
}

/* Until it ends. */
static int run_stream(const struct ctl_options *o, struct watching *w, struct base_errbuf *err)
{
    struct http_client *client;
    struct ctl_target target;
    w->over = false;
    w->status = 0;
    int status = watch_target(o, w, &target, err);
    if (status != 0)
        return status;
    struct http_call call = {.timeout_ms = UINT32_MAX,
                             .silence_timeout_ms = SILENCE_MS,
                             .max_response_bytes = LINE_BYTES,
                             .on_line = on_line};
    ctl_aim(&call, &target);
    status = http_client_new(&client);
    if (status != 0)
        return base_err(err, status, "the HTTP client cannot begin: %s", strerror(-status));
    status = http_client_call(client, &call, on_done, w, NULL);
    if (status != 0)
        base_err(err, status, "%.200s cannot be watched: %s", target.url, strerror(-status));
    struct pollfd p = {.fd = http_client_fd(client), .events = POLLIN};
    while (status == 0 && !w->over) {
        (void)poll(&p, 1, -1);
        http_client_run(client);
    }
    http_client_free(client);
    return status;
}

/* Where another metaserver of the same store goes on: changes have the same revisions there, and
 * what it saw of nodes has its own positions, of which those until now are past. */
static int go_on(const struct ctl_options *o, struct watching *w, struct base_errbuf *err)
{
    struct ctl_options on = *o;
    if (!w->lost || !ctl_server_go_on(o, err->text))
        return w->status;
    fputs("note: what became of nodes and certificates in between is not told: list them\n",
          stderr);
    on.from_revision = true;
    on.position = NULL;
    return find_end(&on, w, err);
}

int ctl_event_watch(const struct ctl_options *o, struct base_errbuf *err)
{
    struct watching w = {.json = o->json, .revision = o->revision, .err = err};
    snprintf(w.position, sizeof w.position, "%s", o->position != NULL ? o->position : "");
    int status = o->from_revision && o->position != NULL ? 0 : find_end(o, &w, err);
    while (status == 0) {
        status = run_stream(o, &w, err);
        if (status == 0)
            status = go_on(o, &w, err);
        else
            return status;
    }
    if (w.over && !w.refused) {
        struct base_errbuf why = *err;
        base_err(err, status, "%.300s; go on with --revision %" PRIu64 "%s%s", why.text, w.revision,
                 w.position[0] != '\0' ? " --position " : "", w.position);
    }
    return status;
}
