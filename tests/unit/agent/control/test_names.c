/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes that workers ask for: whose budget they take, and what metaservers' answers
 * become. Time and answers are the test's. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "world.h"

enum { ONE = 1, OTHER = 2, TENANTS = 25, PART = NAMES_PER_S / TENANTS };

static struct test_world world;
static struct agent agent;
static struct pool pool;
static struct {
    uint32_t count;
    int status; /* the last one */
} answers;

static void on_done(void *user, int status, const uint8_t gid[16], uint16_t number)
{
    (void)user, (void)gid, (void)number;
    answers.count++;
    answers.status = status;
}

static void begin(uint32_t tenants)
{
    memset(&agent, 0, sizeof agent);
    memset(&answers, 0, sizeof answers);
    test_world_init(&world);
    agent.world = &world.world;
    for (uint32_t i = 0; i < tenants; i++)
        agent.tenants.at[i].state = AGENTD_TENANT_LIVE;
    pool = (struct pool){.agent = &agent, .config = &agent.config, .world = &world.world};
    agent.config.metaservers = 1;
    agent.pools[0] = &pool;
    pool.registration[0] =
        (struct registration){.pool = &pool, .url = "http://m", .state = REGISTRATION_DONE};
}

/* Whether it was refused at once. */
static bool is_refused(uint32_t tenant)
{
    const uint32_t before = answers.count, calls = world.calls;
    names_resolve(&agent, tenant, 7, "node-a", on_done, NULL);
    if (world.calls > calls)
        return false;
    ck_assert_uint_eq(answers.count, before + 1);
    ck_assert_int_eq(answers.status, -EAGAIN);
    return true;
}

START_TEST(one_tenants_names_leave_places_for_anothers)
{
    uint32_t out = 0;
    begin(2);
    while (!is_refused(ONE))
        ck_assert_uint_lt(out++, NAMES_OUT);
    ck_assert_uint_ge(out, NAMES_OUT / 2);
    for (uint32_t i = 0; i < NAMES_OUT / 4; i++)
        ck_assert(!is_refused(OTHER));
    test_world_answer(&world, 0, 404, "{}");
    ck_assert_int_eq(answers.status, -ENOENT);
    ck_assert(!is_refused(ONE));
}
END_TEST

START_TEST(a_tenant_asks_for_its_part_of_a_seconds_names_and_no_more)
{
    begin(TENANTS);
    for (uint32_t i = 0; i < PART; i++) {
        ck_assert(!is_refused(ONE));
        test_world_answer(&world, world.calls - 1, 404, "{}");
    }
    ck_assert(is_refused(ONE));
    ck_assert(!is_refused(OTHER));
    test_world_advance(&world, BASE_NS_PER_S / PART);
    ck_assert(!is_refused(ONE));
    ck_assert(is_refused(ONE));
    test_world_advance(&world, 10 * BASE_NS_PER_S); /* a rest saves up a second's, not ten */
    for (uint32_t i = 0; i < PART; i++) {
        ck_assert(!is_refused(ONE));
        test_world_answer(&world, world.calls - 1, 404, "{}");
    }
    ck_assert(is_refused(ONE));
}
END_TEST

START_TEST(a_metaserver_that_takes_no_more_is_to_be_asked_again)
{
    begin(1);
    ck_assert(!is_refused(ONE));
    test_world_answer(&world, 0, 429, "{}");
    ck_assert_int_eq(answers.status, -EAGAIN);
    ck_assert(!is_refused(ONE));
    test_world_answer(&world, 1, -ECONNREFUSED, "");
    ck_assert_int_eq(answers.status, -EHOSTUNREACH);
    ck_assert_uint_eq(agent.names.out, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_tenants_names_leave_places_for_anothers)                                                 \
    T(a_tenant_asks_for_its_part_of_a_seconds_names_and_no_more)                                   \
    T(a_metaserver_that_takes_no_more_is_to_be_asked_again)

KEDGE_CHECK_MAIN("agent.control.names", TESTS)
