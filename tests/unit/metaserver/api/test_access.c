/* SPDX-License-Identifier: Apache-2.0 */
/* Who may: the decision by itself, and tokens over REST, without sockets. */
#include "metaserver/access.h"
#include "resources_world.h"

#define WALL UINT64_C(1763739808123) /* what ask() says of the time: 2025-11-21T15:43:28Z */
#define NODE_1                                                                                     \
    "{\"incarnation\":5,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,"                           \
    "\"transports\":[\"dc\"],\"dct_number\":7,\"dc_key\":\"5be0cd19137e2179\","                    \
    "\"mtu\":4096}]}"
#define AGENT "{\"scope\":\"agent\",\"node\":\"n1\",\"gids\":[\"fd00::1\",\"fd00::2\"]}"

START_TEST(a_scope_suffices_for_what_needs_no_more)
{
    static const struct {
        enum resource_token_scope scope;
        bool may[5]; /* nothing, reader, operator, admin, lock */
    } rows[] = {{RESOURCE_SCOPE_READER, {true, true, false, false, false}},
                {RESOURCE_SCOPE_OPERATOR, {true, true, true, false, false}},
                {RESOURCE_SCOPE_ADMIN, {true, true, true, true, true}},
                {RESOURCE_SCOPE_AGENT, {true, false, false, false, false}},
                {RESOURCE_SCOPE_WORKER, {true, false, false, false, false}}};
    static const bool shows_nothing[5] = {true, true, true, true, false};
    for (int need = META_NEED_NOTHING; need <= META_NEED_LOCK; need++) {
        struct meta_violation fault = {.detail = ""};
        const struct meta_caller unknown = {.kind = META_CALLER_UNKNOWN},
                                 wrong = {.kind = META_CALLER_WRONG},
                                 local = {.kind = META_CALLER_LOCAL};
        const enum meta_need n = (enum meta_need)need;
        const int denied = need == META_NEED_NOTHING ? 0 : -EKEYREJECTED;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const struct meta_resource token = {.kind = META_TOKEN,
                                                .token = {.scope = rows[i].scope, .node = "n1"}};
            const struct meta_caller c = {.kind = META_CALLER_TOKEN, .token = &token};
            int wanted = rows[i].may[need] ? 0 : -EACCES;
            for (int open = 0; open < 2; open++)
                ck_assert_int_eq(meta_access_decide(&c, open, n, META_AGENT_NO, "n1", &fault),
                                 wanted);
            if (wanted != 0)
                ck_assert_ptr_nonnull(strstr(fault.detail, meta_need_name(n)));
        }
        ck_assert_int_eq(meta_access_decide(&local, false, n, META_AGENT_NO, "", &fault), 0);
        ck_assert_int_eq(meta_access_decide(&unknown, true, n, META_AGENT_NO, "", &fault),
                         shows_nothing[need] ? 0 : -EKEYREJECTED);
        ck_assert_int_eq(meta_access_decide(&unknown, false, n, META_AGENT_NO, "", &fault), denied);
        for (int open = 0; open < 2; open++)
            ck_assert_int_eq(meta_access_decide(&wrong, open, n, META_AGENT_NO, "", &fault),
                             denied);
    }
}
END_TEST

START_TEST(an_agent_may_what_its_node_needs)
{
    const struct meta_resource token = {.kind = META_TOKEN,
                                        .token = {.scope = RESOURCE_SCOPE_AGENT, .node = "n1"}};
    const struct meta_caller c = {.kind = META_CALLER_TOKEN, .token = &token};
    static const struct {
        enum meta_need_agent agent;
        const char *id;
        int status;
    } rows[] = {{META_AGENT_OWN, "n1", 0},        {META_AGENT_OWN, "n2", -EACCES},
                {META_AGENT_OWN, "", -EACCES},    {META_AGENT_OWN, "n", -EACCES},
                {META_AGENT_OWN, "n11", -EACCES}, {META_AGENT_ANY, "n2", 0},
                {META_AGENT_NO, "n1", -EACCES}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct meta_violation fault = {.detail = ""};
        ck_assert_int_eq(
            meta_access_decide(&c, false, META_NEED_ADMIN, rows[i].agent, rows[i].id, &fault),
            rows[i].status);
        ck_assert(rows[i].status == 0 || strstr(fault.detail, "admin") != NULL);
    }
}
END_TEST

