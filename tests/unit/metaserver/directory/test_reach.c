/* SPDX-License-Identifier: Apache-2.0 */
/* Whom to blame when nodes do not reach each other. */
#include "../../check_main.h"
#include "metaserver/reach.h"

enum { NODES = 8, A = 0, B, C, D, E };
static const uint64_t S = 1000000000;
static struct meta_reach *r;
static uint64_t now;

static void setup(void)
{
    r = meta_reach_new(NODES, 5 * S);
    ck_assert_ptr_nonnull(r);
    now = 100 * S;
}

static void teardown(void)
{
    meta_reach_free(r);
}

/* Of `node`: which of the nodes A to E it has tried and which of them fail, as bits; and whether
 * the table does (-1: it was not tried). */
static void say(uint32_t node, unsigned tried, unsigned failing, int table_fails)
{
    struct meta_reach_report report = {.has_table = table_fails >= 0};
    if (table_fails > 0)
        report.table.error = META_REACH_TIMEOUT;
    for (uint32_t i = 0; i < NODES; i++)
        if (tried >> i & 1)
            report.tried[report.count++] = (struct meta_reach_tried){
                .node = i, .error = failing >> i & 1 ? META_REACH_TIMEOUT : META_REACH_OK};
    meta_reach_put(r, node, &report, now);
}

static struct meta_reach_view view(uint32_t node)
{
    struct meta_reach_view v;
    meta_reach_show(r, node, now, &v);
    return v;
}

static void is(uint32_t node, enum meta_reach_state state, uint32_t failing)
{
    const struct meta_reach_view v = view(node);
    ck_assert_msg(v.state == state, "node %u is %s, not %s", node, meta_reach_state_name(v.state),
                  meta_reach_state_name(state));
    ck_assert_uint_eq(v.failing, failing);
}
#define OK_          META_REACH_STATE_OK
#define UNDECIDED    META_REACH_STATE_UNDECIDED
#define FAILING      META_REACH_STATE_FAILING
#define UNREACHABLE_ META_REACH_STATE_UNREACHABLE
#define UNKNOWN      META_REACH_STATE_UNKNOWN
#define BIT(node)    (1u << (node))

START_TEST(of_a_node_that_nobody_speaks_of_nothing_is_known)
{
    is(A, UNKNOWN, 0);
    say(A, BIT(B), 0, 0);
    is(A, OK_, 0);
    is(B, OK_, 0); /* it is reached */
    is(C, UNKNOWN, 0);
}
END_TEST

START_TEST(a_target_that_most_do_not_reach_is_reported_and_nobody_else_changes)
{
    say(A, BIT(B) | BIT(C) | BIT(D), BIT(C), 0);
    is(A, UNDECIDED, 1); /* one voice */
    is(C, UNDECIDED, 0);
    say(B, BIT(A) | BIT(C) | BIT(D), BIT(C), 0);
    say(D, BIT(A) | BIT(B) | BIT(C), BIT(C), 0);
    is(A, OK_, 0);
    is(B, OK_, 0);
    is(D, OK_, 0);
    is(C, UNREACHABLE_, 0);
    ck_assert_uint_eq(view(C).failed_by, 3);
    ck_assert_uint_eq(view(C).tried_by, 3);
    ck_assert_uint_eq(meta_reach_count(r).unreachable, 1);
    now += 5 * S;
    ck_assert_uint_eq(view(C).for_ns, 5 * S);
    say(A, BIT(B) | BIT(C) | BIT(D), 0, 0);
    is(C, UNREACHABLE_, 0); /* two of three */
    say(B, BIT(A) | BIT(C) | BIT(D), 0, 0);
    is(C, OK_, 0);
    is(D, FAILING, 1); /* one of three: its own trouble */
    ck_assert_uint_eq(meta_reach_count(r).unreachable, 0);
}
END_TEST

/* Of each report the former one's voice is taken away first: two of two are one for a moment, and
 * so are two of three. */
START_TEST(a_node_is_unreachable_since_it_is_and_not_since_that_was_last_said)
{
    struct meta_reach_unreached u;
    const uint64_t since = now;
    for (int i = 0; i < 20; i++) {
        say(A, BIT(B) | BIT(C), BIT(C), 0);
        say(B, BIT(A) | BIT(C), BIT(C), 0);
        if (i >= 10)
            say(E, BIT(A) | BIT(C), 0, 0);
        now += S;
        ck_assert_uint_eq(meta_reach_count(r).unreachable, 1);
        ck_assert_uint_eq(view(C).for_ns, now - since);
        ck_assert(meta_reach_is_unreached(r, C, now, &u));
        ck_assert_uint_eq(u.for_ns, now - since);
    }
    say(A, BIT(B), 0, 0);
    is(C, OK_, 0); /* E reaches it, and B does not */
    ck_assert_uint_eq(meta_reach_count(r).unreachable, 0);
    say(A, BIT(B) | BIT(C), BIT(C), 0);
    now += S;
    ck_assert_uint_eq(view(C).for_ns, S);
}
END_TEST

