/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/agent_query.h"

#include <errno.h>
#include <string.h>

#include "base/json_writer.h"
#include "metaserver/service.h"

/* Questions that are open, of the kind of one, for the bounds of that kind. */
struct open_queries {
    uint32_t all, of_node, of_token, of_token_at_node, sent;
};

static bool is_same_kind(const struct meta_query *a, const struct meta_query *b)
{
    return a->change == b->change && (a->change || a->operators == b->operators);
}

static struct open_queries count_open(const struct meta_service *s, const struct meta_query *like)
{
    struct open_queries n = {0};
    const struct meta_query *a;
    LIST_FOREACH(a, &s->queries.open, link) {
        if (!is_same_kind(a, like))
            continue;
        const bool of_node = strcmp(a->node, like->node) == 0;
        const bool of_token = like->token[0] != '\0' && strcmp(a->token, like->token) == 0;
        n.all++;
        n.of_node += of_node;
        n.of_token += of_token;
        n.of_token_at_node += of_node && of_token;
        n.sent += of_node && a->sent;
    }
    return n;
}

static bool has_room(const struct meta_service *s, const struct meta_query *query)
{
    const struct open_queries n = count_open(s, query);
    if (query->change)
        return n.all < META_CHANGE_QUERIES_MAX && n.of_token < META_CHANGE_QUERIES_OF_TOKEN;
    return n.all < META_QUERIES_MAX && n.of_node < META_QUERIES_OF_NODE &&
           n.of_token < META_QUERIES_OF_TOKEN && n.of_token_at_node < META_QUERIES_OF_TOKEN_AT_NODE;
}

int meta_query_open(struct meta_service *s, struct meta_query *query)
{
    uint8_t id[(META_QUERY_ID_BYTES - 1) / 2];
    struct meta_watch *w = meta_watch_of_agent(s, query->node);
    query->state = META_QUERY_NONE;
    if (w == NULL) {
        s->queries.n.unreachable++;
        return -ENOTCONN;
    }
    if (!has_room(s, query)) {
        s->queries.n.refused++;
        return -EAGAIN;
    }
    /* Who may not answer for the node cannot guess it either. */
    if (meta_world_random(s->world, id, sizeof id) != 0)
        return -EIO;
    (void)base_hex_encode(id, sizeof id, query->id);
    query->watch = w;
    query->sent = false;
    query->state = META_QUERY_OPEN;
    LIST_INSERT_HEAD(&s->queries.open, query, link);
    s->queries.count++;
    s->queries.n.asked++;
    meta_watch_wake(w);
    return 0;
}

void meta_query_release(struct meta_query *query, uint64_t due_ns)
{
    query->held = false;
    query->due_ns = due_ns;
    meta_watch_wake(query->watch);
}

static void close_query(struct meta_service *s, struct meta_query *query,
                        enum meta_query_state state)
{
    if (query->state == META_QUERY_OPEN) {
        LIST_REMOVE(query, link);
        s->queries.count--;
    }
    query->state = state;
}

/* Its agent can be asked the next one that waits. */
static void end_and_wake(struct meta_service *s, struct meta_query *query,
                         enum meta_query_state state)
{
    const bool was_open = query->state == META_QUERY_OPEN;
    close_query(s, query, state);
    if (was_open && query->change)
        meta_watch_wake(query->watch);
}

void meta_query_close(struct meta_service *s, struct meta_query *query)
{
    end_and_wake(s, query, META_QUERY_NONE);
}

struct meta_query *meta_query_find(struct meta_service *s, const char *node, const char *id)
{
    struct meta_query *a;
    LIST_FOREACH(a, &s->queries.open, link) {
        if (a->sent && strcmp(a->id, id) == 0 && strcmp(a->node, node) == 0)
            return a;
    }
    s->queries.n.unwanted++;
    return NULL;
}

void meta_query_answered(struct meta_service *s, struct meta_query *query, bool makes_sense)
{
    end_and_wake(s, query, META_QUERY_ANSWERED);
    s->queries.n.answered++;
    s->queries.n.senseless += !makes_sense;
}

/* Of one stream (NULL: of any), those that are due by then. Returns how many. */
static uint32_t close_due(struct meta_service *s, const struct meta_watch *w, uint64_t then,
                          enum meta_query_state state)
{
    uint32_t n = 0;
    for (struct meta_query *a = LIST_FIRST(&s->queries.open), *next; a != NULL; a = next) {
        next = LIST_NEXT(a, link);
        if ((w != NULL && a->watch != w) || a->due_ns > then)
            continue;
        if (state == META_QUERY_LATE)
            end_and_wake(s, a, state);
        else
            close_query(s, a, state);
        n++;
    }
    return n;
}

void meta_queries_expire(struct meta_service *s, uint64_t now)
{
    s->queries.n.late += close_due(s, NULL, now, META_QUERY_LATE);
}

void meta_queries_lose(struct meta_service *s, const struct meta_watch *w)
{
    s->queries.n.unreachable += close_due(s, w, UINT64_MAX, META_QUERY_LOST);
}

void meta_queries_stop(struct meta_service *s)
{
    (void)close_due(s, NULL, UINT64_MAX, META_QUERY_STOPPED);
}

/* The oldest change, or look, that has not been sent; of looks an operator's first. */
static struct meta_query *find_unsent(const struct meta_service *s, const struct meta_watch *w,
                                      bool change)
{
    struct meta_query *a, *oldest = NULL;
    LIST_FOREACH(a, &s->queries.open, link) {
        if (a->watch == w && !a->sent && !a->held && a->change == change &&
            (change || oldest == NULL || a->operators >= oldest->operators))
            oldest = a;
    }
    return oldest;
}

bool meta_queries_next(struct meta_service *s, const struct meta_watch *w, struct base_text *out)
{
    struct meta_query *a = find_unsent(s, w, true);
    if (a != NULL && count_open(s, a).sent >= META_CHANGE_QUERIES_SENT)
        a = NULL;
    a = a != NULL ? a : find_unsent(s, w, false);
    if (a == NULL)
        return false;
    base_json_object(out, NULL);
    base_json_object(out, "ask");
    base_json_string(out, "id", a->id);
    base_text_printf(out, ",%s", a->members);
    base_json_object_end(out);
    base_json_object_end(out);
    base_text_append(out, "\n", 1);
    a->sent = true;
    return true;
}
