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

/* Beside others that have 0 to all of theirs, and of each number that may be asked for. */
START_TEST(some_at_once_are_as_many_as_one_by_one)
{
    for (uint32_t others = 0; others <= ALL; others++)
        for (uint32_t has = 0; has <= 3; has++)
            for (uint32_t most = 0; most <= ALL + 1; most++) {
                uint32_t one_by_one = 0;
                begin();
                (void)lane_places_take_some(&p, 3, has);
                (void)lane_places_take_some(&p, 1, others);
                (void)lane_places_take_some(&p, 2, others / 2);
                const struct places before = p;
                while (one_by_one < most && lane_places_take(&p, 3))
                    one_by_one++;
                const struct places after = p;
                lane_places_give_some(&p, 3, one_by_one);
                ck_assert_uint_eq(p.used, before.used);
                ck_assert_uint_eq(p.having, before.having);
                ck_assert_uint_eq(lane_places_take_some(&p, 3, most), one_by_one);
                ck_assert_uint_eq(p.used, after.used);
                ck_assert_uint_eq(p.having, after.having);
                lane_places_free(&p);
            }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_is_alone_has_all_common_ones_and_his_own)                                                \
    T(each_that_comes_has_one_at_once_whatever_others_have)                                        \
    T(who_has_more_than_its_part_gives_back_before_it_takes)                                       \
    T(whose_places_are_all_given_back_leaves_its_part_to_the_others)                               \
    T(some_at_once_are_as_many_as_one_by_one)
KEDGE_CHECK_MAIN("agent.lane.places", TESTS)
