/* SPDX-License-Identifier: Apache-2.0 */
/* When an agent has to look at something next, and that its next tick comes then. */
#include "../../check_main.h"
#include "base/clock.h"
#include "bounds.h"
#include "due.h"
#include "session_bed.h"

enum { A = 1, AHEAD = 8, PLACES = 64 };
static const uint64_t MS = BASE_NS_PER_MS, LOOKS = 2000 * BASE_NS_PER_MS; /* at the port */

/* ---- an agent that has a device and no pool: time is a whole number of seconds */

static void begin(void)
{
    memset(&agent, 0, sizeof agent);
    memset(&bed, 0, sizeof bed);
    test_world_init(&world);
    world.now_ns = 100 * LOOKS;
    world.world.tick_ns = TICK_MS * MS;
    bed.fab.ops = &BED_DEVICE;
    bed.reg_status = -EOPNOTSUPP; /* to all that it is asked */
    agent.world = &world.world;
    agent.fab = &bed.fab;
    agent.node.end_ns = UINT64_MAX;
    agent.unread.wanted = agent.unread.most = 1;
    fab_port_watch_init(&agent.port, &bed.fab, NULL, NULL);
    agent_begin_ticks(&agent);
}

static void pass(uint64_t ns)
{
    const uint64_t end_ns = world.now_ns + ns;
    agent_turned(&agent);
    while (world.alarm_ns <= end_ns) {
        test_world_advance(&world,
                           world.alarm_ns > world.now_ns ? world.alarm_ns - world.now_ns : 0);
        agent_turned(&agent);
    }
    test_world_advance(&world, end_ns - world.now_ns);
    agent_turned(&agent);
}

START_TEST(an_agent_at_rest_wakes_for_what_nothing_tells_of_alone_and_for_all_of_it_at_once)
{
    uint32_t ticks = 0;
    begin();
    pass(10 * LOOKS);
    ck_assert_uint_eq(world.alarm_ns % LOOKS, 0);
    for (uint64_t last = agent.ticked_ns, i = 0; i < 10000; i++) {
        pass(MS);
        ticks += agent.ticked_ns != last;
        last = agent.ticked_ns;
    }
    ck_assert_uint_eq(ticks, 5);
    agent.device_lost = true;
    agent_turned(&agent);
    ck_assert_uint_eq(world.alarm_ns, UINT64_MAX);
}
END_TEST

START_TEST(the_next_tick_comes_when_what_was_added_is_due_and_no_more_when_it_is_gone)
{
    begin();
    pass(LOOKS + 10 * MS);
    const uint64_t rest_ns = world.alarm_ns;
    agent.node.desired.draining = true;
    agent.node.end_ns = world.now_ns + 100 * MS;
    agent_turned(&agent);
    ck_assert_uint_eq(world.alarm_ns, world.now_ns + 100 * MS);
    agent.node.end_ns += 50 * MS;
    agent_turned(&agent);
    ck_assert_uint_eq(world.alarm_ns, world.now_ns + 150 * MS);
    agent.node.desired.draining = false;
    agent_turned(&agent);
    ck_assert_uint_eq(world.alarm_ns, rest_ns);
}
END_TEST

START_TEST(what_is_due_at_once_is_so_at_once_and_then_no_sooner_than_a_tick_later)
{
    begin();
    pass(LOOKS + 500 * MS);
    agent.unread.all = 1; /* nobody reads it */
    agent_turned(&agent);
    ck_assert_uint_le(world.alarm_ns, world.now_ns);
    pass(0);
    ck_assert_uint_eq(agent.ticked_ns, world.now_ns);
    ck_assert_uint_eq(world.alarm_ns, world.now_ns + TICK_MS * MS);
    agent.unread.all = 0;
    agent_turned(&agent);
    ck_assert_uint_eq(world.alarm_ns % LOOKS, 0);
}
END_TEST

