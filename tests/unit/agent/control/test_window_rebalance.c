/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes that count for themselves and share a window of the device, played: each takes what it was
 * told some turns later, has in flight what it wants and may, and ends some of it now and then. */
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "control/window_rebalance.h"

enum { LANES = 8, TURNS = 20000, REQUEST = 100 /* bytes */ };

static struct agent_share share[LANES], *list[LANES];
static struct lane_window lane[LANES];
static struct agent_limits coming[LANES]; /* told, and not taken yet */
static uint32_t delay[LANES], wants[LANES], count;
static unsigned random_state;

static uint32_t below(uint32_t n)
{
    random_state = random_state * 1103515245u + 12345u;
    return (random_state >> 16) % n;
}

static void begin(uint32_t lanes, unsigned seed)
{
    memset(share, 0, sizeof share);
    memset(lane, 0, sizeof lane);
    memset(wants, 0, sizeof wants);
    memset(delay, 0, sizeof delay);
    random_state = seed;
    count = lanes;
    for (uint32_t i = 0; i < LANES; i++)
        list[i] = &share[i];
}

static bool may(const struct lane_window *n)
{
    return (n->limit_ops == 0 || n->ops < n->limit_ops) &&
           (n->limit_bytes == 0 || n->bytes + REQUEST <= n->limit_bytes || n->bytes == 0);
}

static void run(struct lane_window *n, uint32_t wanted)
{
    n->waiting = 0;
    while (n->ops < wanted && may(n)) {
        n->ops++;
        n->bytes += REQUEST;
    }
    if (n->ops < wanted) {
        n->waits++;
        n->waiting = 1;
    }
}

static void complete(struct lane_window *n, uint32_t requests)
{
    if (requests > n->ops)
        requests = (uint32_t)n->ops;
    n->ops -= requests;
    n->bytes -= (uint64_t)requests * REQUEST;
}

static void turn(struct agent_limits all, uint32_t slowest)
{
    uint64_t changed = agent_rebalance_turn(list, lane, count, all);
    for (uint32_t i = 0; i < count; i++) {
        if (changed >> i & 1) {
            ck_assert_uint_eq(delay[i], 0); /* one at a time */
            coming[i] = share[i].told;
            delay[i] = 1 + below(slowest);
        }
        if (delay[i] > 0 && --delay[i] == 0) {
            lane[i].limit_bytes = coming[i].bytes;
            lane[i].limit_ops = coming[i].ops;
            lane[i].counted = true;
        }
        run(&lane[i], wants[i]);
    }
}

static uint64_t ops_in_flight(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += lane[i].ops;
    return sum;
}

static uint64_t bytes_in_flight(void)
{
    return ops_in_flight() * REQUEST;
}

static void settle(struct agent_limits all)
{
    for (int i = 0; i < 4 * AGENT_SHARE_LOOKS; i++) {
        turn(all, 1);
        for (uint32_t k = 0; k < count; k++)
            complete(&lane[k], 2);
    }
}

START_TEST(one_lane_has_all_of_it_at_once)
{
    begin(1, 1);
    const struct agent_limits some = {.bytes = 5000, .ops = 16}, none = {0};
    ck_assert_uint_eq(agent_rebalance_turn(list, lane, 1, some), 1);
    ck_assert_uint_eq(share[0].told.bytes, 5000);
    ck_assert_uint_eq(share[0].told.ops, 16);
    lane[0].limit_bytes = 5000;
    lane[0].limit_ops = 16;
    lane[0].counted = true;
    ck_assert_uint_eq(agent_rebalance_turn(list, lane, 1, some), 0);
    ck_assert_uint_eq(agent_rebalance_turn(list, lane, 1, none), 1);
    ck_assert_uint_eq(share[0].told.bytes | share[0].told.ops, 0);
}
END_TEST

START_TEST(who_is_idle_lends_and_has_its_part_again_when_it_is_not)
{
    const struct agent_limits all = {.ops = 256};
    begin(2, 2);
    settle(all);
    ck_assert_uint_eq(share[0].told.ops, 128); /* nobody is busy */
    ck_assert_uint_eq(share[1].told.ops, 128);
    wants[0] = 1000;
    settle(all);
    ck_assert_uint_eq(share[0].told.ops, 256 - 16);
    ck_assert_uint_eq(share[1].told.ops, 16);
    wants[1] = 10; /* of which it has never more than it keeps */
    settle(all);
    ck_assert_uint_eq(share[0].told.ops, 256 - 16);
    wants[1] = 1000;
    int turns = 0;
    while (share[1].told.ops != 128 && turns < 100) {
        turn(all, 1);
        complete(&lane[0], 2);
        complete(&lane[1], 2);
        turns++;
    }
    ck_assert_int_lt(turns, 80); /* the other one gives back 112 requests, 2 in a turn */
    settle(all);
    ck_assert_uint_eq(share[0].told.ops, 128);
    ck_assert_uint_eq(share[1].told.ops, 128);
    wants[0] = wants[1] = 20; /* more than they keep and less than a part: nothing moves */
    settle(all);
    ck_assert_uint_eq(agent_rebalance_turn(list, lane, count, all), 0);
}
END_TEST

