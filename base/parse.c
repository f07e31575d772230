/* SPDX-License-Identifier: Apache-2.0 */
/* Strict conversions; declared in text.h. */
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* Reads digits up to *end. 0, -EINVAL without a digit, -ERANGE on overflow. */
static int parse_digits(const char *text, uint64_t *out, const char **end)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return -ERANGE;
    }
    if (p == text)
        return -EINVAL;
    *out = value;
    *end = p;
    return 0;
}

int base_parse_name(const char *text, size_t max)
{
    const size_t length = strlen(text);
    if (length < 1 || length > max || text[0] == '-' || text[0] == '.')
        return -EINVAL;
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-") == length ? 0 : -EINVAL;
}

int base_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    uint64_t value;
    const char *end;
    if (text[strspn(text, "0123456789")] != '\0')
        return -EINVAL;
    int status = parse_digits(text, &value, &end);
    if (status != 0)
        return status;
    if (value < min || value > max)
        return -ERANGE;
    *out = value;
    return 0;
}

int base_parse_range(const char *text, uint64_t max, uint64_t *first, uint64_t *last)
{
    uint64_t a, b;
    const char *end;
    int status = parse_digits(text, &a, &end);
    if (status != 0)
        return status;
    if (*end != '-')
        return -EINVAL;
    status = base_parse_u64(end + 1, 0, max, &b);
    if (status != 0)
        return status;
    if (a > b)
        return -ERANGE;
    *first = a;
    *last = b;
    return 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* A number and one of the units. */
static int parse_scaled(const char *text, const struct unit *units, size_t count, uint64_t *out)
{
    const char *name = text + strspn(text, "0123456789");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, units[i].name) != 0)
            continue;
        uint64_t value;
        int status = parse_digits(text, &value, &name);
        if (status != 0)
            return status;
        if (__builtin_mul_overflow(value, units[i].factor, &value) || value > INT64_MAX)
            return -ERANGE;
        *out = value;
        return 0;
    }
    return -EINVAL;
}

/* Parts follow each other from the largest unit down, each unit once: what has them in another
 * order is more often a slip, such as an "m" for a "ms", than meant so. */
int base_parse_duration(const char *text, uint64_t *out_ns)
{
    static const struct unit units[] = {
        {"w", 7 * 86400 * 1000000000ull},
        {"d", 86400 * 1000000000ull},
        {"h", 3600 * 1000000000ull},
        {"m", 60 * 1000000000ull},
        {"s", 1000000000ull},
        {"ms", 1000000},
        {"us", 1000},
        {"ns", 1},
    };
    enum { UNITS = sizeof units / sizeof units[0] };
    uint64_t sum = 0;
    size_t next = 0; /* the largest unit that the next part may have */
    if (strcmp(text, "0") == 0) {
        *out_ns = 0;
        return 0;
    }
    do {
        uint64_t part;
        const size_t digits = strspn(text, "0123456789");
        const char *name = text + digits;
        const size_t chars = strcspn(name, "0123456789");
        while (next < UNITS &&
               (strlen(units[next].name) != chars || strncmp(name, units[next].name, chars) != 0))
            next++;
        if (next == UNITS)
            return -EINVAL;
        int status = parse_digits(text, &part, &name);
        if (status != 0)
            return status;
        if (__builtin_mul_overflow(part, units[next++].factor, &part) ||
            __builtin_add_overflow(sum, part, &sum) || sum > INT64_MAX)
            return -ERANGE;
        text = name + chars;
    } while (*text != '\0');
    *out_ns = sum;
    return 0;
}

int base_parse_bytes(const char *text, uint64_t *out)
{
    static const struct unit units[] = {
        {"", 1},
        {"B", 1},
        {"KiB", 1ull << 10},
        {"MiB", 1ull << 20},
        {"GiB", 1ull << 30},
        {"TiB", 1ull << 40},
    };
    return parse_scaled(text, units, sizeof units / sizeof units[0], out);
}

int base_gid_parse(const char *text, uint8_t gid[16])
{
    uint8_t v6[16], v4[4];
    if (inet_pton(AF_INET6, text, v6) == 1) {
        memcpy(gid, v6, 16);
        return 0;
    }
    if (inet_pton(AF_INET, text, v4) != 1)
        return -EINVAL;
    memset(gid, 0, 10);
    memset(gid + 10, 0xff, 2);
    memcpy(gid + 12, v4, 4);
    return 0;
}

const char *base_gid_format(const uint8_t gid[16], char out[BASE_GID_TEXT])
{
    _Static_assert(BASE_GID_TEXT >= INET6_ADDRSTRLEN, "the longest address fits");
    return inet_ntop(AF_INET6, gid, out, BASE_GID_TEXT);
}

