/* SPDX-License-Identifier: Apache-2.0 */
/* What operators say of nodes and pools, and what agents say of it, without sockets. */
#include "resources_world.h"

static void register_node(const char *id, const char *gid, uint32_t incarnation)
{
    char path[64], json[256];
    snprintf(path, sizeof path, "/v1/nodes/%s", id);
    snprintf(
        json, sizeof json,
        "{\"incarnation\":%u,\"endpoints\":[{\"gid\":\"%s\",\"pool\":1,\"transports\":[\"dc\"],"
        "\"dct_number\":77,\"dc_key\":\"00000000000000aa\",\"mtu\":4096}]}",
        incarnation, gid);
    ck_assert_int_lt(ask("PUT", path, json), 300);
}

START_TEST(a_node_is_labelled_and_cordoned_whether_it_is_registered_or_not)
{
    setup();
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/settings", ""), 404);
    ck_assert(says("nothing-set"));
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/settings",
                         "{\"labels\":{\"zone\":\"a\",\"arch\":\"x\"},\"cordoned\":true,"
                         "\"reason\":\"a \\\"disk\\\"\"}"),
                     201);
    ck_assert_str_eq(base_text_str(&body),
                     "{\"name\":\"n1\",\"revision\":1,\"labels\":{\"arch\":\"x\",\"zone\":\"a\"},"
                     "\"cordoned\":true,\"draining\":false,\"reason\":\"a \\\"disk\\\"\"}\n");
    ck_assert_uint_eq(answer.revision, 1);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert_str_eq(
        base_text_str(&body),
        "{\"id\":\"n1\",\"state\":\"absent\",\"expires_in_ms\":0,\"endpoints\":[],"
        "\"labels\":{\"arch\":\"x\",\"zone\":\"a\"},\"cordoned\":true,\"draining\":false,"
        "\"reason\":\"a \\\"disk\\\"\"}\n");
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 404);
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/n1", ""), 404);
    register_node("n1", "fd00::1", 5);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says("\"cordoned\":true") && says("\"zone\":\"a\"") && !says("\"applied\""));
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/n1", ""), 204); /* it ends, or restarts */
    register_node("n1", "fd00::1", 6);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 200);
    ck_assert(says(",\"node\":{\"labels\":{\"arch\":\"x\",\"zone\":\"a\"},\"cordoned\":true,"));
    request.if_match = "\"7\"";
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/settings", "{}"), 412);
    request.if_match = "\"1\"";
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/n1/settings", ""), 204);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 200);
    ck_assert(says(",\"node\":{\"labels\":{},\"cordoned\":false,\"draining\":false},"));
    query(META_PARAMETER_KIND, "node");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(says("\"kind\":\"node\",\"name\":\"n1\",\"from\":null") && says("\"to\":null"));
    teardown();
}
END_TEST

START_TEST(what_makes_no_sense_of_a_node_is_refused_by_field)
{
    const struct {
        const char *json, *field;
    } cases[] = {{"{\"draining\":true}", "cordoned"},
                 {"{\"cordoned\":true,\"grace_ms\":5}", "grace_ms"},
                 {"{\"cordoned\":true,\"draining\":true,\"grace_ms\":-1}", "grace_ms"},
                 {"{\"reason\":\"x\"}", "reason"},
                 {"{\"cordoned\":true,\"reason\":\"a\\nb\"}", "reason"},
                 {"{\"cordoned\":true,\"reason\":\"a\\u009bb\"}", "reason"},
                 {"{\"cordoned\":true,\"reason\":\"a\\u202eb\"}", "reason"},
                 {"{\"cordoned\":1}", "cordoned"},
                 {"{\"labels\":[]}", "labels"},
                 {"{\"labels\":{\"a b\":\"c\"}}", "labels.a b"},
                 {"{\"labels\":{\"a\":1}}", "labels.a"},
                 {"{\"colour\":1}", "colour"}};
    char field[64];
    setup();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(field, sizeof field, "\"field\":\"%s\"", cases[i].field);
        ck_assert_msg(ask("PUT", "/v1/nodes/n1/settings", cases[i].json) == 400 && says(field),
                      "%s: %s", cases[i].json, base_text_str(&body));
    }
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/settings",
                         "{\"cordoned\":true,\"draining\":true,\"grace_ms\":30000}"),
                     201);
    ck_assert_int_eq(
        ask("PUT", "/v1/nodes/n1/settings", "{\"cordoned\":true,\"draining\":true,\"grace_ms\":0}"),
        200);
    ck_assert(says("\"draining\":true,\"grace_ms\":0}")); /* at once, which is said */
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/settings", "{\"cordoned\":true,\"draining\":true}"),
                     200);
    ck_assert(says("\"draining\":true}")); /* they may finish */
    teardown();
}
END_TEST

