/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations that come at once: what they cost the store, and that each of them is as if it had
 * come alone. */
#include "names_world.h"
#include "slow_disk.h"
#include "writes.h"

static uint64_t count_transactions(void)
{
    return base_latency_count(&s.count.store_took);
}

static void register_slowly(int number, int incarnation, int gid)
{
    char path[32], json[256];
    snprintf(path, sizeof path, "/v1/nodes/m%d", number);
    snprintf(json, sizeof json,
             "{\"incarnation\":%d,\"endpoints\":[{\"gid\":\"fd00::%x\",\"pool\":1,"
             "\"transports\":[\"dc\"],\"dct_number\":7,\"dc_key\":\"5be0cd19137e2179\","
             "\"mtu\":4096}]}",
             incarnation, (unsigned)gid);
    ask_slowly("PUT", path, json);
}

/* What waits for the one that is with the store goes there at once, in the order in which it came,
 * and as far as one has nothing to do with another one. */
START_TEST(registrations_that_wait_are_one_transaction)
{
    begin();
    stop_disk();
    for (int i = 0; i < 6; i++)
        register_slowly(i, 5, 16 + i);
    start_disk();
    for (int i = 0; i < 6; i++)
        ck_assert(replied(i, 201, "\"incarnation\":5"));
    ck_assert_uint_eq(count_transactions(), 2);
    stop_disk();
    register_slowly(0, 6, 16); /* is with the store */
    register_slowly(1, 6, 17);
    register_slowly(2, 6, 18);
    register_slowly(3, 4, 19); /* of a life that is over */
    register_slowly(4, 6, 20);
    register_slowly(7, 1, 18); /* n2's, which has it */
    register_slowly(2, 7, 18); /* comes behind what it follows */
    ask_slowly("PUT", "/v1/tenants/a", "{\"uids\":[5]}");
    register_slowly(5, 6, 21);
    start_disk();
    ck_assert_uint_eq(count_transactions(), 7);
    /* Who is refused hears it when the others go to the store. */
    ck_assert(replied(6, 200, "\"id\":\"m0\",\"incarnation\":6"));
    ck_assert(replied(7, 409, "\"known_incarnation\":5"));
    ck_assert(replied(8, 409, "it is of node m2"));
    ck_assert(replied(9, 200, "\"id\":\"m1\",\"incarnation\":6"));
    ck_assert(replied(10, 200, "\"id\":\"m2\",\"incarnation\":6"));
    ck_assert(replied(11, 200, "\"id\":\"m4\",\"incarnation\":6"));
    ck_assert(replied(12, 200, "\"id\":\"m2\",\"incarnation\":7"));
    ck_assert(replied(13, 201, "\"name\":\"a\""));
    ck_assert(replied(14, 200, "\"id\":\"m5\",\"incarnation\":6"));
    end();
}
END_TEST

static void publish_slowly(const char *node, int incarnation, int gid, const char *name)
{
    char path[96], json[640];
    write_publication("web", node, incarnation, gid, name, path, json);
    ask_slowly("PUT", path, json);
}

/* Workers that publish, and who asks whether it is ready, break no transaction up; of one node
 * nothing changes its place. */
START_TEST(registrations_go_before_names_and_checks_but_those_of_their_own_node)
{
    begin();
    open_names(NAMES);
    stop_disk();
    for (int i = 0; i < 4; i++)
        register_slowly(i, 5, 16 + i);
    start_disk();
    const uint64_t before = count_transactions();
    stop_disk();
    register_slowly(0, 6, 16);          /* 4: is with the store */
    register_slowly(4, 5, 20);          /* 5 */
    publish_slowly("m1", 5, 17, "one"); /* 6 */
    ask_slowly("GET", "/readyz", "");   /* 7 */
    register_slowly(5, 5, 21);          /* 8 */
    publish_slowly("m2", 5, 18, "two"); /* 9 */
    register_slowly(3, 6, 19);          /* 10: of none of them */
    register_slowly(1, 6, 17);          /* 11: its former life has published just before */
    register_slowly(6, 5, 22);          /* 12 */
    start_disk();
    /* 4; 5, 8 and 10; 6; 7; 9; 11 and 12. */
    ck_assert_uint_eq(count_transactions() - before, 6);
    const int order[] = {200, 201, 201, 200, 201, 200, 201, 200, 201};
    for (int i = 0; i < 9; i++)
        ck_assert(replied(4 + i, order[i], ""));
    ck_assert(replied(4 + 1, 201, "\"id\":\"m4\""));
    ck_assert(replied(4 + 2, 201, "\"id\":\"m5\""));
    ck_assert(replied(4 + 3, 200, "\"id\":\"m3\""));
    ck_assert(replied(4 + 4, 201, "\"name\":\"one\""));
    ck_assert(replied(4 + 6, 201, "\"name\":\"two\""));
    ck_assert(replied(4 + 7, 200, "\"id\":\"m1\",\"incarnation\":6"));
    close_names();
    end();
}
END_TEST

