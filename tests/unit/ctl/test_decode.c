/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ctl/checks.h"
#include "ctl/decode.h"
#include "ctl/fetch.h"
#include "ctl/nodes.h"

static struct base_errbuf err;
static const char one[] =
    "{\"id\":\"a\",\"incarnation\":7,\"state\":\"live\",\"expires_in_ms\":5,"
    "\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,"
    "\"transports\":[\"dc\",\"rc\"],\"mtu\":4096}],"
    "\"labels\":{\"arch\":\"x\",\"zone\":\"\"},\"cordoned\":true,"
    "\"draining\":true,\"grace_ms\":7,\"reason\":\"a disk\",\"applied\":"
    "{\"revision\":4,\"seen\":5,\"behind\":true,\"sessions\":3,\"why\":\"no room\"}}";

START_TEST(a_node_goes_through_json_and_back)
{
    struct ctl_node n;
    struct base_text t;
    ck_assert_int_eq(ctl_decode_node(one, strlen(one), &n, &err), 0);
    ck_assert_str_eq(n.endpoint[0].transports, "dc,rc");
    ck_assert_str_eq(n.labels, "arch=x,zone=");
    base_text_init(&t, 4096);
    ctl_node_json(&t, &n);
    const char *const kind = "{\"kind\":\"node\","; /* for `apply`; the rest is as it was */
    ck_assert_int_eq(strncmp(base_text_str(&t), kind, strlen(kind)), 0);
    ck_assert_str_eq(base_text_str(&t) + strlen(kind), one + 1);
    base_text_fini(&t);
}
END_TEST

/* What agents and operators wrote goes to a terminal. */
START_TEST(no_word_of_a_node_commands_the_terminal)
{
    static const char node[] = "{\"id\":\"a\",\"state\":\"live\",\"endpoints\":[{\"gid\":\"::1\","
                               "\"transports\":[\"\\u202edc\"]}],"
                               "\"labels\":{\"k\\u009b\":\"\\u2066v\"},\"reason\":\"\\u009b31m\","
                               "\"applied\":{\"why\":\"a\\u009b31mred\\u202e\\u001b\"}}";
    struct ctl_node n;
    ck_assert_int_eq(ctl_decode_node(node, strlen(node), &n, &err), 0);
    ck_assert_str_eq(n.endpoint[0].transports, "?dc");
    ck_assert_str_eq(n.labels, "k?=?v");
    ck_assert_str_eq(n.reason, "?31m");
    ck_assert_str_eq(n.why, "a?31mred??");
}
END_TEST

START_TEST(pages_add_up)
{
    struct ctl_nodes nodes = {.node = NULL};
    char body[1024], next[16];
    snprintf(body, sizeof body, "{\"nodes\":[%s],\"next_cursor\":\"xyz\"}", one);
    ck_assert_int_eq(ctl_decode_nodes(body, strlen(body), &nodes, next, sizeof next, &err), 0);
    ck_assert_str_eq(next, "xyz");
    snprintf(body, sizeof body, "{\"nodes\":[%s]}", one);
    ck_assert_int_eq(ctl_decode_nodes(body, strlen(body), &nodes, next, sizeof next, &err), 0);
    ck_assert_str_eq(next, "");
    ck_assert_uint_eq(nodes.count, 2);
    ctl_nodes_fini(&nodes);
}
END_TEST

START_TEST(nonsense_changes_nothing)
{
    static const char *const wrong[] = {"",
                                        "null",
                                        "[]",
                                        "{}",
                                        "{\"nodes\":3}",
                                        "{\"nodes\":[3]}",
                                        "{\"nodes\":[{\"id\":\"a\"}]}",
                                        "{\"nodes\":[],\"next_cursor\":\"longer than 16 bytes\"}"};
    struct ctl_nodes nodes = {.node = NULL};
    struct ctl_node node;
    char next[16] = "before";
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int status = ctl_decode_nodes(wrong[i], strlen(wrong[i]), &nodes, next, sizeof next, &err);
        ck_assert_int_eq(status, -EBADMSG);
        ck_assert_uint_eq(nodes.count, 0);
        ck_assert_str_eq(next, "before");
        ck_assert_int_eq(ctl_decode_node(wrong[i], strlen(wrong[i]), &node, &err), -EBADMSG);
    }
    ctl_nodes_fini(&nodes);
}
END_TEST

