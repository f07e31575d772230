/* SPDX-License-Identifier: Apache-2.0 */
/* Incarnations that a simulated metaserver shows only go up, and the check says so if not. */
#include <stdarg.h>

#include "../check_main.h"
#include "ledger.h"
#include "lives.h"

static int violations;

void play_violation(const char *who, const char *format, ...)
{
    (void)who, (void)format;
    violations++;
}

START_TEST(an_earlier_life_behind_a_later_one_is_a_violation)
{
    const uint8_t a[16] = {0xfd, [15] = 1}, b[16] = {0xfd, [15] = 2};
    play_lives_init();
    violations = 0;
    play_lives_shown("metad-a", a, 1, 5);
    play_lives_shown("metad-a", a, 1, 5);
    play_lives_shown("metad-a", a, 1, 7);
    play_lives_shown("metad-a", a, 2, 3);
    play_lives_shown("metad-a", b, 1, 3);
    play_lives_shown("metad-b", a, 1, 6);
    ck_assert_int_eq(violations, 0);
    play_lives_shown("metad-b", a, 1, 5);
    ck_assert_int_eq(violations, 1);
    play_lives_shown("metad-a", a, 1, 6);
    ck_assert_int_eq(violations, 2);
    play_lives_fini();
}
END_TEST

START_TEST(who_has_lost_all_and_is_forgotten_may_begin_anew_once)
{
    static const uint8_t a[16] = {1};
    violations = 0;
    play_lives_init();
    play_lives_shown("metad-a", a, 1, 6);
    play_lives_lost(a); /* the metaserver knows better */
    play_lives_shown("metad-a", a, 1, 5);
    ck_assert_int_eq(violations, 1);
    play_lives_left("metad-a", a, true); /* the agent does */
    play_lives_shown("metad-a", a, 1, 4);
    ck_assert_int_eq(violations, 2);
    play_lives_left("metad-a", a, true);
    play_lives_lost(a);
    play_lives_shown("metad-a", a, 1, 3);
    ck_assert_int_eq(violations, 2);
    play_lives_left("metad-a", a, true);
    play_lives_left("metad-a", a, false); /* it is not to be forgotten after all */
    play_lives_lost(a);
    play_lives_shown("metad-a", a, 1, 2);
    ck_assert_int_eq(violations, 3);
    play_lives_fini();
}
END_TEST

START_TEST(who_has_lost_all_may_begin_anew_where_all_was_lost_too)
{
    static const uint8_t a[16] = {1};
    violations = 0;
    play_lives_init();
    play_lives_shown("metad-a", a, 1, 6);
    play_lives_shown("metad-b", a, 1, 6);
    play_lives_forgotten("metad-a");
    play_lives_shown("metad-a", a, 1, 6); /* the agent knows */
    play_lives_shown("metad-a", a, 1, 5);
    ck_assert_int_eq(violations, 1);
    play_lives_forgotten("metad-a");
    play_lives_left("metad-a", a, false); /* nobody asks for what is gone anyway */
    play_lives_lost(a);
    play_lives_shown("metad-a", a, 1, 3);
    ck_assert_int_eq(violations, 1);
    play_lives_shown("metad-b", a, 1, 3); /* which has lost nothing */
    ck_assert_int_eq(violations, 2);
    play_lives_lost(a);
    play_lives_shown("metad-a", a, 1, 3); /* its record is there until its node expires */
    play_lives_forgotten("metad-a");
    play_lives_shown("metad-a", a, 1, 2);
    ck_assert_int_eq(violations, 2);
    play_lives_fini();
}
END_TEST

/* Of a pool that the node had before, and had not when it left, nobody knows anything either. */
START_TEST(who_begins_anew_does_so_with_every_pool)
{
    static const uint8_t a[16] = {1};
    violations = 0;
    play_lives_init();
    play_lives_shown("metad-a", a, 1, 6);
    play_lives_shown("metad-a", a, 2, 6);
    play_lives_left("metad-a", a, true);
    play_lives_lost(a);
    play_lives_shown("metad-a", a, 1, 3);
    play_lives_shown("metad-a", a, 2, 3);
    ck_assert_int_eq(violations, 0);
    play_lives_left("metad-a", a, true);
    play_lives_shown("metad-a", a, 1, 3); /* the metaserver knows it again */
    play_lives_lost(a);
    play_lives_shown("metad-a", a, 2, 2);
    ck_assert_int_eq(violations, 1);
    play_lives_fini();
}
END_TEST

#define TESTS(TEST)                                                                                \
    TEST(an_earlier_life_behind_a_later_one_is_a_violation)                                        \
    TEST(who_has_lost_all_and_is_forgotten_may_begin_anew_once)                                    \
    TEST(who_begins_anew_does_so_with_every_pool)                                                  \
    TEST(who_has_lost_all_may_begin_anew_where_all_was_lost_too)

KEDGE_CHECK_MAIN("sim.lives", TESTS)
