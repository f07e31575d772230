/* SPDX-License-Identifier: Apache-2.0 */
/* Places of which there are few, and tenants that take them. */
#include "message/places.h"

#include "../../check_main.h"

enum { ALL = 20, TENANTS = 7, COMMON = ALL - TENANTS - 1 };

static struct places p;

static void begin(void)
{
    ck_assert_int_eq(lane_places_init(&p, ALL, TENANTS), 0);
}

/* Returns how many it got. */
static uint32_t take_all(uint32_t tenant)
{
    uint32_t n = 0;
    while (lane_places_take(&p, tenant))
        n++;
    return n;
}

START_TEST(who_is_alone_has_all_common_ones_and_his_own)
{
    begin();
    ck_assert_uint_eq(take_all(1), COMMON + 1);
    lane_places_free(&p);
}
END_TEST

START_TEST(each_that_comes_has_one_at_once_whatever_others_have)
{
    begin();
    (void)take_all(1);
    for (uint32_t tenant = 0; tenant <= TENANTS; tenant++)
        if (tenant != 1)
            ck_assert_uint_eq(take_all(tenant), 1);
    ck_assert_uint_eq(p.used, ALL);
    lane_places_free(&p);
}
END_TEST

START_TEST(who_has_more_than_its_part_gives_back_before_it_takes)
{
    uint32_t other;
    begin();
    (void)take_all(1);
    other = take_all(2);
    for (uint32_t left = COMMON + 1; left > COMMON / 2 + 1; left--) {
        lane_places_give(&p, 1);
        ck_assert(!lane_places_take(&p, 1));
        other += take_all(2);
    }
    ck_assert_uint_eq(other, COMMON / 2 + 1);
    lane_places_give(&p, 1);
    ck_assert(lane_places_take(&p, 1));
    lane_places_free(&p);
}
END_TEST

START_TEST(whose_places_are_all_given_back_leaves_its_part_to_the_others)
{
    begin();
    for (int round = 0; round < 3; round++) {
        const uint32_t first = take_all(1);
        const uint32_t other = take_all(2);
        for (uint32_t n = 0; n < first; n++)
            lane_places_give(&p, 1);
        ck_assert_uint_eq(other + take_all(2), COMMON + 1);
        for (uint32_t n = 0; n < COMMON + 1; n++)
            lane_places_give(&p, 2);
        ck_assert_uint_eq(p.used, 0);
        ck_assert_uint_eq(p.having, 0);
    }
    lane_places_free(&p);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_is_alone_has_all_common_ones_and_his_own)                                                \
    T(each_that_comes_has_one_at_once_whatever_others_have)                                        \
    T(who_has_more_than_its_part_gives_back_before_it_takes)                                       \
    T(whose_places_are_all_given_back_leaves_its_part_to_the_others)
KEDGE_CHECK_MAIN("agent.lane.places", TESTS)
