/* SPDX-License-Identifier: Apache-2.0 */
/* The address handles of those to whom a lane says something about messages. */
#include <errno.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "bounds.h"
#include "device_bed.h"
#include "message_objects.h"
#include "message_receives.h"

static struct fab_ah ah;
static struct lane_command heard;

static void hear(const struct lane_command *command)
{
    tell_lane(command);
    heard = *command;
}

static void begin(void)
{
    bed_begin(1);
    w.world.lane_told = hear;
}

/* Returns what the device is asked for. */
static struct fab_ctl *want(uint32_t tag)
{
    struct lane_event e = {.kind = LANE_EVENT_WANT_AH,
                           .want_ah = {.tag = tag, .lid = 7, .gid = {0xfd, [15] = 9}}};
    agent_messages_want_ah(&w.pool[0], &e);
    ck_assert_uint_eq(w.pool[0].fab_ops, 1); /* a pool's end waits for it */
    return take_out(FAB_CREATE_AH);
}

static void answer(struct fab_ctl *ctl, int status)
{
    ctl->status = status;
    ctl->ah.x = &ah;
    ctl->done(ctl);
}

START_TEST(a_handle_that_the_lane_wants_is_made_in_its_domain_and_given_to_it)
{
    begin();
    struct fab_ctl *ctl = want(5);
    ck_assert_ptr_eq(ctl->ah.pd, &w.pd);
    ck_assert_uint_eq(ctl->ah.attr.grh.dgid.raw[15], 9);
    ck_assert_uint_eq(ctl->ah.attr.dlid, 7);
    answer(ctl, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_AH_READY], 1);
    ck_assert_uint_eq(heard.ah.tag, 5);
    ck_assert_ptr_eq(heard.ah.ah, &ah);
    ck_assert_uint_eq(w.pool[0].fab_ops, 0);
}
END_TEST

START_TEST(one_that_cannot_be_made_is_said_too)
{
    begin();
    answer(want(6), -EHOSTUNREACH);
    ck_assert_uint_eq(w.told[LANE_COMMAND_AH_READY], 1);
    ck_assert_uint_eq(heard.ah.tag, 6);
    ck_assert_ptr_null(heard.ah.ah);
    ck_assert_uint_eq(w.pool[0].fab_ops, 0);
}
END_TEST

/* Whether its lane is gone already, or goes. */
START_TEST(one_that_comes_when_its_pool_goes_is_destroyed)
{
    for (int i = 0; i < 2; i++) {
        begin();
        struct fab_ctl *ctl = want(1);
        w.pool[0].stopping = true;
        if (i == 1)
            w.pool[0].lane = NULL;
        answer(ctl, 0);
        ck_assert_uint_eq(w.told[LANE_COMMAND_AH_READY], 0);
        ck_assert_uint_eq(w.pool[0].fab_ops, 1);
        struct fab_ctl *end = take_out(FAB_DESTROY_AH);
        ck_assert_ptr_eq(end->ah.x, &ah);
        end->done(end);
        ck_assert_uint_eq(w.pool[0].fab_ops, 0);
    }
}
END_TEST

START_TEST(a_pool_without_the_setting_or_a_device_without_ud_carries_none)
{
    static const struct {
        bool messages, rc, ud;
        uint32_t payload, most, receives;
    } cases[] = {
        {true, false, true, 1024, 4096, 256}, {true, false, true, 1024, 100, 100},
        {false, false, true, 1024, 4096, 0},  {true, true, true, 1024, 4096, 256},
        {true, false, false, 1024, 4096, 0},  {true, false, true, 512, 4096, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        w.agent.config.messages = cases[i].messages;
        w.agent.config.receives = 256;
        w.pool[0].device.rc = cases[i].rc;
        w.fab.caps.transports = FAB_DC | FAB_RC | (cases[i].ud ? FAB_UD : 0);
        w.fab.caps.ud_payload = cases[i].payload;
        w.fab.caps.max_srq_wr = cases[i].most;
        ck_assert_uint_eq(agent_messages_receives(&w.pool[0]), cases[i].receives);
        ck_assert_int_eq(agent_messages_completions(&w.pool[0]) > cases[i].receives,
                         cases[i].receives != 0);
        ck_assert_ptr_null(agent_messages_describe(&w.pool[0]).srq); /* nothing is made yet */
    }
}
END_TEST

/* ---- the queue pair of datagrams */

START_TEST(a_peer_that_has_gone_is_silent_for_seconds_on_whatever_device)
{
    /* time-outs of soft, of a wire, and of devices that have half a second at the least */
    static const struct {
        uint8_t ack_timeout;
        uint32_t stretch;
        uint64_t least_ns;
        uint32_t most_s;
    } devices[] = {{8, 1, 0, 3}, {13, 4, 0, 5}, {13, 4, 536870912, 18}};
    static struct agent_config config;
    static struct fab_srq srq;
    static struct fab_mr mr;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        begin();
        struct agent_device *d = &w.pool[0].device;
        d->srq = &srq;
        d->messages.receives = 256;
        d->messages.mr = &mr;
        config.ack_timeout = devices[i].ack_timeout;
        w.pool[0].config = &config;
        d->fab->caps.timeout_stretch = devices[i].stretch;
        d->fab->caps.timeout_least_ns = devices[i].least_ns;
        d->bound_ns = fab_bound_ns(&d->fab->caps, devices[i].ack_timeout, 7);
        const struct lane_messages m = agent_messages_describe(&w.pool[0]);
        const uint64_t silent_ns = (m.ask_ns << (m.questions + 1)) - m.ask_ns;
        ck_assert_uint_lt(silent_ns, devices[i].most_s * BASE_NS_PER_S);
        ck_assert_uint_ge(silent_ns, 2 * BASE_NS_PER_S);
        ck_assert_uint_ge(silent_ns, fab_bound_ns(&d->fab->caps, devices[i].ack_timeout, 7));
        ck_assert_uint_ge(m.questions, 6);
        /* else nothing is set aside for any stream, and all wait behind each SEND */
        ck_assert_uint_gt(m.refused_ns, 2 * (d->bound_ns + d->fab->caps.slack_ns) + 1000);
        ck_assert_uint_ge(m.refused_ns, BASE_NS_PER_S);
    }
}
END_TEST

