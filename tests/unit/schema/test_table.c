/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../check_main.h"
#include "base/random.h"
#include "schema/table.h"

enum { ENTRIES = 64 };

struct fixture {
    struct schema_table table;
    _Alignas(64) uint8_t memory[(ENTRIES * 8 + 15) * SCHEMA_RECORD_BYTES];
};

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    ck_assert_uint_eq(schema_table_log2_slots(ENTRIES), 9);
    ck_assert_uint_eq(schema_table_bytes(9), sizeof f->memory);
    schema_table_init(&f->table, SCHEMA_TABLE_ENDPOINTS, f->memory, 9, 0x5eed, 77);
}

static struct schema_endpoint_record endpoint(uint32_t n)
{
    struct schema_endpoint_record r = {
        .pool = 1, .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_DC, .incarnation = n, .dc_key = n};
    r.gid[0] = 0xfd;
    memcpy(r.gid + 12, &n, sizeof n);
    return r;
}

/* What a READ does: copies word by word, with no regard for writers. */
static void read_span(const struct schema_table *t, uint32_t home, void *span)
{
    const _Atomic uint64_t *from =
        (const _Atomic uint64_t *)(t->slots + (size_t)home * SCHEMA_RECORD_BYTES);
    uint64_t *to = span;
    for (size_t i = 0; i < SCHEMA_TABLE_SPAN_BYTES / sizeof *to; i++)
        to[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
}

static int lookup(const struct schema_table *t, uint32_t n, struct schema_endpoint_record *out)
{
    _Alignas(64) uint8_t span[SCHEMA_TABLE_SPAN_BYTES];
    struct schema_endpoint_record r = endpoint(n);
    read_span(t, schema_endpoint_home(&t->desc, r.gid, r.pool), span);
    return schema_endpoint_find(&t->desc, span, r.gid, r.pool, out);
}

START_TEST(the_bytes_of_an_endpoint_record_are_pinned)
{
    struct fixture f;
    setup(&f);
    struct schema_endpoint_record r = {.pool = 0x0102,
                                       .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_DC,
                                       .incarnation = 0x03040506,
                                       .dctn_mtu = 0x05abcdef,
                                       .udqpn_slots = 0x0a123456,
                                       .dc_key = 0x1122334455667788,
                                       .ud_qkey = 0x99aabbcc,
                                       .lid = 0xddee,
                                       .mr_table_addr_hi = 0x7f01,
                                       .mr_table_addr_lo = 0x23456000,
                                       .mr_table_rkey = 0xcafe0001};
    for (int i = 0; i < 16; i++)
        r.gid[i] = (uint8_t)(0xf0 + i);
    int64_t slot = schema_table_put(&f.table, &r);
    ck_assert_int_ge(slot, 0);
    static const uint8_t expected[60] = {
        0x02, 0,    0,    0, /* sequence; bytes 4..7 are the CRC */
        0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd,
        0xfe, 0xff, 0x02, 0x01, 0x03, 0x00, 0x06, 0x05, 0x04, 0x03, 0xef, 0xcd, 0xab, 0x05,
        0x56, 0x34, 0x12, 0x0a, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xcc, 0xbb,
        0xaa, 0x99, 0xee, 0xdd, 0x01, 0x7f, 0x00, 0x60, 0x45, 0x23, 0x01, 0x00, 0xfe, 0xca};
    const uint8_t *at = f.memory + slot * SCHEMA_RECORD_BYTES;
    ck_assert_mem_eq(at, expected, 4);
    ck_assert_mem_eq(at + 8, expected + 4, 56);
    uint32_t crc;
    memcpy(&crc, at + 4, 4);
    ck_assert_uint_eq(crc, 0xeb12948c); /* computed apart, bit by bit, with generation 77 */
}
END_TEST

START_TEST(what_was_put_is_found_and_what_was_removed_is_not)
{
    struct fixture f;
    struct schema_endpoint_record r, out;
    setup(&f);
    for (uint32_t n = 0; n < ENTRIES; n++) {
        r = endpoint(n);
        ck_assert_int_ge(schema_table_put(&f.table, &r), 0);
    }
    ck_assert_uint_eq(f.table.live, ENTRIES);
    for (uint32_t n = 0; n < ENTRIES; n++) {
        ck_assert_int_eq(lookup(&f.table, n, &out), 0);
        ck_assert_uint_eq(out.incarnation, n);
    }
    r = endpoint(5);
    ck_assert_int_ge(schema_table_remove(&f.table, &r), 0);
    ck_assert_int_eq(lookup(&f.table, 5, &out), -ENOENT);
    ck_assert_int_eq(schema_table_remove(&f.table, &r), -ENOENT);
    ck_assert_int_eq(lookup(&f.table, ENTRIES + 1, &out), -ENOENT);
    ck_assert_uint_eq(f.table.live, ENTRIES - 1);
}
END_TEST

START_TEST(what_is_awaited_is_neither_there_nor_unknown_until_it_is_put_or_removed)
{
    struct fixture f;
    struct schema_endpoint_record r = endpoint(1), out;
    setup(&f);
    schema_table_await(&f.table, &r);
    ck_assert_int_eq(lookup(&f.table, 1, &out), -EUNATCH);
    ck_assert_uint_eq(out.incarnation, 1);
    ck_assert_uint_eq(out.dc_key, 0); /* whatever it was given with: no key is known */
    ck_assert_int_eq(lookup(&f.table, 2, &out), -ENOENT);
    ck_assert_uint_eq(f.table.awaited, 1);
    ck_assert_uint_eq(f.table.live, 0);
    r.incarnation = 7;
    schema_table_await(&f.table, &r);
    ck_assert_int_eq(lookup(&f.table, 1, &out), -EUNATCH);
    ck_assert_uint_eq(out.incarnation, 7);
    ck_assert_uint_eq(f.table.awaited, 1);
    ck_assert_int_ge(schema_table_put(&f.table, &r), 0);
    ck_assert_int_eq(lookup(&f.table, 1, &out), 0);
    ck_assert_uint_eq(f.table.awaited, 0);
    ck_assert_uint_eq(f.table.live, 1);
    ck_assert_int_ge(schema_table_remove(&f.table, &r), 0);
    schema_table_await(&f.table, &r);
    ck_assert_int_ge(schema_table_remove(&f.table, &r), 0);
    ck_assert_int_eq(lookup(&f.table, 1, &out), -ENOENT);
    ck_assert_uint_eq(f.table.awaited, 0);
    ck_assert_uint_eq(f.table.live, 0);
}
END_TEST

/* They look for LIVE alone, under a sequence and a CRC that they check of all. */
START_TEST(who_does_not_know_what_is_awaited_finds_a_whole_record_that_is_not_live)
{
    struct fixture f;
    struct schema_endpoint_record r = endpoint(1), at;
    setup(&f);
    schema_table_await(&f.table, &r);
    const uint32_t home = schema_endpoint_home(&f.table.desc, r.gid, r.pool);
    memcpy(&at, f.memory + (size_t)home * SCHEMA_RECORD_BYTES, sizeof at);
    ck_assert_uint_eq(at.seq, 2);
    ck_assert_uint_eq(at.flags & SCHEMA_RECORD_LIVE, 0);
    struct schema_endpoint_record out;
    ck_assert_int_eq(lookup(&f.table, 2, &out), -ENOENT); /* it is not torn */
    memset(f.memory + (size_t)home * SCHEMA_RECORD_BYTES + 12, 0x55, 1);
    ck_assert_int_eq(lookup(&f.table, 1, &out), -EAGAIN);
}
END_TEST

/* Numbers of endpoints that have the same home. */
static void find_neighbours(const struct schema_table *t, uint32_t *number, uint32_t count)
{
    uint32_t home = 0, found = 0;
    for (uint32_t n = 1; found < count; n++) {
        const struct schema_endpoint_record r = endpoint(n);
        const uint32_t its = schema_endpoint_home(&t->desc, r.gid, r.pool);
        home = found == 0 ? its : home;
        if (its == home)
            number[found++] = n;
    }
}

START_TEST(what_is_awaited_takes_no_room_from_what_is_there)
{
    enum { MORE = SCHEMA_TABLE_SPAN + 2 };
    struct fixture f;
    struct schema_endpoint_record r, out;
    uint32_t number[MORE], taken[1], awaited = 0;
    setup(&f);
    find_neighbours(&f.table, number, MORE);
    for (uint32_t i = 0; i < 3; i++) {
        r = endpoint(number[i]);
        schema_table_await(&f.table, &r);
    }
    /* While there is room beside it, it stays. */
    for (uint32_t i = 3; i < SCHEMA_TABLE_SPAN; i++) {
        r = endpoint(number[i]);
        ck_assert_int_ge(schema_table_put(&f.table, &r), 0);
    }
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(lookup(&f.table, number[i], &out), -EUNATCH);
    /* Without it makes room, also for one of them. */
    r = endpoint(number[SCHEMA_TABLE_SPAN]);
    taken[0] = (uint32_t)schema_table_place(&f.table, &r, NULL, 0);
    ck_assert_int_ne(schema_table_place(&f.table, &r, taken, 1), taken[0]);
    ck_assert_int_eq(schema_table_put(&f.table, &r), taken[0]);
    for (uint32_t i = 0; i < 3; i++)
        awaited += lookup(&f.table, number[i], &out) == -EUNATCH;
    ck_assert_uint_eq(awaited, 2);
    ck_assert_uint_eq(f.table.awaited, 2);
    for (uint32_t i = 0; i < 3; i++) { /* the first finds no place any more, or one of theirs */
        r = endpoint(number[i]);
        ck_assert_int_eq(schema_table_put(&f.table, &r) >= 0, i < 2);
    }
    ck_assert_uint_eq(f.table.awaited, 0);
    schema_table_await(&f.table, &r); /* there is no place to say so */
    ck_assert_int_eq(lookup(&f.table, number[2], &out), -ENOENT);
    for (uint32_t i = 3; i <= SCHEMA_TABLE_SPAN; i++)
        ck_assert_int_eq(lookup(&f.table, number[i], &out), 0);
}
END_TEST

START_TEST(an_update_keeps_the_slot_and_grows_the_sequence)
{
    struct fixture f;
    setup(&f);
    struct schema_endpoint_record r = endpoint(1), out;
    int64_t slot = schema_table_put(&f.table, &r);
    r.incarnation = 9;
    ck_assert_int_eq(schema_table_put(&f.table, &r), slot);
    ck_assert_int_eq(lookup(&f.table, 1, &out), 0);
    ck_assert_uint_eq(out.incarnation, 9);
    ck_assert_uint_eq(out.seq, 4);
    ck_assert_uint_eq(f.table.live, 1);
}
END_TEST

START_TEST(a_full_span_refuses_the_seventeenth_record_and_keeps_the_sixteen)
{
    struct fixture f;
    setup(&f);
    struct schema_endpoint_record r, out;
    uint32_t kept[SCHEMA_TABLE_SPAN], n = 0, count = 0;
    uint32_t home = 100;
    for (; count < SCHEMA_TABLE_SPAN; n++) {
        r = endpoint(n);
        if (schema_endpoint_home(&f.table.desc, r.gid, r.pool) != home)
            continue;
        ck_assert_int_eq(schema_table_put(&f.table, &r), home + count);
        kept[count++] = n;
    }
    while (r = endpoint(n), schema_endpoint_home(&f.table.desc, r.gid, r.pool) != home)
        n++;
    ck_assert_int_eq(schema_table_put(&f.table, &r), -ENOSPC);
    for (unsigned i = 0; i < SCHEMA_TABLE_SPAN; i++)
        ck_assert_int_eq(lookup(&f.table, kept[i], &out), 0);
}
END_TEST

START_TEST(a_writer_stopped_in_the_middle_hides_its_record_alone)
{
    struct fixture f;
    setup(&f);
    struct schema_endpoint_record r, out;
    for (uint32_t n = 0; n < ENTRIES; n++) {
        r = endpoint(n);
        ck_assert_int_ge(schema_table_put(&f.table, &r), 0);
    }
    r = endpoint(7);
    int64_t slot = schema_table_begin(&f.table, &r);
    ck_assert_int_eq(lookup(&f.table, 7, &out), -EAGAIN);
    for (uint32_t n = 0; n < ENTRIES; n++)
        if (n != 7)
            ck_assert_int_eq(lookup(&f.table, n, &out), 0);
    r.incarnation = 1000;
    schema_table_commit(&f.table, slot, &r);
    ck_assert_int_eq(lookup(&f.table, 7, &out), 0);
    ck_assert_uint_eq(out.incarnation, 1000);
}
END_TEST

START_TEST(a_record_of_another_generation_or_with_any_bit_flipped_is_not_believed)
{
    struct fixture f;
    setup(&f);
    struct schema_endpoint_record r = endpoint(3), out;
    int64_t slot = schema_table_put(&f.table, &r);
    for (unsigned bit = 0; bit < SCHEMA_RECORD_BYTES * 8; bit++) {
        uint8_t *at = f.memory + slot * SCHEMA_RECORD_BYTES + bit / 8;
        *at ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_ne(lookup(&f.table, 3, &out), 0);
        *at ^= (uint8_t)(1 << bit % 8);
    }
    ck_assert_int_eq(lookup(&f.table, 3, &out), 0);
    f.table.desc.generation++;
    ck_assert_int_eq(lookup(&f.table, 3, &out), -EAGAIN);
}
END_TEST

START_TEST(spans_of_random_bytes_are_never_believed)
{
    struct schema_table_desc d = {.log2_slots = 4, .generation = 1};
    struct base_prng prng;
    struct schema_endpoint_record e;
    struct schema_mr_record m;
    base_prng_seed(&prng, 3);
    for (int round = 0; round < 20000; round++) {
        _Alignas(64) uint64_t span[SCHEMA_TABLE_SPAN_BYTES / 8];
        for (size_t i = 0; i < sizeof span / sizeof *span; i++)
            span[i] = base_prng_next(&prng);
        const struct schema_endpoint_record *seen = (const void *)span;
        const struct schema_mr_record *region = (const void *)span;
        ck_assert_int_ne(schema_endpoint_find(&d, span, seen[3].gid, seen[3].pool, &e), 0);
        ck_assert_int_ne(schema_mr_find(&d, span, region[3].vkey, &m), 0);
    }
}
END_TEST

/* One writer churns a few keys of one table; readers must only ever see whole records of the right
 * key. */
struct stress {
    struct fixture f;
    _Atomic bool stop;
    _Atomic uint64_t believed;
};

static void *read_all_the_time(void *arg)
{
    struct stress *s = arg;
    struct schema_endpoint_record out;
    while (!atomic_load(&s->stop)) {
        for (uint32_t n = 0; n < 16; n++) {
            if (lookup(&s->f.table, n, &out) != 0)
                continue;
            if (out.dc_key != ((uint64_t)out.incarnation << 32 | n) ||
                out.ud_qkey != out.incarnation)
                return (void *)1;
            atomic_fetch_add_explicit(&s->believed, 1, memory_order_relaxed);
        }
    }
    return NULL;
}

START_TEST(concurrent_readers_never_see_a_torn_half_made_or_removed_record)
{
    static struct stress s;
    pthread_t readers[2];
    setup(&s.f);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read_all_the_time, &s), 0);
    struct base_prng prng;
    base_prng_seed(&prng, 4);
    for (uint32_t round = 1; round < 400000 || atomic_load(&s.believed) < 1000; round++) {
        uint32_t n = (uint32_t)base_prng_below(&prng, 16);
        struct schema_endpoint_record r = endpoint(n);
        r.incarnation = r.ud_qkey = round;
        r.dc_key = (uint64_t)round << 32 | n;
        if (base_prng_below(&prng, 4) == 0)
            schema_table_remove(&s.f.table, &r);
        else
            ck_assert_int_ge(schema_table_put(&s.f.table, &r), 0);
    }
    atomic_store(&s.stop, true);
    for (int i = 0; i < 2; i++) {
        void *torn;
        pthread_join(readers[i], &torn);
        ck_assert_ptr_null(torn);
    }
}
END_TEST

