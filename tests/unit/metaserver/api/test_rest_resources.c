/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants and windows over REST, without sockets. */
#include "resources_world.h"

START_TEST(a_tenant_is_created_shown_replaced_and_deleted)
{
    setup();
    ck_assert_int_eq(ask("GET", "/v1/tenants/web", ""), 404);
    ck_assert(says("urn:kedge:problem:unknown-tenant"));
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5,\"10-12\"],\"sessions\":3}"), 201);
    ck_assert_uint_eq(answer.revision, 1);
    ck_assert(says("{\"name\":\"web\",\"revision\":1,\"uids\":[5,\"10-12\"],\"sessions\":3,"
                   "\"vqps\":0,\"mrs\":0,\"memory_bytes\":0,\"window_bytes\":0,"
                   "\"window_ops\":0,\"control_ops_per_s\":0}"));
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[],\"mrs\":9007199254740992}"), 200);
    ck_assert_uint_eq(answer.revision, 2);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"mrs\":9007199254740992,\"uids\":[]}"), 200);
    ck_assert_uint_eq(answer.revision, 2);
    ck_assert_int_eq(ask("GET", "/v1/tenants/web", ""), 200);
    ck_assert(says("\"sessions\":0,\"vqps\":0,\"mrs\":9007199254740992"));
    ck_assert_uint_eq(answer.revision, 2);
    ck_assert_int_eq(ask("DELETE", "/v1/tenants/web", ""), 204);
    ck_assert_uint_eq(body.length, 0);
    ck_assert_int_eq(ask("DELETE", "/v1/tenants/web", ""), 404);
    ck_assert_int_eq(ask("DELETE", "/v1/windows/web", ""), 404);
    ck_assert(says("urn:kedge:problem:unknown-window"));
    ck_assert_int_eq(ask("POST", "/v1/tenants/web", "{}"), 405);
    teardown();
}
END_TEST

START_TEST(what_is_malformed_is_named_by_its_path)
{
    static const struct {
        const char *path, *json, *field;
    } wrong[] = {
        {"/v1/tenants/web", "{", NULL},
        {"/v1/tenants/web", "[]", NULL},
        {"/v1/tenants/web", "{\"uids\":5}", "uids"},
        {"/v1/tenants/web", "{\"uids\":[1,-1]}", "uids[1]"},
        {"/v1/tenants/web", "{\"uids\":[4294967295]}", "uids[0]"},
        {"/v1/tenants/web", "{\"uids\":[\"5\"]}", "uids[0]"},
        {"/v1/tenants/web", "{\"uids\":[\"5-\"]}", "uids[0]"},
        {"/v1/tenants/web", "{\"uids\":[\"5-4\"]}", "uids[0]"},
        {"/v1/tenants/web", "{\"uids\":[\"5-4294967295\"]}", "uids[0]"},
        {"/v1/tenants/web", "{\"uids\":[\"0x5-9\"]}", "uids[0]"},
        {"/v1/tenants/web", "{\"uids\":[7,8,\"6-7\"]}", "uids[2]"},
        {"/v1/tenants/web", "{\"uids\":[],\"vqps\":-1}", "vqps"},
        {"/v1/tenants/web", "{\"uids\":[],\"vqps\":9007199254740993}", "vqps"},
        {"/v1/tenants/web", "{\"uids\":[],\"vqps\":1.0}", "vqps"},
        {"/v1/tenants/web", "{\"uids\":[],\"vqps\":\"1\"}", "vqps"},
        {"/v1/tenants/web", "{\"uids\":[],\"memory_bytes\":4096}", "memory_bytes"},
        {"/v1/tenants/web", "{\"uids\":[],\"name\":\"web\"}", "name"},
        {"/v1/tenants/a-name-of-thirty-two-characters-", "{\"uids\":[]}", "name"},
        {"/v1/tenants/Web", "{\"uids\":[]}", "name"},
        {"/v1/windows/w", "{}", "scope"},
        {"/v1/windows/w", "{\"scope\":7}", "scope"},
        {"/v1/windows/w", "{\"scope\":\"planet\"}", "scope"},
        {"/v1/windows/w", "{\"scope\":\"tenant\"}", "tenant"},
        {"/v1/windows/w", "{\"scope\":\"tenant\",\"tenant\":\"A\"}", "tenant"},
        {"/v1/windows/w", "{\"scope\":\"device\",\"tenant\":\"web\"}", "tenant"},
        {"/v1/windows/w", "{\"scope\":\"device\",\"bytes\":true}", "bytes"},
        {"/v1/windows/w", "{\"scope\":\"device\",\"surprise\":1}", "surprise"},
        {"/v1/windows/w", "{\"scope\":\"device\",\"node\":\"n1\"}", "node"},
        {"/v1/windows/w", "{\"scope\":\"device\",\"gid\":\"fd00::1\"}", "gid"},
        {"/v1/windows/w", "{\"scope\":\"device\",\"pool\":\"default\"}", "pool"},
        {"/v1/windows/w", "{\"scope\":\"destination\",\"pool\":\"default\"}", "pool"},
        {"/v1/windows/w", "{\"scope\":\"destination\",\"node\":\"n1\",\"gid\":\"fd00::1\"}", "gid"},
        {"/v1/windows/w", "{\"scope\":\"destination\",\"node\":\"N1\"}", "node"},
        {"/v1/windows/w", "{\"scope\":\"destination\",\"node\":[\"n1\"]}", "node"},
        {"/v1/windows/w", "{\"scope\":\"destination\",\"node\":\"\"}", "node"},
        {"/v1/windows/w", "{\"scope\":\"destination\",\"gid\":\"::\"}", "gid"},
        {"/v1/windows/w", "{\"scope\":\"destination\",\"gid\":\"ff02::1\"}", "gid"},
        {"/v1/windows/w", "{\"scope\":\"destination\",\"gid\":7}", "gid"},
        {"/v1/windows/w", "{\"scope\":\"destination\",\"node\":\"n1\",\"pool\":\"P\"}", "pool"},
        {"/v1/windows/w", "{\"scope\":\"destination\",\"gids\":[\"fd00::1\"]}", "gids"},
        {"/v1/tenants/web", "{\"uids\":[],\"control_ops_per_s\":-1}", "control_ops_per_s"},
    };
    char field[64];
    setup();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(ask("PUT", wrong[i].path, wrong[i].json) == 400, "%s: %s", wrong[i].json,
                      base_text_str(&body));
        snprintf(field, sizeof field, "\"field\":\"%s\"", wrong[i].field);
        ck_assert_msg(wrong[i].field == NULL ? !says("\"field\"") : says(field), "%s: %s",
                      wrong[i].json, base_text_str(&body));
    }
    ck_assert_uint_eq(meta_resources_revision(s.resources), 0);
    teardown();
}
END_TEST