/* A node acts on it, so that no other one alone may bring it about, whatever it says. */
START_TEST(a_node_is_told_that_it_is_not_reached_by_two_and_more_alone)
{
    struct meta_reach_unreached u = {.by = 77};
    meta_reach_seen(r, C, now);
    now += 6 * S; /* C is late, by which one voice is enough to show it as unreachable */
    meta_reach_seen(r, A, now);
    say(A, BIT(B) | BIT(C), BIT(C), 0);
    is(C, UNREACHABLE_, 0);
    ck_assert(!meta_reach_is_unreached(r, C, now, &u));
    ck_assert_uint_eq(u.by, 77);
    for (int i = 0; i < 100; i++)
        say(A, BIT(B) | BIT(C) | BIT(D), BIT(C) | BIT(D), 0);
    ck_assert(!meta_reach_is_unreached(r, C, now, &u));
    ck_assert(!meta_reach_is_unreached(r, D, now, &u));
    say(E, BIT(C) | BIT(D), BIT(C) | BIT(D), 1); /* who has no voice adds none */
    ck_assert(!meta_reach_is_unreached(r, C, now, &u));
    say(B, BIT(A) | BIT(C), BIT(C), 0);
    now += 2 * S;
    ck_assert(meta_reach_is_unreached(r, C, now, &u));
    ck_assert(u.by == 2 && u.tried_by == 2 && u.for_ns == 2 * S);
    say(D, BIT(C), 0, 0);
    ck_assert(meta_reach_is_unreached(r, C, now, &u));
    say(E, BIT(C), 0, 0); /* half of those that tried are not most */
    ck_assert(!meta_reach_is_unreached(r, C, now, &u));
}
END_TEST

START_TEST(half_of_those_that_tried_are_not_most)
{
    say(A, BIT(C) | BIT(B), BIT(C), 0);
    say(B, BIT(C) | BIT(A), BIT(C), 0);
    say(D, BIT(C), 0, 0);
    say(E, BIT(C), 0, 0);
    is(C, OK_, 0);
    is(A, FAILING, 1);
    is(B, FAILING, 1);
}
END_TEST

/* C is cut off: it reaches nobody, and nobody reaches it. */
START_TEST(a_node_that_fails_towards_all_is_shown_and_has_no_voice_about_others)
{
    say(C, BIT(A) | BIT(B), BIT(A) | BIT(B), 1);
    is(C, FAILING, 3);
    ck_assert(view(C).table);
    is(A, UNKNOWN, 0);
    say(D, BIT(A) | BIT(B), BIT(A) | BIT(B), 1);
    is(A, UNKNOWN, 0); /* two that are cut off do not make a third one unreachable */
    is(B, UNKNOWN, 0);
    ck_assert_uint_eq(view(A).failed_by, 0);
    ck_assert_uint_eq(meta_reach_count(r).table_tried, 0);
}
END_TEST

START_TEST(who_has_tried_nothing_but_what_is_to_blame_is_not_failing)
{
    say(A, BIT(B) | BIT(C), BIT(C), 0);
    say(B, BIT(A) | BIT(C), BIT(C), 0);
    say(D, BIT(C), BIT(C), -1);
    is(C, UNREACHABLE_, 0);
    is(D, UNKNOWN, 0);
}
END_TEST

START_TEST(a_table_that_most_do_not_reach_is_nobodys_failing)
{
    say(A, BIT(B) | BIT(C), 0, 1);
    is(A, FAILING, 1);
    ck_assert(view(A).table);
    say(B, BIT(A) | BIT(C), 0, 1);
    is(A, OK_, 0);
    is(B, OK_, 0);
    ck_assert_uint_eq(meta_reach_count(r).table_failed, 2);
    ck_assert_uint_eq(meta_reach_count(r).unreachable, 0); /* it is no node */
}
END_TEST

START_TEST(what_is_not_repeated_goes)
{
    say(A, BIT(B) | BIT(C), BIT(C), 0);
    now += S;
    say(B, BIT(A) | BIT(C), BIT(C), 0);
    is(C, UNREACHABLE_, 0);
    now += META_REACH_KEEP_NS - S;
    meta_reach_expire(r, now);
    is(C, UNDECIDED, 0);
    is(B, UNDECIDED, 1);
    now += S;
    meta_reach_expire(r, now);
    is(B, UNKNOWN, 0);
    ck_assert_uint_eq(view(C).tried_by, 0);
}
END_TEST

