/* SPDX-License-Identifier: Apache-2.0 */
/* Receives that are set aside for streams: never more than there are, for long enough, and not for
 * longer. */
#include <string.h>

#include "../../check_main.h"
#include "message/set_aside.h"

enum { STEP_NS = 100, STREAMS = 5, RUNS = 200, MOVES = 400 };

static struct hearer_asides s;
static uint32_t posted;
static struct stream_aside a[STREAMS];
static uint32_t next[STREAMS];

static void begin(uint32_t receives)
{
    memset(a, 0, sizeof a);
    memset(next, 0, sizeof next);
    posted = receives;
    s = (struct hearer_asides){.id = 1, .posted = &posted};
    for (uint32_t i = 0; i < STREAMS; i++)
        lane_aside_hear(&a[i], &s, next[i]);
}

static uint32_t has(uint32_t i)
{
    return lane_aside_has(&a[i], next[i]);
}

static bool lets(uint32_t i)
{
    return lane_set_aside_lets(&s, &a[i], next[i]);
}

static void take(uint32_t i)
{
    ck_assert(lets(i));
    posted--;
    lane_aside_took(&a[i], next[i]++);
}

START_TEST(one_has_three_quarters_and_who_comes_of_what_is_left)
{
    begin(16);
    lane_aside_extend(&a[0], next[0]);
    ck_assert_uint_eq(has(0), 12);
    lane_aside_extend(&a[0], next[0]);
    ck_assert_uint_eq(has(0), 12);
    lane_aside_extend(&a[1], next[1]);
    ck_assert_uint_eq(has(1), 3);
    ck_assert_uint_eq(s.all, 15);
    begin(1);
    lane_aside_extend(&a[0], next[0]);
    ck_assert_uint_eq(has(0), 0);
}
END_TEST

START_TEST(nobody_else_takes_what_is_set_aside)
{
    begin(4);
    lane_aside_extend(&a[0], next[0]);
    ck_assert_uint_eq(has(0), 3);
    take(1);
    ck_assert(!lets(1));
    for (int i = 0; i < 3; i++)
        take(0);
    ck_assert_uint_eq(s.all, 0);
    posted++;
    ck_assert(lets(1));
}
END_TEST

START_TEST(it_is_so_for_a_term_and_a_step_at_the_most)
{
    for (uint64_t at = 0; at < STEP_NS; at++) {
        begin(4);
        lane_set_aside_go_on(&s, at, STEP_NS);
        lane_aside_extend(&a[0], next[0]);
        lane_set_aside_go_on(&s, at + ASIDE_TERM * STEP_NS, STEP_NS);
        ck_assert_uint_eq(has(0), 3);
        lane_set_aside_go_on(&s, at + ASIDE_STEPS * STEP_NS, STEP_NS);
        ck_assert_uint_eq(has(0), 0);
        ck_assert_uint_eq(s.all, 0);
    }
    begin(4);
    lane_aside_extend(&a[0], next[0]);
    lane_set_aside_go_on(&s, 1000000 * STEP_NS, STEP_NS); /* it stood still */
    ck_assert_uint_eq(has(0), 0);
    ck_assert_uint_eq(s.all, 0);
}
END_TEST

START_TEST(what_goes_gives_back)
{
    begin(8);
    lane_aside_extend(&a[0], next[0]);
    lane_aside_drop(&a[0], next[0]);
    ck_assert_uint_eq(s.all, 0);
    lane_aside_hear(&a[0], &s, next[0]);
    lane_aside_extend(&a[0], next[0]);
    struct hearer_asides other = {.id = 2, .posted = &posted};
    lane_aside_hear(&a[0], &other, next[0]);
    ck_assert_uint_eq(s.all, 0);
    lane_aside_extend(&a[0], next[0]);
    ck_assert_uint_eq(other.all, 6);
    other = (struct hearer_asides){.id = 3, .posted = &posted}; /* another VQP in its place */
    ck_assert_uint_eq(has(0), 0);
    lane_aside_took(&a[0], next[0]++);
    lane_aside_extend(&a[0], next[0]);
    ck_assert_uint_eq(other.all, 0);
}
END_TEST

