/* SPDX-License-Identifier: Apache-2.0 */
/* The device says that a queue pair is in ERR: its state is asked, by nobody who waits for it. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "bounds.h"
#include "device_bed.h"
#include "device_events.h"

static uint32_t events;
static struct fab_qp *event_qp;
static enum ibv_event_type event_type;

static int get_event(struct fab *fab, struct fab_event *out)
{
    (void)fab;
    if (events == 0)
        return 0;
    events--;
    *out = (struct fab_event){.type = event_type, .qp = event_qp};
    return 1;
}

static enum ibv_qp_state wait_for_firmware(const struct fab_qp *qp)
{
    (void)qp;
    ck_abort_msg("the control thread waits for the device");
    return IBV_QPS_ERR;
}

static void begin(void)
{
    bed_begin(2);
    event_type = IBV_EVENT_QP_FATAL;
    w.ops.get_event = get_event;
    w.ops.qp_state = wait_for_firmware;
    bed_add_initiators();
}

static void tell(uint32_t qp, uint32_t times)
{
    event_qp = &w.qp[qp];
    events = times;
    agent_device_events(&w.agent);
}

static void answer(int status, enum ibv_qp_state state)
{
    struct fab_ctl *ctl = take_out(FAB_QUERY_QP);
    ctl->status = status;
    ctl->asked.state = state;
    ctl->done(ctl);
}

static uint32_t told(void)
{
    return w.told[LANE_COMMAND_QP_FATAL];
}

START_TEST(lanes_hear_of_it_when_the_device_has_answered)
{
    begin();
    tell(1, 1);
    ck_assert_uint_eq(told(), 0);
    answer(0, IBV_QPS_ERR);
    ck_assert_uint_eq(told(), POOL_COUNT); /* the lane that has it knows it */
    tell(1, 1);
    answer(-EIO, IBV_QPS_RTS); /* one of which nothing can be known */
    ck_assert_uint_eq(told(), 2 * POOL_COUNT);
    ck_assert_uint_eq(w.outs, 0);
}
END_TEST

/* Of one that shares its receives a device may say no more. */
START_TEST(the_last_of_a_queue_pairs_receives_is_a_sign_too)
{
    begin();
    event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
    tell(1, 1);
    answer(0, IBV_QPS_ERR);
    ck_assert_uint_eq(told(), 2);
    ck_assert(!w.agent.device_lost);
}
END_TEST

/* Peers reach this node by queue pairs that have it: only a new process has others. */
START_TEST(an_agent_whose_shared_receives_break_ends)
{
    begin();
    event_type = IBV_EVENT_SRQ_ERR;
    tell(1, 1);
    ck_assert(w.agent.device_lost);
    ck_assert_uint_eq(told(), 0);
}
END_TEST

START_TEST(what_is_of_a_life_that_is_over_is_told_nobody)
{
    begin();
    tell(1, 1);
    answer(0, IBV_QPS_RTS);
    ck_assert_uint_eq(told(), 0);
    ck_assert_uint_eq(w.outs, 0);
}
END_TEST

START_TEST(many_events_are_one_question_and_what_came_meanwhile_another)
{
    begin();
    tell(1, 20);
    ck_assert_uint_eq(w.outs, 1);
    answer(0, IBV_QPS_RTS);
    ck_assert_uint_eq(w.outs, 1);
    answer(0, IBV_QPS_ERR);
    ck_assert_uint_eq(told(), POOL_COUNT);
    ck_assert_uint_eq(w.outs, 0);
}
END_TEST

START_TEST(nothing_more_is_asked_of_one_that_is_to_be_destroyed)
{
    begin();
    tell(1, 2);
    atomic_store(&w.qp[1].leaves, true);
    answer(0, IBV_QPS_RTS);
    ck_assert_uint_eq(w.outs, 0);
}
END_TEST

START_TEST(an_agent_that_ends_hears_no_answer)
{
    begin();
    tell(1, 1);
    tell(2, 1);
    answer(-ECANCELED, IBV_QPS_ERR);
    w.agent.stopping = true;
    answer(0, IBV_QPS_ERR);
    ck_assert_uint_eq(told(), 0);
    ck_assert_ptr_null(w.agent.questions);
}
END_TEST

START_TEST(what_the_device_refuses_to_destroy_is_said_and_not_at_each_look)
{
    begin();
    w.agent.port.asking = true; /* that is another matter */
    agent_device_tick(&w.agent);
    ck_assert_ptr_null(w.world.said);
    w.fab.undestroyed = 3;
    agent_device_tick(&w.agent);
    ck_assert_ptr_nonnull(strstr(w.world.said, "refuses to destroy objects"));
    w.world.said = NULL;
    agent_device_tick(&w.agent);
    w.fab.undestroyed = 4;
    agent_device_tick(&w.agent);
    ck_assert_ptr_null(w.world.said);
    test_world_advance(&w.world, (FAULTS_LOGGED_S + 1) * BASE_NS_PER_S);
    agent_device_tick(&w.agent);
    ck_assert_ptr_nonnull(w.world.said);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(lanes_hear_of_it_when_the_device_has_answered)                                               \
    T(the_last_of_a_queue_pairs_receives_is_a_sign_too)                                            \
    T(an_agent_whose_shared_receives_break_ends)                                                   \
    T(what_is_of_a_life_that_is_over_is_told_nobody)                                               \
    T(many_events_are_one_question_and_what_came_meanwhile_another)                                \
    T(nothing_more_is_asked_of_one_that_is_to_be_destroyed)                                        \
    T(an_agent_that_ends_hears_no_answer)                                                          \
    T(what_the_device_refuses_to_destroy_is_said_and_not_at_each_look)

KEDGE_CHECK_MAIN("agent.control.device_events", TESTS)
