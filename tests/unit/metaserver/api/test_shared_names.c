/* SPDX-License-Identifier: Apache-2.0 */
/* Metaservers of one store: names of regions, of which each shows what it has heard itself, and
 * what they say of a change that the store did not answer. */
#include "world_shared.h"

/* The store has it, by another metaserver's word; here it is in no table yet. */
START_TEST(a_region_of_an_endpoint_that_another_metaserver_alone_shows_has_no_name_yet)
{
    const char *const two =
        "{\"incarnation\":5,\"endpoints\":["
        "{\"gid\":\"fd00::2\",\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":7,\"dc_key\":"
        "\"0000000000000001\",\"mtu\":4096},"
        "{\"gid\":\"fd00::3\",\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":8,\"dc_key\":"
        "\"0000000000000002\",\"mtu\":4096}]}";
    const char *const one =
        "{\"incarnation\":5,\"endpoints\":["
        "{\"gid\":\"fd00::2\",\"pool\":1,\"transports\":[\"dc\"],\"dct_number\":7,\"dc_key\":"
        "\"0000000000000001\",\"mtu\":4096}]}";
    struct reply reply;
    setup_all(21);
    ck_assert_int_lt(ask(&all.metad[0], "PUT", "/v1/nodes/n1", one), 300);
    settle_all();
    ck_assert_int_lt(ask(&all.metad[1], "PUT", "/v1/nodes/n1", one), 300);
    ck_assert_int_lt(ask(&all.metad[0], "PUT", "/v1/nodes/n1", two), 300);
    settle_all();
    put_name(&all.metad[1], 1, 5, 2, 1, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 404);
    ck_assert_ptr_nonnull(strstr(reply.body, "does not show that endpoint"));
    ck_assert_int_lt(ask(&all.metad[1], "PUT", "/v1/nodes/n1", two), 300);
    put_name(&all.metad[1], 1, 5, 2, 1, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 201);
    teardown_all();
}
END_TEST

/* What this one shows was taken back at another one, of which it has not heard. */
START_TEST(a_name_that_is_there_already_is_so_by_the_stores_word_alone)
{
    struct reply reply;
    setup_all(22);
    put_node(&all.metad[0], 1, 5, 1, &reply);
    settle_all();
    put_node(&all.metad[1], 1, 5, 1, &reply);
    settle_all();
    put_name(&all.metad[1], 1, 5, 1, 1, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 201);
    put_name(&all.metad[1], 1, 5, 1, 1, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 200);
    all.metad[1].cut_off = true;
    ck_assert_int_eq(ask(&all.metad[0], "DELETE", "/v1/nodes/n1", ""), 204);
    put_name(&all.metad[1], 1, 5, 1, 1, &reply);
    while (reply.status == META_SERVICE_LATER)
        step_all();
    ck_assert_int_ge(reply.status, 400);
    all.metad[1].cut_off = false;
    settle_all();
    expect_all_the_same(22);
    teardown_all();
}
END_TEST

static void begin_anew(void)
{
    for (int i = 0; i < METASERVERS; i++)
        close_metad(&all.metad[i]);
    for (int i = 0; i < METASERVERS; i++)
        open_metad(&all.metad[i], i, MAX_NODES, (uint64_t)i);
    settle_all();
}

/* Of a node whose life is that, at one of them: its status. */
static int publish_in_life(int i, int life)
{
    struct reply reply;
    put_node(&all.metad[i], 1, life, 1, &reply);
    settle_all();
    put_name(&all.metad[i], 1, life, 1, 1, &reply);
    settle_all();
    return reply.status;
}

static void note_woken(void *token)
{
    ++*(int *)token;
}

static bool is_told_to_renew(struct meta_watch *w)
{
    const char *bytes;
    size_t length;
    ck_assert_int_eq(meta_watch_next(w, all.now, &bytes, &length), 0);
    return length > 0 && strncmp(bytes, "{\"renew\":\"soon\"}", 16) == 0;
}

