/* SPDX-License-Identifier: Apache-2.0 */
/* What was kept by the word of who wrote it is there, or the check says so. */
#include <stdarg.h>
#include <string.h>

#include "../check_main.h"
#include "kept.h"
#include "ledger.h"

static int violations;

void play_violation(const char *who, const char *format, ...)
{
    (void)who, (void)format;
    violations++;
}

static void find_text(const char *text)
{
    play_kept_found("node-a", "settings", text, text != NULL ? strlen(text) : 0);
}

START_TEST(a_document_is_the_last_one_or_one_that_was_begun_since)
{
    play_kept_init();
    violations = 0;
    find_text(NULL);
    play_kept_begin("node-a", "settings", "1", 1);
    find_text(NULL);
    find_text("1");
    play_kept_done("node-a", "settings", "1", 1);
    play_kept_begin("node-a", "settings", "2", 1);
    find_text("1");
    find_text("2");
    ck_assert_int_eq(violations, 0);
    find_text(NULL);
    find_text("");
    ck_assert_int_eq(violations, 2);
    play_kept_done("node-a", "settings", "2", 1);
    find_text("1");
    ck_assert_int_eq(violations, 3);
    play_kept_forget("node-a");
    find_text(NULL);
    ck_assert_int_eq(violations, 3);
    play_kept_fini();
}
END_TEST

static uint32_t number_of(void *user, const char *what)
{
    (void)what;
    return *(const uint32_t *)user;
}

START_TEST(a_number_never_becomes_less_until_it_may_be_gone)
{
    uint32_t found = 7;
    play_kept_init();
    violations = 0;
    play_kept_number("metad-a", "node-a", 7);
    ck_assert_uint_eq(play_kept_last("metad-a", "node-a"), 7);
    play_kept_compare("metad-a", number_of, &found);
    play_kept_number_found("metad-a", "node-a", 8);
    play_kept_compare("metad-b", number_of, &found);
    ck_assert_int_eq(violations, 0);
    found = 0;
    play_kept_compare("metad-a", number_of, &found);
    ck_assert_int_eq(violations, 1);
    play_kept_number("metad-a", "node-a", 6);
    ck_assert_int_eq(violations, 2);
    play_kept_leaving("metad-a", "node-a");
    play_kept_number("metad-a", "node-a", 6); /* may be gone again when that is answered */
    play_kept_compare("metad-a", number_of, &found);
    ck_assert_int_eq(violations, 2);
    play_kept_leaving("metad-a", "node-a");
    play_kept_left("metad-a", "node-a", false);
    play_kept_number("metad-a", "node-a", 6);
    play_kept_compare("metad-a", number_of, &found);
    ck_assert_int_eq(violations, 3);
    play_kept_leaving("metad-a", "node-a");
    play_kept_left("metad-a", "node-a", true);
    play_kept_compare("metad-a", number_of, &found);
    ck_assert_int_eq(violations, 3);
    play_kept_fini();
}
END_TEST

#define TESTS(TEST)                                                                                \
    TEST(a_document_is_the_last_one_or_one_that_was_begun_since)                                   \
    TEST(a_number_never_becomes_less_until_it_may_be_gone)

KEDGE_CHECK_MAIN("sim.kept", TESTS)
