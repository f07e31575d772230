/* SPDX-License-Identifier: Apache-2.0 */
/* The log: what a line may hold, a stderr that takes nothing, and what is said again. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "../check_main.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"

enum { JSON_ROOM = 4 * BASE_LOG_LINE };

/* Replaces stderr by one end of a pipe, so small that it is soon full. */
static int capture_stderr(int *saved)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    *saved = dup(STDERR_FILENO);
    ck_assert_int_ge(*saved, 0);
    ck_assert_int_ge(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    return ends[0];
}

static void restore_stderr(int saved)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
}

START_TEST(a_log_line_is_one_line_whatever_its_values_hold)
{
    char line[2 * BASE_LOG_LINE] = {0}, longer[2 * BASE_LOG_LINE];
    int saved, from = capture_stderr(&saved);
    base_log_init("kedge-test", BASE_LOG_INFO);
    base_log(BASE_LOG_DEBUG, "not written", "a=%d", 1);
    base_log(BASE_LOG_WARN, "worker died", "pid=%d name=\"%s\"", 7, "x\nerror forged: \x1b[1m");
    ssize_t n = read(from, line, sizeof line - 1);
    ck_assert_int_gt(n, 0);
    ck_assert_ptr_nonnull(
        strstr(line, "Z warn kedge-test: worker died pid=7 name=\"x?error forged: ?[1m\"\n"));
    ck_assert_ptr_eq(strchr(line, '\n'), line + n - 1);
    base_log(BASE_LOG_WARN, "peer", "name=\"%s\"", "\xc2\x9b\x33\x31m\xe2\x80\xaegr\xc3\xbc\xff");
    n = read(from, line, sizeof line - 1);
    ck_assert_int_gt(n, 0);
    line[n] = '\0';
    ck_assert_ptr_nonnull(strstr(line, "kedge-test: peer name=\"?31m?gr\xc3\xbc?\"\n"));
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    base_log(BASE_LOG_ERROR, "long", "%s", longer);
    n = read(from, line, sizeof line - 1);
    ck_assert_int_le(n, BASE_LOG_LINE);
    ck_assert_int_eq(line[n - 1], '\n');
    restore_stderr(saved);
    close(from);
}
END_TEST

START_TEST(a_value_of_a_log_line_ends_where_its_quote_is)
{
    char line[2 * BASE_LOG_LINE] = {0};
    int saved, from = capture_stderr(&saved);
    base_log_init("kedge-test", BASE_LOG_INFO);
    base_log(BASE_LOG_WARN, "refused", "error=\"%s\" who=\"%s\" n=%d", "cannot listen on \"x y\"",
             "\"quoted\"", 7);
    ssize_t n = read(from, line, sizeof line - 1);
    ck_assert_int_gt(n, 0);
    ck_assert_ptr_nonnull(
        strstr(line, ": refused error=\"cannot listen on 'x y'\" who=\"'quoted'\" n=7\n"));
    restore_stderr(saved);
    close(from);
}
END_TEST

START_TEST(no_value_of_a_log_line_makes_a_pair_of_its_own)
{
    static const char forged[] = "none\" admin=\"1\" why=\"";
    char line[2 * BASE_LOG_LINE] = {0}, longer[2 * BASE_LOG_LINE];
    int saved, from = capture_stderr(&saved);
    base_log_init("kedge-test", BASE_LOG_INFO);
    base_log(BASE_LOG_WARN, "refused", "who=\"%s\" n=%d", forged, 7);
    ck_assert_int_gt(read(from, line, sizeof line - 1), 0);
    ck_assert_ptr_nonnull(strstr(line, ": refused who=\"none' admin='1' why='\" n=7\n"));
    memset(line, 0, sizeof line);
    base_log(BASE_LOG_WARN, "refused", "who=\"%s\"", "\x01 admin=\x02 x");
    ck_assert_int_gt(read(from, line, sizeof line - 1), 0);
    ck_assert_ptr_nonnull(strstr(line, ": refused who=\"? admin=? x\"\n"));
    memset(line, 0, sizeof line);
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    base_log(BASE_LOG_WARN, "refused", "who=\"%s\" n=%d", longer, 7);
    ck_assert_int_eq(read(from, line, sizeof line - 1), BASE_LOG_LINE - 1);
    ck_assert_ptr_nonnull(strstr(line, "xxx\"\n"));
    restore_stderr(saved);
    close(from);
}
END_TEST

