/* SPDX-License-Identifier: Apache-2.0 */
/* One worker, one lease, revoking; whom nobody can ask, and answers that make no sense. */
#include "proxy_world.h"

#define OPEN10 "[[[[[[[[[["

START_TEST(one_lease_and_one_worker_have_their_node_in_their_ids)
{
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    ck_assert_int_eq(ask("GET", "/v1/leases/n1:3-0000beef-2", ""), META_SERVICE_LATER);
    ck_assert_str_eq(question(w),
                     "\"method\":\"GET\",\"resource\":\"leases\",\"item\":\"3-0000beef-2\"");
    ck_assert_int_eq(answers(1, 200, LEASE("3-0000beef-2", "3-0000beef")), 204);
    ck_assert_str_eq(reply[0].text, "{\"id\":\"n1:3-0000beef-2\",\"worker\":\"n1:3-0000beef\","
                                    "\"node\":\"n1\",\"state\":\"live\"}\n");
    ck_assert_int_eq(ask("GET", "/v1/workers/n1:3-0000beef", ""), META_SERVICE_LATER);
    ck_assert_str_eq(question(w),
                     "\"method\":\"GET\",\"resource\":\"workers\",\"item\":\"3-0000beef\"");
    ck_assert_int_eq(answers(1, 404, "{\"status\":404,\"detail\":\"it has \\u001bended\"}"), 204);
    ck_assert_int_eq(reply[1].status, 404);
    ck_assert_ptr_nonnull(strstr(reply[1].text, "urn:kedge:problem:unknown-worker"));
    ck_assert_ptr_nonnull(strstr(reply[1].text, "node n1: it has \\u001bended"));
    ck_assert_int_eq(ask("GET", "/v1/leases/3-0000beef-2", ""), 404);
    ck_assert(says("NODE:ID"));
    ck_assert_int_eq(ask("GET", "/v1/leases/n1:xyz", ""), 400);
    ck_assert_int_eq(ask("GET", "/v1/leases/N1:3", ""), 400);
    ck_assert_int_eq(ask("GET", "/v1/leases/n9:3-0000beef-2", ""), 404);
    ck_assert(says("unknown-node"));
    ck_assert_int_eq(ask("DELETE", "/v1/workers/n1:3-0000beef", ""), 405);
    meta_watch_free(w);
    end();
}
END_TEST

START_TEST(the_status_of_an_agent_is_passed_on_as_it_is)
{
    static const char status[] =
        "{\"version\":\"9\",\"node\":\"n1\",\"lane\":{\"posted\":7},\"new\":[null,{}]}";
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/status", ""), META_SERVICE_LATER);
    ck_assert_str_eq(question(w), "\"method\":\"GET\",\"resource\":\"status\"");
    ck_assert_int_eq(answers(1, 200, status), 204);
    ck_assert_int_eq(reply[0].status, 200);
    ck_assert_uint_eq(strlen(reply[0].text), sizeof status);
    ck_assert_int_eq(strncmp(reply[0].text, status, sizeof status - 1), 0);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/status", ""), META_SERVICE_LATER);
    (void)question(w);
    ck_assert_int_eq(answers(1, 200, "{\"node\":\"n2\"}"), 400); /* another one's is not its own */
    ck_assert_int_eq(reply[1].status, 502);
    ck_assert_ptr_nonnull(strstr(reply[1].text, "is not the node that was asked"));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/status", ""), META_SERVICE_LATER);
    (void)question(w);
    ck_assert_int_eq(answers(1, 400, "{\"detail\":\"resource must be workers or leases\"}"), 204);
    ck_assert_int_eq(reply[2].status, 503);
    ck_assert_ptr_nonnull(strstr(reply[2].text, "is older than this question: update it"));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n9/status", ""), 404);
    ck_assert(says("unknown-node"));
    meta_watch_free(w);
    settle();
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/status", ""), 503);
    ck_assert(says("does not listen to this metaserver"));
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/status", "{}"), 405);
    end();
}
END_TEST

