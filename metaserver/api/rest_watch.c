/* SPDX-License-Identifier: Apache-2.0 */
/* What agents are told of the resources, and the trail of changes: once, or as a stream. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "metaserver/resources_json.h"
#include "rest_private.h"
#include "metaserver/trail.h"

#define PAGE_BYTES (1 << 16) /* then a page of the trail ends, however few changes it has */

/* What a client says of watching. */
struct wish {
    bool watch;
    bool known; /* it has this revision */
    enum meta_watch_answers answers;
    bool placed; /* and knows of nodes up to this position */
    uint64_t revision, position;
};

/* Where in this life to begin. Of another one's everything is new: whoever has seen an event knows
 * it by its id. */
static bool read_position(const struct call *c, const char *text, uint64_t *out)
{
    const struct meta_liveness *l = c->s->liveness;
    uint64_t generation;
    if (meta_trail_parse_position(text, &generation, out) != 0)
        return false;
    if (l == NULL)
        *out = 0;
    else if (generation != meta_liveness_generation(l))
        *out = meta_liveness_dropped(l);
    return true;
}

/* Else the answer has been given. */
static bool read_wish(struct call *c, struct wish *out)
{
    const char *watch = c->request->parameter[META_PARAMETER_WATCH];
    const char *revision = c->request->parameter[META_PARAMETER_REVISION];
    const char *answers = c->request->parameter[META_PARAMETER_ANSWERS];
    const char *position = c->request->parameter[META_PARAMETER_POSITION];
    *out = (struct wish){.watch = watch != NULL,
                         .known = revision != NULL,
                         .answers = answers == NULL                ? META_ANSWERS_NONE
                                    : strcmp(answers, "only") == 0 ? META_ANSWERS_ALONE
                                                                   : META_ANSWERS_ALL,
                         .placed = position != NULL};
    if (watch != NULL && strcmp(watch, "1") != 0)
        meta_rest_malformed(c, "watch", "must be 1");
    else if (answers != NULL &&
             (watch == NULL || (strcmp(answers, "1") != 0 && strcmp(answers, "only") != 0)))
        meta_rest_malformed(c, "answers", "must be 1 or only, and is for watch=1 alone");
    else if (revision != NULL && watch == NULL)
        meta_rest_malformed(c, "revision", "is for watch=1 alone");
    else if (revision != NULL && base_parse_u64(revision, 0, UINT64_MAX, &out->revision) != 0)
        meta_rest_malformed(c, "revision", "must be the revision of an earlier answer");
    else if (position != NULL && watch == NULL)
        meta_rest_malformed(c, "position", "is for watch=1 alone");
    else if (position != NULL && !read_position(c, position, &out->position))
        meta_rest_malformed(c, "position", "must be the position of an earlier answer");
    else
        return true;
    return false;
}

static void begin_stream(struct call *c, int status, struct meta_watch *watch)
{
    if (status == 0) {
        if (c->caller.kind == META_CALLER_TOKEN)
            meta_watch_bind(watch, c->caller.token, c->request->wall_ms, c->now);
        c->answer->content_type = "application/jsonl";
        c->answer->watch = watch;
    } else if (status == -EAGAIN) {
        meta_rest_problem(
            c, REST_WATCHES,
            "try another metaserver, or raise max_watches in this one's configuration, or "
            "reader_watches for those who are no agents");
    } else {
        meta_rest_problem(c, REST_WATCHES, "out of memory: try again");
    }
}

/* Who may read a configuration need not be the one who speaks for the node. Else the answer has
 * been given. */
static bool may_answer(struct call *c)
{
    struct meta_violation violation;
    if (meta_access_decide(&c->caller, !c->s->tokens_needed, META_NEED_ADMIN, META_AGENT_OWN, c->id,
                           &violation) == 0)
        return true;
    meta_rest_forbidden(c, meta_need_name(META_NEED_ADMIN), &violation);
    return false;
}