static struct fab_qp ud, other;

static void begin_with_ud(void)
{
    begin();
    ud = (struct fab_qp){.pd = &w.pd, .type = FAB_QP_UD, .qpn = 77};
    other = (struct fab_qp){.pd = &w.pd, .type = FAB_QP_UD, .qpn = 78};
    w.pool[0].device.messages =
        (struct agent_message_objects){.receives = 16, .ud = &ud, .qpn = 77, .qkey = 5};
}

/* What the device has of it goes so; returns the state that it was to be put to, or its kind. */
static int answer_next(int status)
{
    ck_assert_uint_eq(w.outs, 1);
    ck_assert_uint_eq(w.pool[0].fab_ops, 1);
    struct fab_ctl *ctl = take_at(0);
    const int what =
        ctl->kind == FAB_MODIFY_QP ? (int)ctl->modify.attr.qp_state : 1000 + (int)ctl->kind;
    if (ctl->kind == FAB_CREATE_QP && status == 0)
        ctl->qp.x = &other;
    ctl->status = status;
    ctl->done(ctl);
    return what;
}

static void expect_all(const int *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(w.told[LANE_COMMAND_UD_READY], 0);
        ck_assert_int_eq(answer_next(0), steps[i]);
    }
    ck_assert_uint_eq(w.outs, 0);
    ck_assert_uint_eq(w.pool[0].fab_ops, 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_UD_READY], 1);
    ck_assert_uint_eq(agent_messages_due_ns(&w.pool[0]), UINT64_MAX);
}
#define EXPECT(...) expect_all((const int[]){__VA_ARGS__}, sizeof(int[]){__VA_ARGS__} / sizeof(int))

static void pass_ms(uint64_t ms)
{
    test_world_advance(&w.world, ms * BASE_NS_PER_MS);
    agent_messages_tick(&w.pool[0]);
}

START_TEST(one_that_broke_is_brought_up_anew_and_its_lane_hears)
{
    begin_with_ud();
    agent_messages_ud_broken(&w.pool[0], &ud);
    EXPECT(IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS);
    ck_assert_ptr_eq(heard.qp, &ud);
    ck_assert_uint_eq(w.agent.endpoints, 0); /* nobody has to hear */
}
END_TEST

START_TEST(where_reset_is_final_another_takes_its_place_and_peers_are_told_its_number)
{
    begin_with_ud();
    w.fab.resets_are_final = true;
    agent_messages_ud_broken(&w.pool[0], &ud);
    ck_assert_uint_eq(w.pool[0].device.messages.qpn, 77);
    EXPECT(1000 + FAB_DESTROY_QP, 1000 + FAB_CREATE_QP, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS);
    ck_assert_ptr_eq(heard.qp, &other);
    ck_assert_ptr_eq(w.pool[0].device.messages.ud, &other);
    ck_assert_uint_eq(w.pool[0].device.messages.qpn, 78);
    ck_assert_uint_eq(w.agent.endpoints, 1);
}
END_TEST

START_TEST(one_that_the_device_does_not_bring_back_is_tried_again_and_then_given_up_for_another)
{
    begin_with_ud();
    agent_messages_ud_broken(&w.pool[0], &ud);
    for (int i = 0; i < REPAIRS_TRIED; i++) {
        ck_assert_int_eq(answer_next(-EIO), IBV_QPS_RESET);
        ck_assert_uint_eq(w.outs, 0);
        pass_ms(REPAIR_AGAIN_MS - 1);
        ck_assert_uint_eq(w.outs, 0);
        pass_ms(1);
    }
    ck_assert_ptr_nonnull(w.world.said);
    EXPECT(1000 + FAB_DESTROY_QP, 1000 + FAB_CREATE_QP, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS);
}
END_TEST