static const uint8_t certified[][16] = {{0xfd, [15] = 1}, {0xfd, [15] = 3}};

static struct meta_certificate certificate_of(const char *uri)
{
    return (struct meta_certificate){.uri = uri, .gid = certified, .gids = 2};
}

static int ask_with(const struct meta_certificate *certificate, const char *authorization,
                    bool exposed, const char *path, const char *text)
{
    request = (struct meta_service_request){
        .shown = {.certificate = certificate, .authorization = authorization, .exposed = exposed}};
    return ask("PUT", path, text);
}

START_TEST(a_certificate_speaks_for_its_node_and_its_addresses_alone)
{
    static const char *const none[] = {"kedge://node/", "kedge://node/N1",    "kedge://tenant/n1",
                                       "kedge:n1",      "kedge://node/n1/n2", "kedge://node/n1?a"};
    const struct meta_certificate n1 = certificate_of("kedge://node/n1"),
                                  n2 = certificate_of("kedge://node/n2"),
                                  other = certificate_of("");
    static const char elsewhere[] = "{\"incarnation\":6,\"endpoints\":[{\"gid\":\"fd00::2\","
                                    "\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":7,"
                                    "\"dc_key\":\"5be0cd19137e2179\",\"mtu\":4096}]}";
    setup();
    s.tokens_needed = true;
    ck_assert_int_eq(ask_with(&other, NULL, false, "/v1/nodes/n1", NODE_1), 401);
    ck_assert_int_eq(ask_with(&n2, NULL, false, "/v1/nodes/n1", NODE_1), 403);
    ck_assert(says("the certificate is for node n2"));
    ck_assert_int_eq(ask_with(&n1, NULL, false, "/v1/nodes/n1", elsewhere), 403);
    ck_assert(says("certificate does not list the GID fd00::2: issue one"));
    ck_assert_int_eq(ask_with(&n1, NULL, false, "/v1/nodes/n1", NODE_1), 201);
    ck_assert_int_eq(ask_with(&n1, NULL, false, "/v1/tenants/web", "{\"uids\":[5]}"), 403);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        const struct meta_certificate c = certificate_of(none[i]);
        ck_assert_int_eq(ask_with(&c, NULL, false, "/v1/nodes/n1", NODE_1), 401);
        ck_assert(says("it must be kedge://node/NAME"));
    }
    s.tokens_needed = false; /* who shows one is held to it where nobody needs one, too */
    ck_assert_int_eq(ask_with(&n2, NULL, false, "/v1/nodes/n1", NODE_1), 403);
    teardown();
}
END_TEST

START_TEST(a_certificate_and_a_token_have_to_agree)
{
    struct meta_certificate n1 = certificate_of("kedge://node/n1"),
                            n2 = certificate_of("kedge://node/n2");
    static const char second[] = "{\"incarnation\":6,\"endpoints\":[{\"gid\":\"fd00::2\","
                                 "\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":7,"
                                 "\"dc_key\":\"5be0cd19137e2179\",\"mtu\":4096}]}";
    static const char third[] = "{\"incarnation\":7,\"endpoints\":[{\"gid\":\"fd00::3\","
                                "\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":7,"
                                "\"dc_key\":\"5be0cd19137e2179\",\"mtu\":4096}]}";
    setup();
    s.tokens_needed = true;
    make("n1", AGENT);
    ck_assert_int_eq(ask_with(&n2, bearer, false, "/v1/nodes/n1", NODE_1), 401);
    ck_assert(says("for another node than the certificate"));
    ck_assert_int_eq(ask_with(&n1, bearer, false, "/v1/nodes/n1", NODE_1), 201);
    ck_assert_int_eq(ask_with(&n1, bearer, false, "/v1/nodes/n1", second), 403);
    ck_assert(says("certificate does not list the GID"));
    ck_assert_int_eq(ask_with(&n1, bearer, false, "/v1/nodes/n1", third), 403);
    ck_assert(says("token does not list the GID"));
    n1.gids = 0; /* it leaves that to the token */
    ck_assert_int_eq(ask_with(&n1, bearer, false, "/v1/nodes/n1", second), 200);
    ck_assert_int_eq(ask_with(&n1, NULL, false, "/v1/nodes/n1", second), 403);
    teardown();
}
END_TEST

