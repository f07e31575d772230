/* SPDX-License-Identifier: Apache-2.0 */
/* A line of the log as one JSON object. Private to base/log.c. No state. */
#ifndef BASE_LOG_JSON_H
#define BASE_LOG_JSON_H

#include <stddef.h>

#include "base/log.h"

/* A character of a line is at most two in a string, and a pair, which has a blank, a '=' and a
 * letter on either side, gains four. What comes before is less than the rest. So a line of
 * BASE_LOG_LINE has room, and a pipe (PIPE_BUF) takes it in one piece. */
enum { BASE_LOG_JSON_LINE = 3 * BASE_LOG_LINE };

/* In the place of the quotes that a format has around a value. */
enum { BASE_LOG_JSON_QUOTE = '\x01' };

struct base_log_words {
    const char *time, *level, *component;
    const char *event;
    const char *format; /* of the pairs: whether a value is a number it says, and not the value */
};

/* Writes it with a newline into out, of BASE_LOG_JSON_LINE bytes. pairs: length bytes as the format
 * has made them, but for its quotes. Returns how long it is. */
size_t base_log_json(const struct base_log_words *words, const char *pairs, size_t length,
                     char *out);

#endif
