/* SPDX-License-Identifier: Apache-2.0 */
/* The ladder, as in SMART (its credits): sizes are tried, each for 8 ms, and the best is kept for
 * 60 times as long. Beside that:
 *
 * - From the largest down, every other one, until two were worse; then the neighbours of the best.
 *   What is too large costs most at the top, so that it is left soon, and what is too small is
 *   seldom tried. Later the neighbours alone are, and all of them again after some times.
 * - Of sizes that are as good the smaller one is kept: what waits here can be merged, and a
 *   destination that is slow takes no more of the device's window than it needs.
 * - A window that is shared, the device's, has a size only where that gains something, and no limit
 *   is tried once more before it is believed: else what a busy host does by itself would be taken
 *   for a card that slows down. Where none gains, the lane need not count (window_find.c).
 * - One that does much better or worse than when it was tried is tried anew at once, with all. Who
 *   lets its load swing has no others pay for that: each time this takes twice as many rounds to
 *   begin, and where a size is kept only its neighbours are tried for it. No limit is tried anew at
 *   once when twice as much is wanted as then, which is so once, until a size was kept for long. */
#include <stddef.h>

#include "schedule/window_policy.h"

enum {
    NS_PER_MS = 1000000,
    TRY_NS = 8 * NS_PER_MS,
    TRY_OPS = 64,              /* at least, however long they take */
    TRY_MOST_NS = 16 * TRY_NS, /* after which trying ends, whatever was learned */
    SETTLE_NS = 2 * NS_PER_MS, /* at most, until what is out is of the size that is tried */
    KEEP_ROUNDS = 60,
    KEEPS = 8,          /* after which all are tried again */
    STRANGE_ROUNDS = 4, /* and twice as many each time that it was so before */
    HASTY_MOST = 4,     /* which is longer than a size is kept */
    ALIKE_PERCENT = 1,  /* sizes that differ by no more are as good */
    BAD_PERCENT = 8,
    GAIN_PERCENT = 3, /* of a size beside no limit, where it is shared */
    STRANGE_PERCENT = 30
};

/* The last one: no limit. */
static const uint16_t rungs[WINDOW_RUNGS] = {4,  6,  8,   11,  16,  23,  32,  45,
                                             64, 91, 128, 181, 256, 362, 512, 0};

enum stage { STAGE_BEGIN, STAGE_DOWN, STAGE_BELOW, STAGE_ABOVE, STAGE_CONFIRM, STAGE_KEEP };
enum { NO_LIMIT = WINDOW_RUNGS - 1 };

static bool is_tried(const struct window_ladder *l)
{
    return l->stage != STAGE_KEEP && l->stage != STAGE_BEGIN;
}

static void begin_round(struct window_ladder *l)
{
    l->ns = l->work = l->past_ns = 0;
    l->ops = 0;
}

static uint64_t rate_of(const struct window_ladder *l)
{
    return l->work * 1000 / (l->ns / 1000 + 1);
}

static void go_to(struct window_finder *f, uint8_t rung)
{
    struct window_ladder *l = &f->ladder;
    l->unsettled = l->rung != rung;
    l->settle_ns = 0;
    l->rung = rung;
    f->size = rungs[rung];
    begin_round(l);
}

static uint8_t best_of(const struct window_ladder *l)
{
    uint64_t most = 0;
    uint8_t best = l->best;
    for (uint8_t i = 0; i < WINDOW_RUNGS; i++)
        most = l->rate[i] > most ? l->rate[i] : most;
    for (uint8_t i = WINDOW_RUNGS; i > 0; i--)
        if (l->rate[i - 1] > 0 && l->rate[i - 1] >= most - most * ALIKE_PERCENT / 100)
            best = i - 1;
    return best;
}

/* NO_LIMIT, where nothing is gained beside that. */
static uint8_t best_that_gains(const struct window_ladder *l)
{
    const uint64_t none = l->rate[NO_LIMIT];
    const uint8_t best = best_of(l);
    if (l->shared && none > 0 && l->rate[best] < none + none * GAIN_PERCENT / 100)
        return NO_LIMIT;
    return best;
}