START_TEST(a_report_takes_the_place_of_the_one_before)
{
    for (int i = 0; i < 100; i++)
        say(A, BIT(B) | BIT(C), BIT(C), 0);
    ck_assert_uint_eq(view(C).failed_by, 1);
    is(C, UNDECIDED, 0);
    say(A, BIT(B), 0, 0);
    is(C, UNKNOWN, 0);
    ck_assert_uint_eq(view(C).tried_by, 0);
}
END_TEST

START_TEST(a_target_counts_once_and_nobody_speaks_of_himself)
{
    struct meta_reach_report report = {.count = 5};
    for (uint32_t i = 0; i < 3; i++)
        report.tried[i] = (struct meta_reach_tried){.node = C, .error = META_REACH_REFUSED};
    report.tried[3] = (struct meta_reach_tried){.node = A, .error = META_REACH_TIMEOUT};
    report.tried[4] = (struct meta_reach_tried){.node = B};
    meta_reach_put(r, A, &report, now);
    ck_assert_uint_eq(view(C).failed_by, 1);
    ck_assert_uint_eq(view(A).tried_by, 0);
    ck_assert_uint_eq(view(A).tried, 2);
}
END_TEST

START_TEST(another_life_of_a_node_begins_without_what_was_said_of_the_former)
{
    say(A, BIT(B) | BIT(C), BIT(C), 0);
    say(B, BIT(A) | BIT(C), BIT(C), 0);
    is(C, UNREACHABLE_, 0);
    meta_reach_drop(r, C);
    is(C, UNKNOWN, 0);
    is(A, OK_, 0); /* what it did not reach is not there any more */
    ck_assert_uint_eq(meta_reach_count(r).unreachable, 0);
    say(A, BIT(B), 0, 0); /* its former voice is not taken away from the new one */
    ck_assert_uint_eq(view(C).tried_by, 0);
    meta_reach_drop(r, B);
    ck_assert_uint_eq(view(A).tried_by, 0);
    is(B, UNKNOWN, 0);
}
END_TEST

/* ---- two nodes */

static void hear(uint32_t node)
{
    meta_reach_seen(r, node, now);
}

/* Both reach the metaserver's table; B has reached A before it died. */
START_TEST(of_two_nodes_of_which_one_is_not_reached_neither_is_blamed)
{
    hear(A);
    hear(B);
    say(B, BIT(A), 0, 0);
    say(A, BIT(B), BIT(B), 0);
    is(A, UNDECIDED, 1);
    ck_assert(!view(A).has_by);
    is(B, UNDECIDED, 0);
    ck_assert(view(B).has_by);
    ck_assert_uint_eq(view(B).by, A);
    ck_assert_uint_eq(meta_reach_count(r).unreachable, 0);
    now += 3 * S;
    ck_assert_uint_eq(view(A).for_ns, 3 * S);
    ck_assert_uint_eq(view(B).for_ns, 3 * S);
    say(B, BIT(A), BIT(A), 0); /* nor when each says it of the other */
    is(A, UNDECIDED, 1);
    is(B, UNDECIDED, 1);
    ck_assert_uint_eq(view(A).by, B);
    say(A, BIT(B), 0, 0);
    say(B, BIT(A), 0, 0);
    is(A, OK_, 0);
    is(B, OK_, 0);
}
END_TEST

START_TEST(of_two_nodes_the_one_that_is_late_is_to_blame)
{
    hear(A);
    hear(B);
    say(A, BIT(B), BIT(B), 0);
    now += 5 * S;
    is(A, UNDECIDED, 1); /* nobody was heard of since */
    now += S;
    is(A, UNDECIDED, 1);
    is(B, UNDECIDED, 0);
    hear(A);
    is(A, OK_, 0);
    is(B, UNREACHABLE_, 0);
    ck_assert_uint_eq(view(B).for_ns, S);
    ck_assert_uint_eq(view(B).failed_by, 1);
    hear(B); /* it was slow, and is alive */
    is(A, UNDECIDED, 1);
    is(B, UNDECIDED, 0);
}
END_TEST

START_TEST(who_is_late_and_reached_is_not_to_blame)
{
    hear(A);
    hear(B);
    hear(C);
    say(A, BIT(B) | BIT(C), BIT(B), 0);
    say(C, BIT(A) | BIT(B), 0, 0);
    now += 6 * S;
    hear(A);
    hear(C);
    is(B, OK_, 0); /* one of two does reach it */
    is(A, FAILING, 1);
    meta_reach_drop(r, B); /* its lease is over */
    is(A, OK_, 0);
}
END_TEST