START_TEST(a_status_becomes_paths_and_values)
{
    static const char body[] =
        "{\"node\":\"a\",\"pools\":[{\"vqps\":3,\"on\":true}],\"x\":null,\"bad\":\"a\\u001bb\"}";
    struct ctl_pairs pairs;
    ck_assert_int_eq(ctl_decode_pairs(body, strlen(body), &pairs, &err), 0);
    ck_assert_uint_eq(pairs.count, 5);
    ck_assert_str_eq(ctl_pairs_find(&pairs, "node"), "a");
    ck_assert_str_eq(ctl_pairs_find(&pairs, "pools[0].vqps"), "3");
    ck_assert_str_eq(ctl_pairs_find(&pairs, "pools[0].on"), "true");
    ck_assert_str_eq(ctl_pairs_find(&pairs, "x"), "-");
    ck_assert_str_eq(ctl_pairs_find(&pairs, "bad"), "a?b");
    ck_assert_ptr_null(ctl_pairs_find(&pairs, "pools"));
    ctl_pairs_fini(&pairs);
}
END_TEST

START_TEST(of_a_long_list_the_first_become_pairs_and_how_many_there_are)
{
    struct ctl_pairs pairs;
    struct base_text t;
    base_text_init(&t, 1 << 20);
    base_text_printf(&t, "{\"a\":{\"short\":[");
    for (int i = 0; i < CTL_MAX_ITEMS; i++)
        base_text_printf(&t, "%s{\"x\":%d}", i > 0 ? "," : "", i);
    base_text_printf(&t, "],\"long\":[");
    for (int i = 0; i < 2 * CTL_MAX_PAIRS; i++)
        base_text_printf(&t, "%s{\"x\":%d}", i > 0 ? "," : "", i);
    base_text_printf(&t, "]}}");
    ck_assert_int_eq(ctl_decode_pairs(base_text_str(&t), t.length, &pairs, &err), 0);
    ck_assert_uint_eq(pairs.count, 2 * CTL_MAX_ITEMS + 1);
    ck_assert_str_eq(ctl_pairs_find(&pairs, "a.long[19].x"), "19");
    ck_assert_ptr_null(ctl_pairs_find(&pairs, "a.long[20].x"));
    ck_assert_str_eq(ctl_pairs_find(&pairs, "a.long.count"), "8192");
    ck_assert_str_eq(ctl_pairs_find(&pairs, "a.short[19].x"), "19");
    ck_assert_ptr_null(ctl_pairs_find(&pairs, "a.short.count"));
    ctl_pairs_fini(&pairs);
    base_text_fini(&t);
}
END_TEST

START_TEST(a_status_without_bound_is_refused)
{
    struct ctl_pairs pairs;
    struct base_text t;
    base_text_init(&t, 1 << 20);
    base_text_printf(&t, "{\"a\":0");
    for (int i = 0; i < CTL_MAX_PAIRS; i++)
        base_text_printf(&t, ",\"a%d\":0", i);
    base_text_printf(&t, "}");
    ck_assert_int_eq(ctl_decode_pairs(base_text_str(&t), t.length, &pairs, &err), -EBADMSG);
    base_text_reset(&t);
    base_text_printf(&t, "{\"a\":[[[[[[[[[[[[0]]]]]]]]]]]]}");
    ck_assert_int_eq(ctl_decode_pairs(base_text_str(&t), t.length, &pairs, &err), -EBADMSG);
    base_text_fini(&t);
}
END_TEST

START_TEST(a_problem_gives_its_detail_or_its_title)
{
    char out[64];
    ctl_decode_problem("{\"title\":\"t\",\"detail\":\"d\"}", 26, out, sizeof out);
    ck_assert_str_eq(out, "d");
    ctl_decode_problem("{\"title\":\"t\"}", 13, out, sizeof out);
    ck_assert_str_eq(out, "t");
    ctl_decode_problem("<html>", 6, out, sizeof out);
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(urls_are_percent_encoded)
{
    char out[16];
    ck_assert_int_eq(ctl_percent_encode("a/b c", out, sizeof out), 0);
    ck_assert_str_eq(out, "a%2Fb%20c");
    ck_assert_int_eq(ctl_percent_encode("////////", out, sizeof out), -EMSGSIZE);
}
END_TEST

START_TEST(checks_that_fail_say_what_to_do)
{
    struct ctl_check check[16];
    size_t n = ctl_checks_host(check, 16);
    ck_assert_uint_gt(n, 5);
    for (size_t i = 0; i < n; i++) {
        ck_assert(check[i].found[0] != '\0');
        ck_assert(check[i].level != CTL_FAIL || check[i].advice[0] != '\0');
    }
}
END_TEST

#define TESTS(X)                                                                                   \
    X(a_node_goes_through_json_and_back)                                                           \
    X(no_word_of_a_node_commands_the_terminal)                                                     \
    X(pages_add_up)                                                                                \
    X(nonsense_changes_nothing)                                                                    \
    X(a_status_becomes_paths_and_values)                                                           \
    X(of_a_long_list_the_first_become_pairs_and_how_many_there_are)                                \
    X(a_status_without_bound_is_refused)                                                           \
    X(a_problem_gives_its_detail_or_its_title)                                                     \
    X(urls_are_percent_encoded)                                                                    \
    X(checks_that_fail_say_what_to_do)
KEDGE_CHECK_MAIN("ctl.decode", TESTS)
