/* SPDX-License-Identifier: Apache-2.0 */
/* DC: initiators that are brought up with a smaller MTU, and those that the device does not
 * bring back. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "dci_repair.h"
#include "bounds.h"
#include "device_bed.h"
#include "peer_setup.h"

static struct fab_ah ah;
static struct fab_qp made;

/* To what it was asked for that object first. */
static void answer_for(const void *x, int status)
{
    struct fab_ctl *ctl = take_out_for(x);
    ctl->status = status;
    if (ctl->kind == FAB_CREATE_AH)
        ctl->ah.x = &ah;
    if (ctl->kind == FAB_CREATE_QP) {
        made = (struct fab_qp){.pd = ctl->qp.pd, .type = FAB_QP_DCI, .qpn = QPS + 1};
        ctl->qp.x = &made;
    }
    ctl->done(ctl);
}

static void raise_one(struct fab_qp *qp)
{
    for (int step = 0; step < STEPS; step++)
        answer_for(qp, 0);
}

static void lane_says(enum lane_event_kind kind, struct fab_qp *qp, enum ibv_mtu mtu)
{
    struct lane_event e = {.kind = kind};
    if (kind == LANE_EVENT_WANT_PATH)
        e.want_path.mtu = mtu;
    else
        e.broken = (typeof(e.broken)){.qp = qp, .most = mtu};
    agent_peer_setup_event(&w.pool[0], &e);
}

static void begin(void)
{
    bed_begin(1);
    memset(&made, 0, sizeof made);
    w.agent.port.active = w.agent.port.mtu = IBV_MTU_4096;
    w.pool[0].prewarm.dcis = QPS - 1;
    w.pool[0].device.path_mtu = IBV_MTU_4096;
    bed_add_initiators();
}

START_TEST(a_device_that_makes_no_more_handles_is_said_and_another_failure_is_not)
{
    begin();
    lane_says(LANE_EVENT_WANT_PATH, NULL, IBV_MTU_4096);
    answer_for(NULL, -EHOSTUNREACH);
    ck_assert_ptr_null(w.world.said);
    lane_says(LANE_EVENT_WANT_PATH, NULL, IBV_MTU_4096);
    answer_for(NULL, -EAGAIN);
    ck_assert_str_eq(w.world.said, "the device makes no more address handles");
    ck_assert_uint_eq(w.told[LANE_COMMAND_PATH_READY], 2);
}
END_TEST

static void pass_ms(uint64_t ms)
{
    test_world_advance(&w.world, ms * BASE_NS_PER_MS);
    agent_dci_repairs_tick(&w.pool[0]);
}

static void refuse_for_good(struct fab_qp *qp, enum ibv_mtu most)
{
    lane_says(LANE_EVENT_QP_BROKEN, qp, most);
    for (uint32_t i = 0; i < REPAIRS_TRIED; i++) {
        ck_assert_uint_eq(w.told[LANE_COMMAND_QP_GONE], 0);
        answer_for(qp, -EIO);
        if (i + 1 < REPAIRS_TRIED)
            pass_ms(REPAIR_AGAIN_MS);
    }
}

/* Which of them, the lane says. */
START_TEST(an_endpoint_with_a_smaller_mtu_lowers_that_of_no_initiator_but_those_for_it)
{
    begin();
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[1], IBV_MTU_1024);
    lane_says(LANE_EVENT_WANT_PATH, NULL, IBV_MTU_1024);
    answer_for(NULL, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_PATH_READY], 1);
    raise_one(&w.qp[1]);
    ck_assert_int_eq(w.ready_most, IBV_MTU_1024);
    ck_assert_int_eq(w.pool[0].device.dci[1].mtu, IBV_MTU_1024);
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[2], 0);
    raise_one(&w.qp[2]);
    ck_assert_int_eq(w.ready_most, 0);
    ck_assert_int_eq(w.pool[0].device.dci[2].mtu, IBV_MTU_4096);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], 0);
    refuse_for_good(&w.qp[1], IBV_MTU_1024);
    answer_for(&w.qp[1], 0);
    pass_ms(REPAIR_AGAIN_MS);
    answer_for(NULL, 0);
    raise_one(&made); /* another one in its place has what it had */
    ck_assert_int_eq(w.ready_most, IBV_MTU_1024);
    ck_assert_int_eq(w.pool[0].device.dci[1].mtu, IBV_MTU_1024);
}
END_TEST

