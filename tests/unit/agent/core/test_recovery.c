/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and metaservers that come back: what is left goes on, and nothing stale is used. */
#include <errno.h>

#include "../../check_main.h"
#include "world.h"

enum { TENANT = 7, LONG = 200000 /* passes: a time-out of the device is in real time */ };
static const uint32_t ALL = KEDGE_RECORD_READ | KEDGE_RECORD_WRITE | KEDGE_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

/* An owner on node 1, and a worker on node 0 that has READ its memory. */
static struct kedge_sq_desc pair(struct world_worker *owner, struct world_worker *k)
{
    struct kedge_cqe e;
    world_open(w);
    world_attach(w, owner, 1, 0, TENANT);
    world_attach(w, k, 0, 0, TENANT);
    uint32_t vkey = world_register(w, owner, 0, 4096, ALL);
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    struct kedge_sq_desc d = world_rw(KEDGE_OP_READ, 1, 0, 8, vkey, 0);
    world_post(k, &d);
    ck_assert(world_poll(w, k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    return d;
}

/* The metaserver has restarted, and nobody has registered yet. */
static void forget(uint32_t node)
{
    struct kedge_endpoint_record r = {.pool = w->node[node].config.pool};
    memcpy(r.gid, w->node[node].fab->caps.gid, sizeof r.gid);
    ck_assert_int_ge(kedge_table_remove(&w->table, &r), 0);
}

static struct kedge_cqe try(struct world_worker *k, const struct kedge_sq_desc *d)
{
    struct kedge_cqe e;
    world_post(k, d);
    kedge_lane_doorbell(w->node[0].lane, 0);
    ck_assert(world_poll(w, k, &e, LONG));
    return e;
}

START_TEST(a_node_that_fell_silent_is_looked_up_again_and_not_when_its_record_lapses)
{
    struct world_worker owner, k;
    struct kedge_sq_desc d = pair(&owner, &k);
    uint64_t lapses_ns = w->now_ns + w->node[0].config.node_lease_ns;
    world_restart_node(w, 1);
    ck_assert_uint_eq(try(&k, &d).status, IBV_WC_RETRY_EXC_ERR); /* it finds out */
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    ck_assert_uint_eq(try(&k, &d).vendor_err, KEDGE_REASON_VKEY); /* the new one has no regions */
    ck_assert_uint_lt(w->now_ns, lapses_ns);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

START_TEST(a_node_that_answers_outlives_its_record_in_a_metaserver_that_restarted)
{
    struct world_worker owner, k;
    struct kedge_sq_desc d = pair(&owner, &k);
    forget(1);
    for (int i = 0; i < 3; i++) {
        world_sleep(w, w->node[0].config.node_lease_ns + 1);
        ck_assert_uint_eq(try(&k, &d).status, IBV_WC_SUCCESS);
    }
    world_restart_node(w, 1); /* and is not there any more under its old numbers */
    forget(1);
    ck_assert_uint_eq(try(&k, &d).status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), -ENOENT);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_node_that_fell_silent_is_looked_up_again_and_not_when_its_record_lapses)                   \
    T(a_node_that_answers_outlives_its_record_in_a_metaserver_that_restarted)
KEDGE_CHECK_MAIN("recovery", TESTS)
