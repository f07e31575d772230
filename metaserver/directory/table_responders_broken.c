/* SPDX-License-Identifier: Apache-2.0 */
/* Which responders have broken, and whose they are. */
#include <string.h>

#include "table_responders_private.h"

enum { TAKES = 64 }; /* completions at a time */

/* By its life, since what completes may be of one that is over. */
static void note_flushed(struct meta_responders *r, uint64_t wr_id)
{
    const uint32_t number = (uint32_t)wr_id;
    if (number >= r->touched)
        return;
    struct responder *p = &r->responders[number];
    if (p->life != wr_id >> 32 || (p->state != CONNECTING && p->state != READY && p->state != KEPT))
        return;
    p->broken = r->untold = true;
}

/* What comes after it was armed is told of. Where it cannot be, it is looked at again. */
static void take_flushed(struct meta_responders *r)
{
    struct ibv_wc wc[TAKES];
    int n;
    r->news = fab_arm(r->cq, false) != 0;
    do {
        n = fab_poll(r->cq, TAKES, wc);
        for (int i = 0; i < n; i++)
            note_flushed(r, wc[i].wr_id);
    } while (n == TAKES);
}

void meta_responders_hear(struct meta_responders *r)
{
    r->news = true;
}

const char *meta_responders_broken(struct meta_responders *r)
{
    if (r->stopping)
        return NULL;
    if (r->telling == 0 && r->news)
        take_flushed(r);
    while (r->untold && r->telling < r->touched) {
        const uint32_t number = r->telling++;
        struct responder *p = &r->responders[number];
        if (p->state != KEPT || !p->broken || p->told)
            continue;
        p->told = true;
        return r->kept.owner[number].id;
    }
    r->untold = false;
    r->telling = 0;
    return NULL;
}

uint32_t meta_responders_broken_of(const struct meta_responders *r, const char *id, uint32_t *at)
{
    const struct responder_owner *owner;
    uint32_t place = meta_responder_index_place(&r->kept, id) + *at;
    for (; (owner = meta_responder_index_at(&r->kept, place)) != NULL && strcmp(owner->id, id) == 0;
         place++) {
        const struct responder *p = &r->responders[owner - r->kept.owner];
        ++*at;
        if (p->broken)
            return p->qp->qpn;
    }
    return 0;
}