START_TEST(no_tick_comes_before_the_agent_begins_nor_after_it_has_ended)
{
    begin();
    agent_turned(&agent);
    ck_assert_uint_ne(world.alarm_ns, UINT64_MAX);
    agent_end_ticks(&agent);
    agent_turned(&agent);
    ck_assert_uint_eq(world.alarm_ns, UINT64_MAX);
}
END_TEST

/* ---- what is kept ready */

static void begin_ahead(void)
{
    session_bed_begin(PLACES, AHEAD);
    world.now_ns = 100 * LOOKS;
    agent_sessions_refill(&pool);
    session_bed_make_all();
    agent_sessions_tick(&pool);
    ck_assert_uint_eq(pool.count.ready, AHEAD);
    ck_assert_uint_eq(agent_sessions_due_ns(&pool), DUE_NEVER);
}

static uint32_t attach(void)
{
    uint32_t number;
    ck_assert_int_eq(agent_session_take(&pool, A, BED_UID, 1, &connections[0], &number), 0);
    return number;
}

START_TEST(what_was_taken_is_made_again_when_it_is_quiet_and_at_once_when_little_is_left)
{
    begin_ahead();
    (void)attach();
    const uint64_t quiet_ns = world.now_ns + QUIET_MS * MS;
    ck_assert_uint_eq(agent_sessions_due_ns(&pool), quiet_ns);
    while (agent_session_is_ready(&pool, A))
        (void)attach();
    ck_assert_uint_eq(agent_sessions_due_ns(&pool), DUE_NOW);
    world.now_ns = quiet_ns;
    agent_sessions_tick(&pool);
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.ready, AHEAD);
    ck_assert_uint_gt(agent_sessions_due_ns(&pool),
                      world.now_ns); /* a second of many workers passes */
    while (pool.prewarm.demand > 0) {
        ck_assert_uint_le(agent_sessions_due_ns(&pool), world.now_ns + BASE_NS_PER_S);
        world.now_ns = agent_sessions_due_ns(&pool);
        agent_sessions_tick(&pool);
    }
    ck_assert_uint_eq(agent_sessions_due_ns(&pool), DUE_NEVER);
    pool.stopping = true;
    session_bed_end();
}
END_TEST

START_TEST(what_there_is_too_much_of_is_due_until_it_is_gone)
{
    begin_ahead();
    pool.prewarm.sessions = pool.prewarm.arenas = 0;
    ck_assert_uint_eq(agent_sessions_due_ns(&pool), DUE_NOW);
    agent_sessions_tick(&pool);
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.ready, 0);
    ck_assert_uint_ne(agent_sessions_due_ns(&pool), DUE_NOW);
    session_bed_end();
}
END_TEST

START_TEST(who_waits_for_a_session_that_has_no_place_costs_no_tick_until_there_is_one)
{
    begin_ahead();
    (void)attach();
    agent.config.max_sessions = agent_pools_sessions(&agent);
    pool.prewarm.arenas = 0;
    pool.queue.by_tenant.waiting = pool.count.arenas_ahead; /* there is enough of those */
    ck_assert_uint_gt(agent_sessions_due_ns(&pool), world.now_ns);
    agent.config.max_sessions++;
    ck_assert_uint_eq(agent_sessions_due_ns(&pool), DUE_NOW);
    pool.queue.by_tenant.waiting = 0;
    agent.config.max_sessions = PLACES;
    pool.stopping = true;
    session_bed_end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_agent_at_rest_wakes_for_what_nothing_tells_of_alone_and_for_all_of_it_at_once)            \
    T(the_next_tick_comes_when_what_was_added_is_due_and_no_more_when_it_is_gone)                  \
    T(what_is_due_at_once_is_so_at_once_and_then_no_sooner_than_a_tick_later)                      \
    T(no_tick_comes_before_the_agent_begins_nor_after_it_has_ended)                                \
    T(what_was_taken_is_made_again_when_it_is_quiet_and_at_once_when_little_is_left)               \
    T(what_there_is_too_much_of_is_due_until_it_is_gone)                                           \
    T(who_waits_for_a_session_that_has_no_place_costs_no_tick_until_there_is_one)
KEDGE_CHECK_MAIN("agent.control.due", TESTS)