START_TEST(an_answer_is_taken_once_and_from_the_node_that_was_asked)
{
    char first[META_QUERY_ID_BYTES];
    begin();
    register_node(1);
    register_node(2);
    struct meta_watch *w = follow(1), *other = follow(2);
    ck_assert_int_eq(ask("GET", "/v1/workers/n1:1-00000001", ""), META_SERVICE_LATER);
    ck_assert_str_eq(question(other), "");
    ck_assert_ptr_nonnull(strstr(question(w), "1-00000001"));
    ck_assert_int_eq(answers(2, 200, WORKER("1-00000001")), 404);
    ck_assert(says("urn:kedge:problem:unknown-query"));
    memcpy(first, id, sizeof id);
    memset(id, '0', sizeof id - 1);
    ck_assert_int_eq(answers(1, 200, WORKER("1-00000001")), 404);
    memcpy(id, first, sizeof id);
    ck_assert_int_eq(replies, 0);
    ck_assert_int_eq(answers(1, 200, WORKER("1-00000001")), 204);
    ck_assert_int_eq(answers(1, 200, WORKER("1-00000001")), 404);
    ck_assert_int_eq(replies, 1);
    ck_assert_uint_eq(s.queries.n.asked, 1);
    ck_assert_uint_eq(s.queries.n.answered, 1);
    ck_assert_uint_eq(s.queries.n.unwanted, 3);
    meta_watch_free(w);
    meta_watch_free(other);
    end();
}
END_TEST

START_TEST(whom_nobody_can_ask_is_said_at_once)
{
    begin();
    query(META_PARAMETER_NODE, "n1");
    ck_assert_int_eq(ask("GET", "/v1/leases", ""), 404);
    register_node(1);
    query(META_PARAMETER_NODE, "n1");
    ck_assert_int_eq(ask("GET", "/v1/leases", ""), 503);
    ck_assert(says("agent-unreachable") && says("does not listen to this metaserver"));
    query(META_PARAMETER_WATCH, "1"); /* who does not say that it answers is not asked */
    query(META_PARAMETER_REVISION, "0");
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 200);
    struct meta_watch *w = answer.watch;
    ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:1-00000001-1", ""), 503);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 0);
    meta_watch_free(w);
    now += 1001 * BASE_NS_PER_S;
    query(META_PARAMETER_NODE, "n1");
    ck_assert_int_eq(ask("GET", "/v1/workers", ""), 503);
    ck_assert(says("agent-unreachable") && says("is not registered here now"));
    ck_assert_int_eq(replies, 0);
    end();
}
END_TEST

START_TEST(an_agent_that_does_not_answer_is_waited_for_so_long)
{
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    ck_assert_int_eq(ask("GET", "/v1/workers/n1:1-00000001", ""), META_SERVICE_LATER);
    ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:1-00000001-1", ""), META_SERVICE_LATER);
    test_world_settle(&world, &s, now + 5000 * MS - 1);
    ck_assert_int_eq(replies, 0);
    test_world_settle(&world, &s, now + 5000 * MS);
    ck_assert_int_eq(replies, 1);
    ck_assert_int_eq(reply[0].status, 504);
    ck_assert_ptr_nonnull(strstr(reply[0].text, "node n1 has not answered within 5 s"));
    test_world_settle(&world, &s, now + 35000 * MS - 1);
    ck_assert_int_eq(replies, 1);
    test_world_settle(&world, &s, now + 35000 * MS);
    ck_assert_int_eq(reply[1].status, 504);
    ck_assert_ptr_nonnull(strstr(reply[1].text, "whether it has revoked anything is not known"));
    ck_assert_uint_eq(s.queries.n.late, 2);
    ck_assert_int_eq(ask("GET", "/v1/workers/n1:1-00000001", ""), META_SERVICE_LATER);
    ck_assert_int_eq(ask("GET", "/v1/workers/n1:1-00000002", ""), META_SERVICE_LATER);
    meta_watch_free(w);
    settle();
    ck_assert_int_eq(replies, 4);
    ck_assert_int_eq(reply[2].status, 503);
    ck_assert_ptr_nonnull(strstr(reply[3].text, "went before it answered"));
    end();
}
END_TEST

