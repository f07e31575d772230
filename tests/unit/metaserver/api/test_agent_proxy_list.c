/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of workers and leases, of one node and of all. */
#include "proxy_world.h"

START_TEST(an_agent_is_asked_for_a_page_and_its_client_gets_it)
{
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    query(META_PARAMETER_NODE, "n1");
    query(META_PARAMETER_TENANT, "we\"b");
    query(META_PARAMETER_LIMIT, "2");
    ck_assert_int_eq(ask("GET", "/v1/leases", ""), META_SERVICE_LATER);
    ck_assert_int_eq(woken, 1);
    ck_assert_str_eq(question(w),
                     "\"method\":\"GET\",\"resource\":\"leases\",\"tenant\":\"we\\\"b\","
                     "\"limit\":2");
    ck_assert_str_eq(question(w), "");
    ck_assert_int_eq(replies, 0);
    ck_assert_int_eq(answers(1, 200,
                             "{\"leases\":[" LEASE("3-0000beef-1", "3-0000beef") "," LEASE(
                                 "3-0000beef-2", "3-0000beef") "],\"next_cursor\":\"Mw\"}"),
                     204);
    ck_assert_int_eq(replies, 1);
    ck_assert_int_eq(reply[0].status, 200);
    ck_assert_str_eq(reply[0].text,
                     "{\"leases\":["
                     "\n{\"id\":\"n1:3-0000beef-1\",\"worker\":\"n1:3-0000beef\",\"node\":\"n1\","
                     "\"state\":\"live\"},"
                     "\n{\"id\":\"n1:3-0000beef-2\",\"worker\":\"n1:3-0000beef\",\"node\":\"n1\","
                     "\"state\":\"live\"}],\"next_cursor\":\"bjE6TXc\"}\n");
    query(META_PARAMETER_NODE, "n1");
    query(META_PARAMETER_CURSOR, "bjE6TXc");
    ck_assert_int_eq(ask("GET", "/v1/leases", ""), META_SERVICE_LATER);
    ck_assert_str_eq(question(w), "\"method\":\"GET\",\"resource\":\"leases\",\"cursor\":\"Mw\","
                                  "\"limit\":100");
    ck_assert_int_eq(answers(1, 200, "{\"leases\":[]}"), 204);
    ck_assert_str_eq(reply[1].text, "{\"leases\":[]}\n");
    meta_watch_free(w);
    end();
}
END_TEST

START_TEST(what_an_agent_gives_in_parts_is_one_page)
{
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    query(META_PARAMETER_WORKER, "n1:1-00000001");
    query(META_PARAMETER_LIMIT, "1000");
    ck_assert_int_eq(ask("GET", "/v1/workers", ""), META_SERVICE_LATER);
    ck_assert_str_eq(question(w), "\"method\":\"GET\",\"resource\":\"workers\","
                                  "\"worker\":\"1-00000001\",\"limit\":500");
    ck_assert_int_eq(
        answers(1, 200, "{\"workers\":[" WORKER("1-00000001") "],\"next_cursor\":\"a\"}"), 204);
    ck_assert_int_eq(replies, 0);
    ck_assert_ptr_nonnull(strstr(question(w), "\"cursor\":\"a\",\"limit\":500"));
    ck_assert_int_eq(answers(1, 200, "{\"workers\":[" WORKER("2-00000001") "]}"), 204);
    ck_assert_str_eq(reply[0].text,
                     "{\"workers\":[\n{\"id\":\"n1:1-00000001\",\"node\":\"n1\",\"leases\":2},"
                     "\n{\"id\":\"n1:2-00000001\",\"node\":\"n1\",\"leases\":2}]}\n");
    meta_watch_free(w);
    end();
}
END_TEST