/* Where leases are long agents are asked to say what they have, and names wait for a minute. */
START_TEST(names_wait_for_a_minute_at_most_and_agents_are_asked_to_renew)
{
    struct reply reply;
    int woken = 0;
    struct meta_watch *before, *since;
    setup_all(21);
    struct meta_service *s = &all.metad[0].s;
    struct meta_store *snapshot = meta_store_memory(NULL);
    struct base_errbuf err;
    for (int i = 0; i < METASERVERS; i++)
        all.metad[i].s.node_lease_ns = 86400 * BASE_NS_PER_S;
    s->wake = note_woken;
    s->max_watches = 4;
    put_node(&all.metad[0], 1, 5, 1, &reply);
    settle_all();
    ck_assert_int_eq(meta_store_copy(all.metad[0].store, snapshot, &err), 0);
    ck_assert_int_eq(
        meta_watch_configuration(s, "n1", META_ANSWERS_ALONE, false, 0, &woken, all.now, &before),
        0);
    ck_assert(!is_told_to_renew(before));
    meta_store_hub_put_back(all.hub, snapshot);
    const int was = woken;
    settle_all();
    ck_assert_int_gt(woken, was);
    ck_assert(is_told_to_renew(before) && !is_told_to_renew(before));
    put_node(&all.metad[0], 1, 5, 1, &reply);
    settle_all();
    ck_assert_int_eq(
        meta_watch_configuration(s, "n1", META_ANSWERS_ALONE, false, 0, &woken, all.now, &since),
        0);
    ck_assert(is_told_to_renew(since) && !is_told_to_renew(since)); /* who has not heard of it */
    meta_watch_free(before);
    meta_watch_free(since);
    ck_assert_int_eq(publish_in_life(0, 5), 503);
    for (int i = 0; i < 12; i++) {
        all.now += 5 * BASE_NS_PER_S;
        for (int k = 0; k < METASERVERS; k++) {
            put_node(&all.metad[k], 1, 5, 1, &reply);
            settle_all();
        }
    }
    ck_assert_int_eq(publish_in_life(0, 5), 201);
    meta_store_close(snapshot);
    teardown_all();
}
END_TEST

/* The trail says so, once, and that is a change like any other. */
START_TEST(what_is_settled_is_so_where_a_metaserver_begins_anew)
{
    struct meta_store *nothing = meta_store_memory(NULL);
    setup_all(22);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/a", "{\"uids\":[1]}"), 201);
    settle_all();
    meta_store_hub_put_back(all.hub, nothing);
    settle_all();
    ck_assert_uint_eq(count_restores(&all.metad[0]), 1); /* of the revision that was raised */
    all.now += 100 * LEASE;
    for (int life = 0; life < 2; life++) { /* before it is over each start begins it anew */
        begin_anew();
        ck_assert_int_eq(publish_in_life(0, 5 + life), 503);
        tick_all();
        ck_assert_uint_eq(count_restores(&all.metad[0]), 1);
    }
    meta_store_hub_lose(all.metad[0].store, 1, 100); /* what fails, or seems to, is said later */
    all.now += LEASE;
    for (int i = 0; i < 5; i++, all.now += 10 * BASE_NS_PER_S)
        tick_all();
    meta_store_hub_lose(all.metad[0].store, 1, 0);
    const uint64_t last = meta_resources_revision(all.metad[0].s.resources);
    for (int i = 0; i < METASERVERS; i++) {
        ck_assert_uint_eq(count_restores(&all.metad[i]), 2);
        ck_assert_uint_eq(meta_resources_revision(all.metad[i].s.resources), last);
    }
    ck_assert_int_eq(ask(&all.metad[1], "PUT", "/v1/tenants/b", "{\"uids\":[2]}"), 201);
    begin_anew();
    ck_assert_int_eq(publish_in_life(2, 7), 201);
    all.now += LEASE;
    tick_all();
    ck_assert_uint_eq(meta_resources_revision(all.metad[2].s.resources), last + 1);
    expect_all_the_same(22);
    meta_store_close(nothing);
    teardown_all();
}
END_TEST

/* etcd may have done what it did not answer, or do it later. */
START_TEST(who_gets_no_answer_does_not_say_that_nothing_was_changed)
{
    struct reply reply;
    setup_all(16);
    settle_all();
    meta_store_hub_lose(all.metad[0].store, 1, 100);
    begin_ask(&all.metad[0], "PUT", "/v1/tenants/a", "{\"uids\":[1]}", &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 503);
    ck_assert_ptr_nonnull(strstr(reply.body, "whether anything was changed is not known"));
    ck_assert_ptr_null(strstr(reply.body, "nothing was changed"));
    meta_store_hub_lose(all.metad[0].store, 1, 0);
    settle_all();
    teardown_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(names_wait_for_a_minute_at_most_and_agents_are_asked_to_renew)                               \
    T(what_is_settled_is_so_where_a_metaserver_begins_anew)                                        \
    T(who_gets_no_answer_does_not_say_that_nothing_was_changed)                                    \
    T(a_region_of_an_endpoint_that_another_metaserver_alone_shows_has_no_name_yet)                 \
    T(a_name_that_is_there_already_is_so_by_the_stores_word_alone)

KEDGE_CHECK_MAIN("metaserver shared names", TESTS)
