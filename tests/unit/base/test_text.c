/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "base/random.h"
#include "base/setting.h"
#include "base/text.h"

START_TEST(a_text_grows_and_stops_at_its_bound_without_half_an_append)
{
    struct base_text t;
    base_text_init(&t, 1000);
    ck_assert_str_eq(base_text_str(&t), "");
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(base_text_printf(&t, "%s", "0123456789"), 0);
    ck_assert_uint_eq(t.length, 1000);
    ck_assert_int_eq(base_text_append(&t, "x", 1), -EMSGSIZE);
    ck_assert_uint_eq(t.length, 1000);
    ck_assert_uint_eq(strlen(base_text_str(&t)), 1000);
    base_text_reset(&t);
    ck_assert_int_eq(base_text_append(&t, "ok", 2), 0);
    ck_assert_str_eq(base_text_str(&t), "ok");
    base_text_fini(&t);
}
END_TEST

START_TEST(what_came_last_is_taken_back_with_its_error)
{
    struct base_text t;
    base_text_init(&t, 4);
    base_text_cut(&t, 0);
    base_text_append(&t, "abc", 3);
    ck_assert_int_eq(base_text_append(&t, "de", 2), -EMSGSIZE);
    base_text_cut(&t, 1);
    ck_assert_int_eq(t.error, 0);
    ck_assert_str_eq(base_text_str(&t), "a");
    ck_assert_int_eq(base_text_append(&t, "de", 2), 0);
    ck_assert_str_eq(base_text_str(&t), "ade");
    base_text_fini(&t);
}
END_TEST

START_TEST(an_error_sticks_until_the_reset)
{
    struct base_text t;
    base_text_init(&t, 4);
    base_text_append(&t, "ab", 2);
    ck_assert_int_eq(base_text_append(&t, "cde", 3), -EMSGSIZE);
    ck_assert_int_eq(base_text_append(&t, "c", 1), -EMSGSIZE);
    ck_assert_int_eq(base_text_printf(&t, "c"), -EMSGSIZE);
    ck_assert_str_eq(base_text_str(&t), "ab");
    base_text_fini(&t);
}
END_TEST

static void check_json(const char *string, const char *expected)
{
    struct base_text t;
    base_text_init(&t, 200);
    ck_assert_int_eq(base_text_json(&t, string), 0);
    ck_assert_str_eq(base_text_str(&t), expected);
    base_text_fini(&t);
}

