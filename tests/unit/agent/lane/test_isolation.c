/* SPDX-License-Identifier: Apache-2.0 */
/* What is posted to dead endpoints does not stand before what is posted to live ones. */
#include <string.h>

#include "../../check_main.h"
#include "world.h"

enum {
    TENANT = 7,
    OTHER = 2,
    FEW = 3,
    SOME_KEY = 12345,
    REGIONS = 64,
    CROWD = 16,
    VQPS = 8,
    FAILURES = 16
};
static const uint64_t LONG_LEASE_NS = 1000000000;
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

/* As many dead ones as there are ordinary DCIs: nodes whose target went away after they were
 * resolved, with DC the worker's own among them. */
START_TEST(a_worker_that_posts_to_dead_nodes_leaves_queue_pairs_to_live_ones)
{
    struct world_worker owner, k, bad;
    struct schema_cqe e;
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &k, 0, 0, TENANT);
    world_attach(w, &bad, 0, 1, TENANT);
    uint32_t vkey = world_register(w, &owner, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    struct schema_sq_desc good = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    struct schema_sq_desc dead = world_rw(SCHEMA_OP_READ, 2, 0, 8, SOME_KEY, 0);
    world_post(&k, &good);
    ck_assert(world_poll(w, &k, &e, 50));
    const uint32_t first = w->rc ? 2 : 0; /* with RC connections end with their node's lane */
    ck_assert_int_eq(world_connect(w, &bad, 0, first), 0);
    ck_assert_int_eq(world_connect(w, &bad, 1, 2), 0);
    if (first == 0)
        world_restart_node(w, 0);
    world_restart_node(w, 2);
    for (uint16_t vqp = 0; vqp < 2; vqp++) {
        dead.vqp = vqp;
        world_post(&bad, &dead);
    }
    lane_doorbell(w->node[0].lane, 1);
    world_run(w, 4);
    world_post(&k, &good);
    lane_doorbell(w->node[0].lane, 0);
    ck_assert(world_poll(w, &k, &e, 4)); /* sooner than any time-out */
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(bad.r->cq_tail, 0);
    for (int i = 0; i < 2; i++) {
        ck_assert(world_poll(w, &bad, &e, 100000));
        ck_assert_uint_eq(e.status,
                          IBV_WC_REM_ACCESS_ERR); /* their next lives do not know the key */
    }
    world_detach(w, &bad);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

/* All their VQPs wait for node 2. */
static void wait_for_node_2(struct world_worker *crowd)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, SOME_KEY, 0);
    w->away[2] = true;
    for (uint32_t i = 0; i < CROWD; i++) {
        world_attach(w, &crowd[i], 0, 1 + i, TENANT);
        for (d.vqp = 0; d.vqp < VQPS; d.vqp++) {
            ck_assert_int_eq(world_connect(w, &crowd[i], d.vqp, 2), 0);
            world_post(&crowd[i], &d);
        }
        lane_doorbell(w->node[0].lane, 1 + i);
    }
    world_run(w, 20);
}

static uint32_t read_one(struct world_worker *k, uint32_t vkey, uint64_t at)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, at);
    struct schema_cqe e;
    world_post(k, &d);
    ck_assert(world_poll(w, k, &e, 100));
    return e.status;
}

/* Regions whose table is READ for each request, since more are in use than are remembered; and one
 * whose memory is gone, so that each request breaks a queue pair. */
START_TEST(who_waits_for_dead_nodes_is_not_looked_at_for_what_happens_to_others)
{
    struct world_worker owner, gone, k, crowd[CROWD];
    uint32_t vkey[REGIONS], gone_key;
    world_max_mrs = REGIONS;
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &gone, 1, 1, TENANT);
    world_attach(w, &k, 0, 0, TENANT);
    for (uint32_t i = 0; i < REGIONS; i++)
        vkey[i] = world_register(w, &owner, 64 * i, 64, ALL);
    gone_key = world_register(w, &gone, 0, 64, ALL);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    wait_for_node_2(crowd);
    const struct lane_stats before = world_stats(w, 0);
    for (uint64_t i = 0; i < REGIONS; i++)
        ck_assert_uint_eq(read_one(&k, vkey[i], 64 * i), IBV_WC_SUCCESS);
    const struct lane_stats read = world_stats(w, 0);
    ck_assert_uint_eq(read.mr_reads - before.mr_reads, REGIONS);
    ck_assert_uint_lt(read.retried - before.retried, 4 * REGIONS);
    world_take_away(w, &gone);
    for (int i = 0; i < FAILURES; i++) {
        ck_assert_uint_eq(read_one(&k, gone_key, 0), IBV_WC_REM_ACCESS_ERR);
        ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    }
    const struct lane_stats failed = world_stats(w, 0);
    ck_assert_uint_eq(failed.qp_broken - read.qp_broken, FAILURES);
    ck_assert_uint_lt(failed.retried - read.retried, 8 * FAILURES);
    ck_assert_uint_eq(failed.inflight, CROWD * VQPS);
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_detach(w, &k);
    world_detach(w, &gone);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

/* Of more regions than are remembered: 64 of 16. */
START_TEST(who_uses_many_regions_has_those_of_others_not_read_again)
{
    struct world_worker owner, k, many, owner_of_many;
    uint32_t vkey[REGIONS], own_key[FEW];
    world_max_mrs = REGIONS;
    for (int i = 0; i < WORLD_NODES; i++)
        world_mr_lease_ns[i] = LONG_LEASE_NS; /* none is READ again for that */
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &owner_of_many, 1, 1, OTHER);
    world_attach(w, &k, 0, 0, TENANT);
    world_attach(w, &many, 0, 1, OTHER);
    for (uint32_t i = 0; i < REGIONS; i++)
        vkey[i] = world_register(w, &owner_of_many, 64 * i, 64, ALL);
    for (uint32_t i = 0; i < FEW; i++)
        own_key[i] = world_register(w, &owner, 64 * i, 64, ALL);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    ck_assert_int_eq(world_connect(w, &many, 0, 1), 0);
    uint64_t reads = 0;
    for (uint64_t i = 0; i < REGIONS; i++) {
        ck_assert_uint_eq(read_one(&many, vkey[i], 64 * i), IBV_WC_SUCCESS);
        const uint64_t before = world_stats(w, 0).mr_reads;
        for (uint32_t n = 0; n < FEW; n++)
            ck_assert_uint_eq(read_one(&k, own_key[n], 64 * n), IBV_WC_SUCCESS);
        reads += world_stats(w, 0).mr_reads - before;
    }
    ck_assert_uint_eq(reads, FEW);
    world_detach(w, &many);
    world_detach(w, &k);
    world_detach(w, &owner_of_many);
    world_detach(w, &owner);
    world_close(w);
    world_max_mrs = 0;
    memset(world_mr_lease_ns, 0, sizeof world_mr_lease_ns);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_worker_that_posts_to_dead_nodes_leaves_queue_pairs_to_live_ones)                           \
    T(who_waits_for_dead_nodes_is_not_looked_at_for_what_happens_to_others)                        \
    T(who_uses_many_regions_has_those_of_others_not_read_again)
KEDGE_CHECK_MAIN("agent.lane.isolation", TESTS)
