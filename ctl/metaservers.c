/* SPDX-License-Identifier: Apache-2.0 */
/* rdmactl metaserver list: the one that is asked says which share its store; each of the others is
 * asked by its own URL how it is. */
#include "ctl/metaservers.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "ctl/commands.h"
#include "describe_private.h"
#include "ctl/fetch.h"
#include "ctl/format.h"
#include "ctl/resources.h"
#include "ctl/rows.h"

enum { ROW_BYTES = 1 << 16, COLUMNS = 14, NUMBER_BYTES = 48, STORE_BYTES = 256 };

static const char path[] = "/v1/metaservers";

/* Those that are there, and how many of them did not answer. */
struct found {
    struct ctl_metaserver member[CTL_METASERVERS_MAX];
    size_t count, unasked;
};

/* What a metaserver says is where the others are: nothing but HTTP, and with TLS where it has TLS,
 * so that what is shown to them is seen by no more people than before. */
static bool may_be_asked(const struct ctl_options *o, const char *url)
{
    return strncmp(url, "https://", 8) == 0 ||
           (strncmp(url, "http://", 7) == 0 && strncmp(ctl_server_asked(o), "https://", 8) != 0);
}

static int ask_other(const struct ctl_options *o, const struct ctl_metaserver *m,
                     struct http_result *out, struct base_errbuf *err)
{
    struct ctl_options of = *o;
    if (m->url[0] == '\0')
        return base_err(err, -EHOSTUNREACH,
                        "it does not say by which URL it is reached: set "
                        "`advertise` in its settings");
    if (!may_be_asked(o, m->url))
        return base_err(err, -EACCES, "it is not asked by %.200s, which is not https://", m->url);
    of.server = m->url;
    of.servers = NULL;
    return ctl_fetch_server(&of, path, out, err);
}

/* ---- a row */

static const char *word_of(const struct ctl_metaserver_state *s)
{
    return s == NULL             ? "unknown"
           : s->behind           ? "behind"
           : s->error[0] != '\0' ? "failing"
           : s->awaited > 0      ? "filling"
                                 : "ready";
}

static const char *say_why(const struct ctl_metaserver_state *s, char out[CTL_TEXT_BYTES])
{
    if (s->error[0] != '\0')
        return s->error;
    if (s->awaited == 0)
        return s->warning[0] != '\0' ? s->warning : "-";
    snprintf(out, CTL_TEXT_BYTES, "endpoints that have not registered here yet: %" PRIu64,
             s->awaited);
    return out;
}

/* Those that share one say the same here, and one that is alone says so. */
static const char *say_store(const struct ctl_metaserver_state *s, char out[STORE_BYTES])
{
    if (s->kind[0] == '\0')
        return "-";
    snprintf(out, STORE_BYTES, "%s%s%s%s%s", s->kind, s->prefix[0] != '\0' ? " " : "", s->prefix,
             s->id[0] != '\0' ? " " : "", s->id);
    return out;
}

static void say_numbers(const struct ctl_metaserver_state *s, char out[6][NUMBER_BYTES])
{
    const uint64_t room = s->max_endpoints != 0 ? s->max_endpoints : s->slots;
    snprintf(out[0], NUMBER_BYTES, "%" PRIu64, s->revision);
    snprintf(out[1], NUMBER_BYTES, "%" PRIu64, s->live);
    snprintf(out[2], NUMBER_BYTES, "%" PRIu64 " of %" PRIu64, s->used, room);
    snprintf(out[3], NUMBER_BYTES, "%" PRIu64, s->agents);
    snprintf(out[4], NUMBER_BYTES, "%" PRIu64, s->errors);
    snprintf(out[5], NUMBER_BYTES, "%" PRIu64, s->followers);
}

/* s NULL: it did not answer, and why. */
static int add_row(const struct ctl_options *o, const struct ctl_metaserver *m,
                   const struct ctl_metaserver_state *s, const struct http_result *answer,
                   const char *why, struct ctl_rows *rows, struct base_errbuf *err)
{
    char number[6][NUMBER_BYTES] = {"-", "-", "-", "-", "-", "-"}, lag[CTL_AMOUNT_BYTES] = "-";
    char text[CTL_TEXT_BYTES], store[STORE_BYTES];
    struct base_text json;
    base_text_init(&json, ROW_BYTES);
    const int status =
        ctl_metaserver_json(m, answer != NULL ? answer->body : NULL,
                            answer != NULL ? answer->body_length : 0, why, &json, err);
    if (s != NULL) {
        say_numbers(s, number);
        why = say_why(s, text);
    }
    if (s != NULL && s->shared && s->says_heard)
        (void)ctl_format_age(s->heard_ms_ago, lag);
    const char *short_row[] = {m->name,   word_of(s), number[0], lag,
                               number[1], number[2],  number[5], why};
    const char *wide_row[] = {m->name,
                              m->url[0] != '\0' ? m->url : "-",
                              m->version[0] != '\0' ? m->version : "-",
                              word_of(s),
                              number[0],
                              lag,
                              number[1],
                              number[2],
                              s != NULL ? s->generation : "-",
                              s != NULL ? say_store(s, store) : "-",
                              number[5],
                              number[3],
                              number[4],
                              why};
    if (status == 0)
        ctl_rows_add(rows, m->name, base_text_str(&json), o->wide ? wide_row : short_row);
    base_text_fini(&json);
    return status;
}

