/* SPDX-License-Identifier: Apache-2.0 */
/* The MR table, and what readers make of spans that somebody damaged. */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "base/random.h"
#include "schema/table.h"

enum { LOG2_SLOTS = 6, SLOTS = (1 << LOG2_SLOTS) + SCHEMA_TABLE_SPAN - 1 };

struct fixture {
    struct schema_table table;
    _Alignas(64) uint8_t memory[SLOTS * SCHEMA_RECORD_BYTES];
};

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    schema_table_init(&f->table, SCHEMA_TABLE_MRS, f->memory, LOG2_SLOTS, 0x5eed, 77);
}

static struct schema_mr_record region(uint32_t vkey)
{
    return (struct schema_mr_record){.vkey = vkey,
                                     .tenant = 2,
                                     .length = vkey,
                                     .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_READ};
}

static const uint8_t *span_of(const struct fixture *f, uint32_t vkey)
{
    return f->memory + (size_t)schema_mr_home(&f->table.desc, vkey) * SCHEMA_RECORD_BYTES;
}

START_TEST(the_bytes_of_an_mr_record_are_pinned)
{
    static const uint8_t expected[64] = {
        0x02, 0x00, 0x00, 0x00, /* sequence */
        0xac, 0xef, 0xba, 0xc3, /* CRC-32C, computed apart, bit by bit, with generation 77 */
        0x01, 0xef, 0xcd, 0xab, 0x02, 0x00, 0x00, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
        0x22, 0x11, 0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x00, 0x10, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0xfe, 0xca, 0x02, 0x01, 0x19, 0x00, 0xa0, 0xa1,
        0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf};
    struct fixture f;
    setup(&f);
    struct schema_mr_record r = {.vkey = 0xabcdef01,
                                 .tenant = 2,
                                 .vaddr = 0x1122334455667788,
                                 .raddr = 0x99aabbccddeeff00,
                                 .length = 0x1000,
                                 .rkey = 0xcafe0001,
                                 .pool = 0x0102,
                                 .flags =
                                     SCHEMA_RECORD_LIVE | SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE};
    for (int i = 0; i < 16; i++)
        r.secret[i] = (uint8_t)(0xa0 + i);
    int64_t slot = schema_table_put(&f.table, &r);
    ck_assert_int_ge(slot, 0);
    ck_assert_mem_eq(f.memory + slot * SCHEMA_RECORD_BYTES, expected, sizeof expected);
}
END_TEST

START_TEST(a_removed_region_leaves_no_key_behind)
{
    static const uint8_t nothing[SCHEMA_RECORD_BYTES - 8];
    struct fixture f;
    setup(&f);
    struct schema_mr_record r = region(7), out;
    r.rkey = 0xcafe0001;
    memset(r.secret, 0x5a, sizeof r.secret);
    int64_t slot = schema_table_put(&f.table, &r);
    ck_assert_int_eq(schema_mr_find(&f.table.desc, span_of(&f, 7), 7, &out), 0);
    ck_assert_int_eq(schema_table_remove(&f.table, &r), slot);
    ck_assert_mem_eq(f.memory + slot * SCHEMA_RECORD_BYTES + 8, nothing, sizeof nothing);
    ck_assert_int_eq(schema_mr_find(&f.table.desc, span_of(&f, 7), 7, &out), -ENOENT);
}
END_TEST

START_TEST(a_region_that_is_begun_and_not_committed_is_neither_there_nor_not)
{
    struct fixture f;
    setup(&f);
    struct schema_mr_record r = region(7), out;
    int64_t slot = schema_table_begin(&f.table, &r);
    ck_assert_int_eq(schema_mr_find(&f.table.desc, span_of(&f, 7), 7, &out), -EAGAIN);
    schema_table_commit(&f.table, slot, &r);
    ck_assert_int_eq(schema_mr_find(&f.table.desc, span_of(&f, 7), 7, &out), 0);
    ck_assert_uint_eq(f.table.live, 1);
}
END_TEST

START_TEST(every_home_has_its_span_within_the_table)
{
    struct base_prng prng;
    base_prng_seed(&prng, 5);
    for (int round = 0; round < 100000; round++) {
        struct schema_table_desc d = {.log2_slots = (uint32_t)(1 + base_prng_below(&prng, 30)),
                                      .seed = base_prng_next(&prng)};
        uint64_t home = schema_mr_home(&d, (uint32_t)base_prng_next(&prng));
        ck_assert_uint_le((home + SCHEMA_TABLE_SPAN) * SCHEMA_RECORD_BYTES,
                          schema_table_bytes(d.log2_slots));
    }
}
END_TEST

/* Whatever happens to a span, what is believed is a record that was put, whole. */
START_TEST(spans_that_were_damaged_give_a_whole_record_or_none)
{
    struct fixture f;
    struct base_prng prng;
    struct schema_mr_record out;
    uint64_t believed = 0;
    setup(&f);
    base_prng_seed(&prng, 6);
    for (uint32_t vkey = 1; vkey <= 24; vkey++) {
        struct schema_mr_record r = region(vkey);
        ck_assert_int_ge(schema_table_put(&f.table, &r), 0);
    }
    for (int round = 0; round < 200000; round++) {
        _Alignas(64) uint8_t span[SCHEMA_TABLE_SPAN_BYTES];
        uint32_t vkey = 1 + (uint32_t)base_prng_below(&prng, 24);
        memcpy(span, span_of(&f, vkey), sizeof span);
        for (uint64_t n = base_prng_below(&prng, 40); n > 0; n--) {
            size_t at = base_prng_below(&prng, sizeof span);
            if (base_prng_below(&prng, 2) == 0)
                span[at] ^= (uint8_t)(1 << base_prng_below(&prng, 8));
            else /* half of one record, half of another: a copy that was torn */
                memcpy(span + at / 64 * 64, span + base_prng_below(&prng, 16) * 64, at % 64);
        }
        int status = schema_mr_find(&f.table.desc, span, vkey, &out);
        ck_assert(status == 0 || status == -ENOENT || status == -EAGAIN);
        if (status != 0)
            continue;
        ck_assert_uint_eq(out.vkey, vkey);
        ck_assert_uint_eq(out.length, vkey);
        believed++;
    }
    ck_assert_uint_gt(believed, 1000);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_bytes_of_an_mr_record_are_pinned)                                                        \
    T(a_removed_region_leaves_no_key_behind)                                                       \
    T(a_region_that_is_begun_and_not_committed_is_neither_there_nor_not)                           \
    T(every_home_has_its_span_within_the_table)                                                    \
    T(spans_that_were_damaged_give_a_whole_record_or_none)
KEDGE_CHECK_MAIN("schema table mr", TESTS)
