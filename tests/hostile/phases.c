/* SPDX-License-Identifier: Apache-2.0 */
/* Phases and tails that contradict each other: what is in the ring is all right, and when it is
 * there nobody can say. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "hostile.h"
#include "schema/phase.h"

enum { CUT_OFF_MS = 20000, CROWD = 16, ROUNDS = 64 };

/* By what a session lies. */
enum lie {
    LIE_SILENT, /* phases, and a tail that stays where it was */
    LIE_CHASE,  /* phases, and a tail that is where the lane is: there is never anything */
    LIE_BEHIND, /* likewise, one behind the lane */
    LIE_AHEAD,  /* a tail that says that the ring is full, and no phase */
    LIE_MORE,   /* each was published with more, of which there is none */
    LIE_ANY,    /* anything, and another thing each time */
    LIES
};

struct liar {
    struct writer w;
    enum lie lie;
};

static void put_phases(struct liar *k, uint32_t head, uint8_t flags)
{
    struct raw *r = &k->w.r;
    struct schema_sq_desc *ring = (void *)r->ring;
    const uint32_t mask = r->ro->sq_slots - 1;
    for (uint32_t i = head; i != head + r->ro->sq_slots; i++)
        __atomic_store_n(&ring[i & mask].slots,
                         (uint8_t)(1 | schema_phase(i, mask) << SCHEMA_SLOTS_PHASE | flags),
                         __ATOMIC_RELEASE);
}

static void put_tail(struct liar *k, uint32_t tail)
{
    atomic_store_explicit(&k->w.r.rw->sq_tail, tail, memory_order_release);
}

static void put_anything(struct hostile *h, struct liar *k, uint32_t head)
{
    struct raw *r = &k->w.r;
    struct schema_sq_desc *ring = (void *)r->ring;
    const uint32_t slots = r->ro->sq_slots;
    for (int i = 0; i < 8; i++)
        __atomic_store_n(&ring[hostile_random(h) % slots].slots,
                         (uint8_t)(1 | (hostile_random(h) & 0x70)), __ATOMIC_RELAXED);
    put_tail(k, head - 1 + (uint32_t)hostile_random(h) % 4);
}

static void lie_once(struct hostile *h, struct liar *k)
{
    struct raw *r = &k->w.r;
    const uint32_t head = atomic_load(&r->ro->sq_head);
    switch (k->lie) {
    case LIE_SILENT:
        put_phases(k, head, 0);
        break;
    case LIE_CHASE:
        put_phases(k, head, 0);
        put_tail(k, head);
        break;
    case LIE_BEHIND:
        put_phases(k, head, 0);
        put_tail(k, head - 1);
        break;
    case LIE_AHEAD:
        put_tail(k, head + r->ro->sq_slots);
        break;
    case LIE_MORE:
        put_phases(k, head, SCHEMA_SLOTS_MORE);
        put_tail(k, head);
        break;
    default:
        put_anything(h, k, head);
        break;
    }
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&r->ro->doorbell) != 0)
        raw_ring(r);
    h->did++;
}

static void start_liar(struct liar *k, enum lie lie)
{
    struct raw *r = &k->w.r;
    hostile_set_up_writer(&k->w, 0);
    k->w.d.flags = 0;
    k->w.d.post.length = 8;
    k->lie = lie;
    while (atomic_load(&r->ro->sq_head) != r->tail) { /* all before is taken: the tail is true */
    }
    for (uint32_t i = 0; i < r->ro->sq_slots; i++)
        memcpy(r->ring + (size_t)i * SCHEMA_LINE, &k->w.d, sizeof k->w.d);
}

/* What the tail alone says is taken too, when the lane would sleep at the latest. */
static void await_taken(const struct raw *r)
{
    const uint64_t end_ns = base_clock_ns() + CUT_OFF_MS * BASE_NS_PER_MS;
    const uint32_t tail = atomic_load(&r->rw->sq_tail);
    while ((int32_t)(atomic_load(&r->ro->sq_head) - tail) < 0 && !raw_ended(r)) {
        if (base_clock_ns() > end_ns)
            hostile_fail("what the tail says is not taken");
        if (atomic_load(&r->ro->doorbell) != 0)
            raw_ring(r);
        usleep(100);
    }
}

/* Whatever it has said, the next tail that cannot be is its last. */
static void end_liar(struct hostile *h, struct liar *k)
{
    struct raw *r = &k->w.r;
    const uint64_t end_ns = base_clock_ns() + CUT_OFF_MS * BASE_NS_PER_MS;
    if (k->lie == LIE_AHEAD)
        await_taken(r);
    while (!raw_ended(r)) {
        if (base_clock_ns() > end_ns)
            hostile_fail("a tail that cannot be did not end the session that lied by %d", k->lie);
        put_tail(k, atomic_load(&r->ro->sq_head) + 2 * r->ro->sq_slots);
        raw_ring(r);
    }
    h->cut_off++;
    raw_close(r);
}

void attack_phases(struct hostile *h)
{
    static struct liar k[CROWD];
    int sessions = 0;
    hostile_begin(h);
    while (!hostile_over(h)) {
        for (; sessions < CROWD && raw_open_more(h, &k[sessions].w.r, sessions); sessions++)
            start_liar(&k[sessions], (enum lie)(sessions % LIES));
        for (int n = 0; n < ROUNDS; n++)
            for (int i = 0; i < sessions; i++)
                if (!raw_ended(&k[i].w.r))
                    lie_once(h, &k[i]);
        if (hostile_random(h) % 4 == 0)
            while (sessions > 0)
                end_liar(h, &k[--sessions]);
    }
    while (sessions > 0)
        end_liar(h, &k[--sessions]);
}
