/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/batch_pace.h"

#include "base/assert.h"
#include "session_state.h"
#include "vqp_state.h"

enum {
    PIECE_COST = 256, /* bytes that are carried while a device begins another request */
    ALONE_PART = 50,  /* of what the port carries in a millisecond one in so many: 20 us */
    /* And no less than one piece, and two, also where the port's rate is not known: while one is on
     * its way back the other one is carried. */
    BESIDE_BYTES = 1024,
    ALONE_BYTES = 2 * (64 * 1024 + PIECE_COST),
    PIECE_MOST = 64 * 1024,
    PIECES_OUT = 4, /* beside others: while one is on its way the next is posted */
    CUT_BYTES = 64  /* which pieces have a multiple of */
};
static const uint64_t BESIDE_NS = 10000000; /* since others' last request */
static const uint64_t NEXT_NS = 20000;      /* that a piece is kept for who may be gone meanwhile */
/* There and back: where it is not known, the least and the most that is believed. */
static const uint64_t TRIP_NS = 2000, TRIP_LEAST_NS = 1000, TRIP_MOST_NS = 8000;
static const uint64_t TRIP_SPAN_NS = 10000000;

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

/* ---- there and back */

/* What the port takes for that. */
static uint64_t carried_ns(const struct lane *l, uint64_t bytes)
{
    return bytes * 1000000 / l->config.port_rate;
}

/* One at a time, of those whose completion the device tells of. */
static void begin_trip(struct lane *l, const struct wr *w)
{
    struct batch_trip *t = &l->batches.pace.trip;
    if (t->timed != NULL || !w->signaled || l->config.port_rate == 0)
        return;
    t->timed = w;
    t->posted_ns = l->now_ns;
    t->out = l->batches.pace.out;
}

static void end_trip(struct lane *l, const struct wr *w, bool well)
{
    struct batch_trip *t = &l->batches.pace.trip;
    if (t->timed != w)
        return;
    t->timed = NULL;
    const uint64_t took_ns = l->now_ns - t->posted_ns, own_ns = carried_ns(l, t->out);
    if (l->now_ns >= t->until_ns) {
        t->until_ns = l->now_ns + TRIP_SPAN_NS;
        t->least_ns[1] = t->least_ns[0];
        t->least_ns[0] = LANE_NEVER;
    }
    const uint64_t trip_ns = took_ns > own_ns ? took_ns - own_ns : 0;
    if (well && trip_ns < t->least_ns[0])
        t->least_ns[0] = trip_ns;
}

static uint64_t trip_ns(const struct lane *l)
{
    const uint64_t *least_ns = l->batches.pace.trip.least_ns;
    const uint64_t ns = least_ns[0] < least_ns[1] ? least_ns[0] : least_ns[1];
    if (ns == LANE_NEVER)
        return TRIP_NS;
    return ns < TRIP_LEAST_NS ? TRIP_LEAST_NS : ns > TRIP_MOST_NS ? TRIP_MOST_NS : ns;
}

/* ---- how much */

static uint64_t most_out(const struct lane *l)
{
    const bool beside = batch_pace_is_beside(l);
    const uint64_t most =
        beside ? l->config.port_rate * trip_ns(l) / 1000000 : l->config.port_rate / ALONE_PART;
    const uint64_t least = beside ? BESIDE_BYTES : ALONE_BYTES;
    return most > least ? most : least;
}

uint64_t lane_batch_pace_ahead(const struct lane *l)
{
    const uint64_t out = most_out(l), two = 2 * lane_batch_pace_piece(l);
    return out > two ? out : two;
}

uint64_t lane_batch_pace_piece(const struct lane *l)
{
    const uint64_t part = l->config.port_rate * trip_ns(l) / 1000000 / PIECES_OUT;
    const uint64_t bytes = part < PIECE_MOST ? part / CUT_BYTES * CUT_BYTES : PIECE_MOST;
    return bytes > BESIDE_BYTES ? bytes : BESIDE_BYTES;
}

/* ---- when */

bool lane_batch_pace_open(struct lane *l)
{
    struct batch_pace *p = &l->batches.pace;
    if (have_others_come(l))
        p->beside_until_ns = l->now_ns + BESIDE_NS;
    p->opens = 1;
    return batch_pace_is_beside(l);
}

/* ---- whose */

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

static bool has_room(const struct lane *l, const struct wr *w)
{
    const struct batch_pace *p = &l->batches.pace;
    return p->out == 0 || p->out + cost_of(w) <= most_out(l);
}

bool lane_batch_pace_has_room(struct lane *l, const struct wr *w)
{
    if (has_room(l, w))
        return true;
    claim_next(l, w->session->tenant_slot);
    return false;
}

/* Where it is w's turn at a window, or for room, it goes then, or has no turn. */
static bool has_turn(const struct lane *l, const struct wr *w)
{
    return l->turn_wr == w || l->turn_vqp == &w->session->vqps[w->vqp];
}

enum vqp_wait lane_batch_pace_ask(struct lane *l, const struct wr *w)
{
    struct batch_pace *p = &l->batches.pace;
    const uint32_t tenant = w->session->tenant_slot;
    if (!p->opens && !has_turn(l, w))
        return WAIT_BATCHES;
    if (is_anothers(l, tenant) || !has_room(l, w)) {
        claim_next(l, tenant);
        return WAIT_BATCHES;
    }
    if (p->next.tenant == tenant + 1) { /* it may wait for a window, and others for nothing more */
        p->next = p->after;
        p->after.tenant = 0;
    }
    return WAIT_NOTHING;
}

void lane_batch_pace_posted(struct lane *l, const struct wr *w)
{
    struct batch_pace *p = &l->batches.pace;
    p->served[w->session->tenant_slot] = ++p->posted;
    p->out += cost_of(w);
    begin_trip(l, w);
}

void lane_batch_pace_back(struct lane *l, const struct wr *w, bool well)
{
    BASE_ASSERT(l->batches.pace.out >= cost_of(w));
    l->batches.pace.out -= cost_of(w);
    end_trip(l, w, well);
}
