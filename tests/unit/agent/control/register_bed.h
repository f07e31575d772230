/* SPDX-License-Identifier: Apache-2.0 */
/* A pool that registers with a metaserver, over DC unless a test says RC: time, HTTP calls, the
 * lane and the device are the test's, and answer when it wants. */
#ifndef UNIT_AGENT_CONTROL_REGISTER_BED_H
#define UNIT_AGENT_CONTROL_REGISTER_BED_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent.h"
#include "base/clock.h"
#include "fabric/provider.h"
#include "bounds.h"
#include "peer_setup.h"
#include "pool.h"
#include "register.h"
#include "table_initiators.h"
#include "world.h"

static struct {
    struct test_world world;
    struct agent agent;
    struct pool pool, other;
    struct fab fab;
    struct fab_pd system_pd;
    struct fab_ops ops;
    struct fab_ah ah[8];
    struct fab_qp qp[2];
    uint32_t made, dropped, told, raised;
    struct lane_metaserver heard;             /* by the lane: the first of the last list */
    uint32_t listed, list[AGENT_METASERVERS]; /* likewise: all of it, by their numbers */
    unsigned lease_ms;                        /* that metaservers give; 0: very long */
    uint16_t lid;                             /* of the metaserver; 0: it is on Ethernet */
    struct fab_ctl *resolving, *raising;      /* that the device has */
} w;

static inline void tell_lane(const struct lane_command *command)
{
    if (command->kind != LANE_COMMAND_METASERVERS)
        return;
    w.told++;
    w.heard = command->metaservers.count > 0 ? command->metaservers.at[0]
                                             : (struct lane_metaserver){.ah = NULL};
    w.listed = command->metaservers.count;
    for (uint32_t i = 0; i < w.listed; i++)
        w.list[i] = command->metaservers.at[i].number;
}

static inline void submit(struct fab *fab, struct fab_ctl *ctl)
{
    (void)fab;
    if (ctl->kind == FAB_CREATE_AH) {
        ck_assert_ptr_null(w.resolving); /* it has no room for a second one */
        w.resolving = ctl;
        return;
    }
    if (ctl->kind == FAB_MODIFY_QP) {
        w.raised++;
        w.raising = ctl;
        return;
    }
    ck_assert_int_eq(ctl->kind, FAB_DESTROY_AH);
    w.dropped++;
    ctl->status = 0;
    ctl->done(ctl);
}

static inline int run(struct fab *fab)
{
    (void)fab;
    return 0;
}

/* With so many metaservers. */
static inline struct registration *begin_with(uint32_t metaservers)
{
    memset(&w, 0, sizeof w);
    test_world_init(&w.world);
    w.world.lane_told = tell_lane;
    w.agent.world = w.pool.world = w.other.world = &w.world.world;
    w.ops = (struct fab_ops){.submit = submit, .run = run};
    w.fab.ops = &w.ops;
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.pool.device.fab = &w.fab;
    w.system_pd = (struct fab_pd){.fab = &w.fab};
    w.pool.device.system_pd = &w.system_pd;
    w.agent.fab = &w.fab;
    w.agent.pools[0] = &w.pool;
    w.agent.config.metaservers = metaservers;
    for (uint32_t i = 0; i < metaservers; i++)
        w.pool.registration[i].lane.number = i;
    agent_registrations_start(&w.pool);
    return &w.pool.registration[0];
}

static inline struct registration *begin(void)
{
    return begin_with(1);
}

static inline void end(void)
{
    agent_registrations_stop(&w.pool);
    if (w.other.agent != NULL)
        agent_registrations_stop(&w.other);
    ck_assert_uint_eq(w.world.alarm_ns, UINT64_MAX);
}

static inline struct registration *begin_rc(void)
{
    begin();
    end(); /* it was DC's */
    struct registration *r = &w.pool.registration[0];
    memset(r, 0, sizeof *r);
    w.pool.device.rc = true;
    w.world.calls = 0;
    for (int i = 0; i < 2; i++)
        r->initiator[i] =
            (struct table_initiator){.registration = r, .qp = &w.qp[i], .state = INITIATOR_READY};
    agent_registrations_start(&w.pool);
    ck_assert_ptr_nonnull(r->offered);
    return r;
}

#define answer_by(call, status, body) test_world_answer(&w.world, call, status, body)

/* To a registration; its table's generation is one hexadecimal digit. more: of the metaserver. */
static inline void answer_more(uint32_t call, int status, char generation, const char *more)
{
    char body[1024], lid[24] = "";
    if (w.lid != 0)
        snprintf(lid, sizeof lid, "\"lid\":%u,", w.lid);
    snprintf(body, sizeof body,
             "{\"node_lease_ms\":%u,\"metaserver\":{\"endpoint\":{\"gid\":\"fd00::1\",%s"
             "\"dct_number\":7,\"rc\":{\"qpn\":9,\"psn\":1,\"mtu\":1024,\"reads\":1},"
             "\"dc_key\":\"0000000000000001\"},\"table\":{\"addr\":\"0000000000001000\",\"rkey\":5,"
             "\"log2_slots\":4,\"seed\":\"0000000000000001\",\"generation\":\"000000000000000%c\","
             "\"version\":1}%s}}",
             w.lease_ms != 0 ? w.lease_ms : 3000000, lid, generation, more);
    answer_by(call, status, body);
}

#define answer_of_table(call, status, generation) answer_more(call, status, generation, "")

static inline void answer_with(uint32_t call, int status)
{
    answer_of_table(call, status, '1');
}

/* To a renewal. */
static inline void prolong_of(uint32_t call, char generation, unsigned dctn)
{
    char body[112];
    snprintf(body, sizeof body, "{\"generation\":\"000000000000000%c\",\"dct_number\":%u}\n",
             generation, dctn);
    answer_by(call, 200, body);
}

#define prolong(call, generation) prolong_of(call, generation, 7)

#define answer(call) answer_with(call, 201)

/* The queue pair that was offered goes to RTR and RTS. */
static inline void raise_initiator(void)
{
    for (int i = 0; i < 2; i++) {
        struct fab_ctl *ctl = w.raising;
        ck_assert_ptr_nonnull(ctl);
        w.raising = NULL;
        ctl->status = 0;
        ctl->done(ctl);
    }
}

#define wait_for_call(calls, method) test_world_await_call(&w.world, calls, method)

static inline void resolve_with(int status)
{
    struct fab_ctl *ctl = w.resolving;
    ck_assert_ptr_nonnull(ctl);
    w.resolving = NULL;
    ctl->status = status;
    if (status == 0)
        ctl->ah.x = &w.ah[w.made++];
    ctl->done(ctl);
}

#define resolve() resolve_with(0)

static inline void give_back(struct fab_ah *ah)
{
    const struct lane_event e = {.kind = LANE_EVENT_DROP_PATH, .path.ah = ah};
    agent_peer_setup_event(&w.pool, &e);
}

#endif
