/* SPDX-License-Identifier: Apache-2.0 */
/* A DCI that serves several targets at a time: after an error to one of them the others go on for a
 * while, and nothing is said of them before they are over. */
#include "../../check_main.h"
#include "world_streams.h"

enum { TENANT = 7, SEEDS = 60, BEFORE = 3, BEHIND = 5, LONG = 20000 /* passes */ };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

static uint64_t told; /* to end */

struct scene {
    struct world_worker gone, stays, guilty, other;
    uint32_t gone_key, key;
};

static void read_once(struct world_worker *k, uint32_t key)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
    world_post(k, &d);
    ck_assert_uint_eq(world_done(w, k, LONG).status, IBV_WC_SUCCESS);
}

/* Two owners on two nodes, and a worker on node 0 for each of them. */
static void scene_open_warm(struct scene *s, uint64_t seed)
{
    world_streams = true;
    world_open(w);
    world_streams_begin(&w->node[0], seed);
    world_attach(w, &s->gone, 1, 0, TENANT);
    world_attach(w, &s->stays, 2, 0, TENANT);
    world_attach(w, &s->guilty, 0, 0, TENANT);
    world_attach(w, &s->other, 0, 1, TENANT);
    s->gone_key = world_register(w, &s->gone, 0, 4096, ALL);
    s->key = world_register(w, &s->stays, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &s->guilty, 0, 1), 0);
    ck_assert_int_eq(world_connect(w, &s->other, 0, 2), 0);
    for (int i = 0; i < 2; i++) { /* the second time both are known to answer */
        read_once(&s->guilty, s->gone_key);
        read_once(&s->other, s->key);
    }
}

/* The device has taken away the registration of one. */
static void scene_open(struct scene *s, uint64_t seed)
{
    scene_open_warm(s, seed);
    world_take_away(w, &s->gone);
}

static void scene_close(struct scene *s)
{
    world_detach(w, &s->guilty);
    world_detach(w, &s->other);
    world_streams_end(&w->node[0]);
    world_detach(w, &s->stays);
    world_detach(w, &s->gone);
    world_close(w);
    world_streams = false;
}

static void post_adds(struct scene *s, uint64_t first, int n)
{
    for (int i = 0; i < n; i++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_FAA, first + (uint64_t)i, 64, 8, s->key, 0);
        d.post.compare_add = 1;
        if (i % 2 == 1)
            d.flags &= (uint8_t)~SCHEMA_OP_SIGNALED;
        world_post(&s->other, &d);
    }
}

static void adds_beside_a_refused_read(uint64_t seed)
{
    struct scene s;
    uint64_t at_most = 0, at_least = 0;
    scene_open(&s, seed);
    const _Atomic uint64_t *counter = s.stays.arena.addr;
    post_adds(&s, 10, BEFORE);
    world_run(w, (unsigned)(seed % 2)); /* in the same list, or the one before */
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 2, 0, 8, s.gone_key, 0);
    world_post(&s.guilty, &d);
    post_adds(&s, 20, BEHIND);
    ck_assert_uint_eq(world_done(w, &s.guilty, LONG).status, IBV_WC_REM_ACCESS_ERR);
    /* Signalled ones stand for the unsignalled ones before them. */
    const uint64_t ids[] = {10, 12, 20, 22, 24}, stands_for[] = {1, 2, 1, 2, 2};
    bool failed = false;
    for (int i = 0; i < 5; i++) {
        struct schema_cqe e = world_done(w, &s.other, LONG);
        if (e.status == IBV_WC_SUCCESS) {
            ck_assert(!failed);
            ck_assert_uint_eq(e.wr_id, ids[i]);
            at_least += stands_for[i];
            continue;
        }
        failed = true;
        break;
    }
    at_most = BEFORE + BEHIND;
    world_run(w, 3); /* the flushed ones, and those that nobody asked to hear of */
    const uint64_t value = *counter;
    ck_assert_msg(value >= at_least && value <= at_most && (failed || value == at_most),
                  "seed %lu: %lu additions, where %lu ended well", (unsigned long)seed,
                  (unsigned long)value, (unsigned long)at_least);
    world_run(w, 200);
    ck_assert_msg(*counter == value, "seed %lu: additions were carried out after they had failed",
                  (unsigned long)seed);
    scene_close(&s);
}

START_TEST(nothing_of_other_streams_is_reported_before_it_is_over)
{
    const char *transport = getenv("KEDGE_TEST_TRANSPORT");
    for (uint64_t seed = 1; transport == NULL && seed <= SEEDS; seed++)
        adds_beside_a_refused_read(seed);
}
END_TEST

/* What is out in its other streams may be carried out for as long as it is not in ERR. */
START_TEST(a_dci_that_lives_on_is_told_to_end_before_it_is_given_up)
{
    const char *transport = getenv("KEDGE_TEST_TRANSPORT");
    for (uint64_t seed = 1; transport == NULL && seed <= SEEDS; seed++) {
        struct scene s;
        scene_open(&s, seed);
        world_streams_stand_still();
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 2, 0, 8, s.gone_key, 0);
        world_post(&s.guilty, &d);
        post_adds(&s, 10, BEHIND);
        ck_assert_uint_eq(world_done(w, &s.guilty, LONG).status, IBV_WC_REM_ACCESS_ERR);
        const struct lane_stats stats = world_stats(w, 0);
        ck_assert_uint_eq(stats.qp_broken, 1);
        told += stats.qp_overdue;
        world_run(w, 200);
        scene_close(&s);
    }
    ck_assert(transport != NULL || told > 0);
}
END_TEST

/* Of a DCI's requests some are over that came after others which are not. */
START_TEST(windows_come_and_go_while_streams_overtake_each_other)
{
    enum { MANY = 12 };
    const char *transport = getenv("KEDGE_TEST_TRANSPORT");
    struct lane_command set = {.kind = LANE_COMMAND_WINDOW,
                               .window = {.scope = LANE_WINDOW_DEVICE}};
    struct lane_window n;
    for (uint64_t seed = 1; transport == NULL && seed <= SEEDS; seed++) {
        struct scene s;
        scene_open_warm(&s, seed);
        for (uint64_t i = 0; i < MANY; i++) {
            const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, i, 0, 8, s.gone_key, 0);
            world_post(&s.guilty, &d);
            post_adds(&s, 2 * i, 1);
        }
        for (uint64_t i = 0; i < 4 * MANY; i++) {
            set.window.ops = i % 2 == 0 ? 4 * MANY : 0;
            ck_assert_int_eq(lane_command(w->node[0].lane, &set), 0);
            world_run(w, 1);
        }
        for (uint64_t i = 0; i < MANY; i++) {
            ck_assert_uint_eq(world_done(w, &s.guilty, LONG).status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(world_done(w, &s.other, LONG).status, IBV_WC_SUCCESS);
        }
        ck_assert(lane_window(w->node[0].lane, LANE_WINDOW_DEVICE, 0, &n));
        ck_assert_uint_eq(n.ops + n.bytes, 0);
        scene_close(&s);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(nothing_of_other_streams_is_reported_before_it_is_over)                                      \
    T(a_dci_that_lives_on_is_told_to_end_before_it_is_given_up)                                    \
    T(windows_come_and_go_while_streams_overtake_each_other)
KEDGE_CHECK_MAIN("agent.lane.streams", TESTS)