START_TEST(the_newest_stream_of_a_node_is_the_one_that_is_asked)
{
    begin();
    register_node(1);
    struct meta_watch *dead = follow(1), *w = follow(1);
    ck_assert_int_eq(ask("GET", "/v1/workers/n1:1-00000001", ""), META_SERVICE_LATER);
    ck_assert_str_eq(question(dead), "");
    meta_watch_free(dead);
    settle();
    ck_assert_int_eq(replies, 0);
    ck_assert_ptr_nonnull(strstr(question(w), "1-00000001"));
    client_gone = true;
    settle();
    ck_assert_int_eq(replies, 1);
    ck_assert_uint_eq(s.queries.count, 0);
    client_gone = false;
    ck_assert_int_eq(ask("GET", "/v1/workers", ""), META_SERVICE_LATER);
    meta_queries_stop(&s);
    settle();
    ck_assert_int_eq(reply[1].status, 503);
    ck_assert_ptr_nonnull(strstr(reply[1].text, "this metaserver stops"));
    meta_watch_free(w);
    end();
}
END_TEST

START_TEST(questions_are_few_at_a_time)
{
    struct meta_watch *w[9];
    begin();
    for (int n = 0; n < 9; n++) {
        char path[48];
        register_node(n);
        w[n] = follow(n);
        snprintf(path, sizeof path, "/v1/workers/n%d:1-00000001", n);
        for (int i = 0; n < 8 && i < META_QUERIES_OF_NODE; i++)
            ck_assert_int_eq(ask("GET", path, ""), META_SERVICE_LATER);
        ck_assert_int_eq(ask("GET", path, ""), 503); /* a fifth; of the last node the first */
        ck_assert(says("too-many-queries"));
    }
    ck_assert_uint_eq(s.queries.count, META_QUERIES_MAX);
    ck_assert_uint_eq(s.queries.n.refused, 9);
    now += 5 * BASE_NS_PER_S;
    settle();
    ck_assert_int_eq(replies, META_QUERIES_MAX);
    ck_assert_int_eq(ask("GET", "/v1/workers/n8:1-00000001", ""), META_SERVICE_LATER);
    for (int n = 0; n < 9; n++)
        meta_watch_free(w[n]);
    settle();
    end();
}
END_TEST

/* Looks at that node with the token of the last make(), until it is refused. How many are open. */
static int look_all(const char *path)
{
    int looks = 0;
    while (ask_as("GET", path, "") == META_SERVICE_LATER)
        looks++;
    ck_assert(says("too-many-queries"));
    return looks;
}

START_TEST(tokens_that_may_only_read_keep_no_operator_from_looking)
{
    static const char path[] = "/v1/workers/n1:1-00000001";
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "reader%d", i);
        make(name, "{\"scope\":\"reader\"}");
        ck_assert_int_eq(look_all(path), i < 2 ? META_QUERIES_OF_TOKEN_AT_NODE : 0);
    }
    ck_assert_int_eq(ask("GET", path, ""), 503); /* who shows nothing is one of them */
    make("one", "{\"scope\":\"operator\"}");
    ck_assert_int_eq(look_all(path), META_QUERIES_OF_TOKEN_AT_NODE);
    ck_assert_int_eq(ask_local("GET", path, ""), META_SERVICE_LATER); /* nor does an operator's */
    now += 5 * BASE_NS_PER_S;
    settle();
    ck_assert_int_eq(replies, META_QUERIES_OF_NODE + META_QUERIES_OF_TOKEN_AT_NODE + 1);
    meta_watch_free(w);
    settle();
    end();
}
END_TEST

/* The next question, past the configuration, which revocations change; false: there is none. */
static bool find_question(struct meta_watch *w, char *out, size_t size)
{
    static const char head[] = "{\"ask\":{\"id\":\"";
    const char *bytes;
    size_t length;
    do {
        ck_assert_int_eq(meta_watch_next(w, now, &bytes, &length), 0);
        if (length == 0)
            return false;
    } while (length < sizeof head || memcmp(bytes, head, sizeof head - 1) != 0);
    snprintf(out, size, "%.*s", (int)length, bytes);
    memcpy(id, bytes + sizeof head - 1, sizeof id - 1);
    return true;
}