const char *base_hex_encode(const void *bytes, size_t length, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = bytes;
    for (size_t i = 0; i < length; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * length] = '\0';
    return out;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int base_hex_decode(const char *text, void *bytes, size_t length)
{
    size_t digits = 0;
    while (digits <= 2 * length && hex_digit(text[digits]) >= 0)
        digits++;
    if (digits != 2 * length || text[digits] != '\0')
        return -EINVAL;
    uint8_t *p = bytes;
    for (size_t i = 0; i < length; i++)
        p[i] = (uint8_t)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
    return 0;
}

int base_percent_decode(const char *text, uint8_t *byte)
{
    char digits[3] = "";
    if (text[0] != '%') {
        *byte = (uint8_t)text[0];
        return 1;
    }
    memcpy(digits, text + 1, strnlen(text + 1, sizeof digits - 1));
    return base_hex_decode(digits, byte, 1) == 0 ? 3 : -EINVAL;
}

static const char alphabets[2][65] = {
    [BASE_BASE64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [BASE_BASE64URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

size_t base_base64_encode(enum base_base64 kind, const void *bytes, size_t length, char *out)
{
    const char *alphabet = alphabets[kind];
    const uint8_t *p = bytes;
    char *to = out;
    for (; length >= 3; length -= 3, p += 3) {
        *to++ = alphabet[p[0] >> 2];
        *to++ = alphabet[(p[0] & 3) << 4 | p[1] >> 4];
        *to++ = alphabet[(p[1] & 15) << 2 | p[2] >> 6];
        *to++ = alphabet[p[2] & 63];
    }
    if (length > 0) {
        uint8_t second = length == 2 ? p[1] : 0;
        *to++ = alphabet[p[0] >> 2];
        *to++ = alphabet[(p[0] & 3) << 4 | second >> 4];
        if (length == 2)
            *to++ = alphabet[(second & 15) << 2];
        for (; kind == BASE_BASE64 && (to - out) % 4 != 0;)
            *to++ = '=';
    }
    *to = '\0';
    return (size_t)(to - out);
}

/* What a character stands for, + 1; 0: nothing. A worker of hundreds decodes the tokens of all
 * others, of whose characters nobody can predict of which kind they are. */
#define LETTERS_AND_NUMBERS                                                                        \
    ['0'] = 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, ['A'] = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, \
    13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, ['a'] = 27, 28, 29, 30, 31, 32, 33,    \
    34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52
static const uint8_t digits_of[2][256] = {
    [BASE_BASE64] = {LETTERS_AND_NUMBERS, ['+'] = 63, ['/'] = 64},
    [BASE_BASE64URL] = {LETTERS_AND_NUMBERS, ['-'] = 63, ['_'] = 64},
};

/* The 24 bits of four characters, or -1. */
static int32_t decode_quad(const uint8_t digits[256], const char text[4])
{
    uint32_t bits = 0, wrong = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t digit = digits[(uint8_t)text[i]];
        wrong |= digit - 1;
        bits = bits << 6 | ((digit - 1) & 63);
    }
    return wrong > 63 ? -1 : (int32_t)bits;
}

int base_base64_decode(enum base_base64 kind, const char *text, size_t text_length, void *bytes,
                       size_t capacity, size_t *length)
{
    size_t digits = text_length;
    if (kind == BASE_BASE64) {
        if (text_length % 4 != 0)
            return -EINVAL;
        while (digits > 0 && text_length - digits < 2 && text[digits - 1] == '=')
            digits--;
    }
    if (digits % 4 == 1)
        return -EINVAL;
    size_t needed = digits / 4 * 3 + (digits % 4 == 0 ? 0 : digits % 4 - 1);
    if (needed > capacity)
        return -EMSGSIZE;
    uint8_t *to = bytes;
    for (; digits >= 4; digits -= 4, text += 4) {
        const int32_t bits = decode_quad(digits_of[kind], text);
        if (bits < 0)
            return -EINVAL;
        *to++ = (uint8_t)(bits >> 16);
        *to++ = (uint8_t)(bits >> 8);
        *to++ = (uint8_t)bits;
    }
    if (digits > 0) {
        char last[4] = {'A', 'A', 'A', 'A'}; /* which is 0 */
        memcpy(last, text, digits);
        const int32_t bits = decode_quad(digits_of[kind], last);
        if (bits < 0 || (bits & (digits == 2 ? 0xffff : 0xff)) != 0)
            return -EINVAL;
        *to++ = (uint8_t)(bits >> 16);
        if (digits == 3)
            *to = (uint8_t)(bits >> 8);
    }
    *length = needed;
    return 0;
}
