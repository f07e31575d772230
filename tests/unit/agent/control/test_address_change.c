/* SPDX-License-Identifier: Apache-2.0 */
/* This node's port has another address. Nothing here waits for the lane or the device. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "address_change.h"
#include "base/clock.h"
#include "bounds.h"
#include "device_bed.h"
#include "life.h"
#include "peer_setup.h"
#include "sessions.h"

static const uint8_t first_gid[16] = {0xfd, [15] = 1}, other_gid[16] = {0xfd, [15] = 2},
                     third_gid[16] = {0xfd, [7] = 7, [8] = 8, [15] = 3};

static struct agent_table table;

static void begin(void)
{
    bed_begin(POOL_COUNT);
    memset(&table, 0, sizeof table);
    w.fab.caps.sgid_index = 2;
    memcpy(w.fab.caps.gid, first_gid, 16);
    agent_life_begin(&w.agent, 5);
    for (int i = 0; i < POOL_COUNT; i++)
        w.pool[i].device.table = &table;
    bed_add_initiators();
    agent_address_init(&w.agent);
}

static void look_and_see(struct fab_own_address now)
{
    agent_address_look(&w.agent);
    struct fab_ctl *ctl = take_out(FAB_QUERY_ADDRESS);
    ctl->address.now = now;
    ctl->done(ctl);
}

static void moves_to(uint8_t index)
{
    look_and_see((struct fab_own_address){.active = true, .has_gid = true, .sgid_index = index});
}

/* The name that it had is gone for long, and there is another. */
static void becomes(const uint8_t gid[16])
{
    struct fab_own_address now = {.active = true, .has_other = true, .other_index = 3};
    memcpy(now.other, gid, 16);
    look_and_see(now);
    test_world_advance(&w.world, 3600 * 1000000000ull);
    look_and_see(now);
}

static void becomes_another(void)
{
    becomes(other_gid);
}

static void target_done(struct pool *p, int status)
{
    agent_address_step_done(p, WORLD_DEVICE_TARGET, status);
}

static void table_done(struct pool *p, int status)
{
    agent_address_step_done(p, WORLD_DEVICE_TABLE, status);
}

static uint32_t readdressed(void)
{
    return w.told[LANE_COMMAND_READDRESS];
}

START_TEST(paths_are_made_anew_when_the_device_has_made_the_target)
{
    begin();
    moves_to(9);
    ck_assert_uint_eq(w.fab.caps.sgid_index, 9);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], POOL_COUNT);
    ck_assert_uint_eq(readdressed() + w.agent.endpoints, 0);
    target_done(&w.pool[1], 0);
    ck_assert_uint_eq(readdressed(), 1);
    ck_assert_uint_eq(w.agent.endpoints, 0); /* metaservers hear of both at once */
    target_done(&w.pool[0], 0);
    ck_assert_uint_eq(readdressed(), 2);
    ck_assert_uint_eq(w.agent.endpoints, 1);
}
END_TEST

START_TEST(another_name_has_another_table_too)
{
    begin();
    becomes_another();
    ck_assert_mem_eq(w.fab.caps.gid, other_gid, 16);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], POOL_COUNT);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TABLE], POOL_COUNT);
    for (int i = 0; i < POOL_COUNT; i++) {
        target_done(&w.pool[i], 0);
        ck_assert_uint_eq(readdressed(), (uint32_t)i);
        table_done(&w.pool[i], 0);
        ck_assert_uint_eq(readdressed(), (uint32_t)i + 1);
        ck_assert_uint_eq(w.pool[i].incarnation, w.agent.incarnation);
    }
    ck_assert_uint_gt(w.agent.incarnation, 5);
    ck_assert_uint_eq(w.agent.endpoints, 1);
}
END_TEST

static void device_makes_all(void)
{
    for (int i = 0; i < POOL_COUNT; i++) {
        target_done(&w.pool[i], 0);
        table_done(&w.pool[i], 0);
        ck_assert_uint_eq(w.pool[i].incarnation, w.agent.incarnation);
    }
}

