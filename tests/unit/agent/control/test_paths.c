/* SPDX-License-Identifier: Apache-2.0 */
/* DC: initiators that are brought up anew with a smaller MTU, and those that the device does not
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
        e.broken.qp = qp;
    peer_setup_event(&w.pool[0], &e);
}

static void begin(void)
{
    bed_begin(1);
    memset(&made, 0, sizeof made);
    w.agent.port.active = IBV_MTU_4096;
    w.pool[0].prewarm.dcis = QPS - 1;
    w.pool[0].device.path_mtu = IBV_MTU_4096;
    bed_add_initiators();
}

/* Until they are ready again the lane posts nothing on them. */
START_TEST(an_endpoint_with_a_smaller_mtu_comes_behind_the_word_of_it)
{
    begin();
    lane_says(LANE_EVENT_WANT_PATH, NULL, IBV_MTU_1024);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], QPS - 1);
    ck_assert_uint_eq(w.told[LANE_COMMAND_PATH_READY], 0);
    answer_for(NULL, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_PATH_READY], 1);
    for (uint32_t i = 1; i < QPS; i++) {
        lane_says(LANE_EVENT_QP_BROKEN, &w.qp[i], 0);
        raise_one(&w.qp[i]);
        ck_assert_uint_eq(w.pool[0].device.dci[i].mtu, IBV_MTU_1024);
    }
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], QPS - 1);
}
END_TEST

/* ---- not brought back */

static void pass_ms(uint64_t ms)
{
    test_world_advance(&w.world, ms * BASE_NS_PER_MS);
    dci_repairs_tick(&w.pool[0]);
}

static void refuse_for_good(struct fab_qp *qp)
{
    lane_says(LANE_EVENT_QP_BROKEN, qp, 0);
    for (uint32_t i = 0; i < REPAIRS_TRIED; i++) {
        ck_assert_uint_eq(w.told[LANE_COMMAND_QP_GONE], 0);
        answer_for(qp, -EIO);
        if (i + 1 < REPAIRS_TRIED)
            pass_ms(REPAIR_AGAIN_MS);
    }
}

START_TEST(an_initiator_that_is_refused_time_and_again_is_replaced_by_another)
{
    for (uint32_t i = 0; i < QPS; i++) {
        begin();
        w.pool[0].device.max_spares = 1;
        refuse_for_good(&w.qp[i]);
        ck_assert_uint_eq(w.told[LANE_COMMAND_QP_GONE], 1);
        ck_assert_uint_eq(dcis_missing(&w.pool[0]), 1);
        answer_for(NULL, 0);
        ck_assert_ptr_eq(made.pd, i == 0 ? &w.system_pd : &w.pd);
        ck_assert_uint_eq(dcis_missing(&w.pool[0]), 0);
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
    refuse_for_good(&w.qp[1]);
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
    dci_repairs_stop(&w.pool[0]);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_endpoint_with_a_smaller_mtu_comes_behind_the_word_of_it)                                  \
    T(an_initiator_that_is_refused_time_and_again_is_replaced_by_another)                          \
    T(where_there_is_room_for_no_more_the_former_one_is_destroyed_first)                           \
    T(one_of_which_the_device_says_nothing_any_more_is_replaced_too)                               \
    T(one_that_was_refused_once_is_tried_again)
KEDGE_CHECK_MAIN("agentd.paths", TESTS)
