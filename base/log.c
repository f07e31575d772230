/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"

static const char *const names[] = {"error", "warn", "info", "debug"};
enum { LEVELS = sizeof names / sizeof names[0] };

static _Atomic int level_written = BASE_LOG_INFO;
static const char *_Atomic component_name = "kedge";
static _Atomic uint64_t dropped;

void base_log_init(const char *component, enum base_log_level level)
{
    atomic_store(&component_name, component);
    atomic_store(&level_written, (int)level);
}

static bool is_written(enum base_log_level level)
{
    return (int)level <= atomic_load_explicit(&level_written, memory_order_relaxed);
}

int base_log_parse_level(const char *text, enum base_log_level *level)
{
    for (int i = 0; i < LEVELS; i++) {
        if (strcmp(text, names[i]) == 0) {
            *level = (enum base_log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

uint64_t base_log_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

/* A pipe or a terminal that poll() calls writable takes BASE_LOG_LINE bytes (less than PIPE_BUF)
 * in one piece. */
static void write_line(const char *line, size_t length)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&p, 1, BASE_LOG_WAIT_MS) == 1 && (p.revents & POLLOUT) != 0 &&
        write(STDERR_FILENO, line, length) == (ssize_t)length)
        return;
    atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

/* "2026-01-31T12:00:00.123Z info kedge-agentd: event" */
static int format_head(char *line, size_t bytes, enum base_log_level level, const char *event)
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    int n = snprintf(line, bytes, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %s %s: %s",
                     utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                     utc.tm_sec, now.tv_nsec / 1000000, names[level],
                     atomic_load_explicit(&component_name, memory_order_relaxed), event);
    return n < 0 ? 0 : n;
}

enum { MARK = '\x01', OTHER_MARK = '\x02' };

/* The format with that in the place of its quotes, in so many bytes; 0: there is no room. */
static bool mark_quotes(const char *format, char mark, char out[BASE_LOG_LINE])
{
    const size_t length = strlen(format);
    if (length >= BASE_LOG_LINE)
        return false;
    for (size_t i = 0; i <= length; i++)
        out[i] = format[i] == '"' ? mark : format[i];
    return true;
}

/* The values' own quotes become apostrophes, so that none ends where it likes. Which quotes are the
 * format's is seen by formatting it twice with different marks in their place: what differs is one.
 * How long it is; what has no room is cut, and its value ends there. */
static size_t format_pairs(char *line, size_t bytes, const char *format, va_list args)
{
    char marked[BASE_LOG_LINE], other[BASE_LOG_LINE];
    va_list again;
    bool inside = false;
    if (!mark_quotes(format, MARK, marked))
        return 0;
    va_copy(again, args);
    const int n = vsnprintf(line, bytes, marked, args);
    (void)mark_quotes(format, OTHER_MARK, marked);
    const int same = vsnprintf(other, bytes, marked, again);
    va_end(again);
    if (n <= 0 || same != n)
        return 0;
    const size_t used = (size_t)n < bytes ? (size_t)n : bytes - 1;
    for (size_t i = 0; i < used; i++) {
        if (line[i] != other[i]) {
            line[i] = '"';
            inside = !inside;
        } else if (line[i] == '"') {
            line[i] = '\'';
        }
    }
    if (inside && line[used - 1] == '"') /* the one that begins it, and nothing behind */
        return used - 1;
    if (inside)
        line[used - 1] = '"';
    return used;
}

void base_log_v(enum base_log_level level, const char *event, const char *format, va_list args)
{
    if ((unsigned)level >= LEVELS || !is_written(level))
        return;
    int saved = errno;
    char line[BASE_LOG_LINE];
    const size_t room = sizeof line - 1; /* for the newline */
    size_t used = (size_t)format_head(line, room, level, event);
    if (used < room - 1 && format[0] != '\0') {
        line[used++] = ' ';
        used += format_pairs(line + used, room - used, format, args);
    }
    used = used > room - 1 ? room - 1 : used;
    used = base_make_printable(line, used);
    line[used++] = '\n';
    write_line(line, used);
    errno = saved;
}

void base_log(enum base_log_level level, const char *event, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    base_log_v(level, event, format, args);
    va_end(args);
}

bool base_log_allow(struct base_log_limit *limit, uint64_t now_ns, uint64_t period_ns,
                    uint32_t burst, uint32_t *suppressed)
{
    if (now_ns - limit->since_ns >= period_ns) {
        limit->since_ns = now_ns;
        limit->used = 0;
    }
    if (limit->used >= burst) {
        if (limit->suppressed < UINT32_MAX)
            limit->suppressed++;
        return false;
    }
    limit->used++;
    if (suppressed != NULL)
        *suppressed = limit->suppressed;
    limit->suppressed = 0;
    return true;
}

/* How many digits of a measure text begins with: a number and what it counts. */
static size_t measure_digits(const char *text)
{
    static const char *const units[] = {" ms",      " milliseconds", " s",
                                        " seconds", " bytes",        " out of"};
    const size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; digits > 0 && i < sizeof units / sizeof units[0]; i++) {
        const size_t length = strlen(units[i]);
        if (strncmp(text + digits, units[i], length) == 0 &&
            !isalpha((unsigned char)text[digits + length]))
            return digits;
    }
    return 0;
}

bool base_log_is_news(const char *before, const char *now)
{
    while (*before != '\0' && *now != '\0') {
        const size_t was = measure_digits(before), is = measure_digits(now);
        if (was > 0 && is > 0) {
            before += was;
            now += is;
        } else if (*before++ != *now++) {
            return true;
        }
    }
    return *before != *now;
}
