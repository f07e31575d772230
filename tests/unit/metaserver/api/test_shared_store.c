/* SPDX-License-Identifier: Apache-2.0 */
/* Three metaservers of one store: what was acknowledged by one is what all come to know, in one
 * order. */
#include "world_shared.h"

static enum meta_node_state state_at(int i, const char *id)
{
    struct meta_node_view v;
    return meta_directory_show(all.metad[i].s.directory, id, all.now, &v) == 0 ? v.state
                                                                               : META_NODE_FREE;
}

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

/* What it knows says that there is nothing to do, or that it must not be done; by then the others
 * have changed that. */
START_TEST(who_is_behind_neither_confirms_nor_refuses)
{
    struct reply same, gone, taken;
    setup_all(10);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/old", "{\"uids\":[9]}"), 201);
    settle_all();
    all.metad[1].cut_off = true;
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/web", "{\"uids\":[6]}"), 200);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/new", "{\"uids\":[7]}"), 201);
    ck_assert_int_eq(ask(&all.metad[0], "DELETE", "/v1/tenants/old", ""), 204);
    begin_ask(&all.metad[1], "PUT", "/v1/tenants/web", "{\"uids\":[5]}", &same);
    begin_ask(&all.metad[1], "DELETE", "/v1/tenants/new", "", &gone);
    begin_ask(&all.metad[1], "PUT", "/v1/tenants/other", "{\"uids\":[9]}", &taken);
    for (int i = 0; i < 100; i++)
        step_all();
    ck_assert_int_eq(same.status, META_SERVICE_LATER);
    ck_assert_int_eq(gone.status, META_SERVICE_LATER);
    ck_assert_int_eq(taken.status, META_SERVICE_LATER);
    all.metad[1].cut_off = false;
    settle_all();
    ck_assert_int_eq(same.status, 200);
    ck_assert_uint_gt(same.revision, 5);
    ck_assert_int_eq(gone.status, 204);
    ck_assert_int_eq(taken.status, 201);
    expect_all_the_same(10);
    teardown_all();
}
END_TEST

/* A watch goes on at another metaserver: who is behind does not tell it to begin with less. */
START_TEST(a_watch_waits_for_who_is_behind)
{
    static const char *const parameters[META_PARAMETERS] = {
        [META_PARAMETER_WATCH] = "1", [META_PARAMETER_REVISION] = "2"};
    struct meta_service_request request = {.method = "GET", .path = "/v1/events"};
    struct meta_service_answer answer;
    struct base_text body;
    setup_all(11);
    settle_all();
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/a", "{\"uids\":[1]}"), 201);
    settle_all();
    all.metad[1].cut_off = true;
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/b", "{\"uids\":[2]}"), 201);
    memcpy(request.parameter, parameters, sizeof request.parameter);
    base_text_init(&body, 4096);
    meta_service_handle(&all.metad[1].s, &request, all.now, &body, &answer);
    ck_assert_int_eq(answer.status, 503);
    ck_assert_uint_eq(answer.retry_after_s, 1);
    ck_assert_ptr_nonnull(strstr(base_text_str(&body), "urn:kedge:problem:behind"));
    base_text_fini(&body);
    all.metad[1].cut_off = false;
    settle_all();
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

/* One said that it hears nothing of it, and hears of it again since: it says so to the store. */
START_TEST(who_hears_of_a_node_again_takes_back_that_it_did_not)
{
    struct reply reply;
    setup_all(13);
    settle_all();
    for (int i = 0; i < METASERVERS; i++) {
        put_node(&all.metad[i], 1, 5, 7, &reply);
        settle_all();
    }
    for (int i = 0; i < 4; i++) { /* it lapses at the first alone */
        all.now += LEASE / 2;
        renew(1, "n1", 5, 200);
        renew(2, "n1", 5, 200);
        tick_all();
    }
    ck_assert_int_eq(state_at(0, "n1"), META_NODE_WAITING);
    put_node(&all.metad[0], 1, 5, 7, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 200);
    for (int i = 0; i < 6; i++) { /* and then at the others */
        all.now += LEASE / 2;
        renew(0, "n1", 5, 200);
        tick_all();
    }
    for (int i = 0; i < METASERVERS; i++)
        ck_assert_int_ne(state_at(i, "n1"), META_NODE_EXPIRED);
    teardown_all();
}
END_TEST

