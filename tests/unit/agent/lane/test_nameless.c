/* SPDX-License-Identifier: Apache-2.0 */
/* A device that completes an error in the name of the oldest request of which it has said nothing:
 * that one was executed, and nobody is to blame for it. */
#include <stdlib.h>

#include "../../check_main.h"
#include "world.h"

enum { TENANT = 7, LONG = 20000 /* passes */, REQUESTS = 12 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

/* On node 1 two owners, of whom one leaves and its record stays; on node 0 three workers, whose
 * requests of one pass stand in this order in one queue pair. */
struct scene {
    struct world_worker gone, stays, first, other, guilty;
    uint32_t gone_key, key;
};

static void warm(struct world_worker *k, uint32_t key)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    world_post(k, &d);
    ck_assert_uint_eq(world_done(w, k, LONG).status, IBV_WC_SUCCESS);
}

static void scene_open(struct scene *s)
{
    world_fault = (struct fault_plan){.seed = 1, .errors_first = true};
    world_ack_timeout = 19; /* 2 s: a busy host may not disturb */
    world_open(w);
    world_attach(w, &s->gone, 1, 0, TENANT);
    world_attach(w, &s->stays, 1, 1, TENANT);
    world_attach(w, &s->first, 0, 0, TENANT);
    world_attach(w, &s->other, 0, 1, TENANT);
    world_attach(w, &s->guilty, 0, 2, TENANT);
    s->gone_key = world_register(w, &s->gone, 0, 4096, ALL);
    s->key = world_register(w, &s->stays, 0, 4096, ALL);
    warm(&s->first, s->key);
    warm(&s->other, s->key);
    warm(&s->guilty, s->gone_key);
    world_take_away(w, &s->gone);
}

static void scene_close(struct scene *s)
{
    world_detach(w, &s->guilty);
    world_detach(w, &s->other);
    world_detach(w, &s->first);
    world_detach(w, &s->stays);
    world_detach(w, &s->gone);
    world_close(w);
    world_fault = (struct fault_plan){0};
}

static struct schema_sq_desc unsignaled(struct schema_sq_desc d)
{
    d.flags &= (uint8_t)~SCHEMA_OP_SIGNALED;
    return d;
}

static struct schema_sq_desc add_one(const struct scene *s, uint64_t wr_id)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_FAA, wr_id, 64, 8, s->key, 0);
    d.post.compare_add = 1;
    return d;
}

static void post_guilty(struct scene *s, uint8_t op)
{
    struct schema_sq_desc d = world_rw(op, 9, 0, 8, s->gone_key, 0);
    world_post(&s->guilty, &d);
}

/* A WRITE and an addition, both executed, and then another's WRITE that is refused. */
START_TEST(what_was_executed_before_an_error_in_its_name_is_not_executed_again)
{
    struct scene s;
    scene_open(&s);
    const _Atomic uint64_t *counter = s.stays.arena.addr;
    struct schema_sq_desc d = unsignaled(world_rw(SCHEMA_OP_WRITE, 2, 0, 8, s.key, 128));
    world_post(&s.first, &d);
    d = unsignaled(add_one(&s, 3));
    world_post(&s.other, &d);
    post_guilty(&s, SCHEMA_OP_WRITE);
    ck_assert_uint_ne(world_done(w, &s.guilty, LONG).status, IBV_WC_SUCCESS);
    world_run(w, LONG / 10);
    ck_assert_msg(*counter == 1, "%lu additions for one request", (unsigned long)*counter);
    ck_assert_uint_eq(world_done(w, &s.other, LONG).status, IBV_WC_WR_FLUSH_ERR);
    scene_close(&s);
}
END_TEST

START_TEST(nobody_ends_with_anothers_refusal)
{
    struct scene s;
    scene_open(&s);
    struct schema_sq_desc d = unsignaled(world_rw(SCHEMA_OP_WRITE, 2, 0, 8, s.key, 128));
    world_post(&s.first, &d);
    post_guilty(&s, SCHEMA_OP_WRITE);
    ck_assert_uint_eq(world_done(w, &s.first, LONG).status, IBV_WC_WR_FLUSH_ERR);
    scene_close(&s);
}
END_TEST

