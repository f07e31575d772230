/* SPDX-License-Identifier: Apache-2.0 */
/* When what is kept ready is made again. Sessions and arenas are made in the test's world, as many
 * as were begun whenever it says so. */
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "arenas.h"
#include "base/clock.h"
#include "connection.h"
#include "bounds.h"
#include "pool.h"
#include "sessions.h"
#include "worker_events.h"
#include "world.h"

enum { A = 1, B = 2, AHEAD = 16, PLACES = 256, COME = 200 };

/* The leak sanitizer asks for this: the arenas that are left when the test's world ends are
 * nobody's, since no device gives them back there. Arenas that the product loses are
 * test_arenas.c's. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:arena_new";
}

static const uint64_t MIB = 1 << 20;
static struct test_world world;
static struct agent agent;
static struct pool pool;
static struct fab fab; /* nothing is asked of it but what it is like */
static struct fab_mr mr;
static struct connection connection;
static struct agent_session sessions[PLACES];
static struct schema_session_ro pages[PLACES];
static struct schema_session_rw written[PLACES];
static struct arena arenas[PLACES];

static void hear_nothing(struct pool *p)
{
    (void)p;
}

static const struct worker_events HEARS = {.ready = hear_nothing};

/* A session and an arena more are ready. */
static void keep_one(uint32_t i)
{
    arenas[i] = (struct arena){.pool = &pool, .bytes = 2 * MIB, .mr = &mr};
    arenas[i].next = pool.arenas_ahead;
    pool.arenas_ahead = &arenas[i];
    pool.count.arenas_ahead++;
    sessions[i].stage = STAGE_READY;
    pool.count.ready++;
}

/* So many are ready, as many as are to be. */
static void begin(uint32_t ahead)
{
    memset(&agent, 0, sizeof agent);
    test_world_init(&world);
    agent.world = &world.world;
    agent.worker_events = &HEARS;
    agent.config.max_sessions = PLACES;
    agent.config.arena_bytes = 2 * MIB;
    agent.tenants.at[A - 1].state = agent.tenants.at[B - 1].state = AGENTD_TENANT_LIVE;
    pool = (struct pool){.agent = &agent,
                         .config = &agent.config,
                         .world = &world.world,
                         .lane = (struct lane *)&pool /* there is one */,
                         .sessions = sessions};
    pool.device.fab = &fab;
    agent.pools[0] = &pool;
    pool.prewarm.desired.numbers.sessions_ahead = pool.prewarm.desired.numbers.arenas_ahead = ahead;
    pool.prewarm.sessions = pool.prewarm.arenas = ahead;
    for (uint32_t i = 0; i < PLACES; i++)
        sessions[i] = (struct agent_session){
            .pool = &pool, .rings = {.rw = &written[i], .ro = &pages[i], .doorbell = -1}};
    for (uint32_t i = 0; i < ahead; i++)
        keep_one(i);
}

/* As a worker that comes: whether there is one for it. */
static bool attach(uint32_t tenant)
{
    uint32_t number;
    if (!session_is_ready(&pool, tenant))
        return false;
    ck_assert_int_eq(session_take(&pool, tenant, 0, 0, &connection, &number), 0);
    sessions_taken(&pool);
    return true;
}

static uint32_t count_begun(void)
{
    uint32_t n = 0;
    for (const struct world_task *t = world.tasks; t != NULL; t = t->next)
        n++;
    return n;
}

/* Ends what has been begun, but for the device, which registers no arena here: the arena that was
 * begun is one that the test has. */
static void make_all(void)
{
    while (world.tasks != NULL) {
        struct world_task *task = world.tasks;
        if (task->work == WORLD_MAKE_RINGS) {
            test_world_end_task(&world, 0);
            continue;
        }
        ck_assert_int_eq(task->work, WORLD_MAKE_ARENA);
        struct arena *arena = task->user;
        world.tasks = task->next;
        pool.works--;
        pool.arenas_making--;
        arena->busy = false;
        arena->mr = &mr;
        arena->next = pool.arenas_ahead;
        pool.arenas_ahead = arena;
        pool.count.arenas_ahead++;
        prewarm_share_made(&pool.arenas_share);
    }
}

/* Workers come with 20 ms between them, so that it is never quiet, and each finds a session: as
 * many as are ready may be made in such a time. */
static void come_one_by_one(uint32_t ahead)
{
    begin(ahead);
    for (uint32_t i = 0; i < COME; i++) {
        ck_assert_msg(attach(A), "worker %u waits, and %u are ready of %u", i, pool.count.ready,
                      ahead);
        make_all();
        test_world_advance(&world, TICK_MS * BASE_NS_PER_MS);
    }
}

START_TEST(who_comes_now_and_then_finds_one_ready_every_time)
{
    for (uint32_t ahead = 1; ahead <= AHEAD; ahead++)
        come_one_by_one(ahead);
}
END_TEST

START_TEST(more_are_made_as_soon_as_a_tenant_may_take_none)
{
    begin(AHEAD);
    for (int i = 0; i < AHEAD / 2 - 1; i++)
        ck_assert(attach(A));
    ck_assert_uint_eq(count_begun(), 0); /* it may take one more: that waits until it is quiet */
    ck_assert(attach(A));
    ck_assert_uint_eq(count_begun(), AHEAD); /* as many sessions as arenas */
    make_all();
    begin(AHEAD);
    for (int i = 0; i < AHEAD / 4; i++)
        ck_assert(attach(A) && attach(B));
    ck_assert_uint_eq(count_begun(), 0); /* half is left, and both may take some of it */
    ck_assert(attach(A));
    ck_assert_uint_eq(count_begun(), 2 * (AHEAD / 2 + 1));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_comes_now_and_then_finds_one_ready_every_time)                                           \
    T(more_are_made_as_soon_as_a_tenant_may_take_none)

KEDGE_CHECK_MAIN("agent.control.prewarm", TESTS)
