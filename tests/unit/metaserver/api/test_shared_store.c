/* SPDX-License-Identifier: Apache-2.0 */
/* Three metaservers of one store, which takes its time, and is heard of late, as a seed says: what
 * was acknowledged by one is what all come to know, in one order. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "metaserver/resources_json.h"
#include "metaserver/service.h"
#include "metaserver/store_hub.h"
#include "metaserver/store_order.h"
#include "../test_world.h"

enum { METASERVERS = 3, NODES = 6, TENANTS = 5, ENDPOINTS = 8 };
enum { LOST_PERCENT = 5 }; /* of what the store was given, its answers */
#define LEASE (10 * BASE_NS_PER_S)

struct metad {
    struct test_world world; /* first: what submits is looked for by its base */
    struct meta_store_order order;
    struct meta_service s;
    struct meta_store *store;
    void *memory;
    bool cut_off; /* it hears nothing */
};

static struct {
    struct meta_store_hub *hub;
    struct metad metad[METASERVERS];
    struct base_prng prng;
    uint64_t now;
} all;

struct reply {
    int status; /* META_SERVICE_LATER: not yet */
    uint64_t revision;
    char body[1024];
};

static void submit_ordered(struct meta_world *w, struct meta_store_job *job)
{
    struct metad *m = (struct metad *)w;
    meta_store_order_add(&m->order, job);
    meta_store_late_submit(&m->world.store, job);
}

static void on_heard(void *user, const struct meta_store_heard *heard)
{
    meta_service_hear(&((struct metad *)user)->s, heard, all.now);
}

static void on_answer(void *token, const struct meta_service_answer *a,
                      const struct base_text *body)
{
    struct reply *r = token;
    ck_assert_int_eq(r->status, META_SERVICE_LATER);
    r->status = a->status;
    r->revision = a->revision;
    snprintf(r->body, sizeof r->body, "%s", base_text_str(body));
}

static void open_metad(struct metad *m, int number, uint64_t seed)
{
    static struct meta_world_ops ops;
    const struct meta_directory_limits limits = {16, 64, LEASE, 1000 * BASE_NS_PER_S};
    const size_t bytes = schema_table_bytes(schema_table_log2_slots(64));
    char name[8];
    struct base_errbuf err;
    memset(m, 0, sizeof *m);
    snprintf(name, sizeof name, "m%d", number);
    m->store = meta_store_hub_open(all.hub, name);
    m->memory = aligned_alloc(64, bytes);
    memset(m->memory, 0, bytes);
    test_world_init(&m->world, m->store);
    meta_store_late_init(&m->world.store, m->store, seed);
    ops = *m->world.base.ops;
    ops.submit = submit_ordered;
    m->world.base.ops = &ops;
    meta_store_order_init(&m->order, on_heard, m);
    m->s.world = &m->world.base;
    m->s.directory = meta_directory_new(&limits, m->memory, 0x5eed, 0x77);
    meta_directory_share(m->s.directory);
    m->s.resources = meta_resources_new(64);
    m->s.store = m->store;
    m->s.hearing.shared = true;
    memcpy(m->s.hearing.self.name, name, sizeof name);
    m->s.answer = on_answer;
    m->s.endpoint.dct_number = 9;
    m->s.node_lease_ns = LEASE;
    ck_assert_msg(meta_service_load(&m->s, all.now, &err) == 0, "%s", err.text);
}

static void close_metad(struct metad *m)
{
    meta_store_order_fini(&m->order);
    meta_store_close(m->store);
    meta_directory_free(m->s.directory);
    meta_resources_free(m->s.resources);
    free(m->memory);
}

static void setup_all(uint64_t seed)
{
    memset(&all, 0, sizeof all);
    all.hub = meta_store_hub_new();
    all.now = BASE_NS_PER_S;
    base_prng_seed(&all.prng, seed);
    for (int i = 0; i < METASERVERS; i++)
        open_metad(&all.metad[i], i, seed + (uint64_t)i);
}

/* Time goes by for one of them: its store does something, it hears something, or both. */
static void step_metad(struct metad *m)
{
    struct meta_store_heard *heard;
    if (base_prng_below(&all.prng, 3) != 0)
        meta_store_late_step(&m->world.store);
    if (!m->cut_off && base_prng_below(&all.prng, 2) == 0 &&
        (heard = meta_store_hub_hear(m->store)) != NULL)
        meta_store_order_put(&m->order, heard);
    meta_service_at(&m->s, all.now, all.now / BASE_NS_PER_MS);
    while (meta_store_order_run(&m->order, all.now))
        meta_service_advance(&m->s, all.now);
    meta_service_advance(&m->s, all.now);
}