START_TEST(a_token_that_others_have_seen_is_not_taken)
{
    setup();
    make("n1", AGENT);
    for (int open = 0; open < 2; open++) {
        s.tokens_needed = !open;
        ck_assert_int_eq(ask_with(NULL, bearer, true, "/v1/nodes/n1", NODE_1), 401);
        ck_assert(says("allow_plain_tokens = yes"));
    }
    ck_assert_int_eq(ask_with(NULL, NULL, true, "/v1/nodes/n1", NODE_1), 201); /* open */
    teardown();
}
END_TEST

START_TEST(a_secret_is_shown_once_and_no_hash_ever)
{
    static const char *const paths[] = {"/v1/tokens/ci", "/v1/tokens", "/v1/events",
                                        "/v1/nodes/n1/configuration", "/metrics"};
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1", NODE_1), 201);
    make("ci", "{\"scope\":\"reader\",\"expires\":\"2027-01-31T00:00:00Z\"}");
    ck_assert(says("{\"name\":\"ci\",\"revision\":1,\"secret\":\"kedge_ci_"));
    ck_assert_uint_eq(strlen(bearer), strlen("Bearer kedge_ci_") + 43);
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/ci", "{\"scope\":\"operator\"}"), 200);
    ck_assert(!says("secret") && !says("sha256") && says("\"scope\":\"operator\""));
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/ci", "{\"scope\":\"operator\"}"), 200);
    ck_assert_uint_eq(answer.revision, 2);
    for (int restarted = 0; restarted < 2; restarted++) {
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
            int status = ask_local("GET", paths[i], "");
            ck_assert_msg(status == 200, "%s: %d", paths[i], status);
            ck_assert_msg(!says("secret") && !says("sha256") && !says("hash") &&
                              !says(bearer + strlen("Bearer kedge_ci_")),
                          "%s: %s", paths[i], base_text_str(&body));
        }
        ck_assert_int_eq(ask_as("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 200 + !restarted);
        struct meta_store *store = s.store;
        close_service();
        open_service(store);
        ck_assert_int_eq(ask("PUT", "/v1/nodes/n1", NODE_1), 200);
    }
    ck_assert_int_eq(ask_local("GET", "/v1/events", ""), 200);
    ck_assert(says("\"from\":{\"scope\":\"reader\",\"expires\":\"2027-01-31T00:00:00Z\"},"
                   "\"to\":{\"scope\":\"operator\"}}"));
    ck_assert(says("\"who\":\"token ci\",\"kind\":\"tenant\""));
    teardown();
}
END_TEST

