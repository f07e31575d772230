/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include <string.h>

/* 0: it is cut short, too long for its value, a surrogate, or above U+10FFFF. */
static size_t decode_character(const unsigned char *p, size_t length, uint32_t *code)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = p[0] < 0x80       ? 1
                     : p[0] >> 5 == 6  ? 2
                     : p[0] >> 4 == 14 ? 3
                     : p[0] >> 3 == 30 ? 4
                                       : 0;
    if (n == 0 || n > length)
        return 0;
    uint32_t value = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        value = value << 6 | (p[i] & 0x3f);
    }
    if (value < least[n] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return 0;
    *code = value;
    return n;
}

size_t base_character_read(const char *text, size_t length, uint32_t *code)
{
    const size_t n = decode_character((const unsigned char *)text, length, code);
    if (n > 0)
        return n;
    *code = BASE_NO_CHARACTER;
    return 1;
}

bool base_character_is_printable(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } controls[] = {{0, 0x1f},
                    {0x7f, 0x9f},
                    {0x61c, 0x61c},
                    {0x200e, 0x200f},
                    {0x2028, 0x202e},
                    {0x2066, 0x2069},
                    {0x110000, BASE_NO_CHARACTER}};
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++)
        if (code >= controls[i].first && code <= controls[i].last)
            return false;
    return true;
}

bool base_is_printable(const char *text)
{
    uint32_t code;
    while (*text > 0x1f && *text < 0x7f) /* as most names are, to their end */
        text++;
    const char *end = text + strlen(text);
    while (text < end) {
        text += base_character_read(text, (size_t)(end - text), &code);
        if (!base_character_is_printable(code))
            return false;
    }
    return true;
}

/* out may be text. */
static size_t copy_characters(char *out, size_t room, const char *text, size_t length)
{
    size_t used = 0;
    uint32_t code;
    for (size_t at = 0, n; at < length; at += n) {
        n = base_character_read(text + at, length - at, &code);
        const bool kept = base_character_is_printable(code);
        const size_t takes = kept ? n : 1;
        if (takes > room - used)
            break;
        if (kept)
            memmove(out + used, text + at, n);
        else
            out[used] = '?';
        used += takes;
    }
    return used;
}

size_t base_make_printable(char *text, size_t length)
{
    return copy_characters(text, length, text, length);
}

size_t base_copy_printable(char *out, size_t size, const char *text)
{
    const size_t used = text != NULL ? copy_characters(out, size - 1, text, strlen(text)) : 0;
    out[used] = '\0';
    return used;
}