/* What was said to each, and until when that is to hold, beside what it keeps. */
START_TEST(whatever_happens_what_was_said_holds)
{
    uint64_t random = 1;
    for (uint32_t run = 0; run < RUNS; run++) {
        uint32_t until[STREAMS] = {0};
        uint64_t until_ns[STREAMS] = {0}, now_ns = 0;
        begin(0);
        for (uint32_t m = 0; m < MOVES; m++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            const uint32_t r = (uint32_t)(random >> 33), i = r / 16 % STREAMS;
            now_ns += r % 7 == 0 ? r / 256 % (2 * STEP_NS) : r / 256 % 4;
            lane_set_aside_go_on(&s, now_ns, STEP_NS);
            if (r % 4 == 0) {
                posted += 1 + r / 1024 % 8;
            } else if (r % 4 == 1) {
                lane_aside_extend(&a[i], next[i]);
                if (lane_aside_says(&a[i], next[i]) > 0) {
                    until[i] = next[i] + lane_aside_says(&a[i], next[i]);
                    until_ns[i] = now_ns + ASIDE_TERM * STEP_NS;
                }
            } else if (r % 64 == 2) {
                lane_set_aside_missed(&s);
            } else if (r % 64 == 3) {
                lane_aside_keep(&a[i], next[i]);
            } else if (posted > 0 && lets(i)) {
                take(i);
            }
            uint32_t sum = 0;
            for (uint32_t k = 0; k < STREAMS; k++) {
                sum += has(k);
                if (now_ns <= until_ns[k] && (int32_t)(until[k] - next[k]) > 0)
                    ck_assert_uint_ge(has(k), until[k] - next[k]);
            }
            ck_assert_uint_eq(sum, s.all);
            ck_assert_uint_le(sum, posted);
        }
    }
}
END_TEST

START_TEST(what_is_renewed_is_so_for_as_long_again)
{
    begin(16);
    lane_aside_extend(&a[0], next[0]);
    lane_set_aside_go_on(&s, ASIDE_TERM * STEP_NS, STEP_NS);
    take(0);
    lane_aside_renew(&a[0], next[0]);
    lane_set_aside_go_on(&s, 2 * ASIDE_TERM * STEP_NS, STEP_NS);
    ck_assert_uint_eq(has(0), 11);
    ck_assert_uint_eq(s.all, 11);
    lane_set_aside_go_on(&s, (2 * ASIDE_TERM + 1) * STEP_NS, STEP_NS);
    lane_aside_renew(&a[0], next[0]); /* too late */
    ck_assert_uint_eq(has(0), 0);
    ck_assert_uint_eq(s.all, 0);
    lane_aside_renew(&a[1], next[1]); /* none, of nobody's */
    ck_assert_uint_eq(s.all, 0);
}
END_TEST

/* Who looks on while it is kept by somebody who uses none: it goes in its time, and nobody is given
 * any for a while, also who asks again and again. */
START_TEST(where_others_find_none_no_more_are_set_aside_for_a_time)
{
    enum { STEPS = ASIDE_STEPS - 1 };
    for (uint32_t before = 0; before < 2; before++) {
        begin(16);
        s.step = before == 0 ? 7 : UINT32_MAX - 5; /* which comes round */
        lane_aside_extend(&a[0], next[0]);
        ck_assert_uint_eq(has(0), 12);
        for (int i = 0; i < 4; i++)
            take(1);
        ck_assert(!lets(1));
        lane_set_aside_missed(&s);
        for (uint64_t n = 1; n < ASIDE_SCARCE; n++) {
            lane_set_aside_go_on(&s, n * STEP_NS, STEP_NS);
            lane_aside_extend(&a[0], next[0]);
            lane_aside_extend(&a[2], next[2]);
            ck_assert_uint_eq(has(0), n <= STEPS ? 12 : 0);
            ck_assert_uint_eq(lane_aside_says(&a[0], next[0]), 0);
            ck_assert_uint_eq(has(2), 0);
            ck_assert(lets(1) == (n > STEPS));
        }
        lane_set_aside_go_on(&s, ASIDE_SCARCE * STEP_NS, STEP_NS);
        lane_aside_extend(&a[2], next[2]);
        ck_assert_uint_eq(has(2), 9);
    }
}
END_TEST

