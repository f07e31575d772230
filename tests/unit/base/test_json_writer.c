/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "base/json_writer.h"

static struct base_text text;

static void begin_text(void)
{
    base_text_init(&text, 1000);
}

/* And that is its end. */
static void check_text(const char *expected)
{
    ck_assert_int_eq(text.error, 0);
    ck_assert_str_eq(base_text_str(&text), expected);
    base_text_fini(&text);
}

START_TEST(members_and_items_have_commas_between_them_and_nowhere_else)
{
    begin_text();
    base_json_object(&text, NULL);
    base_json_string(&text, "a", "x");
    base_json_u64(&text, "b", UINT64_MAX);
    base_json_array(&text, "c");
    base_json_i64(&text, NULL, INT64_MIN);
    base_json_bool(&text, NULL, true);
    base_json_bool(&text, NULL, false);
    base_json_array_end(&text);
    base_json_null(&text, "d");
    base_json_object_end(&text);
    check_text("{\"a\":\"x\",\"b\":18446744073709551615,"
               "\"c\":[-9223372036854775808,true,false],\"d\":null}");
}
END_TEST

START_TEST(what_is_nested_or_empty_is_a_value_like_any_other)
{
    begin_text();
    base_json_array(&text, NULL);
    base_json_object(&text, NULL);
    base_json_object_end(&text);
    base_json_array(&text, NULL);
    base_json_array_end(&text);
    base_json_object(&text, NULL);
    base_json_object(&text, "in");
    base_json_array(&text, "deep");
    base_json_array(&text, NULL);
    base_json_array_end(&text);
    base_json_object(&text, NULL);
    base_json_object_end(&text);
    base_json_array_end(&text);
    base_json_object_end(&text);
    base_json_u64(&text, "n", 0);
    base_json_object_end(&text);
    base_json_array_end(&text);
    check_text("[{},[],{\"in\":{\"deep\":[[],{}]},\"n\":0}]");
}
END_TEST

/* A text of several lines, each of them JSON; and lists with an item on each line. */
START_TEST(a_line_begins_without_a_comma)
{
    begin_text();
    base_json_object(&text, NULL);
    base_json_object_end(&text);
    base_text_append(&text, "\n", 1);
    base_json_array(&text, NULL);
    base_text_append(&text, "\n", 1);
    base_json_u64(&text, NULL, 1);
    base_text_append(&text, ",\n", 2);
    base_json_u64(&text, NULL, 2);
    base_json_array_end(&text);
    check_text("{}\n[\n1,\n2]");
}
END_TEST

START_TEST(a_comma_or_a_bracket_at_the_end_of_a_string_is_the_strings_own)
{
    begin_text();
    base_json_object(&text, NULL);
    base_json_string(&text, "a", "{");
    base_json_string(&text, "b", ",");
    base_json_string(&text, "c", "\n");
    base_json_string(&text, "d", "");
    base_json_object_end(&text);
    check_text("{\"a\":\"{\",\"b\":\",\",\"c\":\"\\n\",\"d\":\"\"}");
}
END_TEST

START_TEST(a_name_that_needs_an_escape_is_a_string_and_a_colon)
{
    begin_text();
    base_json_object(&text, NULL);
    for (int i = 0; i < 2; i++) {
        base_json_string(&text, NULL, "a\"");
        base_text_append(&text, ":", 1);
        base_json_u64(&text, NULL, 1);
    }
    base_json_object_end(&text);
    check_text("{\"a\\\"\":1,\"a\\\"\":1}");
}
END_TEST

START_TEST(strings_are_escaped_and_bytes_that_are_not_utf_8_replaced)
{
    begin_text();
    base_json_array(&text, NULL);
    base_json_string(&text, NULL, "say \"so\" \\ \x01");
    base_json_string(&text, NULL, "gr\xc3\xbc\xc3\x9f");
    base_json_string(&text, NULL,
                     "a\xff"
                     "b");
    base_json_string(&text, NULL, NULL);
    base_json_array_end(&text);
    check_text("[\"say \\\"so\\\" \\\\ \\u0001\",\"gr\xc3\xbc\xc3\x9f\",\"a\xef\xbf\xbd"
               "b\",null]");
}
END_TEST

START_TEST(a_bound_that_there_is_not_is_null)
{
    begin_text();
    base_json_object(&text, NULL);
    base_json_u64_or_null(&text, "none", 7, 7);
    base_json_u64_or_null(&text, "some", 8, 7);
    base_json_u64_or_null(&text, "zero", 0, 0);
    base_json_object_end(&text);
    check_text("{\"none\":null,\"some\":8,\"zero\":null}");
}
END_TEST

START_TEST(hexadecimal_numbers_have_all_digits_and_what_is_json_stays_as_it_is)
{
    begin_text();
    base_json_object(&text, NULL);
    base_json_hex64(&text, "h", 0xfedcba98);
    base_json_raw(&text, "c", "{\"x\": [1, 2]}");
    base_json_array(&text, "d");
    base_json_raw(&text, NULL, "1e3");
    base_json_raw(&text, NULL, "\"y\"");
    base_json_array_end(&text);
    base_json_object_end(&text);
    check_text("{\"h\":\"00000000fedcba98\",\"c\":{\"x\": [1, "
               "2]},\"d\":[1e3,\"y\"]}");
}
END_TEST

START_TEST(a_text_that_is_full_says_so_and_stays_as_it_was)
{
    struct base_text small;
    base_text_init(&small, 12);
    base_json_object(&small, NULL);
    base_json_u64(&small, "a", 1);
    ck_assert_int_eq(small.error, 0);
    base_json_string(&small, "b", "too long for it");
    ck_assert_int_eq(small.error, -EMSGSIZE);
    const size_t length = small.length;
    ck_assert_uint_le(length, 12);
    base_json_null(&small, NULL);
    base_json_object_end(&small);
    ck_assert_int_eq(small.error, -EMSGSIZE);
    ck_assert_uint_eq(small.length, length);
    base_text_cut(&small, strlen("{\"a\":1"));
    base_json_object_end(&small);
    ck_assert_int_eq(small.error, 0);
    ck_assert_str_eq(base_text_str(&small), "{\"a\":1}");
    base_text_fini(&small);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(members_and_items_have_commas_between_them_and_nowhere_else)                                 \
    T(what_is_nested_or_empty_is_a_value_like_any_other)                                           \
    T(a_line_begins_without_a_comma)                                                               \
    T(a_comma_or_a_bracket_at_the_end_of_a_string_is_the_strings_own)                              \
    T(a_name_that_needs_an_escape_is_a_string_and_a_colon)                                         \
    T(strings_are_escaped_and_bytes_that_are_not_utf_8_replaced)                                   \
    T(a_bound_that_there_is_not_is_null)                                                           \
    T(hexadecimal_numbers_have_all_digits_and_what_is_json_stays_as_it_is)                         \
    T(a_text_that_is_full_says_so_and_stays_as_it_was)
KEDGE_CHECK_MAIN("base json_writer", TESTS)
