/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_writer.h"

#include <inttypes.h>
#include <string.h>

static bool wants_comma(const struct base_text *t)
{
    return t->length > 0 && strchr("{[:,\n", t->data[t->length - 1]) == NULL;
}

static void begin_value(struct base_text *t, const char *key)
{
    const char *comma = wants_comma(t) ? "," : "";
    base_text_append(t, comma, strlen(comma));
    if (key == NULL)
        return;
    base_text_append(t, "\"", 1);
    base_text_append(t, key, strlen(key));
    base_text_append(t, "\":", 2);
}

void base_json_object(struct base_text *t, const char *key)
{
    begin_value(t, key);
    base_text_append(t, "{", 1);
}

void base_json_object_end(struct base_text *t)
{
    base_text_append(t, "}", 1);
}

void base_json_array(struct base_text *t, const char *key)
{
    begin_value(t, key);
    base_text_append(t, "[", 1);
}

void base_json_array_end(struct base_text *t)
{
    base_text_append(t, "]", 1);
}

void base_json_string(struct base_text *t, const char *key, const char *value)
{
    begin_value(t, key);
    if (value == NULL)
        base_text_append(t, "null", 4);
    else
        base_text_json(t, value);
}

void base_json_u64(struct base_text *t, const char *key, uint64_t value)
{
    char digits[20]; /* of the largest */
    size_t at = sizeof digits;
    begin_value(t, key);
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    base_text_append(t, digits + at, sizeof digits - at);
}

void base_json_hex64(struct base_text *t, const char *key, uint64_t value)
{
    begin_value(t, key);
    base_text_printf(t, "\"%016" PRIx64 "\"", value);
}

void base_json_i64(struct base_text *t, const char *key, int64_t value)
{
    begin_value(t, key);
    base_text_printf(t, "%" PRId64, value);
}

void base_json_bool(struct base_text *t, const char *key, bool value)
{
    base_json_raw(t, key, value ? "true" : "false");
}

void base_json_null(struct base_text *t, const char *key)
{
    base_json_raw(t, key, "null");
}

void base_json_u64_or_null(struct base_text *t, const char *key, uint64_t value, uint64_t none)
{
    if (value == none)
        base_json_null(t, key);
    else
        base_json_u64(t, key, value);
}

void base_json_raw(struct base_text *t, const char *key, const char *json)
{
    begin_value(t, key);
    base_text_append(t, json, strlen(json));
}