START_TEST(nodes_are_listed_by_their_labels)
{
    setup();
    register_node("n1", "fd00::1", 5);
    register_node("n2", "fd00::2", 5);
    register_node("n3", "fd00::3", 5);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/settings", "{\"labels\":{\"zone\":\"a\"}}"), 201);
    ck_assert_int_eq(
        ask("PUT", "/v1/nodes/n3/settings", "{\"labels\":{\"zone\":\"a\",\"rack\":\"7\"}}"), 201);
    query(META_PARAMETER_LABEL, "zone=a");
    query(META_PARAMETER_LIMIT, "1");
    ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 200);
    ck_assert(says("\"n1\"") && !says("\"n2\"") && !says("\"n3\"") && says("next_cursor"));
    query(META_PARAMETER_LABEL, "zone=a");
    query(META_PARAMETER_CURSOR, "bjE");
    ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 200);
    ck_assert(!says("\"n1\"") && !says("\"n2\"") && says("\"n3\"") && !says("next_cursor"));
    query(META_PARAMETER_LABEL, "zone=a,rack=7");
    ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 200);
    ck_assert(!says("\"n1\"") && says("\"n3\""));
    query(META_PARAMETER_LABEL, "zone");
    ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 400);
    teardown();
}
END_TEST

/* The next_cursor of the last answer; "" without one. */
static const char *next_cursor(void)
{
    static char cursor[256];
    const char *text = strstr(base_text_str(&body), "\"next_cursor\":\"");
    cursor[0] = '\0';
    if (text != NULL)
        ck_assert_int_eq(sscanf(text + 15, "%255[^\"]", cursor), 1);
    return cursor;
}

enum { LOOKS = 500 }; /* of a page, at what it does not want */

/* A label that few have would make one turn as long as there are nodes. */
START_TEST(a_page_looks_at_so_many_nodes_and_its_cursor_leads_to_the_rest)
{
    enum { NODES = 1300, PAGES = 1 + NODES / LOOKS };
    char path[64], cursor[256] = "";
    int pages = 0, found = 0;
    setup();
    for (int i = 0; i < NODES; i++) {
        snprintf(path, sizeof path, "/v1/nodes/m%05d/settings", i);
        ck_assert_int_eq(
            ask("PUT", path, i == 7 || i == NODES - 1 ? "{\"labels\":{\"zone\":\"a\"}}" : "{}"),
            201);
    }
    do {
        query(META_PARAMETER_LABEL, "zone=a");
        query(META_PARAMETER_CURSOR, cursor[0] != '\0' ? cursor : NULL);
        ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 200);
        found += says("\"m00007\"") + says("\"m01299\"");
        ck_assert(pages != 1 || says("\"nodes\":[]")); /* an empty one is not the last one */
        snprintf(cursor, sizeof cursor, "%s", next_cursor());
        ck_assert_int_le(++pages, PAGES);
    } while (cursor[0] != '\0');
    ck_assert_int_eq(pages, PAGES);
    ck_assert_int_eq(found, 2);
    query(META_PARAMETER_LIMIT, "1000"); /* what is wanted is not counted */
    ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 200);
    ck_assert(says("\"m00999\"") && !says("\"m01000\""));
    teardown();
}
END_TEST