/* Who hears of it counts from then. */
START_TEST(what_was_set_aside_in_a_former_step_is_not_said_now)
{
    begin(16);
    ck_assert_uint_eq(lane_aside_says(&a[0], next[0]), 0);
    lane_aside_extend(&a[0], next[0]);
    ck_assert_uint_eq(lane_aside_says(&a[0], next[0]), 12);
    lane_set_aside_go_on(&s, STEP_NS, STEP_NS);
    ck_assert_uint_eq(has(0), 12);
    ck_assert_uint_eq(lane_aside_says(&a[0], next[0]), 0);
    lane_aside_extend(&a[0], next[0]);
    ck_assert_uint_eq(lane_aside_says(&a[0], next[0]), 12);
}
END_TEST

START_TEST(what_is_dropped_keeps_it_once_until_it_is_said_again)
{
    begin(16);
    lane_aside_extend(&a[0], next[0]);
    for (uint64_t n = 1; n <= 2; n++) {
        lane_set_aside_go_on(&s, n * ASIDE_TERM * STEP_NS, STEP_NS);
        ck_assert_uint_eq(has(0), 12);
        lane_aside_keep(&a[0], next[0]);
    }
    lane_set_aside_go_on(&s, (2 * ASIDE_TERM + 1) * STEP_NS, STEP_NS);
    ck_assert_uint_eq(has(0), 0);
    lane_aside_extend(&a[0], next[0]);
    lane_set_aside_go_on(&s, (3 * ASIDE_TERM + 1) * STEP_NS, STEP_NS);
    lane_aside_keep(&a[0], next[0]);
    lane_set_aside_go_on(&s, (4 * ASIDE_TERM + 1) * STEP_NS, STEP_NS);
    ck_assert_uint_eq(has(0), 12);
}
END_TEST

/* Numbers come round again, in an hour of small messages: what was heard at the first of them says
 * nothing of those that are as far before it as what can be set aside. */
START_TEST(who_was_given_nothing_has_nothing_when_numbers_come_round)
{
    begin(16);
    next[0] -= ASIDE_MOST / 2;
    ck_assert_uint_eq(has(0), 0);
    lane_aside_drop(&a[0], next[0]);
    ck_assert_uint_eq(s.all, 0);
    lane_aside_hear(&a[0], &s, next[0]);
    lane_aside_extend(&a[0], next[0]);
    while (has(0) > 0)
        take(0);
    ck_assert_uint_eq(s.all, 0);
    next[0] -= 5;
    ck_assert_uint_eq(has(0), 0);
    posted = 0;
    lane_aside_extend(&a[0], next[0]); /* there are none */
    next[0] -= 5;
    lane_aside_drop(&a[0], next[0]);
    ck_assert_uint_eq(s.all, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_has_three_quarters_and_who_comes_of_what_is_left)                                        \
    T(nobody_else_takes_what_is_set_aside)                                                         \
    T(it_is_so_for_a_term_and_a_step_at_the_most)                                                  \
    T(what_is_renewed_is_so_for_as_long_again)                                                     \
    T(what_goes_gives_back)                                                                        \
    T(where_others_find_none_no_more_are_set_aside_for_a_time)                                     \
    T(what_was_set_aside_in_a_former_step_is_not_said_now)                                         \
    T(what_is_dropped_keeps_it_once_until_it_is_said_again)                                        \
    T(who_was_given_nothing_has_nothing_when_numbers_come_round)                                   \
    T(whatever_happens_what_was_said_holds)
KEDGE_CHECK_MAIN("agent.lane.set_aside", TESTS)
