/* SPDX-License-Identifier: Apache-2.0 */
/* What is out on a queue pair is to end, and the device does not put it to ERR. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "device_bed.h"
#include "dci_repair.h"
#include "peer_setup.h"
#include "bounds.h"
#include "qp_end.h"

static void begin(void)
{
    bed_begin(1);
    w.pool[0].prewarm.dcis = QPS;
    bed_add_initiators();
}

static void tell(enum lane_event_kind kind, struct fab_qp *qp)
{
    const struct lane_event e = {.kind = kind, .qp = qp};
    agent_peer_setup_event(&w.pool[0], &e);
}

static void end(struct fab_qp *qp)
{
    tell(LANE_EVENT_QP_OVERDUE, qp);
}

static void answer(enum fab_ctl_kind kind, int status)
{
    struct fab_ctl *ctl = take_out(kind);
    ctl->status = status;
    ctl->done(ctl);
}

static void refuse_err(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        ck_assert_int_eq(w.out[0]->modify.attr.qp_state, IBV_QPS_ERR);
        answer(FAB_MODIFY_QP, -EIO);
    }
}

static void refuse_until_it_is_destroyed(struct fab_qp *qp)
{
    end(qp);
    refuse_err(QP_ENDS_TRIED);
    ck_assert_uint_eq(w.outs, 1);
    ck_assert_int_eq(w.out[0]->kind, FAB_DESTROY_QP);
    ck_assert_ptr_eq(w.out[0]->qp.x, qp);
}

/* Another is made, where it was. */
static void finds_another_in_its_place(uint32_t place)
{
    struct fab_qp other = {.pd = place == 0 ? &w.system_pd : &w.pd, .type = FAB_QP_DCI, .qpn = 99};
    ck_assert_ptr_null(w.pool[0].device.dci[place].qp);
    struct fab_ctl *ctl = take_out(FAB_CREATE_QP);
    ck_assert_ptr_eq(ctl->qp.pd, other.pd);
    ctl->qp.x = &other;
    ctl->done(ctl);
    ck_assert_ptr_eq(w.pool[0].device.dci[place].qp, &other);
    for (uint32_t i = 0; i < STEPS; i++)
        answer(FAB_MODIFY_QP, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 1);
    ck_assert_uint_eq(w.outs, 0);
    ck_assert_ptr_null(w.pool[0].ends);
}

START_TEST(a_device_that_refuses_err_to_all_does_not_fill_the_log)
{
    uint32_t ended = 0, said = 0;
    begin();
    for (; ended < 3 * FAULTS_LOGGED; ended++) {
        const uint32_t i = ended % QPS;
        w.world.said = NULL;
        refuse_until_it_is_destroyed(&w.qp[i]);
        said += w.world.said != NULL && strstr(w.world.said, "does not end a queue pair") != NULL;
        answer(FAB_DESTROY_QP, 0);
        tell(LANE_EVENT_QP_BROKEN, &w.qp[i]);
        struct fab_ctl *ctl = take_out(FAB_CREATE_QP);
        ctl->qp.x = &w.qp[i];
        ctl->done(ctl);
        for (uint32_t step = 0; step < STEPS; step++)
            answer(FAB_MODIFY_QP, 0);
    }
    ck_assert_uint_eq(said, FAULTS_LOGGED);
}
END_TEST

START_TEST(err_that_the_device_refuses_once_is_tried_again)
{
    begin();
    end(&w.qp[1]);
    refuse_err(QP_ENDS_TRIED - 1);
    answer(FAB_MODIFY_QP, 0);
    ck_assert_uint_eq(w.outs, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_DESTROYED], 0);
    ck_assert_ptr_null(w.pool[0].ends);
}
END_TEST

START_TEST(one_that_is_not_put_to_err_is_destroyed_and_another_is_made)
{
    for (uint32_t place = 0; place < 2; place++) {
        begin();
        refuse_until_it_is_destroyed(&w.qp[place]);
        answer(FAB_DESTROY_QP, 0);
        ck_assert_uint_eq(w.told[LANE_COMMAND_QP_DESTROYED], 1);
        ck_assert_uint_eq(w.outs, 0);
        tell(LANE_EVENT_QP_BROKEN, &w.qp[place]);
        ck_assert_uint_eq(w.told[LANE_COMMAND_QP_GONE], 0);
        finds_another_in_its_place(place);
    }
}
END_TEST

/* Which its lane waits for no longer than it does for one in ERR. */
START_TEST(one_that_is_not_destroyed_either_is_given_up_and_tried_again)
{
    begin();
    refuse_until_it_is_destroyed(&w.qp[1]);
    answer(FAB_DESTROY_QP, -EIO);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_DESTROYED], 0);
    tell(LANE_EVENT_QP_BROKEN, &w.qp[1]);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_GONE], 1);
    finds_another_in_its_place(1);
    test_world_advance(&w.world, 10ull * 1000000000);
    agent_dci_repairs_tick(&w.pool[0]);
    answer(FAB_DESTROY_QP, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_DESTROYED], 0);
    ck_assert_uint_eq(w.pool[0].repairs.ending, 0);
}
END_TEST

START_TEST(its_lane_hears_of_it_too_when_a_later_try_destroys_it)
{
    begin();
    refuse_until_it_is_destroyed(&w.qp[1]);
    answer(FAB_DESTROY_QP, -EIO);
    test_world_advance(&w.world, 10ull * 1000000000);
    agent_dci_repairs_tick(&w.pool[0]);
    answer(FAB_DESTROY_QP, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_DESTROYED], 1);
    tell(LANE_EVENT_QP_BROKEN, &w.qp[1]);
    finds_another_in_its_place(1);
}
END_TEST

/* All that was out has come back meanwhile. */
START_TEST(one_that_its_lane_gives_back_first_is_repaired_and_not_destroyed)
{
    begin();
    end(&w.qp[1]);
    tell(LANE_EVENT_QP_BROKEN, &w.qp[1]);
    answer(FAB_MODIFY_QP, -EIO);
    ck_assert_uint_eq(w.outs, 1);
    ck_assert_int_eq(w.out[0]->modify.attr.qp_state, IBV_QPS_RESET);
    for (uint32_t i = 0; i < STEPS; i++)
        answer(FAB_MODIFY_QP, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 1);
    ck_assert_ptr_null(w.pool[0].ends);
}
END_TEST

START_TEST(nothing_is_tried_again_for_a_pool_that_ends)
{
    begin();
    end(&w.qp[1]);
    w.pool[0].stopping = true;
    answer(FAB_MODIFY_QP, -EIO);
    ck_assert_uint_eq(w.outs, 0);
    ck_assert_ptr_null(w.pool[0].ends);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_device_that_refuses_err_to_all_does_not_fill_the_log)                                      \
    T(err_that_the_device_refuses_once_is_tried_again)                                             \
    T(one_that_is_not_put_to_err_is_destroyed_and_another_is_made)                                 \
    T(one_that_is_not_destroyed_either_is_given_up_and_tried_again)                                \
    T(its_lane_hears_of_it_too_when_a_later_try_destroys_it)                                       \
    T(one_that_its_lane_gives_back_first_is_repaired_and_not_destroyed)                            \
    T(nothing_is_tried_again_for_a_pool_that_ends)

KEDGE_CHECK_MAIN("agent.control.qp_end", TESTS)
