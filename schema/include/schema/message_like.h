/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of messages of one stream that have a payload behind them and say nothing else: no
 * immediate, no parts, no WRITE, no counter, and they do not open it. Most are so, and they differ
 * in their length, credit and number alone: so the next one is written, or known, by a few words,
 * and not field by field (schema/message.h has the fields). Pure. */
#ifndef SCHEMA_MESSAGE_LIKE_H
#define SCHEMA_MESSAGE_LIKE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "schema/message.h"

/* As it is on the wire, in this host's order, with 0 in the place of what differs. Zeroed, none is
 * like it. */
struct schema_message_like {
    uint64_t word[SCHEMA_MESSAGE_BYTES / 8];
};

/* Where words have a half that differs, the other one is the same. */
enum {
    SCHEMA_LIKE_LENGTH = 0, /* in the upper half: of magic, version and kind */
    SCHEMA_LIKE_CREDIT = 1, /* in the upper half: of the epoch */
    SCHEMA_LIKE_STREAM = 2,
    SCHEMA_LIKE_TO = 3,
    SCHEMA_LIKE_NUMBER = 4, /* in the lower half: of to_incarnation */
    SCHEMA_LIKE_TENANTS = 5,
    SCHEMA_LIKE_MORE = 6 /* from here on 0 */
};

/* What all messages have in common that are like m. m is to a port or a VQP. */
static inline struct schema_message_like schema_message_like_of(const struct schema_message *m)
{
    return (struct schema_message_like){
        .word = {[SCHEMA_LIKE_LENGTH] = (uint64_t)m->kind << 24 |
                                        (uint64_t)SCHEMA_MESSAGE_VERSION << 16 |
                                        SCHEMA_MESSAGE_MAGIC,
                 [SCHEMA_LIKE_CREDIT] = m->epoch,
                 [SCHEMA_LIKE_STREAM] = m->stream,
                 [SCHEMA_LIKE_TO] = m->to,
                 [SCHEMA_LIKE_NUMBER] = (uint64_t)m->to_incarnation << 32,
                 [SCHEMA_LIKE_TENANTS] = (uint64_t)m->from_tenant << 32 | m->to_tenant}};
}

/* One of them, into SCHEMA_MESSAGE_BYTES. */
static inline void schema_message_write_like(const struct schema_message_like *k, uint32_t length,
                                             uint32_t credit, uint32_t number, void *out)
{
    struct schema_message_like w = *k;
    w.word[SCHEMA_LIKE_LENGTH] |= (uint64_t)length << 32;
    w.word[SCHEMA_LIKE_CREDIT] |= (uint64_t)credit << 32;
    w.word[SCHEMA_LIKE_NUMBER] |= number;
    for (int i = 0; i < SCHEMA_MESSAGE_BYTES / 8; i++)
        w.word[i] = htole64(w.word[i]);
    memcpy(out, &w, sizeof w);
}

static inline uint64_t schema_message_word(const void *from, int word)
{
    uint64_t w;
    memcpy(&w, (const uint8_t *)from + word * 8, sizeof w);
    return le64toh(w);
}

/* Whether what is in SCHEMA_MESSAGE_BYTES is one of them, and what it says of its own. Its length
 * is still to be compared with what is behind it. */
static inline bool schema_message_is_like(const struct schema_message_like *k, const void *from,
                                          uint32_t *length, uint32_t *credit, uint32_t *number)
{
    const uint64_t a = schema_message_word(from, SCHEMA_LIKE_LENGTH);
    const uint64_t b = schema_message_word(from, SCHEMA_LIKE_CREDIT);
    const uint64_t c = schema_message_word(from, SCHEMA_LIKE_NUMBER);
    *length = (uint32_t)(a >> 32);
    *credit = (uint32_t)(b >> 32);
    *number = (uint32_t)c;
    return ((uint32_t)(a ^ k->word[SCHEMA_LIKE_LENGTH]) |
            (uint32_t)(b ^ k->word[SCHEMA_LIKE_CREDIT]) |
            (uint32_t)((c ^ k->word[SCHEMA_LIKE_NUMBER]) >> 32) |
            (schema_message_word(from, SCHEMA_LIKE_STREAM) ^ k->word[SCHEMA_LIKE_STREAM]) |
            (schema_message_word(from, SCHEMA_LIKE_TO) ^ k->word[SCHEMA_LIKE_TO]) |
            (schema_message_word(from, SCHEMA_LIKE_TENANTS) ^ k->word[SCHEMA_LIKE_TENANTS]) |
            schema_message_word(from, SCHEMA_LIKE_MORE) |
            schema_message_word(from, SCHEMA_LIKE_MORE + 1)) == 0;
}

#endif
