/* SPDX-License-Identifier: Apache-2.0 */
/* DC: initiators break, where there is no spare, and come back in any order. */
#include "../../check_main.h"
#include "world.h"

enum {
    TENANT = 7,
    ACK_TIMEOUT = 14, /* 67 ms, so that what goes to a silent node is out for longer than others */
    FEW = 2000,       /* passes, which take less than that */
    LONG = 2000000
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

/* Owners on the nodes 1 and 2, and on node 0 a worker for each of them. */
struct scene {
    struct world_worker owner[2], k[2];
    uint32_t key[2];
};

static void read_once(struct scene *s, int i)
{
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 9, 0, 8, s->key[i], 0);
    ck_assert_uint_eq(world_do(w, &s->k[i], d, LONG).status, IBV_WC_SUCCESS);
}

/* warm: so many of the two nodes are known to answer. */
static void scene_open(struct scene *s, int warm)
{
    for (int i = 0; i < WORLD_NODES; i++)
        world_mr_lease_ns[i] = 1000000000;
    world_ack_timeout = ACK_TIMEOUT;
    world_open(w);
    for (uint32_t i = 0; i < 2; i++) {
        world_attach(w, &s->owner[i], i + 1, 0, TENANT);
        world_attach(w, &s->k[i], 0, i, TENANT);
        s->key[i] = world_register(w, &s->owner[i], 0, 4096, ALL);
        ck_assert_int_eq(world_connect(w, &s->k[i], 0, i + 1), 0);
    }
    for (int i = 0; i < 2 * warm; i++) /* the second time each has a place among those */
        read_once(s, i % warm);
}

static void scene_close(struct scene *s)
{
    for (int i = 0; i < 2; i++) {
        world_detach(w, &s->k[i]);
        world_detach(w, &s->owner[i]);
    }
    world_close(w);
}

static void lose(struct fab_qp *qp)
{
    w->node[0].no_repairs = true;
    world_break(w, 0, qp);
    world_fatal(w, 0, qp);
    world_run(w, 1);
}

static void lose_spares(void)
{
    for (int i = 0; i < WORLD_SPARES; i++)
        lose(w->node[0].res.spare[i]);
}

static void repair(struct fab_qp *qp)
{
    const struct lane_command ready = {.kind = LANE_COMMAND_QP_READY, .ready.qp = qp};
    world_raise_dci(w->node[0].fab, qp);
    ck_assert_int_eq(lane_command(w->node[0].lane, &ready), 0);
    world_run(w, 1);
}

START_TEST(endpoints_that_answer_go_on_with_the_last_initiator_that_works)
{
    struct scene s;
    scene_open(&s, 2);
    lose_spares();
    for (uint32_t i = WORLD_DCIS - 1; i > 0; i--) {
        lose(w->node[0].res.dci[i]);
        read_once(&s, 0);
    }
    scene_close(&s);
}
END_TEST

/* Those of endpoints that answer, of those that have not yet, and of the silent. */
START_TEST(what_is_silent_holds_nobody_up_in_whatever_order_initiators_come_back)
{
    static const uint8_t orders[][WORLD_DCIS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                 {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t n = 0; n < sizeof orders / sizeof orders[0]; n++) {
        struct scene s;
        scene_open(&s, 1);
        lose_spares();
        for (int i = 0; i < WORLD_DCIS; i++)
            lose(w->node[0].res.dci[i]);
        for (int i = 0; i < WORLD_DCIS; i++)
            repair(w->node[0].res.dci[orders[n][i]]);
        world_silence_node(w, 2);
        const struct schema_sq_desc to_silent = world_rw(SCHEMA_OP_READ, 9, 0, 8, s.key[1], 0);
        const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 9, 0, 8, s.key[0], 0);
        world_post(&s.k[1], &to_silent);
        lane_doorbell(w->node[0].lane, s.k[1].id);
        world_run(w, 100); /* its record is READ first */
        ck_assert_uint_eq(world_do(w, &s.k[0], d, FEW).status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(world_done(w, &s.k[1], LONG).status, IBV_WC_RETRY_EXC_ERR);
        scene_close(&s);
    }
}
END_TEST

/* The queue pair that comes is the same one, as it may be where the device gives its memory again;
 * to the lane it is another. */
static void replace(struct fab_qp *qp)
{
    const struct lane_command gone = {.kind = LANE_COMMAND_QP_GONE, .qp = qp};
    ck_assert_int_eq(lane_command(w->node[0].lane, &gone), 0);
    ck_assert_int_eq(lane_command(w->node[0].lane, &gone), 0); /* it has it no more */
    world_run(w, 1);
}

/* And none has two places, or a place that is not its own: those that are left work too. */
START_TEST(others_come_in_the_places_of_those_that_are_gone)
{
    for (uint32_t round = 0; round < WORLD_DCIS; round++) {
        struct scene s;
        struct world_node *n = &w->node[0];
        scene_open(&s, 2);
        lose_spares();
        for (uint32_t i = 0; i < WORLD_DCIS; i++)
            lose(n->res.dci[i]);
        for (uint32_t i = 0; i < WORLD_SPARES; i++)
            replace(n->res.spare[i]);
        for (uint32_t i = 0; i < WORLD_DCIS; i++)
            replace(n->res.dci[(i + round) % WORLD_DCIS]);
        for (uint32_t i = 0; i < WORLD_SPARES; i++)
            repair(n->res.spare[i]);
        read_once(&s, 0);
        for (uint32_t i = 0; i < WORLD_DCIS; i++)
            repair(n->res.dci[i]);
        for (uint32_t i = 0; i < WORLD_DCIS; i++) {
            lose(n->res.dci[i]);
            read_once(&s, i % 2);
        }
        for (uint32_t i = 0; i + 1 < WORLD_SPARES; i++)
            lose(n->res.spare[i]);
        read_once(&s, 0);
        scene_close(&s);
    }
}
END_TEST

START_TEST(another_one_asks_metaservers_when_theirs_is_gone)
{
    struct world_worker k;
    world_ack_timeout = ACK_TIMEOUT;
    world_open(w);
    struct fab_qp *qp = w->node[0].res.system_dci, *spare = w->node[0].res.spare[0];
    lose(qp);
    lose(spare);
    replace(spare);
    replace(qp);
    repair(qp);
    repair(spare);
    world_attach(w, &k, 0, 0, TENANT);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    world_detach(w, &k);
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(endpoints_that_answer_go_on_with_the_last_initiator_that_works)                              \
    T(what_is_silent_holds_nobody_up_in_whatever_order_initiators_come_back)                       \
    T(others_come_in_the_places_of_those_that_are_gone)                                            \
    T(another_one_asks_metaservers_when_theirs_is_gone)
KEDGE_CHECK_MAIN("agent.lane.initiators", TESTS)
