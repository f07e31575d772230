/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/evict.h"

#include "resolve/flow.h"
#include "transmit/physical_qp.h"

static struct flow *older_flow(struct flow *a, struct flow *b)
{
    return a == NULL || b->used_ns < a->used_ns ? b : a;
}

static bool owes_sign(const struct evictor *e, const struct flow *f)
{
    return flow_is_suspect(f) || f->since_ns < e->owing_ns;
}

static struct flow *choose_busy(const struct evictor *e, struct flow *a, struct flow *b)
{
    if (a != NULL && owes_sign(e, a) != owes_sign(e, b))
        return owes_sign(e, a) ? b : a;
    return older_flow(a, b);
}

static bool has_more(const struct evictor *e, uint32_t tenant)
{
    return e->culprits[tenant - 1].made > e->culprits[e->tenant - 1].made;
}

static bool is_meant(const struct evictor *e, const struct flow *f)
{
    if (f->drains != NULL)
        return false;
    if (e->of_quarantine)
        return f->quarantined && f->linked_ns <= e->linked_ns &&
               (e->tenant == 0 || e->tenant == f->tenant_slot + 1);
    return e->culprits == NULL || f->made_for == 0 || f->made_for == e->tenant ||
           has_more(e, f->made_for);
}

/* The best busy one of the round so far, if it is one still: its place may be another's by now. */
static struct flow *find_kept(const struct evictor *e, const struct physical_qp *phys,
                              uint32_t room)
{
    struct flow *f = e->hand->best < room ? phys[e->hand->best].flow : NULL;
    return f != NULL && f->news != NEWS_COMES && is_meant(e, f) ? f : NULL;
}

struct flow *lane_evict_pick(struct evictor *e, const struct physical_qp *phys, uint32_t room)
{
    struct evict_hand *hand = e->hand;
    if (hand->looked == 0)
        *hand = (struct evict_hand){.at = hand->at, .best = UINT32_MAX};
    struct flow *idle = NULL, *busy = find_kept(e, phys, room);
    if (busy != NULL && busy->outstanding == 0) {
        idle = busy;
        busy = NULL;
    }
    for (uint32_t i = 0; i < EVICT_LOOKS && i < room; i++, hand->looked++) {
        const uint32_t at = hand->at;
        struct flow *f = phys[at].flow;
        hand->at = at + 1 < room ? at + 1 : 0;
        if (f == NULL || !is_meant(e, f))
            continue;
        if (f->news == NEWS_COMES) /* its own have waited for it, and come first */
            hand->has_news = 1;
        else if (f->outstanding == 0)
            idle = older_flow(idle, f);
        else if ((busy = choose_busy(e, busy, f)) == f)
            hand->best = at;
    }
    e->again = hand->has_news;
    const bool one_more = room > EVICT_LOOKS && busy != NULL && owes_sign(e, busy) && !e->only_idle;
    if (idle == NULL && hand->looked < (one_more ? 2 * room : room)) {
        e->again = 1;
        return NULL;
    }
    hand->looked = 0;
    return idle != NULL || e->only_idle ? idle : busy;
}
