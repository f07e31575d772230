/* SPDX-License-Identifier: Apache-2.0 */
#include "request/handover.h"

#include "request/active.h"

static bool is_here(const struct lane *l, const struct session *s)
{
    return atomic_load_explicit(&s->rw->cpu, memory_order_relaxed) == l->handover.cpu;
}

void lane_handover_answered(struct lane *l, struct session *s)
{
    handover_show(l, s);
    if (is_here(l, s))
        l->handover.wants = s->id + 1;
}

/* Whoever is polled, and waits elsewhere, would have to wait for the lane's wake, and what others
 * have out comes back sooner where it is polled for. Where many are polled somebody is taken to. */
static bool harms_others(const struct lane *l, const struct session *to)
{
    uint32_t looks = 0;
    const struct active_tenant *t;
    const struct session *s;
    TAILQ_FOREACH(t, &l->active_tenants, by_turn)
        TAILQ_FOREACH(s, &t->sessions, by_active)
            if (s != to && (++looks > HANDOVER_LOOKS || !is_here(l, s) || session_inflight(s) > 0))
                return true;
    return false;
}

bool lane_hands_over(struct lane *l)
{
    struct handover *h = &l->handover;
    if (h->wants == 0)
        return false;
    const struct session *s = &l->sessions[h->wants - 1];
    h->given = s->state == SESSION_LIVE && is_here(l, s) && !harms_others(l, s);
    if (!h->given)
        h->wants = 0;
    return h->given;
}

void lane_handover_slept(struct lane *l)
{
    if (l->handover.given)
        COUNT(l, handovers, 1);
    l->handover.given = false;
    l->handover.wants = 0;
}

void lane_set_cpu(struct lane *l, int cpu)
{
    l->handover.cpu = cpu < 0 ? 0 : (uint32_t)cpu + 1;
}