START_TEST(a_window_names_one_destination_and_another_when_it_is_changed)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/windows/w", "{\"scope\":\"destination\",\"ops\":9}"), 201);
    ck_assert_int_eq(
        ask("PUT", "/v1/windows/w", "{\"scope\":\"destination\",\"node\":\"n1\",\"ops\":9}"), 200);
    ck_assert(says("{\"name\":\"w\",\"revision\":2,\"scope\":\"destination\",\"node\":\"n1\","
                   "\"bytes\":0,\"ops\":9}"));
    ck_assert_int_eq(
        ask("PUT", "/v1/windows/w", "{\"scope\":\"destination\",\"gid\":\"fd00:0::1\",\"ops\":9}"),
        200);
    ck_assert(says("\"gid\":\"fd00::1\"") && !says("node"));
    ck_assert_int_eq(ask("PUT", "/v1/windows/w",
                         "{\"scope\":\"destination\",\"gid\":\"fd00::1\",\"pool\":\"fast\","
                         "\"ops\":9}"),
                     200);
    ck_assert(says("\"gid\":\"fd00::1\",\"pool\":\"fast\""));
    ck_assert_uint_eq(meta_resources_revision(s.resources), 4);
    ck_assert_int_eq(ask("PUT", "/v1/windows/w",
                         "{\"scope\":\"destination\",\"pool\":\"fast\",\"gid\":\"fd00::1\","
                         "\"ops\":9}"),
                     200);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 4); /* it was so already */
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[],\"control_ops_per_s\":7}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[],\"control_ops_per_s\":8}"), 200);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 6);
    teardown();
}
END_TEST

