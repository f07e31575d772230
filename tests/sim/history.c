/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "ledger.h"

enum { TEXT = 64, FIRST_ROOM = 16 };

/* After so long all have heard that the store was put back. */
#define HEARD_NS UINT64_C(30000000000)

/* One state of a resource: from a change on, until the next. */
struct state {
    uint64_t revision; /* 0: before there was any change */
    uint64_t at_ns;
    bool there;
    bool said;  /* somebody was told that it was he who made or deleted it */
    char *body; /* what it held; NULL: it was not there */
};

/* What a life of a metaserver has shown: no earlier state than that one again. */
struct shown {
    struct shown *next;
    uint64_t life;
    uint32_t state;
};

struct key {
    struct key *next;
    char kind[TEXT], name[TEXT];
    struct state *state; /* the first is that there is none */
    uint32_t count, room;
    struct shown *shown;
    uint32_t returned; /* the state that came back, + 1; 0: none did */
};

/* A change, as the trail has it. */
struct change {
    uint64_t revision;
    const struct key *key;
    uint32_t state;
};

static struct {
    struct key *keys;
    struct change *change; /* in their order */
    size_t count, room;
    uint64_t put_back_ns; /* last; 0: never */
} all;

void play_history_begin(void)
{
    memset(&all, 0, sizeof all);
}

static void free_key(struct key *k)
{
    for (struct shown *s = k->shown, *next; s != NULL; s = next) {
        next = s->next;
        free(s);
    }
    for (uint32_t i = 0; i < k->count; i++)
        free(k->state[i].body);
    free(k->state);
    free(k);
}

void play_history_end(void)
{
    for (struct key *k = all.keys, *next; k != NULL; k = next) {
        next = k->next;
        free_key(k);
    }
    free(all.change);
    play_history_begin();
}

/* ---- what there was */

static void add_state(struct key *k, uint64_t revision, const char *body, uint64_t now_ns)
{
    char *own = body != NULL ? strdup(body) : NULL;
    BASE_ASSERT(body == NULL || own != NULL);
    if (k->count == k->room) {
        k->room = k->room == 0 ? FIRST_ROOM : 2 * k->room;
        k->state = realloc(k->state, k->room * sizeof *k->state);
        BASE_ASSERT(k->state != NULL);
    }
    k->state[k->count++] =
        (struct state){.revision = revision, .at_ns = now_ns, .there = body != NULL, .body = own};
}

static struct key *find_key(const char *kind, const char *name)
{
    for (struct key *k = all.keys; k != NULL; k = k->next)
        if (strcmp(k->name, name) == 0 && strcmp(k->kind, kind) == 0)
            return k;
    struct key *k = calloc(1, sizeof *k);
    BASE_ASSERT(k != NULL);
    (void)snprintf(k->kind, sizeof k->kind, "%s", kind);
    (void)snprintf(k->name, sizeof k->name, "%s", name);
    add_state(k, 0, NULL, 0);
    k->next = all.keys;
    return all.keys = k;
}

static void add_change(const struct key *k, uint64_t revision)
{
    if (all.count == all.room) {
        all.room = all.room == 0 ? FIRST_ROOM : 2 * all.room;
        all.change = realloc(all.change, all.room * sizeof *all.change);
        BASE_ASSERT(all.change != NULL);
    }
    all.change[all.count++] = (struct change){revision, k, k->count - 1};
}

/* Of others there are only entries in the trail. */
static bool has_states(const char *kind)
{
    return strcmp(kind, "tenant") == 0 || strcmp(kind, "window") == 0 ||
           strcmp(kind, "token") == 0 || strcmp(kind, "pool") == 0;
}

