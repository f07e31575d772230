/* SPDX-License-Identifier: Apache-2.0 */
/* The REST interface without sockets: what is answered, and what the store and the table then hold.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "metaserver/json.h"
#include "metaserver/json_read.h"
#include "metaserver/service.h"
#include "../test_world.h"

#define LEASE (2 * BASE_NS_PER_S)
#define JSON  "application/json"

struct fixture {
    struct test_world world;
    struct meta_service s;
    void *memory;
    uint64_t now;
    int fail; /* the store's */
    struct base_text body;
    struct meta_service_answer answer;
    struct base_latency *took; /* of the last request's route */
};

static void on_answer(void *token, const struct meta_service_answer *answer,
                      const struct base_text *text)
{
    struct fixture *f = token;
    ck_assert_int_eq(f->answer.status, META_SERVICE_LATER);
    f->answer = *answer;
    base_text_reset(&f->body);
    base_text_append(&f->body, base_text_str(text), text->length);
}

static void setup(struct fixture *f)
{
    struct meta_directory_limits limits = {64, 64, LEASE, 100 * BASE_NS_PER_S};
    size_t bytes = schema_table_bytes(schema_table_log2_slots(64));
    memset(f, 0, sizeof *f);
    f->memory = aligned_alloc(64, bytes);
    memset(f->memory, 0, bytes);
    f->s.directory = meta_directory_new(&limits, f->memory, 0x5eed, 0x77);
    f->s.resources = meta_resources_new(16);
    f->s.store = meta_store_memory(&f->fail);
    test_world_init(&f->world, f->s.store);
    f->s.world = &f->world.base;
    f->s.answer = on_answer;
    f->s.node_lease_ns = LEASE;
    f->s.endpoint.dct_number = 9;
    f->s.endpoint.gid[0] = 0xfd;
    f->s.endpoint.table_rkey = 5;
    f->now = BASE_NS_PER_S;
    base_text_init(&f->body, 1 << 20);
}

static void teardown(struct fixture *f)
{
    meta_directory_free(f->s.directory);
    meta_resources_free(f->s.resources);
    meta_store_close(f->s.store);
    base_text_fini(&f->body);
    free(f->memory);
}

/* The answer's status; the body is in f->body. */
static int ask_as(struct fixture *f, const char *method, const char *path, const char *type,
                  const char *body, size_t bytes)
{
    struct meta_service_request request = {.method = method,
                                           .path = path,
                                           .content_type = type,
                                           .body = body,
                                           .body_bytes = bytes,
                                           .token = f};
    base_text_reset(&f->body);
    meta_service_handle(&f->s, &request, f->now, &f->body, &f->answer);
    f->took = f->answer.took;
    test_world_settle(&f->world, &f->s, f->now);
    ck_assert_int_eq(f->body.error, 0);
    return f->answer.status;
}

static int ask(struct fixture *f, const char *method, const char *path, const char *body)
{
    return ask_as(f, method, path, JSON, body, strlen(body));
}

static bool says(const struct fixture *f, const char *text)
{
    return strstr(base_text_str(&f->body), text) != NULL;
}

static void tick(struct fixture *f, uint64_t now)
{
    meta_service_tick(&f->s, now, 0);
    test_world_settle(&f->world, &f->s, now);
}

#define ENDPOINT(gid, key)                                                                         \
    "{\"gid\":\"" gid "\",\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":77,\"dc_key\":\"" key  \
    "\",\"mtu\":4096,\"mr_table\":{\"addr\":\"00007f0012340000\",\"rkey\":12,\"log2_slots\":10}}"
#define NODE(incarnation, gid, key)                                                                \
    "{\"incarnation\":" incarnation ",\"endpoints\":[" ENDPOINT(gid, key) "]}"
#define KEY_A "00000000000000aa"
#define KEY_B "00000000000000bb"