/* One that begins again may hear of nodes of which its former life heard nothing. */
START_TEST(what_a_former_life_has_said_does_not_count)
{
    struct reply reply;
    setup_all(16);
    settle_all();
    for (int i = 0; i < METASERVERS; i++) {
        put_node(&all.metad[i], 1, 5, 7, &reply);
        settle_all();
    }
    for (int i = 0; i < 4; i++) { /* it lapses at the first alone */
        all.now += LEASE / 2;
        renew(1, "n1", 5, 200);
        renew(2, "n1", 5, 200);
        tick_all();
    }
    ck_assert_int_eq(state_at(0, "n1"), META_NODE_WAITING);
    all.now += LEASE / 10 * 8;
    close_metad(&all.metad[0]);
    open_metad(&all.metad[0], 0, MAX_NODES, 16);
    settle_all();
    all.now += LEASE / 10 * 3; /* and then at the others */
    tick_all();
    ck_assert_int_ne(state_at(1, "n1"), META_NODE_EXPIRED);
    for (int i = 0; i < 2; i++) {
        all.now += LEASE;
        tick_all();
        tick_all();
    }
    ck_assert_int_eq(state_at(1, "n1"), META_NODE_EXPIRED);
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
    for (int i = 0; i < 4; i++) {
        all.now += LEASE / 2;
        renew(0, "n1", 5, 200);
        tick_all();
    }
    ck_assert_int_ne(state_at(1, "n1"), META_NODE_EXPIRED);
    close_metad(&all.metad[0]);
    all.metad[0].dead = true;
    for (int i = 0; i < 3; i++) {
        all.now += LEASE + BASE_NS_PER_S;
        tick_all();
        tick_all();
    }
    ck_assert_int_eq(state_at(1, "n1"), META_NODE_EXPIRED);
    ck_assert_int_eq(state_at(2, "n1"), META_NODE_EXPIRED);
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

/* It says so, and until all has room takes no node for dead that it merely does not know. */
START_TEST(who_has_no_room_is_behind)
{
    static struct metad small;
    struct reply reply;
    setup_all(11);
    settle_all();
    open_metad(&small, METASERVERS, 2, 11);
    for (int i = 0; i < 4; i++) {
        put_node(&all.metad[0], i, 5, i, &reply);
        settle_all();
        put_name(&all.metad[0], i, 5, i, i, &reply);
        settle_all();
        ck_assert_int_eq(reply.status, 201);
        for (int n = 0; n < 300; n++)
            step_metad(&small);
        meta_service_tick(&small.s, all.now, all.now / BASE_NS_PER_MS);
        ck_assert_int_eq(meta_service_is_behind(&small.s, all.now), i >= 2);
    }
    for (int n = 0; n < 300; n++) {
        step_metad(&small);
        meta_service_tick(&small.s, all.now, all.now / BASE_NS_PER_MS);
    }
    settle_all();
    ck_assert_uint_eq(meta_names_count(all.metad[1].s.names), 4);
    for (int i = 0; i < 2; i++) {
        char path[32];
        snprintf(path, sizeof path, "/v1/nodes/n%d", i);
        ck_assert_int_eq(ask(&all.metad[0], "DELETE", path, ""), 204);
    }
    settle_all();
    meta_store_hub_compact(small.store);
    for (int n = 0; n < 300; n++)
        step_metad(&small);
    ck_assert(!meta_service_is_behind(&small.s, all.now));
    ck_assert_uint_eq(meta_directory_count(small.s.directory).nodes, 2);
    close_metad(&small);
    teardown_all();
}
END_TEST

/* A name in its way may be of a node that it has not heard to be gone. */
START_TEST(who_is_behind_says_not_whose_a_name_is)
{
    struct reply reply;
    setup_all(14);
    settle_all();
    put_node(&all.metad[0], 1, 5, 1, &reply);
    settle_all();
    put_node(&all.metad[1], 2, 5, 2, &reply);
    settle_all();
    put_name(&all.metad[0], 1, 5, 1, 0, &reply);
    settle_all();
    put_name(&all.metad[1], 2, 5, 2, 0, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 409);
    all.metad[1].cut_off = true;
    all.now += META_SERVICE_BEHIND_NS + BASE_NS_PER_MS;
    put_name(&all.metad[1], 2, 5, 2, 0, &reply);
    for (int i = 0; i < 10; i++)
        step_metad(&all.metad[1]);
    ck_assert_int_eq(reply.status, 503);
    all.metad[1].cut_off = false;
    settle_all();
    teardown_all();
}
END_TEST

/* Who reads the table meanwhile finds it. */
START_TEST(a_snapshot_hides_no_name)
{
    struct reply reply;
    struct meta_names *names = NULL;
    setup_all(12);
    settle_all();
    put_node(&all.metad[0], 1, 5, 1, &reply);
    settle_all();
    for (int i = 0; i < 2; i++) {
        put_name(&all.metad[0], 1, 5, 1, i, &reply);
        settle_all();
        ck_assert_int_eq(reply.status, 201);
    }
    names = all.metad[1].s.names;
    ck_assert_uint_eq(meta_names_count(names), 2);
    const struct schema_table_desc *d = meta_names_table(names);
    uint8_t key[16];
    schema_name_key(d, "web", "x0", key);
    struct schema_name_record before, after;
    const uint8_t *span = (const uint8_t *)all.metad[1].names_memory +
                          (size_t)schema_name_home(d, key) * SCHEMA_NAME_RECORD_BYTES;
    ck_assert_int_eq(schema_name_find(d, span, key, &before), 0);
    meta_store_hub_compact(all.metad[1].store);
    settle_all();
    ck_assert_int_eq(schema_name_find(d, span, key, &after), 0);
    ck_assert_uint_eq(before.seq, after.seq); /* it was never away, nor written anew */
    teardown_all();
}
END_TEST

/* ---- by seeds */

/* A sanitizer takes ten times as long, and sees no more in the next sixteen. */
#if defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 8 };
#else
enum { SEEDS = 24 };
#endif
enum { ASKED = 400 };

/* Of a node that lives, as far as it knows. */
static void put_any_name(struct metad *m, struct reply *reply)
{
    struct meta_node_view v = {.incarnation = 0};
    const int node = (int)base_prng_below(&all.prng, NODES);
    char id[16];
    snprintf(id, sizeof id, "n%d", node);
    const bool knows = meta_directory_show(m->s.directory, id, all.now, &v) == 0;
    const int gid = knows && v.endpoint_count > 0 ? v.endpoint[0].gid[15] - 1 : 0;
    put_name(m, node, knows ? (int)v.incarnation : 1, gid, (int)base_prng_below(&all.prng, 8),
             reply);
}

/* The tenant that it asks to be put; -1: something else. */
static int ask_anything(struct reply *reply)
{
    struct metad *m = &all.metad[base_prng_below(&all.prng, METASERVERS)];
    const int which = (int)base_prng_below(&all.prng, TENANTS);
    char path[64], json[64];
    snprintf(path, sizeof path, "/v1/tenants/t%d", which);
    snprintf(json, sizeof json, "{\"uids\":[%d]}", (int)base_prng_below(&all.prng, 4));
    switch (base_prng_below(&all.prng, 10)) {
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
    case 5:
    case 6:
        put_any_name(m, reply);
        break;
    default:
        begin_ask(m, "PUT", path, json, reply);
        return which;
    }
    return -1;
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

/* A change that was acknowledged is in the trail of all. */
static void expect_in_trail(const struct reply *r, int tenant, uint64_t seed)
{
    char name[16];
    snprintf(name, sizeof name, "t%d", tenant);
    if (tenant < 0 || (r->status != 200 && r->status != 201))
        return;
    for (int i = 0; i < METASERVERS; i++) {
        const struct meta_resource_change *c =
            meta_resources_change_after(all.metad[i].s.resources, r->revision - 1);
        ck_assert_msg(c != NULL && c->revision == r->revision && strcmp(c->name, name) == 0,
                      "seed %" PRIu64 ": metaserver %d has lost revision %" PRIu64 " of %s", seed,
                      i, r->revision, name);
    }
}

START_TEST(all_come_to_know_the_same)
{
    static struct reply replies[ASKED];
    static int asked[ASKED];
    uint64_t named = 0;
    int several = 0; /* registrations were with a store in one transaction */
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        setup_all(seed);
        for (int i = 0; i < METASERVERS; i++)
            meta_store_hub_lose(all.metad[i].store, seed + (uint64_t)i, LOST_PERCENT);
        int done = 0;
        for (int i = 0; i < ASKED; i++) {
            asked[i] = ask_anything(&replies[i]);
            disturb();
            for (uint64_t n = base_prng_below(&all.prng, 12); n > 0; n--)
                step_all();
            for (int k = 0; k < METASERVERS; k++)
                several += all.metad[k].s.writes.under_way > 1;
        }
        for (int i = 0; i < METASERVERS; i++)
            all.metad[i].cut_off = false;
        settle_all();
        tick_all();
        for (int i = 0; i < ASKED; i++) {
            ck_assert_int_ne(replies[i].status, META_SERVICE_LATER);
            done += replies[i].status < 300;
            expect_in_trail(&replies[i], asked[i], seed);
        }
        ck_assert_int_gt(done, ASKED / 8);
        expect_revisions_unique(replies, seed);
        expect_all_the_same(seed);
        named += meta_names_count(all.metad[0].s.names);
        ck_assert_uint_eq(count_restores(&all.metad[0]), 0); /* nobody believes in what was not */
        teardown_all();
    }
    ck_assert_uint_gt(named, SEEDS / 2);
    ck_assert_int_gt(several, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_change_at_one_is_known_at_all)                                                             \
    T(who_is_behind_hears_before_it_decides)                                                       \
    T(who_is_behind_neither_confirms_nor_refuses)                                                  \
    T(a_watch_waits_for_who_is_behind)                                                             \
    T(an_endpoint_has_one_owner)                                                                   \
    T(one_process_is_a_life_of_a_node)                                                             \
    T(a_node_expires_when_no_metaserver_hears_of_it)                                               \
    T(who_hears_of_a_node_again_takes_back_that_it_did_not)                                        \
    T(what_a_former_life_has_said_does_not_count)                                                  \
    T(a_dead_metaserver_has_no_say)                                                                \
    T(a_later_life_is_the_only_one)                                                                \
    T(who_has_no_room_is_behind)                                                                   \
    T(who_is_behind_says_not_whose_a_name_is)                                                      \
    T(a_snapshot_hides_no_name)                                                                    \
    T(a_snapshot_stands_for_what_was_missed)                                                       \
    T(all_come_to_know_the_same)
KEDGE_CHECK_MAIN("metaserver shared store", TESTS)