void play_history_changed(const char *who, const char *kind, const char *name, uint64_t revision,
                          const char *body, uint64_t now_ns)
{
    if (revision <= play_history_last())
        play_violation(who, "a change of %s %s has revision %llu, and the one before %llu", kind,
                       name, (unsigned long long)revision, (unsigned long long)play_history_last());
    struct key *k = find_key(kind, name);
    if (body == NULL && !k->state[k->count - 1].there && has_states(kind))
        play_violation(who, "%s %s is deleted with revision %llu, and was not there", kind, name,
                       (unsigned long long)revision);
    add_state(k, revision, body, now_ns);
    add_change(k, revision);
}

uint64_t play_history_last(void)
{
    return all.count > 0 ? all.change[all.count - 1].revision : 0;
}

/* ---- what it was once */

void play_history_put_back_begin(void)
{
    for (struct key *k = all.keys; k != NULL; k = k->next)
        k->returned = 0;
}

void play_history_returned(const char *kind, const char *name, uint64_t revision)
{
    struct key *k = find_key(kind, name);
    uint32_t i = k->count;
    while (i > 0 && (k->state[i - 1].revision != revision || !k->state[i - 1].there))
        i--;
    BASE_ASSERT(i > 0);
    k->returned = i;
}

/* What comes back was made by nobody, and what goes was deleted by nobody. */
static void put_back_key(struct key *k, uint64_t now_ns)
{
    const struct state *last = &k->state[k->count - 1];
    const bool there = k->returned != 0;
    const uint64_t revision = there ? k->state[k->returned - 1].revision : 0;
    if (last->there == there && (!there || last->revision == revision))
        return;
    add_state(k, revision, there ? k->state[k->returned - 1].body : NULL, now_ns);
    k->state[k->count - 1].said = true;
}

void play_history_put_back_end(uint64_t last, uint64_t now_ns)
{
    for (struct key *k = all.keys; k != NULL; k = k->next)
        put_back_key(k, now_ns);
    while (all.count > 0 && all.change[all.count - 1].revision > last)
        all.count--;
    all.put_back_ns = now_ns;
}

bool play_history_is_uncertain(uint64_t told_ns, uint64_t now_ns)
{
    return all.put_back_ns != 0 &&
           (told_ns < all.put_back_ns + HEARD_NS || now_ns < all.put_back_ns + HEARD_NS);
}

/* ---- what it holds */

/* Whether the first has all that the second has, and it is the same. */
static bool holds(const json_t *object, json_t *of)
{
    const char *member;
    json_t *value;
    json_object_foreach(
        of, member, value) if (!json_equal(json_object_get(object, member), value)) return false;
    return true;
}

/* Whether what was said (NULL: nothing was) has all that a resource held; turned: that has all that
 * was said. */
static bool agrees(const char *said, size_t bytes, const char *body, bool turned)
{
    json_t *object = said != NULL ? json_loadb(said, bytes, JSON_DECODE_ANY, NULL) : NULL,
           *of = json_loads(body, JSON_DECODE_ANY, NULL);
    const bool does = said == NULL || (turned ? holds(of, object) : holds(object, of));
    json_decref(object);
    json_decref(of);
    return does;
}

static void judge_body(const struct play_history_answer *a, const struct state *is)
{
    if (is->there && !agrees(a->body, a->body != NULL ? strlen(a->body) : 0, is->body, false))
        play_violation(a->who,
                       "%s %s %s is answered with revision %llu and other contents than it had "
                       "then: %.200s, and not %.200s",
                       a->method, a->kind, a->name, (unsigned long long)is->revision, a->body,
                       is->body);
}

/* ---- what is answered */

static uint64_t end_of(const struct key *k, uint32_t state)
{
    return state + 1 < k->count ? k->state[state + 1].at_ns : UINT64_MAX;
}

/* A state that it was in at some moment from then on, of any revision or (not 0) that one. NULL:
 * there was none. */
static const struct state *find_so(const struct key *k, bool there, uint64_t revision,
                                   uint64_t from_ns)
{
    for (uint32_t i = k->count; i-- > 0 && end_of(k, i) >= from_ns;)
        if (k->state[i].there == there && (revision == 0 || k->state[i].revision == revision))
            return &k->state[i];
    return NULL;
}

