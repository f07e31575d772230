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

static bool is_lately(const struct meta_responders *r, const struct taken_responder *t)
{
    return t->taker[0] != '\0' && r->now_ns - t->at_ns < TAKE_AGAIN_NS;
}

/* The node that has got it. */
static const char *taker_of(const struct taken_responder *t)
{
    return t->taker[0] != '\0' ? t->taker : t->id;
}

static bool is_older(const struct taken_responder *t, const struct taken_responder *other)
{
    return (int32_t)(t->number - other->number) < 0;
}

static uint32_t count_of(const struct meta_responders *r, const char *taker)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < TAKEN; i++)
        n += strcmp(taker_of(&r->taken[i]), taker) == 0;
    return n;
}

/* The node with the most, this one counted as one more: of several the one that has the oldest. */
static const char *choose_taker(const struct meta_responders *r, const char *taker)
{
    const struct taken_responder *best = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < TAKEN; i++) {
        const struct taken_responder *t = &r->taken[i];
        const uint32_t n = count_of(r, taker_of(t)) + (strcmp(taker_of(t), taker) == 0);
        if (best == NULL || n > most || (n == most && is_older(t, best))) {
            best = t;
            most = n;
        }
    }
    return taker_of(best);
}

/* One that nobody is to hear of, and that nobody got of late; or of the node with the most, which
 * may get its own as often as it likes: so these first. */
static const struct taken_responder *find_place(const struct meta_responders *r, const char *taker)
{
    const struct taken_responder *best = NULL;
    for (uint32_t i = 0; i < TAKEN; i++)
        if (r->taken[i].qpn == 0 && !is_lately(r, &r->taken[i]))
            return &r->taken[i];
    const char *of = choose_taker(r, taker);
    for (uint32_t i = 0; i < TAKEN; i++) {
        const struct taken_responder *t = &r->taken[i];
        if (strcmp(taker_of(t), of) != 0)
            continue;
        const bool differs = best != NULL && is_lately(r, t) != is_lately(r, best);
        if (best == NULL || (differs ? is_lately(r, best) : is_older(t, best)))
            best = t;
    }
    return best;
}

void meta_responder_note_taken(struct responder *p, const struct meta_responder_request *taker)
{
    struct meta_responders *r = p->owner;
    const struct taken_responder *place = find_place(r, taker->id);
    struct taken_responder *t = &r->taken[place - r->taken];
    const char *id = r->kept.owner[meta_responder_number(p)].id;
    if (is_lately(r, place) && strcmp(id, taker->id) == 0)
        return; /* else who gets its own has forgotten what others have got */
    *t = (struct taken_responder){.qpn = p->qp->qpn,
                                  .taker_pool = taker->peer.pool,
                                  .number = r->takes++,
                                  .at_ns = r->now_ns};
    memcpy(t->id, id, strnlen(id, sizeof t->id - 1));
    if (strcmp(id, taker->id) != 0)
        memcpy(t->taker, taker->id, sizeof t->taker);
    r->untold = true;
}

/* Some nodes together have filled all places: what one that is among them gets would be forgotten
 * of another one that has no more, or of itself. */
static bool has_its_part(const struct meta_responders *r, const char *id, uint32_t lately)
{
    const struct taken_responder *place = find_place(r, id);
    return lately > 0 && is_lately(r, place) && count_of(r, taker_of(place)) <= lately + 1;
}

/* A pool's number is whatever its node says. */
bool meta_responders_took_lately(const struct meta_responders *r,
                                 const struct meta_responder_request *taker)
{
    uint32_t of_node = 0;
    for (uint32_t i = 0; i < TAKEN; i++) {
        const struct taken_responder *t = &r->taken[i];
        if (!is_lately(r, t) || strcmp(t->taker, taker->id) != 0)
            continue;
        if (t->taker_pool == taker->peer.pool || ++of_node == META_RESPONDERS_OF_NODE)
            return true;
    }
    return has_its_part(r, taker->id, of_node);
}

void meta_responder_note_kept(const struct responder *p, const char *id)
{
    for (uint32_t i = 0; i < TAKEN; i++) {
        struct taken_responder *t = &p->owner->taken[i];
        if (t->qpn == p->qp->qpn && strcmp(t->id, id) == 0)
            t->qpn = 0;
    }
}

static const char *next_taken(struct meta_responders *r)
{
    for (uint32_t i = 0; i < TAKEN; i++) {
        struct taken_responder *t = &r->taken[i];
        if (t->qpn == 0 || t->told)
            continue;
        t->told = true;
        return t->id;
    }
    return NULL;
}

const char *meta_responders_broken(struct meta_responders *r)
{
    const char *taken = NULL;
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
    if (r->untold && (taken = next_taken(r)) != NULL)
        return taken;
    r->untold = false;
    r->telling = 0;
    return NULL;
}

uint32_t meta_responders_broken_of(const struct meta_responders *r, const char *id, uint32_t *at)
{
    const struct responder_owner *owner;
    while (*at < TAKEN) {
        const struct taken_responder *t = &r->taken[(*at)++];
        if (t->qpn != 0 && strcmp(t->id, id) == 0)
            return t->qpn;
    }
    uint32_t place = meta_responder_index_place(&r->kept, id) + *at - TAKEN;
    for (; (owner = meta_responder_index_at(&r->kept, place)) != NULL && strcmp(owner->id, id) == 0;
         place++) {
        const struct responder *p = &r->responders[owner - r->kept.owner];
        ++*at;
        if (p->broken)
            return p->qp->qpn;
    }
    return 0;
}