START_TEST(a_page_of_the_trail_looks_at_so_many_entries_likewise)
{
    enum { CHANGES = 1300, PAGES = 1 + CHANGES / LOOKS };
    char cursor[256] = "";
    int pages = 0, found = 0;
    setup();
    meta_resources_free(s.resources); /* the ordinary one keeps few */
    s.resources = meta_resources_new(2 * CHANGES);
    for (int i = 0; i < CHANGES; i++)
        ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/settings",
                             i % 2 == 0 ? "{\"labels\":{\"zone\":\"a\"}}" : "{}"),
                         i == 0 ? 201 : 200);
    ck_assert_int_eq(ask("PUT", "/v1/pools/late", "{\"nodes\":{}}"), 201);
    do {
        query(META_PARAMETER_KIND, "pool");
        query(META_PARAMETER_CURSOR, cursor[0] != '\0' ? cursor : NULL);
        ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
        found += says("\"late\"");
        snprintf(cursor, sizeof cursor, "%s", next_cursor());
        ck_assert_int_le(++pages, PAGES);
    } while (cursor[0] != '\0');
    ck_assert_int_eq(pages, PAGES);
    ck_assert_int_eq(found, 1);
    teardown();
}
END_TEST

START_TEST(nodes_that_are_not_registered_are_listed_among_the_others_if_something_is_set_of_them)
{
    static const char *const all[] = {"n0", "n1", "n2", "n3", "n9"};
    char cursor[32] = "", wanted[64];
    setup();
    register_node("n1", "fd00::1", 5);
    register_node("n3", "fd00::3", 5);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n9/settings", "{\"labels\":{\"zone\":\"a\"}}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n2/settings", "{\"cordoned\":true}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n0/settings", "{}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n3/settings", "{\"labels\":{\"zone\":\"a\"}}"), 201);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        query(META_PARAMETER_LIMIT, "1");
        query(META_PARAMETER_CURSOR, i > 0 ? cursor : NULL);
        ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 200);
        const bool here = strcmp(all[i], "n1") == 0 || strcmp(all[i], "n3") == 0;
        snprintf(wanted, sizeof wanted, "\"nodes\":[\n{\"id\":\"%s\",%s\"state\":\"%s\"", all[i],
                 here ? "\"incarnation\":5," : "", here ? "live" : "absent");
        ck_assert_msg(says(wanted), "%s", base_text_str(&body));
        const char *next = strstr(base_text_str(&body), "\"next_cursor\":\"");
        ck_assert(i == 4 ? next == NULL
                         : next != NULL && sscanf(next + 15, "%30[^\"]", cursor) == 1);
    }
    query(META_PARAMETER_LABEL, "zone=a");
    ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 200);
    ck_assert(says("\"n3\"") && says("\"n9\"") && !says("\"n0\"") && !says("\"n1\""));
    ck_assert_uint_eq(meta_directory_count(s.directory).nodes, 2);
    teardown();
}
END_TEST

START_TEST(agents_say_what_is_in_force)
{
    static const char path[] = "/v1/nodes/n1/applied";
    setup();
    ck_assert_int_eq(ask("PUT", path, "{}"), 400);
    const char *said = "{\"incarnation\":5,\"revision\":1,\"seen\":2,\"sessions\":3,"
                       "\"why\":\"no \\\"room\\\"\"}";
    ck_assert_int_eq(ask("PUT", path, said), 404);
    register_node("n1", "fd00::1", 6);
    ck_assert_int_eq(ask("PUT", path, said), 409);
    ck_assert(says("\"known_incarnation\":6"));
    static const char *const commands[] = {"\\u001b[31m", "\\u009b31m", "\\u202e", "\\u2066",
                                           "\xc2\x9b"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) { /* of a terminal */
        char text[128];
        snprintf(text, sizeof text, "{\"incarnation\":6,\"revision\":1,\"seen\":2,\"why\":\"a%s\"}",
                 commands[i]);
        ck_assert_int_eq(ask("PUT", path, text), 400);
        ck_assert(says("\"why\"") && says("must have no control characters"));
    }
    register_node("n2", "fd00::2", 5);
    ck_assert_uint_eq(meta_directory_count_behind(s.directory, 0), 0);
    ck_assert_int_eq(ask("PUT", "/v1/pools/p", "{\"nodes\":{}}"), 201);
    ck_assert_uint_eq(meta_directory_count_behind(s.directory, 1), 2);
    ck_assert_int_eq(ask("PUT", path,
                         "{\"incarnation\":6,\"revision\":1,\"seen\":1,\"sessions\":3,"
                         "\"why\":\"\"}"),
                     204);
    ck_assert_uint_eq(meta_directory_count_behind(s.directory, 1), 1);
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_nodes_behind 1\n"));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says(
        "\"applied\":{\"revision\":1,\"seen\":1,\"behind\":false,\"sessions\":3,\"why\":\"\"}"));
    ck_assert_int_eq(ask("PUT", "/v1/pools/p", "{\"nodes\":{},\"spares\":3}"), 200);
    ck_assert_int_eq(ask("PUT", path,
                         "{\"incarnation\":6,\"revision\":1,\"seen\":2,\"sessions\":0,"
                         "\"why\":\"spares\"}"),
                     204);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says("\"applied\":{\"revision\":1,\"seen\":2,\"behind\":true,\"sessions\":0,\"why\":"
                   "\"spares\"}"));
    register_node("n1", "fd00::1", 7); /* another life has said nothing yet */
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(!says("applied"));
    ck_assert_int_eq(
        ask("PUT", path, "{\"incarnation\":8,\"revision\":1,\"seen\":2,\"sessions\":0}"), 404);
    ck_assert(says("register-again"));
    teardown();
}
END_TEST

