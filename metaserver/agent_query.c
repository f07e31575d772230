/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/agent_query.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "metaserver/service.h"

/* Questions that are open, of the kind of one, for the bounds of that kind. */
struct open_asks {
    uint32_t all, of_node, of_token, sent;
};

static struct open_asks count_open(const struct kedge_service *s, const struct kedge_ask *like)
{
    struct open_asks n = {0};
    const struct kedge_ask *a;
    LIST_FOREACH(a, &s->asks.open, link) {
        if (a->change != like->change)
            continue;
        const bool of_node = strcmp(a->node, like->node) == 0;
        n.all++;
        n.of_node += of_node;
        n.of_token += like->token[0] != '\0' && strcmp(a->token, like->token) == 0;
        n.sent += of_node && a->sent;
    }
    return n;
}

static bool has_room(const struct kedge_service *s, const struct kedge_ask *ask)
{
    const struct open_asks n = count_open(s, ask);
    if (ask->change)
        return n.all < KEDGE_CHANGES_MAX && n.of_token < KEDGE_CHANGES_OF_TOKEN;
    return n.all < KEDGE_ASKS_MAX && n.of_node < KEDGE_ASKS_OF_NODE &&
           n.of_token < KEDGE_ASKS_OF_TOKEN;
}

int kedge_ask(struct kedge_service *s, struct kedge_ask *ask)
{
    uint8_t id[(KEDGE_ASK_ID_BYTES - 1) / 2];
    struct kedge_watch *w = kedge_watch_of_agent(s, ask->node);
    ask->state = KEDGE_ASK_NONE;
    if (w == NULL) {
        s->asks.n.unreachable++;
        return -ENOTCONN;
    }
    if (!has_room(s, ask)) {
        s->asks.n.refused++;
        return -EAGAIN;
    }
    /* Who may not answer for the node cannot guess it either. */
    if (kedge_random_bytes(id, sizeof id) != 0)
        return -EIO;
    (void)kedge_hex_encode(id, sizeof id, ask->id);
    ask->watch = w;
    ask->sent = false;
    ask->state = KEDGE_ASK_OPEN;
    LIST_INSERT_HEAD(&s->asks.open, ask, link);
    s->asks.count++;
    s->asks.n.asked++;
    kedge_watch_wake(w);
    return 0;
}

static void close_ask(struct kedge_service *s, struct kedge_ask *ask, enum kedge_ask_state state)
{
    if (ask->state == KEDGE_ASK_OPEN) {
        LIST_REMOVE(ask, link);
        s->asks.count--;
    }
    ask->state = state;
}

/* Its agent can be asked the next one that waits. */
static void end_and_wake(struct kedge_service *s, struct kedge_ask *ask, enum kedge_ask_state state)
{
    const bool was_open = ask->state == KEDGE_ASK_OPEN;
    close_ask(s, ask, state);
    if (was_open && ask->change)
        kedge_watch_wake(ask->watch);
}

void kedge_ask_end(struct kedge_service *s, struct kedge_ask *ask)
{
    end_and_wake(s, ask, KEDGE_ASK_NONE);
}

struct kedge_ask *kedge_ask_find(struct kedge_service *s, const char *node, const char *id)
{
    struct kedge_ask *a;
    LIST_FOREACH(a, &s->asks.open, link) {
        if (a->sent && strcmp(a->id, id) == 0 && strcmp(a->node, node) == 0)
            return a;
    }
    s->asks.n.unwanted++;
    return NULL;
}

void kedge_ask_answered(struct kedge_service *s, struct kedge_ask *ask, bool makes_sense)
{
    end_and_wake(s, ask, KEDGE_ASK_ANSWERED);
    s->asks.n.answered++;
    s->asks.n.senseless += !makes_sense;
}

/* Of one stream (NULL: of any), those that are due by then. Returns how many. */
static uint32_t close_due(struct kedge_service *s, const struct kedge_watch *w, uint64_t then,
                          enum kedge_ask_state state)
{
    uint32_t n = 0;
    for (struct kedge_ask *a = LIST_FIRST(&s->asks.open), *next; a != NULL; a = next) {
        next = LIST_NEXT(a, link);
        if ((w != NULL && a->watch != w) || a->due_ns > then)
            continue;
        if (state == KEDGE_ASK_LATE)
            end_and_wake(s, a, state);
        else
            close_ask(s, a, state);
        n++;
    }
    return n;
}

void kedge_asks_lapse(struct kedge_service *s, uint64_t now)
{
    s->asks.n.late += close_due(s, NULL, now, KEDGE_ASK_LATE);
}

void kedge_asks_lose(struct kedge_service *s, const struct kedge_watch *w)
{
    s->asks.n.unreachable += close_due(s, w, UINT64_MAX, KEDGE_ASK_LOST);
}

void kedge_asks_stop(struct kedge_service *s)
{
    (void)close_due(s, NULL, UINT64_MAX, KEDGE_ASK_STOPPED);
}

/* The oldest one of a kind that has not been sent. */
static struct kedge_ask *find_unsent(const struct kedge_service *s, const struct kedge_watch *w,
                                     bool change)
{
    struct kedge_ask *a, *oldest = NULL;
    LIST_FOREACH(a, &s->asks.open, link) {
        if (a->watch == w && !a->sent && a->change == change)
            oldest = a;
    }
    return oldest;
}

bool kedge_asks_next(struct kedge_service *s, const struct kedge_watch *w, struct kedge_text *out)
{
    struct kedge_ask *a = find_unsent(s, w, true);
    if (a != NULL && count_open(s, a).sent >= KEDGE_CHANGES_SENT)
        a = NULL;
    a = a != NULL ? a : find_unsent(s, w, false);
    if (a == NULL)
        return false;
    kedge_text_printf(out, "{\"ask\":{\"id\":\"%s\",%s}}\n", a->id, a->members);
    a->sent = true;
    return true;
}
