/* SPDX-License-Identifier: Apache-2.0 */
/* Pools side by side: their numbers, periods and tenants, without sockets. */
#include "resources_world.h"

static void shows(const char *path, const char *text)
{
    ck_assert_int_eq(ask("GET", path, ""), 200);
    ck_assert_msg(says(text), "%s has no %s: %s", path, text, base_text_str(&body));
}

static void refused(int status, const char *path, const char *json, const char *field,
                    const char *sentence)
{
    char text[128];
    uint64_t revision = meta_resources_revision(s.resources);
    ck_assert_msg(ask("PUT", path, json) == status, "%s %s: %s", path, json, base_text_str(&body));
    snprintf(text, sizeof text, "\"field\":\"%s\"", field);
    ck_assert_msg(says(text) && says(sentence), "%s", base_text_str(&body));
    ck_assert_uint_eq(meta_resources_revision(s.resources), revision);
}

START_TEST(a_pool_has_a_number_that_is_said_or_follows_from_its_name)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold", "{\"nodes\":{},\"number\":513}"), 201);
    ck_assert_str_eq(base_text_str(&body),
                     "{\"name\":\"gold\",\"revision\":1,\"nodes\":{},\"number\":513}\n");
    ck_assert_int_eq(ask("PUT", "/v1/pools/silver", "{\"nodes\":{}}"), 201);
    ck_assert(says("\"number\":58624"));
    ck_assert_uint_eq(meta_pool_id("silver"), 58624);
    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        ck_assert_uint_ge(meta_pool_id(name), 2);
    }
    teardown();
}
END_TEST

START_TEST(that_a_pool_is_on_all_nodes_is_said)
{
    setup();
    refused(400, "/v1/pools/oops", "{}", "nodes", "{} for all");
    refused(400, "/v1/pools/oops", "{\"spares\":3}", "nodes", "is missing: say which nodes");
    ck_assert_int_eq(ask("PUT", "/v1/pools/all", "{\"nodes\":{}}"), 201);
    refused(400, "/v1/pools/all", "{\"spares\":3}", "nodes", "is missing");
    teardown();
}
END_TEST

START_TEST(a_pools_number_stays)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold", "{\"nodes\":{},\"number\":513}"), 201);
    refused(409, "/v1/pools/gold", "{\"nodes\":{},\"number\":514}", "number", "is 513 as long as");
    ck_assert(says("urn:kedge:problem:fixed"));
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold", "{\"nodes\":{},\"number\":513}"), 200);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 1);
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold", "{\"nodes\":{},\"spares\":3}"),
                     200); /* not said: kept */
    ck_assert(says("\"number\":513") && says("\"spares\":3"));
    ck_assert_int_eq(ask("DELETE", "/v1/pools/gold", ""), 204);
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold", "{\"nodes\":{},\"number\":514}"), 201);
    teardown();
}
END_TEST

START_TEST(no_two_pools_have_one_number)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold", "{\"nodes\":{},\"number\":58624}"), 201);
    refused(409, "/v1/pools/lead", "{\"nodes\":{},\"number\":58624}", "number",
            "58624 is that of pool gold: choose another `number`");
    ck_assert(says("urn:kedge:problem:pool-taken"));
    refused(409, "/v1/pools/silver", "{\"nodes\":{}}", "number",
            "is that of pool gold"); /* by its name */
    ck_assert_int_eq(ask("PUT", "/v1/pools/silver", "{\"nodes\":{},\"number\":7}"), 201);
    /* Two names with one hash, as there are. */
    ck_assert_uint_eq(meta_pool_id("p393"), meta_pool_id("p434"));
    ck_assert_int_eq(ask("PUT", "/v1/pools/p393", "{\"nodes\":{}}"), 201);
    refused(409, "/v1/pools/p434", "{\"nodes\":{}}", "number", "is that of pool p393");
    teardown();
}
END_TEST

START_TEST(a_tenant_is_in_one_pool)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold", "{\"nodes\":{},\"tenants\":[\"web\",\"batch\"]}"),
                     201);
    ck_assert(says("\"tenants\":[\"batch\",\"web\"]")); /* by name, though none is there */
    refused(409, "/v1/pools/lead", "{\"nodes\":{},\"tenants\":[\"zoo\",\"web\",\"any\"]}",
            "tenants[1]", "tenant web is in pool gold: take it from that one first");
    ck_assert_int_eq(ask("PUT", "/v1/pools/lead", "{\"nodes\":{},\"tenants\":[\"zoo\"]}"), 201);
    refused(409, "/v1/pools/gold", "{\"nodes\":{},\"tenants\":[\"batch\",\"zoo\"]}", "tenants[1]",
            "is in pool lead");
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold", "{\"nodes\":{},\"tenants\":[\"batch\"]}"), 200);
    ck_assert_int_eq(ask("PUT", "/v1/pools/lead", "{\"nodes\":{},\"tenants\":[\"zoo\",\"web\"]}"),
                     200);
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold", "{\"nodes\":{}}"), 200);
    ck_assert(!says("tenants"));
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(says("\"tenants\":[\"batch\"]")); /* the trail keeps who was in it */
    teardown();
}
END_TEST

