/* SPDX-License-Identifier: Apache-2.0 */
/* An endpoint that answers and falls silent in turn does not hold up those that answer (DC); and
 * one that was silent once and answers again is not forgotten. */
#include <string.h>

#include "../../check_main.h"
#include "fabric/provider.h"
#include "world.h"

enum { MANY = 7, ONE = 8, ROUNDS = 10, TRIES = 100, LONG = 200000 /* passes */ };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE;

static struct world world;
static struct world *w = &world;

/* Node 0's device: on which queue pair the last request to each node went. */
static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    const struct fab_qp *last[WORLD_NODES];
} seen;

static int post(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    for (const struct fab_wr *i = wr; qp->pd == w->node[0].pd && i != NULL; i = i->next)
        for (int n = 0; n < WORLD_NODES; n++)
            if (i->dest_qpn == w->node[n].dct->dctn)
                seen.last[n] = qp;
    return seen.real->post_send(qp, wr, bad);
}

static void cut_node(bool cuts)
{
    struct fault_plan plan = {.seed = 1, .cuts = cuts};
    memcpy(plan.cut, w->node[2].fab->caps.gid, sizeof plan.cut);
    fault_set_plan(w->node[0].fab, &plan);
}

static enum ibv_wc_status read_one(struct world_worker *k, uint32_t node, uint32_t key)
{
    ck_assert_int_eq(world_connect(w, k, 0, node), 0);
    return (enum ibv_wc_status)world_do(w, k, world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0), LONG)
        .status;
}

START_TEST(who_has_just_been_silent_shares_no_queue_pair_with_those_who_answer)
{
    struct world_worker far, near, honest, other;
    uint32_t shared = 0, silences = 0;
    world_fault = (struct fault_plan){.seed = 1, .cuts = true}; /* nobody yet */
    world_ack_timeout = 19;
    world_open(w);
    cut_node(false);
    world_attach(w, &near, 1, 0, ONE);
    world_attach(w, &far, 2, 0, MANY);
    world_attach(w, &honest, 0, 0, ONE);
    world_attach(w, &other, 0, 1, MANY);
    const uint32_t near_key = world_register(w, &near, 0, 4096, ALL);
    const uint32_t far_key = world_register(w, &far, 0, 4096, ALL);
    seen.real = w->node[0].fab->ops;
    seen.ops = *seen.real;
    seen.ops.post_send = post;
    w->node[0].fab->ops = &seen.ops;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(read_one(&honest, 1, near_key), IBV_WC_SUCCESS);
    for (int round = 0; round < ROUNDS; round++) {
        int tries = 0;
        while (tries++ < TRIES && read_one(&other, 2, far_key) != IBV_WC_SUCCESS)
            world_sleep(w, 1000000);
        ck_assert_int_lt(tries, TRIES);
        ck_assert_int_eq(read_one(&honest, 1, near_key), IBV_WC_SUCCESS);
        cut_node(true);
        silences += read_one(&other, 2, far_key) == IBV_WC_RETRY_EXC_ERR;
        shared += seen.last[2] == seen.last[1];
        cut_node(false);
    }
    ck_assert_uint_eq(silences, ROUNDS);
    if (!w->rc)
        ck_assert_uint_le(shared, 1);
    w->node[0].fab->ops = seen.real;
    world_detach(w, &other);
    world_detach(w, &honest);
    world_detach(w, &far);
    world_detach(w, &near);
    world_close(w);
    world_fault = (struct fault_plan){0};
    world_ack_timeout = 4;
}
END_TEST

/* The metaserver has restarted, and the node has not registered yet. */
static void forget_node(uint32_t node)
{
    struct schema_endpoint_record r = {.pool = w->node[node].config.pool};
    memcpy(r.gid, w->node[node].fab->caps.gid, sizeof r.gid);
    ck_assert_int_ge(schema_table_remove(&w->table, &r), 0);
}

