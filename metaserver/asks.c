/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/asks.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "metaserver/service.h"

static uint32_t of_node(const struct kedge_service *s, const char *node)
{
    const struct kedge_ask *a;
    uint32_t n = 0;
    LIST_FOREACH(a, &s->asks.open, link)
        n += strcmp(a->node, node) == 0;
    return n;
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
    if (s->asks.count >= KEDGE_ASKS_MAX || of_node(s, ask->node) >= KEDGE_ASKS_OF_NODE) {
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

void kedge_ask_end(struct kedge_service *s, struct kedge_ask *ask)
{
    close_ask(s, ask, KEDGE_ASK_NONE);
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
    close_ask(s, ask, KEDGE_ASK_ANSWERED);
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

bool kedge_asks_next(struct kedge_service *s, const struct kedge_watch *w, struct kedge_text *out)
{
    struct kedge_ask *a;
    LIST_FOREACH(a, &s->asks.open, link) {
        if (a->watch != w || a->sent)
            continue;
        kedge_text_printf(out, "{\"ask\":{\"id\":\"%s\",%s}}\n", a->id, a->members);
        a->sent = true;
        return true;
    }
    return false;
}
