/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/batch_pace.h"

#include "base/assert.h"
#include "session_state.h"

enum {
    PIECE_COST = 256, /* bytes that are carried while a device begins another request */
    /* Of what the port carries in a millisecond, one of so many: 8 and 20 us. */
    BESIDE_PART = 125,
    ALONE_PART = 50,
    /* And no less than one piece, and two, also where the port's rate is not known: while one is on
     * its way back the other one is carried. */
    BESIDE_BYTES = 2048,
    ALONE_BYTES = 2 * (64 * 1024 + PIECE_COST)
};
static const uint64_t BESIDE_NS = 10000000; /* since others' last request */
static const uint64_t NEXT_NS = 20000;      /* that a piece is kept for who may be gone meanwhile */

static uint64_t cost_of(const struct wr *w)
{
    return w->length + PIECE_COST;
}

/* Requests that were posted, and no pieces. */
static uint64_t count_others(const struct lane *l)
{
    return atomic_load_explicit(&l->counters.posted, memory_order_relaxed) - l->batches.pace.posted;
}

/* Whether some were since it was asked last. */
static bool have_others_come(struct lane *l)
{
    struct batch_pace *p = &l->batches.pace;
    const uint64_t others = count_others(l);
    const bool come = others != p->others;
    p->others = others;
    return come;
}

void lane_batch_pace_begin(struct lane *l)
{
    if (have_others_come(l) && l->active_count > 1)
        l->batches.pace.beside_until_ns = l->now_ns + BESIDE_NS;
}

static uint64_t most_out(const struct lane *l)
{
    const bool beside = batch_pace_is_beside(l);
    const uint64_t most = l->config.port_rate / (beside ? BESIDE_PART : ALONE_PART);
    const uint64_t least = beside ? BESIDE_BYTES : ALONE_BYTES;
    return most > least ? most : least;
}

/* Once for all batches in a pass: else of two the one that asks first would let others go first
 * each time, and the other one never. */
static bool yields_in_pass(struct lane *l)
{
    struct batch_pace *p = &l->batches.pace;
    const uint64_t pass = atomic_load_explicit(&l->counters.passes, memory_order_relaxed);
    if (have_others_come(l)) {
        p->beside_until_ns = l->now_ns + BESIDE_NS;
        p->came = 1;
    }
    if (p->pass != pass) {
        p->pass = pass;
        p->waits = p->came && !p->yields;
        p->yields |= p->waits;
        p->came = 0;
    }
    return p->waits;
}

static bool is_claimed(const struct lane *l, const struct batch_claim *c)
{
    return c->tenant != 0 && l->now_ns < c->until_ns;
}

/* Another tenant that has had none for longer waits for the next piece, and is to have it. */
static bool is_anothers(const struct lane *l, uint32_t tenant)
{
    const struct batch_pace *p = &l->batches.pace;
    return is_claimed(l, &p->next) && p->served[p->next.tenant - 1] < p->served[tenant];
}

/* The tenant waits for a piece: the next one, or where somebody else who has had none for longer
 * does, the one after it. */
static void claim_next(struct lane *l, uint32_t tenant)
{
    struct batch_pace *p = &l->batches.pace;
    const struct batch_claim claim = {.tenant = tenant + 1, .until_ns = l->now_ns + NEXT_NS};
    if (p->next.tenant == claim.tenant || !is_claimed(l, &p->next)) {
        p->next = claim;
    } else if (p->served[p->next.tenant - 1] > p->served[tenant]) {
        p->after = p->next;
        p->next = claim;
    } else if (p->after.tenant == claim.tenant || !is_claimed(l, &p->after) ||
               p->served[p->after.tenant - 1] > p->served[tenant]) {
        p->after = claim;
    }
}

enum vqp_wait lane_batch_pace_ask(struct lane *l, const struct wr *w)
{
    struct batch_pace *p = &l->batches.pace;
    const uint32_t tenant = w->session->tenant_slot;
    if (yields_in_pass(l))
        return WAIT_PASS;
    if (is_anothers(l, tenant) || (p->out > 0 && p->out + cost_of(w) > most_out(l))) {
        claim_next(l, tenant);
        return WAIT_BATCHES;
    }
    if (p->next.tenant == tenant + 1) {
        p->next = p->after;
        p->after.tenant = 0;
        l->changed |= l->wanting; /* it may wait for a window, and others for nothing more */
    }
    return WAIT_NOTHING;
}

void lane_batch_pace_posted(struct lane *l, const struct wr *w)
{
    struct batch_pace *p = &l->batches.pace;
    p->served[w->session->tenant_slot] = ++p->posted;
    p->out += cost_of(w);
    p->yields = 0;
}

void lane_batch_pace_back(struct lane *l, const struct wr *w)
{
    BASE_ASSERT(l->batches.pace.out >= cost_of(w));
    l->batches.pace.out -= cost_of(w);
    l->changed |= l->wanting;
}
