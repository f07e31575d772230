/* SPDX-License-Identifier: Apache-2.0 */
/* Phases of both rings between a worker and its lane (schema/phase.h): what is there before its
 * tail, and workers that lie by one without the other. */
#include "../../check_main.h"
#include "schema/phase.h"
#include "world.h"

enum { TENANT = 1, OTHER = 1, SLOTS = 64, SOON = 40, PATIENCE = 5000, ROUNDS = 5 * SLOTS };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner, k;
static uint32_t vkey;

/* The session is awake, and its lane looks at the place where the next request will be. */
static void begin(void)
{
    vkey = world_pair(w, &owner, &k, TENANT, ALL);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_uint_eq(world_do(w, &k, d, PATIENCE).status, IBV_WC_SUCCESS);
    world_run(w, 2);
}

static void put_without_tail(void)
{
    static struct schema_session_rw nowhere;
    struct schema_sq_desc *ring = (void *)((uint8_t *)k.w + SCHEMA_SQ_OFFSET);
    const uint32_t at = k.sq_tail++;
    ring[at & (SLOTS - 1)] = world_rw(SCHEMA_OP_READ, at, 0, 8, vkey, 0);
    schema_sq_publish(&nowhere, ring, SLOTS - 1, at, at + 1);
}

static const struct schema_cqe *find_cqe(uint32_t index)
{
    const struct schema_cqe *ring = (const void *)((const uint8_t *)k.r + SCHEMA_CQ_OFFSET);
    return &ring[index & (SLOTS - 1)];
}

/* Some passes, until it is there by its phase. How many were published with it; or 0. */
static uint32_t count_completions(uint32_t index)
{
    for (int i = 0; i < SOON; i++) {
        const uint32_t stretch = find_cqe(index)->stretch;
        if (schema_stretch_phase_is(stretch, index, SLOTS - 1))
            return stretch >> SCHEMA_STRETCH_COUNT;
        world_run(w, 1);
    }
    return 0;
}

/* In some rounds of either ring. */
START_TEST(a_request_whose_tail_is_still_to_come_is_carried_out)
{
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        put_without_tail();
        ck_assert_uint_eq(count_completions(k.cq_head), 1);
        ck_assert_uint_eq(find_cqe(k.cq_head)->wr_id, k.sq_tail - 1);
        atomic_store(&k.w->cq_head, ++k.cq_head);
        atomic_store(&k.w->sq_tail, k.sq_tail);
    }
    ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_NONE);
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(completions_that_are_published_together_say_so_at_the_first_one_alone)
{
    enum { TOGETHER = 3 };
    bool several = false;
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t found = 0;
        for (uint64_t n = 0; n < TOGETHER; n++) {
            const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, n, 0, 8, vkey, 0);
            world_post(&k, &d);
        }
        lane_doorbell(w->node[0].lane, k.id);
        while (found < TOGETHER) {
            const uint32_t count = count_completions(k.cq_head + found);
            ck_assert_uint_ge(count, 1);
            for (uint32_t more = 1; more < count; more++)
                ck_assert_uint_eq(find_cqe(k.cq_head + found + more)->stretch, 0);
            several |= count > 1;
            found += count;
        }
        ck_assert_uint_eq(found, TOGETHER);
        k.cq_head += found;
        atomic_store(&k.w->cq_head, k.cq_head);
    }
    ck_assert(several);
    world_unpair(w, &owner, &k);
}
END_TEST

/* One may be ahead of the tail, and two cannot be. */
START_TEST(whose_phases_are_ahead_of_its_tail_ends_alone)
{
    struct world_worker other;
    begin();
    world_attach(w, &other, 0, OTHER, TENANT);
    ck_assert_int_eq(world_connect(w, &other, 0, 1), 0);
    put_without_tail();
    ck_assert_uint_eq(count_completions(k.cq_head), 1);
    put_without_tail();
    for (int i = 0; i < PATIENCE && k.r->ended == SCHEMA_REASON_NONE; i++)
        world_run(w, 1);
    ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_RING);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_uint_eq(world_do(w, &other, d, PATIENCE).status, IBV_WC_SUCCESS);
    world_detach(w, &other);
    world_unpair(w, &owner, &k);
}
END_TEST

/* Several slots by the phase, and none by the tail. */
START_TEST(who_says_that_there_are_more_and_has_none_fails_alone)
{
    begin();
    struct schema_sq_desc *ring = (void *)((uint8_t *)k.w + SCHEMA_SQ_OFFSET);
    struct schema_sq_desc *d = &ring[k.sq_tail & (SLOTS - 1)];
    *d = world_rw(SCHEMA_OP_WRITE, 1, 0, 128, vkey, 0);
    d->flags |= SCHEMA_OP_INLINE;
    d->slots =
        (uint8_t)(3 | SCHEMA_SLOTS_MORE | schema_phase(k.sq_tail, SLOTS - 1) << SCHEMA_SLOTS_PHASE);
    for (int i = 0; i < PATIENCE && k.r->ended == SCHEMA_REASON_NONE; i++)
        world_run(w, 1);
    ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_DESCRIPTOR);
    world_unpair(w, &owner, &k);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_request_whose_tail_is_still_to_come_is_carried_out)                                        \
    T(completions_that_are_published_together_say_so_at_the_first_one_alone)                       \
    T(whose_phases_are_ahead_of_its_tail_ends_alone)                                               \
    T(who_says_that_there_are_more_and_has_none_fails_alone)
KEDGE_CHECK_MAIN("agent.lane.ahead", TESTS)
