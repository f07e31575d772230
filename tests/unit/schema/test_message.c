/* SPDX-License-Identifier: Apache-2.0 */
/* Messages' headers and datagrams: what was written is read again, and nothing else is. */
#include "schema/message.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "../check_main.h"
#include "base/random.h"
#include "schema/datagram_like.h"
#include "schema/message_like.h"

enum { MOST = SCHEMA_DATAGRAM_BYTES + SCHEMA_DATAGRAM_NOTES * SCHEMA_NOTE_BYTES };

static struct schema_message example(void)
{
    return (struct schema_message){.kind = SCHEMA_MESSAGE_TO_PORT,
                                   .with_imm = 1,
                                   .opens = 1,
                                   .length = 8,
                                   .epoch = 0x01020304,
                                   .credit = 5,
                                   .stream = 0x1122334455667788,
                                   .number = 6,
                                   .to_incarnation = 7,
                                   .to = 80,
                                   .to_tenant = 0x80000001,
                                   .from_tenant = 0x80000002,
                                   .imm = 0xdeadbeef};
}

static struct schema_datagram example_datagram(void)
{
    return (struct schema_datagram){
        .from_gid = {0xfd, [15] = 1},
        .from_incarnation = 100,
        .to_incarnation = 200,
        .pool = 1,
        .lid = 2,
        .qpn = 0xabcdef,
        .qkey = 4,
        .purse_epoch = 5,
        .settled = 6,
        .wants = 7,
        .account_epoch = 8,
        .granted = 9,
        .used = 7,
        .notes = 2,
        .note = {
            {.stream = 10, .number = 11, .wait_us = 12, .kind = SCHEMA_NOTE_REFUSED},
            {.stream = 13, .number = 14, .kind = SCHEMA_NOTE_FAILED, .status = IBV_WC_REM_OP_ERR}}};
}

static int read_copy(const uint8_t *bytes, size_t n, struct schema_message *out)
{
    uint8_t *copy = malloc(n != 0 ? n : 1); /* that a byte too many is seen */
    memcpy(copy, bytes, n);
    const int status = schema_message_read(copy, n, out);
    free(copy);
    return status;
}

static int read_datagram_copy(const uint8_t *bytes, size_t n, struct schema_datagram *out)
{
    uint8_t *copy = malloc(n != 0 ? n : 1);
    memcpy(copy, bytes, n);
    const int status = schema_datagram_read(copy, n, out);
    free(copy);
    return status;
}

START_TEST(the_bytes_of_a_header_are_pinned)
{
    static const uint8_t pinned[SCHEMA_MESSAGE_BYTES] = {
        0x4b, 0x4d, 1,    1,    8,    0,    0,    0,    4,  3, 2, 1,    5, 0, 0, 0,
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 80, 0, 0, 0,    0, 0, 0, 0,
        6,    0,    0,    0,    7,    0,    0,    0,    1,  0, 0, 0x80, 2, 0, 0, 0x80,
        0xef, 0xbe, 0xad, 0xde, 1,    1,    0,    0,    0,  0, 0, 0,    0, 0, 0, 0};
    const struct schema_message m = example();
    uint8_t bytes[SCHEMA_MESSAGE_BYTES];
    schema_message_write(&m, bytes);
    ck_assert_mem_eq(bytes, pinned, sizeof bytes);
}
END_TEST

START_TEST(what_was_written_is_read_again)
{
    const struct schema_message m = example();
    uint8_t bytes[SCHEMA_MESSAGE_BYTES + 8] = {0}, again[SCHEMA_MESSAGE_BYTES];
    struct schema_message got;
    schema_message_write(&m, bytes);
    ck_assert_int_eq(read_copy(bytes, sizeof bytes, &got), 0);
    schema_message_write(&got, again);
    ck_assert_mem_eq(bytes, again, sizeof again);

    const struct schema_datagram d = example_datagram();
    struct schema_datagram got_datagram;
    uint8_t datagram[MOST], datagram_again[MOST];
    const size_t n = schema_datagram_write(&d, datagram);
    ck_assert_uint_eq(n, SCHEMA_DATAGRAM_BYTES + 2 * SCHEMA_NOTE_BYTES);
    ck_assert_int_eq(read_datagram_copy(datagram, n, &got_datagram), 0);
    ck_assert_uint_eq(schema_datagram_write(&got_datagram, datagram_again), n);
    ck_assert_mem_eq(datagram, datagram_again, n);
}
END_TEST

