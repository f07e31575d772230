/* SPDX-License-Identifier: Apache-2.0 */
/* Whose secret a simulated metaserver may accept. */
#include <errno.h>

#include "../check_main.h"
#include "operators.h"

START_TEST(a_secret_is_good_until_its_token_is_deleted)
{
    struct play_secret s = {.live = ""};
    play_secret_change(&s, "PUT", 201, "{\"name\":\"t\",\"secret\":\"one\",\"scope\":\"reader\"}");
    ck_assert_str_eq(s.live, "one");
    ck_assert_str_eq(s.gone, "");
    play_secret_change(&s, "PUT", 200, "{\"name\":\"t\",\"scope\":\"reader\"}");
    ck_assert_str_eq(s.live, "one");
    play_secret_change(&s, "DELETE", 503, "no");
    ck_assert_str_eq(s.live, "one");
    play_secret_change(&s, "DELETE", 204, "");
    ck_assert_str_eq(s.live, "");
    ck_assert_str_eq(s.gone, "one");
    play_secret_change(&s, "PUT", 201, "{\"secret\":\"two\"}");
    ck_assert_str_eq(s.live, "two");
    ck_assert_str_eq(s.gone, "one");
}
END_TEST

START_TEST(of_what_nobody_knows_nothing_is_asked)
{
    struct play_secret s = {.live = ""};
    play_secret_change(&s, "PUT", 201, "{\"secret\":\"one\"}");
    play_secret_change(&s, "DELETE", -ETIMEDOUT, "");
    ck_assert_str_eq(s.live, "");
    ck_assert_str_eq(s.gone, "");
}
END_TEST

START_TEST(what_a_lost_disk_had_is_refused_from_then_on)
{
    struct play_secret s = {.live = "one", .gone = "none"};
    play_secret_lost(&s);
    ck_assert_str_eq(s.live, "");
    ck_assert_str_eq(s.gone, "one");
    play_secret_lost(&s);
    ck_assert_str_eq(s.gone, "one");
}
END_TEST

START_TEST(who_does_not_answer_has_not_accepted)
{
    ck_assert(play_secret_allows(true, 200));
    ck_assert(play_secret_allows(true, 403)); /* a worker's: it is known */
    ck_assert(!play_secret_allows(true, 401));
    ck_assert(play_secret_allows(false, 401));
    ck_assert(!play_secret_allows(false, 200));
    ck_assert(!play_secret_allows(false, 403));
    ck_assert(play_secret_allows(false, 503));
    ck_assert(play_secret_allows(true, -ETIMEDOUT));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_secret_is_good_until_its_token_is_deleted)                                                 \
    T(of_what_nobody_knows_nothing_is_asked)                                                       \
    T(what_a_lost_disk_had_is_refused_from_then_on)                                                \
    T(who_does_not_answer_has_not_accepted)
KEDGE_CHECK_MAIN("sim secret", TESTS)