START_TEST(agents_say_whom_they_reach_and_hear_whom_to_try)
{
    static const char path[] = "/v1/nodes/n1/reach";
    static const char all_well[] = "{\"incarnation\":5,\"pool\":1,\"targets\":[]}";
    static const char fails[] = "{\"incarnation\":5,\"pool\":1,\"table\":{},\"targets\":["
                                "{\"gid\":\"fd00::3\",\"for_ms\":7,\"error\":\"timeout\"},"
                                "{\"gid\":\"fd00::77\",\"error\":\"refused\"}]}";
    setup();
    ck_assert_int_eq(ask("PUT", path, fails), 404);
    register_node("n1", "fd00::1", 5);
    register_node("n2", "fd00::2", 5);
    register_node("n3", "fd00::3", 5);
    ck_assert_int_eq(ask("PUT", path, fails), 200);
    ck_assert_str_eq(base_text_str(&body), "{\"prove\":[{\"node\":\"n2\",\"gid\":\"fd00::2\"},"
                                           "{\"node\":\"n3\",\"gid\":\"fd00::3\"}]}\n");
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    /* It is no live node that has the other GID. */
    ck_assert(says(",\"fabric\":{\"state\":\"undecided\",\"for_ms\":7,\"tried\":2,\"failing\":["
                   "{\"node\":\"n3\",\"error\":\"timeout\",\"for_ms\":7}],\"tried_by\":0,"
                   "\"failed_by\":0}"));
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n2/reach", fails), 200);
    ck_assert_str_eq(base_text_str(&body), "{\"prove\":[{\"node\":\"n3\",\"gid\":\"fd00::3\"},"
                                           "{\"node\":\"n1\",\"gid\":\"fd00::1\"}]}\n");
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says(",\"fabric\":{\"state\":\"ok\",\"tried\":2,\"failing\":[],"));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n3", ""), 200);
    ck_assert(says(",\"fabric\":{\"state\":\"unreachable\",\"for_ms\":0,\"tried\":0,"
                   "\"failing\":[],\"tried_by\":2,\"failed_by\":2}"));
    now += 2 * BASE_NS_PER_S;
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n3/reach", all_well), 200); /* and is told so itself */
    ck_assert(says("],\"unreached\":{\"by\":2,\"tried_by\":2,\"for_ms\":2000}}\n"));
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_nodes_unreachable 1\n") && says("\nkedge_metad_table_tried 2\n"));
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/n2", ""), 204); /* and with it what it said */
    ck_assert_int_eq(ask("GET", "/v1/nodes/n3", ""), 200);
    ck_assert(says("\"tried_by\":1,\"failed_by\":1,\"not_reached_by\":\"n1\"}"));
    register_node("n1", "fd00::1", 6); /* another life has said nothing yet */
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(!says("fabric"));
    ck_assert_int_eq(ask("PUT", path, fails), 409);
    teardown();
}
END_TEST

