/* SPDX-License-Identifier: Apache-2.0 */
/* An agent with pools, DC initiators and lanes of which nothing runs: the lanes and the device are
 * the test's, and answer when it wants. */
#ifndef UNIT_AGENT_CONTROL_DEVICE_BED_H
#define UNIT_AGENT_CONTROL_DEVICE_BED_H

#include <check.h>
#include <stdint.h>
#include <string.h>
#include "agent.h"
#include "dci.h"
#include "fabric/provider.h"
#include "pool.h"
#include "world.h"

enum { POOL_COUNT = 2, QPS = 3, OUT = 16, STEPS = 4 /* from RESET to RTS */ };

static struct {
    struct test_world world;
    struct agent agent;
    struct pool pool[POOL_COUNT];
    struct fab fab;
    struct fab_ops ops;
    struct fab_pd pd, system_pd;
    struct fab_qp qp[QPS];    /* of the first pool, of which the first is the system's */
    struct fab_ctl *out[OUT]; /* what the device has */
    uint32_t outs;
    uint32_t told[LANE_COMMAND_PROVE + 1]; /* the lanes, by kind */
    enum ibv_mtu ready_most;               /* of the last initiator that is ready */
} w;

static inline void tell_lane(const struct lane_command *command)
{
    w.told[command->kind]++;
    if (command->kind == LANE_COMMAND_QP_READY)
        w.ready_most = command->ready.most;
}

static inline void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    ck_assert_uint_lt(w.outs, OUT);
    w.out[w.outs++] = ctl;
}

/* It is not the device's any more. */
static inline struct fab_ctl *take_at(uint32_t i)
{
    ck_assert_uint_lt(i, w.outs);
    struct fab_ctl *ctl = w.out[i];
    memmove(&w.out[i], &w.out[i + 1], (--w.outs - i) * sizeof w.out[0]);
    ctl->status = 0;
    return ctl;
}

/* The first that it was asked of that kind. */
static inline struct fab_ctl *take_out(enum fab_ctl_kind kind)
{
    uint32_t i = 0;
    while (i < w.outs && w.out[i]->kind != kind)
        i++;
    return take_at(i);
}

/* The first that it was asked for that object. */
static inline struct fab_ctl *take_out_for(const void *x)
{
    uint32_t i = 0;
    while (i < w.outs && w.out[i]->modify.x != x) /* every kind names its object first */
        i++;
    return take_at(i);
}

/* All initiators are added when the test has said what else the device and the agent are. */
static inline void bed_begin(uint32_t pools)
{
    memset(&w, 0, sizeof w);
    ck_assert_uint_le(pools, POOL_COUNT);
    w.ops.submit = submit;
    w.fab.ops = &w.ops;
    w.pd.fab = w.system_pd.fab = &w.fab;
    test_world_init(&w.world);
    w.world.lane_told = tell_lane;
    w.agent.world = &w.world.world;
    w.agent.fab = &w.fab;
    for (uint32_t i = 0; i < pools; i++) {
        struct pool *p = w.agent.pools[i] = &w.pool[i];
        p->world = &w.world.world;
        p->agent = &w.agent;
        p->place = i;
        p->config = &w.agent.config;
        p->lane = (struct lane *)&w; /* there is one */
        p->device.fab = &w.fab;
        p->device.pd = &w.pd;
        p->device.system_pd = &w.system_pd;
    }
}

static inline void bed_add_initiators(void)
{
    for (uint32_t i = 0; i < QPS; i++) {
        w.qp[i] =
            (struct fab_qp){.pd = i == 0 ? &w.system_pd : &w.pd, .type = FAB_QP_DCI, .qpn = i + 1};
        (void)agent_dci_add(&w.pool[0], &w.qp[i], 0);
    }
}

#endif
