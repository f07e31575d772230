/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a node has a pool as it was set, from what the metaserver shows of the node. */
#include "../check_main.h"

#include <stdio.h>

#include "ctl/pool_force.h"

static struct base_errbuf err;
static char why[CTL_TEXT_BYTES];

/* A node in pool 1 and, where it is said, in another; what its agent has applied, and what of that
 * it cannot. */
static struct ctl_node node_of(const char *state, int pool, int revision, const char *reason)
{
    char json[1024], more[64] = "", applied[600] = "";
    struct ctl_node node;
    if (pool != 0)
        snprintf(more, sizeof more, ",{\"gid\":\"fd00::1\",\"pool\":%d}", pool);
    if (revision != 0)
        snprintf(applied, sizeof applied,
                 ",\"applied\":{\"revision\":%d,\"seen\":%d,\"behind\":false,\"why\":\"%s\"}",
                 revision, revision, reason);
    snprintf(json, sizeof json,
             "{\"id\":\"n\",\"state\":\"%s\",\"expires_in_ms\":1,\"labels\":{\"rack\":\"7\","
             "\"zone\":\"a\"},\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1}%s]%s}",
             state, more, applied);
    ck_assert_msg(ctl_decode_node(json, strlen(json), &node, &err) == 0, "%s", err.text);
    return node;
}

/* Pool gold, number 77, of revision 5. */
static enum ctl_pool_force force_on(struct ctl_node node)
{
    static const char pool[] = "{\"name\":\"gold\",\"revision\":5,\"nodes\":{},\"number\":77}";
    struct ctl_resource gold;
    ck_assert_int_eq(
        ctl_decode_resource(resource_table_find("pool"), pool, sizeof pool - 1, &gold, &err), 0);
    const enum ctl_pool_force force = ctl_pool_force(&node, &gold, why);
    ctl_resource_fini(&gold);
    return force;
}

START_TEST(a_node_with_the_pools_endpoint_has_it_once_its_agent_has_applied_it)
{
    ck_assert_int_eq(force_on(node_of("live", 77, 5, "")), CTL_POOL_HELD);
    ck_assert_str_eq(why, "");
    ck_assert_int_eq(force_on(node_of("live", 77, 4, "")), CTL_POOL_LATER);
    ck_assert_int_eq(force_on(node_of("live", 77, 0, "")), CTL_POOL_LATER);
    ck_assert_int_eq(force_on(node_of("live", 77, 9, "pool golden: no; tenant x: pool gold: no")),
                     CTL_POOL_HELD);
}
END_TEST

START_TEST(what_an_agent_says_of_that_pool_alone_is_why_not)
{
    ck_assert_int_eq(force_on(node_of("live", 0, 5,
                                      "tenant web: no; pool old: a; b; pool gold: its lease is "
                                      "too short; its mtu too; pool silver: c")),
                     CTL_POOL_REFUSED);
    ck_assert_str_eq(why, "its lease is too short; its mtu too");
    ck_assert_int_eq(force_on(node_of("live", 77, 5, "pool gold: dcis 6 needs more")),
                     CTL_POOL_IN_PART);
    ck_assert_str_eq(why, "dcis 6 needs more");
}
END_TEST

/* The agent's own pool has a number of the agent's. */
START_TEST(a_pool_without_an_endpoint_and_without_a_reason_is_applied)
{
    ck_assert_int_eq(force_on(node_of("live", 0, 5, "pool silver: no")), CTL_POOL_APPLIED);
}
END_TEST

START_TEST(a_sentence_that_was_cut_off_says_where_the_whole_is)
{
    char long_one[240];
    memset(long_one, 'x', sizeof long_one);
    memcpy(long_one, "pool silver: ", 13);
    long_one[239] = '\0';
    ck_assert_int_eq(force_on(node_of("live", 0, 5, long_one)), CTL_POOL_REFUSED);
    ck_assert_ptr_nonnull(strstr(why, "rdmactl agent status on that host"));
}
END_TEST

START_TEST(of_a_configuration_that_is_refused_as_a_whole_its_reason_is_shown)
{
    ck_assert_int_eq(force_on(node_of("live", 0, 3, "there are more than 8 pools")),
                     CTL_POOL_LATER);
    ck_assert_str_eq(why, "there are more than 8 pools");
}
END_TEST

START_TEST(of_a_node_that_is_not_live_nothing_is_known)
{
    ck_assert_int_eq(force_on(node_of("expired", 77, 5, "")), CTL_POOL_UNHEARD);
    ck_assert_str_eq(why, "the node is expired");
}
END_TEST

START_TEST(a_selector_wants_all_its_labels_and_each_as_a_whole)
{
    const struct ctl_node node = node_of("live", 0, 0, "");
    ck_assert(ctl_node_is_selected(&node, "all"));
    ck_assert(ctl_node_is_selected(&node, "zone=a"));
    ck_assert(ctl_node_is_selected(&node, "zone=a,rack=7"));
    ck_assert(!ctl_node_is_selected(&node, "zone=a,rack=8"));
    ck_assert(!ctl_node_is_selected(&node, "zone=ab"));
    ck_assert(!ctl_node_is_selected(&node, "one=a"));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_node_with_the_pools_endpoint_has_it_once_its_agent_has_applied_it)                         \
    T(what_an_agent_says_of_that_pool_alone_is_why_not)                                            \
    T(a_pool_without_an_endpoint_and_without_a_reason_is_applied)                                  \
    T(a_sentence_that_was_cut_off_says_where_the_whole_is)                                         \
    T(of_a_configuration_that_is_refused_as_a_whole_its_reason_is_shown)                           \
    T(of_a_node_that_is_not_live_nothing_is_known)                                                 \
    T(a_selector_wants_all_its_labels_and_each_as_a_whole)
KEDGE_CHECK_MAIN("ctl pool force", TESTS)