/* Wherever the line is cut: in a value, at its quotes, between two. */
START_TEST(a_log_line_that_is_cut_has_no_quote_without_its_fellow)
{
    enum { AROUND = 100 };
    char line[2 * BASE_LOG_LINE], value[BASE_LOG_LINE + 1];
    int saved, from = capture_stderr(&saved);
    base_log_init("kedge-test", BASE_LOG_INFO);
    for (size_t length = BASE_LOG_LINE - AROUND; length <= BASE_LOG_LINE; length++) {
        int quotes = 0;
        memset(value, 'x', length);
        value[length] = '\0';
        base_log(BASE_LOG_WARN, "refused", "who=\"%s\" why=\"%s\" n=\"%d\"", value, "no", 7);
        const ssize_t n = read(from, line, sizeof line);
        ck_assert_int_gt(n, 0);
        ck_assert_int_le(n, BASE_LOG_LINE);
        for (ssize_t i = 0; i < n; i++)
            quotes += line[i] == '"';
        ck_assert_int_eq(quotes % 2, 0);
    }
    restore_stderr(saved);
    close(from);
}
END_TEST

START_TEST(a_full_stderr_costs_lines_and_not_the_program)
{
    char scrap[4096];
    int saved, from = capture_stderr(&saved);
    memset(scrap, 'x', sizeof scrap);
    ck_assert_int_eq(write(STDERR_FILENO, scrap, sizeof scrap), sizeof scrap);
    uint64_t begin = base_clock_ns(), before = base_log_dropped();
    base_log(BASE_LOG_ERROR, "lost", "n=%d", 1);
    ck_assert_uint_eq(base_log_dropped(), before + 1);
    ck_assert_uint_lt(base_clock_ns() - begin, 5 * BASE_NS_PER_S);
    restore_stderr(saved);
    close(from);
}
END_TEST

START_TEST(a_limit_lets_a_burst_through_and_counts_what_it_held_back)
{
    struct base_log_limit limit = {0};
    uint32_t suppressed = 77;
    unsigned allowed = 0;
    for (uint64_t now = 1000; now < 1010; now++)
        allowed += base_log_allow(&limit, now, 1000, 3, &suppressed);
    ck_assert_uint_eq(allowed, 3);
    ck_assert_uint_eq(suppressed, 0);
    ck_assert(base_log_allow(&limit, 2000, 1000, 3, &suppressed));
    ck_assert_uint_eq(suppressed, 7);
    ck_assert(base_log_allow(&limit, 2001, 1000, 3, &suppressed));
    ck_assert_uint_eq(suppressed, 0);
}
END_TEST