/* The first change from then on that took it away, and of which nobody was told yet: of those who
 * are told in their order, each that could be another's is left to him. NULL: there was none;
 * *any: there was one of which somebody was. */
static struct state *find_deletion(struct key *k, uint64_t from_ns, bool *any)
{
    struct state *first = NULL;
    *any = false;
    for (uint32_t i = k->count; i-- > 1 && k->state[i].at_ns >= from_ns;) {
        struct state *s = &k->state[i];
        *any |= !s->there;
        if (!s->there && k->state[i - 1].there && !s->said)
            first = s;
    }
    return first;
}

/* That change, if it made it anew, from then on; or NULL. */
static struct state *find_making(struct key *k, uint64_t revision, uint64_t from_ns)
{
    for (uint32_t i = k->count; i-- > 1 && k->state[i].at_ns >= from_ns;)
        if (k->state[i].revision == revision)
            return k->state[i].there && !k->state[i - 1].there ? &k->state[i] : NULL;
    return NULL;
}

/* Whoever is told that he made it is the only one. */
static void judge_created(const struct play_history_answer *a, struct key *k)
{
    struct state *made = find_making(k, a->revision, a->asked_ns);
    if (made == NULL)
        play_violation(a->who,
                       "PUT %s %s is answered with 201 and revision %llu, which did not "
                       "make it",
                       a->kind, a->name, (unsigned long long)a->revision);
    else if (made->said)
        play_violation(a->who,
                       "PUT %s %s is answered with 201 and revision %llu, of which another one was "
                       "told that he has made it",
                       a->kind, a->name, (unsigned long long)a->revision);
    else
        made->said = true;
}

/* A token's secret is not what is kept of it. */
static void judge_put(const struct play_history_answer *a, struct key *k)
{
    if (a->status / 100 != 2)
        return;
    const struct state *is = find_so(k, true, a->revision, a->asked_ns);
    if (is == NULL) {
        play_violation(a->who,
                       "%s %s %s is answered with %d and revision %llu, which it did not have "
                       "meanwhile in the store",
                       a->method, a->kind, a->name, a->status, (unsigned long long)a->revision);
        return;
    }
    judge_body(a, is);
    if (strcmp(a->kind, "tenant") == 0 && !agrees(a->asked, a->asked_bytes, is->body, true))
        play_violation(a->who,
                       "PUT %s %s is answered with %d and revision %llu, where the store has not "
                       "what was asked for: %.200s, and not %.*s",
                       a->kind, a->name, a->status, (unsigned long long)a->revision, is->body,
                       (int)a->asked_bytes, a->asked);
    if (a->status == 201)
        judge_created(a, k);
}

/* Returns which state has come of it; the count of all: none. */
static uint32_t judge_delete(const struct play_history_answer *a, struct key *k)
{
    bool any;
    struct state *is = a->status / 100 == 2 ? find_deletion(k, a->asked_ns, &any) : NULL;
    if (a->status / 100 == 2 && is == NULL)
        play_violation(
            a->who, "DELETE %s %s is answered with %d, and %s", a->kind, a->name, a->status,
            any ? "another one was told that he has deleted it" : "it was not deleted meanwhile");
    if (a->status == 404 && find_so(k, false, 0, a->asked_ns) == NULL)
        play_violation(a->who, "DELETE %s %s is answered with %d, and it was there throughout",
                       a->kind, a->name, a->status);
    if (is == NULL)
        return k->count;
    is->said = true;
    return (uint32_t)(is - k->state);
}

static struct shown *find_shown(struct key *k, uint64_t life)
{
    for (struct shown *s = k->shown; s != NULL; s = s->next)
        if (s->life == life)
            return s;
    struct shown *s = calloc(1, sizeof *s);
    BASE_ASSERT(s != NULL);
    *s = (struct shown){.next = k->shown, .life = life};
    return k->shown = s;
}