static void step_all(void)
{
    all.now += BASE_NS_PER_MS;
    for (int i = 0; i < METASERVERS; i++)
        step_metad(&all.metad[i]);
}

static bool is_settled(const struct metad *m)
{
    return m->s.writes.first == NULL && m->order.with_store == 0 &&
           meta_store_order_is_idle(&m->order);
}

/* Until all have nothing to do for so long that they must have heard everything. */
static void settle_all(void)
{
    for (int quiet = 0; quiet < 200; quiet++) {
        step_all();
        for (int i = 0; i < METASERVERS; i++)
            if (!is_settled(&all.metad[i]))
                quiet = 0;
    }
}

static void teardown_all(void)
{
    for (int i = 0; i < METASERVERS; i++)
        close_metad(&all.metad[i]);
    meta_store_hub_free(all.hub);
}

static void begin_ask(struct metad *m, const char *method, const char *path, const char *json,
                      struct reply *reply)
{
    struct base_text body;
    struct meta_service_answer answer;
    const struct meta_service_request request = {.method = method,
                                                 .path = path,
                                                 .content_type = "application/json",
                                                 .body = json,
                                                 .body_bytes = strlen(json),
                                                 .token = reply,
                                                 .who = "uid 7",
                                                 .wall_ms = all.now / BASE_NS_PER_MS};
    base_text_init(&body, 4 << 20);
    meta_service_handle(&m->s, &request, all.now, &body, &answer);
    *reply = (struct reply){.status = answer.status, .revision = answer.revision};
    snprintf(reply->body, sizeof reply->body, "%s", base_text_str(&body));
    base_text_fini(&body);
}

static int ask(struct metad *m, const char *method, const char *path, const char *json)
{
    struct reply reply;
    begin_ask(m, method, path, json, &reply);
    for (int i = 0; i < 20000 && reply.status == META_SERVICE_LATER; i++)
        step_all();
    return reply.status;
}

static void put_node(struct metad *m, int node, int incarnation, int gid, struct reply *reply)
{
    char path[32], json[256];
    snprintf(path, sizeof path, "/v1/nodes/n%d", node);
    snprintf(json, sizeof json,
             "{\"incarnation\":%d,\"endpoints\":[{\"gid\":\"fd00::%d\",\"pool\":1,\"transports\":["
             "\"dc\"],\"dct_number\":7,\"dc_key\":\"%016x\",\"mtu\":4096}]}",
             incarnation, gid + 1, (unsigned)(node * 1000 + incarnation));
    begin_ask(m, "PUT", path, json, reply);
}

/* ---- what they know */

/* Everything that is to be the same, as one text: nodes with their lives and who owns which
 * endpoint, and settings with their revisions. */
static void describe(struct metad *m, struct base_text *out)
{
    struct meta_node_view v;
    char after[META_STORE_ID_BYTES] = "", line[256];
    base_text_init(out, 1 << 20);
    while (meta_directory_after(m->s.directory, after, all.now, &v) == 0) {
        memcpy(after, v.id, sizeof after);
        snprintf(line, sizeof line, "%s:%" PRIu32 "%s", v.id, v.incarnation,
                 v.state == META_NODE_EXPIRED ? ":expired" : "");
        base_text_append(out, line, strlen(line));
        for (uint32_t i = 0; i < v.endpoint_count; i++) {
            snprintf(line, sizeof line, ":%02x", v.endpoint[i].gid[15]);
            base_text_append(out, line, strlen(line));
        }
        base_text_append(out, "\n", 1);
    }
    meta_json_write_document(out, m->s.resources, m->s.directory);
    for (int kind = 0; kind < META_RESOURCE_KINDS; kind++)
        for (const struct meta_resource *r =
                 meta_resources_after(m->s.resources, (enum meta_resource_kind)kind, "");
             r != NULL;
             r = meta_resources_after(m->s.resources, (enum meta_resource_kind)kind, r->name)) {
            snprintf(line, sizeof line, "\n%d/%s@%" PRIu64, kind, r->name, r->revision);
            base_text_append(out, line, strlen(line));
        }
    ck_assert_int_eq(out->error, 0);
}

