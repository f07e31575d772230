/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster is shrunk to the faults that break the same rule, and not just any. */
#include "../check_main.h"
#include "rule.h"

START_TEST(numbers_and_names_make_no_other_rule)
{
    ck_assert(
        play_rule_is_same("node-a: it keeps 7 of incarnation, and has kept 12",
                          "node-b/agentd: it keeps 1750000000 of incarnation, and has kept 8"));
    ck_assert(play_rule_is_same("device: never registered so: key 0xe54ef2ff",
                                "device: never registered so: key 0x1f"));
    ck_assert(play_rule_is_same("an assertion fails", "an assertion fails"));
}
END_TEST

START_TEST(other_words_are_another_rule)
{
    ck_assert(!play_rule_is_same("node-a: a READ of 8 bytes", "node-a: a READ of 8 lines"));
    ck_assert(!play_rule_is_same("node-a: a READ of 8 bytes", "node-a: a READ of 8"));
    ck_assert(!play_rule_is_same("node-a: 8", "node-a: an assertion fails"));
    ck_assert(!play_rule_is_same("an assertion fails", "node-a: it stands still: 9 events"));
}
END_TEST

#define TESTS(TEST) TEST(numbers_and_names_make_no_other_rule) TEST(other_words_are_another_rule)

KEDGE_CHECK_MAIN("sim.rule", TESTS)
