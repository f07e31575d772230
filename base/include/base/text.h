/* SPDX-License-Identifier: Apache-2.0 */
/* A text that grows up to a bound, and strict conversions between text and values.
 *
 * Parsers take the whole string or nothing: no leading or trailing blanks, no sign, no overflow;
 * outputs are untouched on failure. Any thread; a text belongs to one thread at a time. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Owns data. `error` sticks (0, -EMSGSIZE at the bound, -ENOMEM): append without looking, and ask
 * once at the end. What did not fit whole was not appended at all. */
struct base_text {
    char *data; /* NUL-terminated; NULL until something was appended */
    size_t length;
    size_t capacity;
    size_t max; /* of length, without the NUL */
    int error;
};

void base_text_init(struct base_text *t, size_t max_bytes);
void base_text_fini(struct base_text *t);
/* Empties it and forgets the error; keeps the memory. */
void base_text_reset(struct base_text *t);
/* Takes back what came after the first `length` bytes, and an error with it. */
void base_text_cut(struct base_text *t, size_t length);
/* The text so far, never NULL; borrowed until the next change. */
const char *base_text_str(const struct base_text *t);

/* Each returns t->error. */
int base_text_append(struct base_text *t, const void *bytes, size_t length);
int base_text_printf(struct base_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* string as a JSON string, quotes included. What is not printable (base/printable.h) is escaped;
 * bytes that are not UTF-8 become U+FFFD. */
int base_text_json(struct base_text *t, const char *string);
/* JSON that somebody else wrote, for a terminal: the same is escaped in its strings. */
int base_text_plain_json(struct base_text *t, const char *json);

/* Decimal digits alone. 0; -EINVAL for anything else; -ERANGE outside min .. max. */
int base_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* Whether text is the name of a node, tenant, pool, window or token: 1 to max characters of a-z,
 * 0-9,
 * '.' and '-', the first of them a letter or a digit. 0 or -EINVAL. */
int base_parse_name(const char *text, size_t max);
/* "1000-1999": both of at most max. 0; -EINVAL for anything else; -ERANGE above max, or when the
 * first is the greater one. */
int base_parse_range(const char *text, uint64_t max, uint64_t *first, uint64_t *last);
/* "250ns", "20us", "20ms", "1s", "5m", "2h", "7d", "1w" -> nanoseconds; also several of them from
 * the largest unit down, as "1w2d" or "1h30m"; "0" needs no unit. -EINVAL, -ERANGE above 2^63 - 1.
 */
int base_parse_duration(const char *text, uint64_t *out_ns);
/* "4096", "4096B", "64KiB", "2MiB", "1GiB", "1TiB" -> bytes. -EINVAL, -ERANGE above 2^63 - 1. */
int base_parse_bytes(const char *text, uint64_t *out);

enum { BASE_GID_TEXT = 46 }; /* with the NUL */
/* An IPv6 address, or an IPv4 address (which becomes ::ffff:a.b.c.d), to 16 bytes in network order.
 * 0 or -EINVAL. */
int base_gid_parse(const char *text, uint8_t gid[16]);
/* The shortest IPv6 form. Returns out. */
const char *base_gid_format(const uint8_t gid[16], char out[BASE_GID_TEXT]);

/* 2 * length digits and a NUL; out has 2 * length + 1 bytes. Returns out. */
const char *base_hex_encode(const void *bytes, size_t length, char *out);
/* Exactly 2 * length digits, of either case. 0 or -EINVAL. */
int base_hex_decode(const char *text, void *bytes, size_t length);

/* The byte that a URL's text has here: "%2F" is one, and whatever is no '%' is itself. Returns how
 * many characters say it, 1 or 3, or -EINVAL: '%' without two digits behind it. */
int base_percent_decode(const char *text, uint8_t *byte);

enum base_base64 {
    BASE_BASE64,    /* RFC 4648 section 4: '+', '/', padded */
    BASE_BASE64URL, /* section 5: '-', '_', without padding */
};
/* Characters and NUL for so many bytes. */
#define BASE_BASE64_TEXT(bytes) (((bytes) + 2) / 3 * 4 + 1)
/* out has BASE_BASE64_TEXT(length) bytes. Returns the text's length, without the NUL. */
size_t base_base64_encode(enum base_base64 kind, const void *bytes, size_t length, char *out);
/* Decodes text_length characters into bytes (of capacity bytes); *length is how many came out. One
 * encoding only: stray bits, wrong or missing padding and foreign characters are -EINVAL; too long
 * for capacity is -EMSGSIZE (bytes may then be partly written). */
int base_base64_decode(enum base_base64 kind, const char *text, size_t text_length, void *bytes,
                       size_t capacity, size_t *length);

#endif
