/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "ledger.h"

enum { TEXT = 64, FIRST_ROOM = 16 };

/* One state of a resource: from a change on, until the next. */
struct state {
    uint64_t revision; /* 0: before there was any change */
    uint64_t at_ns;
    bool there;
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
};

static struct {
    struct key *keys;
    uint64_t *revision; /* of all, in their order */
    size_t count, room;
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
    free(k->state);
    free(k);
}

void play_history_end(void)
{
    for (struct key *k = all.keys, *next; k != NULL; k = next) {
        next = k->next;
        free_key(k);
    }
    free(all.revision);
    play_history_begin();
}

/* ---- what there was */

static void add_state(struct key *k, uint64_t revision, bool there, uint64_t now_ns)
{
    if (k->count == k->room) {
        k->room = k->room == 0 ? FIRST_ROOM : 2 * k->room;
        k->state = realloc(k->state, k->room * sizeof *k->state);
        BASE_ASSERT(k->state != NULL);
    }
    k->state[k->count++] = (struct state){revision, now_ns, there};
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
    add_state(k, 0, false, 0);
    k->next = all.keys;
    return all.keys = k;
}

static void add_revision(uint64_t revision)
{
    if (all.count == all.room) {
        all.room = all.room == 0 ? FIRST_ROOM : 2 * all.room;
        all.revision = realloc(all.revision, all.room * sizeof *all.revision);
        BASE_ASSERT(all.revision != NULL);
    }
    all.revision[all.count++] = revision;
}

/* Of others there are only entries in the trail. */
static bool has_states(const char *kind)
{
    return strcmp(kind, "tenant") == 0 || strcmp(kind, "window") == 0 ||
           strcmp(kind, "token") == 0 || strcmp(kind, "pool") == 0;
}

void play_history_changed(const char *who, const char *kind, const char *name, uint64_t revision,
                          bool there, uint64_t now_ns)
{
    if (revision <= play_history_last())
        play_violation(who, "a change of %s %s has revision %llu, and the one before %llu", kind,
                       name, (unsigned long long)revision, (unsigned long long)play_history_last());
    struct key *k = find_key(kind, name);
    if (!there && !k->state[k->count - 1].there && has_states(kind))
        play_violation(who, "%s %s is deleted with revision %llu, and was not there", kind, name,
                       (unsigned long long)revision);
    add_revision(revision);
    add_state(k, revision, there, now_ns);
}

uint64_t play_history_last(void)
{
    return all.count > 0 ? all.revision[all.count - 1] : 0;
}

/* ---- what is answered */

static uint64_t end_of(const struct key *k, uint32_t state)
{
    return state + 1 < k->count ? k->state[state + 1].at_ns : UINT64_MAX;
}

/* Whether it was so at some moment from then on, at any revision or (not 0) that one. */
static bool was_so(const struct key *k, bool there, uint64_t revision, uint64_t from_ns)
{
    for (uint32_t i = k->count; i-- > 0 && end_of(k, i) >= from_ns;)
        if (k->state[i].there == there && (revision == 0 || k->state[i].revision == revision))
            return true;
    return false;
}

/* Whether a change that took it away was carried out from then on. */
static bool was_deleted(const struct key *k, uint64_t from_ns)
{
    for (uint32_t i = k->count; i-- > 1 && k->state[i].at_ns >= from_ns;)
        if (!k->state[i].there)
            return true;
    return false;
}

/* Whether that change made it anew, from then on. */
static bool was_made(const struct key *k, uint64_t revision, uint64_t from_ns)
{
    for (uint32_t i = k->count; i-- > 1 && k->state[i].at_ns >= from_ns;)
        if (k->state[i].revision == revision)
            return k->state[i].there && !k->state[i - 1].there;
    return false;
}

static void judge_put(const struct play_history_answer *a, const struct key *k)
{
    if (a->status / 100 == 2 && !was_so(k, true, a->revision, a->asked_ns))
        play_violation(a->who,
                       "%s %s %s is answered with %d and revision %llu, which it did not have "
                       "meanwhile in the store",
                       a->method, a->kind, a->name, a->status, (unsigned long long)a->revision);
    if (a->status == 201 && !was_made(k, a->revision, a->asked_ns))
        play_violation(a->who,
                       "PUT %s %s is answered with 201 and revision %llu, which did not "
                       "make it",
                       a->kind, a->name, (unsigned long long)a->revision);
}

static void judge_delete(const struct play_history_answer *a, const struct key *k)
{
    if (a->status / 100 == 2 && !was_deleted(k, a->asked_ns))
        play_violation(a->who, "DELETE %s %s is answered with %d, and it was not deleted meanwhile",
                       a->kind, a->name, a->status);
    if (a->status == 404 && !was_so(k, false, 0, a->asked_ns))
        play_violation(a->who, "DELETE %s %s is answered with %d, and it was there throughout",
                       a->kind, a->name, a->status);
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
static void note_own(const struct play_history_answer *a, struct key *k)
{
    struct shown *s = find_shown(k, a->life);
    const uint32_t is = a->revision != 0 ? find_read(k, a, s->state) : k->count;
    if (is < k->count)
        s->state = is;
}

void play_history_judge(const struct play_history_answer *a)
{
    struct key *k = find_key(a->kind, a->name);
    const bool puts = strcmp(a->method, "PUT") == 0, deletes = strcmp(a->method, "DELETE") == 0;
    if (puts)
        judge_put(a, k);
    else if (deletes)
        judge_delete(a, k);
    else if (a->status == 200 || a->status == 404)
        judge_get(a, k);
    if (puts && a->status / 100 == 2)
        note_own(a, k);
}

/* ---- what those who follow are told */

void play_history_told(const char *who, uint64_t after, uint64_t revision)
{
    size_t i = 0;
    while (i < all.count && all.revision[i] <= after)
        i++;
    if (i == all.count)
        play_violation(who,
                       "it is told of revision %llu behind %llu, and there is none behind that",
                       (unsigned long long)revision, (unsigned long long)after);
    else if (all.revision[i] != revision)
        play_violation(who, "it is told of revision %llu behind %llu, and the next one is %llu",
                       (unsigned long long)revision, (unsigned long long)after,
                       (unsigned long long)all.revision[i]);
}