/* Pools that were made anew in this life have later ones than the node. */
START_TEST(another_name_waits_for_an_incarnation_that_is_kept_and_above_all_pools)
{
    begin();
    const uint32_t first = w.agent.kept.last;
    w.agent.newest_incarnation = w.pool[1].incarnation = first;
    becomes_another();
    test_world_end_keeping(&w.world, -ENOSPC);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TABLE], 0);
    ck_assert_mem_eq(w.agent.address.gid, first_gid, 16);
    becomes_another();
    test_world_end_keeping(&w.world, 0);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TABLE], 0);
    ck_assert_uint_eq(w.agent.incarnation, 5);
    becomes_another();
    device_makes_all();
    ck_assert_mem_eq(w.agent.address.gid, other_gid, 16);
    ck_assert_uint_eq(w.agent.incarnation, first + 1);
    ck_assert_uint_le(w.agent.incarnation, w.agent.kept.last);
}
END_TEST

/* A subnet manager that says another LID each time, of which nobody waits for one to be the last.
 */
START_TEST(as_many_other_names_are_taken_while_the_disk_writes_as_it_has_kept)
{
    struct fab_own_address now = {.active = true, .has_gid = true, .sgid_index = 2};
    uint32_t taken = 0;
    begin();
    const uint32_t kept = w.agent.kept.last;
    for (now.lid = 1; now.lid <= 2 * INCARNATIONS_AHEAD; now.lid++) {
        const uint32_t before = w.agent.incarnation;
        look_and_see(now);
        if (w.agent.incarnation == before)
            continue;
        ck_assert_uint_eq(w.agent.address.lid, now.lid);
        device_makes_all();
        taken++;
    }
    ck_assert_uint_eq(taken, INCARNATIONS_AHEAD);
    ck_assert_uint_eq(w.agent.incarnation, kept);
    test_world_end_keeping(&w.world, 0);
    now.lid--;
    look_and_see(now);
    device_makes_all();
    ck_assert_uint_eq(w.agent.address.lid, now.lid); /* it is where it is after all */
    ck_assert_uint_eq(w.agent.incarnation, kept + 1);
}
END_TEST

START_TEST(an_address_that_changes_again_meanwhile_is_followed_afterwards)
{
    begin();
    moves_to(9);
    moves_to(4);
    ck_assert_uint_eq(w.fab.caps.sgid_index, 9);
    for (int i = 0; i < POOL_COUNT; i++)
        target_done(&w.pool[i], 0);
    moves_to(4);
    ck_assert_uint_eq(w.fab.caps.sgid_index, 4);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], 2 * POOL_COUNT);
    for (int i = 0; i < POOL_COUNT; i++)
        target_done(&w.pool[i], 0);
    ck_assert_uint_eq(w.agent.endpoints, 2);
}
END_TEST

START_TEST(a_target_that_breaks_while_another_is_made_has_one_more_made)
{
    begin();
    moves_to(9);
    agent_address_retarget(&w.agent);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], POOL_COUNT);
    for (int i = 0; i < POOL_COUNT; i++)
        target_done(&w.pool[i], 0);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], 2 * POOL_COUNT);
    ck_assert_uint_eq(readdressed() + w.agent.endpoints, 0);
    for (int i = 0; i < POOL_COUNT; i++)
        target_done(&w.pool[i], 0);
    ck_assert_uint_eq(readdressed(), POOL_COUNT);
    ck_assert_uint_eq(w.agent.endpoints, 1);
    agent_address_retarget(&w.agent); /* alone, it leaves what leads to peers */
    for (int i = 0; i < POOL_COUNT; i++)
        target_done(&w.pool[i], 0);
    ck_assert_uint_eq(readdressed(), POOL_COUNT);
    ck_assert_uint_eq(w.agent.endpoints, 2);
}
END_TEST

static void wait_ms(uint64_t ms)
{
    test_world_advance(&w.world, ms * BASE_NS_PER_MS);
    agent_address_tick(&w.agent);
    agent_address_tick(&w.agent);
}

/* ---- what workers are told */

static void all_done(void)
{
    for (int i = 0; i < POOL_COUNT; i++) {
        target_done(&w.pool[i], 0);
        table_done(&w.pool[i], 0);
    }
}

/* As libkedge reads it (unit.libclient.gid). */
static void tells(const struct schema_session_ro *ro, uint32_t changes, const uint8_t latest[16],
                  const uint8_t before[16])
{
    ck_assert_uint_eq(ro->changes, changes);
    ck_assert_mem_eq((const void *)ro->present_gid[changes % 2], latest, 16);
    ck_assert_mem_eq((const void *)ro->present_gid[(changes + 1) % 2], before, 16);
    ck_assert_mem_eq(ro->gid, first_gid, 16); /* who attached before goes by it */
}

