/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/reach.h"

#include <stdlib.h>

#include "base/assert.h"

#define NONE UINT32_MAX
enum { LEAST_VOICES = 2 };

/* What is said of one target: by whoever has a voice. */
struct votes {
    uint32_t tried, failed;
    uint32_t failing; /* the numbers of those that fail, one XOR the other: of one, whose it is */
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
    uint64_t seen; /* its agent was heard of at; 0: not yet */
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
    uint64_t late_ns, seen; /* any agent was heard of at */
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
    static const char *const names[] = {"unknown", "ok", "undecided", "failing", "unreachable"};
    return names[state];
}

struct meta_reach *meta_reach_new(uint32_t nodes, uint64_t late_ns)
{
    struct meta_reach *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    *r = (struct meta_reach){.nodes = nodes, .first = NONE, .last = NONE, .late_ns = late_ns};
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

/* ---- whom to blame */

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

/* Of the node `by`. */
static void count_vote(struct votes *v, const struct entry *e, uint32_t by, int one)
{
    v->tried += (uint32_t)one;
    if (e->error != META_REACH_OK) {
        v->failed += (uint32_t)one;
        v->failing ^= by;
    }
}

static bool is_void(const struct meta_reach *r, const struct entry *e)
{
    return r->places[e->node].life != e->life;
}

/* Adds (1) or takes away (-1) what the node has to say of others. Nobody is judged by it yet. */
static void count_report(struct meta_reach *r, const struct place *p, int one)
{
    const uint32_t by = (uint32_t)(p - r->places);
    if (!p->has_voice)
        return;
    for (uint32_t i = 0; i < p->count; i++)
        if (!is_void(r, &p->tried[i]))
            count_vote(&r->places[p->tried[i].node].votes, &p->tried[i], by, one);
    if (p->has_table)
        count_vote(&r->table, &p->table, by, one);
}

/* Those of whom the report in `said` speaks. */
static void judge_report(struct meta_reach *r, const struct place *said, uint64_t now)
{
    for (uint32_t i = 0; i < said->count; i++)
        judge_votes(r, &r->places[said->tried[i].node].votes, now);
    if (said->has_table)
        judge_votes(r, &r->table, now);
}

/* Whether nothing was heard of its agent when it should have been, although another one was: it is
 * not this metaserver that hears nothing. */
static bool is_late(const struct meta_reach *r, const struct place *p, uint64_t now)
{
    return p->seen != 0 && now - p->seen > r->late_ns && now - r->seen <= r->late_ns;
}

/* Whether it says itself that it reaches nothing, of two and more that it has tried. */
static bool is_cut_off(const struct meta_reach *r, const struct place *p)
{
    uint32_t tried = p->has_table;
    for (uint32_t i = 0; i < p->count; i++)
        tried += !is_void(r, &p->tried[i]);
    return p->heard && !p->has_voice && tried >= 2;
}

/* Whether that others fail towards it is its own doing. One voice is enough against an agent that
 * is late, so that of two nodes the one that died is known before its lease ends. */
static bool is_to_blame(const struct meta_reach *r, const struct place *p, uint64_t now)
{
    const struct votes *v = &p->votes;
    return v->blamed || (2 * (uint64_t)v->failed > v->tried && is_late(r, p, now));
}

/* ---- reports */

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

static void take_report(struct meta_reach *r, struct place *p)
{
    if (!p->heard)
        return;
    count_report(r, p, -1);
    unlink_place(r, p);
    p->heard = p->has_voice = p->has_table = false;
    p->count = 0;
}

static void forget_report(struct meta_reach *r, struct place *p, uint64_t now)
{
    const struct place said = *p;
    take_report(r, p);
    judge_report(r, &said, now);
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
    const struct place said = *p;
    take_report(r, p);
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
    count_report(r, p, 1);
    /* Not before: of the two voices that it takes one would be gone for a moment, and whoever is
     * blamed would be so from now on. */
    judge_report(r, &said, now);
    judge_report(r, p, now);
}

void meta_reach_seen(struct meta_reach *r, uint32_t node, uint64_t now)
{
    BASE_ASSERT(node < r->nodes);
    r->places[node].seen = r->seen = now;
}

void meta_reach_drop(struct meta_reach *r, uint32_t node)
{
    struct place *p = &r->places[node];
    forget_report(r, p, p->at);
    r->blamed -= p->votes.blamed;
    p->votes = (struct votes){.tried = 0};
    p->seen = 0;
    p->life++;
}

uint64_t meta_reach_next_expiry(const struct meta_reach *r)
{
    return r->first == NONE ? UINT64_MAX : r->places[r->first].at + META_REACH_KEEP_NS;
}

void meta_reach_expire(struct meta_reach *r, uint64_t now)
{
    while (meta_reach_next_expiry(r) <= now)
        forget_report(r, &r->places[r->first], now);
}

/* ---- shown */

static void show_entry(const struct entry *e, bool excused, uint64_t now,
                       struct meta_reach_view *out)
{
    const uint64_t for_ns = now - e->since;
    out->tried++;
    if (e->error == META_REACH_OK || excused)
        return;
    out->towards[out->failing++] =
        (struct meta_reach_tried){.node = e->node, .error = e->error, .for_ns = for_ns};
    if (for_ns > out->for_ns)
        out->for_ns = for_ns;
}

/* Whether of a node and one that it fails towards nobody can tell which one it is: no other node
 * with a voice has tried that one, and the node has, or has tried nothing else. */
static bool is_between(const struct place *p, const struct place *other, uint32_t tried)
{
    return p->has_voice ? other->votes.tried == 1 : other->votes.tried == 0 && tried == 1;
}

/* What a node says of others. */
static void show_report(const struct meta_reach *r, const struct place *p, uint64_t now,
                        struct meta_reach_view *out)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const struct place *other = &r->places[p->tried[i].node];
        if (!is_void(r, &p->tried[i]))
            show_entry(&p->tried[i],
                       is_to_blame(r, other, now) || (p->has_voice && is_cut_off(r, other)), now,
                       out);
    }
    if (p->has_table) {
        const uint32_t before = out->failing;
        show_entry(&p->table, r->table.blamed, now, out);
        out->table = out->failing > before;
    }
    bool between = out->failing > 0 && !out->table;
    for (uint32_t i = 0; i < out->failing && between; i++)
        between = is_between(p, &r->places[out->towards[i].node], out->tried);
    if (out->failing > 0)
        out->state = between ? META_REACH_STATE_UNDECIDED : META_REACH_STATE_FAILING;
}