START_TEST(conditions_are_kept_to)
{
    static const struct {
        const char *match, *none;
        int status;
    } cases[] = {
        {"\"1\"", NULL, 412},
        {"\"2\"", NULL, 200},
        {"\"9\", \"2\"", NULL, 200},
        {"\"9\",\"8\"", NULL, 412},
        {"*", NULL, 200},
        {"W/\"2\"", NULL, 412},
        {"\"two\"", NULL, 412},
        {"\"\"", NULL, 412},
        {"2", NULL, 400},
        {"\"2", NULL, 400},
        {"\"2\" \"3\"", NULL, 400},
        {"", NULL, 400},
        {"\"2\",", NULL, 400},
        {NULL, "*", 412},
        {NULL, "\"2\"", 400},
        {"\"18446744073709551616\"", NULL, 412},
        {"\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"", NULL, 400},
    };
    setup();
    request.if_match = "*";
    ck_assert_int_eq(ask("PUT", "/v1/windows/w", "{\"scope\":\"device\"}"), 412);
    request.if_none_match = "*";
    ck_assert_int_eq(ask("PUT", "/v1/windows/w", "{\"scope\":\"device\"}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/windows/w", "{\"scope\":\"destination\"}"), 200);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        request.if_match = cases[i].match;
        request.if_none_match = cases[i].none;
        ck_assert_msg(ask("PUT", "/v1/windows/w", "{\"scope\":\"destination\"}") == cases[i].status,
                      "%s: %d", cases[i].match, answer.status);
    }
    request.if_match = "\"1\"";
    ck_assert_int_eq(ask("DELETE", "/v1/windows/w", ""), 412);
    ck_assert(says("urn:kedge:problem:changed") && says("its revision is 2"));
    request.if_match = "\"2\"";
    ck_assert_int_eq(ask("DELETE", "/v1/windows/w", ""), 204);
    request.if_match = "\"2\"";
    ck_assert_int_eq(ask("DELETE", "/v1/windows/w", ""), 412);
    teardown();
}
END_TEST

START_TEST(what_contradicts_is_refused_with_the_culprit)
{
    char path[64], json[64];
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/windows/w", "{\"scope\":\"tenant\",\"tenant\":\"web\"}"), 409);
    ck_assert(says("urn:kedge:problem:dangling-reference") && says("\"field\":\"tenant\""));
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/windows/w", "{\"scope\":\"tenant\",\"tenant\":\"web\"}"), 201);
    ck_assert_int_eq(ask("DELETE", "/v1/tenants/web", ""), 409);
    ck_assert(says("urn:kedge:problem:in-use") && says("window w refers to it"));
    ck_assert_int_eq(ask("PUT", "/v1/tenants/db", "{\"uids\":[9,\"4-6\"]}"), 409);
    ck_assert(says("urn:kedge:problem:uid-taken") && says("\"field\":\"uids[1]\""));
    for (int i = 1; i < RESOURCE_TENANTS_MAX; i++) {
        snprintf(path, sizeof path, "/v1/tenants/t%d", i);
        snprintf(json, sizeof json, "{\"uids\":[%d]}", 100 + i);
        ck_assert_int_eq(ask("PUT", path, json), 201);
    }
    ck_assert_int_eq(ask("PUT", "/v1/tenants/db", "{\"uids\":[]}"), 507);
    teardown();
}
END_TEST

START_TEST(lists_are_filtered_and_paged)
{
    char cursor[128] = "";
    int pages = 0;
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/tenants/a", "{\"uids\":[1,\"10-20\"]}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/b", "{\"uids\":[30]}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/windows/x", "{\"scope\":\"tenant\",\"tenant\":\"a\"}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/windows/y", "{\"scope\":\"device\"}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/windows/z", "{\"scope\":\"tenant\",\"tenant\":\"b\"}"), 201);
    query(META_PARAMETER_UID, "15");
    ck_assert_int_eq(ask("GET", "/v1/tenants", ""), 200);
    ck_assert(says("{\"revision\":5,\"tenants\":[\n{\"name\":\"a\"") && !says("\"b\""));
    query(META_PARAMETER_UID, "21");
    ck_assert_int_eq(ask("GET", "/v1/tenants", ""), 200);
    ck_assert(says("\"tenants\":[]}"));
    query(META_PARAMETER_UID, "x");
    ck_assert_int_eq(ask("GET", "/v1/tenants", ""), 400);
    query(META_PARAMETER_SCOPE, "tenant");
    query(META_PARAMETER_TENANT, "b");
    ck_assert_int_eq(ask("GET", "/v1/windows", ""), 200);
    ck_assert(says("\"z\"") && !says("\"x\"") && !says("\"y\""));
    query(META_PARAMETER_SCOPE, "sea");
    ck_assert_int_eq(ask("GET", "/v1/windows", ""), 400);
    for (const char *next = cursor; next != NULL; pages++) {
        query(META_PARAMETER_LIMIT, "1");
        query(META_PARAMETER_SCOPE, "tenant");
        query(META_PARAMETER_CURSOR, cursor[0] != '\0' ? cursor : NULL);
        ck_assert_int_eq(ask("GET", "/v1/windows", ""), 200);
        ck_assert(says(pages == 0 ? "\"x\"" : "\"z\""));
        next = strstr(base_text_str(&body), "\"next_cursor\":\"");
        if (next != NULL)
            ck_assert_int_eq(sscanf(next + 15, "%100[^\"]", cursor), 1);
    }
    ck_assert_int_eq(pages, 2);
    query(META_PARAMETER_CURSOR, "!");
    ck_assert_int_eq(ask("GET", "/v1/tenants", ""), 400);
    teardown();
}
END_TEST

