/* SPDX-License-Identifier: Apache-2.0 */
/* Changes while the store takes its time: who waits for it, who does not, and what each of them
 * hears. */
#include "slow_disk.h"
#include "writes.h"

START_TEST(a_disk_that_stands_still_delays_no_renewal_and_no_look)
{
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    stop_disk();
    ask_slowly("PUT", "/v1/tenants/web", "{\"uids\":[5]}");
    ask_slowly("PUT", "/v1/nodes/n2", NODE(5, 33));
    for (int i = 0; i < 20; i++) {
        now += 400 * BASE_NS_PER_S; /* of a lease of 1000 s */
        meta_service_tick(&s, now, wall_ms);
        ck_assert_int_eq(ask_now("POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    }
    ck_assert_int_eq(ask_now("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says("\"state\":\"live\""));
    ck_assert_int_eq(ask_now("GET", "/v1/nodes/n2", ""), 404);
    ck_assert_int_eq(ask_now("GET", "/v1/tenants", ""), 200);
    ck_assert(says("\"revision\":0") && !says("web"));
    ck_assert_int_eq(ask_now("GET", "/v1/events", ""), 200);
    ck_assert_int_eq(ask_now("GET", "/v1/nodes/n1/configuration", ""), 200);
    ck_assert_int_eq(ask_now("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_store_waiting 2\n"));
    ck_assert_int_eq(
        ask_now("PUT", "/v1/nodes/n1/applied", "{\"incarnation\":5,\"revision\":0,\"seen\":0}"),
        204);
    ck_assert_uint_eq(meta_directory_count(s.directory).published, 1); /* which is READ */
    ck_assert_int_eq(replies, 0);
    start_disk();
    ck_assert_int_eq(replies, 2);
    ck_assert(replied(0, 201, "\"name\":\"web\",\"revision\":1"));
    ck_assert(replied(1, 201, "\"id\":\"n2\""));
    ck_assert_uint_eq(meta_directory_count(s.directory).published, 2);
    meta_watch_free(w);
    end();
}
END_TEST

START_TEST(nothing_is_there_before_the_store_has_it_nor_if_it_has_not)
{
    begin();
    stop_disk();
    ask_slowly("PUT", "/v1/nodes/n1", NODE(5, 1));
    ask_slowly("PUT", "/v1/tenants/web", "{\"uids\":[5]}");
    ask_slowly("DELETE", "/v1/nodes/n1", "");
    ask_slowly("PUT", "/v1/tenants/web", "{\"uids\":[6]}");
    ck_assert_int_eq(ask_now("GET", "/v1/nodes/n1", ""), 404);
    ck_assert_int_eq(ask_now("GET", "/v1/tenants/web", ""), 404);
    fail = EIO;
    start_disk();
    ck_assert_int_eq(replies, 4);
    ck_assert(replied(0, 503, "store-failed"));
    ck_assert(replied(1, 503, "store-failed"));
    ck_assert(replied(2, 404, "unknown-node")); /* as there is none */
    ck_assert(replied(3, 503, "was told to fail"));
    ck_assert_uint_eq(meta_directory_count(s.directory).nodes, 0);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 0);
    fail = 0;
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    ck_assert(says("\"revision\":1"));
    end();
}
END_TEST

START_TEST(who_claims_what_another_one_is_about_to_get_hears_a_conflict)
{
    begin();
    stop_disk();
    ask_slowly("PUT", "/v1/nodes/n1", NODE(5, 1));
    ask_slowly("PUT", "/v1/nodes/n2", NODE(5, 1)); /* the same GID */
    ask_slowly("PUT", "/v1/nodes/n1", NODE(4, 1));
    ask_slowly("PUT", "/v1/tenants/a", "{\"uids\":[5]}");
    ask_slowly("PUT", "/v1/tenants/b", "{\"uids\":[5]}");
    request.if_none_match = "*";
    ask_slowly("PUT", "/v1/tenants/a", "{\"uids\":[5]}");
    ask_slowly("DELETE", "/v1/tenants/a", "");
    ask_slowly("PUT", "/v1/tenants/b", "{\"uids\":[5]}");
    start_disk();
    ck_assert(replied(0, 201, "\"id\":\"n1\""));
    ck_assert(replied(1, 409, "it is of node n1"));
    ck_assert(replied(2, 409, "\"known_incarnation\":5"));
    ck_assert(replied(3, 201, "\"revision\":1"));
    ck_assert(replied(4, 409, "uid-taken"));
    ck_assert(replied(5, 412, "changed"));
    ck_assert(replied(6, 204, ""));
    ck_assert(replied(7, 201, "\"revision\":3"));
    end();
}
END_TEST

/* The token is looked at when the request comes, and again when it is its turn. */
START_TEST(who_has_lost_its_token_before_its_turn_changes_nothing)
{
    static const char secret[] = "Bearer kedge_ci_0123456789012345678901234567890123456789012";
    begin();
    request.shown.local = true;
    ck_assert_int_eq(ask("PUT", "/v1/tokens/ci",
                         "{\"scope\":\"operator\",\"secret\":"
                         "\"kedge_ci_0123456789012345678901234567890123456789012\"}"),
                     201);
    stop_disk();
    request.shown.authorization = secret;
    ask_slowly("PUT", "/v1/tenants/a", "{\"uids\":[5]}"); /* is with the store */
    request.shown.local = true;
    ask_slowly("DELETE", "/v1/tokens/ci", "");
    request.shown.authorization = secret;
    ask_slowly("PUT", "/v1/tenants/b", "{\"uids\":[6]}");
    start_disk();
    ck_assert(replied(0, 201, "\"name\":\"a\""));
    ck_assert(replied(1, 204, ""));
    ck_assert(replied(2, 401, "before it was its turn"));
    ck_assert_int_eq(ask("GET", "/v1/tenants/b", ""), 404);
    end();
}
END_TEST

START_TEST(who_hangs_up_before_its_turn_changes_nothing_and_after_it_is_served)
{
    begin();
    stop_disk();
    ask_slowly("PUT", "/v1/tenants/a", "{\"uids\":[5]}");
    ask_slowly("PUT", "/v1/tenants/b", "{\"uids\":[6]}");
    client_gone = true;
    start_disk();
    ck_assert(replied(0, 201, "\"name\":\"a\""));
    ck_assert(replied(1, 503, "nobody waited"));
    ck_assert_uint_eq(meta_resources_revision(s.resources), 1);
    end();
}
END_TEST

START_TEST(a_revocation_reaches_its_agent_when_it_is_in_the_trail)
{
    const char *bytes;
    size_t length;
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    stop_disk();
    ask_slowly("DELETE", "/v1/leases/n1:1-00000001-1", "");
    ck_assert_str_eq(question(w), "");
    now += 60 * BASE_NS_PER_S; /* longer than an agent may take */
    meta_service_advance(&s, now);
    ck_assert_int_eq(meta_watch_next(w, now, &bytes, &length), 0);
    ck_assert_uint_eq(length, 1); /* a sign of life alone */
    ck_assert_int_eq(ask_now("GET", "/v1/events", ""), 200);
    ck_assert(!says("1-00000001-1"));
    start_disk();
    ck_assert_int_eq(replies, 0);
    ck_assert_int_eq(ask_now("GET", "/v1/events", ""), 200);
    ck_assert(says("1-00000001-1"));
    const char *asked = question(w);
    ck_assert_ptr_nonnull(strstr(asked, "\"DELETE\""));
    meta_watch_free(w);
    settle();
    ck_assert(replied(0, 503, "agent-unreachable"));
    end();
}
END_TEST

START_TEST(a_revocation_that_the_trail_does_not_take_reaches_no_agent)
{
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    fail = EIO;
    ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:1-00000001-1", ""), 503);
    ck_assert(says("store-failed"));
    ck_assert_str_eq(question(w), "");
    fail = 0;
    stop_disk(); /* and one whose agent goes meanwhile */
    ask_slowly("DELETE", "/v1/leases/n1:1-00000001-2", "");
    meta_watch_free(w);
    start_disk();
    ck_assert(replied(0, 503, "agent-unreachable"));
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(!says("1-00000001-1") && says("\"1-00000001-2\",\"force\":false}"));
    ck_assert(says("\"failed\":\"agent-unreachable\""));
    end();
}
END_TEST

/* A node that lapses while its registration is with the store is there when it has it. */
START_TEST(leases_end_while_the_store_takes_its_time)
{
    begin();
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1", NODE(5, 1)), 201);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n2", NODE(5, 2)), 201);
    stop_disk();
    ask_slowly("PUT", "/v1/nodes/n1", NODE(6, 1));
    now += 1000 * BASE_NS_PER_S;
    meta_service_tick(&s, now, wall_ms);
    ck_assert_uint_eq(meta_directory_count(s.directory).published, 0);
    ck_assert_int_eq(ask_now("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says("\"state\":\"expired\""));
    start_disk();
    ck_assert(replied(0, 200, "\"incarnation\":6"));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says("\"incarnation\":6,\"state\":\"live\""));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n2", ""), 200);
    ck_assert(says("\"state\":\"expired\""));
    struct meta_store *store = s.store;
    close_service();
    open_service(store); /* what is stored says the same */
    ck_assert_int_eq(ask("GET", "/v1/nodes", ""), 200);
    ck_assert(says("\"id\":\"n1\",\"incarnation\":6,\"state\":\"waiting\""));
    ck_assert(says("\"id\":\"n2\",\"incarnation\":5,\"state\":\"expired\""));
    end();
}
END_TEST