START_TEST(a_node_registers_renews_is_shown_without_keys_and_leaves)
{
    struct fixture f;
    setup(&f);
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_A)), 201);
    ck_assert(says(&f, "\"id\":\"n1\",\"incarnation\":5,\"node_lease_ms\":2000"));
    ck_assert(says(&f, "\"generation\":\"0000000000000077\""));
    ck_assert(says(&f, "\"seed\":\"0000000000005eed\""));
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_A)), 200);
    ck_assert_int_eq(ask(&f, "POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    ck_assert(
        says(&f, "{\"expires_in_ms\":2000,\"generation\":\"0000000000000077\",\"dct_number\":"));
    ck_assert_int_eq(ask(&f, "GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says(&f,
                   "\"state\":\"live\",\"expires_in_ms\":2000,\"endpoints\":[{\"gid\":\"fd00::1\","
                   "\"pool\":1,\"transports\":[\"dc\"],\"mtu\":4096}]"));
    ck_assert(!says(&f, "aa") && !says(&f, "key") && !says(&f, "7f00"));
    ck_assert_int_eq(ask(&f, "DELETE", "/v1/nodes/n1", ""), 204);
    ck_assert_uint_eq(f.body.length, 0);
    ck_assert_int_eq(ask(&f, "GET", "/v1/nodes/n1", ""), 404);
    ck_assert_int_eq(ask(&f, "DELETE", "/v1/nodes/n1", ""), 404);
    ck_assert_int_eq(ask(&f, "POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 404);
    ck_assert_uint_eq(meta_directory_count(f.s.directory).published, 0);
    teardown(&f);
}
END_TEST

START_TEST(conflicts_say_what_is_known)
{
    struct fixture f;
    setup(&f);
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_A)), 201);
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("4", "fd00::1", KEY_A)), 409);
    ck_assert(says(&f, "\"known_incarnation\":5"));
    ck_assert(says(&f, "urn:kedge:problem:stale-incarnation"));
    ck_assert_str_eq(f.answer.content_type, "application/problem+json");
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_B)), 409);
    ck_assert_int_eq(ask(&f, "POST", "/v1/nodes/n1/renew", "{\"incarnation\":4}"), 409);
    ck_assert(says(&f, "\"known_incarnation\":5"));
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n2", NODE("9", "fd00::1", KEY_B)), 409);
    ck_assert(says(&f, "urn:kedge:problem:endpoint-taken"));
    ck_assert(says(&f, "\"field\":\"endpoints[0]\""));
    ck_assert(says(&f, "of node n1"));
    teardown(&f);
}
END_TEST

