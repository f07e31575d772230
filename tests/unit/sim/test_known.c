/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated metaserver may show is what it has answered. */
#include <errno.h>

#include "../check_main.h"
#include "operators.h"

START_TEST(a_change_that_was_acknowledged_has_to_be_shown)
{
    struct play_known k = {ANSWERED_NOTHING};
    ck_assert(play_known_allows(&k, 404, ""));
    ck_assert(!play_known_allows(&k, 200, "{1}"));
    ck_assert(play_known_change(&k, "PUT", 201, "{1}"));
    ck_assert(play_known_allows(&k, 200, "{1}"));
    ck_assert(!play_known_allows(&k, 200, "{0}"));
    ck_assert(!play_known_allows(&k, 404, ""));
    ck_assert(play_known_change(&k, "PUT", 200, "{2}"));
    ck_assert(!play_known_allows(&k, 200, "{1}"));
    ck_assert(play_known_change(&k, "DELETE", 204, ""));
    ck_assert(!play_known_allows(&k, 200, "{2}"));
    ck_assert(play_known_allows(&k, 404, ""));
}
END_TEST

START_TEST(what_was_refused_or_could_not_be_stored_has_not_happened)
{
    struct play_known k = {ANSWERED_NOTHING};
    ck_assert(play_known_change(&k, "PUT", 201, "{1}"));
    ck_assert(play_known_change(&k, "PUT", 409, "no"));
    ck_assert(play_known_change(&k, "DELETE", 503, "no"));
    ck_assert(play_known_allows(&k, 200, "{1}"));
    ck_assert(!play_known_allows(&k, 404, ""));
}
END_TEST

START_TEST(what_was_acknowledged_is_not_gone_when_somebody_takes_it_back)
{
    struct play_known k = {ANSWERED_NOTHING};
    ck_assert(play_known_change(&k, "PUT", 201, "{1}"));
    ck_assert(!play_known_change(&k, "DELETE", 404, ""));
}
END_TEST

START_TEST(of_a_change_that_nobody_answered_both_may_be_shown_until_the_next)
{
    struct play_known k = {ANSWERED_NOTHING};
    ck_assert(play_known_change(&k, "PUT", 201, "{1}"));
    ck_assert(play_known_change(&k, "DELETE", -ETIMEDOUT, ""));
    ck_assert(play_known_allows(&k, 404, ""));
    ck_assert(play_known_allows(&k, 200, "{1}"));
    ck_assert(!play_known_allows(&k, 403, ""));
    ck_assert(play_known_change(&k, "DELETE", 404, "")); /* it was done */
    ck_assert(!play_known_allows(&k, 200, "{1}"));
}
END_TEST

#define TESTS(TEST)                                                                                \
    TEST(a_change_that_was_acknowledged_has_to_be_shown)                                           \
    TEST(what_was_refused_or_could_not_be_stored_has_not_happened)                                 \
    TEST(what_was_acknowledged_is_not_gone_when_somebody_takes_it_back)                            \
    TEST(of_a_change_that_nobody_answered_both_may_be_shown_until_the_next)

KEDGE_CHECK_MAIN("sim.known", TESTS)
