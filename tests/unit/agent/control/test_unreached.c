/* SPDX-License-Identifier: Apache-2.0 */
/* When a DC target may be made anew because other nodes do not reach this one. */
#include "../../check_main.h"
#include "control/unreached.h"

static const uint64_t S = 1000000000;

/* Every second, three of four that tried do not reach it; how often it is made anew. */
static uint64_t wait_for(struct agent_unreached *u, uint64_t *now, uint64_t seconds,
                         uint64_t least_ns)
{
    const uint64_t before = u->anew;
    for (const uint64_t end = *now + seconds * S; *now < end; *now += S) {
        (void)agent_unreached_hear(u, 3, 4, 0, *now);
        if (agent_unreached_may(u, *now))
            agent_unreached_heed(u, *now, least_ns);
    }
    return u->anew - before;
}

START_TEST(what_two_and_more_say_and_most_is_heard_once)
{
    struct agent_unreached u = {.is = false};
    const uint64_t now = 100 * S;
    ck_assert(!agent_unreached_hear(&u, 0, 0, 0, now));
    ck_assert(!agent_unreached_hear(&u, 1, 1, 0, now)); /* a liar, or one that is cut off */
    ck_assert(!agent_unreached_hear(&u, 2, 4, 0, now));
    ck_assert(!agent_unreached_hear(&u, 3, 2, 0, now)); /* which is nonsense */
    ck_assert(!agent_unreached_may(&u, now));
    ck_assert(agent_unreached_hear(&u, 2, 3, 5 * S, now));
    ck_assert(u.by == 2 && u.tried_by == 3 && u.since_ns == 95 * S);
    ck_assert(!agent_unreached_hear(&u, 3, 3, 200 * S, now));
    ck_assert(u.by == 3 && u.since_ns == 0);
    ck_assert(agent_unreached_may(&u, now));
    ck_assert(agent_unreached_hear(&u, 0, 0, 0, now));
    ck_assert(u.by == 0 && !agent_unreached_may(&u, now));
}
END_TEST

START_TEST(a_wire_that_is_cut_has_it_made_anew_ever_less_often)
{
    struct agent_unreached u = {.is = false};
    uint64_t now = 100 * S;
    ck_assert_uint_eq(wait_for(&u, &now, 60, 0), 1);
    ck_assert_uint_eq(wait_for(&u, &now, 60, 0), 1);
    ck_assert_uint_eq(wait_for(&u, &now, 40 * 60, 0), 4); /* after 2, 4, 8 and 16 minutes */
    ck_assert_uint_eq(wait_for(&u, &now, 160 * 60, 0), 10);
}
END_TEST

START_TEST(others_have_the_time_that_they_need_to_find_out_whether_it_helped)
{
    struct agent_unreached u = {.is = false};
    uint64_t now = 100 * S;
    ck_assert_uint_eq(wait_for(&u, &now, 80, 80 * S), 1);
    ck_assert_uint_eq(wait_for(&u, &now, 160, 80 * S), 1);
    ck_assert_uint_eq(wait_for(&u, &now, 1, 80 * S), 1);
    ck_assert_uint_eq(wait_for(&u, &now, 960, 3600 * S), 1); /* which has an end */
}
END_TEST

START_TEST(who_says_it_by_turns_brings_about_no_more)
{
    struct agent_unreached u = {.is = false};
    uint64_t now = 100 * S;
    for (uint64_t i = 0; i < 3600; i++, now += S) {
        (void)agent_unreached_hear(&u, i % 2 == 0 ? 3 : 0, i % 2 == 0 ? 4 : 0, 0, now);
        if (agent_unreached_may(&u, now))
            agent_unreached_heed(&u, now, 0);
    }
    ck_assert_uint_eq(u.anew, 7); /* at once, and after 1, 2, 4, 8, 16 and 16 minutes */
}
END_TEST

/* For as long as it takes to have it done at once, after each time that it would be long until the
 * next one. */
START_TEST(who_keeps_silent_in_between_brings_about_hardly_more)
{
    struct agent_unreached u = {.is = false};
    uint64_t now = 100 * S;
    for (uint64_t i = 0; i < 36000; i++, now += S) {
        const bool silent = u.wait_ns > 480 * S && now - u.anew_ns <= 960 * S;
        (void)agent_unreached_hear(&u, silent ? 0 : 3, silent ? 0 : 4, 0, now);
        if (agent_unreached_may(&u, now))
            agent_unreached_heed(&u, now, 0);
    }
    ck_assert_uint_le(u.anew, 4 + 36000 / 960 + 1);
}
END_TEST

START_TEST(what_has_helped_is_done_at_once_when_it_is_needed_again_much_later)
{
    struct agent_unreached u = {.is = false};
    uint64_t now = 100 * S;
    ck_assert_uint_eq(wait_for(&u, &now, 10, 0), 1);
    (void)agent_unreached_hear(&u, 0, 0, 0, now);
    now += 30 * S;
    ck_assert_uint_eq(wait_for(&u, &now, 1, 0), 0);
    now += 960 * S;
    (void)agent_unreached_hear(&u, 0, 0, 0, now);
    ck_assert_uint_eq(wait_for(&u, &now, 1, 0), 1);
    ck_assert_uint_eq(u.wait_ns, 60 * S);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_two_and_more_say_and_most_is_heard_once)                                                \
    T(a_wire_that_is_cut_has_it_made_anew_ever_less_often)                                         \
    T(others_have_the_time_that_they_need_to_find_out_whether_it_helped)                           \
    T(who_says_it_by_turns_brings_about_no_more)                                                   \
    T(who_keeps_silent_in_between_brings_about_hardly_more)                                        \
    T(what_has_helped_is_done_at_once_when_it_is_needed_again_much_later)
KEDGE_CHECK_MAIN("agent.control.unreached", TESTS)