static void expect_all_the_same(uint64_t seed)
{
    struct base_text first, other;
    describe(&all.metad[0], &first);
    for (int i = 1; i < METASERVERS; i++) {
        describe(&all.metad[i], &other);
        ck_assert_msg(strcmp(base_text_str(&first), base_text_str(&other)) == 0,
                      "seed %" PRIu64 ": metaserver %d:\n%s\nand not\n%s", seed, i,
                      base_text_str(&other), base_text_str(&first));
        base_text_fini(&other);
    }
    base_text_fini(&first);
}

/* ---- tests */

START_TEST(a_change_at_one_is_known_at_all)
{
    setup_all(1);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    settle_all();
    ck_assert_int_eq(ask(&all.metad[2], "GET", "/v1/tenants/web", ""), 200);
    ck_assert_int_eq(ask(&all.metad[1], "PUT", "/v1/tenants/web", "{\"uids\":[6]}"), 200);
    ck_assert_int_eq(ask(&all.metad[1], "DELETE", "/v1/tenants/web", ""), 204);
    settle_all();
    ck_assert_int_eq(ask(&all.metad[0], "GET", "/v1/tenants/web", ""), 404);
    expect_all_the_same(1);
    teardown_all();
}
END_TEST

/* The one that has not heard of it decides again when it has. */
START_TEST(who_is_behind_hears_before_it_decides)
{
    struct reply reply;
    setup_all(2);
    settle_all();
    all.metad[1].cut_off = true;
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    begin_ask(&all.metad[1], "PUT", "/v1/tenants/other", "{\"uids\":[5]}", &reply);
    for (int i = 0; i < 100; i++)
        step_all();
    ck_assert_int_eq(reply.status, META_SERVICE_LATER);
    all.metad[1].cut_off = false;
    settle_all();
    ck_assert_int_eq(reply.status, 409); /* the uid is web's, which it knows by now */
    expect_all_the_same(2);
    teardown_all();
}
END_TEST

START_TEST(an_endpoint_has_one_owner)
{
    struct reply a, b;
    setup_all(3);
    settle_all();
    put_node(&all.metad[0], 1, 5, 7, &a);
    put_node(&all.metad[1], 2, 5, 7, &b);
    settle_all();
    ck_assert_msg((a.status == 201) != (b.status == 201), "%d %d", a.status, b.status);
    ck_assert_int_eq(a.status == 201 ? b.status : a.status, 409);
    expect_all_the_same(3);
    teardown_all();
}
END_TEST

/* Two processes that believe to be the same life of a node. */
START_TEST(one_process_is_a_life_of_a_node)
{
    struct reply a, b;
    setup_all(9);
    settle_all();
    put_node(&all.metad[0], 1, 5, 1, &a);
    put_node(&all.metad[1], 1, 5, 2, &b);
    settle_all();
    ck_assert_msg((a.status == 201) != (b.status == 201), "%d %d", a.status, b.status);
    ck_assert_int_eq(a.status == 201 ? b.status : a.status, 409);
    expect_all_the_same(9);
    teardown_all();
}
END_TEST

static enum meta_node_state state_at(int i, const char *id)
{
    struct meta_node_view v;
    return meta_directory_show(all.metad[i].s.directory, id, all.now, &v) == 0 ? v.state
                                                                               : META_NODE_FREE;
}

static void tick_all(void)
{
    for (int i = 0; i < METASERVERS; i++)
        meta_service_tick(&all.metad[i].s, all.now, all.now / BASE_NS_PER_MS);
    settle_all();
}

static void renew(int i, const char *id, int incarnation, int status)
{
    char path[64], json[32];
    snprintf(path, sizeof path, "/v1/nodes/%s/renew", id);
    snprintf(json, sizeof json, "{\"incarnation\":%d}", incarnation);
    ck_assert_int_eq(ask(&all.metad[i], "POST", path, json), status);
}

/* A node whose agent reaches one metaserver alone goes on, whatever the others do not hear. */
START_TEST(a_node_expires_when_no_metaserver_hears_of_it)
{
    struct reply reply;
    setup_all(4);
    settle_all();
    put_node(&all.metad[0], 1, 5, 7, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 201);
    for (int i = 0; i < 6; i++) {
        all.now += LEASE * 2 / 3;
        renew(0, "n1", 5, 200);
        tick_all();
        tick_all();
        ck_assert_int_eq(state_at(0, "n1"), META_NODE_LIVE);
        ck_assert_int_ne(state_at(1, "n1"), META_NODE_EXPIRED);
    }
    expect_all_the_same(4);
    put_node(&all.metad[1], 2, 5, 7, &reply); /* nobody may have its endpoint meanwhile */
    settle_all();
    ck_assert_int_eq(reply.status, 409);
    for (int i = 0; i < 3; i++) {
        all.now += LEASE + BASE_NS_PER_S;
        tick_all();
        tick_all();
    }
    for (int i = 0; i < METASERVERS; i++)
        ck_assert_int_eq(state_at(i, "n1"), META_NODE_EXPIRED);
    put_node(&all.metad[1], 2, 5, 7, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 201);
    expect_all_the_same(4);
    teardown_all();
}
END_TEST