/* Of two nodes one dies: the other one is not blamed for it before its lease ends. */
START_TEST(of_two_nodes_the_one_whose_renewals_are_late_is_blamed)
{
    static const char fails[] = "{\"incarnation\":5,\"pool\":1,\"table\":{},\"targets\":["
                                "{\"gid\":\"fd00::2\",\"error\":\"timeout\"}]}";
    setup();
    register_node("n1", "fd00::1", 5);
    register_node("n2", "fd00::2", 5);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/reach", fails), 200);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says(",\"fabric\":{\"state\":\"undecided\",\"for_ms\":0,\"tried\":2,"));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n2", ""), 200);
    ck_assert(says("\"state\":\"undecided\"") && says("\"not_reached_by\":\"n1\""));
    now += 501 * BASE_NS_PER_S; /* half of the lease, and a little */
    ck_assert_int_eq(ask("POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/reach", fails), 200);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says("\"state\":\"ok\""));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n2", ""), 200);
    ck_assert(says(",\"fabric\":{\"state\":\"unreachable\",\"for_ms\":1000,"));
    ck_assert(!says("not_reached_by"));
    ck_assert_int_eq(ask("POST", "/v1/nodes/n2/renew", "{\"incarnation\":5}"), 200);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n2", ""), 200);
    ck_assert(says("\"state\":\"undecided\""));
    teardown();
}
END_TEST

START_TEST(what_makes_no_sense_of_whom_an_agent_reaches_is_refused_by_field)
{
#define SAYS(rest) "{\"incarnation\":5,\"pool\":1" rest "}"
    static const struct {
        const char *json, *field;
    } cases[] = {
        {SAYS(""), "targets"},
        {SAYS(",\"targets\":{}"), "targets"},
        {SAYS(",\"targets\":[],\"x\":1"), "x"},
        {SAYS(",\"targets\":[{}]"), "targets[0].gid"},
        {SAYS(",\"targets\":[1]"), "targets[0]"},
        {SAYS(",\"targets\":[{\"gid\":\"fd00::1\",\"error\":\"\"}]"), "targets[0].error"},
        {SAYS(",\"targets\":[{\"gid\":\"fd00::1\",\"error\":1}]"), "targets[0].error"},
        {SAYS(",\"targets\":[{\"gid\":\"fd00::1\",\"for_ms\":-1}]"), "targets[0].for_ms"},
        {SAYS(",\"targets\":[],\"table\":{\"gid\":\"fd00::1\"}"), "table.gid"},
        {SAYS(",\"targets\":[],\"table\":[]"), "table"},
        {"{\"incarnation\":5,\"targets\":[]}", "pool"},
    };
    char many[17 * 24 + 64] = "{\"incarnation\":5,\"pool\":1,\"targets\":[";
    setup();
    register_node("n1", "fd00::1", 5);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char field[64];
        ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/reach", cases[i].json), 400);
        snprintf(field, sizeof field, "\"field\":\"%s", cases[i].field);
        ck_assert_msg(says(field), "%s: %s", cases[i].json, base_text_str(&body));
    }
    for (int i = 0; i < 17; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "{\"gid\":\"fd00::%x\"}%s", i + 1,
                 i == 16 ? "]}" : ",");
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/reach", many), 400);
    ck_assert(says("at most 16"));
    teardown();
}
END_TEST