void meta_rest_get_configuration(struct call *c)
{
    struct meta_node_view view;
    struct meta_watch *watch = NULL;
    struct wish wish;
    if (!read_wish(c, &wish) || (wish.answers != META_ANSWERS_NONE && !may_answer(c)))
        return;
    if (meta_directory_show(c->s->directory, c->id, c->now, &view) != 0) {
        meta_rest_problem(c, REST_NO_NODE, NULL);
    } else if (wish.watch) {
        int status = meta_watch_configuration(c->s, c->id, wish.answers, wish.known, wish.revision,
                                              c->request->token, c->now, &watch);
        begin_stream(c, status, watch);
    } else {
        c->answer->revision = meta_resources_revision(c->s->resources);
        meta_json_write_document(c->body, c->s->resources, c->s->directory);
        meta_json_write_document_end(c->body, c->s->resources, c->id);
        base_text_append(c->body, "\n", 1);
    }
}

/* ---- events */

static bool read_filter(struct call *c, struct meta_watch_filter *out)
{
    const char *kind = c->request->parameter[META_PARAMETER_KIND];
    const char *name = c->request->parameter[META_PARAMETER_NAME];
    *out = (struct meta_watch_filter){.kinds = 0};
    if (kind != NULL && meta_trail_parse_kinds(kind, &out->kinds) != 0)
        meta_rest_malformed(
            c, "kind",
            "must be tenant, window, token, node, pool, lease, restore or liveness, or "
            "several with commas between them");
    else if (name != NULL && !meta_resource_is_name(name, sizeof out->name - 1))
        meta_rest_malformed(c, "name", "must be the name of such a thing");
    else {
        snprintf(out->name, sizeof out->name, "%s", name != NULL ? name : "");
        return true;
    }
    return false;
}

void meta_rest_write_position(struct call *c)
{
    char position[TRAIL_POSITION_BYTES];
    const struct meta_liveness *l = c->s->liveness;
    if (l == NULL)
        return;
    meta_trail_write_position(meta_liveness_generation(l), meta_liveness_newest(l), position);
    base_json_string(c->body, "position", position);
}

static void watch_events(struct call *c, const struct meta_watch_filter *filter,
                         const struct wish *wish)
{
    const struct meta_resources *s = c->s->resources;
    const struct meta_liveness *l = c->s->liveness;
    const struct meta_resource_change *oldest = meta_resources_change_after(s, 0);
    const struct trail_place end = meta_trail_end(s, l);
    struct meta_watch *watch = NULL;
    const struct trail_place from = {wish->known ? wish->revision : end.revision,
                                     wish->placed ? wish->position : end.position};
    char detail[192];
    if (meta_trail_has(s, l, filter, &from)) {
        int status = meta_watch_events(c->s, filter, from.revision, from.position,
                                       c->request->token, c->now, &watch);
        begin_stream(c, status, watch);
        return;
    }
    if (meta_trail_has(s, l, filter, &(struct trail_place){from.revision, end.position})) {
        meta_rest_problem_of(
            c, REST_GONE, "position",
            "events of nodes that followed it are not kept any more: list the nodes, "
            "and watch from the position of that answer");
        return;
    }
    if (c->s->hearing.shared && from.revision > end.revision) {
        snprintf(detail, sizeof detail,
                 "it has heard of %" PRIu64
                 " so far: ask again, or another one; if all say so, the "
                 "store was put back: list again, and watch from the revision of that answer",
                 end.revision);
        meta_rest_problem_of(c, REST_BEHIND, "revision", detail);
        return;
    }
    snprintf(detail, sizeof detail,
             "it begins with %" PRIu64 " and ends with %" PRIu64
             ": list again, and watch from the revision of that answer",
             oldest != NULL ? oldest->revision : 0, end.revision);
    meta_rest_problem_of(c, REST_GONE, "revision", detail);
}

/* "12.0123456789abcdef-7": after which revision and which position, as watches have it. A page that
 * goes on in another life of the process has all events of nodes again. Without a position, after
 * no event of nodes. */
static bool read_place(const struct call *c, const char *text, struct trail_place *out)
{
    char revision[24];
    const size_t length = strcspn(text, ".");
    if (length >= sizeof revision)
        return false;
    memcpy(revision, text, length);
    revision[length] = '\0';
    out->position = 0;
    return base_parse_u64(revision, 0, UINT64_MAX, &out->revision) == 0 &&
           (text[length] == '\0' || read_position(c, text + length + 1, &out->position));
}

