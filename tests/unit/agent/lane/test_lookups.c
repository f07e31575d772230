/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints that are looked up, when there are many at a time. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "world_trio.h"

enum {
    TENANT = 1,
    OTHER = 2, /* tenants */
    THIRD = 3,
    CROWD = 60,
    OUT = 50,
    LONG = 4000, /* passes */
    LATE = 2000, /* polls */
    MANY = 100,  /* sessions, more than there are lookups in common */
    IN_COMMON = 64,
    TOLD = 8 /* in a pass */
};

static struct world world;
static struct world *w = &world;
static struct world_worker crowd[MANY], stranger[2];

static void open_all(uint32_t workers)
{
    world_fault = (struct fault_plan){.seed = 1};
    world_open(w);
    for (uint32_t i = 0; i < workers; i++)
        world_attach(w, &crowd[i], 0, i, TENANT);
}

static void close_all(uint32_t workers)
{
    for (uint32_t i = 0; i < workers; i++)
        world_detach(w, &crowd[i]);
    world_close(w);
    world_fault = (struct fault_plan){0};
}

/* CONNECT to an endpoint that nobody knows. */
static void ask_for(struct world_worker *k, uint64_t which)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_CONNECT, .slots = 1, .connect = {.pool = w->node[0].config.pool}};
    memcpy(d.connect.gid, &which, sizeof which);
    d.connect.tag = ++k->tag;
    world_post(k, &d);
    lane_doorbell(w->node[0].lane, k->id);
}

static const struct schema_reply *reply_of(const struct world_worker *k)
{
    return &k->r->reply[k->tag % SCHEMA_REPLIES];
}

static bool is_answered(const struct world_worker *k)
{
    return atomic_load(&reply_of(k)->tag) == k->tag;
}

/* By what the lane looks at, and by no clock: each of those that are under way would be one look
 * for each that comes. */
START_TEST(one_more_costs_no_more_when_many_are_under_way)
{
    open_all(CROWD);
    world_delay(w, LATE);
    for (uint32_t i = 0; i < OUT; i++)
        ask_for(&crowd[i], i + 1);
    world_run(w, OUT);
    const struct lane_stats before = world_stats(w, 0);
    ck_assert_uint_eq(before.endpoint_reads, OUT);
    ck_assert_uint_le(before.lookups_compared, OUT); /* and not half its square */
    for (uint32_t i = OUT; i < CROWD; i++)
        ask_for(&crowd[i], i + 1);
    world_run(w, CROWD);
    const struct lane_stats after = world_stats(w, 0);
    ck_assert_uint_eq(after.endpoint_reads, CROWD);
    ck_assert_uint_le(after.lookups_compared - before.lookups_compared, 3 * (CROWD - OUT));
    world_run(w, LATE);
    for (uint32_t i = 0; i < CROWD; i++) {
        ck_assert(is_answered(&crowd[i]));
        ck_assert_int_eq(reply_of(&crowd[i])->status, -ENOENT);
    }
    close_all(CROWD);
}
END_TEST

START_TEST(who_asks_for_what_is_asked_for_already_waits_for_the_same_answer)
{
    enum { SAME = 8 };
    open_all(SAME);
    world_delay(w, LATE / 10);
    for (uint32_t i = 0; i < SAME; i++)
        ask_for(&crowd[i], 7);
    world_run(w, SAME);
    world_detach(w, &crowd[3]); /* from their middle */
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, 1);
    world_run(w, LATE / 10);
    for (uint32_t i = 0; i < SAME; i++)
        if (i != 3)
            ck_assert(is_answered(&crowd[i]));
    world_attach(w, &crowd[3], 0, 3, TENANT);
    close_all(SAME);
}
END_TEST

/* Its number among them is another one's now. */
START_TEST(what_was_read_of_a_metaserver_says_nothing_of_the_one_in_its_place)
{
    struct lane_command list = {.kind = LANE_COMMAND_METASERVERS};
    open_all(1);
    if (w->rc) { /* there the READ comes back flushed, or is of a connection that goes on */
        close_all(1);
        return;
    }
    world_delay(w, LATE / 10);
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_CONNECT, .slots = 1, .connect = {.pool = w->node[0].config.pool}};
    memcpy(d.connect.gid, w->node[1].fab->caps.gid, sizeof d.connect.gid);
    d.connect.tag = ++crowd[0].tag;
    world_post(&crowd[0], &d);
    lane_doorbell(w->node[0].lane, 0);
    world_run(w, 2);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, 1);
    list.metaservers.count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        struct lane_metaserver *m = &list.metaservers.at[i];
        *m = (struct lane_metaserver){.ah = w->node[0].metaserver_ah,
                                      .dctn = w->meta_dct->dctn,
                                      .dc_key = w->meta_dct->dc_key,
                                      .table = w->table.desc,
                                      .number = 1 - i};
        m->table.rkey = w->meta_mr->rkey;
    }
    /* The first is a new one, with another table, which knows nobody: not even from before. */
    list.metaservers.at[0].table.generation++;
    list.metaservers.at[0].table.seed++;
    ck_assert_int_eq(lane_command(w->node[0].lane, &list), 0);
    for (int i = 0; i < LONG && !is_answered(&crowd[0]); i++)
        world_run(w, 1);
    ck_assert_int_eq(reply_of(&crowd[0])->status, 0);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, 1);
    close_all(1);
}
END_TEST

