/* SPDX-License-Identifier: Apache-2.0 */
/* Flows: what the lane keeps for each endpoint in use. There are fewer of them here than endpoints,
 * and nobody hangs for want of one. */
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "world.h"

enum { TENANT = 7, ROUNDS = 20 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE;

static struct world world;
static struct world *w = &world;

static void open_with_flows(uint32_t flows)
{
    world_max_flows = flows;
    world_open(w);
    world_max_flows = 0;
}

static uint32_t read_one(struct world_worker *k, uint16_t vqp, uint32_t vkey)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    struct schema_cqe e;
    d.vqp = vqp;
    world_post(k, &d);
    ck_assert(world_poll(w, k, &e, 400));
    ck_assert_uint_eq(e.vqp, vqp);
    return e.status;
}

START_TEST(idle_connected_vqps_hold_no_flow)
{
    struct world_worker owner[2], k;
    uint32_t vkey[2];
    open_with_flows(1);
    for (uint32_t i = 0; i < 2; i++) {
        world_attach(w, &owner[i], 1 + i, 0, TENANT);
        vkey[i] = world_register(w, &owner[i], 0, 64, ALL);
    }
    world_attach(w, &k, 0, 0, TENANT);
    for (uint16_t i = 0; i < 2; i++)
        ck_assert_int_eq(world_connect(w, &k, i, 1u + i), 0);
    for (int i = 0; i < ROUNDS; i++)
        for (uint16_t vqp = 0; vqp < 2; vqp++)
            ck_assert_uint_eq(read_one(&k, vqp, vkey[vqp]), IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).flows, 1);
    ck_assert_uint_eq(world_stats(w, 0).vqps, 2);
    world_detach(w, &k);
    for (uint32_t i = 0; i < 2; i++)
        world_detach(w, &owner[i]);
    world_close(w);
}
END_TEST

/* The only flow is that of a node to which nobody finds a path. */
START_TEST(a_request_for_which_no_flow_can_be_had_fails_with_a_reason)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, 12345, 0);
    open_with_flows(1);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &k, 0, 0, TENANT);
    const uint32_t vkey = world_register(w, &owner, 0, 64, ALL);
    w->away[2] = true;
    ck_assert_int_eq(world_connect(w, &k, 0, 2), 0);
    ck_assert_int_eq(world_connect(w, &k, 1, 1), 0);
    world_post(&k, &d);
    d = world_rw(SCHEMA_OP_READ, 2, 0, 8, vkey, 0);
    d.vqp = 1;
    world_post(&k, &d);
    ck_assert(!world_poll(w, &k, &e, 100));
    world_sleep(w, 2 * BASE_NS_PER_S);
    ck_assert(world_poll(w, &k, &e, 400));
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_eq(e.status, IBV_WC_LOC_QP_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_ENDPOINTS);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

/* Of two flows a tenant that keeps all its endpoints busy has one, and another finds one. */
START_TEST(a_tenant_leaves_flows_to_others)
{
    struct world_worker owner, greedy, k;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, 12345, 0);
    open_with_flows(2);
    world_attach(w, &owner, 1, 0, TENANT);
    const uint32_t vkey = world_register(w, &owner, 0, 64, ALL);
    world_attach(w, &greedy, 0, 0, TENANT + 1);
    world_attach(w, &k, 0, 1, TENANT);
    w->away[0] = w->away[2] = true;
    ck_assert_int_eq(world_connect(w, &greedy, 0, 0), 0);
    ck_assert_int_eq(world_connect(w, &greedy, 1, 2), 0);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    for (d.vqp = 0; d.vqp < 2; d.vqp++)
        world_post(&greedy, &d);
    lane_doorbell(w->node[0].lane, 0);
    world_run(w, 300);
    ck_assert_uint_eq(world_stats(w, 0).flows, 1);
    ck_assert_uint_eq(read_one(&k, 0, vkey), IBV_WC_SUCCESS);
    world_detach(w, &k);
    world_detach(w, &greedy);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(idle_connected_vqps_hold_no_flow)                                                            \
    T(a_request_for_which_no_flow_can_be_had_fails_with_a_reason)                                  \
    T(a_tenant_leaves_flows_to_others)
KEDGE_CHECK_MAIN("agent.lane.flows", TESTS)
