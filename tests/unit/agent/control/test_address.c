/* SPDX-License-Identifier: Apache-2.0 */
/* What is done about an address that comes and goes. */
#include <check.h>
#include <string.h>

#include "../../check_main.h"
#include "control/address.h"

#define S 1000000000ull

static const struct fab_own_address here = {.active = true, .has_gid = true, .sgid_index = 2};

static struct address in_force(void)
{
    return (struct address){.gid = {0xfd, [15] = 1}, .sgid_index = 2};
}

START_TEST(an_address_that_stays_is_no_news)
{
    struct address a = in_force();
    for (uint64_t t = 1; t < 100; t++)
        ck_assert_int_eq(agent_address_seen(&a, &here, t * S), ADDRESS_SAME);
}
END_TEST

START_TEST(an_address_that_is_gone_is_told_once)
{
    const struct fab_own_address gone = {.active = true};
    struct address a = in_force();
    ck_assert_int_eq(agent_address_seen(&a, &gone, 5 * S), ADDRESS_GONE);
    ck_assert(a.gone);
    ck_assert_uint_eq(a.gone_ns, 5 * S);
    for (uint64_t t = 6; t < 100; t++)
        ck_assert_int_eq(agent_address_seen(&a, &gone, t * S), ADDRESS_SAME);
}
END_TEST

START_TEST(an_address_that_comes_back_under_its_index_goes_on)
{
    const struct fab_own_address gone = {.active = true};
    struct address a = in_force();
    ck_assert_int_eq(agent_address_seen(&a, &gone, 5 * S), ADDRESS_GONE);
    ck_assert_int_eq(agent_address_seen(&a, &here, 90 * S), ADDRESS_BACK);
    ck_assert_int_eq(agent_address_seen(&a, &here, 91 * S), ADDRESS_SAME);
    ck_assert(!a.gone);
}
END_TEST

START_TEST(an_address_that_comes_back_under_another_index_has_moved)
{
    const struct fab_own_address gone = {.active = true};
    struct fab_own_address there = here;
    struct address a = in_force();
    there.sgid_index = 9;
    ck_assert_int_eq(agent_address_seen(&a, &gone, 5 * S), ADDRESS_GONE);
    ck_assert_int_eq(agent_address_seen(&a, &there, 6 * S), ADDRESS_MOVED);
    ck_assert_uint_eq(a.sgid_index, 9);
    ck_assert_int_eq(agent_address_seen(&a, &there, 7 * S), ADDRESS_SAME);
}
END_TEST

START_TEST(an_address_whose_going_nobody_saw_has_moved_too)
{
    struct fab_own_address there = here;
    struct address a = in_force();
    there.sgid_index = 9;
    ck_assert_int_eq(agent_address_seen(&a, &there, 6 * S), ADDRESS_MOVED);
}
END_TEST

START_TEST(another_gid_takes_its_place_when_it_has_been_away_for_long)
{
    const struct fab_own_address other = {
        .active = true, .has_other = true, .other = {0xfd, [15] = 2}, .other_index = 4};
    struct address a = in_force();
    ck_assert_int_eq(agent_address_seen(&a, &other, 5 * S), ADDRESS_GONE);
    ck_assert_int_eq(agent_address_seen(&a, &other, 5 * S + ADDRESS_PATIENCE_NS - 1), ADDRESS_SAME);
    ck_assert_int_eq(agent_address_seen(&a, &other, 5 * S + ADDRESS_PATIENCE_NS), ADDRESS_CHANGED);
    ck_assert_uint_eq(a.gid[15], 2);
    ck_assert_uint_eq(a.sgid_index, 4);
    ck_assert(!a.gone);
}
END_TEST

/* The one that the settings name is waited for, however long. */
START_TEST(no_other_gid_is_taken_where_one_is_set)
{
    const struct fab_own_address gone = {.active = true};
    struct address a = in_force();
    (void)agent_address_seen(&a, &gone, 5 * S);
    ck_assert_int_eq(agent_address_seen(&a, &gone, 500 * S), ADDRESS_SAME);
    ck_assert_uint_eq(a.gid[15], 1);
}
END_TEST

/* An interface that goes down loses all its addresses, and one of another may be left. */
START_TEST(no_other_gid_is_taken_while_the_port_is_down)
{
    const struct fab_own_address down = {.has_other = true, .other = {0xfe, 0x80, [15] = 2}};
    struct address a = in_force();
    (void)agent_address_seen(&a, &down, 5 * S);
    ck_assert_int_eq(agent_address_seen(&a, &down, 500 * S), ADDRESS_SAME);
}
END_TEST

START_TEST(another_lid_is_another_address_and_none_is_waited_for)
{
    struct fab_own_address there = here;
    struct address a = in_force();
    a.lid = 7;
    ck_assert_int_eq(agent_address_seen(&a, &there, 5 * S), ADDRESS_SAME);
    ck_assert_uint_eq(a.lid, 7);
    there.lid = 8;
    ck_assert_int_eq(agent_address_seen(&a, &there, 5 * S), ADDRESS_CHANGED);
    ck_assert_uint_eq(a.lid, 8);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_address_that_stays_is_no_news)                                                            \
    T(an_address_that_is_gone_is_told_once)                                                        \
    T(an_address_that_comes_back_under_its_index_goes_on)                                          \
    T(an_address_that_comes_back_under_another_index_has_moved)                                    \
    T(an_address_whose_going_nobody_saw_has_moved_too)                                             \
    T(another_gid_takes_its_place_when_it_has_been_away_for_long)                                  \
    T(no_other_gid_is_taken_where_one_is_set)                                                      \
    T(no_other_gid_is_taken_while_the_port_is_down)                                                \
    T(another_lid_is_another_address_and_none_is_waited_for)

KEDGE_CHECK_MAIN("agent.control.address", TESTS)