/* The store knows better than the directory of one, as if it had been changed behind it. */
START_TEST(a_registration_that_the_store_refuses_harms_no_other)
{
    struct meta_store_node later = {.id = "m3", .incarnation = 9};
    struct base_errbuf err;
    begin();
    ck_assert_int_eq(meta_store_put(s.store, &later, &err), 0);
    stop_disk();
    for (int i = 0; i < 6; i++)
        register_slowly(i, 5, 16 + i);
    start_disk();
    ck_assert_uint_eq(count_transactions(), 2);
    for (int i = 0; i < 6; i++)
        ck_assert(i == 3 ? replied(i, 503, "a later life of this node") : replied(i, 201, ""));
    ck_assert_uint_eq(meta_directory_count(s.directory).live, 5);
    end();
}
END_TEST

/* A directory with room for one more takes one more, and forgets who has expired for the next. */
START_TEST(registrations_of_one_transaction_have_room_together)
{
    begin();
    for (int i = 0; i < 14; i++) {
        register_slowly(i, 5, 16 + i);
        settle();
    }
    stop_disk();
    for (int i = 14; i < 18; i++)
        register_slowly(i, 5, 16 + i);
    start_disk();
    ck_assert(replied(14, 201, "") && replied(15, 201, ""));
    ck_assert(replied(16, 507, "full") && replied(17, 507, "full"));
    ck_assert_uint_eq(meta_directory_count(s.directory).live, 16);
    struct meta_store *store = s.store;
    close_service();
    open_service(store);
    ck_assert_uint_eq(meta_directory_count(s.directory).nodes, 16);
    end();
}
END_TEST

/* Neither what renews, nor what says what it has applied or reaches, nor what asks. */
START_TEST(renewals_and_liveness_cost_no_write)
{
    char path[48];
    begin();
    for (int i = 0; i < 10; i++) {
        register_slowly(i, 5, 16 + i);
        settle();
    }
    const uint64_t before = count_transactions();
    for (int turn = 0; turn < 20; turn++) {
        now += 300 * BASE_NS_PER_S; /* of a lease of 1000 s */
        meta_service_tick(&s, now, wall_ms);
        for (int i = 0; i < 10; i++) {
            snprintf(path, sizeof path, "/v1/nodes/m%d/renew", i);
            ck_assert_int_eq(ask_now("POST", path, "{\"incarnation\":5}"), 200);
            snprintf(path, sizeof path, "/v1/nodes/m%d/applied", i);
            ck_assert_int_eq(ask_now("PUT", path, "{\"incarnation\":5,\"revision\":0,\"seen\":0}"),
                             204);
            snprintf(path, sizeof path, "/v1/nodes/m%d", i);
            ck_assert_int_eq(ask_now("GET", path, ""), 200);
        }
        settle();
    }
    ck_assert_uint_eq(count_transactions(), before);
    ck_assert_uint_eq(meta_directory_count(s.directory).live, 10);
    end();
}
END_TEST

/* Others' writes are none of its matter; what waits of the same node is. */
START_TEST(a_registration_that_needs_no_write_waits_for_no_other)
{
    begin();
    for (int i = 0; i < 2; i++) {
        register_slowly(i, 5, 16 + i);
        settle();
    }
    const uint64_t before = count_transactions();
    stop_disk();
    register_slowly(3, 5, 20);
    register_slowly(4, 5, 21);
    register_slowly(1, 6, 17);
    ck_assert_int_eq(ask_now("PUT", "/v1/nodes/m0", NODE(5, 10)), 200);
    ck_assert(says("\"incarnation\":5"));
    register_slowly(1, 5, 17); /* a later life of it waits */
    start_disk();
    ck_assert_int_eq(replies, 2 + 4);
    ck_assert_int_eq(ask_now("GET", "/v1/nodes/m1", ""), 200);
    ck_assert(says("\"incarnation\":6"));
    ck_assert_uint_eq(count_transactions(), before + 2);
    end();
}
END_TEST

static int answered[600];

static void count_answers(const struct meta_service_answer *a, const struct base_text *text)
{
    (void)text;
    answered[a->status]++;
}