START_TEST(of_two_nodes_the_one_that_reaches_nothing_is_to_blame)
{
    hear(A);
    hear(B);
    say(A, BIT(B), BIT(B), 0);
    say(B, BIT(A), BIT(A), 1);
    is(A, OK_, 0);
    is(B, FAILING, 2);
    say(A, BIT(B), BIT(B), 1); /* now neither reaches anything: that is the metaserver's, or both */
    is(A, FAILING, 2);
    is(B, FAILING, 2);
}
END_TEST

START_TEST(two_nodes_that_have_tried_each_other_alone_are_undecided)
{
    say(A, BIT(B), BIT(B), -1);
    is(A, UNDECIDED, 1);
    is(B, UNKNOWN, 0); /* who has no voice accuses nobody */
    say(B, BIT(A), BIT(A), -1);
    is(A, UNDECIDED, 1);
    is(B, UNDECIDED, 1);
}
END_TEST

START_TEST(since_when_it_fails_is_the_agents_to_say)
{
    struct meta_reach_report report = {
        .count = 1, .tried = {{.node = C, .error = META_REACH_TIMEOUT, .for_ns = 30 * S}}};
    meta_reach_put(r, A, &report, now);
    now += 2 * S;
    ck_assert_uint_eq(view(A).for_ns, 32 * S);
    ck_assert_uint_eq(view(A).towards[0].for_ns, 32 * S);
    report.tried[0].for_ns = 1000 * S; /* before this clock began */
    meta_reach_put(r, A, &report, now);
    ck_assert_uint_eq(view(A).for_ns, now);
}
END_TEST

/* Whatever is said in whatever order, the counts are those of the reports that there are. */
START_TEST(counts_are_those_of_the_reports_that_there_are)
{
    unsigned tried[NODES] = {0}, failing[NODES] = {0};
    uint64_t x = 0x5eed;
    for (int step = 0; step < 20000; step++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        const uint32_t node = x >> 60 & 7;
        if ((x >> 40 & 15) == 0) {
            meta_reach_drop(r, node);
            tried[node] = failing[node] = 0;
            for (int i = 0; i < NODES; i++)
                tried[i] &= ~BIT(node);
        } else {
            tried[node] = x >> 32 & 0xff & ~BIT(node);
            failing[node] = x >> 24 & tried[node];
            say(node, tried[node], failing[node], -1);
        }
    }
    for (uint32_t t = 0; t < NODES;
         t++) { /* each says once more what it has said, of who is left */
        for (uint32_t i = 0; i < NODES; i++)
            say(i, tried[i], failing[i] & tried[i], -1);
        uint32_t by = 0, fails = 0;
        for (uint32_t i = 0; i < NODES; i++) {
            const bool voice = (tried[i] & ~failing[i]) != 0;
            by += voice && (tried[i] >> t & 1);
            fails += voice && (tried[i] & failing[i]) >> t & 1;
        }
        ck_assert_uint_eq(view(t).tried_by, by);
        ck_assert_uint_eq(view(t).failed_by, fails);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reach");
    TCase *tcase = tcase_create("reach");
    tcase_add_checked_fixture(tcase, setup, teardown);
#define ADD(test) tcase_add_test(tcase, test);
    ADD(of_a_node_that_nobody_speaks_of_nothing_is_known)
    ADD(a_target_that_most_do_not_reach_is_reported_and_nobody_else_changes)
    ADD(a_node_is_unreachable_since_it_is_and_not_since_that_was_last_said)
    ADD(a_node_is_told_that_it_is_not_reached_by_two_and_more_alone)
    ADD(half_of_those_that_tried_are_not_most)
    ADD(a_node_that_fails_towards_all_is_shown_and_has_no_voice_about_others)
    ADD(who_has_tried_nothing_but_what_is_to_blame_is_not_failing)
    ADD(a_table_that_most_do_not_reach_is_nobodys_failing)
    ADD(what_is_not_repeated_goes)
    ADD(a_report_takes_the_place_of_the_one_before)
    ADD(a_target_counts_once_and_nobody_speaks_of_himself)
    ADD(another_life_of_a_node_begins_without_what_was_said_of_the_former)
    ADD(of_two_nodes_of_which_one_is_not_reached_neither_is_blamed)
    ADD(of_two_nodes_the_one_that_is_late_is_to_blame)
    ADD(who_is_late_and_reached_is_not_to_blame)
    ADD(of_two_nodes_the_one_that_reaches_nothing_is_to_blame)
    ADD(two_nodes_that_have_tried_each_other_alone_are_undecided)
    ADD(since_when_it_fails_is_the_agents_to_say)
    ADD(counts_are_those_of_the_reports_that_there_are)
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
