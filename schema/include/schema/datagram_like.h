/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams that say of one stream what was taken, and nothing else: that no credit is wanted, and
 * nothing stands behind. Most are so, and those of one peer differ in a few words alone: so the
 * next one is written, or known, by these, and not field by field (schema/message.h has the
 * fields). Pure. */
#ifndef SCHEMA_DATAGRAM_LIKE_H
#define SCHEMA_DATAGRAM_LIKE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "schema/message.h"

enum {
    SCHEMA_DATAGRAM_ONE_BYTES = SCHEMA_DATAGRAM_BYTES + SCHEMA_NOTE_BYTES,
    SCHEMA_DATAGRAM_GID_AT = 8, /* where it says whose it is */
    /* Its words. Where one has a half that differs, the other one is the same. */
    SCHEMA_ONE_GID = 1,     /* with the next one */
    SCHEMA_ONE_LIVES = 3,   /* whose it is; in the upper half whom it is for */
    SCHEMA_ONE_NUMBERS = 4, /* of its queue pair; in the upper half the key */
    SCHEMA_ONE_PURSE = 5,   /* settled in the upper half */
    SCHEMA_ONE_ACCOUNT = 6, /* in the upper half; below what is wanted, which is nothing */
    SCHEMA_ONE_GRANTED = 7, /* with what is used in the upper half: both differ */
    SCHEMA_ONE_ZERO = 8,    /* with the next one */
    SCHEMA_ONE_STREAM = 10,
    SCHEMA_ONE_NUMBER = 11, /* in the lower half: and no time to wait */
    SCHEMA_ONE_NOTE = 12,   /* kind and status; aside differs */
    SCHEMA_ONE_WORDS = 13
};

/* As it is on the wire, in this host's order, up to the account, without what is settled. Zeroed,
 * none is like it. */
struct schema_datagram_like {
    uint64_t word[SCHEMA_ONE_ACCOUNT + 1];
};

/* What differs. */
struct schema_datagram_one {
    uint32_t settled, granted, used, number;
    uint64_t stream;
    uint16_t aside;
};

static inline bool schema_datagram_is_one(const struct schema_datagram *d)
{
    return d->notes == 1 && d->note[0].kind == SCHEMA_NOTE_TAKEN && d->wants == 0 && d->behind == 0;
}

static inline uint64_t schema_datagram_word(const void *from, int word)
{
    uint64_t w;
    memcpy(&w, (const uint8_t *)from + word * 8, sizeof w);
    return le64toh(w);
}

static inline uint64_t schema_datagram_first_word(uint16_t pool, uint16_t lid)
{
    return (uint64_t)lid << 48 | (uint64_t)pool << 32 | 1u << 24 |
           (uint64_t)SCHEMA_MESSAGE_VERSION << 16 | SCHEMA_DATAGRAM_MAGIC;
}

static inline void schema_datagram_gid_words(const uint8_t gid[16], uint64_t word[2])
{
    word[0] = schema_datagram_word(gid, 0);
    word[1] = schema_datagram_word(gid, 1);
}

/* What all have in common that are like d, which is one. */
static inline struct schema_datagram_like schema_datagram_like_of(const struct schema_datagram *d)
{
    struct schema_datagram_like k = {
        .word = {[0] = schema_datagram_first_word(d->pool, d->lid),
                 [SCHEMA_ONE_LIVES] = (uint64_t)d->to_incarnation << 32 | d->from_incarnation,
                 [SCHEMA_ONE_NUMBERS] = (uint64_t)d->qkey << 32 | d->qpn,
                 [SCHEMA_ONE_PURSE] = d->purse_epoch,
                 [SCHEMA_ONE_ACCOUNT] = (uint64_t)d->account_epoch << 32}};
    schema_datagram_gid_words(d->from_gid, &k.word[SCHEMA_ONE_GID]);
    return k;
}

/* One of them, into SCHEMA_DATAGRAM_ONE_BYTES. */
static inline void schema_datagram_write_one(const struct schema_datagram_like *k,
                                             const struct schema_datagram_one *d, void *out)
{
    uint64_t w[SCHEMA_ONE_WORDS];
    memcpy(w, k->word, sizeof k->word);
    w[SCHEMA_ONE_PURSE] |= (uint64_t)d->settled << 32;
    w[SCHEMA_ONE_GRANTED] = (uint64_t)d->used << 32 | d->granted;
    w[SCHEMA_ONE_ZERO] = w[SCHEMA_ONE_ZERO + 1] = 0;
    w[SCHEMA_ONE_STREAM] = d->stream;
    w[SCHEMA_ONE_NUMBER] = d->number;
    w[SCHEMA_ONE_NOTE] = (uint64_t)d->aside << 16 | SCHEMA_NOTE_TAKEN;
    for (int i = 0; i < SCHEMA_ONE_WORDS; i++)
        w[i] = htole64(w[i]);
    memcpy(out, w, sizeof w);
}

/* Whether what is in SCHEMA_DATAGRAM_ONE_BYTES is one of them, and what it says of its own. */
static inline bool schema_datagram_is_like(const struct schema_datagram_like *k, const void *from,
                                           struct schema_datagram_one *d)
{
    const uint64_t purse = schema_datagram_word(from, SCHEMA_ONE_PURSE);
    const uint64_t granted = schema_datagram_word(from, SCHEMA_ONE_GRANTED);
    const uint64_t number = schema_datagram_word(from, SCHEMA_ONE_NUMBER);
    const uint64_t note = schema_datagram_word(from, SCHEMA_ONE_NOTE);
    uint64_t differs =
        (uint32_t)(purse ^ k->word[SCHEMA_ONE_PURSE]) | number >> 32 |
        ((note & ~((uint64_t)UINT16_MAX << 16)) ^ SCHEMA_NOTE_TAKEN) |
        (schema_datagram_word(from, SCHEMA_ONE_ACCOUNT) ^ k->word[SCHEMA_ONE_ACCOUNT]) |
        schema_datagram_word(from, SCHEMA_ONE_ZERO) |
        schema_datagram_word(from, SCHEMA_ONE_ZERO + 1);
    for (int i = 0; i < SCHEMA_ONE_PURSE; i++)
        differs |= schema_datagram_word(from, i) ^ k->word[i];
    d->settled = (uint32_t)(purse >> 32);
    d->granted = (uint32_t)granted;
    d->used = (uint32_t)(granted >> 32);
    d->number = (uint32_t)number;
    d->stream = schema_datagram_word(from, SCHEMA_ONE_STREAM);
    d->aside = (uint16_t)(note >> 16);
    return differs == 0;
}

#endif
