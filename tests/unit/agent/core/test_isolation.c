/* SPDX-License-Identifier: Apache-2.0 */
/* What is posted to dead endpoints does not stand before what is posted to live ones. */
#include "../../check_main.h"
#include "world.h"

enum { TENANT = 7, SOME_KEY = 12345 };
static const uint32_t ALL = KEDGE_RECORD_READ | KEDGE_RECORD_WRITE | KEDGE_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

/* As many dead ones as there are ordinary DCIs: nodes whose target went away after they were
 * resolved, the worker's own among them. */
START_TEST(a_worker_that_posts_to_dead_nodes_leaves_queue_pairs_to_live_ones)
{
    struct world_worker owner, k, bad;
    struct kedge_cqe e;
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &k, 0, 0, TENANT);
    world_attach(w, &bad, 0, 1, TENANT);
    uint32_t vkey = world_register(w, &owner, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    struct kedge_sq_desc good = world_rw(KEDGE_OP_READ, 1, 0, 8, vkey, 0);
    struct kedge_sq_desc dead = world_rw(KEDGE_OP_READ, 2, 0, 8, SOME_KEY, 0);
    world_post(&k, &good);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_int_eq(world_connect(w, &bad, 0, 0), 0);
    ck_assert_int_eq(world_connect(w, &bad, 1, 2), 0);
    world_restart_node(w, 0);
    world_restart_node(w, 2);
    for (uint16_t vqp = 0; vqp < 2; vqp++) {
        dead.vqp = vqp;
        world_post(&bad, &dead);
    }
    kedge_lane_doorbell(w->node[0].lane, 1);
    world_run(w, 4);
    world_post(&k, &good);
    kedge_lane_doorbell(w->node[0].lane, 0);
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

#define TESTS(T) T(a_worker_that_posts_to_dead_nodes_leaves_queue_pairs_to_live_ones)
KEDGE_CHECK_MAIN("isolation", TESTS)
