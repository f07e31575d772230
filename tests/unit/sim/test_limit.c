/* SPDX-License-Identifier: Apache-2.0 */
/* What is bounded does not grow beyond its bound, and the check says so if it does. */
#include "../check_main.h"
#include "limit_watch.h"

START_TEST(growth_beyond_a_bound_is_seen)
{
    struct play_limit w = {.limit = PLAY_NO_LIMIT_SEEN};
    ck_assert(play_limit_holds(&w, 4, 4));
    ck_assert(play_limit_holds(&w, 4, 1));
    ck_assert(play_limit_holds(&w, 4, 4));
    ck_assert(!play_limit_holds(&w, 4, 5));
}
END_TEST

START_TEST(what_is_there_stays_when_its_bound_is_made_narrower)
{
    struct play_limit w = {.limit = PLAY_NO_LIMIT_SEEN};
    ck_assert(play_limit_holds(&w, 8, 7));
    ck_assert(play_limit_holds(&w, 2, 7));
    ck_assert(play_limit_holds(&w, 2, 6));
    ck_assert(!play_limit_holds(&w, 2, 7)); /* one of them was over, and another one has come */
    ck_assert(play_limit_holds(&w, 2, 1));
    ck_assert(!play_limit_holds(&w, 2, 3));
}
END_TEST

START_TEST(what_has_no_bound_may_grow)
{
    struct play_limit w = {.limit = PLAY_NO_LIMIT_SEEN};
    ck_assert(play_limit_holds(&w, PLAY_UNLIMITED, 1));
    ck_assert(play_limit_holds(&w, PLAY_UNLIMITED, 1 << 20));
    ck_assert(play_limit_holds(&w, 1, 1 << 20));
}
END_TEST

#define TESTS(TEST)                                                                                \
    TEST(growth_beyond_a_bound_is_seen)                                                            \
    TEST(what_is_there_stays_when_its_bound_is_made_narrower) TEST(what_has_no_bound_may_grow)

KEDGE_CHECK_MAIN("sim.limit", TESTS)
