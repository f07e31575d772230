/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../../check_main.h"
#include "control/unread.h"

enum { MOST = 1200, ATTACH = 5, HOSTILE = 1, HONEST = 2, ITEMS = 512 };

static struct unread u;
static struct unread_item item[ITEMS];
static bool live[AGENT_TENANT_SLOTS];
static uint32_t used;

static void begin(uint32_t tenants)
{
    memset(&u, 0, sizeof u);
    memset(item, 0, sizeof item);
    memset(live, 0, sizeof live);
    used = 0;
    u.most = MOST;
    for (uint32_t i = 0; i < tenants; i++)
        live[i] = true;
}

/* Its workers attach and read nothing, as many as may. */
static uint32_t attach_all(uint32_t tenant)
{
    uint32_t n = 0;
    for (; agent_unread_allows(&u, live, tenant, ATTACH); n++) {
        ck_assert_uint_lt(used, ITEMS);
        agent_unread_add(&u, &item[used++], tenant, ATTACH);
    }
    return n;
}

START_TEST(one_tenant_that_reads_nothing_leaves_others_their_part)
{
    begin(2);
    ck_assert_uint_gt(attach_all(HOSTILE), 100);
    ck_assert(!agent_unread_allows(&u, live, HOSTILE, ATTACH));
    ck_assert_uint_ge(attach_all(HONEST), MOST / 2 / 3 / ATTACH);
}
END_TEST

START_TEST(however_many_read_nothing_each_has_its_part_and_all_are_bounded)
{
    begin(64);
    for (uint32_t tenant = 1; tenant < 64; tenant++)
        (void)attach_all(tenant);
    ck_assert(agent_unread_allows(&u, live, 64, ATTACH));
    ck_assert_uint_le(u.all, MOST);
}
END_TEST

START_TEST(what_is_refused_is_whose_fault_it_is)
{
    begin(2);
    u.wanted = MOST;
    (void)attach_all(HOSTILE);
    ck_assert(!agent_unread_allows_but_kernel(&u, live, HOSTILE, ATTACH));
    u.most = u.all + ATTACH; /* of the kernel's, others have the rest: a former life's workers */
    ck_assert(!agent_unread_allows(&u, live, HONEST, 2 * ATTACH));
    ck_assert(agent_unread_allows_but_kernel(&u, live, HONEST, 2 * ATTACH));
    ck_assert(!agent_unread_allows_but_kernel(&u, live, HOSTILE, ATTACH)); /* its own in any case */
}
END_TEST

START_TEST(a_tenant_that_comes_later_finds_room)
{
    begin(1);
    (void)attach_all(HOSTILE);
    live[HONEST - 1] = true;
    ck_assert_uint_ge(attach_all(HONEST), MOST / 2 / 3 / ATTACH);
}
END_TEST

START_TEST(what_is_read_may_be_sent_again)
{
    begin(2);
    const uint32_t n = attach_all(HOSTILE);
    for (uint32_t i = 0; i < n; i++)
        agent_unread_forget(&u, &item[i]);
    ck_assert_uint_eq(u.all, 0);
    ck_assert_ptr_null(agent_unread_next(&u, HOSTILE));
    used = 0;
    ck_assert_uint_eq(attach_all(HOSTILE), n);
}
END_TEST

START_TEST(a_connection_that_leaves_one_unread_counts_as_one_that_leaves_all)
{
    begin(2);
    agent_unread_add(&u, &item[0], HOSTILE, 1);
    ck_assert_uint_eq(u.all, ATTACH);
    agent_unread_add(&u, &item[0], HOSTILE, 1);
    ck_assert_uint_eq(u.all, ATTACH + 1);
    agent_unread_forget(&u, &item[0]);
    agent_unread_forget(&u, &item[0]);
    ck_assert_uint_eq(u.all, 0);
}
END_TEST

START_TEST(all_of_a_tenants_are_looked_at_in_turn)
{
    begin(1);
    for (int i = 0; i < 3; i++)
        agent_unread_add(&u, &item[i], HOSTILE, ATTACH);
    for (int i = 0; i < 6; i++)
        ck_assert_ptr_eq(agent_unread_next(&u, HOSTILE), &item[i % 3]);
    agent_unread_forget(&u, &item[1]);
    ck_assert_ptr_eq(agent_unread_next(&u, HOSTILE), &item[0]);
    ck_assert_ptr_eq(agent_unread_next(&u, HOSTILE), &item[2]);
    ck_assert_uint_eq(u.of[HOSTILE - 1].items, 2);
}
END_TEST

START_TEST(a_tenant_that_is_gone_leaves_its_number_to_another_without_a_debt)
{
    begin(2);
    const uint32_t n = attach_all(HOSTILE);
    agent_unread_end_tenant(&u, HOSTILE);
    ck_assert_uint_eq(u.of[HOSTILE - 1].count, 0);
    ck_assert_uint_eq(u.of[HOSTILE - 1].items, 0);
    ck_assert_uint_eq(u.all, n * ATTACH);
    ck_assert(agent_unread_allows(&u, live, HOSTILE, ATTACH));
    for (uint32_t i = 0; i < n; i++)
        agent_unread_forget(&u, &item[i]);
    ck_assert_uint_eq(u.all, 0);
}
END_TEST

START_TEST(nothing_is_sent_while_the_kernel_lets_nothing_be_sent)
{
    begin(2);
    u.most = 0;
    ck_assert(!agent_unread_allows(&u, live, HONEST, ATTACH));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_tenant_that_reads_nothing_leaves_others_their_part)                                      \
    T(however_many_read_nothing_each_has_its_part_and_all_are_bounded)                             \
    T(what_is_refused_is_whose_fault_it_is)                                                        \
    T(a_tenant_that_comes_later_finds_room)                                                        \
    T(what_is_read_may_be_sent_again)                                                              \
    T(a_connection_that_leaves_one_unread_counts_as_one_that_leaves_all)                           \
    T(all_of_a_tenants_are_looked_at_in_turn)                                                      \
    T(a_tenant_that_is_gone_leaves_its_number_to_another_without_a_debt)                           \
    T(nothing_is_sent_while_the_kernel_lets_nothing_be_sent)
KEDGE_CHECK_MAIN("agent.control.unread", TESTS)