START_TEST(who_was_silent_and_answers_outlives_its_record_in_a_metaserver_that_restarted)
{
    struct world_worker far, k;
    int tries = 0;
    world_fault = (struct fault_plan){.seed = 1, .cuts = true};
    world_open(w);
    cut_node(false);
    world_attach(w, &far, 2, 0, MANY);
    world_attach(w, &k, 0, 0, MANY);
    const uint32_t key = world_register(w, &far, 0, 4096, ALL);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
    ck_assert_int_eq(read_one(&k, 2, key), IBV_WC_SUCCESS);
    cut_node(true);
    ck_assert_int_eq(read_one(&k, 2, key), IBV_WC_RETRY_EXC_ERR);
    cut_node(false);
    while (tries++ < TRIES && read_one(&k, 2, key) != IBV_WC_SUCCESS)
        world_sleep(w, 1000000);
    ck_assert_int_lt(tries, TRIES);
    forget_node(2);
    for (int i = 0; i < 3; i++) {
        world_sleep(w, w->node[0].config.node_lease_ns + 1);
        ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
    }
    world_detach(w, &k);
    world_detach(w, &far);
    world_close(w);
    world_fault = (struct fault_plan){0};
}
END_TEST

/* Its LID, or the hardware address that its packets go to, is another, which no handle learns that
 * is there; its record and its life are the same. */
static void move_node(bool moves)
{
    struct fault_plan plan = {.seed = 1, .cuts = moves, .moved = moves};
    memcpy(plan.cut, w->node[2].fab->caps.gid, sizeof plan.cut);
    fault_set_plan(w->node[0].fab, &plan);
}

START_TEST(who_was_silent_is_reached_where_it_is_now)
{
    struct world_worker far, k;
    world_fault = (struct fault_plan){.seed = 1, .cuts = true};
    world_open(w);
    move_node(false);
    world_attach(w, &far, 2, 0, MANY);
    world_attach(w, &k, 0, 0, MANY);
    const uint32_t key = world_register(w, &far, 0, 4096, ALL);
    ck_assert_int_eq(read_one(&k, 2, key), IBV_WC_SUCCESS);
    for (int round = 0; round < 3; round++) {
        int tries = 0;
        move_node(true);
        ck_assert_int_eq(read_one(&k, 2, key), IBV_WC_RETRY_EXC_ERR);
        while (tries++ < TRIES && read_one(&k, 2, key) != IBV_WC_SUCCESS)
            world_sleep(w, 10000000);
        ck_assert_int_lt(tries, TRIES);
    }
    world_detach(w, &k);
    world_detach(w, &far);
    world_close(w);
    world_fault = (struct fault_plan){0};
}
END_TEST

static struct schema_endpoint_record record_of(uint32_t node)
{
    struct schema_endpoint_record r;
    const uint8_t *gid = w->node[node].fab->caps.gid;
    const uint32_t pool = w->node[node].config.pool;
    const uint8_t *span =
        w->table.slots + (size_t)schema_endpoint_home(&w->table.desc, gid, pool) * sizeof r;
    ck_assert_int_eq(schema_endpoint_find(&w->table.desc, span, gid, (uint16_t)pool, &r), 0);
    return r;
}

/* Its record says it before anybody is refused or unanswered there. */
START_TEST(who_has_another_lid_is_reached_by_another_handle)
{
    struct world_worker far, k;
    world_open(w);
    world_attach(w, &far, 2, 0, MANY);
    world_attach(w, &k, 0, 0, MANY);
    const uint32_t key = world_register(w, &far, 0, 4096, ALL);
    ck_assert_int_eq(read_one(&k, 2, key), IBV_WC_SUCCESS);
    const uint32_t flow = w->node[0].wanted_flow, paths = w->node[0].wanted_paths[flow];
    for (uint16_t lid = 1; lid < 4; lid++) {
        struct schema_endpoint_record r = record_of(2);
        r.lid = lid / 2;
        ck_assert_int_ge(schema_table_put(&w->table, &r), 0);
        world_sleep(w, w->node[0].config.node_lease_ns + 1);
        ck_assert_int_eq(read_one(&k, 2, key), IBV_WC_SUCCESS);
        if (!w->rc) /* a connection that is there leads where it did */
            ck_assert_uint_eq(w->node[0].wanted_paths[flow], paths + lid / 2);
    }
    world_detach(w, &k);
    world_detach(w, &far);
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_was_silent_is_reached_where_it_is_now)                                                   \
    T(who_has_another_lid_is_reached_by_another_handle)                                            \
    T(who_has_just_been_silent_shares_no_queue_pair_with_those_who_answer)                         \
    T(who_was_silent_and_answers_outlives_its_record_in_a_metaserver_that_restarted)
KEDGE_CHECK_MAIN("agent.lane.toggling", TESTS)