START_TEST(values_of_a_pool_have_bounds)
{
    static const struct {
        const char *json, *field;
    } wrong[] = {
        {"{\"nodes\":{},\"number\":0}", "number"},
        {"{\"nodes\":{},\"number\":65536}", "number"},
        {"{\"nodes\":{},\"number\":\"7\"}", "number"},
        {"{\"nodes\":{},\"lanes\":0}", "lanes"},
        {"{\"nodes\":{},\"lanes\":9}", "lanes"},
        {"{\"nodes\":{},\"lanes\":\"2\"}", "lanes"},
        {"{\"nodes\":{},\"lanes\":1.5}", "lanes"},
        {"{\"nodes\":{},\"mr_lease_ms\":9}", "mr_lease_ms"},
        {"{\"nodes\":{},\"mr_lease_ms\":3600001}", "mr_lease_ms"},
        {"{\"nodes\":{},\"grace_ms\":9007199255}", "grace_ms"},
        {"{\"nodes\":{},\"grace_ms\":-1}", "grace_ms"},
        {"{\"nodes\":{},\"tenants\":\"web\"}", "tenants"},
        {"{\"nodes\":{},\"tenants\":[\"web\",7]}", "tenants[1]"},
        {"{\"nodes\":{},\"tenants\":[\"Web\"]}", "tenants[0]"},
        {"{\"nodes\":{},\"tenants\":[\"a2345678901234567890123456789012\"]}", "tenants[0]"},
        {"{\"nodes\":{},\"tenants\":[\"web\",\"a\",\"web\"]}", "tenants[2]"}};
    char json[1024] = "{\"nodes\":{},\"tenants\":[";
    setup();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused(400, "/v1/pools/p", wrong[i].json, wrong[i].field, "malformed");
    for (int i = 0; i <= RESOURCE_TENANTS_MAX; i++)
        snprintf(json + strlen(json), sizeof json - strlen(json), "%s\"t%d\"", i > 0 ? "," : "", i);
    snprintf(json + strlen(json), sizeof json - strlen(json), "]}");
    refused(400, "/v1/pools/p", json, "tenants", "at most 64");
    ck_assert_int_eq(ask("PUT", "/v1/pools/p",
                         "{\"nodes\":{},\"number\":1,\"mr_lease_ms\":10,\"grace_ms\":9007199254}"),
                     201);
    ck_assert_int_eq(ask("PUT", "/v1/pools/p",
                         "{\"nodes\":{},\"number\":1,\"mr_lease_ms\":3600000,\"grace_ms\":0}"),
                     200);
    ck_assert_str_eq(base_text_str(&body),
                     "{\"name\":\"p\",\"revision\":2,\"nodes\":{},\"number\":1,"
                     "\"mr_lease_ms\":3600000,\"grace_ms\":0}\n");
    teardown();
}
END_TEST

static void restart(void)
{
    struct meta_store *store = s.store;
    close_service();
    open_service(store);
}

START_TEST(lanes_of_a_pool_are_kept_and_told_to_agents)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1",
                         "{\"incarnation\":5,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,"
                         "\"transports\":[\"dc\"],\"dct_number\":1,\"dc_key\":\"0000000000000001\","
                         "\"mtu\":4096}]}"),
                     201);
    refused(400, "/v1/pools/p", "{\"nodes\":{},\"lanes\":9}", "lanes",
            "must be an integer from 1 to 8");
    ck_assert_int_eq(ask("PUT", "/v1/pools/p", "{\"nodes\":{},\"number\":9}"), 201);
    ck_assert(!says("lanes")); /* which is one */
    for (char lanes = '1'; lanes <= '8'; lanes++) {
        char json[64];
        snprintf(json, sizeof json, "{\"nodes\":{},\"number\":9,\"lanes\":%c}", lanes);
        ck_assert_int_eq(ask("PUT", "/v1/pools/p", json), 200);
        snprintf(json, sizeof json, "\"nodes\":{},\"number\":9,\"lanes\":%c}", lanes);
        ck_assert(says(json));
        shows("/v1/nodes/n1/configuration", json);
    }
    restart();
    shows("/v1/pools/p", "\"number\":9,\"lanes\":8}");
    ck_assert_int_eq(ask("PUT", "/v1/pools/p", "{\"nodes\":{},\"number\":9}"), 200);
    ck_assert(!says("lanes"));
    teardown();
}
END_TEST

