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
static const uint64_t WEIGHT = 1 << 16; /* of a byte to the farthest peer */

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

static uint64_t weight_of(const struct batch_trip *t)
{
    return t->weight != 0 ? t->weight : WEIGHT * TRIP_MOST_NS / TRIP_NS;
}

static uint32_t peer_of(const struct wr *w)
{
    return w->flow != NULL ? w->flow->peer_slot : w->session->vqps[w->vqp].peer_slot;
}

static struct batch_trip *trip_to(struct lane *l, uint32_t peer)
{
    return &l->batches.pace.trip[peer % BATCH_TRIPS];
}

static uint64_t trip_ns(const struct batch_trip *t)
{
    const uint64_t a = t->least_ns[0], b = t->least_ns[1];
    const uint64_t ns = a == 0 || (b != 0 && b < a) ? b : a;
    if (ns == 0)
        return TRIP_NS;
    return ns < TRIP_LEAST_NS ? TRIP_LEAST_NS : ns > TRIP_MOST_NS ? TRIP_MOST_NS : ns;
}

/* One at a time, of those whose completion the device tells of. */
static void begin_trip(struct lane *l, const struct wr *w)
{
    struct batch_timed *t = &l->batches.pace.timed;
    if (t->wr != NULL || !w->signaled || l->config.port_rate == 0)
        return;
    t->wr = w;
    t->carried_ns = l->batches.pace.port_ns;
}

/* A trip that was seen changes the weight of the peer's bytes, those that are out as well. */
static void set_weight(struct batch_pace *p, struct batch_trip *t)
{
    p->load -= t->out * weight_of(t);
    t->weight = (uint32_t)(WEIGHT * TRIP_MOST_NS / trip_ns(t));
    p->load += t->out * weight_of(t);
}

/* Pieces have one length, whosever they are, by the nearest peer's time: so who has as many of them
 * as others has as much. */
static void find_nearest(struct lane *l)
{
    struct batch_pace *p = &l->batches.pace;
    p->nearest_ns = 0;
    for (uint32_t i = 0; i < BATCH_TRIPS; i++) {
        const struct batch_trip *t = &p->trip[i];
        const bool is_known = t->weight != 0 && l->now_ns < t->until_ns + TRIP_SPAN_NS;
        if (is_known && (p->nearest_ns == 0 || trip_ns(t) < p->nearest_ns))
            p->nearest_ns = trip_ns(t);
    }
}

static void end_trip(struct lane *l, const struct wr *w, bool well)
{
    struct batch_timed *timed = &l->batches.pace.timed;
    struct batch_trip *t = trip_to(l, peer_of(w));
    if (timed->wr != w)
        return;
    timed->wr = NULL;
    const uint64_t ns = l->now_ns > timed->carried_ns ? l->now_ns - timed->carried_ns : 1;
    if (l->now_ns >= t->until_ns) {
        t->until_ns = l->now_ns + TRIP_SPAN_NS;
        t->least_ns[1] = t->least_ns[0];
        t->least_ns[0] = 0;
    }
    if (well && (t->least_ns[0] == 0 || ns < t->least_ns[0]))
        t->least_ns[0] = ns;
    set_weight(&l->batches.pace, t);
    find_nearest(l);
}

/* ---- how much */

static uint64_t nearest_trip_ns(const struct batch_pace *p)
{
    return p->nearest_ns != 0 ? p->nearest_ns : TRIP_NS;
}

/* What is out takes a part of the port's time there and back, to each peer of that peer's: so near
 * and far ones together keep the port busy, and no more. There has to be room for one to the
 * nearest peer, wherever it goes: else those to far ones, which fit where that does not, would
 * leave it none. */
static bool has_part(const struct lane *l, uint64_t cost)
{
    const struct batch_pace *p = &l->batches.pace;
    const uint64_t weight = WEIGHT * TRIP_MOST_NS / nearest_trip_ns(p);
    return p->out + cost <= BESIDE_BYTES ||
           p->load + cost * weight <= l->config.port_rate * TRIP_MOST_NS / 1000000 * WEIGHT;
}

static uint64_t most_alone(const struct lane *l)
{
    const uint64_t part = l->config.port_rate / ALONE_PART;
    return part > ALONE_BYTES ? part : ALONE_BYTES;
}

uint64_t lane_batch_pace_ahead(struct lane *l, uint32_t peer)
{
    const uint64_t out = l->config.port_rate * trip_ns(trip_to(l, peer)) / 1000000;
    const uint64_t two = 2 * lane_batch_pace_piece(l);
    return out > two ? out : two;
}

uint64_t lane_batch_pace_piece(const struct lane *l)
{
    const uint64_t part =
        l->config.port_rate * nearest_trip_ns(&l->batches.pace) / 1000000 / PIECES_OUT;
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
    const uint64_t out = l->batches.pace.out, cost = cost_of(w);
    if (out == 0)
        return true;
    return batch_pace_is_beside(l) ? has_part(l, cost) : out + cost <= most_alone(l);
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
    struct batch_trip *t = trip_to(l, peer_of(w));
    p->served[w->session->tenant_slot] = ++p->posted;
    p->out += cost_of(w);
    t->out += cost_of(w);
    p->load += cost_of(w) * weight_of(t);
    if (l->config.port_rate != 0)
        p->port_ns = (p->port_ns > l->now_ns ? p->port_ns : l->now_ns) + carried_ns(l, cost_of(w));
    begin_trip(l, w);
}

void lane_batch_pace_back(struct lane *l, const struct wr *w, bool well)
{
    struct batch_pace *p = &l->batches.pace;
    struct batch_trip *t = trip_to(l, peer_of(w));
    BASE_ASSERT(t->out >= cost_of(w) && p->out >= t->out);
    p->out -= cost_of(w);
    t->out -= cost_of(w);
    p->load -= cost_of(w) * weight_of(t);
    end_trip(l, w, well);
}
