/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent keeps of whom it reaches. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "control/reach.h"

static const uint64_t S = 1000000000;

static struct agent_reach_peer peer(uint8_t number)
{
    struct agent_reach_peer p = {.name = "node-x"};
    memset(p.gid, number, sizeof p.gid);
    return p;
}

START_TEST(targets_are_tried_in_turn)
{
    struct agent_reach r = {.next = 0};
    struct agent_reach_peer peers[AGENT_REACH_PEERS];
    int seen[AGENT_REACH_TARGETS] = {0};
    ck_assert_int_eq(agent_reach_next(&r), -1);
    agent_reach_metaserver(&r, 0, "http://m");
    for (uint8_t i = 0; i < AGENT_REACH_PEERS; i++)
        peers[i] = peer(i);
    agent_reach_peers(&r, peers, AGENT_REACH_PEERS);
    for (int i = 0; i < 3 * (AGENT_REACH_PEERS + 1); i++)
        seen[agent_reach_next(&r)]++;
    for (int i = 0; i < AGENT_REACH_TARGETS; i++)
        ck_assert_int_eq(seen[i], r.at[i].used ? 3 : 0);
}
END_TEST

START_TEST(a_change_is_news_once)
{
    struct agent_reach r = {.next = 0};
    agent_reach_metaserver(&r, 0, "http://m");
    const int at = agent_reach_next(&r);
    ck_assert_int_eq(agent_reach_note(&r, at, 0, S, S), AGENT_REACH_KNOWN);
    ck_assert_int_eq(agent_reach_note(&r, at, 0, 2 * S, S), AGENT_REACH_SAME);
    ck_assert_int_eq(agent_reach_note(&r, at, -ETIMEDOUT, 3 * S, S), AGENT_REACH_FAILS);
    ck_assert_int_eq(agent_reach_note(&r, at, -ETIMEDOUT, 4 * S, S), AGENT_REACH_SAME);
    ck_assert_int_eq(agent_reach_note(&r, at, -EREMOTEIO, 5 * S, S), AGENT_REACH_OTHER);
    struct agent_reach_counts c = agent_reach_count(&r);
    ck_assert_uint_eq(c.failing, 1);
    ck_assert_uint_eq(c.since_ns, 3 * S); /* all the time */
    ck_assert_int_eq(agent_reach_note(&r, at, 0, 6 * S, S), AGENT_REACH_AGAIN);
    c = agent_reach_count(&r);
    ck_assert_uint_eq(c.tried, 1);
    ck_assert_uint_eq(c.failing, 0);
}
END_TEST

START_TEST(what_cannot_be_tried_is_believed_for_a_while)
{
    struct agent_reach r = {.next = 0};
    agent_reach_metaserver(&r, 0, "http://m");
    const int at = agent_reach_next(&r);
    ck_assert_int_eq(agent_reach_note(&r, at, -EAGAIN, S, 10 * S), AGENT_REACH_SAME);
    ck_assert_uint_eq(agent_reach_count(&r).tried, 0);
    ck_assert_int_eq(agent_reach_note(&r, at, -ETIMEDOUT, 2 * S, 10 * S), AGENT_REACH_FAILS);
    ck_assert_int_eq(agent_reach_note(&r, at, -EAGAIN, 12 * S, 10 * S), AGENT_REACH_SAME);
    ck_assert_uint_eq(agent_reach_count(&r).failing, 1);
    ck_assert_int_eq(agent_reach_note(&r, at, -EAGAIN, 13 * S, 10 * S), AGENT_REACH_GONE);
    ck_assert_uint_eq(agent_reach_count(&r).tried, 0);
}
END_TEST

START_TEST(peers_that_stay_keep_what_is_known_and_those_that_go_take_it_with_them)
{
    struct agent_reach r = {.next = 0};
    struct agent_reach_peer peers[] = {peer(1), peer(2)};
    agent_reach_peers(&r, peers, 2);
    const int one = agent_reach_next(&r), two = agent_reach_next(&r);
    (void)agent_reach_note(&r, one, -ETIMEDOUT, S, S);
    (void)agent_reach_note(&r, two, -ETIMEDOUT, S, S);
    ck_assert_uint_eq(agent_reach_count(&r).failing, 2);
    peers[0] = peer(3);
    agent_reach_peers(&r, peers, 2);
    ck_assert_uint_eq(agent_reach_count(&r).failing, 1);
    ck_assert_uint_eq(agent_reach_count(&r).tried, 1);
    ck_assert_int_eq(agent_reach_note(&r, two, -ENOENT, 2 * S, S), AGENT_REACH_GONE);
    ck_assert_uint_eq(agent_reach_count(&r).tried, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(targets_are_tried_in_turn)                                                                   \
    T(a_change_is_news_once)                                                                       \
    T(what_cannot_be_tried_is_believed_for_a_while)                                                \
    T(peers_that_stay_keep_what_is_known_and_those_that_go_take_it_with_them)
KEDGE_CHECK_MAIN("agent.control.reach", TESTS)
