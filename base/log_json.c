/* SPDX-License-Identifier: Apache-2.0 */
#include "log_json.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/printable.h"

enum { PAIRS = 48 }; /* members of their own; what comes behind them is one text */

/* A part of the line. */
struct piece {
    const char *at;
    size_t length;
};

struct object {
    char *out;
    size_t used;
    struct piece keys[PAIRS];
    size_t count;
};

static struct piece piece_of(const char *text)
{
    return (struct piece){text, strnlen(text, BASE_LOG_LINE)};
}

static bool is_same(struct piece a, struct piece b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

static void append_bytes(struct object *o, const char *bytes, size_t length)
{
    BASE_ASSERT(length <= BASE_LOG_JSON_LINE - o->used);
    memcpy(o->out + o->used, bytes, length);
    o->used += length;
}

/* Of what is not printable '?' is left, as in lines of text. */
static void append_string(struct object *o, struct piece p)
{
    char text[BASE_LOG_LINE];
    BASE_ASSERT(p.length <= sizeof text);
    memcpy(text, p.at, p.length);
    const size_t length = base_make_printable(text, p.length);
    append_bytes(o, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\')
            append_bytes(o, "\\", 1);
        append_bytes(o, &text[i], 1);
    }
    append_bytes(o, "\"", 1);
}

static void append_key(struct object *o, struct piece key)
{
    append_bytes(o, o->used > 0 ? "," : "{", 1);
    append_string(o, key);
    append_bytes(o, ":", 1);
}

static void append_member(struct object *o, const char *key, const char *value)
{
    o->keys[o->count++] = piece_of(key);
    append_key(o, piece_of(key));
    append_string(o, piece_of(value));
}

static bool is_known(const struct object *o, struct piece key)
{
    for (size_t i = 0; i < o->count; i++)
        if (is_same(o->keys[i], key))
            return true;
    return false;
}

/* Whether the format gives that key an integer. */
static bool is_number_there(const char *format, struct piece key)
{
    for (const char *at = format; (at = strchr(at, '=')) != NULL; at++) {
        const size_t before = (size_t)(at - format);
        if (before < key.length || at[1] != '%' ||
            !is_same((struct piece){at - key.length, key.length}, key) ||
            (before > key.length && at[-(ptrdiff_t)key.length - 1] != ' '))
            continue;
        return strchr("diu", at[2 + strspn(at + 2, "hljzt")]) != NULL;
    }
    return false;
}

/* As JSON has them: 07 is none. */
static bool is_number(struct piece p)
{
    const size_t sign = p.length > 0 && p.at[0] == '-';
    size_t digits = 0;
    while (sign + digits < p.length && p.at[sign + digits] >= '0' && p.at[sign + digits] <= '9')
        digits++;
    return digits > 0 && sign + digits == p.length && (digits == 1 || p.at[sign] != '0');
}

/* What stands before a '='; its length is 0 if nothing does that a key may be. */
static struct piece read_key(const char *at, size_t left)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    size_t length = 0;
    while (length < left && memchr(letters, at[length], sizeof letters - 1) != NULL)
        length++;
    return (struct piece){at, length < left && at[length] == '=' ? length : 0};
}

/* Up to the format's second quote, if it has quotes there, or the next blank. */
static struct piece read_value(const char *at, size_t left, bool *quoted)
{
    *quoted = left > 0 && at[0] == BASE_LOG_JSON_QUOTE;
    const char *from = at + *quoted;
    left -= *quoted;
    const char *end = memchr(from, *quoted ? BASE_LOG_JSON_QUOTE : ' ', left);
    return (struct piece){from, end != NULL ? (size_t)(end - from) : left};
}

/* How many bytes that took; 0: it is no pair, or one of a name that is there. */
static size_t append_pair(struct object *o, const char *format, const char *at, size_t left)
{
    bool quoted;
    const struct piece key = read_key(at, left);
    if (key.length == 0 || o->count == PAIRS || is_known(o, key))
        return 0;
    const size_t begun = key.length + 1;
    const struct piece value = read_value(at + begun, left - begun, &quoted);
    o->keys[o->count++] = key;
    append_key(o, key);
    if (!quoted && is_number(value) && is_number_there(format, key))
        append_bytes(o, value.at, value.length);
    else
        append_string(o, value);
    const size_t took = begun + quoted + value.length;
    return quoted && took < left ? took + 1 : took;
}

size_t base_log_json(const struct base_log_words *words, const char *pairs, size_t length,
                     char *out)
{
    struct object o = {.out = out};
    append_member(&o, "time", words->time);
    append_member(&o, "level", words->level);
    append_member(&o, "component", words->component);
    append_member(&o, "message", words->event);
    for (size_t at = 0; at < length;) {
        if (pairs[at] == ' ') {
            at++;
            continue;
        }
        const size_t took = append_pair(&o, words->format, pairs + at, length - at);
        if (took == 0) {
            if (!is_known(&o, piece_of("more"))) {
                append_key(&o, piece_of("more"));
                append_string(&o, (struct piece){pairs + at, length - at});
            }
            break;
        }
        at += took;
    }
    append_bytes(&o, "}\n", 2);
    return o.used;
}
