/* SPDX-License-Identifier: Apache-2.0 */
/* The log: what a line may hold, a stderr that takes nothing, and what is said again. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../check_main.h"
#include "base/clock.h"
#include "base/log.h"

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

#define TESTS(T)                                                                                   \
    T(a_log_line_is_one_line_whatever_its_values_hold)                                             \
    T(a_value_of_a_log_line_ends_where_its_quote_is)                                               \
    T(no_value_of_a_log_line_makes_a_pair_of_its_own)                                              \
    T(a_log_line_that_is_cut_has_no_quote_without_its_fellow)                                      \
    T(a_full_stderr_costs_lines_and_not_the_program)                                               \
    T(a_limit_lets_a_burst_through_and_counts_what_it_held_back)                                   \
    T(a_reason_with_other_measures_is_no_news)                                                     \
    T(log_levels_have_names)
KEDGE_CHECK_MAIN("base log", TESTS)