START_TEST(sessions_that_there_are_hear_of_another_name)
{
    enum { STAGES = STAGE_UNMAKING + 1 };
    static const uint8_t none[16];
    struct agent_session sessions[STAGES] = {{.stage = STAGE_EMPTY}};
    static struct schema_session_ro ro[STAGES];
    begin();
    w.agent.config.max_sessions = STAGES;
    w.pool[0].sessions = sessions;
    for (int i = 0; i < STAGES; i++) {
        sessions[i].stage = (enum stage)i;
        sessions[i].rings.ro = &ro[i];
        memcpy(ro[i].gid, first_gid, 16);
    }
    moves_to(9); /* under its name */
    for (int i = 0; i < POOL_COUNT; i++)
        target_done(&w.pool[i], 0);
    for (int i = 0; i < STAGES; i++)
        tells(&ro[i], 0, none, none);
    becomes(other_gid);
    for (int i = 0; i < STAGES; i++)
        tells(&ro[i], 0, none, none); /* not before peers find it */
    all_done();
    tells(&ro[STAGE_READY], 1, other_gid, none);
    tells(&ro[STAGE_LIVE], 1, other_gid, none);
    tells(&ro[STAGE_ENDING], 1, other_gid, none);
    becomes(third_gid);
    all_done();
    tells(&ro[STAGE_READY], 2, third_gid, other_gid);
    tells(&ro[STAGE_LIVE], 2, third_gid, other_gid);
    tells(&ro[STAGE_ENDING], 2, third_gid, other_gid);
    tells(&ro[STAGE_EMPTY], 0, none, none); /* these are a task thread's, or nobody's */
    tells(&ro[STAGE_MAKING], 0, none, none);
    tells(&ro[STAGE_UNMAKING], 0, none, none);
}
END_TEST

/* ---- what fails */

/* Its GID may have been gone for a moment, and nothing else says that it is back. */
START_TEST(one_that_could_not_be_made_is_tried_again_ever_less_often)
{
    enum { TRIES = 6 };
    uint64_t wait = READDRESS_MIN_MS;
    begin();
    moves_to(9);
    target_done(&w.pool[0], -EINVAL);
    target_done(&w.pool[1], 0);
    agent_address_tick(&w.agent);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], POOL_COUNT);
    ck_assert_uint_eq(readdressed(), POOL_COUNT); /* to reach peers it takes no target */
    for (uint32_t tries = 1; tries <= TRIES; tries++) {
        wait_ms(wait - 1);
        ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], POOL_COUNT + tries - 1);
        wait_ms(1);
        ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], POOL_COUNT + tries);
        wait_ms(2 * READDRESS_MAX_MS); /* one at a time */
        ck_assert_uint_eq(w.agent.endpoints, 1);
        target_done(&w.pool[0], tries < TRIES ? -EINVAL : 0);
        wait = 2 * wait < READDRESS_MAX_MS ? 2 * wait : READDRESS_MAX_MS;
    }
    wait_ms(2 * READDRESS_MAX_MS);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], POOL_COUNT + TRIES);
    ck_assert_uint_eq(readdressed(), POOL_COUNT);
    ck_assert_uint_eq(w.agent.endpoints, 2); /* metaservers hear of the one that there is at last */
}
END_TEST

START_TEST(a_table_that_could_not_be_registered_is_so_again_and_the_lane_waits_for_it)
{
    begin();
    becomes_another();
    for (int i = 0; i < POOL_COUNT; i++) {
        table_done(&w.pool[i], i == 0 ? -ENOMEM : 0);
        target_done(&w.pool[i], 0);
    }
    ck_assert_uint_eq(readdressed(), POOL_COUNT - 1);
    test_world_advance(&w.world, 2 * READDRESS_MIN_MS * BASE_NS_PER_MS);
    agent_address_tick(&w.agent);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TABLE], POOL_COUNT + 1);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], POOL_COUNT); /* which there are */
    ck_assert_uint_eq(readdressed(), POOL_COUNT - 1);
    table_done(&w.pool[0], 0);
    ck_assert_uint_eq(readdressed(), POOL_COUNT);
}
END_TEST

