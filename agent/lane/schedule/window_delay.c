/* SPDX-License-Identifier: Apache-2.0 */
/* By delay: what a request takes is what is out divided by how many end (Little's law), so that
 * none is stamped. What it takes with few out is measured at first, and now and then since a path
 * or a peer may change; then as many are let out as make it take so many times that. */
#include "schedule/window_policy.h"

enum {
    NS_PER_MS = 1000000,
    ROUND_NS = 4 * NS_PER_MS,
    ROUND_OPS = 32,
    BASE_NS = 2 * NS_PER_MS,
    SETTLE_NS = 64 * NS_PER_MS, /* at most: what is out beyond the size makes others seem slow */
    FEW_NS = 64 * NS_PER_MS,    /* too few are wanted to measure it: it is not */
    BASE_ROUNDS = 120,          /* after which it is measured again */
    SLOWED_MOST = 3 * 128,      /* 256ths of the least: so much longer a request may take */
    LEAST_FACTOR = 128,
    MOST_FACTOR = 512, /* that a size becomes in a round, 256ths */
    SIZE_MOST = 4096
};

enum stage { STAGE_IDLE, STAGE_BASE, STAGE_GO_ON };

static void begin_round(struct window_delay *d)
{
    d->ns = d->out = d->samples = 0;
    d->ops = 0;
}

static void begin_settling(struct window_delay *d)
{
    d->unsettled = 1;
    d->settle_ns = 0;
}

static void measure_base(struct window_finder *f, const struct window_sample *s)
{
    struct window_delay *d = &f->delay;
    d->stage = STAGE_BASE;
    d->former = f->size;
    begin_settling(d);
    d->rounds = 0;
    d->few_ns = 0;
    f->size = s->floor;
    f->explores = true;
    begin_round(d);
}

static uint64_t delay_of(const struct window_delay *d)
{
    return d->out * d->ns / (d->samples * d->ops) + 1;
}

static void end_base(struct window_finder *f, const struct window_sample *s)
{
    struct window_delay *d = &f->delay;
    d->base_ns = delay_of(d);
    d->stage = STAGE_GO_ON;
    f->size = d->former != 0 ? d->former : 2 * s->floor;
    f->explores = false;
    begin_settling(d);
    begin_round(d);
}

/* Little is wanted any more: others may measure. */
static void give_up_base(struct window_finder *f, const struct window_sample *s)
{
    struct window_delay *d = &f->delay;
    d->few_ns += s->ns;
    if (d->few_ns < FEW_NS)
        return;
    d->stage = STAGE_IDLE;
    f->size = d->former;
    f->explores = false;
}

static uint32_t root_of(uint32_t n)
{
    uint32_t r = 1;
    while ((r + 1) * (r + 1) <= n)
        r++;
    return r;
}

static void end_round(struct window_finder *f, const struct window_sample *s)
{
    struct window_delay *d = &f->delay;
    f->slowed = (uint32_t)(delay_of(d) * 256 / d->base_ns);
    const uint32_t slowed = s->slowed != 0 ? s->slowed : f->slowed != 0 ? f->slowed : 1;
    uint64_t factor = 256ull * SLOWED_MOST / slowed;
    factor = factor < LEAST_FACTOR ? LEAST_FACTOR : factor > MOST_FACTOR ? MOST_FACTOR : factor;
    /* Half the way, so that it does not swing. */
    uint64_t next = (f->size + f->size * factor / 256) / 2;
    if (factor > 256 && next == f->size)
        next += root_of(f->size) / 2 + 1;
    if (next > f->size && s->wanted <= f->size)
        next = f->size;
    f->size = next > SIZE_MOST ? SIZE_MOST : next < s->floor ? s->floor : (uint32_t)next;
    begin_round(d);
    if (++d->rounds >= BASE_ROUNDS && s->may_explore)
        measure_base(f, s);
    else if (d->rounds > BASE_ROUNDS)
        d->rounds = BASE_ROUNDS;
}

static void begin_delay(struct window_finder *f)
{
    f->delay.stage = STAGE_IDLE;
}

static void take_sample(struct window_finder *f, const struct window_sample *s)
{
    struct window_delay *d = &f->delay;
    if (d->stage == STAGE_IDLE) {
        f->waits = s->wanted > s->floor && !s->may_explore;
        if (s->wanted > s->floor && s->may_explore)
            measure_base(f, s);
        return;
    }
    if (s->wanted <= s->floor) {
        if (d->stage == STAGE_BASE)
            give_up_base(f, s);
        return;
    }
    if (d->unsettled) {
        d->settle_ns += s->ns;
        d->unsettled = s->out > f->size && d->settle_ns < SETTLE_NS;
        return;
    }
    d->ns += s->ns;
    d->ops += s->ops;
    d->out += s->out;
    d->samples++;
    if (d->ns < (d->stage == STAGE_BASE ? BASE_NS : ROUND_NS) || d->ops < ROUND_OPS)
        return;
    if (d->stage == STAGE_BASE)
        end_base(f, s);
    else
        end_round(f, s);
}

const struct window_policy lane_window_delay = {
    .name = "delay", .finds = true, .begin = begin_delay, .take = take_sample};