/* An expiry that is with the store is not done to who has come back behind it. */
START_TEST(who_comes_back_while_its_expiry_is_written_stays)
{
    begin();
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1", NODE(5, 1)), 201);
    stop_disk();
    now += 1000 * BASE_NS_PER_S;
    meta_service_tick(&s, now, wall_ms);
    meta_service_advance(&s, now);
    ck_assert_uint_eq(s.writes.count, 1);
    ask_slowly("PUT", "/v1/nodes/n1", NODE(5, 1));
    meta_service_tick(&s, now, wall_ms);
    ck_assert_uint_eq(s.writes.count, 2); /* no second one of our own */
    start_disk();
    ck_assert(replied(0, 200, "\"id\":\"n1\""));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says("\"state\":\"live\""));
    struct meta_store *store = s.store;
    close_service();
    open_service(store);
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1", ""), 200);
    ck_assert(says("\"state\":\"waiting\""));
    end();
}
END_TEST

static int refused;

static void count_refused(const struct meta_service_answer *a, const struct base_text *text)
{
    refused += a->status == 503 && strstr(base_text_str(text), "has changed nothing") != NULL;
}

START_TEST(too_many_are_told_to_come_again)
{
    char path[48];
    begin();
    answer_later = count_refused;
    refused = 0;
    stop_disk();
    for (int i = 0; i < META_WRITES_MAX; i++) {
        snprintf(path, sizeof path, "/v1/windows/w%d", i);
        ask_slowly("PUT", path, "{\"scope\":\"device\",\"ops\":7}");
    }
    ck_assert_int_eq(ask_now("PUT", "/v1/windows/more", "{\"scope\":\"device\",\"ops\":7}"), 503);
    ck_assert(says("too-many-changes") && says("4096 changes wait"));
    ck_assert_uint_eq(answer.retry_after_s, 1);
    ck_assert_int_eq(ask_now("GET", "/v1/windows", ""), 200);
    meta_service_stop(&s, now);
    ck_assert_uint_eq(s.writes.count, 1);
    ck_assert_int_eq(refused, META_WRITES_MAX - 1);
    start_disk();
    ck_assert(meta_service_is_stopped(&s));
    end();
}
END_TEST

