/* SPDX-License-Identifier: Apache-2.0 */
/* Of metaservers that are well, and of one zone, the one that answers renewals quickest is asked
 * first; what differs by little or by turns changes nothing. */
#include "../../check_main.h"
#include "prefer.h"
#include "register_bed.h"

enum { LEASE_MS = 30000, MS = 1000 };

static void begin_registered(uint32_t metaservers)
{
    begin_with(metaservers);
    w.lease_ms = LEASE_MS;
    for (uint32_t i = 0; i < metaservers; i++) {
        wait_for_call(i + 1, "PUT");
        answer(i);
        resolve();
    }
}

static bool measure(uint32_t metaserver, uint64_t us)
{
    return agent_nearness_measured(&w.pool.registration[metaserver], us * 1000);
}

/* Each of them once, in turn; how often one was nearer than before by that. */
static uint32_t measure_all(uint64_t a_us, uint64_t b_us, uint64_t c_us)
{
    return (uint32_t)measure(0, a_us) + measure(1, b_us) + measure(2, c_us);
}

static void expect_order(uint8_t first, uint8_t second, uint8_t third)
{
    uint8_t order[AGENT_METASERVERS];
    const uint8_t expected[] = {first, second, third};
    ck_assert_uint_eq(agent_prefer_order(&w.pool, order), 3);
    ck_assert_mem_eq(order, expected, sizeof expected);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(agent_prefer_place(&w.pool, expected[i]), i);
}

START_TEST(a_slow_one_is_asked_after_the_others)
{
    begin_registered(3);
    expect_order(0, 1, 2);
    for (int i = 0; i < NEARNESS_LEAST - 1; i++)
        ck_assert_uint_eq(measure_all(20 * MS, 3 * MS, 1 * MS), 0); /* too few to say */
    ck_assert_uint_eq(agent_nearness_ns(&w.pool.registration[0]), 0);
    ck_assert_uint_gt(measure_all(20 * MS, 3 * MS, 1 * MS), 0);
    expect_order(2, 1, 0);
    ck_assert_uint_eq(agent_nearness_ns(&w.pool.registration[1]), 3 * MS * 1000);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(measure_all(20 * MS, 3 * MS, 1 * MS), 0);
    end();
}
END_TEST

/* What a connection takes to be made, or an agent that has much to do, says nothing of where the
 * metaserver is. */
START_TEST(one_that_is_slow_by_turns_stays_where_it_is)
{
    begin_registered(3);
    uint32_t moves = 0;
    for (int i = 0; i < 400; i++)
        moves += measure_all(i % 2 == 0 ? 2 * MS : 50 * MS, i % 3 == 0 ? 2 * MS : 30 * MS,
                             i % NEARNESS_SAMPLES == 0 ? 1900 : 90 * MS);
    ck_assert_uint_eq(moves, 0);
    expect_order(0, 1, 2);
    end();
}
END_TEST

/* One that is slow for minutes, and quick again, moves once each time. */
START_TEST(one_that_is_slow_for_long_moves_once)
{
    begin_registered(3);
    for (int turn = 0; turn < 10; turn++) {
        uint32_t moves = 0;
        for (int i = 0; i < 50; i++)
            moves += measure_all(1 * MS, 20 * MS, 20 * MS);
        expect_order(0, 1, 2);
        ck_assert_uint_le(moves, 1 + 1);
        moves = 0;
        for (int i = 0; i < 50; i++)
            moves += measure_all(60 * MS, 20 * MS, 20 * MS);
        expect_order(1, 2, 0);
        ck_assert_uint_le(moves, 1 + 1);
    }
    end();
}
END_TEST

START_TEST(those_that_are_about_alike_stay_as_the_file_has_them)
{
    uint64_t random = 7;
    begin_registered(3);
    for (int i = 0; i < 1000; i++) {
        uint64_t us[3];
        for (int k = 0; k < 3; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            us[k] = 5 * MS + (random >> 40) % 1000 + (random % 7 == 0 ? 40 * MS : 0);
        }
        ck_assert_uint_eq(measure_all(us[0], us[1], us[2]), 0);
    }
    for (int i = 0; i < 100; i++) /* of one host: nobody gains by that */
        ck_assert_uint_eq(measure_all(190, 20, 1), 0);
    expect_order(0, 1, 2);
    end();
}
END_TEST

START_TEST(the_zone_and_whether_one_is_well_go_first)
{
    begin_registered(3);
    snprintf(w.agent.config.zone, sizeof w.agent.config.zone, "rack7");
    snprintf(w.pool.registration[1].standing.zone, sizeof w.pool.registration[1].standing.zone,
             "rack7");
    for (int i = 0; i < 10; i++)
        measure_all(10 * MS, 50 * MS, 1); /* it lies by being quick */
    expect_order(1, 2, 0);
    w.pool.registration[2].standing.behind = true;
    expect_order(1, 0, 2);
    ck_assert(!agent_prefer_may_follow(&w.pool, 2));
    w.pool.registration[2].standing.behind = false;
    end();
}
END_TEST

START_TEST(one_that_writes_nothing_is_asked_as_one_that_is_behind_and_followed_still)
{
    begin_registered(3);
    struct registration *const r = w.pool.registration;
    snprintf(w.agent.config.zone, sizeof w.agent.config.zone, "rack7");
    snprintf(r[0].standing.zone, sizeof r[0].standing.zone, "rack7");
    expect_order(0, 1, 2);
    r[0].standing.read_only = true;
    expect_order(1, 2, 0);
    ck_assert(agent_prefer_may_follow(&w.pool, 0)); /* what it has of settings is the newest */
    r[1].standing.behind = r[2].standing.behind = true;
    expect_order(0, 1, 2); /* these are no better */
    ck_assert(!agent_prefer_may_follow(&w.pool, 1));
    r[0].standing.read_only = r[1].standing.behind = r[2].standing.behind = false;
    expect_order(0, 1, 2);
    end();
}
END_TEST

/* A renewal that has been out for so long, as the others at their own time. */
static void renew_after(uint32_t metaserver, uint64_t us)
{
    agent_registrations_renew(&w.agent, metaserver, false);
    const uint32_t call = w.world.calls;
    test_world_advance(&w.world, 0);
    while (w.world.calls == call)
        test_world_advance(&w.world, 1000);
    ck_assert_ptr_eq(w.world.call[call].user, &w.pool.registration[metaserver]);
    test_world_advance(&w.world, us * 1000);
    prolong(call, '1');
}

START_TEST(renewals_are_what_is_measured_and_the_lane_hears_of_it)
{
    begin_registered(3);
    for (int i = 0; i < NEARNESS_LEAST; i++) {
        const uint32_t told = w.told;
        renew_after(0, 9 * MS);
        renew_after(1, 9 * MS);
        renew_after(2, 2 * MS);
        ck_assert_uint_eq(w.told > told, i == NEARNESS_LEAST - 1);
    }
    ck_assert_uint_eq(w.list[0], 2);
    ck_assert_uint_eq(w.list[1], 0);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_slow_one_is_asked_after_the_others)                                                        \
    T(one_that_is_slow_by_turns_stays_where_it_is)                                                 \
    T(one_that_is_slow_for_long_moves_once)                                                        \
    T(those_that_are_about_alike_stay_as_the_file_has_them)                                        \
    T(the_zone_and_whether_one_is_well_go_first)                                                   \
    T(one_that_writes_nothing_is_asked_as_one_that_is_behind_and_followed_still)                   \
    T(renewals_are_what_is_measured_and_the_lane_hears_of_it)
KEDGE_CHECK_MAIN("agent.control.nearness", TESTS)
