/* SPDX-License-Identifier: Apache-2.0 */
#include "control/prewarm_share.h"

#include <string.h>

#include "../../check_main.h"

enum { A = 3, B = 7, C = AGENT_TENANT_SLOTS, TARGET = 16, ROUNDS = 1000 };

static struct prewarm_share share;
static uint32_t ready;

static void begin(void)
{
    memset(&share, 0, sizeof share);
    ready = TARGET;
}

static bool take(uint32_t tenant)
{
    if (ready == 0 || !agent_prewarm_share_allows(&share, tenant, ready))
        return false;
    agent_prewarm_share_take(&share, tenant, ready-- >= TARGET);
    return true;
}

/* As many as it can. */
static uint32_t take_all(uint32_t tenant)
{
    uint32_t n = 0;
    while (take(tenant))
        n++;
    return n;
}

static void make(void)
{
    ready++;
    agent_prewarm_share_made(&share);
}

START_TEST(each_tenant_leaves_as_many_as_it_took)
{
    begin();
    ck_assert_uint_eq(take_all(A), 8);
    ck_assert_uint_eq(take_all(B), 4);
    ck_assert_uint_eq(take_all(C), 2);
    ck_assert_uint_eq(take_all(A), 0);
}
END_TEST

START_TEST(who_takes_whatever_is_made_gets_all_of_that_and_no_more)
{
    begin();
    (void)take_all(A);
    for (int i = 0; i < ROUNDS; i++) {
        make();
        ck_assert_uint_eq(take_all(A), 1);
        ck_assert_uint_eq(ready, TARGET / 2);
    }
}
END_TEST

START_TEST(who_comes_now_and_then_finds_one_ready_beside_who_takes_all)
{
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        (void)take_all(A);
        ck_assert(take(B));
        make();
        make(); /* at the most so many: one for each of them */
    }
}
END_TEST

START_TEST(all_who_lack_some_are_made_up_for_in_turn)
{
    begin();
    (void)take_all(A);
    (void)take_all(B);
    (void)take_all(C); /* 8, 4, 2 */
    for (int i = 0; i < 6; i++)
        make();
    ck_assert_uint_eq(share.taken[A - 1], 6);
    ck_assert_uint_eq(share.taken[B - 1], 2);
    ck_assert_uint_eq(share.taken[C - 1], 0);
    for (int i = 0; i < 8; i++)
        make();
    ck_assert_uint_eq(share.sum, 0);
    ck_assert_uint_eq(ready, TARGET);
}
END_TEST

START_TEST(where_nothing_is_lacking_nobody_is_held_to_what_he_took)
{
    begin();
    (void)take_all(A);
    ready = TARGET; /* fewer are to be than were */
    ck_assert_uint_eq(take_all(A), 8);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(each_tenant_leaves_as_many_as_it_took)                                                       \
    T(who_takes_whatever_is_made_gets_all_of_that_and_no_more)                                     \
    T(who_comes_now_and_then_finds_one_ready_beside_who_takes_all)                                 \
    T(all_who_lack_some_are_made_up_for_in_turn)                                                   \
    T(where_nothing_is_lacking_nobody_is_held_to_what_he_took)

KEDGE_CHECK_MAIN("agent.control.prewarm_share", TESTS)