/* Nor do those that share a work request, which was executed. */
START_TEST(nobody_of_those_that_were_merged_does)
{
    struct scene s;
    scene_open(&s);
    for (uint64_t i = 0; i < 2; i++) {
        struct schema_sq_desc d =
            unsignaled(world_rw(SCHEMA_OP_WRITE, 2 + i, 0, 8, s.key, 128 + 8 * i));
        d.flags |= SCHEMA_OP_RELAXED;
        world_post(&s.first, &d);
    }
    post_guilty(&s, SCHEMA_OP_WRITE);
    for (uint64_t i = 0; i < 2; i++) {
        const struct schema_cqe e = world_done(w, &s.first, LONG);
        ck_assert_uint_eq(e.wr_id, 2 + i);
        ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
        ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_UNDER_WAY);
    }
    ck_assert_uint_eq(world_stats(w, 0).merged, 1);
    scene_close(&s);
}
END_TEST

/* Those that are one work request, which is out by itself, are several in the ring alone. */
START_TEST(merged_ones_that_are_alone_have_a_name)
{
    struct scene s;
    scene_open(&s);
    for (uint64_t i = 0; i < 2; i++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 9 + i, 0, 8, s.gone_key, 8 * i);
        d.flags |= SCHEMA_OP_RELAXED;
        world_post(&s.guilty, &d);
    }
    ck_assert_uint_eq(world_done(w, &s.guilty, LONG).status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(world_done(w, &s.guilty, LONG).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_stats(w, 0).merged, 1);
    scene_close(&s);
}
END_TEST

/* READs of all go again, one at a time: so the guilty one's error is its own. With RC alone: what
 * has DC names the request. */
START_TEST(reads_beside_a_refused_one_end_well_and_that_one_with_its_status)
{
    struct scene s;
    scene_open(&s);
    if (!w->rc) {
        scene_close(&s);
        return;
    }
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, i, 0, 8, s.key, 0);
        d = i + 1 < REQUESTS ? unsignaled(d) : d;
        world_post(&s.first, &d);
        world_post(&s.other, &d);
    }
    post_guilty(&s, SCHEMA_OP_READ);
    ck_assert_uint_eq(world_done(w, &s.guilty, LONG).status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(world_done(w, &s.first, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_done(w, &s.other, LONG).status, IBV_WC_SUCCESS);
    scene_close(&s);
}
END_TEST

/* And then many are out at a time again. */
START_TEST(one_at_a_time_ends)
{
    struct scene s;
    scene_open(&s);
    if (!w->rc) {
        scene_close(&s);
        return;
    }
    struct schema_sq_desc d = unsignaled(world_rw(SCHEMA_OP_READ, 2, 0, 8, s.key, 128));
    world_post(&s.first, &d);
    post_guilty(&s, SCHEMA_OP_READ);
    ck_assert_uint_eq(world_done(w, &s.guilty, LONG).status, IBV_WC_REM_ACCESS_ERR);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        d = world_rw(SCHEMA_OP_READ, i, 0, 8, s.key, 0);
        world_post(&s.other, &d);
        ck_assert_uint_eq(world_done(w, &s.other, LONG).status, IBV_WC_SUCCESS);
    }
    const uint64_t before = world_stats(w, 0).doorbells;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        d = world_rw(SCHEMA_OP_READ, i, 0, 8, s.key, 0);
        world_post(&s.other, &d);
    }
    for (uint64_t i = 0; i < REQUESTS; i++)
        ck_assert_uint_eq(world_done(w, &s.other, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).doorbells - before, 1);
    scene_close(&s);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_was_executed_before_an_error_in_its_name_is_not_executed_again)                         \
    T(nobody_ends_with_anothers_refusal)                                                           \
    T(nobody_of_those_that_were_merged_does)                                                       \
    T(merged_ones_that_are_alone_have_a_name)                                                      \
    T(reads_beside_a_refused_one_end_well_and_that_one_with_its_status)                            \
    T(one_at_a_time_ends)
KEDGE_CHECK_MAIN("agent.lane.nameless", TESTS)