/* Both are READ through one initiator, which serves one target at a time: the READ of the one that
 * lives stands behind that of the silent one, and is flushed with it. */
START_TEST(with_dc_a_silent_metaserver_keeps_nobody_from_the_next)
{
    struct lane_command list = {.kind = LANE_COMMAND_METASERVERS, .metaservers.count = 2};
    open_all(2);
    for (uint32_t i = 0; i < 2; i++) {
        struct lane_metaserver *m = &list.metaservers.at[i];
        *m = (struct lane_metaserver){.ah = w->node[0].metaserver_ah,
                                      .dctn = w->meta_dct->dctn ^ (i == 0 ? 0x800000 : 0),
                                      .dc_key = w->meta_dct->dc_key,
                                      .table = w->table.desc,
                                      .number = i};
        m->table.rkey = w->meta_mr->rkey;
    }
    if (!w->rc) { /* with RC each has a connection */
        ck_assert_int_eq(lane_command(w->node[0].lane, &list), 0);
        ck_assert_int_eq(world_connect(w, &crowd[0], 0, 1), 0);
        ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
        ck_assert_uint_eq(world_stats(w, 0).lookups_failed, 0);
    }
    close_all(2);
}
END_TEST

/* The initiator is broken when somebody asks, and comes back soon. */
START_TEST(with_dc_who_asks_waits_until_the_initiator_of_lookups_is_repaired)
{
    open_all(1);
    if (!w->rc) {
        struct fab_qp *qp = w->node[0].res.system_dci;
        const struct lane_command ready = {.kind = LANE_COMMAND_QP_READY, .ready.qp = qp};
        w->node[0].no_repairs = true;
        world_break(w, 0, qp);
        world_fatal(w, 0, qp);
        world_run(w, 2);
        crowd[0].tag = 1;
        struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT,
                                   .slots = 1,
                                   .connect = {.pool = w->node[0].config.pool, .tag = 1}};
        memcpy(d.connect.gid, w->node[1].fab->caps.gid, sizeof d.connect.gid);
        world_post(&crowd[0], &d);
        lane_doorbell(w->node[0].lane, 0);
        world_run(w, LONG / 2);
        ck_assert(!is_answered(&crowd[0]));
        world_raise_dci(w->node[0].fab, qp);
        ck_assert_int_eq(lane_command(w->node[0].lane, &ready), 0);
        for (int i = 0; i < LONG && !is_answered(&crowd[0]); i++)
            world_run(w, 1);
        ck_assert(is_answered(&crowd[0]));
        ck_assert_int_eq(reply_of(&crowd[0])->status, 0);
    }
    close_all(1);
}
END_TEST

static uint32_t count_answered(uint32_t workers)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < workers; i++)
        n += is_answered(&crowd[i]);
    return n;
}

static uint64_t reads(void)
{
    return world_stats(w, 0).endpoint_reads;
}

/* One tenant has as many lookups under way as it may, with nobody else there. */
static void fill_lookups(void)
{
    open_all(MANY);
    world_delay(w, LATE);
    for (uint32_t i = 0; i < MANY; i++)
        ask_for(&crowd[i], i + 1);
    world_run(w, 4 * MANY);
    ck_assert_uint_ge(count_answered(MANY), MANY - IN_COMMON - 1);
}

START_TEST(who_comes_beside_a_tenant_with_all_lookups_that_there_are_has_one_at_once)
{
    fill_lookups();
    const uint64_t before = reads();
    ck_assert_uint_le(before, IN_COMMON + 1);
    world_attach(w, &stranger[0], 0, MANY, OTHER);
    world_attach(w, &stranger[1], 0, MANY + 1, THIRD);
    ask_for(&stranger[0], MANY + 1);
    ask_for(&stranger[1], MANY + 2);
    world_run(w, 4);
    ck_assert_uint_eq(reads(), before + 2);
    world_run(w, LATE);
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert(is_answered(&stranger[i]));
        ck_assert_int_eq(reply_of(&stranger[i])->status, -ENOENT);
    }
    world_detach(w, &stranger[0]);
    world_detach(w, &stranger[1]);
    close_all(MANY);
}
END_TEST

