/* SPDX-License-Identifier: Apache-2.0 */
/* Which settings are taken of metaservers that share a store. What comes on the streams is the
 * test's; what is taken is seen by its revision, and has a tenant that makes no sense, so that
 * nothing else is needed to apply it. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "pool.h"
#include "register.h"
#include "world.h"

enum { IN_FORCE = 5, LONG_S = 70 };

static struct {
    struct test_world world;
    struct agent agent;
    struct pool pool;
} w;

static void pass_ms(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 50) {
        w.world.now_ns += 50 * BASE_NS_PER_MS;
        agent_follow_tick(&w.agent);
    }
}

/* Revision 5 of a store that all of them share is in force. */
static void begin(uint32_t metaservers)
{
    memset(&w, 0, sizeof w);
    test_world_init(&w.world);
    w.agent.world = w.pool.world = &w.world.world;
    w.agent.config.metaservers = metaservers;
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.agent.pools[0] = &w.pool;
    for (uint32_t i = 0; i < metaservers; i++) {
        snprintf(w.agent.config.metaserver[i], AGENT_TEXT, "http://m%u", i);
        w.pool.registration[i] = (struct registration){
            .pool = &w.pool, .state = REGISTRATION_DONE, .standing.store = "ab12"};
    }
    agent_follow_start(&w.agent);
    w.agent.follow.applied = w.agent.follow.seen = IN_FORCE;
    snprintf(w.agent.follow.store, sizeof w.agent.follow.store, "ab12");
    pass_ms(1000);
    ck_assert_uint_ne(w.agent.follow.call, 0);
}

static void end(void)
{
    agent_follow_stop(&w.agent);
    agent_follow_fini(&w.agent);
}

/* On the stream that there is. Whether it goes on. */
static bool hear(const char *line)
{
    const uint64_t id = w.agent.follow.call;
    ck_assert_uint_ne(id, 0);
    const struct test_call *c = &w.world.call[id - 1];
    const bool goes_on = c->on_line(c->user, line, strlen(line)) == 0;
    if (!goes_on)
        test_world_answer(&w.world, (uint32_t)id - 1, -ECANCELED, "the stream was ended");
    return goes_on;
}

static const char *document(unsigned revision, const char *tenants)
{
    static char text[256];
    snprintf(
        text, sizeof text,
        "{\"revision\":%u,\"tenants\":[%s],\"windows\":[],\"node\":{\"labels\":{},\"cordoned\":"
        "false,\"draining\":false},\"pools\":[]}",
        revision, tenants);
    return text;
}

static const char *older(void)
{
    return document(IN_FORCE - 1, "");
}

static const char *newer(unsigned revision)
{
    return document(revision, "{\"name\":7}");
}

START_TEST(an_older_revision_of_the_same_store_is_not_taken_and_another_one_is_asked)
{
    begin(2);
    ck_assert(!hear(older()));
    ck_assert_uint_eq(w.agent.follow.applied, IN_FORCE);
    ck_assert_uint_eq(w.agent.follow.seen, IN_FORCE);
    ck_assert_uint_eq(w.agent.follow.metaserver, 1);
    pass_ms(1000);
    ck_assert(hear(newer(IN_FORCE + 1)));
    ck_assert_uint_eq(w.agent.follow.seen, IN_FORCE + 1);
    end();
}
END_TEST

START_TEST(the_only_one_is_waited_for_and_asked_anew_after_a_while)
{
    begin(1);
    w.pool.registration[0].standing.behind = true;
    ck_assert(hear(older()));
    ck_assert(hear(""));
    pass_ms(5000);
    ck_assert(hear(""));
    pass_ms(6000);
    ck_assert(!hear(""));
    pass_ms(6000);
    ck_assert(hear(older()));
    ck_assert(hear(newer(IN_FORCE + 2)));
    ck_assert_uint_eq(w.agent.follow.seen, IN_FORCE + 2);
    end();
}
END_TEST

/* As one whose prefix is wrong begins: all tenants would go, with their sessions. */
START_TEST(an_empty_store_of_another_id_is_not_taken_for_the_one_in_force)
{
    begin(1);
    snprintf(w.pool.registration[0].standing.store, sizeof w.pool.registration[0].standing.store,
             "cd34");
    for (int i = 0; i < 20; i++) {
        (void)hear(document(0, ""));
        ck_assert_uint_eq(w.agent.follow.applied, IN_FORCE);
        pass_ms(11000);
        (void)(w.agent.follow.call != 0 && hear(""));
        pass_ms(6000);
    }
    ck_assert(hear(newer(1))); /* somebody has begun anew, and means it */
    ck_assert_uint_eq(w.agent.follow.seen, 1);
    end();
}
END_TEST

START_TEST(one_that_is_behind_is_never_gone_back_to)
{
    begin(1);
    w.pool.registration[0].standing.behind = true;
    for (int i = 0; i < 20; i++) {
        (void)hear(older());
        ck_assert_uint_eq(w.agent.follow.applied, IN_FORCE);
        pass_ms(11000);
        (void)(w.agent.follow.call != 0 && hear(""));
        pass_ms(6000);
    }
    end();
}
END_TEST

