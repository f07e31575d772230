/* SPDX-License-Identifier: Apache-2.0 */
#include "request/handover.h"

#include "base/clock.h"

static bool is_here(const struct lane *l, const struct session *s)
{
    return atomic_load_explicit(&s->rw->cpu, memory_order_relaxed) == l->handover.cpu;
}

/* It would be polled now, had the lane not slept. */
static bool was_polled(const struct lane *l, const struct session *s)
{
    return l->handover.given_ns - s->worked_ns <= l->config.silent_ns;
}

static void note_harm(struct lane *l)
{
    struct session *to = &l->sessions[l->handover.given - 1];
    const uint64_t rest_ns = (uint64_t)HANDOVER_SESSION_REST_MS * BASE_NS_PER_MS
                             << to->handover.harms;
    l->handover.given = 0;
    l->handover.rest_ns = l->now_ns + HANDOVER_REST_MS * BASE_NS_PER_MS;
    to->handover.rest_ns = l->now_ns + rest_ns;
    to->handover.harms += to->handover.harms < HANDOVER_MOST_DOUBLED;
    to->handover.rights = 0;
    COUNT(l, handovers_wrong, 1);
}

static void note_right(struct lane *l)
{
    struct session *to = &l->sessions[l->handover.given - 1];
    l->handover.given = 0;
    if (++to->handover.rights < HANDOVER_RIGHTS)
        return;
    to->handover.rights = 0;
    to->handover.harms = 0;
}

/* Who was polled until then, and waits elsewhere, has had to wait for the lane's wake. */
static void judge_handover(struct lane *l, const struct session *s)
{
    if (s->id + 1 == l->handover.given)
        note_right(l);
    else if (was_polled(l, s) && !is_here(l, s))
        note_harm(l);
}

void lane_handover_rung(struct lane *l, struct session *s)
{
    if (l->handover.given != 0)
        judge_handover(l, s);
}

void lane_handover_answered(struct lane *l, struct session *s)
{
    handover_show(l, s);
    if (l->handover.given != 0)
        judge_handover(l, s);
    if (is_here(l, s))
        l->handover.wants = s->id + 1;
}

bool lane_hands_over(struct lane *l)
{
    struct handover *h = &l->handover;
    if (h->wants == 0)
        return false;
    struct session *s = &l->sessions[h->wants - 1];
    /* What others have out comes back sooner where it is polled for. */
    if (s->state != SESSION_LIVE || l->now_ns < h->rest_ns || l->now_ns < s->handover.rest_ns ||
        h->out != session_inflight(s)) {
        h->wants = 0;
        return false;
    }
    h->given = s->id + 1;
    h->given_ns = l->now_ns;
    return true;
}

void lane_handover_slept(struct lane *l)
{
    if (l->handover.wants != 0 && l->handover.wants == l->handover.given)
        COUNT(l, handovers, 1);
    l->handover.wants = 0;
}

void lane_set_cpu(struct lane *l, int cpu)
{
    l->handover.cpu = cpu < 0 ? 0 : (uint32_t)cpu + 1;
}
