/* SPDX-License-Identifier: Apache-2.0 */
/* DC: initiators that rest when the lane begins, since packets of their numbers' former lives may
 * come in; and what the lane says of a life that is over. */
#include <string.h>

#include "../../check_main.h"
#include "world.h"

enum {
    TENANT = 7,
    LONG = 200000,
    BEGIN_NS = 1000000000,
    REST_US = 20000 /* longer than a lookup has */
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner, k;

static void make_ready(const struct world_node *n, struct fab_qp *qp)
{
    const struct lane_command ready = {.kind = LANE_COMMAND_QP_READY, .ready.qp = qp};
    ck_assert_int_eq(lane_command(n->lane, &ready), 0);
}

/* The last ones first: a spare takes the place of one that is not there yet. */
static void make_all_ready(const struct world_node *n)
{
    for (uint32_t i = n->res.spares; i-- > 0;)
        make_ready(n, n->res.spare[i]);
    for (uint32_t i = n->res.dcis; i-- > 0;)
        make_ready(n, n->res.dci[i]);
    make_ready(n, n->res.system_dci);
}

static const struct schema_reply *reply_of(const struct world_worker *worker)
{
    return &worker->r->reply[worker->tag % SCHEMA_REPLIES];
}

static void ask_for_node(uint32_t number)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT, .slots = 1};
    d.connect.pool = w->node[0].config.pool;
    d.connect.tag = ++k.tag;
    memcpy(d.connect.gid, w->node[number].fab->caps.gid, sizeof d.connect.gid);
    world_post(&k, &d);
    lane_doorbell(w->node[0].lane, k.id);
}

/* Every acknowledgement of the time before would be taken for one of the lookup's, whose answer
 * would be what was in the lane's memory. */
START_TEST(nothing_is_posted_before_they_are_ready_and_a_lookup_has_its_time_from_then_on)
{
    world_fault = (struct fault_plan){
        .seed = 1, .packet_life_ns = REST_US * 1000, .numbers_return = true, .now_ns = &w->now_ns};
    world_rest_until_ns = BEGIN_NS + REST_US * 1000;
    world_open(w);
    if (w->rc) {
        world_close(w);
        return;
    }
    world_attach(w, &k, 0, 0, TENANT);
    ask_for_node(1);
    world_run(w, REST_US);
    ck_assert_uint_eq(world_stats(w, 0).doorbells, 0);
    ck_assert_uint_eq(world_stats(w, 0).lookups_failed, 0);
    for (int i = 0; i < WORLD_NODES; i++)
        make_all_ready(&w->node[i]);
    for (int i = 0; i < LONG && atomic_load(&reply_of(&k)->tag) != k.tag; i++)
        world_run(w, 1);
    ck_assert_uint_eq(atomic_load(&reply_of(&k)->tag), k.tag);
    ck_assert_int_eq(reply_of(&k)->status, 0);
    world_detach(w, &k);
    world_close(w);
}
END_TEST

START_TEST(and_all_have_their_places_then)
{
    const struct lane_command drop = {.kind = LANE_COMMAND_SPARE_DROP};
    world_fault = (struct fault_plan){.seed = 0};
    world_rest_until_ns = BEGIN_NS + REST_US * 1000;
    world_open(w);
    if (w->rc) {
        world_close(w);
        return;
    }
    struct world_node *n = &w->node[0];
    world_run(w, REST_US);
    make_all_ready(n);
    world_run(w, 2);
    for (uint32_t i = 0; i <= n->res.spares; i++) {
        ck_assert_int_eq(lane_command(n->lane, &drop), 0);
        world_run(w, 1);
        ck_assert_uint_eq(n->answers, i + 1);
        ck_assert_int_eq(n->answer.qp != NULL, i < n->res.spares);
    }
    world_close(w);
}
END_TEST

static uint64_t read_some(uint32_t vkey, uint32_t count)
{
    uint64_t posted = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t length = 8 + 100 * i;
        const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, i, 0, length, vkey, 0);
        ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
        posted += length + LANE_POST_BYTES;
    }
    return posted;
}

/* What its life has posted, as the lane says; and then its next one begins. */
static uint64_t break_the_one(void)
{
    const struct world_node *n = &w->node[0];
    struct fab_qp *qp = n->res.dci[0];
    struct lane_event e;
    world_break(w, 0, qp);
    world_fatal(w, 0, qp);
    (void)lane_step(n->lane, w->now_ns += 1000);
    ck_assert_int_eq(lane_event(n->lane, &e), 1);
    ck_assert_int_eq(e.kind, LANE_EVENT_QP_BROKEN);
    ck_assert_ptr_eq(e.broken.qp, qp);
    world_raise_dci(n->fab, qp);
    make_ready(n, qp);
    return e.broken.posted;
}

/* It also READs the region's record, and may READ it again. */
START_TEST(what_a_life_has_posted_is_said_when_it_is_over_and_the_next_begins_at_nothing)
{
    world_one_dci = true;
    world_rest_until_ns = 0;
    world_fault = (struct fault_plan){.seed = 0};
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    if (!w->rc) {
        const uint64_t posted = read_some(vkey, 30);
        const uint64_t said = break_the_one();
        ck_assert_uint_ge(said, posted + LANE_POST_BYTES);
        ck_assert_uint_lt(said, posted + 10 * LANE_POST_BYTES);
        const uint64_t again = read_some(vkey, 3), said_again = break_the_one();
        ck_assert_uint_ge(said_again, again);
        ck_assert_uint_lt(said_again, again + 10 * LANE_POST_BYTES);
    }
    world_unpair(w, &owner, &k);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(nothing_is_posted_before_they_are_ready_and_a_lookup_has_its_time_from_then_on)              \
    T(and_all_have_their_places_then)                                                              \
    T(what_a_life_has_posted_is_said_when_it_is_over_and_the_next_begins_at_nothing)
KEDGE_CHECK_MAIN("agent.lane.rests", TESTS)