/* The first state that it may be which is not before what was shown. */
static uint32_t find_read(const struct key *k, const struct play_history_answer *a, uint32_t from)
{
    const bool there = a->status / 100 == 2;
    while (from < k->count &&
           (k->state[from].there != there ||
            (there && a->revision != 0 && k->state[from].revision != a->revision)))
        from++;
    return from;
}

static void judge_get(const struct play_history_answer *a, struct key *k)
{
    struct shown *s = find_shown(k, a->life);
    if (play_history_is_uncertain(a->now_ns, a->now_ns)) /* what it has shown may be undone */
        s->state = 0;
    const uint32_t first = find_read(k, a, s->state);
    uint32_t is = first;
    if (is == k->count) {
        play_violation(a->who, "GET %s %s is answered with %d and revision %llu, %s", a->kind,
                       a->name, a->status, (unsigned long long)a->revision,
                       find_read(k, a, 0) < k->count ? "which is older than what it has shown"
                                                     : "which it never was");
        return;
    }
    s->state = first;
    judge_body(a, &k->state[first]);
    while (is < k->count && end_of(k, is) < a->since_ns)
        is = find_read(k, a, is + 1);
    if (is == k->count)
        play_violation(a->who,
                       "GET %s %s is answered with %d and revision %llu, which it was not any more "
                       "for %llu ms, and it does not say that it may be behind",
                       a->kind, a->name, a->status, (unsigned long long)a->revision,
                       (unsigned long long)((a->now_ns - end_of(k, first)) / 1000000));
}

/* An answer of its own is what it has come to know, too. */
static void note_own(const struct play_history_answer *a, struct key *k, uint32_t is)
{
    struct shown *s = find_shown(k, a->life);
    if (is < k->count && is > s->state)
        s->state = is;
}

void play_history_judge(const struct play_history_answer *a)
{
    struct key *k = find_key(a->kind, a->name);
    if (strcmp(a->method, "PUT") == 0) {
        judge_put(a, k);
        if (a->status / 100 == 2 && a->revision != 0)
            note_own(a, k, find_read(k, a, find_shown(k, a->life)->state));
    } else if (strcmp(a->method, "DELETE") == 0) {
        note_own(a, k, judge_delete(a, k));
    } else if (a->status == 200 || a->status == 404) {
        judge_get(a, k);
    }
}

/* ---- what those who follow are told */

static void judge_told(const char *who, const struct change *is, const struct play_history_told *t)
{
    const struct state *s = &is->key->state[is->state];
    if (strcmp(t->kind, is->key->kind) != 0 || strcmp(t->name, is->key->name) != 0)
        play_violation(who, "revision %llu is told of as one of %s %s, and it is one of %s %s",
                       (unsigned long long)is->revision, t->kind, t->name, is->key->kind,
                       is->key->name);
    else if (has_states(t->kind) && ((t->to != NULL) != s->there ||
                                     (s->there && !agrees(t->to, strlen(t->to), s->body, false))))
        play_violation(who, "revision %llu of %s %s is told of with other contents: %.200s",
                       (unsigned long long)is->revision, t->kind, t->name,
                       t->to != NULL ? t->to : "none");
}

void play_history_told(const char *who, uint64_t after, const struct play_history_told *t)
{
    size_t i = 0;
    while (i < all.count && all.change[i].revision <= after)
        i++;
    if (i == all.count)
        play_violation(who,
                       "it is told of revision %llu behind %llu, and there is none behind that",
                       (unsigned long long)t->revision, (unsigned long long)after);
    else if (all.change[i].revision != t->revision)
        play_violation(who, "it is told of revision %llu behind %llu, and the next one is %llu",
                       (unsigned long long)t->revision, (unsigned long long)after,
                       (unsigned long long)all.change[i].revision);
    else
        judge_told(who, &all.change[i], t);
}