/* With the token of the last make(): finds that the answer comes later. */
static void ask_slowly_as(const char *path)
{
    request.shown.authorization = bearer;
    ask_slowly("PUT", path, "{\"scope\":\"device\",\"ops\":7}");
}

START_TEST(a_token_that_fills_its_share_keeps_nobody_else_waiting)
{
    char path[48];
    begin();
    answer_later = count_refused;
    refused = 0;
    make("ops", "{\"scope\":\"operator\"}");
    stop_disk();
    for (int i = 0; i < META_WRITES_OF_TOKEN; i++) {
        snprintf(path, sizeof path, "/v1/windows/w%d", i);
        ask_slowly_as(path);
    }
    request.shown.authorization = bearer;
    ck_assert_int_eq(ask_now("PUT", "/v1/windows/more", "{\"scope\":\"device\",\"ops\":7}"), 503);
    ck_assert(says("too-many-changes") && says("256 changes of this token wait"));
    ck_assert_uint_eq(answer.retry_after_s, 1);
    request.shown.authorization = bearer;
    ck_assert_int_eq(ask_now("GET", "/v1/windows", ""), 200);
    ask_slowly("PUT", "/v1/windows/others", "{\"scope\":\"device\",\"ops\":7}");
    meta_service_stop(&s, now);
    start_disk();
    ck_assert(meta_service_is_stopped(&s));
    end();
}
END_TEST