static void write_next_cursor(struct call *c, const struct trail_place *place)
{
    char position[TRAIL_POSITION_BYTES] = "", cursor[24 + TRAIL_POSITION_BYTES];
    if (place->position != 0)
        meta_trail_write_position(meta_liveness_generation(c->s->liveness), place->position,
                                  position);
    snprintf(cursor, sizeof cursor, "%" PRIu64 "%s%s", place->revision,
             position[0] != '\0' ? "." : "", position);
    meta_rest_next_cursor(c, cursor);
}

static void list_events(struct call *c, const struct meta_watch_filter *filter)
{
    const struct meta_resources *s = c->s->resources;
    const struct meta_liveness *l = c->s->liveness;
    struct trail_place place = {0, 0}, ahead;
    struct trail_entry entry;
    char cursor[REST_CURSOR_BYTES];
    uint64_t limit, n = 0;
    uint32_t looks = REST_LOOKS;
    if (!meta_rest_read_limit(c, &limit) || !meta_rest_read_cursor(c, cursor))
        return;
    if (cursor[0] != '\0' && !read_place(c, cursor, &place)) {
        meta_rest_bad_cursor(c);
        return;
    }
    base_json_object(c->body, NULL);
    base_json_u64(c->body, "revision", meta_resources_revision(s));
    meta_rest_write_position(c);
    base_json_array(c->body, "events");
    while (n < limit && c->body->length < PAGE_BYTES &&
           meta_trail_next(s, l, filter, &looks, &place, &entry)) {
        base_text_printf(c->body, n++ == 0 ? "\n" : ",\n");
        meta_trail_write(c->body, l, &entry);
    }
    base_json_array_end(c->body);
    ahead = place;
    if (meta_trail_next(s, l, filter, &looks, &ahead, &entry) || looks == 0)
        write_next_cursor(c, &place);
    base_json_object_end(c->body);
    base_text_append(c->body, "\n", 1);
}

void meta_rest_list_events(struct call *c)
{
    struct meta_watch_filter filter;
    struct wish wish;
    if (!read_wish(c, &wish) || !read_filter(c, &filter))
        return;
    if (wish.watch && c->request->parameter[META_PARAMETER_LIMIT] != NULL)
        meta_rest_malformed(c, "limit", "is for a page: not with watch=1");
    else if (wish.watch && c->request->parameter[META_PARAMETER_CURSOR] != NULL)
        meta_rest_malformed(c, "cursor",
                            "is for a page: with watch=1 say a revision and a position");
    else if (wish.watch)
        watch_events(c, &filter, &wish);
    else
        list_events(c, &filter);
}

/* ---- names of regions */

static uint64_t names_generation(const struct meta_service *s)
{
    return s->liveness != NULL ? meta_liveness_generation(s->liveness) : 0;
}

void meta_rest_names_position(const struct meta_service *s, char out[TRAIL_POSITION_BYTES])
{
    meta_trail_write_position(names_generation(s), meta_names_version(s->names), out);
}

void meta_rest_watch_regions(struct call *c)
{
    const char *const *given = c->request->parameter;
    const char *position = given[META_PARAMETER_POSITION], *watch = given[META_PARAMETER_WATCH];
    struct meta_watch *stream = NULL;
    uint64_t generation = names_generation(c->s), version = meta_names_version(c->s->names);
    if (watch == NULL)
        meta_rest_malformed(c, "position", "is for watch=1 alone");
    else if (strcmp(watch, "1") != 0)
        meta_rest_malformed(c, "watch", "must be 1");
    else if (position != NULL && meta_trail_parse_position(position, &generation, &version) != 0)
        meta_rest_malformed(c, "position", "must be the position of an earlier answer");
    else if (given[META_PARAMETER_LIMIT] != NULL || given[META_PARAMETER_CURSOR] != NULL ||
             given[META_PARAMETER_TENANT] != NULL || given[META_PARAMETER_NODE] != NULL ||
             given[META_PARAMETER_FOR] != NULL)
        meta_rest_malformed(c, "watch", "is of all names: what narrows a list is for that alone");
    else {
        const bool known = generation == names_generation(c->s);
        const int status =
            meta_watch_regions(c->s, known, version, c->request->token, c->now, &stream);
        begin_stream(c, status, stream);
    }
}