/* What a request needs READ again is its tenant's, as what it connects to. */
START_TEST(records_that_are_read_again_count_to_whoever_uses_them)
{
    uint32_t key;
    static struct world_worker owner;
    world_fault = (struct fault_plan){.seed = 1};
    world_mr_lease_ns[1] = 2000000000;
    key = world_pair(w, &owner, &stranger[0], TENANT, SCHEMA_RECORD_READ);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
    ck_assert_uint_eq(world_do(w, &stranger[0], d, LONG).status, IBV_WC_SUCCESS);
    for (uint32_t i = 0; i < MANY; i++)
        world_attach(w, &crowd[i], 0, 1 + i, TENANT);
    world_sleep(w, w->node[0].config.node_lease_ns * 3 / 4); /* its record is old now */
    world_delay(w, LATE);
    for (uint32_t i = 0; i < MANY; i++)
        ask_for(&crowd[i], i + 1);
    world_run(w, 4 * MANY);
    const uint64_t before = reads();
    world_post(&stranger[0], &d);
    lane_doorbell(w->node[0].lane, stranger[0].id);
    world_run(w, 4);
    ck_assert_uint_eq(reads(), before);
    world_run(w, 2 * LATE);
    for (uint32_t i = 0; i < MANY; i++)
        world_detach(w, &crowd[i]);
    world_unpair(w, &owner, &stranger[0]);
    world_fault = (struct fault_plan){0};
    world_mr_lease_ns[1] = 0;
}
END_TEST

/* One of them has asked before the crowd, and one after it, for the same or another endpoint. */
static void check_strangers_are_told_first(uint64_t of_crowd, uint64_t of_strangers)
{
    open_all(CROWD);
    world_attach(w, &stranger[0], 0, CROWD, OTHER);
    world_attach(w, &stranger[1], 0, CROWD + 1, THIRD);
    world_delay(w, LATE / 10);
    ask_for(&stranger[0], of_strangers);
    world_run(w, 4);
    for (uint32_t i = 0; i < CROWD; i++)
        ask_for(&crowd[i], of_crowd);
    world_run(w, CROWD);
    ask_for(&stranger[1], of_strangers);
    for (uint32_t i = 0; i < 2; i++) {
        while (!is_answered(&stranger[i]))
            world_run(w, 1);
        ck_assert_uint_le(count_answered(CROWD), TOLD);
    }
    while (count_answered(CROWD) < CROWD)
        world_run(w, 1);
    world_detach(w, &stranger[0]);
    world_detach(w, &stranger[1]);
    close_all(CROWD);
}

START_TEST(who_waits_for_the_same_endpoint_as_a_crowd_does_not_stand_behind_it)
{
    check_strangers_are_told_first(7, 7);
}
END_TEST

START_TEST(who_waits_for_another_endpoint_than_a_crowd_does_not_stand_behind_it)
{
    check_strangers_are_told_first(7, 8);
}
END_TEST

/* The last of some that wait for a lookup that has ended, and are told in the next pass, leaves. */
START_TEST(who_ends_before_he_is_told_leaves_the_lookup_to_others)
{
    for (int round = 0; round < 3; round++) {
        open_all(TOLD + 1);
        world_delay(w, LATE / 10);
        for (uint32_t i = 0; i < TOLD + 1; i++)
            ask_for(&crowd[i], 7);
        while (count_answered(TOLD + 1) == 0)
            world_run(w, 1);
        ck_assert_uint_eq(count_answered(TOLD + 1), TOLD);
        for (uint32_t i = 0; i < TOLD + 1; i++)
            if (!is_answered(&crowd[i])) {
                world_detach(w, &crowd[i]);
                world_attach(w, &crowd[i], 0, i, TENANT);
                ask_for(&crowd[i], 8);
                while (!is_answered(&crowd[i]))
                    world_run(w, 1);
            }
        close_all(TOLD + 1);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_more_costs_no_more_when_many_are_under_way)                                              \
    T(who_asks_for_what_is_asked_for_already_waits_for_the_same_answer)                            \
    T(what_was_read_of_a_metaserver_says_nothing_of_the_one_in_its_place)                          \
    T(with_dc_a_silent_metaserver_keeps_nobody_from_the_next)                                      \
    T(who_comes_beside_a_tenant_with_all_lookups_that_there_are_has_one_at_once)                   \
    T(records_that_are_read_again_count_to_whoever_uses_them)                                      \
    T(who_waits_for_the_same_endpoint_as_a_crowd_does_not_stand_behind_it)                         \
    T(who_waits_for_another_endpoint_than_a_crowd_does_not_stand_behind_it)                        \
    T(who_ends_before_he_is_told_leaves_the_lookup_to_others)                                      \
    T(with_dc_who_asks_waits_until_the_initiator_of_lookups_is_repaired)
KEDGE_CHECK_MAIN("agent.lane.lookups", TESTS)