START_TEST(who_shows_no_valid_token_is_refused)
{
    char wrong[160];
    setup();
    s.tokens_needed = true;
    ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 401);
    ck_assert_str_eq(answer.authenticate, "Bearer realm=\"kedge\"");
    ck_assert(says("urn:kedge:problem:no-valid-token"));
    make("ci", "{\"scope\":\"reader\"}");
    ck_assert_int_eq(ask_as("GET", "/v1/nodes", ""), 200);
    ck_assert_int_eq(ask_as("HEAD", "/v1/nodes", ""), 200);
    for (size_t i = 0; i < strlen(bearer); i++) {
        if (bearer[i] == ' ')
            continue;
        snprintf(wrong, sizeof wrong, "%s", bearer);
        wrong[i] = wrong[i] == 'x' ? 'y' : 'x';
        request.shown.authorization = wrong;
        ck_assert_msg(ask("GET", "/v1/nodes", "") == 401, "%s", wrong);
        ck_assert_str_eq(answer.authenticate, "Bearer realm=\"kedge\", error=\"invalid_token\"");
        ck_assert(!says(wrong + strlen("Bearer ")));
    }
    static const char *const rubbish[] = {"",
                                          "Bearer",
                                          "Bearer ",
                                          "Basic YTpi",
                                          "Bearer kedge_",
                                          "Bearer kedge_ci_",
                                          "Bearer kedge__"};
    for (size_t i = 0; i < sizeof rubbish / sizeof rubbish[0]; i++) {
        request.shown.authorization = rubbish[i];
        ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 401);
    }
    request.shown.authorization = wrong;
    ck_assert_int_eq(ask("GET", "/healthz", ""), 200);
    request.shown.authorization = wrong; /* also where none would be needed */
    ck_assert_int_eq(ask_local("GET", "/v1/nodes", ""), 401);
    ck_assert_int_eq(ask_local("DELETE", "/v1/tokens/ci", ""), 204);
    ck_assert_int_eq(ask_as("GET", "/v1/nodes", ""), 401);
    make("other", "{\"scope\":\"reader\"}");
    memcpy(wrong, bearer, sizeof wrong);
    make("ci", "{\"scope\":\"reader\"}");
    memcpy(wrong + strlen(wrong) - 43, bearer + strlen(bearer) - 43, 43);
    request.shown.authorization = wrong; /* the secret of another */
    ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 401);
    teardown();
}
END_TEST

START_TEST(a_token_that_has_expired_is_refused)
{
    setup();
    s.tokens_needed = true;
    make("soon", "{\"scope\":\"reader\",\"expires\":\"2025-11-21T15:43:29Z\"}");
    ck_assert_int_eq(ask_as("GET", "/v1/nodes", ""), 200);
    ck_assert_int_eq(ask_local("GET", "/v1/tokens/soon", ""), 200);
    ck_assert(!says("expired"));
    wall_ms += 877; /* to the second */
    ck_assert_int_eq(ask_as("GET", "/v1/nodes", ""), 401);
    ck_assert(says("has expired"));
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/other", "{\"scope\":\"reader\"}"), 201);
    ck_assert_int_eq(ask_local("GET", "/v1/tokens", ""), 200);
    ck_assert(says("{\"name\":\"soon\",\"revision\":1,\"scope\":\"reader\","
                   "\"expires\":\"2025-11-21T15:43:29Z\",\"expired\":true}") &&
              says("{\"name\":\"other\",\"revision\":2,\"scope\":\"reader\"}"));
    teardown();
}
END_TEST

START_TEST(a_token_is_not_made_to_have_expired)
{
    setup();
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/past",
                               "{\"scope\":\"reader\",\"expires\":\"2025-11-21T15:43:28Z\"}"),
                     400);
    ck_assert(says("is not in the future") && says("\"field\":\"expires\"") && !says("secret"));
    make("soon", "{\"scope\":\"reader\",\"expires\":\"2025-11-21T15:43:29Z\"}");
    wall_ms += 1000;
    /* What was shown of one that has expired changes nothing when it is sent back. */
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/soon",
                               "{\"scope\":\"reader\",\"expires\":\"2025-11-21T15:43:29Z\","
                               "\"expired\":true}"),
                     200);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 1);
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/soon",
                               "{\"scope\":\"reader\",\"expires\":\"2025-11-21T15:43:27Z\"}"),
                     400);
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/soon",
                               "{\"scope\":\"reader\",\"expires\":\"2027-01-31T00:00:00Z\","
                               "\"expired\":true}"),
                     200);
    ck_assert(!says("expired"));
    ck_assert_int_eq(ask_as("GET", "/v1/nodes", ""), 200);
    teardown();
}
END_TEST

