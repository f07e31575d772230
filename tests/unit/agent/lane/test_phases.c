/* SPDX-License-Identifier: Apache-2.0 */
/* A worker whose ring says one thing by its phases and another by its tail. */
#include "../../check_main.h"
#include "schema/phase.h"
#include "world.h"

enum {
    TENANT = 1,
    SLOTS = 64, /* of its ring */
    PASSES = 8,
    SILENT_NS = 50000 /* longer than a session is polled that says nothing */
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner, k;
static struct schema_sq_desc read_one;

/* All that it has posted is over, and its ring is polled. */
static void begin(void)
{
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    read_one = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_uint_eq(world_do(w, &k, read_one, 5000).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(atomic_load(&k.r->sq_head), atomic_load(&k.w->sq_tail));
}

static void end(void)
{
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}

static struct schema_sq_desc *slot_at(uint32_t index)
{
    struct schema_sq_desc *ring = (void *)((uint8_t *)k.w + SCHEMA_SQ_OFFSET);
    return &ring[index % SLOTS];
}

static void run_silent(void)
{
    for (int i = 0; i < PASSES; i++) {
        w->now_ns += SILENT_NS;
        world_run(w, 1);
    }
}

/* Nobody rings: the lane has not said that it sleeps. */
START_TEST(what_the_tail_alone_says_is_taken_when_the_lane_would_sleep)
{
    begin();
    const uint32_t head = atomic_load(&k.r->sq_head);
    ck_assert_uint_eq(atomic_load(&k.r->doorbell), 0);
    *slot_at(head) = read_one;
    atomic_store(&k.w->sq_tail, head + 1);
    run_silent();
    ck_assert_uint_eq(atomic_load(&k.r->sq_head), head + 1);
    ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_NONE);
    end();
}
END_TEST

/* One is taken ahead of the tail, as its store may come later; and more as they come, until the
 * lane looks at a tail that cannot be. */
START_TEST(who_says_all_by_phases_and_nothing_by_the_tail_loses_its_session)
{
    begin();
    const uint32_t head = atomic_load(&k.r->sq_head);
    for (uint32_t i = head; i < head + 3; i++) {
        *slot_at(i) = read_one;
        slot_at(i)->slots |= (uint8_t)(schema_phase(i, SLOTS - 1) << SCHEMA_SLOTS_PHASE);
        world_run(w, 1);
        ck_assert_uint_eq(atomic_load(&k.r->sq_head), i + 1);
    }
    ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_NONE);
    run_silent();
    ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_RING);
    end();
}
END_TEST

/* More of them than one, of which there is none: one is taken, and the lane sleeps. */
START_TEST(more_that_is_not_there_is_not_taken)
{
    begin();
    const uint32_t head = atomic_load(&k.r->sq_head);
    *slot_at(head) = read_one;
    slot_at(head)->slots |=
        (uint8_t)(schema_phase(head, SLOTS - 1) << SCHEMA_SLOTS_PHASE | SCHEMA_SLOTS_MORE);
    world_run(w, 1);
    ck_assert_uint_eq(atomic_load(&k.r->sq_head), head + 1);
    run_silent();
    ck_assert_uint_eq(atomic_load(&k.r->sq_head), head + 1);
    ck_assert_uint_eq(atomic_load(&k.r->doorbell), 1);
    ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_NONE);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_the_tail_alone_says_is_taken_when_the_lane_would_sleep)                                 \
    T(who_says_all_by_phases_and_nothing_by_the_tail_loses_its_session)                            \
    T(more_that_is_not_there_is_not_taken)
KEDGE_CHECK_MAIN("agent.lane.phases", TESTS)
