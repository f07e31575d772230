/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../check_main.h"
#include "schema/reason.h"
#include "schema/session.h"

START_TEST(each_reason_has_a_name_of_its_own)
{
    const uint32_t last = SCHEMA_REASON_BATCHES, unused = 16;
    ck_assert_str_eq(schema_reason_name(SCHEMA_REASON_GUESSES), "too_many_wrong_keys");
    for (uint32_t i = 0; i <= last; i++) {
        if (i == unused)
            continue;
        ck_assert_str_ne(schema_reason_name(i), "unknown");
        ck_assert_uint_eq(strspn(schema_reason_name(i), "abcdefghijklmnopqrstuvwxyz_"),
                          strlen(schema_reason_name(i))); /* one word of a log's line */
        for (uint32_t k = 0; k < i; k++)
            ck_assert_str_ne(schema_reason_name(i), schema_reason_name(k));
    }
    ck_assert_str_eq(schema_reason_name(unused), "unknown");
    ck_assert_str_eq(schema_reason_name(last + 1), "unknown");
    ck_assert_str_eq(schema_reason_name(UINT32_MAX), "unknown");
}
END_TEST

#define TESTS(T) T(each_reason_has_a_name_of_its_own)
KEDGE_CHECK_MAIN("reason", TESTS)
