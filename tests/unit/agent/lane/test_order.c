/* SPDX-License-Identifier: Apache-2.0 */
/* A device that takes its time with READs and atomics, as it may, and refuses one: what may have
 * been executed behind it is not executed again. */
#include <stdio.h>
#include <stdlib.h>

#include "../../check_main.h"
#include "base/random.h"
#include "world.h"

enum {
    TENANT = 7,
    SEEDS = 48,
    REQUESTS = 6,
    LONG = 400000, /* passes */
    GONE = 0,      /* numbers of the owners' and the workers' sessions */
    STAYS = 1,
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

struct scene {
    struct world_worker gone, stays, guilty, other;
    uint32_t gone_key, key;
    struct base_prng prng;
};

static void set_order(const char *kind, uint32_t seed)
{
    char text[32];
    snprintf(text, sizeof text, "%s:%u", kind, seed);
    setenv("KEDGE_SOFT_ORDER", text, 1);
}

/* Two owners on node 1, of whom the one that leaves keeps its record; two workers on node 0 that
 * know both. */
static void scene_open(struct scene *s, const char *kind, uint32_t seed)
{
    set_order(kind, seed);
    base_prng_seed(&s->prng, seed);
    world_ack_timeout = 19;             /* 2 s: what is held back is not to run into its time-out */
    world_path_patience_ns = 400000000; /* a handshake may take longer than its world's time-out */
    world_open(w);
    world_attach(w, &s->gone, 1, GONE, TENANT);
    world_attach(w, &s->stays, 1, STAYS, TENANT);
    world_attach(w, &s->guilty, 0, 0, TENANT);
    world_attach(w, &s->other, 0, 1, TENANT);
    s->gone_key = world_register(w, &s->gone, 0, 4096, ALL);
    s->key = world_register(w, &s->stays, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &s->guilty, 0, 1), 0);
    ck_assert_int_eq(world_connect(w, &s->other, 0, 1), 0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, s->gone_key, 0);
    world_post(&s->guilty, &d);
    ck_assert_uint_eq(world_done(w, &s->guilty, LONG).status, IBV_WC_SUCCESS);
    d.post.vkey = s->key;
    world_post(&s->other, &d);
    ck_assert_uint_eq(world_done(w, &s->other, LONG).status, IBV_WC_SUCCESS);
}

static void scene_close(struct scene *s)
{
    world_detach(w, &s->guilty);
    world_detach(w, &s->other);
    world_detach(w, &s->stays);
    world_detach(w, &s->gone);
    world_close(w);
    unsetenv("KEDGE_SOFT_ORDER");
}

static struct schema_sq_desc add_one(const struct scene *s, uint64_t wr_id)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_FAA, wr_id, 64, 8, s->key, 0);
    d.post.compare_add = 1;
    return d;
}

/* A READ or an addition is refused with additions of another worker's behind it: each that ended
 * well was carried out once, and each that failed once at most. Whether one that failed was. */
static bool adds_are_done_once(uint32_t seed, uint8_t refused_op)
{
    struct scene s;
    uint64_t good = 0, failed = 0;
    scene_open(&s, "late", seed);
    const _Atomic uint64_t *counter = s.stays.arena.addr;
    world_take_away(w, &s.gone);
    struct schema_sq_desc d = world_rw(refused_op, 2, 0, 8, s.gone_key, 0);
    world_post(&s.guilty, &d);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        d = add_one(&s, 10 + i);
        if (base_prng_below(&s.prng, 3) == 0)
            d = world_rw(SCHEMA_OP_READ, 10 + i, 128, 8, s.key, 0);
        world_post(&s.other, &d);
    }
    const uint32_t fetch_add = IBV_WC_FETCH_ADD;
    ck_assert_uint_eq(world_done(w, &s.guilty, LONG).status, IBV_WC_REM_ACCESS_ERR);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct schema_cqe e = world_done(w, &s.other, LONG);
        ck_assert_uint_eq(e.wr_id, 10 + i);
        good += e.status == IBV_WC_SUCCESS && e.opcode == fetch_add;
        failed += e.status != IBV_WC_SUCCESS;
    }
    ck_assert_msg(*counter >= good && *counter <= good + failed,
                  "seed %u: %lu additions for %lu that ended well and %lu requests that failed",
                  seed, (unsigned long)*counter, (unsigned long)good, (unsigned long)failed);
    const bool early = *counter > good;
    scene_close(&s);
    return early;
}

START_TEST(what_may_have_been_done_behind_a_refused_read_is_not_done_again)
{
    uint32_t early = 0;
    for (uint32_t seed = 1; seed <= SEEDS; seed++)
        early += adds_are_done_once(seed, SCHEMA_OP_READ);
    ck_assert_uint_gt(early, 0); /* the device did take that order, over RC and with DC */
}
END_TEST

START_TEST(what_may_have_been_done_behind_a_refused_atomic_is_not_done_again)
{
    uint32_t early = 0;
    for (uint32_t seed = 1; seed <= SEEDS; seed++)
        early += adds_are_done_once(seed, SCHEMA_OP_FAA);
    ck_assert_uint_gt(early, 0); /* the device did take that order, over RC and with DC */
}
END_TEST

/* A WRITE is refused with another worker's behind it, on a device that places what comes first.
 * Who has seen that one's word and replaced it does not find it again. Whether it was seen of a
 * WRITE that failed. */
static bool a_word_comes_once(uint32_t seed)
{
    struct scene s;
    bool seen = false;
    scene_open(&s, "late-writes", seed);
    _Atomic uint64_t *word = s.stays.arena.addr, *mine = s.other.arena.addr;
    mine[0] = 1;
    world_take_away(w, &s.gone);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 2, 64, 8, s.gone_key, 0);
    world_post(&s.guilty, &d);
    d = world_rw(SCHEMA_OP_WRITE, 3, 0, 8, s.key, 0);
    world_post(&s.other, &d);
    for (int i = 0; i < LONG / 100; i++) {
        world_run(w, 1);
        if (!seen && *word == 1) {
            seen = true;
            *word = 2;
        }
    }
    ck_assert_uint_eq(world_done(w, &s.guilty, LONG).status, IBV_WC_REM_ACCESS_ERR);
    const uint8_t status = world_done(w, &s.other, LONG).status;
    ck_assert_msg(*word == (seen ? 2 : 0), "seed %u: the word came again", seed);
    ck_assert(seen || status != IBV_WC_SUCCESS);
    scene_close(&s);
    return seen && status != IBV_WC_SUCCESS;
}

START_TEST(what_may_have_been_done_behind_a_refused_write_is_not_done_again)
{
    uint32_t early = 0;
    for (uint32_t seed = 1; seed <= SEEDS; seed++)
        early += a_word_comes_once(seed);
    ck_assert(!w->rc || early > 0); /* with DC the lane sends them apart */
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_may_have_been_done_behind_a_refused_write_is_not_done_again)                            \
    T(what_may_have_been_done_behind_a_refused_read_is_not_done_again)                             \
    T(what_may_have_been_done_behind_a_refused_atomic_is_not_done_again)
KEDGE_CHECK_MAIN("agent.lane.order", TESTS)