START_TEST(all_nodes_are_asked_one_after_the_other)
{
    begin();
    for (int n = 1; n <= 4; n++)
        register_node(n);
    struct meta_watch *first = follow(1), *third = follow(3), *fourth = follow(4);
    query(META_PARAMETER_LIMIT, "3");
    ck_assert_int_eq(ask("GET", "/v1/workers", ""), META_SERVICE_LATER);
    ck_assert_ptr_nonnull(strstr(question(first), "\"limit\":3"));
    ck_assert_str_eq(question(third), "");
    ck_assert_int_eq(answers(1, 200, "{\"workers\":[" WORKER("1-1") "]}"), 204);
    ck_assert_ptr_nonnull(strstr(question(third), "\"limit\":2"));
    ck_assert_int_eq(answers(3, 409, "{\"detail\":\"no\"}"), 204);
    ck_assert_ptr_nonnull(strstr(question(fourth), "\"limit\":2"));
    ck_assert_int_eq(
        answers(4, 200,
                "{\"workers\":[" WORKER("1-1") "," WORKER("1-2") "],"
                                                                 "\"next_cursor\":\"c\"}"),
        204);
    ck_assert_int_eq(reply[0].status, 200);
    ck_assert_str_eq(
        reply[0].text,
        "{\"workers\":[\n{\"id\":\"n1:1-1\",\"node\":\"n1\",\"leases\":2},"
        "\n{\"id\":\"n4:1-1\",\"node\":\"n4\",\"leases\":2},"
        "\n{\"id\":\"n4:1-2\",\"node\":\"n4\",\"leases\":2}],\"unreachable\":["
        "{\"node\":\"n2\",\"why\":\"the agent of node n2 does not listen to this metaserver "
        "at this moment: ask again soon, or another one\"},{\"node\":\"n3\",\"why\":\"node n3: "
        "no\"}],"
        "\"next_cursor\":\"bjQ6Yw\"}\n");
    query(META_PARAMETER_CURSOR, "bjQ6Yw");
    ck_assert_int_eq(ask("GET", "/v1/workers", ""), META_SERVICE_LATER);
    ck_assert_ptr_nonnull(strstr(question(fourth), "\"cursor\":\"c\",\"limit\":100"));
    ck_assert_int_eq(answers(4, 200, "{\"workers\":[]}"), 204);
    ck_assert_str_eq(reply[1].text, "{\"workers\":[],\"unreachable\":[]}\n");
    /* One that does not answer ends the page, and the next one goes on behind it. */
    ck_assert_int_eq(ask("GET", "/v1/workers", ""), META_SERVICE_LATER);
    now += 5 * BASE_NS_PER_S;
    settle();
    ck_assert_ptr_nonnull(strstr(reply[2].text, "n1 has not answered within 5 s"));
    ck_assert_ptr_nonnull(strstr(reply[2].text, "\"next_cursor\":\"bjE\""));
    query(META_PARAMETER_CURSOR, "bjE");
    ck_assert_int_eq(ask("GET", "/v1/workers", ""), META_SERVICE_LATER);
    ck_assert_ptr_nonnull(strstr(question(third), "\"limit\":100"));
    meta_watch_free(third); /* while it is asked */
    settle();
    (void)question(fourth);
    ck_assert_int_eq(answers(4, 200, "{\"workers\":[]}"), 204);
    ck_assert_ptr_nonnull(strstr(reply[3].text, "node n3 went before it answered"));
    ck_assert_ptr_null(strstr(reply[3].text, "next_cursor"));
    meta_watch_free(first);
    meta_watch_free(fourth);
    end();
}
END_TEST

START_TEST(a_page_of_nobody_ends_too)
{
    begin();
    ck_assert_int_eq(ask("GET", "/v1/leases", ""), 200);
    ck_assert_str_eq(base_text_str(&body), "{\"leases\":[],\"unreachable\":[]}\n");
    register_node(1);
    ck_assert_int_eq(ask("GET", "/v1/leases", ""), 200);
    ck_assert(says("\"leases\":[],\"unreachable\":[{\"node\":\"n1\""));
    end();
}
END_TEST

START_TEST(what_is_asked_wrong_is_refused)
{
    static const struct {
        enum meta_service_parameter which;
        const char *value;
    } wrong[] = {
        {META_PARAMETER_LIMIT, "0"},
        {META_PARAMETER_LIMIT, "1001"},
        {META_PARAMETER_NODE, ""},
        {META_PARAMETER_NODE, "N1"},
        {META_PARAMETER_WORKER, "1-1"},
        {META_PARAMETER_WORKER, "n1:"},
        {META_PARAMETER_WORKER, "n1:x"},
        {META_PARAMETER_WORKER, ":1-1"},
        {META_PARAMETER_CURSOR, "!"},
        {META_PARAMETER_CURSOR, ""},
        {META_PARAMETER_CURSOR, "bjE6"} /* n1: */,
        {META_PARAMETER_CURSOR, "TjE"} /* N1 */,
        {META_PARAMETER_TENANT, "0123456789012345678901234567890123456789012345678901234567890123"},
    };
    begin();
    register_node(1);
    register_node(2);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        query(wrong[i].which, wrong[i].value);
        ck_assert_msg(ask("GET", "/v1/leases", "") == 400, "%s", wrong[i].value);
    }
    query(META_PARAMETER_NODE, "n2");
    query(META_PARAMETER_CURSOR, "bjE6TXc"); /* of n1 */
    ck_assert_int_eq(ask("GET", "/v1/leases", ""), 400);
    query(META_PARAMETER_NODE, "n2");
    query(META_PARAMETER_WORKER, "n1:1-1");
    ck_assert_int_eq(ask("GET", "/v1/leases", ""), 400);
    ck_assert_int_eq(ask("DELETE", "/v1/leases", ""), 400);
    query(META_PARAMETER_WORKER, "1-1");
    ck_assert_int_eq(ask("DELETE", "/v1/leases", ""), 400);
    query(META_PARAMETER_FORCE, "true");
    ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:1-1-1", ""), 400);
    query(META_PARAMETER_ANSWERS, "1");
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 400);
    query(META_PARAMETER_WATCH, "1");
    query(META_PARAMETER_ANSWERS, "2");
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 400);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/answers/0123456789abcdef", "{}"), 404);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/answers/none", "{}"), 400);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_agent_is_asked_for_a_page_and_its_client_gets_it)                                         \
    T(what_an_agent_gives_in_parts_is_one_page)                                                    \
    T(all_nodes_are_asked_one_after_the_other)                                                     \
    T(a_page_of_nobody_ends_too)                                                                   \
    T(what_is_asked_wrong_is_refused)
KEDGE_CHECK_MAIN("metaserver rest held list", TESTS)
