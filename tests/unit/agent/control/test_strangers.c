/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "control/strangers.h"

static struct strangers all;
static uid_t out[STRANGERS_KNOWN];

/* How many times it has to come, one after the other in so long, until it is kept out. */
static uint32_t come_until_out(uid_t uid, uint64_t from_ns, uint64_t each_ns, uint32_t most)
{
    for (uint32_t i = 1; i <= most; i++)
        if (agent_strangers_refused(&all, uid, from_ns + i * each_ns))
            return i;
    return 0;
}

START_TEST(who_is_refused_often_in_a_second_is_kept_out_for_some)
{
    memset(&all, 0, sizeof all);
    ck_assert_uint_eq(come_until_out(7, 0, 1000, 1000), STRANGER_REFUSALS);
    ck_assert_uint_eq(agent_strangers_out(&all, out), 1);
    ck_assert_uint_eq(out[0], 7);
    ck_assert_uint_eq(all.kept_out, 1);
    /* those who had connected before say nothing new */
    ck_assert_uint_eq(come_until_out(7, BASE_NS_PER_S / 10, 1000, 1000), 0);
    ck_assert(!agent_strangers_let_in(&all, STRANGER_OUT_S * BASE_NS_PER_S, NULL, NULL));
    ck_assert(agent_strangers_let_in(&all, (STRANGER_OUT_S + 1) * BASE_NS_PER_S, NULL, NULL));
    ck_assert_uint_eq(agent_strangers_out(&all, out), 0);
    ck_assert_uint_eq(come_until_out(7, 7 * BASE_NS_PER_S, 1000, 1000), STRANGER_REFUSALS);
    ck_assert_uint_eq(all.kept_out, 2);
}
END_TEST

START_TEST(who_comes_now_and_then_is_not)
{
    memset(&all, 0, sizeof all);
    ck_assert_uint_eq(
        come_until_out(7, 0, BASE_NS_PER_S / (STRANGER_REFUSALS - 1) + 1, 10 * STRANGER_REFUSALS),
        0);
    ck_assert_uint_eq(agent_strangers_out(&all, out), 0);
}
END_TEST

static bool is_even(void *user, uid_t uid)
{
    (void)user;
    return uid % 2 == 0;
}

START_TEST(a_tenants_uid_is_let_in_at_once)
{
    memset(&all, 0, sizeof all);
    for (uid_t uid = 1; uid <= 4; uid++)
        ck_assert_uint_eq(come_until_out(uid, 0, 1000, 1000), STRANGER_REFUSALS);
    ck_assert(agent_strangers_let_in(&all, BASE_NS_PER_S, is_even, NULL));
    ck_assert_uint_eq(agent_strangers_out(&all, out), 2);
    ck_assert(out[0] == 2 && out[1] == 4);
    ck_assert(!agent_strangers_let_in(&all, BASE_NS_PER_S, is_even, NULL));
}
END_TEST

/* One user may have 65,536 uids: those are kept out that are counted, and nobody else. */
START_TEST(more_uids_than_are_known_forget_the_silent_and_none_that_is_out)
{
    memset(&all, 0, sizeof all);
    ck_assert_uint_eq(come_until_out(1, 0, 1000, 1000), STRANGER_REFUSALS);
    for (uid_t uid = 1000; uid < 3000; uid++)
        (void)agent_strangers_refused(&all, uid, BASE_NS_PER_S + uid);
    ck_assert_uint_eq(agent_strangers_out(&all, out), 1);
    ck_assert_uint_eq(come_until_out(2, BASE_NS_PER_S + 5000, 1, 1000), STRANGER_REFUSALS);
    for (uid_t uid = 10000; uid < 10000 + STRANGERS_KNOWN; uid++)
        (void)come_until_out(uid, 2 * BASE_NS_PER_S, 1, STRANGER_REFUSALS);
    ck_assert_uint_eq(agent_strangers_out(&all, out), STRANGERS_KNOWN);
    ck_assert_uint_eq(come_until_out(5, 2 * BASE_NS_PER_S, 1, 1000), 0); /* no room: as before */
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_is_refused_often_in_a_second_is_kept_out_for_some)                                       \
    T(who_comes_now_and_then_is_not)                                                               \
    T(a_tenants_uid_is_let_in_at_once)                                                             \
    T(more_uids_than_are_known_forget_the_silent_and_none_that_is_out)
KEDGE_CHECK_MAIN("agent.control.strangers", TESTS)