START_TEST(a_reason_with_other_measures_is_no_news)
{
    static const struct {
        const char *before, *now;
        bool news;
    } cases[] = {
        {"", "", false},
        {"refused after 0 ms: no", "refused after 31 ms: no", false},
        {"timed out after 1500 milliseconds with 0 out of 20 bytes received",
         "timed out after 99 milliseconds with 13 out of 7 bytes received", false},
        {"silent for 5 s", "silent for 15 s", false},
        {"refused after 0 ms: no", "refused after 31 ms: yes", true},
        {"refused after 0 ms", "refused after 0 ms: no", true},
        {"refused after 0 ms: no", "refused after 0 ms", true},
        {"409: no", "403: no", true},
        {"port 10 after 1 ms", "port 11 after 1 ms", true},
        {"5 s", "5 settings", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(base_log_is_news(cases[i].before, cases[i].now) == cases[i].news,
                      "\"%s\", \"%s\"", cases[i].before, cases[i].now);
}
END_TEST

START_TEST(log_levels_have_names)
{
    enum base_log_level level = BASE_LOG_INFO;
    ck_assert_int_eq(base_log_parse_level("debug", &level), 0);
    ck_assert_int_eq(level, BASE_LOG_DEBUG);
    ck_assert_int_eq(base_log_parse_level("Debug", &level), -EINVAL);
    ck_assert_int_eq(base_log_parse_level("", &level), -EINVAL);
    ck_assert_int_eq(level, BASE_LOG_DEBUG);
}
END_TEST

/* ---- as JSON */

/* One line of the log, which is one JSON object. The caller's. */
static json_t *read_object(int from, char line[2 * JSON_ROOM])
{
    json_error_t error;
    const ssize_t n = read(from, line, 2 * JSON_ROOM - 1);
    ck_assert_int_gt(n, 0);
    ck_assert_int_le(n, PIPE_BUF);
    line[n] = '\0';
    ck_assert_ptr_eq(strchr(line, '\n'), line + n - 1);
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(json_is_object(object), "%s: %s", error.text, line);
    static const char *const all[] = {"time", "level", "component", "message"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ck_assert_msg(json_is_string(json_object_get(object, all[i])), "%s: %s", all[i], line);
    return object;
}

static int capture_json(int *saved)
{
    const int from = capture_stderr(saved);
    base_log_init("kedge-test", BASE_LOG_INFO);
    base_log_set_format(BASE_LOG_JSON);
    return from;
}

static void end_json(int saved, int from)
{
    base_log_set_format(BASE_LOG_TEXT);
    restore_stderr(saved);
    close(from);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    ck_assert_msg(text != NULL, "%s is no string", key);
    return text;
}

START_TEST(a_line_of_json_has_a_member_for_each_pair)
{
    char line[2 * JSON_ROOM];
    int saved, from = capture_json(&saved);
    base_log(BASE_LOG_WARN, "worker died", "pid=%d id=%s bytes=%llu error=\"%s\" load=%.1f key=%x",
             -7, "12", 1ull << 40, "no \"more\" \\ room", 1.5, 16);
    json_t *o = read_object(from, line);
    ck_assert_ptr_nonnull(strstr(
        line, "Z\",\"level\":\"warn\",\"component\":\"kedge-test\",\"message\":\"worker "
              "died\",\"pid\":-7,"
              "\"id\":\"12\",\"bytes\":1099511627776,\"error\":\"no \\\"more\\\" \\\\ room\","
              "\"load\":\"1.5\",\"key\":\"10\"}\n"));
    ck_assert_uint_eq(strlen(text_of(o, "time")), strlen("2026-01-31T12:00:00.123Z"));
    json_decref(o);
    base_log(BASE_LOG_INFO, "ready", "%s", "");
    o = read_object(from, line);
    ck_assert_uint_eq(json_object_size(o), 4);
    json_decref(o);
    end_json(saved, from);
}
END_TEST

START_TEST(no_value_makes_a_member_of_its_own_or_another_line)
{
    static const char *const hostile[] = {"x\",\"level\":\"info",
                                          "x\nerror forged",
                                          "\x01 admin=\x02 x",
                                          "\\",
                                          "\"",
                                          "\\\"",
                                          "\xc2\x9b\x33\x31m\xe2\x80\xaegr\xc3\xbc\xff",
                                          "\xf0\x9f\x98",
                                          "a=1 level=2",
                                          ""};
    char line[2 * JSON_ROOM];
    int saved, from = capture_json(&saved);
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        base_log(BASE_LOG_WARN, "refused", "who=\"%s\" n=%d", hostile[i], 7);
        json_t *o = read_object(from, line);
        ck_assert_uint_eq(json_object_size(o), 6);
        ck_assert_str_eq(text_of(o, "level"), "warn");
        ck_assert_int_eq(json_integer_value(json_object_get(o, "n")), 7);
        json_decref(o);
    }
    base_log(BASE_LOG_WARN, "refused", "who=\"%s\"", "\xc2\x9b\x33\x31m\xe2\x80\xaegr\xc3\xbc\xff");
    json_t *o = read_object(from, line);
    ck_assert_str_eq(text_of(o, "who"), "?31m?gr\xc3\xbc?");
    json_decref(o);
    end_json(saved, from);
}
END_TEST

/* Of a format that has no quotes around it a value ends at a blank: what is behind it is no number
 * of the format's, and takes no member's place. */
START_TEST(what_is_no_pair_is_kept_in_a_member_of_its_own)
{
    char line[2 * JSON_ROOM];
    int saved, from = capture_json(&saved);
    base_log(BASE_LOG_WARN, "refused", "who=%s n=%u", "me level=debug n=9", 7);
    json_t *o = read_object(from, line);
    ck_assert_str_eq(text_of(o, "who"), "me");
    ck_assert_str_eq(text_of(o, "level"), "warn");
    ck_assert_str_eq(text_of(o, "more"), "level=debug n=9 n=7");
    json_decref(o);
    end_json(saved, from);
}
END_TEST

START_TEST(a_line_of_json_of_any_length_and_any_bytes_is_an_object)
{
    char line[2 * JSON_ROOM], value[2 * BASE_LOG_LINE];
    struct base_prng prng;
    int saved, from = capture_json(&saved);
    base_prng_seed(&prng, 1);
    for (int round = 0; round < 2000; round++) {
        const size_t length = base_prng_below(&prng, sizeof value);
        static const char some[] = "\"\\\"\\\x01= a";
        for (size_t i = 0; i < length; i++)
            value[i] = round % 2 == 0 ? (char)(1 + base_prng_below(&prng, 255))
                                      : some[base_prng_below(&prng, sizeof some - 1)];
        value[length] = '\0';
        base_log(BASE_LOG_ERROR, round % 3 == 0 ? "an event" : "e", "a=\"%s\" b=%s c=\"%s\"", value,
                 value + length / 2, value + length / 3);
        json_t *o = read_object(from, line);
        ck_assert_str_eq(text_of(o, "level"), "error");
        json_decref(o);
    }
    end_json(saved, from);
}
END_TEST

START_TEST(why_a_program_ends_is_a_sentence_or_an_object)
{
    char line[2 * JSON_ROOM] = {0};
    int saved, from = capture_stderr(&saved);
    base_log_fail("kedge-test", "there is no \"disk\"");
    ck_assert_int_gt(read(from, line, sizeof line - 1), 0);
    ck_assert_str_eq(line, "kedge-test: there is no \"disk\"\n");
    base_log_set_format(BASE_LOG_JSON);
    base_log_fail("kedge-test", "there is no \"disk\"");
    json_t *o = read_object(from, line);
    ck_assert_str_eq(text_of(o, "level"), "error");
    ck_assert_str_eq(text_of(o, "error"), "there is no \"disk\"");
    json_decref(o);
    end_json(saved, from);
}
END_TEST

START_TEST(formats_of_the_log_have_names)
{
    enum base_log_format format = BASE_LOG_TEXT;
    ck_assert_int_eq(base_log_parse_format("json", &format), 0);
    ck_assert_int_eq(format, BASE_LOG_JSON);
    ck_assert_int_eq(base_log_parse_format("JSON", &format), -EINVAL);
    ck_assert_int_eq(base_log_parse_format("", &format), -EINVAL);
    ck_assert_int_eq(format, BASE_LOG_JSON);
    ck_assert_int_eq(base_log_parse_format("text", &format), 0);
    ck_assert_int_eq(format, BASE_LOG_TEXT);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_log_line_is_one_line_whatever_its_values_hold)                                             \
    T(a_value_of_a_log_line_ends_where_its_quote_is)                                               \
    T(no_value_of_a_log_line_makes_a_pair_of_its_own)                                              \
    T(a_log_line_that_is_cut_has_no_quote_without_its_fellow)                                      \
    T(a_full_stderr_costs_lines_and_not_the_program)                                               \
    T(a_limit_lets_a_burst_through_and_counts_what_it_held_back)                                   \
    T(a_reason_with_other_measures_is_no_news)                                                     \
    T(log_levels_have_names)                                                                       \
    T(a_line_of_json_has_a_member_for_each_pair)                                                   \
    T(no_value_makes_a_member_of_its_own_or_another_line)                                          \
    T(what_is_no_pair_is_kept_in_a_member_of_its_own)                                              \
    T(a_line_of_json_of_any_length_and_any_bytes_is_an_object)                                     \
    T(why_a_program_ends_is_a_sentence_or_an_object)                                               \
    T(formats_of_the_log_have_names)
KEDGE_CHECK_MAIN("base log", TESTS)
