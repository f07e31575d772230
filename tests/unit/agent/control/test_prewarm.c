/* SPDX-License-Identifier: Apache-2.0 */
/* When what is kept ready is made again. Sessions and arenas are made in the test's world, as many
 * as were begun whenever it says so. */
#include "../../check_main.h"
#include "../../man_page.h"
#include "base/clock.h"
#include "bounds.h"
#include "pool_lanes.h"
#include "session_bed.h"

enum { A = 1, B = 2, AHEAD = 16, COME = 200 };

/* So many are ready, as many as are to be. */
static void begin(uint32_t ahead)
{
    session_bed_begin(BED_PLACES, ahead);
    agent.tenants.at[2].state = AGENT_TENANT_FREE;
    agent_sessions_refill(&pool);
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.ready, ahead);
}

/* As a worker that comes: whether there is one for it. */
static bool attach(uint32_t tenant)
{
    uint32_t number;
    if (!agent_session_is_ready(&pool, tenant))
        return false;
    ck_assert_int_eq(agent_session_take(&pool, tenant, 0, 0, &connections[0], &number), 0);
    agent_sessions_taken(&pool);
    return true;
}

static uint32_t count_begun(void)
{
    uint32_t n = 0;
    for (const struct world_task *t = world.tasks; t != NULL; t = t->next)
        n++;
    return n;
}

/* Workers come with 20 ms between them, so that it is never quiet, and each finds a session: as
 * many as are ready may be made in such a time. */
static void come_one_by_one(uint32_t ahead)
{
    begin(ahead);
    for (uint32_t i = 0; i < COME; i++) {
        ck_assert_msg(attach(A), "worker %u waits, and %u are ready of %u", i, pool.count.ready,
                      ahead);
        session_bed_make_all();
        test_world_advance(&world, TICK_MS * BASE_NS_PER_MS);
    }
    session_bed_end();
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
    session_bed_end();
    begin(AHEAD);
    for (int i = 0; i < AHEAD / 4; i++)
        ck_assert(attach(A) && attach(B));
    ck_assert_uint_eq(count_begun(), 0); /* half is left, and both may take some of it */
    ck_assert(attach(A));
    ck_assert_uint_eq(count_begun(), 2 * (AHEAD / 2 + 1));
    session_bed_end();
}
END_TEST

/* A burst of one tenant's workers, alone, does not wait for the processors that all of what is kept
 * would take: while it goes on half is kept, and the rest is made when it is over. */
START_TEST(while_a_burst_goes_on_half_of_what_is_kept_is_made)
{
    begin(AHEAD);
    agent.tenants.at[B - 1].state = AGENT_TENANT_FREE;
    for (int i = 0; i < AHEAD; i++)
        ck_assert(attach(A));
    ck_assert_uint_eq(count_begun(), 2 * (AHEAD / 2));
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.ready, AHEAD / 2);
    ck_assert(attach(A)); /* it finds one, and another one is made */
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.ready, AHEAD / 2);
    const uint64_t quiet_ns = world.now_ns + QUIET_MS * BASE_NS_PER_MS;
    ck_assert_uint_eq(agent_sessions_due_ns(&pool), quiet_ns);
    test_world_advance(&world, QUIET_MS * BASE_NS_PER_MS - 1);
    agent_sessions_tick(&pool);
    ck_assert_uint_eq(count_begun(), 0);
    test_world_advance(&world, 1);
    agent_sessions_tick(&pool);
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.ready, AHEAD);
    ck_assert_uint_eq(pool.count.arenas_ahead, AHEAD);
    session_bed_end();
}
END_TEST

START_TEST(pages_and_metrics_say_for_how_long_demand_counts)
{
    static const char *const files[] = {"docs/man/rdmactl.1", "docs/control.md",
                                        "agent/control/admin_metrics.c"};
    char words[64];
    snprintf(words, sizeof words, "busiest second of the last %d seconds", POOL_SECONDS);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *text = read_source(files[i]);
        ck_assert_msg(strstr(text, words) != NULL, "%s does not say: %s", files[i], words);
        free(text);
    }
}
END_TEST

/* What is beside DC is an eighth of it, since nothing waits for that. */
START_TEST(each_lane_of_a_pool_has_its_connections)
{
    begin(1);
    const uint64_t lanes = agent.config.lanes;
    const bool rc = pool.device.rc;
    const struct agent_pool_config unsaid = {.numbers = pool.prewarm.desired.numbers};
    for (uint64_t n = 1; n <= 8; n *= 8) {
        agent.config.lanes = n;
        agent_prewarm_init(&pool, &unsaid);
        pool.prewarm.connections = 64;
        pool.device.rc = true;
        ck_assert_uint_eq(agent_prewarm_connections(&pool), 64);
        pool.device.rc = false;
        ck_assert_uint_eq(agent_prewarm_connections(&pool), 64 / n);
    }
    agent.config.lanes = lanes;
    pool.device.rc = rc;
    session_bed_end();
}
END_TEST

static const char *why_with(uint64_t lanes)
{
    struct agent_pool_config said = pool.prewarm.desired;
    said.numbers.lanes = lanes;
    agent_prewarm_apply(&pool, &said);
    return pool.prewarm.why;
}

START_TEST(other_lanes_than_a_pool_was_made_with_are_said)
{
    begin(1);
    const uint64_t lanes = agent.config.lanes;
    const uint32_t place = pool.place;
    agent.config.lanes = 2;
    ck_assert_ptr_null(strstr(why_with(RESOURCE_UNSAID), "lanes"));
    ck_assert_ptr_null(strstr(why_with(2), "lanes"));
    ck_assert_ptr_nonnull(strstr(
        why_with(3), "lanes 3 are not for the agent's own pool: its file says that (2 in force)"));
    pool.place = 1; /* as one that operators say, whatever the file says */
    pool.lanes = 4;
    ck_assert_uint_eq(agent_lanes_count(&pool), 4);
    ck_assert_ptr_null(strstr(why_with(4), "lanes"));
    ck_assert_ptr_nonnull(
        strstr(why_with(3), "lanes 3 needs the pool to be made anew (4 in force)"));
    ck_assert_ptr_nonnull(
        strstr(why_with(RESOURCE_UNSAID), "lanes 1 needs the pool to be made anew (4 in force)"));
    pool.lanes = 1;
    ck_assert_ptr_null(strstr(why_with(RESOURCE_UNSAID), "lanes"));
    agent.config.lanes = lanes;
    pool.place = place;
    session_bed_end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_comes_now_and_then_finds_one_ready_every_time)                                           \
    T(more_are_made_as_soon_as_a_tenant_may_take_none)                                             \
    T(while_a_burst_goes_on_half_of_what_is_kept_is_made)                                          \
    T(each_lane_of_a_pool_has_its_connections)                                                     \
    T(other_lanes_than_a_pool_was_made_with_are_said)                                              \
    T(pages_and_metrics_say_for_how_long_demand_counts)

KEDGE_CHECK_MAIN("agent.control.prewarm", TESTS)