START_TEST(a_bad_name_in_a_path_is_named_as_the_document_does)
{
    static const struct {
        const char *method, *path, *field, *detail;
    } bad[] = {
        {"GET", "/v1/tenants/Web", "name", "1 to 31 of"},
        {"GET", "/v1/tenants/012345678901234567890123456789ab", "name", "1 to 31 of"},
        {"DELETE", "/v1/pools/-x", "name", "1 to 31 of"},
        {"PUT", "/v1/windows/x_y", "name", "1 to 63 of"},
        {"GET", "/v1/tokens/T", "name", "1 to 63 of"},
        {"GET", "/v1/nodes/N", "id", "1 to 63 of"},
        {"GET", "/v1/nodes/N/settings", "id", "1 to 63 of"},
        {"GET", "/v1/leases/N:1-1-1", "node", "1 to 63 of"},
        {"GET", "/v1/leases/n:x", "lease", "1 to 47 of"},
        {"GET", "/v1/workers/n:x", "worker", "1 to 47 of"},
        {"PUT", "/v1/nodes/n/answers/x", "query", "1 to 47 of"},
    };
    char field[32];
    setup();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        request.shown.local = true;
        snprintf(field, sizeof field, "\"field\":\"%s\"", bad[i].field);
        ck_assert_msg(ask(bad[i].method, bad[i].path, "{}") == 400 && says(field) &&
                          says(bad[i].detail),
                      "%s: %s", bad[i].path, base_text_str(&body));
    }
    teardown();
}
END_TEST

START_TEST(a_query_parameter_that_filters_nothing_is_refused)
{
    setup();
    meta_service_add_parameter(&request, "limit", "5");
    meta_service_add_parameter(&request, "uid", "7");
    ck_assert_int_eq(ask("GET", "/v1/tenants", ""), 200);
    meta_service_add_parameter(&request, "limit", "5");
    meta_service_add_parameter(&request, "limits", "6");
    ck_assert_int_eq(ask("GET", "/v1/tenants", ""), 400);
    ck_assert(says("\"detail\":\"GET takes these alone here: limit, cursor, uid\"") &&
              says("\"field\":\"limits\""));
    meta_service_add_parameter(&request, "limit", "5");
    meta_service_add_parameter(&request, "limit", "5");
    ck_assert_int_eq(ask("GET", "/v1/tenants", ""), 400);
    ck_assert(says("\"field\":\"limit\"") && says("more than once"));
    meta_service_add_parameter(&request, "uid", "7"); /* of another route */
    ck_assert_int_eq(ask("HEAD", "/v1/windows", ""), 400);
    ck_assert(says("\"field\":\"uid\""));
    meta_service_add_parameter(&request, "force", "1");
    ck_assert_int_eq(ask("DELETE", "/v1/tenants/none", ""), 400);
    ck_assert(says("DELETE takes no parameters here"));
    meta_service_add_parameter(&request, "watch", "1");
    ck_assert_int_eq(ask("GET", "/v1/tenants", ""), 400);
    ck_assert(says("/v1/events?watch=1") && says("\"field\":\"watch\""));
    meta_service_add_parameter(&request, "watch", "1");
    meta_service_add_parameter(&request, "cursor", "MQ");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 400);
    ck_assert(says("\"field\":\"cursor\""));
    teardown();
}
END_TEST

START_TEST(what_the_store_refuses_has_not_happened)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    fail = ENOSPC;
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[6]}"), 503);
    ck_assert(says("urn:kedge:problem:store-failed"));
    ck_assert_int_eq(ask("PUT", "/v1/tenants/db", "{\"uids\":[7]}"), 503);
    ck_assert_int_eq(ask("DELETE", "/v1/tenants/web", ""), 503);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 200); /* is so already */
    ck_assert_int_eq(ask("GET", "/v1/tenants", ""), 200);
    ck_assert(says("{\"revision\":1,\"tenants\":[\n{\"name\":\"web\",\"revision\":1,\"uids\":[5]"));
    ck_assert(!says("\"db\""));
    fail = 0;
    ck_assert_int_eq(ask("PUT", "/v1/tenants/db", "{\"uids\":[7]}"), 201);
    ck_assert_uint_eq(answer.revision, 2);
    teardown();
}
END_TEST