/* Lanes whose wants change, that take what they were told late, and end what they like. */
static void play(struct agent_limits all, uint32_t lanes)
{
    uint64_t most = 0;
    begin(lanes, lanes);
    for (int i = 0; i < 200; i++) /* until each was told its first part */
        turn(all, 5);
    for (int i = 0; i < TURNS; i++) {
        if (below(20) == 0)
            wants[below(lanes)] = below(3) == 0 ? 0 : below(100);
        complete(&lane[below(lanes)], below(30));
        turn(all, 5);
        ck_assert(all.ops == 0 || ops_in_flight() <= all.ops);
        ck_assert(all.bytes == 0 || bytes_in_flight() <= all.bytes);
        if (ops_in_flight() > most)
            most = ops_in_flight();
    }
    /* and it was used */
    ck_assert_uint_ge(most, (all.ops != 0 ? all.ops : all.bytes / REQUEST) * 3 / 4);
}

START_TEST(all_together_never_exceed_the_window)
{
    for (uint32_t lanes = 2; lanes <= LANES; lanes++) {
        play((struct agent_limits){.ops = 64}, lanes);
        play((struct agent_limits){.bytes = 6400}, lanes);
        play((struct agent_limits){.bytes = 9900, .ops = 80}, lanes);
    }
}
END_TEST

/* One comes, beside one that has all of it in flight. */
START_TEST(a_new_lane_has_one_request_until_others_have_given_something_up)
{
    const struct agent_limits all = {.bytes = 6400, .ops = 64};
    begin(1, 3);
    wants[0] = wants[1] = 1000;
    settle(all);
    turn(all, 1);
    ck_assert_uint_eq(lane[0].ops, 64);
    count = 2;
    for (int i = 0; i < 20; i++) {
        turn(all, 3);
        ck_assert_uint_le(ops_in_flight(), 64 + 1);
        ck_assert_uint_le(lane[1].ops, 1);
    }
    settle(all);
    ck_assert_uint_eq(share[0].told.ops, 32);
    ck_assert_uint_eq(share[1].told.ops, 32);
    ck_assert_uint_le(ops_in_flight(), 64);
    count = 1; /* and goes */
    settle(all);
    ck_assert_uint_eq(share[0].told.ops, 64);
}
END_TEST

START_TEST(a_window_that_changes_is_shared_anew)
{
    const struct agent_limits wide = {.ops = 640}, narrow = {.ops = 16}, none = {0};
    begin(4, 4);
    wants[0] = wants[1] = wants[2] = wants[3] = 1000;
    settle(wide);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(share[i].told.ops, 160);
    settle(narrow);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(share[i].told.ops, 4);
    for (int i = 0; i < 200; i++) {
        complete(&lane[i % 4], 2);
        turn(narrow, 3);
    }
    ck_assert_uint_le(ops_in_flight(), 16);
    settle((struct agent_limits){.ops = 2}); /* fewer than lanes: one each */
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(share[i].told.ops, 1);
    settle(none);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(share[i].told.ops, 0);
    turn(wide, 1); /* each has 1000 in flight: nobody may begin more than one before that is over */
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(share[i].told.ops, 1);
    for (int i = 0; i < 4; i++)
        complete(&lane[i], 1000);
    settle(wide);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(share[i].told.ops, 160);
}
END_TEST

static bool rests(struct agent_limits all, bool idle)
{
    const struct agent_share *at[LANES];
    for (uint32_t i = 0; i < count; i++)
        at[i] = &share[i];
    return agent_rebalance_rests(at, count, all, idle);
}

/* Whatever is left to be done it has said before, and it is at rest in the end. */
START_TEST(nothing_is_left_to_be_shared_once_all_are_idle_or_there_is_nothing_to_share)
{
    const struct agent_limits some = {.bytes = 64000, .ops = 64}, none = {0};
    begin(4, 6);
    ck_assert(rests(none, false));
    ck_assert(!rests(some, true));
    wants[1] = 1000;
    settle(some);
    ck_assert(!rests(some, true)); /* it lends still */
    wants[1] = 0;
    settle(some);
    ck_assert(rests(some, true));
    ck_assert(!rests(some, false)); /* nobody tells that a lane has more to do */
    ck_assert(!rests(none, true));
    settle(none);
    ck_assert(rests(none, false));
    begin(1, 7);
    wants[0] = 1000;
    turn(some, 2);
    ck_assert(!rests(some, false)); /* it was not seen to have taken it */
    settle(some);
    ck_assert(rests(some, false));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_lane_has_all_of_it_at_once)                                                              \
    T(who_is_idle_lends_and_has_its_part_again_when_it_is_not)                                     \
    T(all_together_never_exceed_the_window)                                                        \
    T(a_new_lane_has_one_request_until_others_have_given_something_up)                             \
    T(a_window_that_changes_is_shared_anew)                                                        \
    T(nothing_is_left_to_be_shared_once_all_are_idle_or_there_is_nothing_to_share)
KEDGE_CHECK_MAIN("agent.control.window_rebalance", TESTS)
