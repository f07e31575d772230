/* SPDX-License-Identifier: Apache-2.0 */
/* When a lane's thread sleeps. */
#include "../../check_main.h"
#include "agent/polling.h"

enum { RETRIES = 120, MANY = 100000 };

static uint32_t count_polls(struct polling *p)
{
    uint32_t n = 1;
    while (n < MANY && !polling_sleeps(p, false))
        n++;
    return n;
}

START_TEST(adaptive_polls_so_many_times_in_vain_before_it_sleeps)
{
    struct polling p = {.mode = POLLING_ADAPTIVE, .max_retry = RETRIES};
    ck_assert(!polling_sleeps(&p, true));
    ck_assert_uint_eq(count_polls(&p), RETRIES + 1);
}
END_TEST

START_TEST(what_comes_with_short_gaps_keeps_an_adaptive_lane_awake)
{
    struct polling p = {.mode = POLLING_ADAPTIVE, .max_retry = RETRIES};
    for (int i = 0; i < MANY; i++)
        ck_assert(!polling_sleeps(&p, i % RETRIES == 0));
    for (int i = 0; i < 10; i++) {
        ck_assert(!polling_sleeps(&p, true));
        ck_assert_uint_eq(count_polls(&p), RETRIES + 1);
    }
}
END_TEST

/* A doorbell with nothing behind it, or a time that was over, costs one pass. */
START_TEST(who_was_woken_for_nothing_sleeps_after_one_poll)
{
    struct polling p = {.mode = POLLING_ADAPTIVE, .max_retry = RETRIES};
    ck_assert_uint_eq(count_polls(&p), RETRIES + 1);
    for (int i = 0; i < MANY; i++)
        ck_assert_uint_eq(count_polls(&p), 1);
    ck_assert(!polling_sleeps(&p, true));
    ck_assert_uint_eq(count_polls(&p), RETRIES + 1);
    ck_assert(!polling_sleeps(&p, true));
    polling_end(&p);
    ck_assert_uint_eq(count_polls(&p), 1);
}
END_TEST

START_TEST(busy_never_sleeps)
{
    struct polling p = {.mode = POLLING_BUSY, .max_retry = 0};
    ck_assert_uint_eq(count_polls(&p), MANY);
    ck_assert(!polling_sleeps(&p, true));
    ck_assert_uint_eq(count_polls(&p), MANY);
    ck_assert(!polling_hands_over(&p)); /* which would be a sleep */
}
END_TEST

START_TEST(event_sleeps_as_soon_as_nothing_is_left)
{
    struct polling p = {.mode = POLLING_EVENT, .max_retry = RETRIES};
    for (int i = 0; i < 3; i++) {
        ck_assert(!polling_sleeps(&p, true));
        ck_assert_uint_eq(count_polls(&p), 1);
    }
    p = (struct polling){.mode = POLLING_ADAPTIVE, .max_retry = 0}; /* the same */
    ck_assert(!polling_sleeps(&p, true));
    ck_assert_uint_eq(count_polls(&p), 1);
}
END_TEST

START_TEST(the_largest_number_of_retries_is_counted_to_its_end)
{
    struct polling p = {.mode = POLLING_ADAPTIVE, .max_retry = UINT32_MAX - 1};
    p.empty = UINT32_MAX - 2;
    ck_assert_uint_eq(count_polls(&p), 2);
    ck_assert_uint_eq(count_polls(&p), 1);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(adaptive_polls_so_many_times_in_vain_before_it_sleeps)                                       \
    T(what_comes_with_short_gaps_keeps_an_adaptive_lane_awake)                                     \
    T(who_was_woken_for_nothing_sleeps_after_one_poll)                                             \
    T(busy_never_sleeps)                                                                           \
    T(event_sleeps_as_soon_as_nothing_is_left)                                                     \
    T(the_largest_number_of_retries_is_counted_to_its_end)

KEDGE_CHECK_MAIN("agent.lane.polling", TESTS)