START_TEST(a_node_is_told_of_the_pools_that_its_labels_select)
{
    setup();
    register_node("n1", "fd00::1", 5);
    register_node("n2", "fd00::2", 5);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/settings", "{\"labels\":{\"zone\":\"a\"}}"), 201);
    ck_assert_int_eq(
        ask("PUT", "/v1/pools/all", "{\"nodes\":{},\"sessions_ahead\":4,\"ahead_max\":9}"), 201);
    ck_assert_str_eq(base_text_str(&body),
                     "{\"name\":\"all\",\"revision\":2,\"nodes\":{},"
                     "\"number\":51747,\"sessions_ahead\":4,\"ahead_max\":9}\n");
    ck_assert_int_eq(ask("PUT", "/v1/pools/zone-a", "{\"nodes\":{\"zone\":\"a\"},\"spares\":0}"),
                     201);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 200);
    ck_assert(says("\"pools\":[{\"name\":\"all\",\"revision\":2,\"nodes\":{},\"number\":51747,"
                   "\"sessions_ahead\":4,\"ahead_max\":9},{\"name\":\"zone-a\",\"revision\":3,"
                   "\"nodes\":{\"zone\":\"a\"},\"number\":4141,\"spares\":0}]}"));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n2/configuration", ""), 200);
    ck_assert(says("\"ahead_max\":9}],\"other_pools\":[{\"name\":\"zone-a\",\"number\":4141}]}"));
    ck_assert_int_eq(ask("PUT", "/v1/pools/zone-a", "{\"nodes\":{\"zone\":\"a\"},\"grace_ms\":0}"),
                     200); /* where it is being given up that holds for who is left */
    ck_assert_int_eq(ask("GET", "/v1/nodes/n2/configuration", ""), 200);
    ck_assert(says("[{\"name\":\"zone-a\",\"number\":4141,\"grace_ms\":0}]"));
    ck_assert_int_eq(ask("GET", "/v1/pools", ""), 200);
    ck_assert(says("\"revision\":4,\"pools\":[") && says("zone-a"));
    ck_assert_int_eq(ask("DELETE", "/v1/pools/all", ""), 204);
    ck_assert_int_eq(ask("GET", "/v1/pools/all", ""), 404);
    ck_assert(says("unknown-pool"));
    static const char *const wrong[] = {
        "{\"nodes\":{},\"sessions_ahead\":0}",
        "{\"nodes\":{},\"sessions_ahead\":1025}",
        "{\"nodes\":{},\"dcis\":1}",
        "{\"nodes\":{},\"mr_lease\":5}",
        "{\"nodes\":{},\"spares\":33}",
        "{\"nodes\":\"zone=a\"}",
        "{\"nodes\":{},\"spares\":4294967295}",
        "{\"nodes\":{},\"service_level\":16}",
        "{\"nodes\":{},\"traffic_class\":256}",
        "{\"nodes\":{},\"flow_label\":0}",
        "{\"nodes\":{},\"udp_source_port\":4791}",
        "{\"nodes\":{},\"pkey_index\":65536}",
        "{\"nodes\":{},\"mtu\":1500}",
        "{\"nodes\":{},\"flow_label\":5,\"udp_source_port\":50000}",
        "{\"nodes\":{},\"arenas_ahead\":5,\"ahead_max\":4}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(ask("PUT", "/v1/pools/p", wrong[i]) == 400, "%s", wrong[i]);
    teardown();
}
END_TEST

START_TEST(a_restart_finds_nodes_and_pools)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/settings",
                         "{\"labels\":{\"zone\":\"a\"},\"cordoned\":true,\"draining\":true,"
                         "\"grace_ms\":7,\"reason\":\"r\"}"),
                     201);
    ck_assert_int_eq(ask("PUT", "/v1/pools/p", "{\"nodes\":{\"zone\":\"a\"},\"spares\":0}"), 201);
    struct meta_store *store = s.store;
    close_service();
    open_service(store);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/settings", ""), 200);
    ck_assert_str_eq(base_text_str(&body),
                     "{\"name\":\"n1\",\"revision\":1,\"labels\":{\"zone\":\"a\"},"
                     "\"cordoned\":true,\"draining\":true,\"grace_ms\":7,\"reason\":\"r\"}\n");
    ck_assert_int_eq(ask("GET", "/v1/pools/p", ""), 200);
    ck_assert_str_eq(base_text_str(&body),
                     "{\"name\":\"p\",\"revision\":2,"
                     "\"nodes\":{\"zone\":\"a\"},\"number\":20264,\"spares\":0}\n");
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_node_is_labelled_and_cordoned_whether_it_is_registered_or_not)                             \
    T(what_makes_no_sense_of_a_node_is_refused_by_field)                                           \
    T(a_page_looks_at_so_many_nodes_and_its_cursor_leads_to_the_rest)                              \
    T(a_page_of_the_trail_looks_at_so_many_entries_likewise)                                       \
    T(nodes_are_listed_by_their_labels)                                                            \
    T(nodes_that_are_not_registered_are_listed_among_the_others_if_something_is_set_of_them)       \
    T(agents_say_whom_they_reach_and_hear_whom_to_try)                                             \
    T(of_two_nodes_the_one_whose_renewals_are_late_is_blamed)                                      \
    T(what_makes_no_sense_of_whom_an_agent_reaches_is_refused_by_field)                            \
    T(agents_say_what_is_in_force)                                                                 \
    T(a_node_is_told_of_the_pools_that_its_labels_select)                                          \
    T(a_restart_finds_nodes_and_pools)
KEDGE_CHECK_MAIN("metaserver rest nodes", TESTS)