START_TEST(json_strings_escape_what_must_be_and_replace_what_is_no_utf8)
{
    check_json("", "\"\"");
    check_json("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
    check_json("\b\f\n\r\t\x01\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u007f\"");
    check_json("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
               "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"");
    check_json("\xc2\x9b\xe2\x80\xae", "\"\\u009b\\u202e\""); /* terminals heed them */
    check_json("\xff", "\"\xef\xbf\xbd\"");
    check_json("\xc3", "\"\xef\xbf\xbd\"");                                 /* cut short */
    check_json("\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* too long a form */
    check_json("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* a surrogate */
    check_json("\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
}
END_TEST

START_TEST(a_json_string_that_does_not_fit_leaves_nothing_behind)
{
    struct base_text t;
    base_text_init(&t, 8);
    base_text_append(&t, "k:", 2);
    ck_assert_int_eq(base_text_json(&t, "12345"), -EMSGSIZE);
    ck_assert_str_eq(base_text_str(&t), "k:");
    base_text_fini(&t);
}
END_TEST

START_TEST(numbers_are_decimal_digits_in_range_or_refused)
{
    static const char *const malformed[] = {"",   " 1", "1 ",  "+1",  "-1", "0x10",    "1e3",
                                            "1.", "1,", "abc", "1\n", "--", "\xd9\xa1"};
    uint64_t v = 77;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        ck_assert_msg(base_parse_u64(malformed[i], 0, UINT64_MAX, &v) == -EINVAL, "%s",
                      malformed[i]);
    ck_assert_int_eq(base_parse_u64("18446744073709551616", 0, UINT64_MAX, &v), -ERANGE);
    ck_assert_int_eq(base_parse_u64("99999999999999999999999999", 0, UINT64_MAX, &v), -ERANGE);
    ck_assert_int_eq(base_parse_u64("4", 5, 9, &v), -ERANGE);
    ck_assert_int_eq(base_parse_u64("10", 5, 9, &v), -ERANGE);
    ck_assert_uint_eq(v, 77);
    ck_assert_int_eq(base_parse_u64("18446744073709551615", 0, UINT64_MAX, &v), 0);
    ck_assert_uint_eq(v, UINT64_MAX);
    ck_assert_int_eq(base_parse_u64("007", 5, 9, &v), 0);
    ck_assert_uint_eq(v, 7);
}
END_TEST

START_TEST(ranges_are_two_numbers_in_order_or_refused)
{
    static const char *const malformed[] = {"", "-", "1", "1-", "-2", "1--2", "1-2-3", "1 -2"};
    uint64_t first = 77, last = 78;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        ck_assert_msg(base_parse_range(malformed[i], 9, &first, &last) == -EINVAL, "%s",
                      malformed[i]);
    ck_assert_int_eq(base_parse_range("3-2", 9, &first, &last), -ERANGE);
    ck_assert_int_eq(base_parse_range("3-10", 9, &first, &last), -ERANGE);
    ck_assert_int_eq(base_parse_range("10-10", 9, &first, &last), -ERANGE);
    ck_assert_uint_eq(first, 77);
    ck_assert_uint_eq(last, 78);
    ck_assert_int_eq(base_parse_range("9-9", 9, &first, &last), 0);
    ck_assert_uint_eq(first, 9);
    ck_assert_int_eq(base_parse_range("0-18446744073709551615", UINT64_MAX, &first, &last), 0);
    ck_assert_uint_eq(first, 0);
    ck_assert_uint_eq(last, UINT64_MAX);
}
END_TEST

START_TEST(durations_need_a_known_unit_and_do_not_overflow)
{
    static const char *const malformed[] = {"",     "5",    "ms", "5 ms", "5MS", "-5ms", "5ms ",
                                            "1.5s", "5mss", "00", "1M",   "1y",  "1wd",  "w"};
    uint64_t ns = 77;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        ck_assert_msg(base_parse_duration(malformed[i], &ns) == -EINVAL, "%s", malformed[i]);
    ck_assert_int_eq(base_parse_duration("106752d", &ns), -ERANGE);
    ck_assert_int_eq(base_parse_duration("99999999999999999999s", &ns), -ERANGE);
    ck_assert_uint_eq(ns, 77);
    ck_assert_int_eq(base_parse_duration("20ms", &ns), 0);
    ck_assert_uint_eq(ns, 20000000);
    ck_assert_int_eq(base_parse_duration("250ns", &ns), 0);
    ck_assert_uint_eq(ns, 250);
    ck_assert_int_eq(base_parse_duration("2h", &ns), 0);
    ck_assert_uint_eq(ns, 7200000000000ull);
    ck_assert_int_eq(base_parse_duration("1w", &ns), 0);
    ck_assert_uint_eq(ns, 604800000000000ull);
    ck_assert_int_eq(base_parse_duration("106751d", &ns), 0);
    ck_assert_int_eq(base_parse_duration("0", &ns), 0);
    ck_assert_uint_eq(ns, 0);
}
END_TEST

/* As kubectl, etcdctl and journalctl take it, and as rdmactl's tables say how old something is. */
START_TEST(durations_may_have_parts_from_the_largest_unit_down)
{
    static const char *const malformed[] = {"30m1h", "1h1h", "1h30", "1h 30m", "1h-30m",
                                            "0h0",   "0w0",  "1hm",  "1h30m ", "1d1w"};
    uint64_t ns = 77;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        ck_assert_msg(base_parse_duration(malformed[i], &ns) == -EINVAL, "%s", malformed[i]);
    ck_assert_int_eq(base_parse_duration("15250w1d24h", &ns), -ERANGE);
    ck_assert_int_eq(base_parse_duration("106751d99999999999h", &ns), -ERANGE);
    ck_assert_uint_eq(ns, 77);
    ck_assert_int_eq(base_parse_duration("1w2d", &ns), 0);
    ck_assert_uint_eq(ns, 9 * 86400 * 1000000000ull);
    ck_assert_int_eq(base_parse_duration("1h30m", &ns), 0);
    ck_assert_uint_eq(ns, 5400 * 1000000000ull);
    ck_assert_int_eq(base_parse_duration("1m500ms", &ns), 0);
    ck_assert_uint_eq(ns, 60500000000ull);
    ck_assert_int_eq(base_parse_duration("1w1d1h1m1s1ms1us1ns", &ns), 0);
    ck_assert_uint_eq(ns, 694861001001001ull);
}
END_TEST

START_TEST(sizes_take_binary_units_alone)
{
    static const char *const malformed[] = {"", "KiB", "2MB", "2M", "2mib", "2 MiB", "-1", "2MiBs"};
    uint64_t bytes = 77;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        ck_assert_msg(base_parse_bytes(malformed[i], &bytes) == -EINVAL, "%s", malformed[i]);
    ck_assert_int_eq(base_parse_bytes("8388608TiB", &bytes), -ERANGE);
    ck_assert_uint_eq(bytes, 77);
    ck_assert_int_eq(base_parse_bytes("2MiB", &bytes), 0);
    ck_assert_uint_eq(bytes, 2097152);
    ck_assert_int_eq(base_parse_bytes("4096", &bytes), 0);
    ck_assert_uint_eq(bytes, 4096);
    ck_assert_int_eq(base_parse_bytes("8388607TiB", &bytes), 0);
}
END_TEST

START_TEST(gids_are_ipv6_or_ipv4_addresses_and_nothing_else)
{
    static const char *const malformed[] = {
        "",        "1.2.3",        "1.2.3.4.5",         "256.1.1.1", "01.2.3.4", " ::1",
        "::1 ",    "fe80::1%eth0", "fe80:::1",          "1::2::3",   "g::",      "[::1]",
        "12345::", "::ffff:1.2.3", "1:2:3:4:5:6:7:8:9", "localhost", "1.2.3.4/8"};
    uint8_t gid[16], kept[16];
    char text[BASE_GID_TEXT];
    memset(gid, 0x5a, sizeof gid);
    memset(kept, 0x5a, sizeof kept);
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        ck_assert_msg(base_gid_parse(malformed[i], gid) == -EINVAL, "%s", malformed[i]);
    ck_assert_mem_eq(gid, kept, sizeof gid);
    ck_assert_int_eq(base_gid_parse("10.0.0.255", gid), 0);
    static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 10, 0, 0, 255};
    ck_assert_mem_eq(gid, mapped, sizeof gid);
    ck_assert_str_eq(base_gid_format(gid, text), "::ffff:10.0.0.255");
    ck_assert_int_eq(base_gid_parse("FE80:0:0:0:0:0:0:1", gid), 0);
    ck_assert_str_eq(base_gid_format(gid, text), "fe80::1");
}
END_TEST

START_TEST(every_gid_survives_being_written_and_read)
{
    struct base_prng prng;
    base_prng_seed(&prng, 5);
    for (int round = 0; round < 10000; round++) {
        uint8_t gid[16], back[16];
        char text[BASE_GID_TEXT];
        for (int i = 0; i < 16; i++) /* many zeros, so that "::" is met everywhere */
            gid[i] = base_prng_below(&prng, 2) ? 0 : (uint8_t)base_prng_next(&prng);
        ck_assert_int_eq(base_gid_parse(base_gid_format(gid, text), back), 0);
        ck_assert_mem_eq(gid, back, 16);
    }
}
END_TEST

START_TEST(hex_takes_exactly_the_digits_that_were_asked_for)
{
    uint8_t bytes[3] = {0x5a, 0x5a, 0x5a};
    char text[7];
    ck_assert_int_eq(base_hex_decode("", bytes, 3), -EINVAL);
    ck_assert_int_eq(base_hex_decode("0102", bytes, 3), -EINVAL);
    ck_assert_int_eq(base_hex_decode("01020", bytes, 3), -EINVAL);
    ck_assert_int_eq(base_hex_decode("01020304", bytes, 3), -EINVAL);
    ck_assert_int_eq(base_hex_decode("0102g3", bytes, 3), -EINVAL);
    ck_assert_int_eq(base_hex_decode("010203 ", bytes, 3), -EINVAL);
    ck_assert_int_eq(base_hex_decode("0x0203", bytes, 3), -EINVAL);
    ck_assert_int_eq(base_hex_decode("01 203", bytes, 3), -EINVAL);
    ck_assert_uint_eq(bytes[0], 0x5a);
    ck_assert_int_eq(base_hex_decode("00fFA9", bytes, 3), 0);
    ck_assert_str_eq(base_hex_encode(bytes, 3, text), "00ffa9");
    ck_assert_int_eq(base_hex_decode("", bytes, 0), 0);
}
END_TEST

START_TEST(percent_escapes_are_whole_or_refused)
{
    static const char *const wrong[] = {"%", "%2", "%2g", "%g2", "% 2", "%-1", "%%2F"};
    uint8_t byte = 0x5a;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(base_percent_decode(wrong[i], &byte), -EINVAL);
    ck_assert_uint_eq(byte, 0x5a);
    ck_assert_int_eq(base_percent_decode("%2Fa", &byte), 3);
    ck_assert_uint_eq(byte, '/');
    ck_assert_int_eq(base_percent_decode("%e9", &byte), 3);
    ck_assert_uint_eq(byte, 0xe9);
    ck_assert_int_eq(base_percent_decode("%00", &byte), 3);
    ck_assert_uint_eq(byte, 0);
    ck_assert_int_eq(base_percent_decode("a%2F", &byte), 1);
    ck_assert_uint_eq(byte, 'a');
}
END_TEST

static int decode(enum base_base64 kind, const char *text, char *out, size_t capacity, size_t *n)
{
    return base_base64_decode(kind, text, strlen(text), out, capacity, n);
}

START_TEST(base64_matches_the_rfcs_vectors)
{
    static const char *const vectors[][3] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
        {"\xfb\xff", "+/8=", "-_8"},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        for (int kind = BASE_BASE64; kind <= BASE_BASE64URL; kind++) {
            char text[BASE_BASE64_TEXT(6)], back[8];
            size_t n, length = strlen(vectors[i][0]);
            size_t written =
                base_base64_encode((enum base_base64)kind, vectors[i][0], length, text);
            ck_assert_str_eq(text, vectors[i][kind + 1]);
            ck_assert_uint_eq(written, strlen(text));
            ck_assert_int_eq(decode((enum base_base64)kind, text, back, length, &n), 0);
            ck_assert_uint_eq(n, length);
            ck_assert_mem_eq(back, vectors[i][0], n);
        }
    }
}
END_TEST

START_TEST(base64_that_is_not_the_one_encoding_is_refused)
{
    static const char *const padded[] = {"Zg",   "Zg=",  "Zg===",    "Z===", "====",
                                         "Zh==", "Zm9=", "Zg==Zg==", "Z g=", "Zm9v\n",
                                         "-_8=", "=Zg=", "Zm8=="};
    static const char *const url[] = {"Z", "Zg==", "Zg=", "Zh", "Zm9", "+/8", "Zm9vZ", "Zm 9v"};
    char out[16];
    size_t n = 77;
    for (size_t i = 0; i < sizeof padded / sizeof *padded; i++)
        ck_assert_msg(decode(BASE_BASE64, padded[i], out, 16, &n) == -EINVAL, "%s", padded[i]);
    for (size_t i = 0; i < sizeof url / sizeof *url; i++)
        ck_assert_msg(decode(BASE_BASE64URL, url[i], out, 16, &n) == -EINVAL, "%s", url[i]);
    ck_assert_int_eq(base_base64_decode(BASE_BASE64URL, "Zm\0v", 4, out, 16, &n), -EINVAL);
    ck_assert_int_eq(decode(BASE_BASE64URL, "Zm9v", out, 2, &n), -EMSGSIZE);
    ck_assert_uint_eq(n, 77);
}
END_TEST

START_TEST(random_characters_decode_to_something_that_encodes_to_them_or_not_at_all)
{
    static const char some[] = "ABgh01+/-_= \n\x80";
    struct base_prng prng;
    unsigned decoded = 0;
    base_prng_seed(&prng, 6);
    for (int round = 0; round < 200000; round++) {
        char text[13] = {0}, again[BASE_BASE64_TEXT(9)];
        uint8_t bytes[9];
        size_t n, length = base_prng_below(&prng, 13);
        enum base_base64 kind = (enum base_base64)base_prng_below(&prng, 2);
        for (size_t i = 0; i < length; i++)
            text[i] = some[base_prng_below(&prng, sizeof some - 1)];
        if (base_base64_decode(kind, text, length, bytes, sizeof bytes, &n) != 0)
            continue;
        base_base64_encode(kind, bytes, n, again);
        ck_assert_str_eq(again, text);
        decoded++;
    }
    ck_assert_uint_gt(decoded, 1000);
}
END_TEST

START_TEST(ranges_are_written_with_units_and_without_ends_that_nobody_reaches)
{
    static const struct {
        enum base_unit unit;
        uint64_t min, max;
        const char *text;
    } cases[] = {
        {BASE_UNIT_NONE, 2, 32, "2 to 32"},
        {BASE_UNIT_NONE, 0, 1000000, "0 to 1000000"},
        {BASE_UNIT_NONE, 0, UINT64_C(1) << 30, ""},
        {BASE_UNIT_NONE, 1, UINT64_C(1) << 32, "1 or more"},
        {BASE_UNIT_BYTES, 65536, UINT64_C(1) << 32, "64KiB to 4GiB"},
        {BASE_UNIT_BYTES, 65536, UINT64_C(1) << 48, "64KiB or more"},
        {BASE_UNIT_BYTES, 65537, 1 << 21, "65537 to 2MiB"},
        {BASE_UNIT_NS, 0, UINT64_C(60000000000), "0 to 60s"},
        {BASE_UNIT_NS, 10000000, UINT64_C(3600000000000), "10ms to 1h"},
    };
    char text[BASE_RANGE_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_str_eq(base_range_format(cases[i].unit, cases[i].min, cases[i].max, text),
                         cases[i].text);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_text_grows_and_stops_at_its_bound_without_half_an_append)                                  \
    T(what_came_last_is_taken_back_with_its_error)                                                 \
    T(an_error_sticks_until_the_reset)                                                             \
    T(json_strings_escape_what_must_be_and_replace_what_is_no_utf8)                                \
    T(a_json_string_that_does_not_fit_leaves_nothing_behind)                                       \
    T(numbers_are_decimal_digits_in_range_or_refused)                                              \
    T(ranges_are_two_numbers_in_order_or_refused)                                                  \
    T(durations_need_a_known_unit_and_do_not_overflow)                                             \
    T(durations_may_have_parts_from_the_largest_unit_down)                                         \
    T(sizes_take_binary_units_alone)                                                               \
    T(gids_are_ipv6_or_ipv4_addresses_and_nothing_else)                                            \
    T(every_gid_survives_being_written_and_read)                                                   \
    T(hex_takes_exactly_the_digits_that_were_asked_for)                                            \
    T(percent_escapes_are_whole_or_refused)                                                        \
    T(base64_matches_the_rfcs_vectors)                                                             \
    T(base64_that_is_not_the_one_encoding_is_refused)                                              \
    T(random_characters_decode_to_something_that_encodes_to_them_or_not_at_all)                    \
    T(ranges_are_written_with_units_and_without_ends_that_nobody_reaches)
KEDGE_CHECK_MAIN("base text", TESTS)
