/* SPDX-License-Identifier: Apache-2.0 */
#include "control/window_rebalance.h"

static uint64_t larger_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What an idle lane keeps, of bytes or of requests. */
static uint64_t idle_part(uint64_t all, uint32_t count)
{
    return larger_of(all / count / AGENT_SHARE_IDLE, 1);
}

static bool is_more(uint64_t in_flight, uint64_t all, uint32_t count)
{
    return all != 0 && in_flight > idle_part(all, count);
}

static void look_at_share(struct agent_share *s, const struct lane_window *now, uint32_t count,
                          struct agent_limits all)
{
    const bool limited = (s->told.bytes | s->told.ops) != 0;
    if (now->limit_bytes == s->told.bytes && now->limit_ops == s->told.ops &&
        (now->counted || !limited))
        s->pending = false;
    if (!s->pending)
        s->held = (struct agent_limits){.bytes = larger_of(s->told.bytes, now->bytes),
                                        .ops = larger_of(s->told.ops, now->ops)};
    if (now->waiting > 0 || now->waits != s->waits || is_more(now->bytes, all.bytes, count) ||
        is_more(now->ops, all.ops, count))
        s->busy = AGENT_SHARE_LOOKS;
    else if (s->busy > 0)
        s->busy--;
    s->waits = now->waits;
}

/* ---- what each should have */

/* Bytes, or requests: the same is done with both. */
enum dimension { BYTES, OPS, DIMENSIONS };

static uint64_t *limit_of(struct agent_limits *limits, enum dimension d)
{
    return d == BYTES ? &limits->bytes : &limits->ops;
}

static uint64_t should_have(const struct agent_share *s, uint64_t all, uint32_t count,
                            uint32_t busy)
{
    const uint64_t equal = larger_of(all / count, 1), idle = idle_part(all, count);
    if (all == 0)
        return 0;
    if (busy == 0 || busy == count)
        return equal;
    if (s->busy == 0)
        return idle;
    const uint64_t kept = idle * (count - busy);
    return kept < all ? larger_of((all - kept) / busy, 1) : 1;
}

/* Whether it goes at once: nobody else has to give anything up for it. */
static bool is_narrower(uint64_t told, uint64_t wanted)
{
    return wanted == 0 || (told != 0 && wanted < told);
}

static uint64_t room_beside(struct agent_share *const at[], uint32_t count, uint32_t self,
                            enum dimension d, uint64_t all)
{
    uint64_t held = 0;
    for (uint32_t i = 0; i < count; i++)
        if (i != self)
            held += *limit_of(&at[i]->held, d);
    return held < all ? all - held : 0;
}

static void tell_share(struct agent_share *s, enum dimension d, uint64_t limit)
{
    *limit_of(&s->told, d) = limit;
    *limit_of(&s->held, d) = larger_of(*limit_of(&s->held, d), limit);
    s->pending = true;
}

static void plan_windows(struct agent_share *const at[], uint32_t count, enum dimension d,
                         uint64_t all, uint64_t settled, bool widen)
{
    uint32_t busy = 0;
    for (uint32_t i = 0; i < count; i++)
        busy += at[i]->busy > 0;
    for (uint32_t i = 0; i < count; i++) {
        struct agent_share *s = at[i];
        const uint64_t told = *limit_of(&s->told, d), wanted = should_have(s, all, count, busy);
        if ((settled >> i & 1) == 0 || told == wanted || is_narrower(told, wanted) == widen)
            continue;
        const uint64_t may = smaller_of(wanted, larger_of(room_beside(at, count, i, d, all), 1));
        if (!widen)
            tell_share(s, d, wanted);
        else if (may > told)
            tell_share(s, d, may);
    }
}

uint64_t agent_rebalance_turn(struct agent_share *const at[], const struct lane_window now[],
                              uint32_t count, struct agent_limits all)
{
    struct agent_limits before[64];
    uint64_t changed = 0, settled = 0;
    for (uint32_t i = 0; i < count; i++) {
        look_at_share(at[i], &now[i], count, all);
        before[i] = at[i]->told;
        settled |= (uint64_t)!at[i]->pending << i;
    }
    for (int widen = 0; widen < 2; widen++)
        for (enum dimension d = BYTES; d < DIMENSIONS; d++)
            plan_windows(at, count, d, *limit_of(&all, d), settled, widen);
    for (uint32_t i = 0; i < count; i++)
        if (before[i].bytes != at[i]->told.bytes || before[i].ops != at[i]->told.ops)
            changed |= UINT64_C(1) << i;
    return changed;
}

static bool has_share(const struct agent_share *s, uint32_t count, struct agent_limits all)
{
    return s->told.bytes == should_have(s, all.bytes, count, 0) &&
           s->told.ops == should_have(s, all.ops, count, 0);
}

/* One alone has all of it, whatever it does, and of a window that is none all have as much. */
bool agent_rebalance_rests(const struct agent_share *const at[], uint32_t count,
                           struct agent_limits all, bool idle)
{
    const bool shared = count > 1 && (all.bytes | all.ops) != 0;
    bool rests = idle || !shared;
    for (uint32_t i = 0; i < count; i++)
        rests &= !at[i]->pending && has_share(at[i], count, all) && !(shared && at[i]->busy > 0);
    return rests;
}