/* Over RC the lane would give up the queue pairs that it READs tables through. */
START_TEST(one_that_is_refused_for_long_leaves_the_way_to_metaservers_alone)
{
    begin();
    w.agent.config.metaservers = 1;
    for (int i = 0; i < POOL_COUNT; i++)
        w.pool[i].device.rc = true;
    becomes_another();
    for (int i = 0; i < POOL_COUNT; i++)
        table_done(&w.pool[i], -ENOMEM);
    ck_assert_uint_eq(w.told[LANE_COMMAND_METASERVERS], POOL_COUNT);
    for (int tries = 0; tries < 3; tries++) {
        wait_ms(READDRESS_MAX_MS);
        for (int i = 0; i < POOL_COUNT; i++)
            table_done(&w.pool[i], -ENOMEM);
    }
    ck_assert_uint_eq(w.told[LANE_COMMAND_METASERVERS], POOL_COUNT);
    ck_assert_uint_eq(w.agent.endpoints, 1);
}
END_TEST

/* What the log says of it would be untrue, and what is there would be made again. */
START_TEST(one_that_is_made_at_the_second_try_has_not_failed)
{
    begin();
    moves_to(9);
    agent_address_retarget(&w.agent);
    target_done(&w.pool[1], 0);
    target_done(&w.pool[1], 0);
    target_done(&w.pool[0], -EINVAL);
    target_done(&w.pool[0], 0);
    wait_ms(2 * READDRESS_MAX_MS);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_TARGET], 2 * POOL_COUNT);
}
END_TEST

/* ---- initiators */

static void lane_gives_back(struct fab_qp *qp)
{
    const struct lane_event e = {.kind = LANE_EVENT_QP_BROKEN, .broken = {.qp = qp}};
    agent_peer_setup_event(&w.pool[0], &e);
}

static void raise_by(int steps)
{
    for (; steps > 0; steps--) {
        struct fab_ctl *ctl = take_out(FAB_MODIFY_QP);
        ctl->done(ctl);
    }
}

START_TEST(initiators_are_brought_up_anew_at_another_address)
{
    begin();
    moves_to(9);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], QPS);
    for (uint32_t i = 0; i < QPS; i++) {
        lane_gives_back(&w.qp[i]);
        raise_by(STEPS);
    }
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], QPS);
    for (int i = 0; i < POOL_COUNT; i++)
        target_done(&w.pool[i], 0);
    moves_to(9);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], QPS);
}
END_TEST

/* At whatever moment: what was submitted before has the former address. */
START_TEST(one_that_is_being_brought_up_meanwhile_is_so_once_more_if_it_has_the_former)
{
    for (int before = 0; before <= STEPS - 1; before++) {
        begin();
        lane_gives_back(&w.qp[1]);
        raise_by(before);
        moves_to(9);
        raise_by(STEPS - before);
        const bool has_former = before >= 2; /* RTR is submitted when INIT is over */
        ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], !has_former);
        if (has_former)
            raise_by(STEPS);
        ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 1);
        ck_assert_uint_eq(w.outs, 0);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(paths_are_made_anew_when_the_device_has_made_the_target)                                     \
    T(another_name_has_another_table_too)                                                          \
    T(another_name_waits_for_an_incarnation_that_is_kept_and_above_all_pools)                      \
    T(as_many_other_names_are_taken_while_the_disk_writes_as_it_has_kept)                          \
    T(an_address_that_changes_again_meanwhile_is_followed_afterwards)                              \
    T(a_target_that_breaks_while_another_is_made_has_one_more_made)                                \
    T(sessions_that_there_are_hear_of_another_name)                                                \
    T(one_that_could_not_be_made_is_tried_again_ever_less_often)                                   \
    T(a_table_that_could_not_be_registered_is_so_again_and_the_lane_waits_for_it)                  \
    T(one_that_is_refused_for_long_leaves_the_way_to_metaservers_alone)                            \
    T(one_that_is_made_at_the_second_try_has_not_failed)                                           \
    T(initiators_are_brought_up_anew_at_another_address)                                           \
    T(one_that_is_being_brought_up_meanwhile_is_so_once_more_if_it_has_the_former)
KEDGE_CHECK_MAIN("agent.control.address_change", TESTS)