static void keep_best(struct window_finder *f)
{
    struct window_ladder *l = &f->ladder;
    l->best = best_that_gains(l);
    l->expected = l->rate[l->best];
    l->stage = STAGE_KEEP;
    l->rounds = l->strange = l->more = 0;
    f->explores = false;
    f->content = l->best == NO_LIMIT;
    go_to(f, l->best);
}

/* All that was to be tried was. */
static void end_trying(struct window_finder *f)
{
    struct window_ladder *l = &f->ladder;
    if (!l->confirms || best_that_gains(l) == NO_LIMIT) {
        keep_best(f);
        return;
    }
    l->confirms = 0;
    l->stage = STAGE_CONFIRM;
    go_to(f, NO_LIMIT);
}

/* ---- what is tried */

/* Those that no sample could tell from no limit are left out. */
static void find_range(struct window_ladder *l, const struct window_sample *s)
{
    l->lowest = 0;
    while (l->lowest < WINDOW_RUNGS - 2 && rungs[l->lowest] < s->floor)
        l->lowest++;
    l->highest = WINDOW_RUNGS - 2;
    while (l->highest > l->lowest && rungs[l->highest] >= s->wanted)
        l->highest--;
}

static void forget_rates(struct window_ladder *l)
{
    for (int i = 0; i < WINDOW_RUNGS; i++)
        l->rate[i] = 0;
}

static void try_all(struct window_finder *f, const struct window_sample *s)
{
    struct window_ladder *l = &f->ladder;
    find_range(l, s);
    forget_rates(l);
    l->stage = STAGE_DOWN;
    l->bad = l->kept = 0;
    l->wanted = 0;
    l->confirms = l->shared;
    f->explores = true;
    f->content = false;
    go_to(f, NO_LIMIT);
}

static uint8_t rung_above(const struct window_ladder *l, uint8_t rung)
{
    return rung >= l->highest ? NO_LIMIT : rung + 1;
}

static uint8_t rung_below(const struct window_ladder *l, uint8_t rung)
{
    return rung == NO_LIMIT ? l->highest : rung > l->lowest ? rung - 1 : rung;
}

static void try_above(struct window_finder *f)
{
    struct window_ladder *l = &f->ladder;
    const uint8_t next = rung_above(l, l->best);
    l->stage = STAGE_ABOVE;
    if (l->rate[next] > 0)
        end_trying(f);
    else
        go_to(f, next);
}

static void try_below(struct window_finder *f)
{
    struct window_ladder *l = &f->ladder;
    const uint8_t next = rung_below(l, l->best);
    l->stage = STAGE_BELOW;
    if (l->rate[next] > 0)
        try_above(f);
    else
        go_to(f, next);
}

/* The best is what it does now, beside its neighbours. */
static void try_neighbours(struct window_finder *f, const struct window_sample *s)
{
    struct window_ladder *l = &f->ladder;
    find_range(l, s);
    forget_rates(l);
    l->rate[l->best] = l->expected;
    l->kept++;
    f->explores = true;
    f->content = false;
    try_below(f);
}

static void end_try(struct window_finder *f, const struct window_sample *s)
{
    struct window_ladder *l = &f->ladder;
    const uint64_t rate = rate_of(l);
    const uint64_t most = l->rate[best_of(l)];
    if (l->stage == STAGE_CONFIRM) {
        if (rate > l->rate[NO_LIMIT])
            l->rate[NO_LIMIT] = rate;
        keep_best(f);
        return;
    }
    l->rate[l->rung] = rate > 0 ? rate : 1;
    if (l->stage == STAGE_BELOW) {
        try_above(f);
        return;
    }
    if (l->stage == STAGE_ABOVE) {
        end_trying(f);
        return;
    }
    l->bad = rate < most - most * BAD_PERCENT / 100 ? l->bad + 1 : 0;
    const bool first = l->rung == NO_LIMIT, last = l->rung <= l->lowest;
    if (first) /* all that is wanted is out */
        find_range(l, s);
    if (l->bad >= 2 || last) {
        l->best = best_of(l);
        try_below(f);
    } else {
        go_to(f, first ? l->highest : l->rung > l->lowest + 1 ? l->rung - 2 : l->lowest);
    }
}