START_TEST(a_failing_store_gives_503_and_changes_nothing)
{
    struct fixture f;
    setup(&f);
    f.fail = ENOSPC;
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_A)), 503);
    ck_assert_uint_eq(meta_directory_count(f.s.directory).nodes, 0);
    ck_assert_uint_eq(meta_directory_count(f.s.directory).published, 0);
    ck_assert_int_eq(ask(&f, "GET", "/readyz", ""), 503);
    ck_assert_int_eq(ask(&f, "GET", "/healthz", ""), 200);
    f.fail = 0;
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_A)), 201);
    f.fail = EIO;
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("6", "fd00::1", KEY_B)), 503);
    ck_assert_int_eq(ask(&f, "DELETE", "/v1/nodes/n1", ""), 503);
    ck_assert_int_eq(ask(&f, "GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says(&f, "\"incarnation\":5"));
    /* Renewing and repeating oneself need no store. */
    ck_assert_int_eq(ask(&f, "POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_A)), 200);
    ck_assert_uint_eq(f.s.count.store_errors, 3);
    teardown(&f);
}
END_TEST

START_TEST(an_expiry_that_the_store_refuses_is_written_later)
{
    struct fixture f;
    setup(&f);
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_A)), 201);
    f.fail = EIO;
    f.now += LEASE;
    tick(&f, f.now);
    ck_assert_uint_eq(meta_directory_count(f.s.directory).published, 0);
    ck_assert_int_eq(ask(&f, "GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says(&f, "\"state\":\"expired\""));
    ck_assert_int_eq(ask(&f, "POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 404);
    ck_assert(says(&f, "register-again"));
    f.fail = 0;
    struct meta_store_life lives[2];
    tick(&f, f.now + 1);
    ck_assert_uint_eq(meta_directory_lapsed(f.s.directory, lives, 2),
                      1); /* not tried again at once */
    tick(&f, f.now + 6 * BASE_NS_PER_S);
    ck_assert_uint_eq(meta_directory_lapsed(f.s.directory, lives, 2), 0);
    tick(&f, f.now + 200 * BASE_NS_PER_S);
    ck_assert_uint_eq(meta_directory_count(f.s.directory).nodes, 0); /* forgotten */
    teardown(&f);
}
END_TEST

START_TEST(after_a_restart_nodes_are_listed_and_have_to_register_again)
{
    struct fixture f, g;
    struct base_errbuf err;
    setup(&f);
    setup(&g);
    ck_assert_int_eq(ask(&f, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_A)), 201);
    struct meta_store *kept = f.s.store;
    f.s.store = f.world.store.store = g.s.store;
    g.s.store = g.world.store.store = kept;
    ck_assert_int_eq(meta_service_load(&g.s, g.now, &err), 0);
    ck_assert_int_eq(ask(&g, "GET", "/v1/nodes", ""), 200);
    ck_assert(says(&g, "\"id\":\"n1\",\"incarnation\":5,\"state\":\"waiting\""));
    ck_assert_int_eq(ask(&g, "POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 404);
    ck_assert(says(&g, "register-again"));
    ck_assert_int_eq(ask(&g, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_B)), 409);
    ck_assert_int_eq(ask(&g, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_A)), 200);
    ck_assert_int_eq(ask(&g, "POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    teardown(&f);
    teardown(&g);
}
END_TEST

START_TEST(routes_methods_and_types_that_are_wrong_are_refused)
{
    static const struct {
        const char *method, *path, *type;
        int status;
        const char *allow;
    } cases[] = {
        {"GET", "/", JSON, 404, NULL},
        {"GET", "/v1", JSON, 404, NULL},
        {"GET", "/v1/nodes/", JSON, 404, NULL},
        {"GET", "/v1/nodes/a/b", JSON, 404, NULL},
        {"GET", "/v1/nodes/a/renew/x", JSON, 404, NULL},
        {"GET", "/v2/nodes", JSON, 404, NULL},
        {"GET", "", JSON, 404, NULL},
        {"GET", "/v1/nodes/UPPER", JSON, 400, NULL},
        {"GET", "/v1/nodes/-a", JSON, 400, NULL},
        {"GET", "/v1/nodes/a b", JSON, 400, NULL},
        {"GET", "/v1/nodes/..", JSON, 400, NULL},
        {"POST", "/v1/nodes", JSON, 405, "GET, HEAD"},
        {"PATCH", "/v1/nodes/a", JSON, 405, "GET, HEAD, PUT, DELETE"},
        {"GET", "/v1/nodes/a/renew", JSON, 405, "POST"},
        {"DELETE", "/metrics", JSON, 405, "GET, HEAD"},
        {"PUT", "/v1/nodes/a", NULL, 415, NULL},
        {"PUT", "/v1/nodes/a", "text/plain", 415, NULL},
        {"PUT", "/v1/nodes/a", "application/jsonx", 415, NULL},
        {"POST", "/v1/nodes/a/renew", "application/x-www-form-urlencoded", 415, NULL},
        {"PUT", "/v1/nodes/a", "application/json; charset=utf-8", 400, NULL},
        {"PUT", "/v1/nodes/a", "Application/JSON", 400, NULL},
        {"HEAD", "/v1/nodes", NULL, 200, NULL},
        {"HEAD", "/healthz", NULL, 200, NULL},
        {"GET", "/version", NULL, 200, NULL},
    };
    struct fixture f;
    setup(&f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = ask_as(&f, cases[i].method, cases[i].path, cases[i].type, "", 0);
        ck_assert_msg(status == cases[i].status, "%s %s: %d", cases[i].method, cases[i].path,
                      status);
        if (status >= 400)
            ck_assert_str_eq(f.answer.content_type, "application/problem+json");
        ck_assert_str_eq(f.answer.allow, cases[i].allow != NULL ? cases[i].allow : "");
    }
    char longest[96] = "/v1/nodes/";
    memset(longest + 10, 'a', 63);
    ck_assert_int_eq(ask(&f, "GET", longest, ""), 404);
    longest[73] = 'a';
    ck_assert_int_eq(ask(&f, "GET", longest, ""), 400);
    teardown(&f);
}
END_TEST

static const struct {
    const char *body, *field;
} wrong_bodies[] = {
    {"", NULL},
    {"{", NULL},
    {"[]", NULL},
    {"\"x\"", NULL},
    {"{} {}", NULL},
    {"{\"incarnation\":1,\"incarnation\":2}", NULL},
    {"{\"a\\u0000b\":1}", NULL},
    {"{\"\xff\":1}", NULL},
    {"{\"incarnation\":1e2,\"endpoints\":[]}", "incarnation"},
    {"{\"incarnation\":0}", "incarnation"},
    {"{\"incarnation\":-1}", "incarnation"},
    {"{\"incarnation\":4294967296}", "incarnation"},
    {"{\"incarnation\":99999999999999999999999}", NULL},
    {"{\"incarnation\":\"1\"}", "incarnation"},
    {"{\"endpoints\":[]}", "incarnation"},
    {"{\"incarnation\":1}", "endpoints"},
    {"{\"incarnation\":1,\"endpoints\":{}}", "endpoints"},
    {"{\"incarnation\":1,\"endpoints\":[]}", "endpoints"},
    {"{\"incarnation\":1,\"endpoints\":[1]}", "endpoints[0]"},
    {"{\"incarnation\":1,\"endpoints\":[{}]}", "endpoints[0].gid"},
    {"{\"incarnation\":1,\"extra\":1}", "extra"},
    {NODE("1", "fd00::g", KEY_A), "endpoints[0].gid"},
    {NODE("1", "::", KEY_A), "endpoints[0].gid"},
    {NODE("1", "ff02::1", KEY_A), "endpoints[0].gid"},
    {NODE("1", "fd00::1", "xx"), "endpoints[0].dc_key"},
    {NODE("1", "fd00::1", KEY_A "0"), "endpoints[0].dc_key"},
    {"{\"incarnation\":1,\"endpoints\":[" ENDPOINT("fd00::1", KEY_A) "," ENDPOINT("fd00::1",
                                                                                  KEY_B) "]}",
     "endpoints[1]"},
    {"{\"incarnation\":1,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[],"
     "\"mtu\":4096}]}",
     "endpoints[0].transports"},
    {"{\"incarnation\":1,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[\"rc\","
     "\"rc\"],\"mtu\":4096}]}",
     "endpoints[0].transports"},
    {"{\"incarnation\":1,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[\"rc\"]"
     ","
     "\"mtu\":1500}]}",
     "endpoints[0].mtu"},
    {"{\"incarnation\":1,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":65536,\"transports\":["
     "\"rc\"],"
     "\"mtu\":1024}]}",
     "endpoints[0].pool"},
    {"{\"incarnation\":1,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[\"rc\"]"
     ","
     "\"mtu\":1024}]}",
     "endpoints[0].ud_qpn"},
    {"{\"incarnation\":1,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[\"rc\"]"
     ","
     "\"mtu\":1024,\"ud_qpn\":1,\"ud_qkey\":0,\"mr_table\":{\"addr\":\"0001000000000000\","
     "\"rkey\":1,\"log2_slots\":4}}]}",
     "endpoints[0].mr_table.addr"},
    {"{\"incarnation\":1,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[\"rc\"]"
     ","
     "\"mtu\":1024,\"ud_qpn\":1,\"ud_qkey\":0,\"mr_table\":{\"addr\":\"0000000000001000\","
     "\"rkey\":1,\"log2_slots\":31}}]}",
     "endpoints[0].mr_table.log2_slots"},
    {"{\"incarnation\":5,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[\"rc\"]"
     ",\"incarnation\":4,\"mtu\":1024,\"ud_qpn\":1,\"ud_qkey\":0}]}",
     "endpoints[0].incarnation"},
    {"{\"incarnation\":1,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[\"rc\"]"
     ","
     "\"mtu\":1024,\"ud_qpn\":1,\"ud_qkey\":0,\"mr_table\":{\"a_name_longer_than_all_fields\":"
     "1}}]}",
     "endpoints[0].mr_table.a_name_longer_than_a"},
};

START_TEST(bodies_that_are_wrong_are_refused_with_the_field)
{
    struct fixture f;
    char field[80];
    setup(&f);
    for (size_t i = 0; i < sizeof wrong_bodies / sizeof wrong_bodies[0]; i++) {
        int status = ask(&f, "PUT", "/v1/nodes/n", wrong_bodies[i].body);
        ck_assert_msg(status == 400, "%s: %d", wrong_bodies[i].body, status);
        snprintf(field, sizeof field, "\"field\":\"%s\"}", wrong_bodies[i].field);
        ck_assert_msg(wrong_bodies[i].field == NULL ? !says(&f, "\"field\"") : says(&f, field),
                      "%s: %s", wrong_bodies[i].body, base_text_str(&f.body));
    }
    ck_assert_int_eq(ask_as(&f, "PUT", "/v1/nodes/n", JSON, "{}\0{}", 5), 400);
    ck_assert_int_eq(ask(&f, "POST", "/v1/nodes/n/renew", "{\"incarnation\":1,\"x\":2}"), 400);
    ck_assert_int_eq(ask(&f, "POST", "/v1/nodes/n/renew", "{}"), 400);
    ck_assert_uint_eq(meta_directory_count(f.s.directory).nodes, 0);
    teardown(&f);
}
END_TEST

START_TEST(an_endpoint_may_have_a_later_incarnation_than_its_node)
{
    static const char body[] =
        "{\"incarnation\":5,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[\"rc\"],"
        "\"mtu\":1024,\"ud_qpn\":1,\"ud_qkey\":0},{\"gid\":\"fd00::1\",\"pool\":2,\"incarnation\":"
        "7,"
        "\"transports\":[\"rc\"],\"mtu\":1024,\"ud_qpn\":2,\"ud_qkey\":0}]}";
    struct meta_registration r;
    struct meta_responder_peer reader;
    struct meta_violation fault;
    ck_assert_int_eq(meta_json_registration("n1", body, strlen(body), &r, &reader, &fault), 0);
    ck_assert_uint_eq(r.incarnation, 5);
    ck_assert_uint_eq(r.endpoint[0].incarnation, 5);
    ck_assert_uint_eq(r.endpoint[1].incarnation, 7);
}
END_TEST

START_TEST(too_deep_and_too_large_bodies_are_refused)
{
    static char body[META_JSON_MAX_BYTES + 1];
    struct fixture f;
    setup(&f);
    memset(body, '[', sizeof body);
    ck_assert_int_eq(ask_as(&f, "PUT", "/v1/nodes/n", JSON, body, sizeof body - 1), 400);
    ck_assert(says(&f, "depth"));
    ck_assert_int_eq(ask_as(&f, "PUT", "/v1/nodes/n", JSON, body, sizeof body), 413);
    memset(body, ' ', sizeof body);
    memcpy(body, NODE("5", "fd00::1", KEY_A), sizeof NODE("5", "fd00::1", KEY_A) - 1);
    ck_assert_int_eq(ask_as(&f, "PUT", "/v1/nodes/n", JSON, body, sizeof body - 1), 201);
    teardown(&f);
}
END_TEST

START_TEST(a_list_is_read_page_by_page)
{
    struct fixture f;
    char path[32], cursor[128] = "", seen[64] = {0};
    setup(&f);
    for (int i = 0; i < 5; i++) {
        char body[512];
        snprintf(path, sizeof path, "/v1/nodes/n%d", i);
        snprintf(body, sizeof body, NODE("1", "fd00::%d", KEY_A), i + 1);
        ck_assert_int_eq(ask(&f, "PUT", path, body), 201);
    }
    for (int page = 0; page < 3; page++) {
        struct meta_service_request request = {.method = "GET",
                                               .path = "/v1/nodes",
                                               .parameter[META_PARAMETER_LIMIT] = "2",
                                               .parameter[META_PARAMETER_CURSOR] =
                                                   page == 0 ? NULL : cursor};
        base_text_reset(&f.body);
        meta_service_handle(&f.s, &request, f.now, &f.body, &f.answer);
        ck_assert_int_eq(f.answer.status, 200);
        for (const char *at = base_text_str(&f.body); (at = strstr(at, "\"id\":\"")) != NULL; at++)
            memcpy(seen + strlen(seen), at + 6, 2);
        const char *next = strstr(base_text_str(&f.body), "\"next_cursor\":\"");
        ck_assert_int_eq(next != NULL, page < 2);
        if (next != NULL)
            ck_assert_int_eq(sscanf(next + 15, "%100[^\"]", cursor), 1);
    }
    ck_assert_str_eq(seen, "n0n1n2n3n4");
    static const struct {
        const char *limit, *cursor;
    } wrong[] = {{"0", NULL},  {"1001", NULL}, {"", NULL},   {"-1", NULL}, {NULL, ""},
                 {NULL, "!!"}, {NULL, "AA"},   {"1x", NULL}, {NULL, "QQ"}, {NULL, "bgAx"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct meta_service_request request = {.method = "GET",
                                               .path = "/v1/nodes",
                                               .parameter[META_PARAMETER_LIMIT] = wrong[i].limit,
                                               .parameter[META_PARAMETER_CURSOR] = wrong[i].cursor};
        base_text_reset(&f.body);
        meta_service_handle(&f.s, &request, f.now, &f.body, &f.answer);
        ck_assert_msg(f.answer.status == 400, "case %zu", i);
    }
    teardown(&f);
}
END_TEST

START_TEST(metrics_count_what_happened)
{
    struct fixture f;
    setup(&f);
    ask(&f, "PUT", "/v1/nodes/n1", NODE("5", "fd00::1", KEY_A));
    ask(&f, "PUT", "/v1/nodes/n1", NODE("4", "fd00::1", KEY_A));
    ask(&f, "POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}");
    ck_assert_int_eq(ask(&f, "GET", "/metrics", ""), 200);
    ck_assert(says(&f, "kedge_metad_nodes{state=\"live\"} 1\n"));
    ck_assert(says(&f, "kedge_metad_table_live 1\n"));
    ck_assert(says(&f, "kedge_metad_table_slots 512\n"));
    ck_assert(says(&f, "kedge_metad_registrations_total 1\n"));
    ck_assert(says(&f, "kedge_metad_renewals_total 1\n"));
    ck_assert(says(&f, "kedge_metad_refused_total{why=\"stale\"} 1\n"));
    ck_assert(says(&f, "kedge_metad_http_requests_total{code=\"201\"} 1\n"));
    teardown(&f);
}
END_TEST

START_TEST(an_answer_says_which_route_took_so_long_and_ids_are_no_labels)
{
    static const char *const lines[] = {
        "# TYPE kedge_metad_http_request_seconds histogram\n",
        "_count{method=\"PUT\",route=\"/v1/nodes/{id}\"} 1\n",
        "_bucket{method=\"GET\",route=\"/v1/nodes/{id}\",le=\"0.001\"} 0\n",
        "_bucket{method=\"GET\",route=\"/v1/nodes/{id}\",le=\"0.005\"} 2\n",
        "_count{method=\"other\",route=\"other\"} 2\n",
    };
    static const struct {
        const char *method, *path;
    } asked[] = {{"PUT", "/v1/nodes/a"},
                 {"GET", "/v1/nodes/a"},
                 {"HEAD", "/v1/nodes/b"},
                 {"GET", "/v1/\"\n"},
                 {"POST", "/v1/nodes/a"}};
    struct fixture f;
    setup(&f);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        (void)ask(&f, asked[i].method, asked[i].path, NODE("1", "fe80::1", KEY_A));
        ck_assert_ptr_nonnull(f.took);
        base_latency_record(f.took, 3000000);
    }
    ck_assert_int_eq(ask(&f, "GET", "/metrics", ""), 200);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        ck_assert_msg(says(&f, lines[i]), "%s is not in %s", lines[i], base_text_str(&f.body));
    ck_assert(!says(&f, "route=\"/v1/windows\""));
    ck_assert(says(&f, "\nkedge_metad_store_transaction_seconds_count 1\n"));
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_node_registers_renews_is_shown_without_keys_and_leaves)                                    \
    T(conflicts_say_what_is_known)                                                                 \
    T(a_failing_store_gives_503_and_changes_nothing)                                               \
    T(an_expiry_that_the_store_refuses_is_written_later)                                           \
    T(after_a_restart_nodes_are_listed_and_have_to_register_again)                                 \
    T(routes_methods_and_types_that_are_wrong_are_refused)                                         \
    T(bodies_that_are_wrong_are_refused_with_the_field)                                            \
    T(an_endpoint_may_have_a_later_incarnation_than_its_node)                                      \
    T(too_deep_and_too_large_bodies_are_refused)                                                   \
    T(a_list_is_read_page_by_page)                                                                 \
    T(metrics_count_what_happened)                                                                 \
    T(an_answer_says_which_route_took_so_long_and_ids_are_no_labels)
KEDGE_CHECK_MAIN("metaserver rest", TESTS)