/* What was heard by a metaserver that has died keeps no node alive. */
START_TEST(a_dead_metaserver_has_no_say)
{
    struct reply reply;
    setup_all(5);
    settle_all();
    put_node(&all.metad[0], 1, 5, 7, &reply);
    settle_all();
    for (int i = 0; i < 3; i++) {
        all.now += LEASE + BASE_NS_PER_S;
        if (i == 0)
            renew(0, "n1", 5, 404 /* it has lapsed here too by now */);
        tick_all();
        tick_all();
    }
    ck_assert_int_eq(state_at(1, "n1"), META_NODE_EXPIRED);
    teardown_all();
}
END_TEST

/* A later life at one metaserver takes the former one out of all tables. */
START_TEST(a_later_life_is_the_only_one)
{
    struct reply reply;
    setup_all(6);
    settle_all();
    for (int i = 0; i < METASERVERS; i++) {
        put_node(&all.metad[i], 1, 5, 7, &reply);
        settle_all();
        ck_assert_int_eq(reply.status, i == 0 ? 201 : 200);
        ck_assert_int_eq(state_at(i, "n1"), META_NODE_LIVE);
    }
    put_node(&all.metad[2], 1, 6, 7, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 200);
    ck_assert_int_eq(state_at(0, "n1"), META_NODE_WAITING);
    ck_assert_uint_eq(meta_directory_count(all.metad[0].s.directory).published, 0);
    put_node(&all.metad[0], 1, 5, 7, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 409);
    put_node(&all.metad[0], 1, 6, 7, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 200);
    ck_assert_uint_eq(meta_directory_count(all.metad[0].s.directory).published, 1);
    expect_all_the_same(6);
    teardown_all();
}
END_TEST

/* Who has heard nothing for so long that the store cannot say it any more is told everything. */
START_TEST(a_snapshot_stands_for_what_was_missed)
{
    struct reply replies[4];
    setup_all(7);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/a", "{\"uids\":[1]}"), 201);
    put_node(&all.metad[0], 1, 5, 1, &replies[0]);
    put_node(&all.metad[0], 2, 5, 2, &replies[1]);
    settle_all();
    all.metad[1].cut_off = true;
    ck_assert_int_eq(ask(&all.metad[0], "DELETE", "/v1/tenants/a", ""), 204);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/b", "{\"uids\":[1]}"), 201);
    ck_assert_int_eq(ask(&all.metad[0], "DELETE", "/v1/nodes/n1", ""), 204);
    put_node(&all.metad[2], 2, 6, 3, &replies[2]);
    put_node(&all.metad[2], 3, 6, 4, &replies[3]);
    for (int i = 0; i < 300; i++)
        step_all();
    meta_store_hub_compact(all.metad[1].store);
    all.metad[1].cut_off = false;
    settle_all();
    ck_assert_int_eq(state_at(1, "n1"), META_NODE_FREE);
    expect_all_the_same(7);
    teardown_all();
}
END_TEST

static int no_more(void *user, struct meta_store_item *item, struct base_errbuf *err)
{
    (void)user, (void)item, (void)err;
    return 0;
}

/* Agents have heard of a revision: what comes after it must not have that number again. */
START_TEST(a_store_that_was_put_back_goes_on_above_what_was_known)
{
    struct base_errbuf err;
    struct reply reply;
    setup_all(8);
    for (int i = 0; i < 3; i++)
        ck_assert_int_lt(ask(&all.metad[i], "PUT", "/v1/tenants/a",
                             i == 1 ? "{\"uids\":[1]}" : "{\"uids\":[2]}"),
                         300);
    settle_all();
    ck_assert_uint_eq(meta_resources_revision(all.metad[1].s.resources), 3);
    ck_assert_int_eq(meta_store_replace(all.metad[0].store, no_more, NULL, &err), 0);
    settle_all();
    ck_assert_int_eq(ask(&all.metad[1], "GET", "/v1/tenants/a", ""), 404);
    ck_assert_uint_gt(meta_resources_revision(all.metad[1].s.resources), 3);
    begin_ask(&all.metad[2], "PUT", "/v1/tenants/b", "{\"uids\":[2]}", &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 201);
    ck_assert_uint_gt(reply.revision, 4);
    expect_all_the_same(8);
    teardown_all();
}
END_TEST

