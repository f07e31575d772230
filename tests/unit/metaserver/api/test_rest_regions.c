/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions in the REST interface, and what the store and the table of names then hold. */
#include <inttypes.h>

#include "names_world.h"
#include "writes.h"

#define LEASE (1000 * BASE_NS_PER_S) /* of resources_world.h */

static void tick(void)
{
    meta_service_tick(&s, now, wall_ms);
    settle();
}

static int read_record(const char *space, const char *name, struct schema_name_record *out)
{
    const struct schema_table_desc *d = meta_names_table(s.names);
    uint8_t key[16];
    schema_name_key(d, space, name, key);
    const uint8_t *span =
        (const uint8_t *)names_memory + (size_t)schema_name_home(d, key) * SCHEMA_NAME_RECORD_BYTES;
    return schema_name_find(d, span, key, out);
}

/* The incarnation that who READs the table finds; 0: none. */
static uint32_t read_name(const char *name)
{
    struct schema_name_record r;
    return read_record("web", name, &r) == 0 ? r.incarnation : 0;
}

START_TEST(a_name_is_published_listed_without_its_grant_and_taken_back)
{
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    ck_assert_int_eq(publish("a", 5, 1, "kv/shard-17"), 201);
    ck_assert(says("{\"id\":\"web/kv/shard-17\",\"tenant\":\"web\",\"name\":\"kv/"
                   "shard-17\",\"node\":\"a\",\"incarnation\":5,"
                   "\"state\":\"live\",\"bytes\":4096,\"access\":[\"read\"]}"));
    ck_assert_int_eq(publish("a", 5, 1, "kv/shard-17"), 200);
    ck_assert_uint_eq(read_name("kv/shard-17"), 5);
    ck_assert_int_eq(publish("a", 5, 1, "kv/shard-18"), 201);
    query(META_PARAMETER_LIMIT, "1");
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 200);
    ck_assert(says("kv/shard-17") && !says("kv/shard-18") && !says("kedge1"));
    char cursor[256];
    const char *at = strstr(base_text_str(&body), "\"next_cursor\":\"");
    ck_assert_ptr_nonnull(at);
    snprintf(cursor, sizeof cursor, "%.*s", (int)strcspn(at + 15, "\""), at + 15);
    query(META_PARAMETER_CURSOR, cursor);
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 200);
    ck_assert(!says("kv/shard-17") && says("kv/shard-18") && !says("next_cursor"));
    query(META_PARAMETER_TENANT, "other");
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 200);
    ck_assert(says("\"regions\":[]"));
    query(META_PARAMETER_CURSOR, "d2Vi"); /* "web" */
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 400);
    ck_assert_int_eq(take_back("a", "4", "kv/shard-17"), 404);
    ck_assert(says("urn:kedge:problem:unknown-region"));
    ck_assert_int_eq(take_back("a", "5", "kv/shard-17"), 204);
    ck_assert_int_eq(take_back("a", "5", "kv/shard-17"), 404);
    ck_assert_uint_eq(read_name("kv/shard-17"), 0);
    ck_assert_uint_eq(read_name("kv/shard-18"), 5);
    close_names();
    teardown();
}
END_TEST

/* The digest that the answer names; "": none. */
static const char *read_digest(char out[40])
{
    const char *at = strstr(base_text_str(&body), "\"digest\":\"");
    snprintf(out, 40, "%.*s", at != NULL ? (int)strcspn(at + 10, "\"") : 0,
             at != NULL ? at + 10 : "");
    return out;
}

static int take_back_of(const char *digest, const char *name)
{
    query(META_PARAMETER_DIGEST, digest);
    return take_back("a", "5", name);
}

