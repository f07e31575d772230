/* SPDX-License-Identifier: Apache-2.0 */
/* DC: initiators that are brought up anew with a smaller MTU, of which the device cannot repair
 * one. The lane and the device are the test's, and answer when it wants. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "dci.h"
#include "fabric/provider.h"
#include "bounds.h"
#include "peer_setup.h"
#include "pool.h"
#include "world.h"

enum { QPS = 3, OUT = 16, STEPS = 4 /* from RESET to RTS */ };

static struct {
    struct test_world world;
    struct agent agent;
    struct pool pool;
    struct fab fab;
    struct fab_ops ops;
    struct fab_pd pd;
    struct fab_qp qp[QPS]; /* the first is the system's */
    struct fab_ah ah;
    struct fab_ctl *out[OUT]; /* what the device has */
    uint32_t outs;
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

/* To what it was asked for that object first. */
static void answer_for(const void *x, int status)
{
    uint32_t i = 0;
    while (i < w.outs && w.out[i]->modify.x != x) /* every kind names its object first */
        i++;
    ck_assert_uint_lt(i, w.outs);
    struct fab_ctl *ctl = w.out[i];
    w.out[i] = w.out[--w.outs];
    ctl->status = status;
    if (ctl->kind == FAB_CREATE_AH)
        ctl->ah.x = &w.ah;
    ctl->done(ctl);
}

static void lane_says(enum lane_event_kind kind, struct fab_qp *qp, enum ibv_mtu mtu)
{
    struct lane_event e = {.kind = kind};
    if (kind == LANE_EVENT_WANT_PATH)
        e.want_path.mtu = mtu;
    else
        e.broken.qp = qp;
    peer_setup_event(&w.pool, &e);
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.ops.submit = submit;
    w.fab = (struct fab){.ops = &w.ops};
    w.pd = (struct fab_pd){.fab = &w.fab};
    w.agent.port.active = IBV_MTU_4096;
    test_world_init(&w.world);
    w.world.lane_told = tell_lane;
    w.agent.world = w.pool.world = &w.world.world;
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.pool.lane = (struct lane *)&w; /* there is one */
    w.pool.device.fab = &w.fab;
    w.pool.device.pd = &w.pd;
    w.pool.device.path_mtu = IBV_MTU_4096;
    for (uint32_t i = 0; i < QPS; i++) {
        w.qp[i] = (struct fab_qp){.pd = &w.pd, .type = FAB_QP_DCI, .qpn = i + 1};
        (void)dci_add(&w.pool, &w.qp[i], 0);
    }
}

START_TEST(an_endpoint_with_a_smaller_mtu_waits_for_initiators_that_send_longer_packets)
{
    begin();
    lane_says(LANE_EVENT_WANT_PATH, NULL, IBV_MTU_1024);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_REBUILD], QPS - 1);
    answer_for(NULL, 0); /* its address can be had */
    ck_assert_uint_eq(w.told[LANE_COMMAND_PATH_READY], 0);
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[1], 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_PATH_READY], 0);
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[2], 0);
    for (uint32_t i = 1; i < QPS; i++)
        for (int step = 0; step < STEPS; step++)
            answer_for(&w.qp[i], 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], QPS - 1);
    ck_assert_uint_eq(w.told[LANE_COMMAND_PATH_READY], 1);
}
END_TEST

START_TEST(and_not_for_one_that_the_device_cannot_repair)
{
    begin();
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[1], 0);
    answer_for(&w.qp[1], -EIO);
    lane_says(LANE_EVENT_WANT_PATH, NULL, IBV_MTU_1024);
    answer_for(NULL, 0);
    lane_says(LANE_EVENT_QP_BROKEN, &w.qp[2], 0);
    for (int step = 0; step < STEPS; step++)
        answer_for(&w.qp[2], 0);
    ck_assert_uint_eq(w.told[LANE_COMMAND_QP_READY], 1);
    test_world_advance(&w.world, REPAIR_AGAIN_MS * BASE_NS_PER_MS);
    peer_setup_tick(&w.pool);
    answer_for(&w.qp[1], -EIO);
    ck_assert_uint_eq(w.told[LANE_COMMAND_PATH_READY], 1);
    peer_setup_stop(&w.pool);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_endpoint_with_a_smaller_mtu_waits_for_initiators_that_send_longer_packets)                \
    T(and_not_for_one_that_the_device_cannot_repair)
KEDGE_CHECK_MAIN("agentd.paths", TESTS)
