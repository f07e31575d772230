/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times as tables show them. */
#include "../check_main.h"
#include "base/clock.h"
#include "base/text.h"
#include "ctl/format.h"

static char out[CTL_AMOUNT_BYTES];

START_TEST(a_size_is_a_whole_number_of_its_largest_unit)
{
    ck_assert_str_eq(ctl_format_size(0, out), "0");
    ck_assert_str_eq(ctl_format_size(1000, out), "1000");
    ck_assert_str_eq(ctl_format_size(1024, out), "1KiB");
    ck_assert_str_eq(ctl_format_size(1536 * 1024, out), "1536KiB");
    ck_assert_str_eq(ctl_format_size(UINT64_C(4) << 30, out), "4GiB");
    ck_assert_str_eq(ctl_format_size(UINT64_C(2048) << 40, out), "2048TiB");
}
END_TEST

START_TEST(a_duration_is_a_whole_number_of_its_largest_unit)
{
    ck_assert_str_eq(ctl_format_duration(0, out), "0");
    ck_assert_str_eq(ctl_format_duration(1, out), "1ms");
    ck_assert_str_eq(ctl_format_duration(1500, out), "1500ms");
    ck_assert_str_eq(ctl_format_duration(30000, out), "30s");
    ck_assert_str_eq(ctl_format_duration(90000, out), "90s");
    ck_assert_str_eq(ctl_format_duration(120000, out), "2m");
    ck_assert_str_eq(ctl_format_duration(48 * 3600000, out), "2d");
}
END_TEST

/* What a table shows is what may be set. */
START_TEST(what_is_set_is_shown_so_that_it_can_be_set_again)
{
    for (uint64_t n = 1; n < UINT64_C(1) << 50; n = n * 5 + 1024) {
        uint64_t back;
        ck_assert_int_eq(base_parse_bytes(ctl_format_size(n, out), &back), 0);
        ck_assert_uint_eq(back, n);
        if (n > UINT64_C(1) << 40)
            continue;
        ck_assert_int_eq(base_parse_duration(ctl_format_duration(n, out), &back), 0);
        ck_assert_uint_eq(back, n * BASE_NS_PER_MS);
    }
}
END_TEST

START_TEST(an_age_has_two_units_at_most)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } ages[] = {
        {0, "0ms"},
        {999, "999ms"},
        {1000, "1.0s"},
        {9999, "9.9s"},
        {10000, "10s"},
        {119999, "119s"},
        {120000, "2m"},
        {200000, "3m20s"},
        {600000, "10m"},
        {3 * 3600000 - 1, "179m"},
        {3 * 3600000, "3h"},
        {8 * 3600000 - 1, "7h59m"},
        {27 * 3600000, "27h"},
        {UINT64_C(99) * 3600000, "4d3h"},
        {UINT64_C(400) * 86400000, "400d"},
    };
    for (size_t i = 0; i < sizeof ages / sizeof ages[0]; i++)
        ck_assert_str_eq(ctl_format_age(ages[i].ms, out), ages[i].text);
    ck_assert_uint_lt(strlen(ctl_format_age(UINT64_MAX, out)), sizeof out - 1);
}
END_TEST

START_TEST(what_was_measured_is_rounded)
{
    ck_assert_str_eq(ctl_format_rounded(0, out), "0");
    ck_assert_str_eq(ctl_format_rounded(1023, out), "1023");
    ck_assert_str_eq(ctl_format_rounded(1024, out), "1KiB");
    ck_assert_str_eq(ctl_format_rounded(123456789, out), "117.7MiB");
    ck_assert_str_eq(ctl_format_rounded(UINT64_MAX >> 1, out), "8388607.9TiB");
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_was_measured_is_rounded)                                                                \
    T(a_size_is_a_whole_number_of_its_largest_unit)                                                \
    T(a_duration_is_a_whole_number_of_its_largest_unit)                                            \
    T(what_is_set_is_shown_so_that_it_can_be_set_again)                                            \
    T(an_age_has_two_units_at_most)
KEDGE_CHECK_MAIN("ctl format", TESTS)