START_TEST(a_port_that_takes_less_lowers_that_of_all)
{
    begin();
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[1], 0);
    answer_for(&w.qp[1], 0);
    w.agent.port.active = w.agent.port.mtu = IBV_MTU_2048;
    agent_peer_setup_mtu(&w.pool[0]);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], QPS - 1);
    for (int step = 1; step < STEPS; step++)
        answer_for(&w.qp[1], 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 0); /* it had begun with what was before */
    raise_one(&w.qp[1]);
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[2], IBV_MTU_4096);
    raise_one(&w.qp[2]);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 2);
    for (uint32_t i = 1; i < QPS; i++)
        ck_assert_int_eq(w.pool[0].device.dci[i].mtu, IBV_MTU_2048);
}
END_TEST

/* ---- not brought back */

START_TEST(an_initiator_that_is_refused_time_and_again_is_replaced_by_another)
{
    for (uint32_t i = 0; i < QPS; i++) {
        begin();
        w.pool[0].device.max_spares = 1;
        refuse_for_good(&w.qp[i], 0);
        ck_assert_uint_eq(w.told[LANE_COMMAND_QP_GONE], 1);
        ck_assert_uint_eq(agent_dcis_missing(&w.pool[0]), 1);
        answer_for(NULL, 0);
        ck_assert_ptr_eq(made.pd, i == 0 ? &w.system_pd : &w.pd);
        ck_assert_uint_eq(agent_dcis_missing(&w.pool[0]), 0);
        ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 0);
        raise_one(&made);
        ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 1);
        ck_assert_ptr_eq(w.pool[0].device.dci[i].qp, &made);
        answer_for(&w.qp[i], 0);
        ck_assert_uint_eq(w.pool[0].repairs.ending, 0);
        ck_assert_uint_eq(w.outs, 0);
    }
}
END_TEST

/* The completion queue has room for so many: what is not destroyed may still complete. */
START_TEST(where_there_is_room_for_no_more_the_former_one_is_destroyed_first)
{
    begin();
    refuse_for_good(&w.qp[1], 0);
    ck_assert_uint_eq(w.outs, 1);
    answer_for(&w.qp[1], -EIO);
    pass_ms(REPAIR_AGAIN_MS);
    ck_assert_uint_eq(w.outs, 1);
    answer_for(&w.qp[1], 0);
    ck_assert_uint_eq(w.outs, 0);
    pass_ms(REPAIR_AGAIN_MS);
    answer_for(NULL, -EAGAIN); /* of these there is a limit too */
    ck_assert_uint_eq(w.outs, 0);
    pass_ms(REPAIR_AGAIN_MS);
    answer_for(NULL, 0);
    raise_one(&made);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 1);
}
END_TEST

START_TEST(one_of_which_the_device_says_nothing_any_more_is_replaced_too)
{
    begin();
    w.pool[0].device.max_spares = 1;
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[1], 0);
    pass_ms(REPAIR_SILENT_MS - 1);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_GONE], 0);
    pass_ms(1);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_GONE], 1);
    answer_for(NULL, 0);
    raise_one(&made);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 1);
    answer_for(&w.qp[1], 0); /* it was reset after all, and is of no use any more */
    ck_assert_int_eq(w.out[0]->kind, FAB_DESTROY_QP);
    answer_for(&w.qp[1], 0);
    ck_assert_uint_eq(w.pool[0].repairs.ending, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 1);
}
END_TEST

START_TEST(one_that_was_refused_once_is_tried_again)
{
    begin();
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[1], 0);
    answer_for(&w.qp[1], -EIO);
    pass_ms(REPAIR_AGAIN_MS - 1);
    ck_assert_uint_eq(w.outs, 0);
    pass_ms(1);
    raise_one(&w.qp[1]);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 1);
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[1], 0);
    answer_for(&w.qp[1], -EIO);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_GONE], 0);
    agent_dci_repairs_stop(&w.pool[0]);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_device_that_makes_no_more_handles_is_said_and_another_failure_is_not)                      \
    T(an_endpoint_with_a_smaller_mtu_lowers_that_of_no_initiator_but_those_for_it)                 \
    T(a_port_that_takes_less_lowers_that_of_all)                                                   \
    T(an_initiator_that_is_refused_time_and_again_is_replaced_by_another)                          \
    T(where_there_is_room_for_no_more_the_former_one_is_destroyed_first)                           \
    T(one_of_which_the_device_says_nothing_any_more_is_replaced_too)                               \
    T(one_that_was_refused_once_is_tried_again)
KEDGE_CHECK_MAIN("agent.control.peer_setup", TESTS)
