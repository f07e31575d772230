/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to terminals and into logs. */
#include <string.h>

#include "../check_main.h"
#include "base/printable.h"
#include "base/text.h"

static const struct {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {"plain \"text\"", "plain \"text\""},
    {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"a\nb\x1b[31m\x7f", "a?b?[31m?"},
    {"\xc2\x80\xc2\x9b\x33\x31m\xc2\x9f\xc2\xa0", "??31m?\xc2\xa0"}, /* C1 */
    {"\xe2\x80\xae"
     "deb"
     "\xe2\x81\xa6\xe2\x81\xa9",
     "?deb??"},
    {"\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa", "??????"},
    {"\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
     "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"}, /* those beside them */
    {"\xff\xc3", "??"},
    {"\xc0\x9b\xed\xa0\x80\xf4\x90\x80\x80", "?????????"}, /* too long, a surrogate, too great */
    {"\x9b"
     "31m",
     "?31m"},
};

START_TEST(controls_and_what_is_no_utf8_are_not_printable)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        const bool same = strcmp(cases[i].text, cases[i].shown) == 0;
        const size_t given = strlen(cases[i].text);
        memcpy(text, cases[i].text, given);
        const size_t length = base_make_printable(text, given);
        text[length] = '\0';
        ck_assert_str_eq(text, cases[i].shown);
        ck_assert(base_is_printable(text));
        ck_assert_msg(base_is_printable(cases[i].text) == same, "%s", cases[i].shown);
    }
}
END_TEST

START_TEST(a_copy_that_has_no_room_ends_between_characters)
{
    char out[6] = "xxxxx";
    ck_assert_uint_eq(base_copy_printable(out, sizeof out, "abc\xe2\x82\xac"), 3);
    ck_assert_str_eq(out, "abc");
    ck_assert_uint_eq(base_copy_printable(out, sizeof out, "ab\xe2\x82\xac"), 5);
    ck_assert_str_eq(out, "ab\xe2\x82\xac");
    ck_assert_uint_eq(base_copy_printable(out, sizeof out, "\xe2\x80\xae\xe2\x80\xae!"), 3);
    ck_assert_str_eq(out, "?\?!");
    ck_assert_uint_eq(base_copy_printable(out, 1, "abc"), 0);
    ck_assert_str_eq(out, "");
    ck_assert_uint_eq(base_copy_printable(out, sizeof out, NULL), 0);
}
END_TEST

START_TEST(json_of_others_keeps_its_form_and_loses_its_controls)
{
    struct base_text t;
    base_text_init(&t, 200);
    ck_assert_int_eq(base_text_plain_json(&t, "{\"a\":\"\xc2\x9b\xe2\x80\xae\xc3\xbc\",\n\t\"b\":"
                                              "\"\x7f\x1b\xff\"}\n"),
                     0);
    ck_assert_str_eq(base_text_str(&t), "{\"a\":\"\\u009b\\u202e\xc3\xbc\",\n\t\"b\":"
                                        "\"\\u007f\\u001b\xef\xbf\xbd\"}\n");
    base_text_fini(&t);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(controls_and_what_is_no_utf8_are_not_printable)                                              \
    T(a_copy_that_has_no_room_ends_between_characters)                                             \
    T(json_of_others_keeps_its_form_and_loses_its_controls)
KEDGE_CHECK_MAIN("base printable", TESTS)
