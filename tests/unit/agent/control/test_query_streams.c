/* SPDX-License-Identifier: Apache-2.0 */
/* An agent listens to each metaserver that it is registered with: the calls are the test's, and end
 * when it wants. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "agent_query.h"
#include "base/clock.h"
#include "bounds.h"
#include "pool.h"
#include "query_streams.h"
#include "register.h"
#include "world.h"

enum { METASERVERS = 3, STEP_MS = 10 };

static struct {
    struct test_world world;
    struct agent agent;
    struct pool pool;
} w;

/* The first one's settings are followed. */
static void begin(void)
{
    memset(&w, 0, sizeof w);
    test_world_init(&w.world);
    w.agent.world = w.pool.world = &w.world.world;
    w.agent.config.metaservers = METASERVERS;
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.agent.pools[0] = &w.pool;
    snprintf(w.agent.config.node, sizeof w.agent.config.node, "n1");
    for (uint32_t i = 0; i < METASERVERS; i++) {
        snprintf(w.agent.config.metaserver[i], AGENT_TEXT, "http://m%u", i);
        w.pool.registration[i] = (struct registration){.pool = &w.pool, .state = REGISTRATION_DONE};
    }
    w.agent.follow.begun = true;
    w.agent.follow.call = UINT64_MAX;
    base_text_init(&w.agent.answer, 1 << 16);
}

static void end(void)
{
    agent_query_streams_stop(&w.agent);
    agent_query_stop(&w.agent);
    base_text_fini(&w.agent.answer);
}

static void pass_ms(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += STEP_MS) {
        w.world.now_ns += STEP_MS * BASE_NS_PER_MS;
        if (w.world.now_ns >= agent_query_streams_due_ns(&w.agent))
            agent_query_streams_tick(&w.agent);
    }
}

/* The number of that metaserver's stream that is open, from 0; -1: there is none. */
static int find_stream(uint32_t metaserver)
{
    char url[64];
    snprintf(url, sizeof url, "http://m%u/v1/nodes/n1/configuration?watch=1&answers=only",
             metaserver);
    for (uint32_t i = 0; i < w.world.calls; i++)
        if (w.world.call[i].done != NULL && strcmp(w.world.call[i].url, url) == 0)
            return (int)i;
    return -1;
}

static void hear(uint32_t metaserver, const char *line)
{
    const int at = find_stream(metaserver);
    ck_assert_int_ge(at, 0);
    const struct test_call *c = &w.world.call[at];
    ck_assert_int_eq(c->on_line(c->user, line, strlen(line)), 0);
}

START_TEST(each_that_is_registered_has_one_but_that_whose_settings_are_followed)
{
    begin();
    w.pool.registration[2].state = REGISTRATION_LOST;
    pass_ms(STEP_MS);
    ck_assert_int_eq(find_stream(0), -1);
    ck_assert_int_ge(find_stream(1), 0);
    ck_assert_int_eq(find_stream(2), -1);
    w.pool.registration[2].state = REGISTRATION_DONE;
    pass_ms(STEP_MS);
    ck_assert_int_ge(find_stream(2), 0);
    w.agent.follow.metaserver = 1; /* it has gone over to that one */
    agent_query_stream_end(&w.agent, 1);
    pass_ms(STEP_MS);
    ck_assert_int_ge(find_stream(0), 0);
    ck_assert_int_eq(find_stream(1), -1);
    pass_ms(60000);
    ck_assert_uint_eq(w.world.calls, 3);
    end();
}
END_TEST

START_TEST(a_question_is_answered_at_the_metaserver_that_asked)
{
    begin();
    pass_ms(STEP_MS);
    for (uint32_t i = 1; i < METASERVERS; i++) {
        const uint32_t calls = w.world.calls;
        hear(i, "{\"ask\":{\"id\":\"0123456789abcdef\",\"method\":\"GET\",\"resource\":"
                "\"workers\"}}");
        ck_assert_uint_eq(w.world.calls, calls + 1);
        char url[64];
        snprintf(url, sizeof url, "http://m%u/v1/nodes/n1/answers/0123456789abcdef", i);
        ck_assert_str_eq(w.world.call[calls].url, url);
        ck_assert_str_eq(w.world.call[calls].method, "PUT");
        ck_assert_uint_eq(w.agent.asked.of[i], 1);
        test_world_answer(&w.world, calls, 204, "");
        ck_assert_uint_eq(w.agent.asked.of[i], 0);
    }
    end();
}
END_TEST

