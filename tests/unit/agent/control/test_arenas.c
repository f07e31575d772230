/* SPDX-License-Identifier: Apache-2.0 */
/* What of arenas counts to a tenant, and what it may take of those that are ready: the world is the
 * test's, and makes nothing. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "arenas.h"
#include "bounds.h"
#include "connection.h"
#include "pool.h"
#include "quotas.h"
#include "sessions.h"
#include "tenant_end.h"
#include "world.h"

enum { TENANT = 1, OTHER = 2, AHEAD = 16 };

static const uint64_t MIB = 1 << 20;
static struct test_world world;
static struct agent agent;
static struct pool pool;
static struct fab fab; /* nothing is asked of it but what it is like */

static void begin(void)
{
    memset(&agent, 0, sizeof agent);
    test_world_init(&world);
    agent.world = &world.world;
    agent_attach_init(&agent);
    agent.config.arena_bytes = 2 * MIB;
    agent.tenants.at[TENANT - 1].state = AGENT_TENANT_LIVE;
    agent.tenants.at[TENANT - 1].config.memory = 1024 * MIB;
    agent.tenants.at[TENANT - 1].config.sessions = 10;
    pool = (struct pool){.agent = &agent, .config = &agent.config, .world = &world.world};
    pool.device.fab = &fab;
    agent.pools[0] = &pool;
}

static uint64_t counted(void)
{
    return agent.tenants.at[TENANT - 1].arena_bytes;
}

START_TEST(what_was_asked_for_and_left_counts_until_it_is_free)
{
    struct base_errbuf why;
    struct arena *arena;
    begin();
    ck_assert_int_eq(agent_arena_ask(&pool, TENANT, 600 * MIB, 0, &arena), 0);
    ck_assert_uint_eq(counted(), 600 * MIB);
    ck_assert(!atomic_load(arena->task.arena.unwanted));
    agent_arena_retire(arena); /* its session is over */
    ck_assert(atomic_load(arena->task.arena.unwanted));
    ck_assert_uint_eq(counted(), 600 * MIB);
    ck_assert_int_eq(agent_quota_check(&pool, TENANT, 0, 424 * MIB, &why), 0);
    ck_assert_int_eq(agent_quota_check(&pool, TENANT, 0, 425 * MIB, &why), -EAGAIN);
    ck_assert_int_eq(agent_quota_check(&pool, TENANT, 0, 1025 * MIB, &why), -EDQUOT);
    test_world_end_task(&world, -ECANCELED);
    ck_assert_uint_eq(counted(), 0);
    ck_assert_uint_eq(agent.tenants.at[TENANT - 1].arenas, 0);
    ck_assert_uint_eq(agent.arenas_coming, 0);
    ck_assert_int_eq(agent_quota_check(&pool, TENANT, 0, 1024 * MIB, &why), 0);
}
END_TEST

START_TEST(what_was_made_before_it_was_left_counts_until_it_is_freed)
{
    struct arena *arena;
    begin();
    ck_assert_int_eq(agent_arena_ask(&pool, TENANT, 600 * MIB, 0, &arena), 0);
    ck_assert_uint_eq(arena->task.tenant, TENANT);
    agent_arena_retire(arena);
    arena->mem = (struct fab_mem){.addr = arena, .size = 600 * MIB, .fd = -1};
    test_world_end_task(&world, 0);
    ck_assert_int_eq(arena->task.work, WORLD_FREE_ARENA); /* and is not registered before */
    ck_assert_uint_eq(arena->task.tenant, TENANT);
    ck_assert_uint_eq(counted(), 600 * MIB);
    ck_assert_uint_eq(pool.count.arena_bytes, 600 * MIB);
    test_world_end_task(&world, 0);
    ck_assert_uint_eq(counted(), 0);
    ck_assert_uint_eq(pool.count.arena_bytes, 0);
}
END_TEST