/* Whoever comes behind them hears when to come again, and operators' changes find room. */
START_TEST(registrations_beyond_a_bound_are_put_off_one_after_the_other)
{
    unsigned last = 0;
    char path[48];
    begin();
    stop_disk();
    for (int i = 0; i < META_REGISTRATIONS_MAX; i++)
        register_slowly(i, 5, 16 + i);
    for (int i = 0; i < 5000; i++) {
        snprintf(path, sizeof path, "/v1/nodes/x%d", i);
        ck_assert_int_eq(begin_to_ask("PUT", path, NODE(5, 1)), 429);
        ck_assert(says("too-many-registrations") && says("1024 registrations wait"));
        ck_assert_uint_ge(answer.retry_after_s, last);
        ck_assert_uint_ge(answer.retry_after_s, 1);
        ck_assert_uint_le(answer.retry_after_s, META_PACE_MAX_S);
        last = answer.retry_after_s;
    }
    ck_assert_uint_eq(last, META_PACE_MAX_S);
    ask_slowly("PUT", "/v1/tenants/a", "{\"uids\":[5]}");
    ck_assert_int_eq(begin_to_ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_registrations_waiting 1024\n"));
    ck_assert(says("\nkedge_metad_registrations_put_off_total 5000\n"));
    memset(answered, 0, sizeof answered);
    answer_later = count_answers;
    start_disk();
    ck_assert_int_eq(answered[201], 16 + 1); /* 16 nodes have room, and a tenant */
    ck_assert_int_eq(answered[507], META_REGISTRATIONS_MAX - 16);
    ck_assert_int_eq(begin_to_ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_registrations_waiting 0\n"));
    end();
}
END_TEST

/* As fast as the queue gets shorter: what was measured says how fast that is. */
START_TEST(who_is_put_off_comes_back_at_the_pace_of_the_store)
{
    struct meta_pace slow = {.each_ns = 0}, fast = {.each_ns = 0};
    const uint64_t at = 1000 * BASE_NS_PER_S;
    for (int i = 0; i < 20; i++) {
        meta_pace_measure(&slow, 640 * BASE_NS_PER_MS, 64);
        meta_pace_measure(&fast, 64 * BASE_NS_PER_MS, 64);
    }
    ck_assert_uint_eq(meta_pace_put_off(&slow, 100, at), 2);
    ck_assert_uint_eq(meta_pace_put_off(&fast, 100, at), 1);
    for (int i = 0; i < 1000; i++) {
        (void)meta_pace_put_off(&slow, 100, at);
        (void)meta_pace_put_off(&fast, 100, at);
    }
    ck_assert_uint_eq(meta_pace_put_off(&slow, 100, at), 12);
    ck_assert_uint_eq(meta_pace_put_off(&fast, 100, at), 2);
    /* Who was told of a time that is over has been there. */
    ck_assert_uint_eq(meta_pace_put_off(&slow, 100, at + 60 * BASE_NS_PER_S), 2);
    /* Of one alone it is not known how long each of many would take. */
    meta_pace_measure(&fast, 20 * BASE_NS_PER_MS, 1);
    ck_assert_uint_eq(meta_pace_put_off(&fast, 100, at + 60 * BASE_NS_PER_S), 1);
    for (int i = 0; i < 1000; i++)
        (void)meta_pace_put_off(&fast, 100, at + 60 * BASE_NS_PER_S);
    ck_assert_uint_eq(meta_pace_put_off(&fast, 100, at + 60 * BASE_NS_PER_S), 2);
    meta_pace_measure(&fast, UINT64_MAX, 64); /* a store that stood still */
    for (int i = 0; i < 100000; i++)
        ck_assert_uint_le(meta_pace_put_off(&fast, UINT32_MAX, at), META_PACE_MAX_S);
}
END_TEST

/* A store that takes long for each has fewer of them wait, so that none waits for longer than its
 * agent does. */
START_TEST(registrations_that_would_be_late_are_put_off)
{
    char path[48];
    begin();
    answer_later = count_answers;
    for (int i = 0; i < 20; i++)
        meta_pace_measure(&s.writes.pace, 64 * 20 * BASE_NS_PER_MS, 64);
    stop_disk();
    for (int i = 0; i < 150; i++)
        register_slowly(i, 5, 16 + i);
    snprintf(path, sizeof path, "/v1/nodes/x");
    ck_assert_int_eq(begin_to_ask("PUT", path, NODE(5, 1)), 429);
    ck_assert_uint_eq(answer.retry_after_s, 4);
    start_disk();
    end();
}
END_TEST

/* One whose token has too many there disturbs nobody else's times. */
START_TEST(a_token_with_too_many_registrations_is_put_off_alone)
{
    char path[48];
    begin();
    answer_later = count_answers;
    make("ops", "{\"scope\":\"admin\"}");
    stop_disk();
    for (int i = 0; i < 256 + 50; i++) {
        snprintf(path, sizeof path, "/v1/nodes/x%d", i);
        request.shown.authorization = bearer;
        const int status = begin_to_ask("PUT", path, NODE(5, 1));
        ck_assert_int_eq(status, i < 256 ? META_SERVICE_LATER : 429);
        if (i >= 256)
            ck_assert_uint_eq(answer.retry_after_s, 1);
    }
    ck_assert_uint_eq(s.writes.pace.next_ns, 0);
    register_slowly(1, 5, 77);
    start_disk();
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(registrations_that_wait_are_one_transaction)                                                 \
    T(registrations_go_before_names_and_checks_but_those_of_their_own_node)                        \
    T(a_registration_that_the_store_refuses_harms_no_other)                                        \
    T(registrations_of_one_transaction_have_room_together)                                         \
    T(a_registration_that_needs_no_write_waits_for_no_other)                                       \
    T(renewals_and_liveness_cost_no_write)                                                         \
    T(registrations_beyond_a_bound_are_put_off_one_after_the_other)                                \
    T(who_is_put_off_comes_back_at_the_pace_of_the_store)                                          \
    T(registrations_that_would_be_late_are_put_off)                                                \
    T(a_token_with_too_many_registrations_is_put_off_alone)
KEDGE_CHECK_MAIN("metaserver registrations", TESTS)