/* A late one, for what had the name before, takes nothing from what has it now. */
START_TEST(a_name_is_taken_back_from_the_region_alone_for_which_it_is_meant)
{
    char first[40], second[40];
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    ck_assert_int_eq(put_node("b", 5, 2), 201);
    ck_assert_int_eq(publish("a", 5, 1, "x"), 201);
    ck_assert_int_eq(take_back_of("00000000000000000000000000000000", "x"), 404);
    ck_assert_uint_eq(strlen(read_digest(first)), 32);
    ck_assert_uint_eq(read_name("x"), 5);
    ck_assert_int_eq(take_back_of(first, "y"), 404);
    ck_assert_str_eq(read_digest(second), "");
    ck_assert_int_eq(take_back_of("x", "x"), 400);
    ck_assert_int_eq(publish("b", 5, 2, "x"), 409);
    ck_assert_str_eq(read_digest(second), ""); /* what another node's is, is not said */
    /* Of the node's own that a listing has. */
    ck_assert_int_eq(publish("a", 5, 1, "z"), 201);
    ck_assert_int_eq(publish("b", 5, 2, "y"), 201);
    query(META_PARAMETER_INCARNATION, "5");
    query(META_PARAMETER_LIMIT, "1");
    ck_assert_int_eq(ask("GET", "/v1/nodes/a/regions", ""), 200);
    ck_assert_str_eq(read_digest(second), first);
    ck_assert(says("\"tenant\":\"web\",\"name\":\"x\"") && says("next_cursor") && !says("kedge1"));
    query(META_PARAMETER_INCARNATION, "5");
    query(META_PARAMETER_CURSOR, "d2ViL3g"); /* web/x */
    ck_assert_int_eq(ask("GET", "/v1/nodes/a/regions", ""), 200);
    ck_assert(says("\"name\":\"z\"") && !says("\"y\"") && !says("next_cursor"));
    query(META_PARAMETER_INCARNATION, "4");
    ck_assert_int_eq(ask("GET", "/v1/nodes/a/regions", ""), 200);
    ck_assert(says("\"regions\":[]"));
    ck_assert_int_eq(ask("GET", "/v1/nodes/a/regions", ""), 400);
    ck_assert_int_eq(take_back_of(first, "x"), 204);
    ck_assert_uint_eq(read_name("x"), 0);
    close_names();
    teardown();
}
END_TEST

/* Node a in its life 5, with a pool that stays, and perhaps one more, whose endpoint says what else
 * there is of it. */
static int put_pools(bool more, const char *what)
{
    char json[640], other[256] = "";
    if (more)
        snprintf(other, sizeof other,
                 ",{\"gid\":\"fd00::1\",\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":8,"
                 "\"dc_key\":\"0000000000000001\",\"mtu\":4096%s}",
                 what);
    snprintf(json, sizeof json,
             "{\"incarnation\":5,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":2,\"transports\":["
             "\"dc\"],\"dct_number\":7,\"dc_key\":\"0000000000000001\",\"mtu\":4096}%s]}",
             other);
    return ask("PUT", "/v1/nodes/a", json);
}

/* A pool that was made again in one life of its node: its names have the incarnation by which those
 * who know the endpoint know it, and what the former one granted does not. */
START_TEST(a_name_has_the_incarnation_of_its_endpoint)
{
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_pools(true, ""), 201);
    ck_assert_int_eq(publish("a", 5, 1, "former"), 201);
    ck_assert_int_eq(put_pools(false, ""), 200);
    ck_assert_int_eq(put_pools(true, ",\"incarnation\":7"), 200);
    tick();
    ck_assert_int_eq(publish("a", 5, 1, "x"), 201);
    ck_assert_uint_eq(read_name("x"), 7);
    ck_assert_uint_eq(read_name("former"), 5);
    ck_assert_int_eq(publish("a", 5, 1, "x"), 200);
    ck_assert_int_eq(publish("a", 6, 1, "y"), 404);
    ck_assert_int_eq(take_back("a", "4", "x"), 404);
    ck_assert_int_eq(take_back("a", "6", "x"), 404);
    ck_assert_int_eq(take_back("a", "5", "former"), 204);
    struct meta_store *store = s.store;
    close_names();
    close_service();
    open_service(store);
    open_names(NAMES);
    ck_assert_uint_eq(read_name("x"), 7);
    ck_assert_int_eq(take_back("a", "5", "x"), 204);
    /* And none outlives the life of its node. */
    ck_assert_int_eq(put_pools(true, ",\"incarnation\":7"), 200);
    ck_assert_int_eq(publish("a", 5, 1, "x"), 201);
    ck_assert_int_eq(put_node("a", 8, 1), 200);
    tick();
    ck_assert_uint_eq(read_name("x"), 0);
    ck_assert_int_eq(take_back("a", "5", "x"), 404);
    close_names();
    teardown();
}
END_TEST

