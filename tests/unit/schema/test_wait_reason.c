/* SPDX-License-Identifier: Apache-2.0 */
/* Each thing that requests wait for has a word, which the reference and the docs know. */
#include "../check_main.h"
#include "../man_page.h"

#include "schema/wait_reason.h"

enum { ITEM_LEFT = 1024 /* bytes, of the 2048 that metaservers take of a worker */ };

START_TEST(each_has_a_word_of_its_own_and_a_sentence)
{
    for (int i = SCHEMA_WAIT_NOTHING + 1; i < SCHEMA_WAITS; i++) {
        const struct schema_wait_row *row = &schema_waits[i];
        ck_assert_uint_eq(strspn(row->word, "abcdefghijklmnopqrstuvwxyz_"), strlen(row->word));
        ck_assert_ptr_eq(schema_wait_find(row->word), row);
        ck_assert_uint_gt(strlen(row->sentence), 20);
        ck_assert_int_ne(row->sentence[strlen(row->sentence) - 1], '.');
        ck_assert_uint_gt(strlen(row->unit), 0);
    }
    ck_assert_ptr_null(schema_wait_find("nothing"));
    ck_assert_ptr_null(schema_wait_find(""));
}
END_TEST

/* What a worker can wait for at a time: one thing with its ring, and all else. */
START_TEST(all_of_a_worker_fit_into_what_metaservers_take_of_it)
{
    size_t bytes = 0;
    for (int i = SCHEMA_WAIT_NOTHING + 1; i < SCHEMA_WAITS; i++)
        bytes += strlen(schema_waits[i].word) + strlen("\"\":4294967295,");
    ck_assert_uint_le(bytes, ITEM_LEFT);
}
END_TEST

static void expect_word(const char *text, const char *format, const char *word, const char *file)
{
    char wanted[256];
    snprintf(wanted, sizeof wanted, format, word);
    ck_assert_msg(strstr(text, wanted) != NULL, "%s has no %s", file, wanted);
}

START_TEST(the_reference_and_the_page_of_failures_have_each_of_them)
{
    char *openapi = read_source("schema/openapi.yaml"), *failures = read_source("docs/failures.md");
    for (int i = SCHEMA_WAIT_NOTHING + 1; i < SCHEMA_WAITS; i++) {
        expect_word(openapi, "\n            %s: {type: integer", schema_waits[i].word,
                    "openapi.yaml");
        expect_word(openapi, ": %s\"}\n", schema_waits[i].sentence, "openapi.yaml");
        expect_word(failures, "\n| `%s` |", schema_waits[i].word, "failures.md");
    }
    free(openapi);
    free(failures);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_has_a_word_of_its_own_and_a_sentence)                                                   \
    T(all_of_a_worker_fit_into_what_metaservers_take_of_it)                                        \
    T(the_reference_and_the_page_of_failures_have_each_of_them)
KEDGE_CHECK_MAIN("schema.wait_reason", TESTS)