START_TEST(who_asks_whether_it_is_ready_hears_soon_that_the_disk_stands_still)
{
    begin();
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    fail = EIO;
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    fail = 0;
    stop_disk();
    ask_slowly("GET", "/readyz", ""); /* is with the store */
    ask_slowly("PUT", "/v1/tenants/a", "{\"uids\":[5]}");
    for (int i = 1; i < META_CHECKS_MAX; i++)
        ask_slowly("GET", "/readyz", "");
    ck_assert_int_eq(ask_now("GET", "/readyz", ""), 503);
    ck_assert_int_eq(ask_now("GET", "/healthz", ""), 200);
    now += 2 * BASE_NS_PER_S - 1;
    meta_service_advance(&s, now);
    ck_assert_int_eq(replies, 0);
    now++;
    meta_service_advance(&s, now);
    ck_assert_int_eq(replies, META_CHECKS_MAX);
    ck_assert(replied(0, 503, "has not answered for 2000 ms"));
    ck_assert_uint_eq(s.writes.count, 2); /* those that wait take no room any more */
    start_disk();
    ck_assert_int_eq(replies, META_CHECKS_MAX + 1);
    ck_assert(replied(META_CHECKS_MAX, 201, "\"name\":\"a\""));
    end();
}
END_TEST

START_TEST(who_asks_whether_it_is_ready_hears_why_no_agent_can_read_the_table)
{
    begin();
    snprintf(s.table_why, sizeof s.table_why, "port 1 of the device is down");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    ck_assert(says("table-unreachable") && says("port 1 of the device is down"));
    ck_assert_int_eq(ask("GET", "/healthz", ""), 200);
    s.table_why[0] = '\0';
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    end();
}
END_TEST

/* A full disk can be read. */
START_TEST(who_asks_whether_it_is_ready_hears_why_the_last_write_failed_until_one_succeeds)
{
    begin();
    ck_assert_int_eq(ask("PUT", "/v1/tenants/a", "{\"uids\":[5]}"), 201);
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    fail = -ENOSPC;
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200); /* nothing has been written yet */
    ck_assert_int_eq(ask("PUT", "/v1/tenants/b", "{\"uids\":[6]}"), 503);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
        ck_assert(says("the store was told to fail"));
    }
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_store_failing 1\n"));
    fail = 0;
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200); /* which has written, to find out */
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_store_failing 0\n"));
    fail = -EROFS;
    ck_assert_int_eq(ask("PUT", "/v1/tenants/b", "{\"uids\":[6]}"), 503);
    fail = 0;
    ck_assert_int_eq(ask("PUT", "/v1/tenants/b", "{\"uids\":[6]}"), 201);
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    end();
}
END_TEST

/* What is with the store comes to its end, and nothing else does. */
static void end_first(void)
{
    const int had = replies;
    world.store.stands_still = false;
    while (replies == had) {
        meta_store_late_step(&world.store);
        meta_service_advance(&s, now);
    }
    world.store.stands_still = true;
}

START_TEST(who_asks_whether_it_is_ready_behind_many_changes_hears_that_it_is)
{
    begin();
    now += BASE_NS_PER_S;
    stop_disk();
    ask_slowly("PUT", "/v1/tenants/a", "{\"uids\":[5]}");
    ask_slowly("PUT", "/v1/tenants/b", "{\"uids\":[6]}");
    ask_slowly("PUT", "/v1/tenants/c", "{\"uids\":[7]}");
    ask_slowly("GET", "/readyz", "");
    now += BASE_NS_PER_S;
    end_first();
    ck_assert(replied(0, 201, "\"name\":\"a\""));
    now += BASE_NS_PER_S;
    meta_service_advance(&s, now);
    ck_assert_int_eq(replies, 2);
    ck_assert(replied(1, 200, "ready"));
    ask_slowly("GET", "/readyz", "");
    now += BASE_NS_PER_S;
    fail = EIO;
    end_first();
    ck_assert(replied(2, 503, ""));
    now += BASE_NS_PER_S;
    meta_service_advance(&s, now);
    ck_assert_int_eq(replies, 4); /* nothing has been done since that one came */
    ck_assert(replied(3, 503, "was told to fail"));
    fail = 0;
    start_disk();
    end();
}
END_TEST

