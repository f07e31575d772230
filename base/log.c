/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"
#include "log_json.h"

static const char *const names[] = {"error", "warn", "info", "debug"};
enum { LEVELS = sizeof names / sizeof names[0] };

static _Atomic int level_written = BASE_LOG_INFO;
static const char *_Atomic component_name = "kedge";
static _Atomic int format_written = BASE_LOG_TEXT;
static _Atomic uint64_t dropped;

void base_log_init(const char *component, enum base_log_level level)
{
    atomic_store(&component_name, component);
    atomic_store(&level_written, (int)level);
}

void base_log_set_format(enum base_log_format format)
{
    atomic_store(&format_written, (int)format);
}

static bool is_json(void)
{
    return atomic_load_explicit(&format_written, memory_order_relaxed) == BASE_LOG_JSON;
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

int base_log_parse_format(const char *text, enum base_log_format *format)
{
    if (strcmp(text, "text") != 0 && strcmp(text, "json") != 0)
        return -EINVAL;
    *format = text[0] == 'j' ? BASE_LOG_JSON : BASE_LOG_TEXT;
    return 0;
}

uint64_t base_log_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

/* A pipe or a terminal that poll() calls writable takes what is not longer than PIPE_BUF in one
 * piece. */
_Static_assert(BASE_LOG_LINE <= PIPE_BUF && BASE_LOG_JSON_LINE <= PIPE_BUF, "in one piece");
static void write_line(const char *line, size_t length)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&p, 1, BASE_LOG_WAIT_MS) == 1 && (p.revents & POLLOUT) != 0 &&
        write(STDERR_FILENO, line, length) == (ssize_t)length)
        return;
    atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

enum { TIME_BYTES = 32 };

/* "2026-01-31T12:00:00.123Z" */
static void format_time(char out[TIME_BYTES])
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    const size_t used = strftime(out, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + used, TIME_BYTES - used, ".%03ldZ", now.tv_nsec / 1000000);
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

/* In the line the format's quotes are `quote`, and what is so of a value's own is `other`, so that
 * none ends where it likes. Which quotes are the format's is seen by formatting it twice with
 * different marks in their place: what differs is one. How long it is; what has no room is cut, and
 * its value ends there. */
static size_t format_pairs(char *line, size_t bytes, char quote, char other_quote,
                           const char *format, va_list args)
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
            line[i] = quote;
            inside = !inside;
        } else if (line[i] == quote) {
            line[i] = other_quote;
        }
    }
    if (inside && line[used - 1] == quote) /* the one that begins it, and nothing behind */
        return used - 1;
    if (inside)
        line[used - 1] = quote;
    return used;
}

static void write_text(const struct base_log_words *w, va_list args)
{
    char line[BASE_LOG_LINE];
    const size_t room = sizeof line - 1; /* for the newline */
    const int head =
        snprintf(line, room, "%s %s %s: %s", w->time, w->level, w->component, w->event);
    size_t used = head < 0 ? 0 : (size_t)head;
    if (used < room - 1 && w->format[0] != '\0') {
        line[used++] = ' ';
        used += format_pairs(line + used, room - used, '"', '\'', w->format, args);
    }
    used = used > room - 1 ? room - 1 : used;
    used = base_make_printable(line, used);
    line[used++] = '\n';
    write_line(line, used);
}

/* What is said of a thing is as long as it is in a line of text, at most. */
static void write_json(const struct base_log_words *w, va_list args)
{
    char pairs[BASE_LOG_LINE], line[BASE_LOG_JSON_LINE];
    const size_t event = strnlen(w->event, BASE_LOG_LINE);
    size_t used = 0;
    if (event + 2 < BASE_LOG_LINE && w->format[0] != '\0')
        used = format_pairs(pairs, sizeof pairs - event, BASE_LOG_JSON_QUOTE, '?', w->format, args);
    write_line(line, base_log_json(w, pairs, used, line));
}

void base_log_v(enum base_log_level level, const char *event, const char *format, va_list args)
{
    if ((unsigned)level >= LEVELS || !is_written(level))
        return;
    int saved = errno;
    char time[TIME_BYTES];
    format_time(time);
    const struct base_log_words words = {
        .time = time,
        .level = names[level],
        .component = atomic_load_explicit(&component_name, memory_order_relaxed),
        .event = event,
        .format = format};
    if (is_json())
        write_json(&words, args);
    else
        write_text(&words, args);
    errno = saved;
}

void base_log(enum base_log_level level, const char *event, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    base_log_v(level, event, format, args);
    va_end(args);
}

void base_log_fail(const char *program, const char *sentence)
{
    if (is_json())
        base_log(BASE_LOG_ERROR, "it cannot go on", "error=\"%s\"", sentence);
    else
        fprintf(stderr, "%s: %s\n", program, sentence);
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