START_TEST(an_agent_is_sent_what_operators_look_for_first)
{
    char q[META_QUERY_BYTES + 100];
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    ck_assert_int_eq(ask("GET", "/v1/workers/n1:1-00000001", ""), META_SERVICE_LATER);
    ck_assert_int_eq(ask_local("GET", "/v1/workers/n1:1-00000002", ""), META_SERVICE_LATER);
    ck_assert_int_eq(ask_local("GET", "/v1/workers/n1:1-00000003", ""), META_SERVICE_LATER);
    ck_assert_int_eq(ask("GET", "/v1/workers/n1:1-00000004", ""), META_SERVICE_LATER);
    static const char *const order[] = {"1-00000002", "1-00000003", "1-00000001", "1-00000004"};
    for (int i = 0; i < 4; i++) {
        ck_assert(find_question(w, q, sizeof q));
        ck_assert_msg(strstr(q, order[i]) != NULL, "%s: %s", order[i], q);
    }
    meta_watch_free(w);
    settle();
    end();
}
END_TEST

/* Somebody who only looks, again and again, at the node that the leases are of. */
START_TEST(looking_keeps_nobody_from_revoking)
{
    enum { REVOCATIONS = 43 };
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    unsigned looks = 0, revoked = 0, looked = 0;
    for (int i = 0; i < REVOCATIONS; i++) {
        replies = 0;
        while (ask("GET", "/v1/workers/n1:1-00000001", "") == META_SERVICE_LATER)
            looks++;
        ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:1-1-1", ""), META_SERVICE_LATER);
        for (char q[META_QUERY_BYTES + 100]; find_question(w, q, sizeof q);) {
            const bool revokes = strstr(q, "DELETE") != NULL;
            ck_assert_int_eq(answers(1, 404, "{\"detail\":\"no\"}"), 204);
            revoked += revokes;
            looked += !revokes;
        }
    }
    ck_assert_uint_eq(revoked, REVOCATIONS);
    ck_assert_uint_eq(looked, looks);
    meta_watch_free(w);
    end();
}
END_TEST

START_TEST(revocations_wait_in_their_order_for_those_that_the_agent_has)
{
    enum { REVOCATIONS = 20 };
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    for (int i = 0; i < REVOCATIONS; i++) {
        char path[48];
        snprintf(path, sizeof path, "/v1/leases/n1:1-1-%d", i + 10);
        ck_assert_int_eq(ask("DELETE", path, ""), META_SERVICE_LATER);
    }
    char first[META_QUERY_ID_BYTES], q[META_QUERY_BYTES + 100];
    for (int i = 0; i < META_CHANGE_QUERIES_SENT; i++) {
        ck_assert(find_question(w, q, sizeof q));
        if (i == 0)
            memcpy(first, id, sizeof first);
    }
    ck_assert(!find_question(w, q, sizeof q));
    memcpy(id, first, sizeof first);
    for (int i = META_CHANGE_QUERIES_SENT; i < REVOCATIONS; i++) {
        char item[24];
        snprintf(item, sizeof item, "\"1-1-%d\"", i + 10);
        woken = 0;
        ck_assert_int_eq(answers(1, 404, "{\"detail\":\"no\"}"), 204);
        ck_assert_int_ge(woken, 1);
        ck_assert(find_question(w, q, sizeof q));
        ck_assert_msg(strstr(q, item) != NULL, "%s: %s", item, q);
    }
    meta_watch_free(w);
    settle();
    ck_assert_int_eq(replies, REVOCATIONS);
    end();
}
END_TEST

