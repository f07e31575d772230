/* SPDX-License-Identifier: Apache-2.0 */
/* A subnet manager moves the P_Key of a pool to another place of the port's table, or takes it out
 * of it. */
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "address_change.h"
#include "device_bed.h"
#include "device_events.h"
#include "peer_setup.h"
#include "pkey_watch.h"

enum { POOL_PKEY = 0x8001, OWN_PKEY = 0xffff };

static struct fab_event event;
static bool happened;

static int get_event(struct fab *fab, struct fab_event *out)
{
    (void)fab;
    const int got = happened;
    *out = event;
    happened = false;
    return got;
}

/* The table has it there; -1: not at all. */
static void find_at(uint16_t pkey, int index)
{
    struct fab_ctl *ctl = take_out(FAB_QUERY_PKEY);
    ck_assert_uint_eq(ctl->pkey.pkey, pkey);
    ctl->pkey.there = index >= 0;
    ctl->pkey.index = (uint16_t)(index >= 0 ? index : 0);
    ctl->done(ctl);
}

/* As the device tells of it. */
static void table_changes(void)
{
    event = (struct fab_event){.type = IBV_EVENT_PKEY_CHANGE};
    happened = true;
    agent_device_events(&w.agent);
    struct fab_ctl *address = take_out(FAB_QUERY_ADDRESS);
    address->address.now = (struct fab_own_address){.active = true, .has_gid = true};
    address->done(address);
}

static void begin(void)
{
    bed_begin(1);
    happened = false;
    w.ops.get_event = get_event;
    w.pd.service.pkey_index = 3;
    w.pd.pkey = POOL_PKEY;
    w.system_pd.pkey = OWN_PKEY;
    snprintf(w.pool[0].name, sizeof w.pool[0].name, "p");
    bed_add_initiators();
}

static void lane_gives_back(struct fab_qp *qp)
{
    const struct lane_event e = {.kind = LANE_EVENT_QP_BROKEN, .broken = {.qp = qp}};
    agent_peer_setup_event(&w.pool[0], &e);
}

/* So many of the changes of state by which one is brought up; the place that it was given. */
static uint32_t raise_by(int steps)
{
    uint32_t index = UINT32_MAX;
    for (; steps > 0; steps--) {
        struct fab_ctl *ctl = take_out(FAB_MODIFY_QP);
        if (ctl->modify.mask & IBV_QP_PKEY_INDEX)
            index = ctl->modify.attr.pkey_index;
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
    ck_assert_uint_eq(w.pool[0].fab_ops, 0);
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
    agent_address_step_done(&w.pool[0], WORLD_DEVICE_TARGET, 0);
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
    agent_pkey_watch_why(&w.agent, why, sizeof why);
    ck_assert_ptr_nonnull(strstr(why, "P_Key 0x8001 of pool p is not in the port's table"));
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], 0);
    table_changes();
    find_at(POOL_PKEY, 2);
    find_at(OWN_PKEY, 0);
    agent_pkey_watch_why(&w.agent, why, sizeof why);
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
KEDGE_CHECK_MAIN("agent.control.pkey_watch", TESTS)
