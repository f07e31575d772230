/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "../../check_main.h"
#include "agent/reserve.h"

enum { MOST = 64 };

static uint32_t has[MOST], reserved[MOST];

static void begin(uint64_t capacity, uint32_t tenants)
{
    memset(has, 0, sizeof has);
    memset(reserved, 0, sizeof reserved);
    for (uint32_t i = 0; i < tenants; i++)
        reserved[i] = lane_reserve_each(capacity, tenants);
}

/* As much as it gets; returns how much it has then. */
static uint32_t take_all(uint64_t capacity, uint32_t which)
{
    while (lane_reserve_allows(capacity, has, reserved, MOST, which))
        has[which]++;
    return has[which];
}

START_TEST(a_tenant_that_is_alone_has_all)
{
    begin(1024, 1);
    ck_assert_uint_eq(take_all(1024, 0), 1024);
}
END_TEST

START_TEST(whatever_all_others_take_each_tenant_gets_its_reserve)
{
    for (uint32_t tenants = 2; tenants <= MOST; tenants++) {
        begin(1024, tenants);
        const uint32_t each = 1024 / 2 / tenants;
        uint64_t used = 0;
        for (uint32_t i = 0; i < tenants; i++) {
            ck_assert_uint_ge(take_all(1024, i), each);
            used += has[i];
        }
        ck_assert_uint_eq(used, 1024);
    }
}
END_TEST

START_TEST(what_is_reserved_for_one_that_goes_is_free)
{
    begin(16, 2);
    ck_assert_uint_eq(take_all(16, 0), 12);
    reserved[1] = 0;
    ck_assert_uint_eq(take_all(16, 0), 16);
}
END_TEST

/* What others took before it came they keep; it gets what comes back before they do. */
START_TEST(one_that_comes_when_all_is_taken_gets_what_comes_back)
{
    begin(16, 1);
    ck_assert_uint_eq(take_all(16, 0), 16);
    reserved[0] = reserved[1] = lane_reserve_each(16, 2);
    ck_assert(!lane_reserve_allows(16, has, reserved, MOST, 1));
    has[0]--;
    ck_assert(!lane_reserve_allows(16, has, reserved, MOST, 0));
    ck_assert(lane_reserve_allows(16, has, reserved, MOST, 1));
}
END_TEST

START_TEST(of_less_than_there_are_tenants_nothing_is_reserved)
{
    ck_assert_uint_eq(lane_reserve_each(3, 4), 0);
    ck_assert_uint_eq(lane_reserve_each(4, 4), 1);
    ck_assert_uint_eq(lane_reserve_each(0, 1), 0);
    begin(0, 1);
    ck_assert_uint_eq(take_all(0, 0), 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_tenant_that_is_alone_has_all)                                                              \
    T(whatever_all_others_take_each_tenant_gets_its_reserve)                                       \
    T(what_is_reserved_for_one_that_goes_is_free)                                                  \
    T(one_that_comes_when_all_is_taken_gets_what_comes_back)                                       \
    T(of_less_than_there_are_tenants_nothing_is_reserved)
KEDGE_CHECK_MAIN("agent.lane.reserve", TESTS)