START_TEST(what_makes_no_sense_is_not_passed_on)
{
    static const struct {
        const char *path, *json;
        int status;
    } wrong[] = {
        {"/v1/leases", "{\"leases\":{}}", 200},
        {"/v1/leases", "{\"workers\":[]}", 200},
        {"/v1/leases", "{\"leases\":[7]}", 200},
        {"/v1/leases", "{\"leases\":[{\"worker\":\"1-1\"}]}", 200},
        {"/v1/leases", "{\"leases\":[{\"id\":\"1-1-1\"}]}", 200},
        {"/v1/leases", "{\"leases\":[" LEASE("n2:1-1", "1-1") "]}", 200},
        {"/v1/leases", "{\"leases\":[" LEASE("../1", "1-1") "]}", 200},
        {"/v1/leases", "{\"leases\":[],\"next_cursor\":\"\"}", 200},
        {"/v1/leases", "{\"leases\":[],\"next_cursor\":\"a b\"}", 200},
        {"/v1/leases", "{\"leases\":[],\"leases\":[]}", 200},
        {"/v1/leases", "{\"leases\":[]}", 201},
        {"/v1/leases", "{\"leases\":[]}", 202},
        {"/v1/leases", "{\"leases\":[]}", 100},
        {"/v1/leases", "[]", 200},
        {"/v1/leases", "[]", 404},
        {"/v1/leases", OPEN10 OPEN10 OPEN10 OPEN10 OPEN10, 200},
        {"/v1/leases", "{\"leases\":[]},\"more\":{}", 200},
        {"/v1/leases/n1:1-1-1", LEASE("1-1-2", "1-1"), 200},
        {"/v1/workers/n1:1-1", "{}", 200},
    };
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    const int count = sizeof wrong / sizeof wrong[0];
    for (int i = 0; i < count; i++) {
        if (strchr(wrong[i].path, ':') == NULL)
            query(META_PARAMETER_NODE, "n1");
        ck_assert_int_eq(ask("GET", wrong[i].path, ""), META_SERVICE_LATER);
        (void)question(w);
        ck_assert_msg(answers(1, wrong[i].status, wrong[i].json) == 400, "%s", wrong[i].json);
        ck_assert_int_eq(replies, i + 1);
        ck_assert_msg(reply[i].status == 502, "%s: %s", wrong[i].json, reply[i].text);
        ck_assert_ptr_nonnull(strstr(reply[i].text, "urn:kedge:problem:senseless-answer"));
    }
    ck_assert_uint_eq(s.queries.n.senseless, count);
    query(META_PARAMETER_NODE, "n1");
    query(META_PARAMETER_LIMIT, "1"); /* and gets two */
    ck_assert_int_eq(ask("GET", "/v1/workers", ""), META_SERVICE_LATER);
    (void)question(w);
    ck_assert_int_eq(answers(1, 200, "{\"workers\":[" WORKER("1-1") "," WORKER("1-2") "]}"), 400);
    ck_assert_int_eq(reply[count].status, 502);
    char large[3000] = "{\"workers\":[{\"id\":\"1-1\",\"x\":\"";
    memset(large + strlen(large), 'x', 2100);
    memcpy(large + strlen(large), "\"}]}", 5);
    query(META_PARAMETER_NODE, "n1");
    ck_assert_int_eq(ask("GET", "/v1/workers", ""), META_SERVICE_LATER);
    (void)question(w);
    ck_assert_int_eq(answers(1, 200, large), 400);
    ck_assert(says("is too large"));
    meta_watch_free(w);
    end();
}
END_TEST

START_TEST(what_an_agent_refuses_has_the_problem_that_it_is)
{
    static const struct {
        int status, relayed;
        const char *type;
    } refused[] = {
        {404, 404, "unknown-lease"},     {409, 409, "busy"}, {429, 503, "too-many-queries"},
        {503, 503, "agent-unreachable"}, {507, 507, "full"}, {400, 400, "malformed"},
        {500, 502, "senseless-answer"}};
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        ck_assert_int_eq(ask("GET", "/v1/leases/n1:1-00000001-1", ""), META_SERVICE_LATER);
        (void)question(w);
        ck_assert_int_eq(answers(1, refused[i].status, "{\"detail\":\"since\"}"), 204);
        ck_assert_int_eq(reply[i].status, refused[i].relayed);
        ck_assert_msg(strstr(reply[i].text, refused[i].type) != NULL, "%s", reply[i].text);
        ck_assert_ptr_nonnull(strstr(reply[i].text, ": since\""));
    }
    meta_watch_free(w);
    end();
}
END_TEST

