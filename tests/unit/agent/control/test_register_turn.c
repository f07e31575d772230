/* SPDX-License-Identifier: Apache-2.0 */
/* A pool that no metaserver has registers with one of them first, which one write in their store
 * takes, and with the others when that one has it; and what is wrong with the first holds up
 * nothing. */
#include "../../check_main.h"
#include "prefer.h"
#include "register_bed.h"
#include "register_private.h"

enum { AHEAD = 1 };

static void wait_ms(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i++)
        test_world_advance(&w.world, BASE_NS_PER_MS);
}

static void check_asked(uint32_t calls)
{
    ck_assert_uint_eq(w.world.calls, calls);
    for (uint32_t i = 0; i < calls; i++)
        ck_assert_str_eq(w.world.call[i].method, "PUT");
}

START_TEST(others_are_asked_when_the_first_has_the_pool)
{
    begin_with(3);
    wait_ms(TURN_MS - AHEAD);
    check_asked(1);
    answer(0);
    resolve();
    wait_ms(AHEAD);
    check_asked(3);
    answer(1);
    resolve();
    answer(2);
    resolve();
    ck_assert_uint_eq(agent_registrations_count(&w.pool), 3);
    end();
}
END_TEST

/* They know the pool then, and have nothing to write. */
START_TEST(others_of_its_store_have_time_to_hear_of_it)
{
    begin_with(3);
    answer_more(0, 201, '1', ",\"store\":\"0123456789abcdef0123456789abcdef\"");
    resolve();
    wait_ms(TURN_HEARD_MS - AHEAD);
    check_asked(1);
    wait_ms(TURN_HEARD_MS + AHEAD);
    check_asked(3);
    end();
}
END_TEST

/* Then one more at a time, each sooner: most of what waits long does so since many ask. */
START_TEST(one_that_says_nothing_holds_up_nothing)
{
    begin_with(3);
    wait_ms(TURN_MS - AHEAD);
    check_asked(1);
    wait_ms(2 * AHEAD);
    check_asked(2);
    wait_ms(TURN_NEXT_MS - 2 * AHEAD);
    check_asked(2);
    wait_ms(2 * AHEAD);
    check_asked(3);
    answer(2);
    resolve();
    ck_assert_uint_eq(agent_registrations_count(&w.pool), 1);
    end();
}
END_TEST

START_TEST(one_that_cannot_be_reached_has_no_turn)
{
    begin_with(2);
    answer_by(0, -ECONNREFUSED, "refused");
    wait_ms(AHEAD);
    check_asked(2);
    wait_ms(BACKOFF_MS + AHEAD); /* it would be asked again, but for the other's turn */
    check_asked(2);
    answer(1);
    resolve();
    wait_ms(AHEAD);
    check_asked(3);
    answer(2);
    resolve();
    ck_assert_uint_eq(agent_registrations_count(&w.pool), 2);
    end();
}
END_TEST

/* One that has failed of late keeps others waiting for less. */
START_TEST(one_that_fails_again_and_again_has_a_short_turn)
{
    begin_with(2);
    answer_by(0, -ECONNREFUSED, "refused");
    wait_ms(AHEAD);
    answer_by(1, 503, "{}");
    wait_ms(BACKOFF_MS);
    check_asked(3);
    wait_ms(TURN_FAILING_MS + AHEAD);
    check_asked(4);
    end();
}
END_TEST

START_TEST(one_that_has_too_much_to_do_is_waited_for)
{
    begin_with(2);
    w.world.retry_after_s = 2;
    answer_by(0, 429, "{\"detail\":\"1024 registrations wait: come again in time\"}");
    w.world.retry_after_s = 0;
    wait_ms(2000 - AHEAD);
    check_asked(1);
    wait_ms(AHEAD * 2);
    check_asked(2); /* whichever has its turn then: one of them */
    end();
}
END_TEST

START_TEST(one_that_says_later_and_later_is_not_waited_for)
{
    begin_with(2);
    w.world.retry_after_s = 30;
    answer_by(0, 429, "{\"detail\":\"1024 registrations wait: come again in time\"}");
    wait_ms(TURN_PUT_OFF_MS - AHEAD);
    check_asked(1);
    wait_ms(AHEAD * 2);
    check_asked(2);
    answer_by(1, 200, "senseless");
    end();
}
END_TEST

/* Each has its part of a storm. */
START_TEST(the_first_one_differs_from_node_to_node)
{
    uint32_t first[3] = {0};
    begin_with(3);
    for (int i = 0; i < 300; i++) {
        snprintf(w.agent.config.node, sizeof w.agent.config.node, "node-%d", i);
        const uint32_t number = agent_registration_first(&w.pool);
        ck_assert_uint_lt(number, 3);
        first[number]++;
    }
    for (int i = 0; i < 3; i++)
        ck_assert_uint_ge(first[i], 60);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(others_are_asked_when_the_first_has_the_pool)                                                \
    T(others_of_its_store_have_time_to_hear_of_it)                                                 \
    T(one_that_says_nothing_holds_up_nothing)                                                      \
    T(one_that_cannot_be_reached_has_no_turn)                                                      \
    T(one_that_fails_again_and_again_has_a_short_turn)                                             \
    T(one_that_has_too_much_to_do_is_waited_for)                                                   \
    T(one_that_says_later_and_later_is_not_waited_for)                                             \
    T(the_first_one_differs_from_node_to_node)
KEDGE_CHECK_MAIN("agent.control.register_turn", TESTS)