START_TEST(an_agents_token_is_bound_to_its_node_and_gids)
{
    static const struct {
        const char *method, *path, *json;
        int status;
    } asked[] = {
        {"PUT", "/v1/nodes/n1", NODE_1, 201},
        {"PUT", "/v1/nodes/n2", NODE_1, 403},
        {"POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}", 200},
        {"POST", "/v1/nodes/n2/renew", "{\"incarnation\":5}", 403},
        {"GET", "/v1/nodes/n1/configuration", "", 200},
        {"GET", "/v1/nodes/n2/configuration", "", 403},
        {"GET", "/v1/nodes/n1", "", 200},
        {"GET", "/v1/nodes/n2", "", 404},
        {"GET", "/v1/nodes", "", 403},
        {"GET", "/v1/tenants", "", 403},
        {"GET", "/v1/events", "", 403},
        {"GET", "/v1/tokens", "", 403},
        {"PUT", "/v1/tokens/mine", "{\"scope\":\"admin\"}", 403},
        {"DELETE", "/v1/nodes/n2", "", 403},
        {"DELETE", "/v1/nodes/n1", "", 204},
    };
    setup();
    s.tokens_needed = true;
    make("a1", AGENT);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        int status = ask_as(asked[i].method, asked[i].path, asked[i].json);
        ck_assert_msg(status == asked[i].status, "%s %s: %d %s", asked[i].method, asked[i].path,
                      status, base_text_str(&body));
        ck_assert(status != 403 || strstr(answer.authenticate, "insufficient_scope") != NULL);
    }
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/a1",
                               "{\"scope\":\"agent\",\"node\":\"n1\",\"gids\":[\"fd00::2\"]}"),
                     200);
    ck_assert_int_eq(ask_as("PUT", "/v1/nodes/n1", NODE_1), 403);
    ck_assert(says("does not list the GID fd00::1") && says("endpoints[0].gid"));
    teardown();
}
END_TEST

START_TEST(agents_are_told_the_hashes_of_workers_tokens_and_workers_may_nothing)
{
    static const char *const paths[] = {"/v1/nodes",  "/v1/nodes/n1", "/v1/nodes/n1/configuration",
                                        "/v1/tokens", "/v1/tenants",  "/v1/events"};
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1", NODE_1), 201);
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/w", "{\"scope\":\"worker\",\"tenant\":\"web\"}"),
                     409);
    ck_assert(says("dangling-reference") && says("\"field\":\"tenant\""));
    ck_assert_int_eq(ask_local("PUT", "/v1/tenants/web", "{\"uids\":[]}"), 201);
    make("w", "{\"scope\":\"worker\",\"tenant\":\"web\",\"expires\":\"2027-01-31T00:00:00Z\"}");
    ck_assert(says("\"scope\":\"worker\",\"tenant\":\"web\""));
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        ck_assert_int_eq(ask_as("GET", paths[i], ""), 403); /* though access is open */
    ck_assert(says("the token's is worker of tenant web"));
    ck_assert_int_eq(ask_local("DELETE", "/v1/tenants/web", ""), 409);
    ck_assert_int_eq(ask_local("GET", "/v1/nodes/n1/configuration", ""), 200);
    ck_assert(says("\"control_ops_per_s\":0,\"tokens\":[{\"sha256\":\"") &&
              says("\",\"expires_ms\":1801353600000}]}"));
    ck_assert(!says(bearer + strlen("Bearer kedge_w_")) && !says("secret"));
    ck_assert_int_eq(ask_local("GET", "/v1/tenants/web", ""), 200);
    ck_assert(!says("sha256"));
    ck_assert_int_eq(ask_local("DELETE", "/v1/tokens/w", ""), 204);
    ck_assert_int_eq(ask_local("GET", "/v1/nodes/n1/configuration", ""), 200);
    ck_assert(!says("tokens"));
    teardown();
}
END_TEST