START_TEST(a_revocation_is_in_the_trail_before_the_agent_hears_of_it)
{
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    query(META_PARAMETER_FORCE, "1");
    ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:1-00000001-3", ""), META_SERVICE_LATER);
    ck_assert_str_eq(question(w), "\"method\":\"DELETE\",\"resource\":\"leases\","
                                  "\"item\":\"1-00000001-3\",\"force\":true");
    ck_assert_int_eq(
        answers(1, 202,
                "{\"worker\":\"1-00000001\",\"forced\":true,\"leases\":[" LEASE(
                    "1-00000001-3", "1-00000001") "],\"over\":false,\"breaks\":\"a \\\"lot\\\"\","
                                                  "\"more\":1}"),
        204);
    ck_assert_int_eq(reply[0].status, 202);
    ck_assert_str_eq(reply[0].text,
                     "{\"worker\":\"n1:1-00000001\",\"forced\":true,\"leases\":["
                     "\n{\"id\":\"n1:1-00000001-3\",\"worker\":\"n1:1-00000001\",\"node\":\"n1\","
                     "\"state\":\"live\"}],\"over\":false,\"breaks\":\"a \\\"lot\\\"\"}\n");
    query(META_PARAMETER_WORKER, "n1:1-00000001");
    ck_assert_int_eq(ask("DELETE", "/v1/leases", ""), META_SERVICE_LATER);
    const char *text = question(w); /* before what is new of the configuration */
    ck_assert_str_eq(text, "\"method\":\"DELETE\",\"resource\":\"leases\","
                           "\"worker\":\"1-00000001\"");
    ck_assert_int_eq(answers(1, 200, "{\"worker\":\"1-00000001\",\"forced\":0,\"leases\":[]}"),
                     400);
    ck_assert_int_eq(reply[1].status, 502);
    fail = EIO;
    ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:1-00000001-4", ""), 503);
    ck_assert(says("store-failed"));
    ck_assert_uint_eq(s.queries.count, 0);
    fail = 0;
    query(META_PARAMETER_KIND, "lease");
    query(META_PARAMETER_NAME, "n1");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    static const char trail[] =
        "{\"revision\":3,\"events\":["
        "\n{\"revision\":1,\"time\":\"2025-11-21T15:43:28.123Z\",\"who\":\"uid 7\","
        "\"kind\":\"lease\",\"name\":\"n1\","
        "\"from\":{\"lease\":\"1-00000001-3\",\"force\":true},\"to\":null},"
        "\n{\"revision\":2,\"time\":\"2025-11-21T15:43:28.123Z\",\"who\":\"uid 7\","
        "\"kind\":\"lease\",\"name\":\"n1\","
        "\"from\":{\"worker\":\"1-00000001\",\"force\":false},\"to\":null},"
        "\n{\"revision\":3,\"time\":\"2025-11-21T15:43:28.123Z\",\"who\":\"uid 7\","
        "\"kind\":\"lease\",\"name\":\"n1\",\"from\":{\"worker\":\"1-00000001\",\"force\":false,"
        "\"failed\":\"senseless-answer\"},\"to\":null}]}\n";
    ck_assert_str_eq(base_text_str(&body), trail);
    meta_watch_free(w);
    struct meta_store *store = s.store;
    close_service();
    open_service(store); /* and again */
    query(META_PARAMETER_KIND, "lease");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert_str_eq(base_text_str(&body), trail);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    ck_assert(says("\"revision\":4"));
    end();
}
END_TEST

/* And what it did not do of that, or nobody knows, has an entry of its own: nothing else says so.
 */
START_TEST(a_revocation_that_fails_is_in_the_trail_as_one_that_failed)
{
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:0-1-1", ""), META_SERVICE_LATER);
    (void)question(w);
    now += 2000 * BASE_NS_PER_MS;
    ck_assert_int_eq(answers(1, 400, "{\"detail\":\"that is no lease's id\"}"), 204);
    ck_assert_int_eq(reply[0].status, 400);
    query(META_PARAMETER_FORCE, "1");
    query(META_PARAMETER_WORKER, "n1:1-00000001");
    ck_assert_int_eq(ask("DELETE", "/v1/leases", ""), META_SERVICE_LATER);
    (void)question(w);
    meta_watch_free(w); /* with its agent: whether it was done is not known */
    settle();
    ck_assert_int_eq(reply[1].status, 503);
    query(META_PARAMETER_KIND, "lease");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    static const char trail[] =
        "{\"revision\":4,\"events\":["
        "\n{\"revision\":1,\"time\":\"2025-11-21T15:43:28.123Z\",\"who\":\"uid 7\","
        "\"kind\":\"lease\",\"name\":\"n1\","
        "\"from\":{\"lease\":\"0-1-1\",\"force\":false},\"to\":null},"
        "\n{\"revision\":2,\"time\":\"2025-11-21T15:43:30.123Z\",\"who\":\"uid 7\","
        "\"kind\":\"lease\",\"name\":\"n1\","
        "\"from\":{\"lease\":\"0-1-1\",\"force\":false,\"failed\":\"malformed\"},\"to\":null},"
        "\n{\"revision\":3,\"time\":\"2025-11-21T15:43:28.123Z\",\"who\":\"uid 7\","
        "\"kind\":\"lease\",\"name\":\"n1\","
        "\"from\":{\"worker\":\"1-00000001\",\"force\":true},\"to\":null},"
        "\n{\"revision\":4,\"time\":\"2025-11-21T15:43:28.123Z\",\"who\":\"uid 7\","
        "\"kind\":\"lease\",\"name\":\"n1\",\"from\":{\"worker\":\"1-00000001\",\"force\":true,"
        "\"failed\":\"agent-unreachable\"},\"to\":null}]}\n";
    ck_assert_str_eq(base_text_str(&body), trail);
    struct meta_store *store = s.store;
    close_service();
    open_service(store); /* and again */
    query(META_PARAMETER_KIND, "lease");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert_str_eq(base_text_str(&body), trail);
    end();
}
END_TEST

