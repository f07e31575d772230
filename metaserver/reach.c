/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/reach.h"

#include <stdlib.h>

#include "base/assert.h"

#define NONE UINT32_MAX
enum { LEAST_VOICES = 2 };

/* What is said of one target: by whoever has a voice. */
struct votes {
    uint32_t tried, failed;
    bool blamed;
    uint64_t since; /* it is */
};

struct entry {
    uint32_t node;
    uint32_t life; /* of that one: else it is void */
    enum meta_reach_error error;
    uint64_t since;
};

struct place {
    uint32_t life;
    struct votes votes;
    /* Its own report. */
    bool heard, has_voice, has_table;
    uint8_t count;
    uint64_t at;
    uint32_t prev, next; /* of those that were heard, in that order */
    struct entry table, tried[META_REACH_TARGETS];
};

struct meta_reach {
    uint32_t nodes, first, last, blamed;
    struct votes table;
    struct place *places;
};

const char *meta_reach_error_name(enum meta_reach_error error)
{
    static const char *const names[] = {"", "timeout", "unreachable", "refused", "device"};
    return names[error];
}

const char *meta_reach_state_name(enum meta_reach_state state)
{
    static const char *const names[] = {"unknown", "ok", "failing", "unreachable"};
    return names[state];
}

struct meta_reach *meta_reach_new(uint32_t nodes)
{
    struct meta_reach *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    *r = (struct meta_reach){.nodes = nodes, .first = NONE, .last = NONE};
    r->places = calloc(nodes, sizeof *r->places);
    if (r->places != NULL)
        return r;
    free(r);
    return NULL;
}

void meta_reach_free(struct meta_reach *r)
{
    if (r == NULL)
        return;
    free(r->places);
    free(r);
}

/* ---- whom to blame -------------------------------------------------------------------------- */

static void judge_votes(struct meta_reach *r, struct votes *v, uint64_t now)
{
    const bool blamed = v->failed >= LEAST_VOICES && 2 * (uint64_t)v->failed > v->tried;
    if (blamed == v->blamed)
        return;
    v->blamed = blamed;
    v->since = now;
    if (v != &r->table)
        r->blamed += blamed ? 1 : (uint32_t)-1;
}

static void count_vote(struct meta_reach *r, struct votes *v, const struct entry *e, int one,
                       uint64_t now)
{
    v->tried += (uint32_t)one;
    v->failed += e->error != META_REACH_OK ? (uint32_t)one : 0;
    judge_votes(r, v, now);
}

static bool is_void(const struct meta_reach *r, const struct entry *e)
{
    return r->places[e->node].life != e->life;
}

/* Adds (1) or takes away (-1) what the node has to say of others. */
static void count_report(struct meta_reach *r, const struct place *p, int one, uint64_t now)
{
    if (!p->has_voice)
        return;
    for (uint32_t i = 0; i < p->count; i++)
        if (!is_void(r, &p->tried[i]))
            count_vote(r, &r->places[p->tried[i].node].votes, &p->tried[i], one, now);
    if (p->has_table)
        count_vote(r, &r->table, &p->table, one, now);
}

/* ---- reports -------------------------------------------------------------------------------- */

static void unlink_place(struct meta_reach *r, struct place *p)
{
    *(p->prev == NONE ? &r->first : &r->places[p->prev].next) = p->next;
    *(p->next == NONE ? &r->last : &r->places[p->next].prev) = p->prev;
}

static void link_last(struct meta_reach *r, struct place *p)
{
    const uint32_t node = (uint32_t)(p - r->places);
    p->prev = r->last;
    p->next = NONE;
    *(r->last == NONE ? &r->first : &r->places[r->last].next) = node;
    r->last = node;
}

static void forget_report(struct meta_reach *r, struct place *p, uint64_t now)
{
    if (!p->heard)
        return;
    count_report(r, p, -1, now);
    unlink_place(r, p);
    p->heard = p->has_voice = p->has_table = false;
    p->count = 0;
}

static struct entry entry_of(const struct meta_reach *r, const struct meta_reach_tried *t,
                             uint64_t now)
{
    struct entry e = {.node = t->node, .error = t->error};
    if (t->node < r->nodes)
        e.life = r->places[t->node].life;
    if (t->error != META_REACH_OK)
        e.since = t->for_ns < now ? now - t->for_ns : 0;
    return e;
}

static bool is_among(const struct place *p, uint32_t node)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->tried[i].node == node)
            return true;
    return false;
}

void meta_reach_put(struct meta_reach *r, uint32_t node, const struct meta_reach_report *report,
                    uint64_t now)
{
    struct place *p = &r->places[node];
    BASE_ASSERT(node < r->nodes && report->count <= META_REACH_TARGETS);
    forget_report(r, p, now);
    for (uint32_t i = 0; i < report->count; i++) {
        const struct meta_reach_tried *t = &report->tried[i];
        BASE_ASSERT(t->node < r->nodes);
        if (t->node == node || is_among(p, t->node))
            continue;
        p->has_voice |= t->error == META_REACH_OK;
        p->tried[p->count++] = entry_of(r, t, now);
    }
    p->has_table = report->has_table;
    if (p->has_table) {
        p->table = entry_of(r, &report->table, now);
        p->has_voice |= p->table.error == META_REACH_OK;
    }
    p->heard = true;
    p->at = now;
    link_last(r, p);
    count_report(r, p, 1, now);
}

void meta_reach_drop(struct meta_reach *r, uint32_t node)
{
    struct place *p = &r->places[node];
    forget_report(r, p, p->at);
    r->blamed -= p->votes.blamed;
    p->votes = (struct votes){.tried = 0};
    p->life++;
}

void meta_reach_expire(struct meta_reach *r, uint64_t now)
{
    while (r->first != NONE && now - r->places[r->first].at >= META_REACH_KEEP_NS)
        forget_report(r, &r->places[r->first], now);
}

/* ---- shown ---------------------------------------------------------------------------------- */

static void show_entry(const struct entry *e, const struct votes *v, uint64_t now,
                       struct meta_reach_view *out)
{
    const uint64_t for_ns = now - e->since;
    out->tried++;
    if (e->error == META_REACH_OK || v->blamed)
        return;
    out->towards[out->failing++] =
        (struct meta_reach_tried){.node = e->node, .error = e->error, .for_ns = for_ns};
    if (for_ns > out->for_ns)
        out->for_ns = for_ns;
}

void meta_reach_show(const struct meta_reach *r, uint32_t node, uint64_t now,
                     struct meta_reach_view *out)
{
    const struct place *p = &r->places[node];
    *out = (struct meta_reach_view){.tried_by = p->votes.tried, .failed_by = p->votes.failed};
    for (uint32_t i = 0; i < p->count; i++)
        if (!is_void(r, &p->tried[i]))
            show_entry(&p->tried[i], &r->places[p->tried[i].node].votes, now, out);
    if (p->has_table) {
        const uint32_t before = out->failing;
        show_entry(&p->table, &r->table, now, out);
        out->table = out->failing > before;
    }
    if (p->votes.blamed) {
        out->state = META_REACH_STATE_UNREACHABLE;
        out->for_ns = now - p->votes.since;
    } else if (out->failing > 0) {
        out->state = META_REACH_STATE_FAILING;
    } else if (p->has_voice || p->votes.tried > p->votes.failed) {
        out->state = META_REACH_STATE_OK;
    }
}

struct meta_reach_counts meta_reach_count(const struct meta_reach *r)
{
    return (struct meta_reach_counts){
        .unreachable = r->blamed, .table_tried = r->table.tried, .table_failed = r->table.failed};
}