START_TEST(a_length_that_is_not_what_came_is_refused)
{
    const struct schema_message m = example();
    uint8_t bytes[SCHEMA_MESSAGE_BYTES + 16] = {0};
    struct schema_message got;
    schema_message_write(&m, bytes);
    for (size_t n = 0; n <= sizeof bytes; n++)
        ck_assert_int_eq(read_copy(bytes, n, &got),
                         n == SCHEMA_MESSAGE_BYTES + m.length ? 0 : -EPROTO);

    const struct schema_datagram d = example_datagram();
    struct schema_datagram got_datagram;
    uint8_t datagram[MOST] = {0};
    const size_t whole = schema_datagram_write(&d, datagram);
    for (size_t n = 0; n <= MOST; n++)
        ck_assert_int_eq(read_datagram_copy(datagram, n, &got_datagram), n == whole ? 0 : -EPROTO);
}
END_TEST

static const struct schema_part example_parts[] = {
    {.addr = 0x123456789, .length = 5, .vkey = 1},
    {.addr = UINT64_MAX - 3, .length = 3, .vkey = 2}};

/* Behind a header of 8 bytes in two parts. */
static int read_parts(const struct schema_part parts[2], struct schema_part *out)
{
    struct schema_message m = example(), got;
    uint8_t bytes[SCHEMA_MESSAGE_BYTES + 2 * SCHEMA_PART_BYTES];
    m.parts = 2;
    schema_message_write(&m, bytes);
    schema_parts_write(parts, 2, bytes + SCHEMA_MESSAGE_BYTES);
    ck_assert_int_eq(read_copy(bytes, sizeof bytes, &got), 0);
    ck_assert_uint_eq(got.parts, 2);
    ck_assert_uint_eq(got.length, 8);
    return schema_parts_read(bytes + SCHEMA_MESSAGE_BYTES, &got, out);
}

START_TEST(parts_that_were_written_are_read_again)
{
    struct schema_part got[2];
    ck_assert_int_eq(read_parts(example_parts, got), 0);
    ck_assert_mem_eq(got, example_parts, sizeof got);
}
END_TEST

START_TEST(parts_that_are_not_the_message_are_refused)
{
    static const struct schema_part wrong[][2] = {
        {{.length = 5}, {.length = 4}},
        {{.length = 8}, {.length = 0}},
        {{.length = UINT32_MAX}, {.length = 9}},
        {{.length = 5}, {.addr = UINT64_MAX - 2, .length = 3}}, /* past the end */
    };
    struct schema_part got[2];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(read_parts(wrong[i], got) == -EPROTO, "parts %zu", i);
}
END_TEST

/* What is behind it is its parts, or its payload, and not both. */
START_TEST(a_header_with_parts_that_are_not_there_is_refused)
{
    struct schema_message m = example(), got;
    uint8_t bytes[SCHEMA_MESSAGE_BYTES + 4 * SCHEMA_PART_BYTES] = {0};
    for (m.parts = 1; m.parts <= SCHEMA_PARTS_MOST + 1; m.parts++) {
        schema_message_write(&m, bytes);
        for (size_t n = 0; n <= sizeof bytes; n++) {
            const bool whole = m.parts <= SCHEMA_PARTS_MOST &&
                               n == SCHEMA_MESSAGE_BYTES + (size_t)m.parts * SCHEMA_PART_BYTES;
            ck_assert_int_eq(read_copy(bytes, n, &got), whole ? 0 : -EPROTO);
        }
    }
}
END_TEST

static int read_changed(void (*change)(struct schema_message *m))
{
    struct schema_message m = example(), got;
    uint8_t bytes[SCHEMA_MESSAGE_BYTES + 8] = {0};
    change(&m);
    schema_message_write(&m, bytes);
    return read_copy(bytes, sizeof bytes, &got);
}

