/* SPDX-License-Identifier: Apache-2.0 */
#include "message/set_aside.h"

#include <stddef.h>

#include "base/assert.h"

static bool aside_counts(const struct stream_aside *a)
{
    return a->by != NULL && a->id != 0 && a->by->id == a->id && a->by->step - a->step < ASIDE_STEPS;
}

uint32_t lane_aside_has(const struct stream_aside *a, uint32_t next)
{
    const uint32_t left = a->until - next;
    return aside_counts(a) && left <= ASIDE_MOST ? left : 0;
}

uint32_t lane_aside_says(const struct stream_aside *a, uint32_t next)
{
    const uint32_t has = lane_aside_has(a, next);
    return has > 0 && a->step == a->by->step ? has : 0;
}

/* It has none, whatever numbers come: these come round again, and while none is set aside for
 * anybody `until` stays where it is. */
static void has_none(struct stream_aside *a)
{
    a->step = a->by->step - ASIDE_STEPS;
}

static void count_more(struct hearer_asides *s, uint32_t step, uint32_t more)
{
    s->count[step % ASIDE_STEPS] += more;
    s->all += more;
}

static void count_less(struct hearer_asides *s, uint32_t step, uint32_t less)
{
    BASE_ASSERT(s->count[step % ASIDE_STEPS] >= less && s->all >= less);
    s->count[step % ASIDE_STEPS] -= less;
    s->all -= less;
}

void lane_aside_drop(struct stream_aside *a, uint32_t next)
{
    const uint32_t left = lane_aside_has(a, next);
    if (left > 0)
        count_less(a->by, a->step, left);
    *a = (struct stream_aside){.by = NULL};
}

void lane_aside_hear(struct stream_aside *a, struct hearer_asides *s, uint32_t next)
{
    if (a->by == s && a->id == s->id)
        return;
    lane_aside_drop(a, next);
    *a = (struct stream_aside){.by = s, .id = s->id};
    has_none(a);
}

void lane_aside_took(struct stream_aside *a, uint32_t next)
{
    const uint32_t has = lane_aside_has(a, next);
    if (has == 0)
        return;
    count_less(a->by, a->step, 1);
    if (has == 1)
        has_none(a);
}

void lane_aside_renew(struct stream_aside *a, uint32_t next)
{
    const uint32_t has = lane_aside_has(a, next);
    if (has == 0)
        return;
    count_less(a->by, a->step, has);
    count_more(a->by, a->by->step, has);
    a->step = a->by->step;
}

void lane_aside_keep(struct stream_aside *a, uint32_t next)
{
    if (!a->was_kept)
        lane_aside_renew(a, next);
    a->was_kept = true;
}

void lane_set_aside_missed(struct hearer_asides *s)
{
    s->is_scarce = true;
    s->scarce_step = s->step;
}

/* Three times as much as is left to others (Choudhury and Hahne's dynamic thresholds), of which
 * those that send nothing else than messages need none. */
void lane_aside_extend(struct stream_aside *a, uint32_t next)
{
    const uint32_t has = lane_aside_has(a, next);
    struct hearer_asides *s = a->by;
    if (s == NULL || s->id == 0 || s->id != a->id || s->is_scarce)
        return;
    const uint32_t others = s->all - has, posted = *s->posted;
    uint32_t most = posted > others ? 3 * (posted - others) / 4 : 0;
    most = most < has ? has : most < ASIDE_MOST ? most : ASIDE_MOST;
    if (has > 0)
        count_less(s, a->step, has);
    count_more(s, s->step, most);
    a->step = s->step;
    a->was_kept = false;
    a->until = next + most;
    if (most == 0)
        has_none(a);
}

void lane_set_aside_go_on(struct hearer_asides *s, uint64_t now_ns, uint64_t step_ns)
{
    uint64_t steps = (now_ns - s->step_ns) / step_ns;
    if (steps == 0)
        return;
    s->step_ns += steps * step_ns;
    s->is_scarce = s->is_scarce && (s->step - s->scarce_step) + steps < ASIDE_SCARCE;
    if (steps > ASIDE_STEPS) { /* all of them are over */
        s->step += (uint32_t)(steps - ASIDE_STEPS);
        steps = ASIDE_STEPS;
    }
    for (; steps > 0; steps--) {
        s->step++;
        s->all -= s->count[s->step % ASIDE_STEPS];
        s->count[s->step % ASIDE_STEPS] = 0;
    }
}