START_TEST(what_a_pool_frees_that_goes_is_emptied_and_not_what_an_agent_frees_that_ends)
{
    for (int ends = 0; ends < 2; ends++) {
        struct arena *arena;
        begin();
        ck_assert_int_eq(agent_arena_ask(&pool, TENANT, 600 * MIB, 0, &arena), 0);
        agent_arena_retire(arena);
        arena->mem = (struct fab_mem){.addr = arena, .size = 600 * MIB, .fd = -1};
        agent.stopping = ends;
        pool.stopping = true;
        test_world_end_task(&world, 0);
        ck_assert_int_eq(world.ran_here.work, WORLD_FREE_ARENA);
        ck_assert_int_eq(world.ran_here.let_go, !ends);
        ck_assert_uint_eq(counted(), 0);
    }
}
END_TEST

static struct arena ahead[AHEAD];

/* So many arenas are ready, as many as are to be. */
static void begin_ahead(bool several_tenants)
{
    begin();
    memset(ahead, 0, sizeof ahead);
    agent.config.max_sessions = 1000;
    pool.lane = (struct lane *)&pool; /* there is one */
    if (several_tenants)
        agent.tenants.at[OTHER - 1].state = AGENT_TENANT_LIVE;
    for (int i = 0; i < AHEAD; i++) {
        ahead[i] = (struct arena){.pool = &pool, .bytes = 2 * MIB, .next = pool.arenas_ahead};
        pool.arenas_ahead = &ahead[i];
    }
    pool.count.arenas_ahead = pool.prewarm.arenas = AHEAD;
    pool.count.ready = pool.prewarm.sessions = AHEAD;
}

static uint32_t take_all(uint32_t tenant)
{
    uint32_t n = 0;
    while (agent_arena_take(&pool, tenant) != NULL)
        n++;
    return n;
}

START_TEST(a_tenant_leaves_arenas_ready_for_others_and_takes_all_where_it_is_alone)
{
    begin_ahead(true);
    ck_assert_uint_eq(take_all(TENANT), AHEAD / 2);
    ck_assert(!agent_session_is_ready(&pool, TENANT));
    ck_assert(agent_session_is_ready(&pool, OTHER));
    ck_assert_uint_eq(take_all(OTHER), AHEAD / 4);
    begin_ahead(false);
    ck_assert_uint_eq(take_all(TENANT), AHEAD);
    begin_ahead(true);
    pool.arenas_status = -ENOMEM; /* no more can be made */
    ck_assert_uint_eq(take_all(TENANT), AHEAD);
}
END_TEST

START_TEST(a_tenant_leaves_sessions_ready_for_others_as_long_as_more_can_be_made)
{
    begin_ahead(true);
    pool.count.ready = AHEAD / 2;
    pool.sessions_share.taken[TENANT - 1] = AHEAD / 2;
    ck_assert(!agent_session_is_ready(&pool, TENANT));
    ck_assert(agent_session_is_ready(&pool, OTHER));
    pool.count.live = 1000 - AHEAD / 2; /* as many as there may be */
    ck_assert(agent_session_is_ready(&pool, TENANT));
    pool.count.live = 0;
    agent.tenants.at[OTHER - 1].state = AGENT_TENANT_LEAVING;
    ck_assert(agent_session_is_ready(&pool, TENANT));
}
END_TEST

static void hear_nothing(const struct lane_command *command)
{
    (void)command;
}

START_TEST(whose_place_was_another_tenants_owes_nothing_for_that_one)
{
    struct lane_quota *quota = &pool.quota[TENANT - 1];
    begin();
    pool.lane = (struct lane *)&pool; /* there is one */
    world.lane_told = hear_nothing;
    quota->control_ops_per_s = 1;
    ck_assert(lane_quota_ask(quota, world.now_ns));
    ck_assert(!lane_quota_ask(quota, world.now_ns));
    agent.tenants.at[TENANT - 1].state = AGENT_TENANT_LEAVING;
    agent_tenants_tick(&agent);
    ck_assert_int_eq(agent.tenants.at[TENANT - 1].state, AGENT_TENANT_FREE);
    ck_assert_uint_eq(quota->control_ops, 0);
    ck_assert_uint_eq(quota->refused[LANE_QUOTA_CONTROL_OPS], 0);
    ck_assert(lane_quota_ask(quota, world.now_ns));
}
END_TEST

