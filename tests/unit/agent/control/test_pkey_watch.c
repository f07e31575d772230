/* SPDX-License-Identifier: Apache-2.0 */
/* A subnet manager moves the P_Key of a pool to another place of the port's table, or takes it out
 * of it. The lane and the device are the test's, and answer when it wants. */
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "address_change.h"
#include "agent.h"
#include "dci.h"
#include "device_events.h"
#include "fabric/provider.h"
#include "peer_setup.h"
#include "pkey_watch.h"
#include "pool.h"
#include "world.h"

enum {
    QPS = 3,
    OUT = 16,
    STEPS = 4 /* from RESET to RTS */,
    POOL_PKEY = 0x8001,
    OWN_PKEY = 0xffff
};

static struct {
    struct test_world world;
    struct agent agent;
    struct pool pool;
    struct fab fab;
    struct fab_ops ops;
    struct fab_pd pd, system_pd;
    struct fab_qp qp[QPS];    /* the first is the system's */
    struct fab_ctl *out[OUT]; /* what the device has */
    uint32_t outs;
    struct fab_event event;
    bool happened;
    uint32_t told[LANE_COMMAND_PROVE + 1]; /* the lane, by kind */
} w;

static void tell_lane(const struct lane_command *command)
{
    w.told[command->kind]++;
}

static void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    ck_assert_uint_lt(w.outs, OUT);
    w.out[w.outs++] = ctl;
}

static int get_event(struct fab *fab, struct fab_event *out)
{
    (void)fab;
    const int got = w.happened;
    *out = w.event;
    w.happened = false;
    return got;
}

/* The first that it was asked of that kind. */
static struct fab_ctl *take_out(enum fab_ctl_kind kind)
{
    uint32_t i = 0;
    while (i < w.outs && w.out[i]->kind != kind)
        i++;
    ck_assert_uint_lt(i, w.outs);
    struct fab_ctl *ctl = w.out[i];
    memmove(&w.out[i], &w.out[i + 1], (--w.outs - i) * sizeof w.out[0]);
    return ctl;
}

/* The table has it there; -1: not at all. */
static void find_at(uint16_t pkey, int index)
{
    struct fab_ctl *ctl = take_out(FAB_QUERY_PKEY);
    ck_assert_uint_eq(ctl->pkey.pkey, pkey);
    ctl->status = 0;
    ctl->pkey.there = index >= 0;
    ctl->pkey.index = (uint16_t)(index >= 0 ? index : 0);
    ctl->done(ctl);
}

/* As the device tells of it. */
static void table_changes(void)
{
    w.event = (struct fab_event){.type = IBV_EVENT_PKEY_CHANGE};
    w.happened = true;
    device_events(&w.agent);
    struct fab_ctl *address = take_out(FAB_QUERY_ADDRESS);
    address->status = 0;
    address->address.now = (struct fab_own_address){.active = true, .has_gid = true};
    address->done(address);
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.ops.submit = submit;
    w.ops.get_event = get_event;
    w.fab = (struct fab){.ops = &w.ops};
    w.pd = (struct fab_pd){.fab = &w.fab, .service.pkey_index = 3, .pkey = POOL_PKEY};
    w.system_pd = (struct fab_pd){.fab = &w.fab, .pkey = OWN_PKEY};
    test_world_init(&w.world);
    w.world.lane_told = tell_lane;
    w.agent.world = w.pool.world = &w.world.world;
    w.agent.fab = &w.fab;
    w.agent.pools[0] = &w.pool;
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.pool.lane = (struct lane *)&w; /* there is one */
    w.pool.device.fab = &w.fab;
    w.pool.device.pd = &w.pd;
    w.pool.device.system_pd = &w.system_pd;
    snprintf(w.pool.name, sizeof w.pool.name, "p");
    for (uint32_t i = 0; i < QPS; i++) {
        w.qp[i] =
            (struct fab_qp){.pd = i == 0 ? &w.system_pd : &w.pd, .type = FAB_QP_DCI, .qpn = i + 1};
        (void)dci_add(&w.pool, &w.qp[i], 0);
    }
}