/* ---- what is kept */

/* Much more is wanted than when sizes were tried, which once ends what is kept at once. */
static bool ends_for_more(const struct window_ladder *l)
{
    return l->more >= STRANGE_ROUNDS && !l->more_spent;
}

/* It is another load. For the first time all may be otherwise. */
static void end_strange(struct window_finder *f, const struct window_sample *s, uint64_t rate)
{
    struct window_ladder *l = &f->ladder;
    const bool again = l->hasty > 0 && l->best != NO_LIMIT;
    if (ends_for_more(l))
        l->more_spent = 1;
    else
        l->hasty += l->hasty < HASTY_MOST;
    l->expected = rate > 0 ? rate : 1;
    if (again && l->kept < KEEPS)
        try_neighbours(f, s);
    else
        try_all(f, s);
}

static void end_kept_round(struct window_finder *f, const struct window_sample *s)
{
    struct window_ladder *l = &f->ladder;
    const uint64_t rate = rate_of(l), was = l->expected;
    /* With no limit, many more that are out are another load, whatever they come to. */
    const bool more = f->size == 0 && s->wanted > 2 * l->wanted;
    const bool alike = !more && rate >= was - was * STRANGE_PERCENT / 100 &&
                       rate <= was + was * STRANGE_PERCENT / 100;
    begin_round(l);
    if (s->may_explore) {
        l->strange = alike ? 0 : l->strange + 1;
        l->more = !more ? 0 : l->more + (l->more < STRANGE_ROUNDS);
        if (alike)
            l->expected = (7 * l->expected + rate) / 8;
    }
    l->rounds += l->rounds < KEEP_ROUNDS;
    if (!s->may_explore)
        return;
    if (ends_for_more(l) || l->strange >= STRANGE_ROUNDS << l->hasty) {
        end_strange(f, s, rate);
        return;
    }
    if (l->rounds < KEEP_ROUNDS)
        return;
    l->hasty -= l->hasty > 0;
    l->more_spent = 0;
    if (l->kept >= KEEPS)
        try_all(f, s);
    else
        try_neighbours(f, s);
}

/* Whether the window makes a difference: what is tried and kept is known by no other time. */
static bool is_telling(const struct window_finder *f, const struct window_sample *s)
{
    return f->size == 0 ? s->wanted > s->floor : s->wanted > f->size;
}

static void begin_ladder(struct window_finder *f)
{
    f->ladder.rung = f->ladder.best = NO_LIMIT;
}

static void take_sample(struct window_finder *f, const struct window_sample *s)
{
    struct window_ladder *l = &f->ladder;
    l->shared = s->shared;
    if (l->stage == STAGE_BEGIN) {
        f->waits = s->wanted > s->floor && !s->may_explore;
        if (s->wanted > s->floor && s->may_explore)
            try_all(f, s);
        return;
    }
    l->past_ns += s->ns;
    if (l->past_ns > TRY_MOST_NS && is_tried(l)) {
        keep_best(f);
        return;
    }
    if (!is_telling(f, s))
        return;
    f->waits = !is_tried(l) && l->rounds >= KEEP_ROUNDS && !s->may_explore;
    if (l->unsettled) {
        l->settle_ns += s->ns;
        l->unsettled = f->size != 0 && s->out > f->size && l->settle_ns < SETTLE_NS;
        l->past_ns -= s->ns;
        return;
    }
    if (is_tried(l) && s->wanted > l->wanted)
        l->wanted = s->wanted;
    l->ns += s->ns;
    l->work += s->work;
    l->ops += s->ops;
    if (l->ns < TRY_NS || (l->ops < TRY_OPS && l->past_ns < TRY_MOST_NS / 2))
        return;
    if (is_tried(l))
        end_try(f, s);
    else
        end_kept_round(f, s);
}

const struct window_policy lane_window_ladder = {
    .name = "ladder", .finds = true, .begin = begin_ladder, .take = take_sample};