START_TEST(a_restart_finds_everything_with_its_revisions)
{
    char before[1 << 16], path[32];
    static const char *const lists[] = {"/v1/tenants", "/v1/windows", "/v1/events"};
    setup();
    ck_assert_int_eq(
        ask("PUT", "/v1/tenants/web", "{\"uids\":[7,\"1-5\"],\"vqps\":2,\"control_ops_per_s\":5}"),
        201);
    for (int i = 0; i < TRAIL + 3; i++) {
        snprintf(path, sizeof path, "/v1/windows/w%d", i);
        ck_assert_int_eq(ask("PUT", path,
                             i == 5   ? "{\"scope\":\"destination\",\"node\":\"n1\","
                                        "\"pool\":\"default\",\"ops\":3}"
                             : i == 6 ? "{\"scope\":\"destination\",\"gid\":\"fd00::1\"}"
                                      : "{\"scope\":\"tenant\",\"tenant\":\"web\"}"),
                         201);
    }
    ck_assert_int_eq(ask("DELETE", "/v1/windows/w0", ""), 204);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ask("GET", lists[i], ""), 200);
        snprintf(before, sizeof before, "%s", base_text_str(&body));
        struct meta_store *store = s.store;
        close_service();
        open_service(store);
        ck_assert_int_eq(ask("GET", lists[i], ""), 200);
        ck_assert_str_eq(base_text_str(&body), before);
    }
    ck_assert(says("{\"revision\":21,\"events\":[\n{\"revision\":6,"));
    ck_assert_int_eq(ask("DELETE", "/v1/windows/w1", ""), 204);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 22);
    teardown();
}
END_TEST

static int visit_setting(void *user, const struct meta_store_resource *setting)
{
    snprintf(user, 256, "%s", setting->body);
    return 0;
}

static int visit_change(void *user, const struct meta_store_change *change)
{
    (void)user, (void)change;
    return 0;
}

START_TEST(a_store_that_contradicts_itself_is_not_believed)
{
    static const struct meta_store_change bad[] = {
        {.revision = 2, .kind = "tenant", .name = "x", .after = "{\"uids\":[5]}"},
        {.revision = 2, .kind = "planet", .name = "x", .after = "{}"},
        {.revision = 2, .kind = "tenant", .name = "X", .after = "{\"uids\":[]}"},
        {.revision = 2, .kind = "tenant", .name = "x", .after = "{"},
        {.revision = 2,
         .kind = "window",
         .name = "x",
         .after = "{\"scope\":\"tenant\",\"tenant\":\"q\"}"},
        {.revision = 3, .kind = "tenant", .name = "x", .after = "{\"uids\":[]}"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[256];
        const struct meta_store_visitor visitor = {
            .resource = visit_setting, .change = visit_change, .user = text};
        struct meta_store_change change = bad[i];
        struct base_errbuf err;
        setup();
        ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
        ck_assert_int_eq(meta_store_load_resources(s.store, &visitor, &err), 0);
        ck_assert_str_eq(
            text,
            "{\"uids\":[5],\"sessions\":0,\"vqps\":0,\"mrs\":0,"
            "\"memory_bytes\":0,\"window_bytes\":0,\"window_ops\":0,\"control_ops_per_s\":0}");
        change.who = "nobody";
        ck_assert_int_eq(meta_store_change(s.store, &change, &err), 0);
        struct meta_resources *fresh = meta_resources_new(TRAIL), *old = s.resources;
        s.resources = fresh;
        ck_assert_msg(meta_service_load(&s, now, &err) < 0, "case %zu", i);
        ck_assert_ptr_nonnull(strstr(err.text, "restore it from a backup"));
        meta_resources_free(old);
        teardown();
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_tenant_is_created_shown_replaced_and_deleted)                                              \
    T(what_is_malformed_is_named_by_its_path)                                                      \
    T(a_window_names_one_destination_and_another_when_it_is_changed)                               \
    T(conditions_are_kept_to)                                                                      \
    T(what_contradicts_is_refused_with_the_culprit)                                                \
    T(lists_are_filtered_and_paged)                                                                \
    T(a_bad_name_in_a_path_is_named_as_the_document_does)                                          \
    T(a_query_parameter_that_filters_nothing_is_refused)                                           \
    T(what_the_store_refuses_has_not_happened)                                                     \
    T(a_restart_finds_everything_with_its_revisions)                                               \
    T(a_store_that_contradicts_itself_is_not_believed)
KEDGE_CHECK_MAIN("metaserver rest settings", TESTS)