START_TEST(a_name_is_anothers_only_when_its_owner_has_gone)
{
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    ck_assert_int_eq(put_node("b", 6, 2), 201);
    ck_assert_int_eq(publish("a", 5, 1, "x"), 201);
    ck_assert_int_eq(publish("b", 6, 2, "x"), 409);
    ck_assert(says("urn:kedge:problem:name-taken") && says("node a"));
    ck_assert(says("\"field\":\"name\",\"node\":\"a\",\"incarnation\":5}"));
    ck_assert_int_eq(take_back("b", "6", "x"), 404);
    /* Its own node begins anew: the former life's name is nobody's. */
    ck_assert_int_eq(put_node("a", 7, 1), 200);
    tick();
    ck_assert_uint_eq(read_name("x"), 0);
    ck_assert_uint_eq(meta_names_count(s.names), 0);
    ck_assert_int_eq(publish("a", 5, 1, "x"), 409);
    ck_assert(says("stale-incarnation"));
    ck_assert_int_eq(publish("b", 6, 2, "x"), 201);
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/b", ""), 204);
    ck_assert_int_eq(publish("a", 7, 1, "x"), 201); /* before a sweep, too */
    tick();
    ck_assert_uint_eq(read_name("x"), 7);
    close_names();
    teardown();
}
END_TEST

START_TEST(names_go_with_the_nodes_lease_and_not_while_the_store_fails)
{
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    ck_assert_int_eq(publish("a", 5, 1, "x"), 201);
    now += LEASE + 1;
    fail = EIO;
    tick();
    ck_assert_uint_eq(read_name("x"), 0); /* nobody finds it */
    ck_assert_uint_eq(meta_names_count(s.names), 1);
    fail = 0;
    for (int i = 0; i < 4; i++) { /* the node expires in the store, then its name goes */
        now += 6 * BASE_NS_PER_S;
        tick();
    }
    ck_assert_uint_eq(meta_names_count(s.names), 0);
    ck_assert_int_eq(put_node("a", 5, 1), 200);
    ck_assert_int_eq(publish("a", 5, 1, "x"), 201);
    fail = EIO;
    ck_assert_int_eq(take_back("a", "5", "x"), 503);
    ck_assert_uint_eq(read_name("x"), 5);
    ck_assert_int_eq(publish("a", 5, 1, "y"), 503);
    ck_assert_uint_eq(read_name("y"), 0);
    fail = 0;
    close_names();
    teardown();
}
END_TEST

START_TEST(names_outlive_the_metaserver)
{
    struct base_errbuf err;
    setup();
    struct meta_store *kept = meta_store_memory(NULL);
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    ck_assert_int_eq(put_node("b", 5, 2), 201);
    ck_assert_int_eq(publish("a", 5, 1, "x"), 201);
    ck_assert_int_eq(publish("b", 5, 2, "y"), 201);
    ck_assert_int_eq(meta_store_copy(s.store, kept, &err), 0);
    close_names();
    teardown();
    memory = aligned_alloc(64, schema_table_bytes(schema_table_log2_slots(16)));
    base_text_init(&body, 4 << 20);
    /* One was removed by somebody while nobody served. */
    ck_assert_int_eq(meta_store_remove(kept, "b", &err), 0);
    open_service(kept);
    open_names(NAMES);
    ck_assert_uint_eq(read_name("x"), 5);
    ck_assert_uint_eq(read_name("y"), 0);
    tick();
    ck_assert_uint_eq(meta_names_count(s.names), 1);
    close_names();
    teardown();
}
END_TEST

START_TEST(names_have_bounds)
{
    char name[400];
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    ck_assert_int_eq(publish("a", 5, 1, ""), 400);
    ck_assert_int_eq(publish("a", 5, 1, "a\\u0001"), 400);
    memset(name, 'x', sizeof name);
    name[256] = '\0';
    ck_assert_int_eq(publish("a", 5, 1, name), 400);
    name[255] = '\0';
    ck_assert_int_eq(publish("a", 5, 1, name), 201);
    ck_assert_int_eq(publish("a", 5, 2, "x"), 400); /* of an endpoint that it does not have */
    ck_assert(says("\"field\":\"grant\""));
    ck_assert_int_eq(publish("unknown", 5, 1, "x"), 404);
    ck_assert_int_eq(publish("a", 6, 1, "x"), 404);
    ck_assert(says("register-again"));
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/a/regions", ""), 400);
    for (uint32_t i = 1; i < META_NAMES_OF_TENANT; i++) {
        snprintf(name, sizeof name, "%u", i);
        ck_assert_int_eq(publish("a", 5, 1, name), 201);
    }
    ck_assert_int_eq(publish("a", 5, 1, "more"), 403);
    ck_assert(says("urn:kedge:problem:over-quota"));
    ck_assert_int_eq(publish("a", 5, 1, "1"), 200);
    close_names();
    open_names(2); /* of which the store has so many more */
    ck_assert_int_eq(put_node("b", 5, 2), 201);
    ck_assert_int_eq(publish_of("other", "a", 5, 1, "another"), 403);
    ck_assert(says("a node has 1 names of regions at most"));
    ck_assert_int_eq(publish_of("other", "b", 5, 2, "another"), 507);
    close_names();
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 404);
    teardown();
}
END_TEST