static void to_nobody(struct schema_message *m)
{
    m->kind = 0;
}
static void of_a_later_kind(struct schema_message *m)
{
    m->kind = SCHEMA_MESSAGE_TO_VQP + 1;
}
static void without_epoch(struct schema_message *m)
{
    m->epoch = 0;
}
static void without_stream(struct schema_message *m)
{
    m->stream = 0;
}
static void to_a_wide_port(struct schema_message *m)
{
    m->to = 1ull << 32;
}
static void to_no_vqp(struct schema_message *m)
{
    *m = (struct schema_message){
        .kind = SCHEMA_MESSAGE_TO_VQP, .epoch = 1, .stream = 1, .length = 8};
}
static void to_a_vqp_of_a_tenant(struct schema_message *m)
{
    m->kind = SCHEMA_MESSAGE_TO_VQP;
}
static void opening_twice(struct schema_message *m)
{
    m->opens = 2;
}
static void with_two_immediates(struct schema_message *m)
{
    m->with_imm = 2;
}
static void with_a_secret_immediate(struct schema_message *m)
{
    m->with_imm = 0;
}

START_TEST(a_field_out_of_its_range_is_refused)
{
    static void (*const changes[])(struct schema_message * m) = {to_nobody,
                                                                 of_a_later_kind,
                                                                 without_epoch,
                                                                 without_stream,
                                                                 to_a_wide_port,
                                                                 to_no_vqp,
                                                                 to_a_vqp_of_a_tenant,
                                                                 with_two_immediates,
                                                                 opening_twice,
                                                                 with_a_secret_immediate};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        ck_assert_msg(read_changed(changes[i]) == -EPROTO, "change %zu", i);
}
END_TEST