START_TEST(an_mr_record_is_found_through_the_descriptor_that_its_endpoint_implies)
{
    struct schema_endpoint_record e = endpoint(11);
    e.udqpn_slots = 6u << 24;
    e.mr_table_addr_hi = 0x7fff;
    e.mr_table_addr_lo = 0x12340000;
    e.mr_table_rkey = 99;
    struct schema_table_desc d = schema_mr_table_desc(&e);
    ck_assert_uint_eq(d.addr, 0x7fff12340000);
    ck_assert_uint_eq(d.rkey, 99);
    static _Alignas(64) uint8_t memory[(64 + 15) * SCHEMA_RECORD_BYTES];
    struct schema_table t;
    schema_table_init(&t, SCHEMA_TABLE_MRS, memory, d.log2_slots, d.seed, d.generation);
    struct schema_mr_record r = {.vkey = 0xabcdef01,
                                 .tenant = 2,
                                 .length = 4096,
                                 .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_READ};
    ck_assert_int_ge(schema_table_put(&t, &r), 0);
    struct schema_mr_record out;
    const uint8_t *span = memory + (size_t)schema_mr_home(&d, r.vkey) * SCHEMA_RECORD_BYTES;
    ck_assert_int_eq(schema_mr_find(&d, span, r.vkey, &out), 0);
    ck_assert_uint_eq(out.length, 4096);
    ck_assert_int_eq(schema_mr_find(&d, span, r.vkey + 1, &out), -ENOENT);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_bytes_of_an_endpoint_record_are_pinned)                                                  \
    T(what_was_put_is_found_and_what_was_removed_is_not)                                           \
    T(what_is_awaited_is_neither_there_nor_unknown_until_it_is_put_or_removed)                     \
    T(who_does_not_know_what_is_awaited_finds_a_whole_record_that_is_not_live)                     \
    T(what_is_awaited_takes_no_room_from_what_is_there)                                            \
    T(an_update_keeps_the_slot_and_grows_the_sequence)                                             \
    T(a_full_span_refuses_the_seventeenth_record_and_keeps_the_sixteen)                            \
    T(a_writer_stopped_in_the_middle_hides_its_record_alone)                                       \
    T(a_record_of_another_generation_or_with_any_bit_flipped_is_not_believed)                      \
    T(spans_of_random_bytes_are_never_believed)                                                    \
    T(concurrent_readers_never_see_a_torn_half_made_or_removed_record)                             \
    T(an_mr_record_is_found_through_the_descriptor_that_its_endpoint_implies)
KEDGE_CHECK_MAIN("schema table", TESTS)