START_TEST(an_agent_is_told_which_pool_a_tenant_has)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1",
                         "{\"incarnation\":5,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,"
                         "\"transports\":[\"dc\"],\"dct_number\":1,\"dc_key\":\"0000000000000001\","
                         "\"mtu\":4096}]}"),
                     201);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/blue", "{\"uids\":[2]}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/red", "{\"uids\":[1]}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold",
                         "{\"nodes\":{\"zone\":\"a\"},\"number\":513,\"mr_lease_ms\":50,"
                         "\"tenants\":[\"red\"]}"),
                     201);
    shows("/v1/nodes/n1/configuration",
          "\"window_ops\":0,\"control_ops_per_s\":0},{\"name\":\"red\"");
    shows("/v1/nodes/n1/configuration", "\"control_ops_per_s\":0,\"pool\":\"gold\"}]");
    shows("/v1/nodes/n1/configuration", "\"pools\":[]"); /* its node has no such pool */
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/settings", "{\"labels\":{\"zone\":\"a\"}}"), 201);
    shows("/v1/nodes/n1/configuration", "\"number\":513,\"mr_lease_ms\":50,");
    ck_assert_int_eq(ask("GET", "/v1/tenants/red", ""), 200);
    ck_assert(!says("pool"));
    teardown();
}
END_TEST

static void store_older(struct meta_store *store, uint64_t revision, const char *pool)
{
    const struct meta_store_change older = {.revision = revision,
                                            .time_ms = 1,
                                            .who = "uid 0",
                                            .kind = "pool",
                                            .name = pool,
                                            .after = "{\"spares\":1}"};
    struct base_errbuf err;
    ck_assert_int_eq(meta_store_change(store, &older, &err), 0);
}

START_TEST(a_restart_finds_numbers_and_tenants_and_gives_older_pools_a_number)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/pools/gold",
                         "{\"nodes\":{},\"number\":513,\"grace_ms\":7,\"tenants\":[\"a\",\"b\"]}"),
                     201);
    store_older(s.store, 2, "silver");
    restart();
    shows("/v1/pools/gold", "\"number\":513,\"grace_ms\":7,\"tenants\":[\"a\",\"b\"]}");
    shows("/v1/pools/silver", "\"number\":58624,\"spares\":1}");
    refused(409, "/v1/pools/silver", "{\"nodes\":{},\"number\":8}", "number",
            "is 58624 as long as");
    refused(409, "/v1/pools/silver", "{\"nodes\":{},\"tenants\":[\"b\"]}", "tenants[0]",
            "is in pool gold");
    teardown();
}
END_TEST

/* Two pools whose names stand for one number; the next number is that of a third one. */
static void store_two_of_one_number(uint16_t *id)
{
    char zinc[48];
    *id = meta_pool_id("p393");
    ck_assert_uint_eq(meta_pool_id("p434"), *id);
    snprintf(zinc, sizeof zinc, "{\"nodes\":{},\"number\":%u}", *id + 1u);
    ck_assert_int_eq(ask("PUT", "/v1/pools/zinc", zinc), 201);
    store_older(s.store, 2, "p434");
    store_older(s.store, 3, "p393");
}

static void has_number(const char *path, unsigned number)
{
    char text[32];
    snprintf(text, sizeof text, "\"number\":%u,", number);
    shows(path, text);
}

START_TEST(older_pools_whose_names_stand_for_one_number_get_two_for_good)
{
    uint16_t id;
    setup();
    store_two_of_one_number(&id);
    restart();
    has_number("/v1/pools/p393", id);
    has_number("/v1/pools/p434", id + 2u);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 4); /* said in the trail */
    shows("/v1/events", "\"revision\":4,\"time\":");
    ck_assert(says("\"who\":\"kedge-metad\",\"kind\":\"pool\",\"name\":\"p434\""));
    restart();
    ck_assert_uint_eq(meta_resources_revision(s.resources), 4); /* once */
    ck_assert_int_eq(ask("DELETE", "/v1/pools/p393", ""), 204);
    restart();
    has_number("/v1/pools/p434", id + 2u);
    teardown();
}
END_TEST

START_TEST(a_number_that_cannot_be_written_down_is_chosen_again)
{
    uint16_t id;
    setup();
    store_two_of_one_number(&id);
    fail = EROFS;
    restart();
    has_number("/v1/pools/p434", id + 2u);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 3);
    fail = 0;
    restart();
    has_number("/v1/pools/p434", id + 2u);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 4);
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_pool_has_a_number_that_is_said_or_follows_from_its_name)                                   \
    T(that_a_pool_is_on_all_nodes_is_said)                                                         \
    T(a_pools_number_stays)                                                                        \
    T(no_two_pools_have_one_number)                                                                \
    T(a_tenant_is_in_one_pool)                                                                     \
    T(values_of_a_pool_have_bounds)                                                                \
    T(lanes_of_a_pool_are_kept_and_told_to_agents)                                                 \
    T(an_agent_is_told_which_pool_a_tenant_has)                                                    \
    T(a_restart_finds_numbers_and_tenants_and_gives_older_pools_a_number)                          \
    T(older_pools_whose_names_stand_for_one_number_get_two_for_good)                               \
    T(a_number_that_cannot_be_written_down_is_chosen_again)
KEDGE_CHECK_MAIN("metaserver rest pools", TESTS)
