/* SPDX-License-Identifier: Apache-2.0 */
/* What agents are told of the settings, and the trail of changes: once, or as a stream. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "metaserver/settings_json.h"
#include "rest_private.h"

#define PAGE_BYTES (1 << 16) /* then a page of the trail ends, however few changes it has */

/* What a client says of watching. */
struct wish {
    bool watch;
    bool known;   /* it has this revision */
    bool answers; /* it is the node's agent, and answers questions */
    uint64_t revision;
};

/* Else the answer has been given. */
static bool read_wish(struct call *c, struct wish *out)
{
    const char *watch = c->request->query[KEDGE_QUERY_WATCH];
    const char *revision = c->request->query[KEDGE_QUERY_REVISION];
    const char *answers = c->request->query[KEDGE_QUERY_ANSWERS];
    *out = (struct wish){
        .watch = watch != NULL, .known = revision != NULL, .answers = answers != NULL};
    if (watch != NULL && strcmp(watch, "1") != 0)
        rest_malformed(c, "watch", "must be 1");
    else if (answers != NULL && (watch == NULL || strcmp(answers, "1") != 0))
        rest_malformed(c, "answers", "must be 1, and is for watch=1 alone");
    else if (revision != NULL && watch == NULL)
        rest_malformed(c, "revision", "is for watch=1 alone");
    else if (revision != NULL && kedge_parse_u64(revision, 0, UINT64_MAX, &out->revision) != 0)
        rest_malformed(c, "revision", "must be the revision of an earlier answer");
    else
        return true;
    return false;
}

static void begin_stream(struct call *c, int status, struct kedge_watch *watch)
{
    if (status == 0) {
        if (c->caller.kind == KEDGE_CALLER_TOKEN)
            kedge_watch_bind(watch, c->caller.token, c->request->wall_ms, c->now);
        c->answer->content_type = "application/jsonl";
        c->answer->watch = watch;
    } else if (status == -EAGAIN) {
        rest_problem(c, REST_WATCHES,
                     "try another metaserver, or raise max_watches in this one's configuration, or "
                     "reader_watches for those who are no agents");
    } else {
        rest_problem(c, REST_WATCHES, "out of memory: try again");
    }
}

/* Who may read a configuration need not be the one who speaks for the node. Else the answer has
 * been given. */
static bool may_answer(struct call *c)
{
    struct kedge_fault fault;
    if (kedge_access_decide(&c->caller, !c->s->tokens_needed, KEDGE_NEED_ADMIN, KEDGE_AGENT_OWN,
                            c->id, &fault) == 0)
        return true;
    rest_forbidden(c, kedge_need_name(KEDGE_NEED_ADMIN), &fault);
    return false;
}

void rest_get_configuration(struct call *c)
{
    struct kedge_meta_view view;
    struct kedge_watch *watch = NULL;
    struct wish wish;
    if (!read_wish(c, &wish) || (wish.answers && !may_answer(c)))
        return;
    if (kedge_meta_show(c->s->meta, c->id, c->now, &view) != 0) {
        rest_problem(c, REST_NO_NODE, NULL);
    } else if (wish.watch) {
        int status = kedge_watch_configuration(c->s, c->id, wish.answers, wish.known, wish.revision,
                                               c->request->token, c->now, &watch);
        begin_stream(c, status, watch);
    } else {
        c->answer->revision = kedge_settings_revision(c->s->settings);
        kedge_json_write_document(c->body, c->s->settings, c->s->meta);
        kedge_json_write_document_end(c->body, c->s->settings, c->id);
        kedge_text_printf(c->body, "\n");
    }
}

/* ---- events --------------------------------------------------------------------------------- */

static bool read_filter(struct call *c, struct kedge_watch_filter *out)
{
    const char *kind = c->request->query[KEDGE_QUERY_KIND];
    const char *name = c->request->query[KEDGE_QUERY_NAME];
    *out = (struct kedge_watch_filter){.of_kind = kind != NULL};
    if (kind != NULL && kedge_setting_kind_parse(kind, &out->kind) != 0)
        rest_malformed(c, "kind", "must be tenant, window, token, node, pool or lease");
    else if (name != NULL && !kedge_setting_is_name(name, sizeof out->name - 1))
        rest_malformed(c, "name", "must be the name of such a thing");
    else {
        snprintf(out->name, sizeof out->name, "%s", name != NULL ? name : "");
        return true;
    }
    return false;
}

static void watch_events(struct call *c, const struct kedge_watch_filter *filter,
                         const struct wish *wish)
{
    const struct kedge_settings *s = c->s->settings;
    const struct kedge_setting_change *oldest = kedge_settings_change_after(s, 0);
    struct kedge_watch *watch = NULL;
    uint64_t from = wish->known ? wish->revision : kedge_settings_revision(s);
    char detail[160];
    if (kedge_settings_trail_has(s, from)) {
        int status = kedge_watch_events(c->s, filter, from, c->request->token, c->now, &watch);
        begin_stream(c, status, watch);
        return;
    }
    snprintf(detail, sizeof detail,
             "it begins with %" PRIu64 " and ends with %" PRIu64
             ": list again, and watch from the revision of that answer",
             oldest != NULL ? oldest->revision : 0, kedge_settings_revision(s));
    rest_problem_of(c, REST_GONE, "revision", detail);
}

/* The next entry that is wanted. */
static const struct kedge_setting_change *
next(const struct call *c, const struct kedge_watch_filter *filter, uint64_t revision)
{
    const struct kedge_setting_change *e = kedge_settings_change_after(c->s->settings, revision);
    while (e != NULL && !kedge_watch_wants(filter, e))
        e = kedge_settings_change_after(c->s->settings, e->revision);
    return e;
}

static void list_events(struct call *c, const struct kedge_watch_filter *filter)
{
    const struct kedge_setting_change *e;
    struct rest_page page;
    uint64_t n = 0, at = 0;
    if (!rest_read_page(c, &page))
        return;
    if (page.after[0] != '\0' && kedge_parse_u64(page.after, 1, UINT64_MAX, &at) != 0) {
        rest_malformed(c, "cursor", "must be the next_cursor of an earlier answer");
        return;
    }
    kedge_text_printf(c->body, "{\"revision\":%" PRIu64 ",\"events\":[",
                      kedge_settings_revision(c->s->settings));
    for (; n < page.limit && c->body->length < PAGE_BYTES && (e = next(c, filter, at)) != NULL;
         at = e->revision) {
        kedge_text_printf(c->body, n++ == 0 ? "\n" : ",\n");
        kedge_json_write_change(c->body, e);
    }
    kedge_text_printf(c->body, "]");
    snprintf(page.after, sizeof page.after, "%" PRIu64, at);
    if (next(c, filter, at) != NULL)
        rest_next_cursor(c, page.after);
    kedge_text_printf(c->body, "}\n");
}

void rest_list_events(struct call *c)
{
    struct kedge_watch_filter filter;
    struct wish wish;
    if (!read_wish(c, &wish) || !read_filter(c, &filter))
        return;
    if (wish.watch && c->request->query[KEDGE_QUERY_LIMIT] != NULL)
        rest_malformed(c, "limit", "is for a page: not with watch=1");
    else if (wish.watch && c->request->query[KEDGE_QUERY_CURSOR] != NULL)
        rest_malformed(c, "cursor", "is for a page: with watch=1 say a revision");
    else if (wish.watch)
        watch_events(c, &filter, &wish);
    else
        list_events(c, &filter);
}
