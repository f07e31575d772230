/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes that workers ask for: whose budget they take, and what metaservers' answers
 * become. Time and answers are the test's. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "names.h"
#include "pool.h"
#include "register.h"
#include "world.h"

enum { ONE = 1, OTHER = 2, TENANTS = 25, PART = NAMES_PER_S / TENANTS };

static struct test_world world;
static struct agent agent;
static struct pool pool;
static struct {
    uint32_t count;
    int status; /* the last one */
    uint8_t gid[16];
} answers;
static uint32_t serial; /* of names */

static void on_done(void *user, int status, const uint8_t gid[16], uint16_t number)
{
    (void)user, (void)number;
    memcpy(answers.gid, gid, sizeof answers.gid);
    answers.count++;
    answers.status = status;
}

static void begin(uint32_t tenants)
{
    memset(&agent, 0, sizeof agent);
    memset(&answers, 0, sizeof answers);
    test_world_init(&world);
    agent.world = &world.world;
    for (uint32_t i = 0; i < tenants; i++) {
        agent.tenants.at[i].state = AGENT_TENANT_LIVE;
        agent.tenants.at[i].config.id = 100 + i;
    }
    pool = (struct pool){.agent = &agent, .config = &agent.config, .world = &world.world};
    agent.config.metaservers = 1;
    agent.pools[0] = &pool;
    pool.registration[0] =
        (struct registration){.pool = &pool, .url = "http://m", .state = REGISTRATION_DONE};
}

/* Whether a metaserver was asked for it. */
static bool is_asked(uint32_t tenant, uint16_t number, const char *name)
{
    const uint32_t before = answers.count, calls = world.calls;
    agent_names_resolve(&agent, tenant, number, name, on_done, NULL);
    ck_assert_uint_eq(answers.count, world.calls > calls ? before : before + 1);
    return world.calls > calls;
}

/* Whether a name that it has not asked for yet was refused at once. */
static bool is_refused(uint32_t tenant)
{
    const uint32_t before = answers.count, calls = world.calls;
    char name[64];
    snprintf(name, sizeof name, "node-%u", serial++);
    agent_names_resolve(&agent, tenant, 7, name, on_done, NULL);
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
    for (uint32_t i = 0; i < NAMES_ACCOUNTS; i++)
        ck_assert_uint_eq(agent.names.account[i].out, 0);
}
END_TEST

/* A job's workers that begin together ask for the same names. */
START_TEST(who_asks_for_one_name_at_once_waits_for_one_answer)
{
    begin(2);
    ck_assert(is_asked(ONE, 7, "node-a"));
    for (uint32_t i = 1; i < 1000; i++)
        agent_names_resolve(&agent, ONE, 7, "node-a", on_done, NULL);
    ck_assert_uint_eq(world.calls, 1);
    ck_assert_uint_eq(answers.count, 0);
    ck_assert(is_asked(OTHER, 7, "node-a")); /* whose answer comes when its own question's does */
    ck_assert(is_asked(ONE, 8, "node-a"));
    ck_assert(is_asked(ONE, 7, "node-b"));
    test_world_answer(&world, 0, 200,
                      "{\"state\":\"ready\",\"endpoints\":[{\"gid\":\"fe80::7\",\"pool\":7}]}");
    ck_assert_uint_eq(answers.count, 1000);
    ck_assert_int_eq(answers.status, 0);
    for (uint32_t i = 1; i < 4; i++)
        test_world_answer(&world, i, 404, "{}");
    ck_assert_uint_eq(answers.count, 1003);
    ck_assert_ptr_null(agent.names.first);
}
END_TEST

/* Who came later has its own time, and no more questions than one beside the first one's. */
START_TEST(without_an_answer_who_came_later_has_the_question_put_again)
{
    begin(1);
    ck_assert(is_asked(ONE, 7, "node-a"));
    test_world_advance(&world, 1 * BASE_NS_PER_S);
    for (uint32_t i = 0; i < 10; i++)
        agent_names_resolve(&agent, ONE, 7, "node-a", on_done, NULL);
    test_world_answer(&world, 0, -ETIMEDOUT, "");
    ck_assert_uint_eq(answers.count, 1);
    ck_assert_int_eq(answers.status, -EHOSTUNREACH);
    ck_assert_uint_eq(world.calls, 2);
    agent_names_resolve(&agent, ONE, 7, "node-a", on_done, NULL);
    test_world_answer(&world, 1, -ETIMEDOUT, "");
    ck_assert_uint_eq(answers.count, 11);
    ck_assert_uint_eq(world.calls, 3);
    test_world_answer(&world, 2, 404, "{}");
    ck_assert_uint_eq(answers.count, 12);
    ck_assert_int_eq(answers.status, -ENOENT);
    ck_assert_uint_eq(world.calls, 3);
    for (uint32_t i = 0; i < NAMES_ACCOUNTS; i++)
        ck_assert_uint_eq(agent.names.account[i].out, 0);
    ck_assert_ptr_null(agent.names.first);
}
END_TEST