/* And another one can ask still. */
START_TEST(what_one_metaserver_asks_without_end_is_bounded)
{
    begin();
    pass_ms(STEP_MS);
    const uint32_t calls = w.world.calls;
    for (int i = 0; i < 40; i++)
        hear(1, "{\"ask\":{\"id\":\"0123456789abcdef\",\"method\":\"GET\",\"resource\":"
                "\"workers\"}}");
    ck_assert_uint_eq(w.world.calls, calls + 16);
    hear(2, "{\"ask\":{\"id\":\"0123456789abcdef\",\"method\":\"GET\",\"resource\":\"workers\"}}");
    ck_assert_uint_eq(w.world.calls, calls + 17);
    while (w.agent.asked.list != NULL)
        agent_query_forget(w.agent.asked.list);
    end();
}
END_TEST

/* How many times one that is refused at once is tried in that time. */
static uint32_t count_tries(int status, uint64_t ms)
{
    uint32_t tries = 0;
    for (uint64_t i = 0; i < ms; i += STEP_MS) {
        pass_ms(STEP_MS);
        const int at = find_stream(1);
        if (at < 0)
            continue;
        tries++;
        test_world_answer(&w.world, (uint32_t)at, status, "refused");
    }
    return tries;
}

START_TEST(one_that_ends_comes_again_later_each_time_and_not_all_at_once)
{
    begin();
    w.pool.registration[2].state = REGISTRATION_LOST;
    const uint32_t tries = count_tries(-ECONNREFUSED, 60000);
    ck_assert_uint_ge(tries, 12);
    ck_assert_uint_le(tries, 40);
    end();
    begin();
    pass_ms(STEP_MS);
    for (uint32_t i = 1; i < METASERVERS; i++)
        test_world_answer(&w.world, (uint32_t)find_stream(i), -ECONNRESET, "reset");
    ck_assert_uint_ne(w.agent.query_stream[1].try_ns, w.agent.query_stream[2].try_ns);
    end();
}
END_TEST

START_TEST(an_older_metaserver_is_left_alone_for_long)
{
    begin();
    w.pool.registration[2].state = REGISTRATION_LOST;
    ck_assert_uint_le(count_tries(400, 120000), 1);
    ck_assert_uint_ge(count_tries(400, 400000), 1);
    end();
}
END_TEST

static void on_timer(void *user)
{
    (void)user;
}

/* With a long lease it would learn that from its next renewal alone, hours later. */
START_TEST(one_that_does_not_know_the_node_any_more_is_asked_for_its_registration)
{
    static const int statuses[] = {404, 403, 503};
    for (int i = 0; i < 3; i++) {
        begin();
        pass_ms(STEP_MS);
        struct world_timer *t = &w.pool.registration[1].timer;
        t->fired = on_timer;
        world_timer_after(&w.world.world, t, 3600 * BASE_NS_PER_S);
        test_world_answer(&w.world, (uint32_t)find_stream(1), statuses[i], "");
        ck_assert_int_eq(world_timer_due_ns(t) <= w.world.now_ns, statuses[i] != 503);
        end();
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_that_is_registered_has_one_but_that_whose_settings_are_followed)                        \
    T(a_question_is_answered_at_the_metaserver_that_asked)                                         \
    T(what_one_metaserver_asks_without_end_is_bounded)                                             \
    T(one_that_ends_comes_again_later_each_time_and_not_all_at_once)                               \
    T(an_older_metaserver_is_left_alone_for_long)                                                  \
    T(one_that_does_not_know_the_node_any_more_is_asked_for_its_registration)
KEDGE_CHECK_MAIN("agent.control.query_streams", TESTS)