static struct arena first; /* of each of them */

/* As many sessions as may be, of two tenants, all with one arena. */
static struct agent_session *begin_full(uint32_t sessions)
{
    struct agent_session *s = calloc(sessions, sizeof *s);
    ck_assert_ptr_nonnull(s);
    begin();
    agent.config.max_sessions = sessions;
    agent.tenants.at[OTHER - 1].state = AGENT_TENANT_LIVE;
    pool.lane = (struct lane *)&pool; /* there is one */
    pool.sessions = s;
    for (uint32_t i = 0; i < sessions; i++) {
        s[i] = (struct agent_session){.pool = &pool,
                                      .stage = STAGE_LIVE,
                                      .tenant = i % 2 == 0 ? TENANT : OTHER,
                                      .arena = {&first},
                                      .arenas = 1};
        agent.tenants.at[s[i].tenant - 1].arenas++;
        agent_quotas_note(&s[i]);
    }
    return s;
}

static uint32_t ask_all(uint32_t tenant)
{
    struct base_errbuf why;
    uint32_t n = 0;
    for (; agent_arena_check_room(&agent, tenant, &why) == 0; n++)
        agent.tenants.at[tenant - 1].arenas++;
    return n;
}

START_TEST(arenas_beside_first_ones_have_descriptors_and_each_tenant_its_part)
{
    enum { SESSIONS = 200 };
    struct agent_session *s = begin_full(SESSIONS);
    const uint32_t of_one = ask_all(TENANT), of_other = ask_all(OTHER);
    ck_assert_uint_ge(of_other, SESSIONS * MORE_ARENAS / 4);
    ck_assert_uint_ge(of_one, SESSIONS * MORE_ARENAS / 2);
    ck_assert_uint_eq(of_one + of_other, SESSIONS * MORE_ARENAS);
    free(s);
}
END_TEST

START_TEST(a_session_gets_no_arena_for_which_there_is_no_descriptor)
{
    enum { SESSIONS = 200 };
    struct base_errbuf why;
    struct agent_session *s = begin_full(SESSIONS);
    agent.tenants.at[TENANT - 1].config.memory = 1ull << 40;
    agent.tenants.at[TENANT - 1].config.sessions = SESSIONS;
    agent.tenants.at[TENANT - 1].arenas = SESSIONS * (1 + MORE_ARENAS);
    agent.of_sessions[TENANT - 1].arenas = SESSIONS * (1 + MORE_ARENAS); /* none is given back */
    world.world.page_bytes = 4096;
    world.world.keeps_whole = true;
    ck_assert_int_eq(agent_session_add_arena(&pool, 0, 0, &why), -EDQUOT);
    ck_assert_ptr_nonnull(strstr(why.text, "ask for larger ones"));
    free(s);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(whose_place_was_another_tenants_owes_nothing_for_that_one)                                   \
    T(what_was_asked_for_and_left_counts_until_it_is_free)                                         \
    T(what_was_made_before_it_was_left_counts_until_it_is_freed)                                   \
    T(what_a_pool_frees_that_goes_is_emptied_and_not_what_an_agent_frees_that_ends)                \
    T(a_tenant_leaves_arenas_ready_for_others_and_takes_all_where_it_is_alone)                     \
    T(a_tenant_leaves_sessions_ready_for_others_as_long_as_more_can_be_made)                       \
    T(arenas_beside_first_ones_have_descriptors_and_each_tenant_its_part)                          \
    T(a_session_gets_no_arena_for_which_there_is_no_descriptor)

KEDGE_CHECK_MAIN("agent.control.arenas", TESTS)
