/* SPDX-License-Identifier: Apache-2.0 */
/* One line a message on stderr: time, level, component, event, then key=value pairs; or the same as
 * one JSON object a line: members time, level, component and message, and one for each pair, a
 * number where the format gives it an integer (%d, %u, %llu), else a string.
 *
 * Any thread. A line is one write of at most BASE_LOG_LINE bytes; when stderr takes nothing for
 * BASE_LOG_WAIT_MS the line is dropped and counted, so that a full pipe never stops a daemon.
 * Control characters become '?' and in text the values' own quotes apostrophes, so that no value
 * can forge a line, nor a pair if the format has it in quotes. Level, component and format, which
 * main() sets once, and the count of lines that were dropped are the only state. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum base_log_level { BASE_LOG_ERROR, BASE_LOG_WARN, BASE_LOG_INFO, BASE_LOG_DEBUG };

enum {
    BASE_LOG_LINE = 1024,  /* bytes; what is longer is cut */
    BASE_LOG_WAIT_MS = 50, /* for a stderr that is full */
};

/* Names the program in each line (borrowed for ever: a literal) and sets the most detailed level
 * that is written. Before it: "kedge" and INFO. Call before other threads start. */
void base_log_init(const char *component, enum base_log_level level);

/* Lines are text until this is called, before other threads start. */
enum base_log_format { BASE_LOG_TEXT, BASE_LOG_JSON };
void base_log_set_format(enum base_log_format format);
/* "text", "json" -> format. 0, or -EINVAL. */
int base_log_parse_format(const char *text, enum base_log_format *format);

/* "error", "warn", "info", "debug" -> level. 0, or -EINVAL. */
int base_log_parse_level(const char *text, enum base_log_level *level);

/* event: a few words, without '='. format: shorter than a line, "key=%d other=\"%s\""; quote values
 * that may hold spaces. */
void base_log(enum base_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void base_log_v(enum base_log_level level, const char *event, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Why a program ends, as its last line: "program: sentence", or an object as above. */
void base_log_fail(const char *program, const char *sentence);

/* Lines that were dropped since the program started. */
uint64_t base_log_dropped(void);

/* At most `burst` messages in each `period_ns`; the state is the caller's, zeroed to begin, and of
 * one thread. */
struct base_log_limit {
    uint64_t since_ns;
    uint32_t used;
    uint32_t suppressed;
};

/* Whether to log now. When it says yes, *suppressed (may be NULL) is how many were held back since
 * the last yes: log it as suppressed=%u. */
bool base_log_allow(struct base_log_limit *limit, uint64_t now_ns, uint64_t period_ns,
                    uint32_t burst, uint32_t *suppressed);

/* Whether `now` says something else than `before`, and not the same with other measures alone:
 * "refused after 0 ms" and "refused after 31 ms" are one reason. */
bool base_log_is_news(const char *before, const char *now);

#endif