/* The store stands still: asked at once, whether it is answered or waits. */
static int publish_now(const char *node, int gid, int number)
{
    char path[96], json[640], name[16];
    snprintf(name, sizeof name, "%d", number);
    write_publication("web", node, 5, gid, name, path, json);
    const int status = begin_to_ask("PUT", path, json);
    awaited = NULL;
    return status;
}

static int created;

static void count_created(const struct meta_service_answer *a, const struct base_text *text)
{
    (void)text;
    created += a->status == 201;
}

/* So that what operators want has its turn, however fast workers ask for names on many nodes. */
START_TEST(so_many_names_wait_for_the_store)
{
    enum { NODES = META_NAMES_WAITING_MAX / META_NAMES_WAITING_OF_NODE + 1 };
    char node[8];
    int number = 0;
    setup();
    open_names(NAMES);
    for (int n = 0; n < NODES; n++) {
        snprintf(node, sizeof node, "n%d", n);
        ck_assert_int_eq(put_node(node, 5, n + 1), 201);
    }
    created = 0;
    answer_later = count_created;
    world.store.stands_still = true;
    for (int n = 0; n + 1 < NODES; n++) {
        snprintf(node, sizeof node, "n%d", n);
        for (int i = 0; i < META_NAMES_WAITING_OF_NODE; i++)
            ck_assert_int_eq(publish_now(node, n + 1, number++), META_SERVICE_LATER);
        ck_assert_int_eq(publish_now(node, n + 1, number), 429);
        ck_assert(says("urn:kedge:problem:too-many-names"));
    }
    snprintf(node, sizeof node, "n%d", NODES - 1);
    ck_assert_int_eq(publish_now(node, NODES, number), 429);
    ck_assert_int_eq(begin_to_ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), META_SERVICE_LATER);
    awaited = NULL;
    world.store.stands_still = false;
    settle();
    ck_assert_int_eq(created, META_NAMES_WAITING_MAX + 1);
    ck_assert_int_eq(publish_of("web", node, 5, NODES, "again"), 201);
    ck_assert_uint_eq(meta_names_count(s.names), META_NAMES_WAITING_MAX + 1);
    close_names();
    teardown();
}
END_TEST

/* As many agents do at once that hear of a store that was put back: nothing is written. */
START_TEST(a_name_that_is_there_already_costs_the_store_nothing_and_waits_for_nobody)
{
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    ck_assert_int_eq(put_node("b", 5, 2), 201);
    ck_assert_int_eq(publish("a", 5, 1, "1"), 201);
    fail = EIO; /* whatever would be written */
    ck_assert_int_eq(publish_now("a", 1, 1), 200);
    ck_assert_int_eq(publish_now("b", 2, 1), 409);
    fail = 0;
    created = 0;
    answer_later = count_created;
    world.store.stands_still = true;
    ck_assert_int_eq(publish_now("b", 2, 2), META_SERVICE_LATER);
    ck_assert_int_eq(publish_now("a", 1, 1), 200); /* that is another node's */
    ck_assert_int_eq(publish_now("a", 1, 3), META_SERVICE_LATER);
    ck_assert_int_eq(publish_now("a", 1, 1), META_SERVICE_LATER); /* and that its own */
    world.store.stands_still = false;
    settle();
    ck_assert_int_eq(created, 2);
    close_names();
    teardown();
}
END_TEST

static int publish_for(const char *tenant, const char *reader, const char *node, int incarnation,
                       int gid, const char *name)
{
    char path[96], json[640], tenants[100];
    snprintf(tenants, sizeof tenants, "%s\",\"for\":\"%s", tenant, reader);
    write_publication(tenants, node, incarnation, gid, name, path, json);
    return ask("PUT", path, json);
}