/* It says for long that it has all there is. */
START_TEST(a_store_that_was_put_back_is_believed_in_the_end)
{
    begin(1);
    for (int s = 0; w.agent.follow.applied == IN_FORCE; s += 17) {
        ck_assert_int_lt(s, 2 * LONG_S);
        (void)hear(older());
        ck_assert(w.agent.follow.applied == IN_FORCE || s >= 60);
        pass_ms(11000);
        if (w.agent.follow.call != 0)
            (void)hear("");
        pass_ms(6000);
    }
    ck_assert_uint_eq(w.agent.follow.applied, IN_FORCE - 1);
    end();
}
END_TEST

START_TEST(an_older_revision_of_another_store_is_taken)
{
    static const char *const stores[] = {"", "cd34"};
    for (size_t i = 0; i < 2; i++) {
        begin(2);
        snprintf(w.pool.registration[0].standing.store, 33, "%s", stores[i]);
        ck_assert(hear(newer(IN_FORCE - 1)));
        ck_assert_uint_eq(w.agent.follow.seen, IN_FORCE - 1);
        end();
    }
}
END_TEST

/* ---- whom it asks, and how often */

/* The stream's metaserver; AGENT_METASERVERS: there is none. */
static uint32_t followed(void)
{
    return w.agent.follow.call != 0 ? w.agent.follow.metaserver : AGENT_METASERVERS;
}

static void end_stream(int status)
{
    ck_assert_uint_ne(w.agent.follow.call, 0);
    test_world_answer(&w.world, (uint32_t)w.agent.follow.call - 1, status, "");
    if (w.world.calls == TEST_CALLS) /* all are over */
        w.world.calls = 0;
}

/* Ends each stream at those metaservers (bits) as it comes, and counts them by metaserver. */
static void fail_for(uint64_t ms, uint32_t failing, int status, uint32_t tries[AGENT_METASERVERS])
{
    memset(tries, 0, AGENT_METASERVERS * sizeof tries[0]);
    for (uint64_t i = 0; i < ms; i += 50) {
        pass_ms(50);
        if (followed() == AGENT_METASERVERS || (failing & 1u << followed()) == 0)
            continue;
        tries[followed()]++;
        end_stream(status);
    }
}

static void let_follow(uint32_t metaserver, bool may)
{
    w.pool.registration[metaserver].state = may ? REGISTRATION_DONE : REGISTRATION_LOST;
}

START_TEST(a_healthy_one_is_gone_to_at_once_however_often_another_has_failed)
{
    static const int failures[] = {-ECONNREFUSED, -ETIMEDOUT, 503};
    uint32_t tries[AGENT_METASERVERS];
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        begin(2);
        let_follow(1, false);
        fail_for(60000, 1, failures[i], tries);
        ck_assert_uint_le(tries[0], 28); /* 5 s and less between them */
        while (followed() != 0)
            pass_ms(50);
        end_stream(failures[i]);
        let_follow(1, true);
        pass_ms(350);
        ck_assert_uint_eq(followed(), 1);
        ck_assert(hear(newer(IN_FORCE + 1)));
        end();
    }
}
END_TEST

START_TEST(one_that_is_to_be_followed_is_as_soon_as_it_may_be)
{
    begin(1);
    let_follow(0, false);
    end_stream(-ECONNREFUSED);
    pass_ms(60000);
    ck_assert_uint_eq(followed(), AGENT_METASERVERS);
    let_follow(0, true);
    pass_ms(300);
    ck_assert_uint_eq(followed(), 0);
    end();
}
END_TEST

/* Also where all of them do: none is asked more often since there are others. */
START_TEST(each_that_fails_is_asked_less_and_less_often)
{
    uint32_t tries[AGENT_METASERVERS];
    begin(3);
    fail_for(60000, 7, -ECONNREFUSED, tries);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_ge(tries[i], 8);
        ck_assert_uint_le(tries[i], 30);
    }
    fail_for(60000, 7, -ETIMEDOUT, tries);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_ge(tries[i], 4);
        ck_assert_uint_le(tries[i], 15);
    }
    pass_ms(20000);
    while (followed() != 0) /* it is well again: what it did before is forgotten */
        fail_for(50, 6, -ECONNREFUSED, tries);
    ck_assert(hear(newer(IN_FORCE + 1)));
    end_stream(-ECONNRESET);
    let_follow(1, false);
    let_follow(2, false);
    pass_ms(350);
    ck_assert_uint_eq(followed(), 0);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_older_revision_of_the_same_store_is_not_taken_and_another_one_is_asked)                   \
    T(the_only_one_is_waited_for_and_asked_anew_after_a_while)                                     \
    T(an_empty_store_of_another_id_is_not_taken_for_the_one_in_force)                              \
    T(one_that_is_behind_is_never_gone_back_to)                                                    \
    T(a_store_that_was_put_back_is_believed_in_the_end)                                            \
    T(an_older_revision_of_another_store_is_taken)                                                 \
    T(a_healthy_one_is_gone_to_at_once_however_often_another_has_failed)                           \
    T(one_that_is_to_be_followed_is_as_soon_as_it_may_be)                                          \
    T(each_that_fails_is_asked_less_and_less_often)
KEDGE_CHECK_MAIN("agent.control.follow", TESTS)