static int add_other(const struct ctl_options *o, struct found *found,
                     const struct ctl_metaserver *m, struct ctl_rows *rows, struct base_errbuf *err)
{
    static struct ctl_metaserver others[CTL_METASERVERS_MAX];
    struct ctl_metaserver_state state;
    struct http_result answer;
    struct base_errbuf why;
    size_t count;
    int status = ask_other(o, m, &answer, &why);
    if (status != 0) {
        found->unasked++;
        return add_row(o, m, NULL, NULL, why.text, rows, err);
    }
    status = ctl_decode_metaservers(answer.body, answer.body_length, others, &count, &state, &why);
    if (status == 0) {
        status = add_row(o, m, &state, &answer, NULL, rows, err);
    } else {
        found->unasked++;
        status = add_row(o, m, NULL, NULL, why.text, rows, err);
    }
    http_result_fini(&answer);
    return status;
}

static int fill_rows(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    static const char *const headings[] = {"NAME",  "STATE", "REVISION",  "LAG",
                                           "NODES", "TABLE", "FOLLOWERS", "WHY"};
    static const char *const wide[COLUMNS] = {
        "NAME",  "URL",        "VERSION", "STATE",     "REVISION", "LAG",    "NODES",
        "TABLE", "GENERATION", "STORE",   "FOLLOWERS", "AGENTS",   "ERRORS", "WHY"};
    struct found *found = rows->user;
    struct ctl_metaserver_state self;
    struct http_result first;
    ctl_rows_head(rows, o->wide ? wide : headings, o->wide ? COLUMNS : 8);
    found->unasked = 0;
    int status = ctl_fetch_server(o, path, &first, err);
    if (status != 0)
        return status;
    status = ctl_decode_metaservers(first.body, first.body_length, found->member, &found->count,
                                    &self, err);
    for (size_t i = 0; status == 0 && i < found->count; i++)
        status = found->member[i].self
                     ? add_row(o, &found->member[i], &self, &first, NULL, rows, err)
                     : add_other(o, found, &found->member[i], rows, err);
    http_result_fini(&first);
    return status;
}

static int say_unasked(const struct ctl_options *o, struct ctl_rows *rows, struct base_errbuf *err)
{
    const struct found *found = rows->user;
    (void)o;
    return found->unasked == 0
               ? 0
               : base_err(err, -EHOSTUNREACH, "%zu of the metaservers did not say how they are",
                          found->unasked);
}

int ctl_metaserver_list(const struct ctl_options *o, struct base_errbuf *err)
{
    static const struct ctl_list list = {
        .kind = "metaserver", .plural = "metaservers", .fill = fill_rows, .finish = say_unasked};
    static struct found found;
    return ctl_list_run(o, &list, &found, err);
}

static void print_row(const struct ctl_rows *rows, const struct ctl_row *row)
{
    for (size_t i = 0; i < rows->columns; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s", rows->heading[i]);
        for (char *c = name; *c != '\0'; c++)
            *c = (char)tolower((unsigned char)*c);
        printf("%-12s %s\n", name, row->cell[i]);
    }
}

int ctl_metaserver_describe(const struct ctl_options *o, struct base_text *json,
                            struct base_errbuf *err)
{
    static struct found found;
    struct ctl_options wide = *o;
    struct ctl_rows rows;
    const struct ctl_row *row = NULL;
    wide.wide = true;
    ctl_rows_init(&rows, &found);
    int status = fill_rows(&wide, &rows, err);
    if (status == 0 && rows.error != 0)
        status = base_err(err, rows.error, "out of memory");
    for (size_t i = 0; status == 0 && i < rows.count; i++)
        if (strcmp(rows.row[i].id, o->id) == 0)
            row = &rows.row[i];
    if (status == 0 && row == NULL)
        status = ctl_no_such("metaserver", o->id, "", err);
    if (status == 0 && json != NULL)
        base_json_raw(json, "status", row->json);
    if (status == 0 && json == NULL) {
        printf("%s %s\n\nstatus\n", o->kind, o->id);
        print_row(&rows, row);
    }
    ctl_rows_fini(&rows);
    return status;
}