START_TEST(a_name_for_another_tenant_is_its_owners_alone)
{
    struct schema_name_record r;
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    ck_assert_int_eq(put_node("b", 6, 2), 201);
    ck_assert_int_eq(publish_for("web", "db", "a", 5, 1, "x"), 201);
    ck_assert(says("\"id\":\"web,db/x\",\"tenant\":\"web\",\"for\":\"db\",\"name\":\"x\","));
    ck_assert_int_eq(publish_for("web", "db", "a", 5, 1, "x"), 200);
    ck_assert_int_eq(read_record("web,db", "x", &r), 0);
    ck_assert_uint_eq(r.tenant, schema_tenant_number("web")); /* so that its secret is needed */
    ck_assert_int_eq(read_record("web", "x", &r), -ENOENT);
    ck_assert_int_eq(read_record("db", "x", &r), -ENOENT);
    ck_assert_int_eq(read_record("db,web", "x", &r), -ENOENT);
    /* It keeps the name from nobody but for its own tenant's workers. */
    ck_assert_int_eq(publish_of("db", "b", 6, 2, "x"), 201);
    ck_assert_int_eq(publish_for("db", "web", "b", 6, 2, "x"), 201);
    ck_assert_int_eq(publish_for("other", "db", "b", 6, 2, "x"), 201);
    ck_assert_int_eq(publish("b", 6, 2, "x"), 201);
    ck_assert_int_eq(publish_for("web", "db", "b", 6, 2, "x"), 409);
    query(META_PARAMETER_TENANT, "web");
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 200);
    ck_assert(says("\"web/x\"") && says("\"web,db/x\"") && !says("\"db/") && !says("\"db,") &&
              !says("other"));
    query(META_PARAMETER_FOR, "db");
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 200);
    ck_assert(says("\"web,db/x\"") && says("\"other,db/x\"") && !says("\"web/x\""));
    ck_assert_int_eq(take_back("a", "5", "x"), 404);
    query(META_PARAMETER_FOR, "db");
    ck_assert_int_eq(take_back("a", "5", "x"), 204);
    ck_assert_int_eq(read_record("web,db", "x", &r), -ENOENT);
    ck_assert_uint_eq(read_name("x"), 6);
    close_names();
    teardown();
}
END_TEST

START_TEST(names_for_others_count_and_are_for_tenants)
{
    static const char *const wrong[] = {"web", "a,b", "A", "a b", "-a"};
    char name[16];
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(publish_for("web", wrong[i], "a", 5, 1, "x"), 400);
        ck_assert(says("\"field\":\"for\""));
    }
    ck_assert_int_eq(publish_of("web,db", "a", 5, 1, "x"), 400);
    ck_assert(says("\"field\":\"tenant\""));
    query(META_PARAMETER_FOR, "a,b");
    ck_assert_int_eq(take_back("a", "5", "x"), 400);
    for (uint32_t i = 0; i < META_NAMES_OF_TENANT; i++) {
        snprintf(name, sizeof name, "%u", i);
        ck_assert_int_eq(publish_for("web", i % 2 ? "db" : "dc", "a", 5, 1, name), 201);
    }
    ck_assert_int_eq(publish_for("web", "db", "a", 5, 1, "more"), 403);
    ck_assert_int_eq(publish("a", 5, 1, "more"), 403);
    ck_assert_int_eq(put_node("b", 6, 2), 201);
    ck_assert_int_eq(publish_of("db", "b", 6, 2, "more"), 201); /* whom they are for pays nothing */
    close_names();
    teardown();
}
END_TEST

START_TEST(a_tenant_has_as_many_names_as_operators_say)
{
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"region_names\":0}"), 400);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"region_names\":65537}"), 400);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"region_names\":2}"), 201);
    ck_assert(says("\"region_names\":2"));
    ck_assert_int_eq(publish("a", 5, 1, "x"), 201);
    ck_assert_int_eq(publish_for("web", "db", "a", 5, 1, "x"), 201);
    ck_assert_int_eq(publish("a", 5, 1, "y"), 403);
    ck_assert(says("urn:kedge:problem:over-quota") && says("tenant web has 2 names"));
    ck_assert_int_eq(publish("a", 5, 1, "x"), 200); /* it has that one */
    ck_assert_int_eq(publish_of("db", "a", 5, 1, "y"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"region_names\":3}"), 200);
    ck_assert_int_eq(publish("a", 5, 1, "y"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"region_names\":1}"), 200);
    ck_assert_int_eq(publish("a", 5, 1, "z"), 403);
    ck_assert_uint_eq(read_name("y"), 5); /* which stays */
    close_names();
    teardown();
}
END_TEST