START_TEST(a_stream_ends_with_its_token)
{
    static const char *const ends[] = {"deleted", "changed", "expired"};
    const char *bytes;
    size_t length;
    setup();
    s.tokens_needed = true;
    ck_assert_int_eq(ask_local("PUT", "/v1/nodes/n1", NODE_1), 201);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        make("a1", "{\"scope\":\"agent\",\"node\":\"n1\",\"gids\":[\"fd00::1\"],"
                   "\"expires\":\"2025-11-21T15:43:38Z\"}");
        query(META_PARAMETER_WATCH, "1");
        ck_assert_int_eq(ask_as("GET", "/v1/nodes/n1/configuration", ""), 200);
        struct meta_watch *w = answer.watch;
        ck_assert_ptr_nonnull(w);
        ck_assert_int_eq(meta_watch_next(w, now, &bytes, &length), 0);
        ck_assert_ptr_nonnull(strstr(bytes, "\"tenants\""));
        ck_assert_ptr_null(strstr(bytes, "token"));
        ck_assert_int_eq(ask_local("PUT", "/v1/tokens/else", "{\"scope\":\"reader\"}"),
                         i == 0 ? 201 : 200);
        ck_assert_int_eq(meta_watch_next(w, now, &bytes, &length), 0);
        uint64_t later = now + 9 * BASE_NS_PER_S;
        ck_assert_int_eq(meta_watch_next(w, later, &bytes, &length), 0);
        if (i == 0)
            ck_assert_int_eq(ask_local("DELETE", "/v1/tokens/a1", ""), 204);
        else if (i == 1)
            ck_assert_int_eq(ask_local("PUT", "/v1/tokens/a1", AGENT), 200);
        else
            later = now + 10 * BASE_NS_PER_S;
        ck_assert_int_eq(meta_watch_next(w, later, &bytes, &length), -ECANCELED);
        meta_watch_free(w);
        if (i != 0)
            ck_assert_int_eq(ask_local("DELETE", "/v1/tokens/a1", ""), 204);
    }
    teardown();
}
END_TEST

START_TEST(an_open_metaserver_gives_no_access_away)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1", NODE_1), 201);
    ck_assert_int_eq(ask("GET", "/v1/tokens", ""), 401);
    ck_assert_int_eq(ask("PUT", "/v1/tokens/mine", "{\"scope\":\"admin\"}"), 401);
    make("ci", "{\"scope\":\"reader\"}");
    ck_assert_int_eq(ask_as("GET", "/v1/tenants", ""), 200);
    ck_assert_int_eq(ask_as("PUT", "/v1/tenants/web", "{\"uids\":[6]}"), 403);
    ck_assert(says("needs the scope operator; the token's is reader"));
    make("root", "{\"scope\":\"admin\"}");
    ck_assert_int_eq(ask_as("PUT", "/v1/tokens/more", "{\"scope\":\"reader\"}"), 201);
    teardown();
}
END_TEST

START_TEST(a_secret_of_another_metaserver_can_be_given)
{
    static const char given[] =
        "{\"scope\":\"%s\",\"secret\":\"kedge_ci_0123456789012345678901234567890123456789012\"}";
    char json[160];
    setup();
    s.tokens_needed = true;
    snprintf(json, sizeof json, given, "reader");
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/ci", json), 201);
    ck_assert(!says("secret") && !says("01234567890"));
    snprintf(bearer, sizeof bearer, "bearer kedge_ci_0123456789012345678901234567890123456789012");
    ck_assert_int_eq(ask_as("GET", "/v1/nodes", ""), 200);
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/ci", json), 200);
    ck_assert_uint_eq(answer.revision, 1); /* it was so already */
    ck_assert_int_eq(ask_local("DELETE", "/v1/tokens/ci", ""), 204);
    make("ci", "{\"scope\":\"operator\"}");
    ck_assert_int_eq(ask_local("PUT", "/v1/tokens/ci", json), 200); /* another secret */
    ck_assert_int_eq(ask_as("GET", "/v1/nodes", ""), 401);
    ck_assert_int_eq(ask_local("GET", "/v1/events", ""), 200);
    ck_assert(!says("secret") && !says("sha256") && !says("01234567890"));
    teardown();
}
END_TEST

