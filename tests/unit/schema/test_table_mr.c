/* SPDX-License-Identifier: Apache-2.0 */
/* The MR table, and what readers make of spans that somebody damaged. */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "base/random.h"
#include "schema/table.h"

enum { LOG2_SLOTS = 6, SLOTS = (1 << LOG2_SLOTS) + KEDGE_TABLE_SPAN - 1 };

struct fixture {
    struct kedge_table table;
    _Alignas(64) uint8_t memory[SLOTS * KEDGE_RECORD_BYTES];
};

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    kedge_table_init(&f->table, KEDGE_TABLE_MRS, f->memory, LOG2_SLOTS, 0x5eed, 77);
}

static struct kedge_mr_record region(uint32_t vkey)
{
    return (struct kedge_mr_record){
        .vkey = vkey, .tenant = 2, .length = vkey, .flags = KEDGE_RECORD_LIVE | KEDGE_RECORD_READ};
}

static const uint8_t *span_of(const struct fixture *f, uint32_t vkey)
{
    return f->memory + (size_t)kedge_mr_home(&f->table.desc, vkey) * KEDGE_RECORD_BYTES;
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
    struct kedge_mr_record r = {.vkey = 0xabcdef01,
                                .tenant = 2,
                                .vaddr = 0x1122334455667788,
                                .raddr = 0x99aabbccddeeff00,
                                .length = 0x1000,
                                .rkey = 0xcafe0001,
                                .pool = 0x0102,
                                .flags =
                                    KEDGE_RECORD_LIVE | KEDGE_RECORD_READ | KEDGE_RECORD_WRITE};
    for (int i = 0; i < 16; i++)
        r.secret[i] = (uint8_t)(0xa0 + i);
    int64_t slot = kedge_table_put(&f.table, &r);
    ck_assert_int_ge(slot, 0);
    ck_assert_mem_eq(f.memory + slot * KEDGE_RECORD_BYTES, expected, sizeof expected);
}
END_TEST

START_TEST(a_removed_region_leaves_no_key_behind)
{
    static const uint8_t nothing[KEDGE_RECORD_BYTES - 8];
    struct fixture f;
    setup(&f);
    struct kedge_mr_record r = region(7), out;
    r.rkey = 0xcafe0001;
    memset(r.secret, 0x5a, sizeof r.secret);
    int64_t slot = kedge_table_put(&f.table, &r);
    ck_assert_int_eq(kedge_mr_find(&f.table.desc, span_of(&f, 7), 7, &out), 0);
    ck_assert_int_eq(kedge_table_remove(&f.table, &r), slot);
    ck_assert_mem_eq(f.memory + slot * KEDGE_RECORD_BYTES + 8, nothing, sizeof nothing);
    ck_assert_int_eq(kedge_mr_find(&f.table.desc, span_of(&f, 7), 7, &out), -ENOENT);
}
END_TEST

START_TEST(a_region_that_is_begun_and_not_committed_is_neither_there_nor_not)
{
    struct fixture f;
    setup(&f);
    struct kedge_mr_record r = region(7), out;
    int64_t slot = kedge_table_begin(&f.table, &r);
    ck_assert_int_eq(kedge_mr_find(&f.table.desc, span_of(&f, 7), 7, &out), -EAGAIN);
    kedge_table_commit(&f.table, slot, &r);
    ck_assert_int_eq(kedge_mr_find(&f.table.desc, span_of(&f, 7), 7, &out), 0);
    ck_assert_uint_eq(f.table.live, 1);
}
END_TEST

START_TEST(every_home_has_its_span_within_the_table)
{
    struct kedge_prng prng;
    kedge_prng_seed(&prng, 5);
    for (int round = 0; round < 100000; round++) {
        struct kedge_table_desc d = {.log2_slots = (uint32_t)(1 + kedge_prng_below(&prng, 30)),
                                     .seed = kedge_prng_next(&prng)};
        uint64_t home = kedge_mr_home(&d, (uint32_t)kedge_prng_next(&prng));
        ck_assert_uint_le((home + KEDGE_TABLE_SPAN) * KEDGE_RECORD_BYTES,
                          kedge_table_bytes(d.log2_slots));
    }
}
END_TEST

/* Whatever happens to a span, what is believed is a record that was put, whole. */
START_TEST(spans_that_were_damaged_give_a_whole_record_or_none)
{
    struct fixture f;
    struct kedge_prng prng;
    struct kedge_mr_record out;
    uint64_t believed = 0;
    setup(&f);
    kedge_prng_seed(&prng, 6);
    for (uint32_t vkey = 1; vkey <= 24; vkey++) {
        struct kedge_mr_record r = region(vkey);
        ck_assert_int_ge(kedge_table_put(&f.table, &r), 0);
    }
    for (int round = 0; round < 200000; round++) {
        _Alignas(64) uint8_t span[KEDGE_TABLE_SPAN_BYTES];
        uint32_t vkey = 1 + (uint32_t)kedge_prng_below(&prng, 24);
        memcpy(span, span_of(&f, vkey), sizeof span);
        for (uint64_t n = kedge_prng_below(&prng, 40); n > 0; n--) {
            size_t at = kedge_prng_below(&prng, sizeof span);
            if (kedge_prng_below(&prng, 2) == 0)
                span[at] ^= (uint8_t)(1 << kedge_prng_below(&prng, 8));
            else /* half of one record, half of another: a copy that was torn */
                memcpy(span + at / 64 * 64, span + kedge_prng_below(&prng, 16) * 64, at % 64);
        }
        int status = kedge_mr_find(&f.table.desc, span, vkey, &out);
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