START_TEST(who_came_later_is_told_to_come_again_where_no_more_may_be_asked)
{
    begin(TENANTS);
    ck_assert(is_asked(ONE, 7, "node-a"));
    agent_names_resolve(&agent, ONE, 7, "node-a", on_done, NULL);
    for (uint32_t i = 1; i < PART; i++) {
        ck_assert(!is_refused(ONE));
        test_world_answer(&world, world.calls - 1, 404, "{}");
    }
    answers.count = 0;
    test_world_answer(&world, 0, -ETIMEDOUT, "");
    ck_assert_uint_eq(answers.count, 2);
    ck_assert_int_eq(answers.status, -EAGAIN);
    ck_assert_ptr_null(agent.names.first);
}
END_TEST

START_TEST(whoever_waits_is_told_when_the_agent_stops)
{
    begin(1);
    ck_assert(is_asked(ONE, 7, "node-a"));
    agent_names_resolve(&agent, ONE, 7, "node-a", on_done, NULL);
    agent.stopping = true;
    test_world_answer(&world, 0, -ECANCELED, "");
    ck_assert_uint_eq(answers.count, 2);
    ck_assert_uint_eq(world.calls, 1);
    ck_assert_ptr_null(agent.names.first);
}
END_TEST

START_TEST(an_answer_holds_for_a_second_and_for_the_tenant_that_asked)
{
    begin(2);
    ck_assert(is_asked(ONE, 7, "node-a"));
    test_world_answer(&world, world.calls - 1, 404, "{}");
    ck_assert(!is_asked(ONE, 7, "node-a"));
    ck_assert_int_eq(answers.status, -ENOENT);
    ck_assert(is_asked(OTHER, 7, "node-a"));
    ck_assert(is_asked(ONE, 8, "node-a"));
    ck_assert(is_asked(ONE, 7, "node-b"));
    test_world_answer(&world, world.calls - 1, 200,
                      "{\"state\":\"ready\",\"endpoints\":[{\"gid\":\"fe80::7\",\"pool\":7}]}");
    ck_assert_int_eq(answers.status, 0);
    memset(answers.gid, 0, sizeof answers.gid);
    ck_assert(!is_asked(ONE, 7, "node-b"));
    ck_assert_int_eq(answers.status, 0);
    ck_assert_uint_eq(answers.gid[15], 7);
    test_world_advance(&world, NAMES_KEPT_MS * BASE_NS_PER_MS);
    ck_assert(is_asked(ONE, 7, "node-a"));
    ck_assert(is_asked(ONE, 7, "node-b"));
}
END_TEST

START_TEST(so_many_answers_are_kept_and_no_failure)
{
    char name[64];
    begin(1);
    for (uint32_t i = 0; i <= NAMES_KEPT; i++) {
        snprintf(name, sizeof name, "node-%c", (char)('a' + i));
        ck_assert(is_asked(ONE, 7, name));
        test_world_answer(&world, world.calls - 1, 404, "{}");
        test_world_advance(&world, 1);
    }
    ck_assert(!is_asked(ONE, 7, name));
    ck_assert(!is_asked(ONE, 7, "node-b"));
    ck_assert(is_asked(ONE, 7, "node-a"));
    test_world_answer(&world, world.calls - 1, 429, "{}");
    ck_assert(is_asked(ONE, 7, "node-a"));
    test_world_answer(&world, world.calls - 1, -ECONNREFUSED, "");
    ck_assert(is_asked(ONE, 7, "node-a"));
}
END_TEST

static void move_in(uint32_t place, uint32_t id)
{
    agent.tenants.at[place - 1].config.id = id;
}

START_TEST(who_gets_a_tenants_place_begins_anew_and_who_comes_again_does_not)
{
    begin(TENANTS);
    ck_assert(is_asked(ONE, 7, "node-a"));
    test_world_answer(&world, world.calls - 1, 404, "{}");
    while (!is_refused(ONE)) /* what is out is not answered */
        ck_assert_uint_lt(world.calls, PART + 1);
    move_in(ONE, 1000);
    ck_assert(is_asked(ONE, 7, "node-a"));
    move_in(ONE, 100);
    ck_assert(is_refused(ONE));
    ck_assert(!is_asked(ONE, 7, "node-a"));
}
END_TEST

START_TEST(tenants_that_come_and_go_have_no_more_than_there_is)
{
    begin(1);
    uint32_t id = 1000;
    for (; !is_refused(ONE); id++) {
        test_world_answer(&world, 0, 404, "{}");
        world.calls = 0; /* it remembers 64 */
        move_in(ONE, id);
        ck_assert_uint_le(id, 1000 + NAMES_ACCOUNTS);
    }
    test_world_advance(&world, BASE_NS_PER_S);
    ck_assert(!is_refused(ONE));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_tenants_names_leave_places_for_anothers)                                                 \
    T(a_tenant_asks_for_its_part_of_a_seconds_names_and_no_more)                                   \
    T(a_metaserver_that_takes_no_more_is_to_be_asked_again)                                        \
    T(who_asks_for_one_name_at_once_waits_for_one_answer)                                          \
    T(without_an_answer_who_came_later_has_the_question_put_again)                                 \
    T(who_came_later_is_told_to_come_again_where_no_more_may_be_asked)                             \
    T(whoever_waits_is_told_when_the_agent_stops)                                                  \
    T(an_answer_holds_for_a_second_and_for_the_tenant_that_asked)                                  \
    T(so_many_answers_are_kept_and_no_failure)                                                     \
    T(who_gets_a_tenants_place_begins_anew_and_who_comes_again_does_not)                           \
    T(tenants_that_come_and_go_have_no_more_than_there_is)

KEDGE_CHECK_MAIN("agent.control.names", TESTS)