/* ---- by seeds */

enum { ASKED = 400, SEEDS = 24 };

static void ask_anything(struct reply *reply)
{
    struct metad *m = &all.metad[base_prng_below(&all.prng, METASERVERS)];
    const int which = (int)base_prng_below(&all.prng, TENANTS);
    char path[64], json[64];
    snprintf(path, sizeof path, "/v1/tenants/t%d", which);
    snprintf(json, sizeof json, "{\"uids\":[%d]}", (int)base_prng_below(&all.prng, 4));
    switch (base_prng_below(&all.prng, 8)) {
    case 0:
        begin_ask(m, "DELETE", path, "", reply);
        break;
    case 1:
        snprintf(path, sizeof path, "/v1/nodes/n%d", (int)base_prng_below(&all.prng, NODES));
        begin_ask(m, "DELETE", path, "", reply);
        break;
    case 2:
    case 3:
    case 4:
        put_node(m, (int)base_prng_below(&all.prng, NODES), 1 + (int)base_prng_below(&all.prng, 4),
                 (int)base_prng_below(&all.prng, ENDPOINTS), reply);
        break;
    default:
        begin_ask(m, "PUT", path, json, reply);
    }
}

/* Some are away for a while, and some for too long; time passes, so that nodes expire. */
static void disturb(void)
{
    struct metad *m = &all.metad[base_prng_below(&all.prng, METASERVERS)];
    switch (base_prng_below(&all.prng, 40)) {
    case 0:
        m->cut_off = true;
        break;
    case 1:
        meta_store_hub_compact(m->store);
        break;
    case 2:
        all.now += LEASE / 2;
        for (int i = 0; i < METASERVERS; i++)
            meta_service_tick(&all.metad[i].s, all.now, all.now / BASE_NS_PER_MS);
        break;
    case 3:
    case 4:
        m->cut_off = false;
        break;
    }
}

/* Each revision was given to one change alone. */
static void expect_revisions_unique(const struct reply *replies, uint64_t seed)
{
    for (int i = 0; i < ASKED; i++)
        for (int k = 0; k < i; k++)
            ck_assert_msg(replies[i].revision == 0 || replies[i].status != 201 ||
                              replies[k].status != 201 ||
                              replies[i].revision != replies[k].revision,
                          "seed %" PRIu64 ": two changes have the revision %" PRIu64, seed,
                          replies[i].revision);
}

START_TEST(all_come_to_know_the_same)
{
    static struct reply replies[ASKED];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        setup_all(seed);
        for (int i = 0; i < METASERVERS; i++)
            meta_store_hub_lose(all.metad[i].store, seed + (uint64_t)i, LOST_PERCENT);
        int done = 0;
        for (int i = 0; i < ASKED; i++) {
            ask_anything(&replies[i]);
            disturb();
            for (uint64_t n = base_prng_below(&all.prng, 12); n > 0; n--)
                step_all();
        }
        for (int i = 0; i < METASERVERS; i++)
            all.metad[i].cut_off = false;
        settle_all();
        tick_all();
        for (int i = 0; i < ASKED; i++) {
            ck_assert_int_ne(replies[i].status, META_SERVICE_LATER);
            done += replies[i].status < 300;
        }
        ck_assert_int_gt(done, ASKED / 8);
        expect_revisions_unique(replies, seed);
        expect_all_the_same(seed);
        teardown_all();
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_change_at_one_is_known_at_all)                                                             \
    T(who_is_behind_hears_before_it_decides)                                                       \
    T(an_endpoint_has_one_owner)                                                                   \
    T(one_process_is_a_life_of_a_node)                                                             \
    T(a_node_expires_when_no_metaserver_hears_of_it)                                               \
    T(a_dead_metaserver_has_no_say)                                                                \
    T(a_later_life_is_the_only_one)                                                                \
    T(a_snapshot_stands_for_what_was_missed)                                                       \
    T(a_store_that_was_put_back_goes_on_above_what_was_known)                                      \
    T(all_come_to_know_the_same)
KEDGE_CHECK_MAIN("metaserver shared store", TESTS)
