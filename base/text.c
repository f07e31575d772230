/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/printable.h"

enum { FIRST_CAPACITY = 256 };

void base_text_init(struct base_text *t, size_t max_bytes)
{
    *t = (struct base_text){.max = max_bytes < SIZE_MAX ? max_bytes : SIZE_MAX - 1};
}

void base_text_fini(struct base_text *t)
{
    free(t->data);
    *t = (struct base_text){.max = t->max};
}

void base_text_cut(struct base_text *t, size_t length)
{
    BASE_ASSERT(length <= t->length);
    t->length = length;
    t->error = 0;
    if (t->data != NULL)
        t->data[length] = '\0';
}

void base_text_reset(struct base_text *t)
{
    base_text_cut(t, 0);
}

const char *base_text_str(const struct base_text *t)
{
    return t->data == NULL ? "" : t->data;
}

/* Room for `more` bytes and the NUL. Fails without changing the text. */
static int reserve_bytes(struct base_text *t, size_t more)
{
    if (t->error != 0)
        return t->error;
    if (more > t->max - t->length)
        return t->error = -EMSGSIZE;
    size_t needed = t->length + more + 1;
    if (needed <= t->capacity)
        return 0;
    size_t capacity = t->capacity == 0 ? FIRST_CAPACITY : t->capacity;
    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    if (capacity > t->max + 1)
        capacity = t->max + 1;
    char *data = realloc(t->data, capacity);
    if (data == NULL)
        return t->error = -ENOMEM;
    t->data = data;
    t->capacity = capacity;
    return 0;
}

int base_text_append(struct base_text *t, const void *bytes, size_t length)
{
    if (reserve_bytes(t, length) != 0)
        return t->error;
    if (length > 0)
        memcpy(t->data + t->length, bytes, length);
    t->length += length;
    t->data[t->length] = '\0';
    return 0;
}

int base_text_printf(struct base_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0)
        return t->error = t->error != 0 ? t->error : -EINVAL;
    if (reserve_bytes(t, (size_t)n) != 0)
        return t->error;
    va_start(args, format);
    vsnprintf(t->data + t->length, (size_t)n + 1, format, args);
    va_end(args);
    t->length += (size_t)n;
    return 0;
}

/* A character that is no printable one, as JSON strings may have it; none of them is above U+FFFF.
 */
static void append_escape(struct base_text *t, uint32_t code)
{
    if (code == BASE_NO_CHARACTER)
        base_text_append(t, "\xef\xbf\xbd", 3);
    else
        base_text_printf(t, "\\u%04x", (unsigned)code);
}

/* Appends one character of string, escaped; returns how many bytes it was. */
static size_t append_json_character(struct base_text *t, const char *p, size_t length)
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* character, letter */
    for (size_t i = 0; i < sizeof shorts - 1; i += 2) {
        if (*p == shorts[i]) {
            base_text_printf(t, "\\%c", shorts[i + 1]);
            return 1;
        }
    }
    uint32_t code;
    const size_t n = base_character_read(p, length, &code);
    if (base_character_is_printable(code))
        base_text_append(t, p, n);
    else
        append_escape(t, code);
    return n;
}

int base_text_json(struct base_text *t, const char *string)
{
    size_t before = t->length;
    base_text_append(t, "\"", 1);
    const char *end = string + strlen(string);
    for (const char *p = string; p < end && t->error == 0;)
        p += append_json_character(t, p, (size_t)(end - p));
    if (base_text_append(t, "\"", 1) != 0 && t->data != NULL) {
        t->length = before; /* whole or not at all */
        t->data[before] = '\0';
    }
    return t->error;
}

int base_text_plain_json(struct base_text *t, const char *json)
{
    const char *end = json + strlen(json);
    size_t n;
    for (const char *p = json; p < end && t->error == 0; p += n) {
        uint32_t code;
        n = base_character_read(p, (size_t)(end - p), &code);
        if (base_character_is_printable(code) || *p == '\n' || *p == '\r' || *p == '\t')
            base_text_append(t, p, n);
        else
            append_escape(t, code);
    }
    return t->error;
}