/* That one other node, the only one that has tried it, fails towards it. */
static void show_accuser(const struct meta_reach *r, const struct place *p, uint64_t now,
                         struct meta_reach_view *out)
{
    const struct place *by = &r->places[p->votes.failing];
    const uint32_t node = (uint32_t)(p - r->places);
    if (out->state == META_REACH_STATE_FAILING || p->votes.tried != 1 || p->votes.failed != 1)
        return;
    out->state = META_REACH_STATE_UNDECIDED;
    out->has_by = true;
    out->by = p->votes.failing;
    for (uint32_t i = 0; i < by->count; i++)
        if (by->tried[i].node == node && now - by->tried[i].since > out->for_ns)
            out->for_ns = now - by->tried[i].since;
}

void meta_reach_show(const struct meta_reach *r, uint32_t node, uint64_t now,
                     struct meta_reach_view *out)
{
    const struct place *p = &r->places[node];
    *out = (struct meta_reach_view){.tried_by = p->votes.tried, .failed_by = p->votes.failed};
    show_report(r, p, now, out);
    if (is_to_blame(r, p, now)) {
        out->state = META_REACH_STATE_UNREACHABLE;
        out->for_ns = now - (p->votes.blamed ? p->votes.since : p->seen + r->late_ns);
        return;
    }
    show_accuser(r, p, now, out);
    if (out->state == META_REACH_STATE_UNKNOWN &&
        (p->has_voice || p->votes.tried > p->votes.failed))
        out->state = META_REACH_STATE_OK;
}

bool meta_reach_is_unreached(const struct meta_reach *r, uint32_t node, uint64_t now,
                             struct meta_reach_unreached *out)
{
    const struct votes *v = &r->places[node].votes;
    if (v->blamed)
        *out = (struct meta_reach_unreached){
            .by = v->failed, .tried_by = v->tried, .for_ns = now - v->since};
    return v->blamed;
}

struct meta_reach_counts meta_reach_count(const struct meta_reach *r)
{
    return (struct meta_reach_counts){.unreachable = r->blamed,
                                      .table_tried = r->table.tried,
                                      .table_failed = r->table.failed,
                                      .table_blamed = r->table.blamed};
}