START_TEST(notes_that_make_no_sense_are_refused)
{
    static const struct schema_note wrong[] = {
        {.stream = 0, .kind = SCHEMA_NOTE_TAKEN},
        {.stream = 1, .kind = 0},
        {.stream = 1, .kind = SCHEMA_NOTE_READS + 1},
        {.stream = 1, .kind = SCHEMA_NOTE_FAILED}, /* with success */
        {.stream = 1, .kind = SCHEMA_NOTE_FAILED, .status = IBV_WC_GENERAL_ERR + 1},
        {.stream = 1, .kind = SCHEMA_NOTE_TAKEN, .status = IBV_WC_REM_OP_ERR},
        {.stream = 1, .kind = SCHEMA_NOTE_TAKEN, .wait_us = 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct schema_datagram d = example_datagram(), got;
        uint8_t bytes[MOST];
        d.note[1] = wrong[i];
        const size_t n = schema_datagram_write(&d, bytes);
        ck_assert_msg(read_datagram_copy(bytes, n, &got) == -EPROTO, "note %zu", i);
    }
}
END_TEST

START_TEST(a_datagram_of_nobody_or_with_too_many_notes_is_refused)
{
    struct schema_datagram d = example_datagram(), got;
    uint8_t bytes[MOST + SCHEMA_NOTE_BYTES] = {0};
    size_t n;
    d.qpn = 0;
    n = schema_datagram_write(&d, bytes);
    ck_assert_int_eq(read_datagram_copy(bytes, n, &got), -EPROTO);
    d.qpn = 1 << 24;
    n = schema_datagram_write(&d, bytes);
    ck_assert_int_eq(read_datagram_copy(bytes, n, &got), -EPROTO);
    d = example_datagram();
    d.from_incarnation = 0;
    n = schema_datagram_write(&d, bytes);
    ck_assert_int_eq(read_datagram_copy(bytes, n, &got), -EPROTO);
    d = example_datagram();
    (void)schema_datagram_write(&d, bytes);
    bytes[3] = SCHEMA_DATAGRAM_NOTES + 1;
    ck_assert_int_eq(read_datagram_copy(bytes, sizeof bytes, &got), -EPROTO);
}
END_TEST

START_TEST(another_version_is_told_from_what_is_none)
{
    const struct schema_message m = example();
    const struct schema_datagram d = example_datagram();
    struct schema_message got;
    struct schema_datagram got_datagram;
    uint8_t bytes[MOST] = {0};
    schema_message_write(&m, bytes);
    bytes[2]++;
    ck_assert_int_eq(read_copy(bytes, SCHEMA_MESSAGE_BYTES + 8, &got), -EPROTONOSUPPORT);
    bytes[0]++;
    ck_assert_int_eq(read_copy(bytes, SCHEMA_MESSAGE_BYTES + 8, &got), -EPROTO);
    const size_t n = schema_datagram_write(&d, bytes);
    bytes[2]++;
    ck_assert_int_eq(read_datagram_copy(bytes, n, &got_datagram), -EPROTONOSUPPORT);
    bytes[0]++;
    ck_assert_int_eq(read_datagram_copy(bytes, n, &got_datagram), -EPROTO);
}
END_TEST

/* Whatever comes, what is read is in its range. */
START_TEST(no_bytes_make_a_header_that_says_what_cannot_be)
{
    struct base_prng prng;
    base_prng_seed(&prng, 3);
    uint32_t read = 0;
    for (int i = 0; i < 200000; i++) {
        uint8_t bytes[SCHEMA_MESSAGE_BYTES + 8] = {0};
        const struct schema_message m = example();
        struct schema_message got;
        schema_message_write(&m, bytes);
        for (uint64_t flips = base_prng_next(&prng) % 4; flips > 0; flips--)
            bytes[base_prng_next(&prng) % sizeof bytes] = (uint8_t)base_prng_next(&prng);
        if (read_copy(bytes, sizeof bytes, &got) != 0)
            continue;
        read++;
        ck_assert_uint_eq(got.length, 8); /* one with parts has another number of bytes */
        ck_assert_uint_eq(got.parts, 0);
        ck_assert(got.epoch != 0 && got.stream != 0 && got.with_imm <= 1 && got.opens <= 1);
        ck_assert(got.kind == SCHEMA_MESSAGE_TO_PORT ? got.to <= UINT32_MAX : got.to != 0);
    }
    ck_assert_uint_gt(read, 50000);
}
END_TEST

/* Nothing special about it: as the next ones of its stream are. */
static struct schema_message plain_example(void)
{
    struct schema_message m = example();
    m.with_imm = m.opens = 0;
    m.imm = 0;
    return m;
}

START_TEST(what_is_written_as_one_more_is_the_header_field_by_field)
{
    struct schema_message m = plain_example();
    const struct schema_message_like like = schema_message_like_of(&m);
    uint8_t whole[SCHEMA_MESSAGE_BYTES], next[SCHEMA_MESSAGE_BYTES];
    for (uint32_t i = 0; i < 3; i++) {
        m.length = i * 0x10203;
        m.credit = UINT32_MAX - i;
        m.number = i << 31 | i;
        schema_message_write(&m, whole);
        schema_message_write_like(&like, m.length, m.credit, m.number, next);
        ck_assert_mem_eq(whole, next, sizeof whole);
        uint32_t length, credit, number;
        ck_assert(schema_message_is_like(&like, whole, &length, &credit, &number));
        ck_assert_uint_eq(length, m.length);
        ck_assert_uint_eq(credit, m.credit);
        ck_assert_uint_eq(number, m.number);
    }
}
END_TEST

/* Bit by bit: only its length, credit and number may be other ones. */
START_TEST(a_header_that_says_something_else_is_not_like_it)
{
    enum { LENGTH = 4, CREDIT = 12, NUMBER = 32 };
    const struct schema_message m = plain_example();
    const struct schema_message_like like = schema_message_like_of(&m), none = {.word = {0}};
    uint8_t bytes[SCHEMA_MESSAGE_BYTES];
    uint32_t length, credit, number;
    schema_message_write(&m, bytes);
    ck_assert(!schema_message_is_like(&none, bytes, &length, &credit, &number));
    for (uint32_t bit = 0; bit < SCHEMA_MESSAGE_BYTES * 8; bit++) {
        const uint32_t field = bit / 32 * 4;
        const bool differs = field == LENGTH || field == CREDIT || field == NUMBER;
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(schema_message_is_like(&like, bytes, &length, &credit, &number), differs);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}
END_TEST

static struct schema_datagram one_example(void)
{
    struct schema_datagram d = example_datagram();
    d.wants = 0;
    d.notes = 1;
    d.note[0] = (struct schema_note){.stream = 10, .number = 11, .kind = SCHEMA_NOTE_TAKEN};
    return d;
}

static struct schema_datagram_one one_of(const struct schema_datagram *d)
{
    return (struct schema_datagram_one){.settled = d->settled,
                                        .granted = d->granted,
                                        .used = d->used,
                                        .number = d->note[0].number,
                                        .stream = d->note[0].stream,
                                        .aside = d->note[0].aside};
}

START_TEST(what_is_said_of_one_stream_is_the_datagram_field_by_field)
{
    struct schema_datagram d = one_example();
    const struct schema_datagram_like like = schema_datagram_like_of(&d);
    uint8_t whole[MOST], next[SCHEMA_DATAGRAM_ONE_BYTES];
    ck_assert(schema_datagram_is_one(&d));
    for (uint32_t i = 0; i < 3; i++) {
        d.settled = UINT32_MAX - i;
        d.granted = i << 31 | i;
        d.used = i * 0x10203;
        d.note[0].number = i << 30 | 7;
        d.note[0].aside = (uint16_t)(UINT16_MAX - i);
        d.note[0].stream = UINT64_MAX - i;
        ck_assert_uint_eq(schema_datagram_write(&d, whole), sizeof next);
        const struct schema_datagram_one one = one_of(&d);
        schema_datagram_write_one(&like, &one, next);
        ck_assert_mem_eq(whole, next, sizeof next);
        struct schema_datagram_one got;
        ck_assert(schema_datagram_is_like(&like, whole, &got));
        ck_assert_uint_eq(got.settled, one.settled);
        ck_assert_uint_eq(got.granted, one.granted);
        ck_assert_uint_eq(got.used, one.used);
        ck_assert_uint_eq(got.number, one.number);
        ck_assert_uint_eq(got.stream, one.stream);
        ck_assert_uint_eq(got.aside, one.aside);
    }
}
END_TEST

/* Bit by bit, as of headers. */
START_TEST(a_datagram_that_says_something_else_is_not_like_it)
{
    enum { SETTLED = 44, GRANTED = 56, USED = 60, STREAM = 80, NUMBER = 88, ASIDE = 98 };
    const struct schema_datagram d = one_example();
    const struct schema_datagram_like like = schema_datagram_like_of(&d), none = {.word = {0}};
    uint8_t bytes[MOST];
    struct schema_datagram_one got;
    ck_assert_uint_eq(schema_datagram_write(&d, bytes), SCHEMA_DATAGRAM_ONE_BYTES);
    ck_assert(!schema_datagram_is_like(&none, bytes, &got));
    for (uint32_t bit = 0; bit < SCHEMA_DATAGRAM_ONE_BYTES * 8; bit++) {
        const uint32_t at = bit / 8, field = at / 4 * 4;
        const bool differs = field == SETTLED || field == GRANTED || field == USED ||
                             field == STREAM || field == STREAM + 4 || field == NUMBER ||
                             at / 2 * 2 == ASIDE;
        bytes[at] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(schema_datagram_is_like(&like, bytes, &got), differs);
        bytes[at] ^= (uint8_t)(1 << bit % 8);
    }
}
END_TEST

START_TEST(a_datagram_that_says_more_is_not_one_of_one_stream)
{
    const struct schema_datagram d = one_example();
    struct schema_datagram wants = d, behind = d, two = d, none = d, refused = d;
    wants.wants = behind.behind = 1;
    two.notes = 2;
    none.notes = 0;
    refused.note[0].kind = SCHEMA_NOTE_REFUSED;
    ck_assert(!schema_datagram_is_one(&wants) && !schema_datagram_is_one(&behind));
    ck_assert(!schema_datagram_is_one(&two) && !schema_datagram_is_one(&none));
    ck_assert(!schema_datagram_is_one(&refused));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_written_as_one_more_is_the_header_field_by_field)                                    \
    T(a_header_that_says_something_else_is_not_like_it)                                            \
    T(what_is_said_of_one_stream_is_the_datagram_field_by_field)                                   \
    T(a_datagram_that_says_something_else_is_not_like_it)                                          \
    T(a_datagram_that_says_more_is_not_one_of_one_stream)                                          \
    T(the_bytes_of_a_header_are_pinned)                                                            \
    T(what_was_written_is_read_again)                                                              \
    T(a_length_that_is_not_what_came_is_refused)                                                   \
    T(parts_that_were_written_are_read_again)                                                      \
    T(parts_that_are_not_the_message_are_refused)                                                  \
    T(a_header_with_parts_that_are_not_there_is_refused)                                           \
    T(a_field_out_of_its_range_is_refused)                                                         \
    T(notes_that_make_no_sense_are_refused)                                                        \
    T(a_datagram_of_nobody_or_with_too_many_notes_is_refused)                                      \
    T(another_version_is_told_from_what_is_none)                                                   \
    T(no_bytes_make_a_header_that_says_what_cannot_be)
KEDGE_CHECK_MAIN("schema.message", TESTS)