START_TEST(of_a_pool_that_goes_none_is_repaired_any_more)
{
    begin_with_ud();
    agent_messages_ud_broken(&w.pool[0], &ud);
    w.pool[0].stopping = true;
    (void)answer_next(0);
    ck_assert_uint_eq(w.outs, 0);
    ck_assert_uint_eq(w.pool[0].fab_ops, 0);
    ck_assert_uint_eq(agent_messages_due_ns(&w.pool[0]), UINT64_MAX);
    ck_assert_ptr_eq(w.pool[0].device.messages.ud, &ud); /* for the pool's end */
    agent_messages_retire(&w.pool[0]);
    struct fab_ctl *end = take_out(FAB_DESTROY_QP);
    ck_assert_ptr_eq(end->qp.x, &ud);
    end->done(end);
    ck_assert_uint_eq(w.pool[0].fab_ops, 0);
}
END_TEST

START_TEST(with_another_p_key_it_is_put_to_err_and_brought_up_with_that)
{
    begin_with_ud();
    agent_messages_repartition(&w.pool[0]);
    ck_assert_int_eq(answer_next(0), IBV_QPS_ERR);
    agent_messages_ud_broken(&w.pool[0], &ud); /* as its lane says then */
    ck_assert_int_eq(answer_next(0), IBV_QPS_RESET);
    w.pd.service.pkey_index = 3; /* once more, meanwhile */
    agent_messages_repartition(&w.pool[0]);
    ck_assert_int_eq(answer_next(0), IBV_QPS_INIT);
    ck_assert_uint_eq(w.out[0]->modify.attr.qp_state, IBV_QPS_RESET);
    ck_assert_int_eq(answer_next(0), IBV_QPS_RESET);
    ck_assert_uint_eq(w.out[0]->modify.attr.pkey_index, 3);
    EXPECT(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS);
}
END_TEST

START_TEST(one_that_breaks_again_and_again_is_repaired_ten_times_a_second)
{
    begin_with_ud();
    uint32_t repairs = 0;
    agent_messages_ud_broken(&w.pool[0], &ud);
    for (int ms = 0; ms < 1000; ms++) {
        if (w.outs > 0) {
            w.told[LANE_COMMAND_UD_READY] = 0;
            EXPECT(IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS);
            agent_messages_ud_broken(&w.pool[0], &ud);
            repairs++;
        }
        pass_ms(1);
    }
    ck_assert_uint_eq(repairs, 1000 / REPAIR_REST_MS);
}
END_TEST

/* It would go on in the former place, where nobody hears it. */
START_TEST(one_that_the_device_does_not_put_to_err_is_tried_again)
{
    begin_with_ud();
    agent_messages_repartition(&w.pool[0]);
    ck_assert_int_eq(answer_next(-EIO), IBV_QPS_ERR);
    ck_assert_uint_eq(w.outs, 0);
    pass_ms(REPAIR_AGAIN_MS - 1);
    ck_assert_uint_eq(w.outs, 0);
    pass_ms(1);
    ck_assert_int_eq(answer_next(-EIO), IBV_QPS_ERR); /* and yet it was carried out */
    agent_messages_ud_broken(&w.pool[0], &ud);
    EXPECT(IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS);
    pass_ms(2 * REPAIR_AGAIN_MS);
    ck_assert_uint_eq(w.outs, 0);
    agent_messages_repartition(&w.pool[0]);
    ck_assert_int_eq(answer_next(-EIO), IBV_QPS_ERR);
    w.pool[0].stopping = true;
    ck_assert_uint_eq(agent_messages_due_ns(&w.pool[0]), UINT64_MAX);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_handle_that_the_lane_wants_is_made_in_its_domain_and_given_to_it)                          \
    T(one_that_cannot_be_made_is_said_too)                                                         \
    T(one_that_comes_when_its_pool_goes_is_destroyed)                                              \
    T(a_pool_without_the_setting_or_a_device_without_ud_carries_none)                              \
    T(a_peer_that_has_gone_is_silent_for_seconds_on_whatever_device)                               \
    T(one_that_broke_is_brought_up_anew_and_its_lane_hears)                                        \
    T(where_reset_is_final_another_takes_its_place_and_peers_are_told_its_number)                  \
    T(one_that_the_device_does_not_bring_back_is_tried_again_and_then_given_up_for_another)        \
    T(of_a_pool_that_goes_none_is_repaired_any_more)                                               \
    T(with_another_p_key_it_is_put_to_err_and_brought_up_with_that)                                \
    T(one_that_breaks_again_and_again_is_repaired_ten_times_a_second)                              \
    T(one_that_the_device_does_not_put_to_err_is_tried_again)
KEDGE_CHECK_MAIN("agent.control.messages", TESTS)
