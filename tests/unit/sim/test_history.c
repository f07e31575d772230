/* SPDX-License-Identifier: Apache-2.0 */
/* What metaservers of one store may answer, and what they may not. */
#include <stdarg.h>

#include "../check_main.h"
#include "history.h"
#include "ledger.h"

static int violations;

void play_violation(const char *who, const char *format, ...)
{
    (void)who, (void)format;
    violations++;
}

enum { AT = 100 };

/* It is made with revision 1 at 100, changed with 2 at 200, deleted with 3 at 300. */
static void begin(void)
{
    violations = 0;
    play_history_begin();
    play_history_changed("a", "tenant", "x", 1, true, 1 * AT);
    play_history_changed("a", "tenant", "x", 2, true, 2 * AT);
    play_history_changed("b", "tenant", "x", 3, false, 3 * AT);
    ck_assert_int_eq(violations, 0);
}

static int judge(const char *method, int status, uint64_t revision, uint64_t asked, uint64_t now,
                 uint64_t since)
{
    const struct play_history_answer a = {.who = "a",
                                          .life = 1,
                                          .method = method,
                                          .kind = "tenant",
                                          .name = "x",
                                          .status = status,
                                          .revision = revision,
                                          .asked_ns = asked,
                                          .now_ns = now,
                                          .since_ns = since};
    const int before = violations;
    play_history_judge(&a);
    return violations - before;
}

START_TEST(a_change_is_answered_with_what_was_so_meanwhile)
{
    begin();
    ck_assert_int_eq(judge("PUT", 201, 1, 90, 110, 0), 0);
    ck_assert_int_eq(judge("PUT", 200, 2, 190, 210, 0), 0);
    ck_assert_int_eq(judge("PUT", 200, 2, 250, 260, 0), 0); /* it is there already */
    ck_assert_int_gt(judge("PUT", 200, 1, 250, 260, 0), 0);
    ck_assert_int_gt(judge("PUT", 200, 9, 190, 210, 0), 0);
    ck_assert_int_gt(judge("PUT", 201, 2, 190, 210, 0), 0); /* it was there */
    ck_assert_int_gt(judge("PUT", 200, 2, 310, 320, 0), 0);
    ck_assert_int_eq(judge("PUT", 503, 0, 310, 320, 0), 0);
    play_history_end();
}
END_TEST

START_TEST(a_deletion_is_answered_with_what_was_so_meanwhile)
{
    begin();
    ck_assert_int_eq(judge("DELETE", 204, 0, 290, 310, 0), 0);
    ck_assert_int_eq(judge("DELETE", 404, 0, 290, 310, 0), 0);
    ck_assert_int_eq(judge("DELETE", 404, 0, 400, 410, 0), 0);
    ck_assert_int_gt(judge("DELETE", 204, 0, 310, 320, 0), 0);
    play_history_end();
    violations = 0;
    play_history_begin();
    play_history_changed("a", "tenant", "x", 1, true, 1 * AT);
    ck_assert_int_gt(judge("DELETE", 404, 0, 110, 120, 0), 0);
    ck_assert_int_gt(judge("DELETE", 204, 0, 110, 120, 0), 0);
    play_history_end();
}
END_TEST

START_TEST(a_read_may_be_behind_but_never_behind_itself)
{
    begin();
    ck_assert_int_eq(judge("GET", 200, 1, 350, 351, 0), 0);
    ck_assert_int_eq(judge("GET", 200, 2, 350, 351, 0), 0);
    ck_assert_int_gt(judge("GET", 200, 1, 350, 351, 0), 0);
    ck_assert_int_gt(judge("GET", 200, 2, 350, 351, 310), 0); /* it says that it knows better */
    ck_assert_int_eq(judge("GET", 404, 0, 350, 351, 310), 0);
    ck_assert_int_gt(judge("GET", 200, 7, 350, 351, 0), 0);
    play_history_end();
}
END_TEST

START_TEST(changes_are_in_order_and_of_what_there_is)
{
    begin();
    play_history_changed("a", "tenant", "y", 3, true, 400);
    ck_assert_int_eq(violations, 1);
    play_history_changed("a", "tenant", "x", 5, false, 500);
    ck_assert_int_eq(violations, 2);
    play_history_changed("a", "lease", "x", 6, false, 500); /* an entry in the trail alone */
    ck_assert_int_eq(violations, 2);
    play_history_end();
}
END_TEST

START_TEST(who_follows_is_told_of_each_change_once)
{
    begin();
    play_history_told("f", 1, 2);
    play_history_told("f", 2, 3);
    ck_assert_int_eq(violations, 0);
    play_history_told("f", 1, 3);
    ck_assert_int_eq(violations, 1);
    play_history_told("f", 2, 2);
    ck_assert_int_eq(violations, 2);
    play_history_told("f", 3, 4);
    ck_assert_int_eq(violations, 3);
    play_history_end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_change_is_answered_with_what_was_so_meanwhile)                                             \
    T(a_deletion_is_answered_with_what_was_so_meanwhile)                                           \
    T(a_read_may_be_behind_but_never_behind_itself)                                                \
    T(changes_are_in_order_and_of_what_there_is)                                                   \
    T(who_follows_is_told_of_each_change_once)
KEDGE_CHECK_MAIN("sim history", TESTS)