static void read_lines(struct meta_watch *watch, char *out, size_t size)
{
    const char *bytes;
    size_t length;
    ck_assert_int_eq(meta_watch_next(watch, now, &bytes, &length), 0);
    snprintf(out, size, "%.*s", (int)length, bytes);
}

static struct meta_watch *watch_from(const char *position)
{
    query(META_PARAMETER_WATCH, "1");
    if (position != NULL)
        query(META_PARAMETER_POSITION, position);
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 200);
    ck_assert_ptr_nonnull(answer.watch);
    return answer.watch;
}

static void list_position(char out[TRAIL_POSITION_BYTES])
{
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 200);
    const char *at = strstr(base_text_str(&body), "\"position\":\"") + 12;
    snprintf(out, TRAIL_POSITION_BYTES, "%.*s", (int)strcspn(at, "\""), at);
}

START_TEST(who_watches_is_told_when_the_list_is_another_one_wherever_it_goes_on)
{
    char line[128], position[TRAIL_POSITION_BYTES], want[128];
    setup();
    open_names(NAMES);
    ck_assert_int_eq(put_node("a", 5, 1), 201);
    struct meta_watch *w = watch_from(NULL);
    read_lines(w, line, sizeof line);
    ck_assert_str_eq(line, "");
    ck_assert_int_eq(publish("a", 5, 1, "x"), 201);
    ck_assert_int_eq(publish("a", 5, 1, "y"), 201); /* together */
    list_position(position);
    ck_assert_uint_eq(meta_watches_due(&s), 0);
    read_lines(w, line, sizeof line);
    snprintf(want, sizeof want, "{\"position\":\"%s\"}\n", position);
    ck_assert_str_eq(line, want);
    read_lines(w, line, sizeof line);
    ck_assert_str_eq(line, "");
    meta_watches_beat(&s, now);
    ck_assert_uint_ne(meta_watches_due(&s), 0);
    ck_assert_int_eq(publish("a", 5, 1, "x"), 200); /* as it was */
    read_lines(w, line, sizeof line);
    ck_assert_str_eq(line, "");
    ck_assert_int_eq(take_back("a", "5", "x"), 204);
    ck_assert_uint_eq(meta_watches_due(&s), 0);
    read_lines(w, line, sizeof line);
    ck_assert_str_ne(line, "");
    meta_watch_free(w);
    /* From what was known: what has changed meanwhile; and of another life in any case. */
    w = watch_from(position);
    read_lines(w, line, sizeof line);
    ck_assert_str_ne(line, "");
    meta_watch_free(w);
    list_position(position);
    w = watch_from(position);
    read_lines(w, line, sizeof line);
    ck_assert_str_eq(line, "");
    now += LEASE + 1; /* its node lapses, which shows in the list */
    tick();
    read_lines(w, line, sizeof line);
    ck_assert_str_ne(line, "");
    meta_watch_free(w);
    list_position(position);
    position[0] = position[0] == '0' ? '1' : '0';
    w = watch_from(position);
    read_lines(w, line, sizeof line);
    ck_assert_str_ne(line, "");
    meta_watch_free(w);
    query(META_PARAMETER_POSITION, position);
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 400);
    query(META_PARAMETER_WATCH, "1");
    query(META_PARAMETER_POSITION, "12");
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 400);
    query(META_PARAMETER_WATCH, "1");
    query(META_PARAMETER_TENANT, "web");
    ck_assert_int_eq(ask("GET", "/v1/regions", ""), 400);
    close_names();
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_name_is_published_listed_without_its_grant_and_taken_back)                                 \
    T(a_name_is_taken_back_from_the_region_alone_for_which_it_is_meant)                            \
    T(a_name_has_the_incarnation_of_its_endpoint)                                                  \
    T(a_name_is_anothers_only_when_its_owner_has_gone)                                             \
    T(names_go_with_the_nodes_lease_and_not_while_the_store_fails)                                 \
    T(names_outlive_the_metaserver)                                                                \
    T(names_have_bounds)                                                                           \
    T(so_many_names_wait_for_the_store)                                                            \
    T(a_name_that_is_there_already_costs_the_store_nothing_and_waits_for_nobody)                   \
    T(a_name_for_another_tenant_is_its_owners_alone)                                               \
    T(names_for_others_count_and_are_for_tenants)                                                  \
    T(a_tenant_has_as_many_names_as_operators_say)                                                 \
    T(who_watches_is_told_when_the_list_is_another_one_wherever_it_goes_on)
KEDGE_CHECK_MAIN("metaserver rest regions", TESTS)
