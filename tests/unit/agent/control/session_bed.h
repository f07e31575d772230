/* SPDX-License-Identifier: Apache-2.0 */
/* A pool with sessions and arenas: its world, its workers' connections, the lane's answers and the
 * device are the test's; the device does all at once. */
#ifndef UNIT_AGENT_CONTROL_SESSION_BED_H
#define UNIT_AGENT_CONTROL_SESSION_BED_H

#include <check.h>
#include <errno.h>
#include <string.h>

#include "agent.h"
#include "arenas.h"
#include "connection.h"
#include "fabric/provider.h"
#include "pool.h"
#include "sessions.h"
#include "worker_events.h"
#include "world.h"

enum { BED_PLACES = TEST_DOORBELLS, BED_TENANTS = 3, BED_UID = 1000 /* of the first one */ };

static const uint64_t MIB = 1 << 20;
static struct test_world world;
static struct agent agent;
static struct pool pool;
static struct connection connections[BED_PLACES];

static struct {
    struct fab fab;
    struct fab_mr mr; /* of all arenas */
    struct schema_session_ro pages[BED_PLACES];
    struct schema_session_rw written[BED_PLACES];
    char memory; /* of all arenas: nobody looks at it */
    int dereg_status, reg_status;
    bool holes;       /* can be punched in arenas that are made */
    int arena_status; /* as a worker that asked for one heard it last */
    uint32_t served;  /* how often who waits was to be served */
} bed;

static inline void bed_ready(struct pool *p)
{
    (void)p;
    bed.served++;
}

static inline void bed_failed(struct pool *p, int status)
{
    (void)p, (void)status;
}

static inline void bed_arena(struct connection *c, int status, const struct arena *arena,
                             uint32_t number)
{
    (void)c, (void)arena, (void)number;
    bed.arena_status = status;
}

static inline void bed_ended(struct connection *c)
{
    (void)c;
}

static const struct worker_events BED_HEARS = {.ready = bed_ready,
                                               .failed = bed_failed,
                                               .arena = bed_arena,
                                               .ending = bed_ended,
                                               .ended = bed_ended};

static inline void bed_tell_lane(const struct lane_command *command)
{
    (void)command;
}

static inline void bed_submit(struct fab *f, struct fab_ctl *ctl)
{
    (void)f;
    ctl->status = ctl->kind == FAB_DEREG_MR ? bed.dereg_status : bed.reg_status;
    if (ctl->kind == FAB_REG_MR && ctl->status == 0)
        ctl->mr.x = &bed.mr;
    ctl->done(ctl);
}

static const struct fab_ops BED_DEVICE = {.submit = bed_submit};

/* So many sessions at the most, of which so many are to be ready, as many as arenas; none is yet.
 */
static inline void session_bed_begin(uint32_t places, uint32_t ahead)
{
    struct base_errbuf err;
    memset(&agent, 0, sizeof agent);
    memset(&bed, 0, sizeof bed);
    test_world_init(&world);
    world.world.page_bytes = 4096;
    world.world.keeps_whole = true;
    world.lane_told = bed_tell_lane;
    bed.fab.ops = &BED_DEVICE;
    agent.world = &world.world;
    agent.worker_events = &BED_HEARS;
    agent.config.max_sessions = places;
    agent.config.arena_bytes = 2 * MIB;
    for (uint32_t i = 0; i < BED_TENANTS; i++) {
        struct agent_tenant_config *t = &agent.tenants.at[i].config;
        agent.tenants.at[i].state = AGENT_TENANT_LIVE;
        t->memory = 64 * MIB;
        t->sessions = 10;
        t->uid_ranges = 1;
        t->uids[0].first = t->uids[0].last = BED_UID + i;
    }
    pool = (struct pool){.agent = &agent,
                         .config = &agent.config,
                         .world = &world.world,
                         .lane = (struct lane *)&pool /* there is one */};
    pool.device.fab = &bed.fab;
    agent.pools[0] = &pool;
    ck_assert_int_eq(agent_sessions_start(&pool, &err), 0);
    for (uint32_t i = 0; i < places; i++) {
        pool.sessions[i].rings.rw = &bed.written[i];
        pool.sessions[i].rings.ro = &bed.pages[i];
    }
    pool.prewarm.desired.numbers.mtu = RESOURCE_UNSAID;
    pool.prewarm.desired.numbers.sessions_ahead = pool.prewarm.desired.numbers.arenas_ahead = ahead;
    pool.prewarm.sessions = pool.prewarm.arenas = ahead;
}

/* Ends the first task that was begun, if there is one. */
static inline void session_bed_end_task(int status)
{
    struct world_task *task = world.tasks;
    if (task == NULL)
        return;
    if (task->work == WORLD_MAKE_ARENA && status == 0)
        *task->arena.memory = (struct fab_mem){
            .addr = &bed.memory, .size = task->arena.bytes, .fd = -1, .whole = !bed.holes};
    test_world_end_task(&world, status);
}

static inline void session_bed_make_all(void)
{
    while (world.tasks != NULL)
        session_bed_end_task(0);
}

/* From the lane. status: of ARENA_ADDED. */
static inline void session_bed_event(uint32_t number, enum lane_event_kind kind, int status)
{
    struct lane_event e = {.kind = kind, .session = number};
    if (kind == LANE_EVENT_ARENA_ADDED)
        e.arena.status = status;
    agent_sessions_event(&pool, &e);
}

/* Its worker has closed, and its lane has nothing of it any more. */
static inline void session_bed_leave(uint32_t number)
{
    agent_session_release(&pool, number, 0);
    if (world.heard[number] != NULL)
        session_bed_event(number, LANE_EVENT_SESSION_OVER, 0);
    if (pool.sessions[number].over)
        session_bed_event(number, LANE_EVENT_ARENA_ADDED, -EDQUOT);
}

/* As an agent that ends: whatever is left goes, and nothing of it is lost. */
static inline void session_bed_end(void)
{
    const uint32_t places = (uint32_t)agent.config.max_sessions;
    pool.stopping = agent.stopping = true;
    for (uint32_t i = 0; i < places; i++)
        session_bed_leave(i);
    session_bed_make_all();
    agent_sessions_stop(&pool);
    ck_assert_uint_eq(pool.fab_ops, 0);
    agent_arenas_stop(&pool);
    ck_assert_uint_eq(pool.fab_ops, 0);
    agent_sessions_free(&pool);
    for (uint32_t i = 0; i < TEST_DOORBELLS; i++)
        ck_assert_ptr_null(world.heard[i]);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        ck_assert_uint_eq(pool.unmaking[i] + agent.tenants.at[i].arena_bytes, 0);
    ck_assert_uint_eq(pool.works, 0);
}

#endif