START_TEST(malformed_tokens_are_named_by_their_field)
{
    static const struct {
        const char *json, *field;
    } wrong[] = {
        {"{}", "scope"},
        {"{\"scope\":\"god\"}", "scope"},
        {"{\"scope\":1}", "scope"},
        {"{\"scope\":\"agent\"}", "node"},
        {"{\"scope\":\"agent\",\"node\":\"N\"}", "node"},
        {"{\"scope\":\"agent\",\"node\":7}", "node"},
        {"{\"scope\":\"agent\",\"node\":\"n1\"}", "gids"},
        {"{\"scope\":\"agent\",\"node\":\"n1\",\"gids\":[]}", "gids"},
        {"{\"scope\":\"agent\",\"node\":\"n1\",\"gids\":\"fd00::1\"}", "gids"},
        {"{\"scope\":\"agent\",\"node\":\"n1\",\"gids\":[\"fd00::1\",\"fd00::1\"]}", "gids[1]"},
        {"{\"scope\":\"agent\",\"node\":\"n1\",\"gids\":[\"fd00\"]}", "gids[0]"},
        {"{\"scope\":\"reader\",\"node\":\"n1\"}", "node"},
        {"{\"scope\":\"reader\",\"gids\":[\"fd00::1\"]}", "gids"},
        {"{\"scope\":\"reader\",\"expires\":\"tomorrow\"}", "expires"},
        {"{\"scope\":\"reader\",\"expired\":1}", "expired"},
        {"{\"scope\":\"reader\",\"expires\":\"2026-02-30T00:00:00Z\"}", "expires"},
        {"{\"scope\":\"reader\",\"expires\":\"2026-02-03T00:00:00+00:00\"}", "expires"},
        {"{\"scope\":\"reader\",\"expires\":1763739808}", "expires"},
        {"{\"scope\":\"reader\",\"secret\":\"kedge_t_b\"}", "secret"},
        {"{\"scope\":\"reader\",\"secret\":7}", "secret"},
        {"{\"scope\":\"reader\","
         "\"secret\":\"kedge_other_0123456789012345678901234567890123456789012\"}",
         "secret"},
        {"{\"scope\":\"reader\",\"sha256\":\"00\"}", "sha256"},
    };
    char field[64];
    setup();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(ask_local("PUT", "/v1/tokens/t", wrong[i].json) == 400, "%s: %s",
                      wrong[i].json, base_text_str(&body));
        snprintf(field, sizeof field, "\"field\":\"%s\"", wrong[i].field);
        ck_assert_msg(says(field), "%s: %s", wrong[i].json, base_text_str(&body));
    }
    ck_assert_uint_eq(meta_resources_revision(s.resources), 0);
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_scope_suffices_for_what_needs_no_more)                                                     \
    T(an_agent_may_what_its_node_needs)                                                            \
    T(a_certificate_speaks_for_its_node_and_its_addresses_alone)                                   \
    T(a_certificate_and_a_token_have_to_agree)                                                     \
    T(a_token_that_others_have_seen_is_not_taken)                                                  \
    T(a_secret_is_shown_once_and_no_hash_ever)                                                     \
    T(who_shows_no_valid_token_is_refused)                                                         \
    T(a_token_that_has_expired_is_refused)                                                         \
    T(a_token_is_not_made_to_have_expired)                                                         \
    T(an_agents_token_is_bound_to_its_node_and_gids)                                               \
    T(agents_are_told_the_hashes_of_workers_tokens_and_workers_may_nothing)                        \
    T(a_stream_ends_with_its_token)                                                                \
    T(an_open_metaserver_gives_no_access_away)                                                     \
    T(a_secret_of_another_metaserver_can_be_given)                                                 \
    T(malformed_tokens_are_named_by_their_field)
KEDGE_CHECK_MAIN("metaserver access", TESTS)
