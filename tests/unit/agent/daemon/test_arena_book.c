/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "../../check_main.h"
#include "agentd/arena_book.h"

enum { USUAL = 4096, RED = 0, BLUE = 1 };

static struct agentd_arena_book book;

static void begin(uint32_t slots, uint32_t kept)
{
    ck_assert_int_eq(agentd_arena_book_init(&book, slots, USUAL, kept), 0);
}

static uint32_t ahead(void)
{
    int64_t i = agentd_arena_begin(&book, USUAL, AGENTD_NO_TENANT);
    ck_assert_int_ge(i, 0);
    ck_assert_int_eq(agentd_arena_registered(&book, (uint32_t)i), ARENA_AHEAD);
    return (uint32_t)i;
}

/* Over, zeroed, registered again. */
static void recycle(uint32_t i)
{
    agentd_arena_release(&book, i);
    ck_assert_int_eq(agentd_arena_withdrawn(&book, i), ARENA_ZEROING);
    agentd_arena_zeroed(&book, i);
    ck_assert_int_eq(agentd_arena_registered(&book, i), ARENA_KEPT);
}

START_TEST(an_arena_ahead_goes_to_whoever_asks_first)
{
    begin(4, 2);
    uint32_t i = ahead();
    ck_assert_int_eq(agentd_arena_take(&book, USUAL, BLUE), i);
    ck_assert_int_eq(agentd_arena_take(&book, USUAL, RED), -ENOENT);
    agentd_arena_book_fini(&book);
}
END_TEST

START_TEST(a_tenants_arena_never_reaches_another_tenant)
{
    begin(4, 2);
    uint32_t i = ahead();
    ck_assert_int_eq(agentd_arena_take(&book, USUAL, RED), i);
    recycle(i);
    ck_assert_int_eq(agentd_arena_take(&book, USUAL, BLUE), -ENOENT);
    ck_assert_int_eq(agentd_arena_take(&book, USUAL, RED), i);
    agentd_arena_book_fini(&book);
}
END_TEST

START_TEST(its_own_arena_is_preferred_to_a_new_one)
{
    begin(4, 2);
    uint32_t a = ahead();
    ck_assert_int_eq(agentd_arena_take(&book, USUAL, RED), a);
    uint32_t b = ahead();
    recycle(a);
    ck_assert_int_eq(agentd_arena_take(&book, USUAL, RED), a);
    ck_assert_int_eq(agentd_arena_take(&book, USUAL, RED), b);
    agentd_arena_book_fini(&book);
}
END_TEST

START_TEST(what_is_above_the_bound_is_closed)
{
    begin(4, 1);
    for (int i = 0; i < 2; i++)
        ahead();
    int64_t a = agentd_arena_take(&book, USUAL, RED), b = agentd_arena_take(&book, USUAL, RED);
    agentd_arena_release(&book, (uint32_t)a);
    agentd_arena_release(&book, (uint32_t)b);
    ck_assert_int_eq(agentd_arena_withdrawn(&book, (uint32_t)a), ARENA_ZEROING);
    ck_assert_int_eq(agentd_arena_withdrawn(&book, (uint32_t)b), ARENA_CLOSING);
    agentd_arena_closed(&book, (uint32_t)b);
    ck_assert_uint_eq(book.count[ARENA_NONE], 3);
    agentd_arena_book_fini(&book);
}
END_TEST

START_TEST(an_unusual_size_is_closed)
{
    begin(4, 2);
    int64_t i = agentd_arena_begin(&book, 3 * USUAL, RED);
    ck_assert_int_eq(agentd_arena_registered(&book, (uint32_t)i), ARENA_HELD);
    agentd_arena_release(&book, (uint32_t)i);
    ck_assert_int_eq(agentd_arena_withdrawn(&book, (uint32_t)i), ARENA_CLOSING);
    agentd_arena_book_fini(&book);
}
END_TEST

START_TEST(an_arena_that_cannot_be_registered_again_is_closed)
{
    begin(1, 2);
    uint32_t i = ahead();
    ck_assert_int_eq(agentd_arena_take(&book, USUAL, RED), i);
    agentd_arena_release(&book, i);
    (void)agentd_arena_withdrawn(&book, i);
    agentd_arena_zeroed(&book, i);
    agentd_arena_failed(&book, i);
    agentd_arena_closed(&book, i);
    ck_assert_uint_eq(ahead(), i);
    agentd_arena_book_fini(&book);
}
END_TEST

START_TEST(a_full_book_says_so)
{
    begin(1, 1);
    ahead();
    ck_assert_int_eq(agentd_arena_begin(&book, USUAL, RED), -ENOSPC);
    agentd_arena_book_fini(&book);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_arena_ahead_goes_to_whoever_asks_first)                                                   \
    T(a_tenants_arena_never_reaches_another_tenant)                                                \
    T(its_own_arena_is_preferred_to_a_new_one)                                                     \
    T(what_is_above_the_bound_is_closed)                                                           \
    T(an_unusual_size_is_closed)                                                                   \
    T(an_arena_that_cannot_be_registered_again_is_closed)                                          \
    T(a_full_book_says_so)

KEDGE_CHECK_MAIN("agentd_arena_book", TESTS)
