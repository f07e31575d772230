/* SPDX-License-Identifier: Apache-2.0 */
/* What metaservers of one store may answer, and what they may not. */
#include <stdarg.h>
#include <string.h>

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

static const char BODY[] = "{\"uids\":[1],\"mrs\":3}", OTHER[] = "{\"uids\":[2],\"mrs\":3}";

/* It is made with revision 1 at 100, changed with 2 at 200, deleted with 3 at 300. */
static void begin(void)
{
    violations = 0;
    play_history_begin();
    play_history_changed("a", "tenant", "x", 1, BODY, 1 * AT);
    play_history_changed("a", "tenant", "x", 2, OTHER, 2 * AT);
    play_history_changed("b", "tenant", "x", 3, NULL, 3 * AT);
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

static int judge_body(const char *method, uint64_t revision, const char *asked, const char *body)
{
    struct play_history_answer a = {.who = "a",
                                    .life = 1,
                                    .method = method,
                                    .kind = "tenant",
                                    .name = "x",
                                    .status = 200,
                                    .revision = revision,
                                    .body = body,
                                    .asked = asked,
                                    .asked_bytes = asked != NULL ? strlen(asked) : 0,
                                    .asked_ns = 110,
                                    .now_ns = 250};
    const int before = violations;
    play_history_judge(&a);
    return violations - before;
}

START_TEST(an_answer_has_what_was_there_at_that_revision)
{
    begin();
    ck_assert_int_eq(
        judge_body("PUT", 2, "{\"uids\":[2]}", "{\"name\":\"x\",\"uids\":[2],\"mrs\":3}"), 0);
    ck_assert_int_gt(judge_body("PUT", 2, "{\"uids\":[2]}", BODY), 0);
    ck_assert_int_gt(judge_body("PUT", 2, "{\"uids\":[1]}", OTHER), 0); /* it was lost */
    ck_assert_int_eq(judge_body("GET", 2, NULL, OTHER), 0);
    ck_assert_int_gt(judge_body("GET", 2, NULL, BODY), 0);
    ck_assert_int_gt(judge_body("GET", 2, NULL, "{}"), 0);
    play_history_end();
}
END_TEST

START_TEST(one_alone_has_made_or_deleted_it)
{
    begin();
    ck_assert_int_eq(judge("PUT", 201, 1, 90, 110, 0), 0);
    ck_assert_int_gt(judge("PUT", 201, 1, 90, 110, 0), 0);
    ck_assert_int_eq(judge("DELETE", 204, 0, 290, 310, 0), 0);
    ck_assert_int_gt(judge("DELETE", 204, 0, 290, 310, 0), 0);
    play_history_changed("a", "tenant", "x", 4, BODY, 4 * AT);
    play_history_changed("a", "tenant", "x", 5, NULL, 5 * AT);
    ck_assert_int_eq(judge("DELETE", 204, 0, 290, 510, 0), 0);
    ck_assert_int_gt(judge("DELETE", 204, 0, 290, 510, 0), 0);
    play_history_end();
}
END_TEST

START_TEST(who_has_deleted_it_does_not_find_it)
{
    begin();
    ck_assert_int_eq(judge("DELETE", 204, 0, 290, 310, 0), 0);
    ck_assert_int_gt(judge("GET", 200, 2, 320, 321, 0), 0);
    ck_assert_int_eq(judge("GET", 404, 0, 320, 321, 0), 0);
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
    play_history_changed("a", "tenant", "x", 1, BODY, 1 * AT);
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
    play_history_changed("a", "tenant", "y", 3, BODY, 400);
    ck_assert_int_eq(violations, 1);
    play_history_changed("a", "tenant", "x", 5, NULL, 500);
    ck_assert_int_eq(violations, 2);
    play_history_changed("a", "lease", "x", 6, NULL, 500); /* an entry in the trail alone */
    ck_assert_int_eq(violations, 2);
    play_history_end();
}
END_TEST

static int tell(uint64_t after, uint64_t revision, const char *name, const char *to)
{
    const struct play_history_told t = {revision, "tenant", name, to};
    const int before = violations;
    play_history_told("f", after, &t);
    return violations - before;
}

START_TEST(who_follows_is_told_of_each_change_once)
{
    begin();
    ck_assert_int_eq(tell(1, 2, "x", OTHER), 0);
    ck_assert_int_eq(tell(2, 3, "x", NULL), 0);
    ck_assert_int_gt(tell(1, 3, "x", NULL), 0);
    ck_assert_int_gt(tell(2, 2, "x", OTHER), 0);
    ck_assert_int_gt(tell(3, 4, "x", BODY), 0);
    ck_assert_int_gt(tell(1, 2, "x", BODY), 0);
    ck_assert_int_gt(tell(1, 2, "x", NULL), 0);
    ck_assert_int_gt(tell(1, 2, "y", OTHER), 0);
    play_history_end();
}
END_TEST

/* It is put back to when it had revision 1, and then changed anew. */
START_TEST(what_a_store_is_put_back_to_is_what_is_there)
{
    begin();
    play_history_put_back_begin();
    play_history_returned("tenant", "x", 1);
    play_history_put_back_end(1, 4 * AT);
    ck_assert_uint_eq(play_history_last(), 1);
    ck_assert_int_eq(judge("GET", 200, 1, 410, 411, 405), 0);
    ck_assert_int_gt(judge("GET", 404, 0, 410, 411, 405), 0); /* that was before */
    ck_assert_int_gt(judge("PUT", 201, 1, 390, 410, 0), 0);   /* nobody has made it */
    play_history_changed("a", "tenant", "x", 4, NULL, 5 * AT);
    ck_assert_int_eq(judge("DELETE", 204, 0, 490, 510, 0), 0);
    ck_assert(play_history_is_uncertain(350, 600));
    play_history_end();
    ck_assert(!play_history_is_uncertain(350, 600));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_change_is_answered_with_what_was_so_meanwhile)                                             \
    T(an_answer_has_what_was_there_at_that_revision)                                               \
    T(one_alone_has_made_or_deleted_it)                                                            \
    T(who_has_deleted_it_does_not_find_it)                                                         \
    T(a_deletion_is_answered_with_what_was_so_meanwhile)                                           \
    T(a_read_may_be_behind_but_never_behind_itself)                                                \
    T(changes_are_in_order_and_of_what_there_is)                                                   \
    T(what_a_store_is_put_back_to_is_what_is_there)                                                \
    T(who_follows_is_told_of_each_change_once)
KEDGE_CHECK_MAIN("sim history", TESTS)