static void lane_gives_back(struct fab_qp *qp)
{
    const struct lane_event e = {.kind = LANE_EVENT_QP_BROKEN, .broken = {.qp = qp}};
    peer_setup_event(&w.pool, &e);
}

/* So many of the changes of state by which one is brought up; the place that it was given. */
static uint32_t raise_by(int steps)
{
    uint32_t index = UINT32_MAX;
    for (; steps > 0; steps--) {
        struct fab_ctl *ctl = take_out(FAB_MODIFY_QP);
        if (ctl->modify.mask & IBV_QP_PKEY_INDEX)
            index = ctl->modify.attr.pkey_index;
        ctl->status = 0;
        ctl->done(ctl);
    }
    return index;
}

static uint32_t raise_one(void)
{
    return raise_by(STEPS);
}

START_TEST(one_that_stays_where_it_is_changes_nothing)
{
    begin();
    table_changes();
    find_at(POOL_PKEY, 3);
    find_at(OWN_PKEY, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD] + w.told[LANE_COMMAND_READDRESS], 0);
    ck_assert_uint_eq(w.agent.endpoints, 0);
    ck_assert_uint_eq(w.pool.fab_ops, 0);
}
END_TEST

START_TEST(one_at_another_place_has_all_that_was_made_with_the_former_made_anew)
{
    begin();
    table_changes();
    find_at(POOL_PKEY, 5);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], 0); /* both are known first */
    find_at(OWN_PKEY, 0);
    ck_assert_uint_eq(w.pd.service.pkey_index, 5);
    ck_assert_uint_eq(w.system_pd.service.pkey_index, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], QPS - 1);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], 1);
    ck_assert_uint_eq(w.told[LANE_COMMAND_READDRESS] + w.agent.endpoints, 0);
    address_step_done(&w.pool, WORLD_DEVICE_TARGET, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_READDRESS], 1);
    ck_assert_uint_eq(w.agent.endpoints, 1); /* metaservers hear of the target's number */
    for (uint32_t i = 1; i < QPS; i++) {
        lane_gives_back(&w.qp[i]);
        ck_assert_uint_eq(raise_one(), 5);
    }
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], QPS - 1);
    table_changes();
    find_at(POOL_PKEY, 5);
    find_at(OWN_PKEY, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], QPS - 1);
}
END_TEST

START_TEST(an_initiator_that_is_being_brought_up_meanwhile_is_so_once_more)
{
    begin();
    lane_gives_back(&w.qp[1]);
    ck_assert_uint_eq(raise_by(2), 3);
    table_changes();
    find_at(POOL_PKEY, 5);
    find_at(OWN_PKEY, 0);
    (void)raise_by(STEPS - 2);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 0);
    ck_assert_uint_eq(raise_one(), 5);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 1);
}
END_TEST

START_TEST(one_that_is_gone_is_a_condition_until_it_is_back)
{
    char why[256];
    begin();
    table_changes();
    find_at(POOL_PKEY, -1);
    find_at(OWN_PKEY, 0);
    pkey_watch_why(&w.agent, why, sizeof why);
    ck_assert_ptr_nonnull(strstr(why, "P_Key 0x8001 of pool p is not in the port's table"));
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], 0);
    table_changes();
    find_at(POOL_PKEY, 2);
    find_at(OWN_PKEY, 0);
    pkey_watch_why(&w.agent, why, sizeof why);
    ck_assert_str_eq(why, "");
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], QPS - 1);
}
END_TEST

START_TEST(on_a_port_with_one_nothing_is_asked)
{
    begin();
    w.pd.pkey = w.system_pd.pkey = 0;
    table_changes();
    ck_assert_uint_eq(w.outs, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_that_stays_where_it_is_changes_nothing)                                                  \
    T(one_at_another_place_has_all_that_was_made_with_the_former_made_anew)                        \
    T(an_initiator_that_is_being_brought_up_meanwhile_is_so_once_more)                             \
    T(one_that_is_gone_is_a_condition_until_it_is_back)                                            \
    T(on_a_port_with_one_nothing_is_asked)
KEDGE_CHECK_MAIN("agentd.pkey_watch", TESTS)
