/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/slow.h"

#include <unistd.h>

#include "base/clock.h"
#include "fault/layer.h"
#include "fault/fault_timer.h"

static void put_last(struct fault_slow *s, struct fab_ctl *ctl, uint64_t takes_ns)
{
    if (s->first == NULL) {
        s->tail = &s->first;
        s->due_ns = base_clock_ns() + takes_ns;
        fault_timer_set(s->fd, s->due_ns);
    }
    *s->tail = ctl;
    s->tail = &ctl->next;
}

enum { LOOK_MS = 10 /* whether a device hangs still */ };

bool fault_hangs(const struct fault_plan *plan)
{
    return plan->hang_while[0] != '\0' && access(plan->hang_while, F_OK) == 0;
}

/* Of those that others may need: a domain, or a queue. */
static bool frees_needed(enum fab_ctl_kind kind)
{
    return kind == FAB_FREE_PD || kind == FAB_DESTROY_SRQ || kind == FAB_DESTROY_CQ ||
           kind == FAB_DESTROY_CHAN;
}

/* How long each kind takes: registering as pinning memory does; draining anything up to twice what
 * the plan says, since peers decide. 0: no time, as what only waits behind those. */
static uint64_t slow_ns(struct fault_fab *f, const struct fault_plan_state *now, int kind,
                        const struct fab_ctl *ctl)
{
    const struct fault_plan *plan = &now->plan;
    if (kind == FAULT_HANGS)
        return fault_hangs(plan) ? LOOK_MS * BASE_NS_PER_MS : 0;
    if (frees_needed(ctl->kind))
        return 0;
    if (kind == FAULT_REGISTERS || plan->drain_ns == 0)
        return kind == FAULT_REGISTERS ? plan->register_ns : 0;
    return 1 + base_prng_below(&f->control.prng, 2 * plan->drain_ns);
}

/* FAULT_SLOWS: it takes no time. What one that is slow may need is freed behind it, as every
 * provider does it (fabric.h). */
static int slow_kind(const struct fault_fab *f, const struct fab_ctl *ctl,
                     const struct fault_plan *plan)
{
    if (f->slow[FAULT_HANGS].first != NULL || fault_hangs(plan))
        return FAULT_HANGS;
    for (int kind = 0; frees_needed(ctl->kind) && kind < FAULT_HANGS; kind++)
        if (f->slow[kind].first != NULL)
            return kind;
    return ctl->kind == FAB_REG_MR && plan->register_ns > 0     ? FAULT_REGISTERS
           : ctl->kind == FAB_DESTROY_DCT && plan->drain_ns > 0 ? FAULT_DRAINS
                                                                : FAULT_SLOWS;
}

bool fault_slow_put(struct fault_fab *f, const struct fault_plan_state *now, struct fab_ctl *ctl)
{
    const int kind = slow_kind(f, ctl, &now->plan);
    if (kind == FAULT_SLOWS)
        return false;
    put_last(&f->slow[kind], ctl, slow_ns(f, now, kind, ctl));
    return true;
}

struct fab_ctl *fault_slow_take(struct fault_fab *f, const struct fault_plan_state *now, int kind)
{
    struct fault_slow *s = &f->slow[kind];
    uint64_t count;
    if (s->first == NULL || base_clock_ns() < s->due_ns)
        return NULL;
    if (read(s->fd, &count, sizeof count) < 0) {
        /* It is not readable yet: another one looked here first. */
    }
    if (kind == FAULT_HANGS && fault_hangs(&now->plan)) {
        s->due_ns = base_clock_ns() + slow_ns(f, now, kind, s->first);
        fault_timer_set(s->fd, s->due_ns);
        return NULL;
    }
    struct fab_ctl *ctl = s->first;
    s->first = ctl->next;
    ctl->next = NULL;
    if (s->first != NULL) {
        s->due_ns = base_clock_ns() + slow_ns(f, now, kind, s->first);
        fault_timer_set(s->fd, s->due_ns);
    }
    return ctl;
}