/* Who has hung up hears nothing, and the trail tells the end all the same. */
START_TEST(a_revocation_whose_client_has_hung_up_is_in_the_trail_with_its_end)
{
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    char q[META_QUERY_BYTES + 100];
    for (int i = 0; i < META_CHANGE_QUERIES_SENT; i++) {
        ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:0-1-1", ""), META_SERVICE_LATER);
        ck_assert(find_question(w, q, sizeof q));
    }
    ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:0-1-2", ""), META_SERVICE_LATER);
    client_gone = true;
    settle(); /* what the agent has not heard of it will not hear of */
    ck_assert_uint_eq(s.queries.count, META_CHANGE_QUERIES_SENT);
    ck_assert(!find_question(w, q, sizeof q));
    ck_assert_int_eq(answers(1, 404, "{\"detail\":\"no\"}"), 204);
    ck_assert_uint_eq(s.queries.count, META_CHANGE_QUERIES_SENT - 1);
    ck_assert(!find_question(w, q, sizeof q));
    now += 40 * BASE_NS_PER_S; /* to the others it does not answer */
    settle();
    ck_assert_uint_eq(s.queries.count, 0);
    query(META_PARAMETER_KIND, "lease");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    const char *at = base_text_str(&body);
    at = strstr(at, "\"failed\"");
    ck_assert_ptr_nonnull(at);
    ck_assert_msg(strncmp(at, "\"failed\":\"client-gone\"", 22) == 0, "%s", at);
    at = strstr(at + 1, "\"failed\"");
    ck_assert_ptr_nonnull(at);
    ck_assert_msg(strncmp(at, "\"failed\":\"unknown-lease\"", 24) == 0, "%s", at);
    for (int i = 1; i < META_CHANGE_QUERIES_SENT; i++) {
        at = strstr(at + 1, "\"failed\"");
        ck_assert_ptr_nonnull(at);
        ck_assert_msg(strncmp(at, "\"failed\":\"agent-late\"", 21) == 0, "%s", at);
    }
    ck_assert_ptr_null(strstr(at + 1, "\"failed\""));
    meta_watch_free(w);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_lease_and_one_worker_have_their_node_in_their_ids)                                       \
    T(the_status_of_an_agent_is_passed_on_as_it_is)                                                \
    T(an_answer_is_taken_once_and_from_the_node_that_was_asked)                                    \
    T(whom_nobody_can_ask_is_said_at_once)                                                         \
    T(an_agent_that_does_not_answer_is_waited_for_so_long)                                         \
    T(the_newest_stream_of_a_node_is_the_one_that_is_asked)                                        \
    T(questions_are_few_at_a_time)                                                                 \
    T(tokens_that_may_only_read_keep_no_operator_from_looking)                                     \
    T(an_agent_is_sent_what_operators_look_for_first)                                              \
    T(looking_keeps_nobody_from_revoking)                                                          \
    T(revocations_wait_in_their_order_for_those_that_the_agent_has)                                \
    T(what_makes_no_sense_is_not_passed_on)                                                        \
    T(what_an_agent_refuses_has_the_problem_that_it_is)                                            \
    T(a_revocation_is_in_the_trail_before_the_agent_hears_of_it)                                   \
    T(a_revocation_that_fails_is_in_the_trail_as_one_that_failed)                                  \
    T(a_revocation_whose_client_has_hung_up_is_in_the_trail_with_its_end)
KEDGE_CHECK_MAIN("metaserver rest held", TESTS)
