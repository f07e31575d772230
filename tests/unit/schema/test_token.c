/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "base/random.h"
#include "schema/token.h"

static struct schema_token example(void)
{
    struct schema_token t = {
        .pool = 3, .access = 24, .vkey = 0xabcdef01, .addr = 0x7fff00001000, .length = 4096};
    for (uint8_t i = 0; i < 16; i++) {
        t.gid[i] = i;
        t.secret[i] = (uint8_t)(0xf0 + i);
    }
    return t;
}

START_TEST(what_was_formatted_is_parsed_again)
{
    struct base_prng prng;
    base_prng_seed(&prng, 1);
    for (int i = 0; i < 1000; i++) {
        struct schema_token t, got;
        for (size_t at = 0; at < sizeof t; at++)
            ((uint8_t *)&t)[at] = (uint8_t)base_prng_next(&prng);
        char text[SCHEMA_TOKEN_TEXT];
        schema_token_format(&t, text);
        ck_assert_uint_lt(strlen(text), SCHEMA_TOKEN_TEXT);
        ck_assert_int_eq(schema_token_parse(text, &got), 0);
        ck_assert_mem_eq(&t, &got, sizeof t);
    }
}
END_TEST

START_TEST(the_text_of_a_token_is_pinned)
{
    struct schema_token t = example();
    char text[SCHEMA_TOKEN_TEXT];
    schema_token_format(&t, text);
    ck_assert_str_eq(text, "kedge1.AAECAwQFBgcICQoLDA0ODwMAGAAB782rABAAAP9_"
                           "AAAAEAAAAAAAAPDx8vP09fb3-Pn6-_z9_v8olBRp");
    ck_assert_uint_eq(strlen(text), 87);
}
END_TEST

START_TEST(any_changed_character_is_refused)
{
    struct schema_token t = example(), untouched = t, got = t;
    char text[SCHEMA_TOKEN_TEXT];
    schema_token_format(&t, text);
    size_t length = strlen(text);
    for (size_t at = 0; at < length; at++) {
        char good = text[at];
        for (int c = 0; c < 256; c++) {
            text[at] = (char)c;
            if (text[at] != good)
                ck_assert_int_eq(schema_token_parse(text, &got), -EINVAL);
        }
        text[at] = good;
    }
    ck_assert_mem_eq(&got, &untouched, sizeof got);
}
END_TEST

START_TEST(texts_that_are_no_token_are_refused)
{
    struct schema_token got, t = example();
    char text[2 * SCHEMA_TOKEN_TEXT];
    ck_assert_int_eq(schema_token_parse("", &got), -EINVAL);
    ck_assert_int_eq(schema_token_parse("kedge1.", &got), -EINVAL);
    ck_assert_int_eq(schema_token_parse("kedge1.AAAA", &got), -EINVAL);
    schema_token_format(&t, text);
    size_t length = strlen(text);
    memcpy(text + length, "A", 2);
    ck_assert_int_eq(schema_token_parse(text, &got), -EINVAL);
    memset(text + length, 'A', SCHEMA_TOKEN_TEXT);
    text[length + SCHEMA_TOKEN_TEXT] = '\0';
    ck_assert_int_eq(schema_token_parse(text, &got), -EINVAL);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_was_formatted_is_parsed_again)                                                          \
    T(the_text_of_a_token_is_pinned)                                                               \
    T(any_changed_character_is_refused)                                                            \
    T(texts_that_are_no_token_are_refused)
KEDGE_CHECK_MAIN("schema token", TESTS)
