/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the I/O virtual space. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "fabric/iova.h"

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, MANY = 20000 };

static struct fab_mem memory(uint64_t addr, bool huge)
{
    return (struct fab_mem){
        .addr = (void *)(uintptr_t)addr, .size = 1ull << 40, .fd = -1, .huge = huge};
}

static uint64_t take(struct fab_iova *v, enum fab_iova_kind kind, struct fab_mem mem,
                     uint64_t offset, uint64_t length)
{
    uint64_t at;
    ck_assert_int_eq(fab_iova_take(v, kind, &mem, offset, length, &at), 0);
    return at;
}

START_TEST(no_address_is_given_twice)
{
    struct base_prng prng = {.state = (uint64_t)_i};
    struct fab_iova v;
    fab_iova_init(&v, base_prng_next(&prng));
    uint64_t end[2] = {0, 0};
    for (int i = 0; i < MANY; i++) {
        const uint64_t length = 1 + (base_prng_next(&prng) >> (24 + base_prng_below(&prng, 40)));
        const enum fab_iova_kind kind =
            length < 1 << 20 && i % 3 == 0 ? FAB_IOVA_TABLE : FAB_IOVA_REGION;
        const uint64_t offset = base_prng_below(&prng, 1 << 22);
        const struct fab_mem mem = memory(0x7f0000201000, i % 2);
        const uint64_t at = take(&v, kind, mem, offset, length);
        ck_assert_uint_ge(at, end[kind] + (end[kind] != 0 ? PAGE / 2 : 0));
        end[kind] = at + length;
    }
}
END_TEST

START_TEST(an_address_lies_in_its_page_as_the_memory_does)
{
    struct fab_iova v;
    fab_iova_init(&v, 0x123456789abcdef);
    const uint64_t base = 0x7f1234567000;
    for (uint64_t offset = 0; offset < 3 * PAGE; offset += 37) {
        uint64_t at = take(&v, FAB_IOVA_REGION, memory(base, false), offset, 100);
        ck_assert_uint_eq((at ^ (base + offset)) % PAGE, 0);
        at = take(&v, FAB_IOVA_REGION, memory(base, false), offset, HUGE_PAGE);
        ck_assert_uint_eq((at ^ (base + offset)) % HUGE_PAGE, 0);
        at = take(&v, FAB_IOVA_REGION, memory(0x7f1234400000, true), offset, 100);
        ck_assert_uint_eq((at ^ (0x7f1234400000 + offset)) % HUGE_PAGE, 0);
    }
}
END_TEST

/* Where a driver leads `to`, an address of a region at `iova`, whose memory is contiguous at
 * `start` of the process and of the host alike: by the largest pages that start is a multiple of,
 * none larger than the region rounded up to a power of two, whatever iova is (mlx5's until
 * Linux 5.10).
 */
static uint64_t translate_address(uint64_t start, uint64_t length, uint64_t iova, uint64_t to)
{
    const uint64_t first = start & ~(uint64_t)(PAGE - 1), bytes = start - first + length;
    uint64_t page = PAGE;
    while (page < bytes && first % (2 * page) == 0)
        page *= 2;
    return first + ((to & ~(page - 1)) - (iova & ~(page - 1))) + (to & (page - 1));
}

START_TEST(an_address_leads_to_its_byte_whatever_pages_a_driver_takes)
{
    struct base_prng prng = {.state = (uint64_t)_i};
    struct fab_iova v;
    fab_iova_init(&v, base_prng_next(&prng));
    for (int i = 0; i < MANY; i++) {
        const struct fab_mem mem = memory(0x7f0000000000, i % 2);
        const uint64_t length = 1 + (base_prng_next(&prng) >> (30 + base_prng_below(&prng, 34)));
        const uint64_t offset = base_prng_next(&prng) >> 40 << base_prng_below(&prng, 14);
        const uint64_t start = (uintptr_t)mem.addr + offset;
        const enum fab_iova_kind kind = i % 3 == 0 ? FAB_IOVA_TABLE : FAB_IOVA_REGION;
        const uint64_t at = take(&v, kind, mem, offset, length);
        const uint64_t in = base_prng_next(&prng) % length;
        ck_assert(fab_iova_fits(start, length, at));
        ck_assert_uint_eq(translate_address(start, length, at, at), start);
        ck_assert_uint_eq(translate_address(start, length, at, at + in), start + in);
    }
}
END_TEST

START_TEST(tables_are_where_records_can_name_them_and_no_process_has_anything)
{
    for (int i = 0; i < 1000; i++) {
        struct base_prng prng = {.state = (uint64_t)i};
        struct fab_iova v;
        fab_iova_init(&v, i == 0 ? UINT64_MAX : i == 1 ? 0 : base_prng_next(&prng));
        const uint64_t table =
            take(&v, FAB_IOVA_TABLE, memory(0x7f0000000000, false), 0, 1ull << 30);
        ck_assert_uint_ge(table, 1ull << 47);
        ck_assert_uint_le(table + (1ull << 30), 1ull << 48);
        const uint64_t region =
            take(&v, FAB_IOVA_REGION, memory(0x7f0000000000, false), 0, 1ull << 40);
        ck_assert_uint_ge(region, 1ull << 48);
        ck_assert_uint_le(region, 1ull << 63);
    }
}
END_TEST

START_TEST(two_lives_begin_at_different_places)
{
    struct fab_iova v[2];
    fab_iova_init(&v[0], 0x0123456789abcdef);
    fab_iova_init(&v[1], 0x0123456799abcdef);
    ck_assert_uint_ne(v[0].next_region, v[1].next_region);
    ck_assert_uint_ne(v[0].next_table, v[1].next_table);
}
END_TEST

START_TEST(the_end_is_an_error_and_no_new_beginning)
{
    const struct fab_mem mem = memory(0x7f0000000000, false);
    struct fab_iova v = {.next_table = (1ull << 48) - 4 * PAGE,
                         .next_region = (1ull << 63) - 4 * PAGE};
    uint64_t at = 7;
    for (int kind = FAB_IOVA_REGION; kind <= FAB_IOVA_TABLE; kind++) {
        ck_assert_int_eq(fab_iova_take(&v, kind, &mem, 0, 4 * PAGE, &at), -ENOSPC);
        ck_assert_int_eq(fab_iova_take(&v, kind, &mem, 0, UINT64_MAX, &at), -ENOSPC);
        ck_assert_uint_eq(at, 7);
        (void)take(&v, kind, mem, 0, PAGE);
        ck_assert_int_eq(fab_iova_take(&v, kind, &mem, 0, PAGE, &at), -ENOSPC);
        ck_assert_int_eq(fab_iova_take(&v, kind, &mem, 0, PAGE, &at), -ENOSPC);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fabric.iova");
    TCase *c = tcase_create("iova");
    tcase_add_loop_test(c, no_address_is_given_twice, 0, 4);
    tcase_add_test(c, an_address_lies_in_its_page_as_the_memory_does);
    tcase_add_loop_test(c, an_address_leads_to_its_byte_whatever_pages_a_driver_takes, 0, 4);
    tcase_add_test(c, tables_are_where_records_can_name_them_and_no_process_has_anything);
    tcase_add_test(c, two_lives_begin_at_different_places);
    tcase_add_test(c, the_end_is_an_error_and_no_new_beginning);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
