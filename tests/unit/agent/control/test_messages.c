/* SPDX-License-Identifier: Apache-2.0 */
/* The address handles of those to whom a lane says something about messages. */
#include <errno.h>

#include "../../check_main.h"
#include "device_bed.h"
#include "message_objects.h"

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

START_TEST(a_pool_without_the_setting_or_a_device_without_ud_or_dc_carries_none)
{
    static const struct {
        bool messages, rc, ud;
        uint32_t payload, most, receives;
    } cases[] = {
        {true, false, true, 1024, 4096, 256}, {true, false, true, 1024, 100, 100},
        {false, false, true, 1024, 4096, 0},  {true, true, true, 1024, 4096, 0},
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

#define TESTS(T)                                                                                   \
    T(a_handle_that_the_lane_wants_is_made_in_its_domain_and_given_to_it)                          \
    T(one_that_cannot_be_made_is_said_too)                                                         \
    T(one_that_comes_when_its_pool_goes_is_destroyed)                                              \
    T(a_pool_without_the_setting_or_a_device_without_ud_or_dc_carries_none)
KEDGE_CHECK_MAIN("agent.control.messages", TESTS)
