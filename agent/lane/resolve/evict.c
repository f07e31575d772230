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

struct flow *evict_pick(struct evictor *e, const struct physical_qp *phys, uint32_t room)
{
    struct flow *idle = NULL, *busy = NULL;
    e->again = 0;
    for (uint32_t i = 0; i < EVICT_LOOKS && i < room; i++, e->looked++) {
        struct flow *f = phys[e->at].flow;
        e->at = e->at + 1 < room ? e->at + 1 : 0;
        if (f == NULL || !is_meant(e, f))
            continue;
        if (f->news == NEWS_COMES) /* its own have waited for it, and come first */
            e->again = 1;
        else if (f->outstanding == 0)
            idle = older_flow(idle, f);
        else
            busy = choose_busy(e, busy, f);
    }
    const bool one_more = room > EVICT_LOOKS && busy != NULL && owes_sign(e, busy) && !e->only_idle;
    if (idle == NULL && e->looked < (one_more ? 2 * room : room)) {
        e->again = 1;
        return NULL;
    }
    e->looked = 0;
    return idle != NULL || e->only_idle ? idle : busy;
}