START_TEST(who_stops_ends_what_is_with_the_store_and_refuses_the_rest)
{
    begin();
    register_node(1);
    struct meta_watch *w = follow(1);
    ck_assert_int_eq(ask("DELETE", "/v1/leases/n1:1-00000001-1", ""), META_SERVICE_LATER);
    (void)question(w); /* its agent has it */
    stop_disk();
    ask_slowly("PUT", "/v1/tenants/a", "{\"uids\":[5]}");
    ask_slowly("PUT", "/v1/tenants/b", "{\"uids\":[6]}");
    ask_slowly("DELETE", "/v1/leases/n1:1-00000001-2", "");
    meta_service_stop(&s, now);
    ck_assert(!meta_service_is_stopped(&s));
    ck_assert_int_eq(replies, 2);
    ck_assert(replied(0, 503, "has changed nothing"));
    ck_assert(replied(1, 503, "has changed nothing"));
    ck_assert_int_eq(ask_now("PUT", "/v1/tenants/c", "{\"uids\":[7]}"), 503);
    ck_assert(says("stops"));
    start_disk();
    ck_assert(meta_service_is_stopped(&s));
    ck_assert_int_eq(replies, 4);
    ck_assert(replied(2, 201, "\"name\":\"a\""));
    ck_assert(replied(3, 503, "whether it has revoked anything is not known"));
    meta_watch_free(w);
    struct meta_store *store = s.store;
    close_service();
    open_service(store);
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(says("\"revision\":3,") && says("\"failed\":\"agent-unreachable\""));
    end();
}
END_TEST

/* Where the disk never answers, everybody is answered all the same. */
START_TEST(who_stops_on_a_dead_disk_says_that_it_is_not_known)
{
    begin();
    stop_disk();
    ask_slowly("PUT", "/v1/tenants/a", "{\"uids\":[5]}");
    meta_service_stop(&s, now);
    meta_service_abandon(&s, now);
    ck_assert_int_eq(replies, 1);
    ck_assert(replied(0, 503, "is not known"));
    start_disk(); /* only so that the test gives its memory back */
    ck_assert_int_eq(replies, 1);
    end();
}
END_TEST

/* Whatever the store's order and delays: what was acknowledged is there after a restart, what was
 * refused is not. */
START_TEST(by_any_seed_what_is_answered_is_what_is_kept)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct base_prng prng;
        char path[48], json[64];
        bool there[8] = {false};
        begin();
        meta_store_late_init(&world.store, s.store, seed);
        world.store.fail_percent = 30;
        base_prng_seed(&prng, seed);
        for (int i = 0; i < 60; i++) {
            const unsigned n = (unsigned)base_prng_below(&prng, 8);
            const bool removes = base_prng_below(&prng, 3) == 0;
            snprintf(path, sizeof path, "/v1/tenants/t%u", n);
            snprintf(json, sizeof json, "{\"uids\":[%u],\"sessions\":%d}", n, i + 1);
            const int status = ask(removes ? "DELETE" : "PUT", path, removes ? "" : json);
            ck_assert(status == 503 ||
                      status == (removes ? (there[n] ? 204 : 404) : (there[n] ? 200 : 201)));
            there[n] = status == 503 ? there[n] : !removes;
        }
        struct meta_store *store = s.store;
        close_service();
        open_service(store);
        for (unsigned n = 0; n < 8; n++) {
            snprintf(path, sizeof path, "/v1/tenants/t%u", n);
            ck_assert_int_eq(ask("GET", path, ""), there[n] ? 200 : 404);
        }
        end();
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_disk_that_stands_still_delays_no_renewal_and_no_look)                                      \
    T(nothing_is_there_before_the_store_has_it_nor_if_it_has_not)                                  \
    T(who_claims_what_another_one_is_about_to_get_hears_a_conflict)                                \
    T(who_has_lost_its_token_before_its_turn_changes_nothing)                                      \
    T(who_hangs_up_before_its_turn_changes_nothing_and_after_it_is_served)                         \
    T(a_revocation_reaches_its_agent_when_it_is_in_the_trail)                                      \
    T(a_revocation_that_the_trail_does_not_take_reaches_no_agent)                                  \
    T(leases_end_while_the_store_takes_its_time)                                                   \
    T(who_comes_back_while_its_expiry_is_written_stays)                                            \
    T(a_token_that_fills_its_share_keeps_nobody_else_waiting)                                      \
    T(too_many_are_told_to_come_again)                                                             \
    T(who_asks_whether_it_is_ready_hears_soon_that_the_disk_stands_still)                          \
    T(who_asks_whether_it_is_ready_hears_why_no_agent_can_read_the_table)                          \
    T(who_asks_whether_it_is_ready_hears_why_the_last_write_failed_until_one_succeeds)             \
    T(who_asks_whether_it_is_ready_behind_many_changes_hears_that_it_is)                           \
    T(who_stops_ends_what_is_with_the_store_and_refuses_the_rest)                                  \
    T(who_stops_on_a_dead_disk_says_that_it_is_not_known)                                          \
    T(by_any_seed_what_is_answered_is_what_is_kept)
KEDGE_CHECK_MAIN("metaserver writes", TESTS)
