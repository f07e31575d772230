/* SPDX-License-Identifier: Apache-2.0 */
/* Two questions: does it live, and is it ready; and what it says of itself to agents that choose
 * among metaservers. */
#include "proxy_world.h"

START_TEST(who_asks_for_it_hears_of_each_check_alone)
{
    begin();
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    ck_assert_str_eq(base_text_str(&body), "store ok\ndevice ok\ntable ok\n");
    ck_assert_str_eq(answer.content_type, "text/plain; charset=utf-8");
    snprintf(s.table_why, sizeof s.table_why, "port 1 of the device is down");
    query(META_PARAMETER_VERBOSE, "1");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    ck_assert_str_eq(base_text_str(&body),
                     "store ok\ndevice failed: port 1 of the device is down\ntable ok\n");
    s.table_why[0] = '\0';
    snprintf(s.store_id, sizeof s.store_id, "0123456789abcdef");
    s.hearing.shared = true;
    snprintf(s.hearing.why.text, sizeof s.hearing.why.text, "nothing was heard of it for 9 s");
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    ck_assert(says("store ok\n") && says("watch failed: nothing was heard of it for 9 s\n"));
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    ck_assert(says("store-failed") && says("nothing was heard of it for 9 s"));
    s.hearing.why.text[0] = '\0';
    now += BASE_NS_PER_S; /* what the store did last is no answer any more */
    s.hearing.heard_ns = now;
    fail = EIO;
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    ck_assert(says("store failed: ") && says("\nwatch ok\n"));
    fail = 0;
    query(META_PARAMETER_VERBOSE, "yes");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 400);
    end();
}
END_TEST

START_TEST(who_asks_hears_of_those_who_are_to_register_here_still)
{
    struct meta_store_node stored = {
        .id = "n1", .incarnation = 5, .endpoint_count = 2, .endpoint = {{.pool = 1}, {.pool = 2}}};
    begin();
    ck_assert_int_eq(meta_directory_restore(s.directory, &stored, now), 0);
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200); /* for them it has to be */
    ck_assert(says("\nnodes ok: the agents of 1 of 1 nodes") && says("2 of 2 endpoints\n"));
    ck_assert_int_eq(ask("GET", "/v1/metaservers", ""), 200);
    ck_assert(says("\"awaited\":2") && says("\"waiting\":1"));
    ck_assert(says("\"kind\":\"memory\"") && !says("\"prefix\"") && !says("\"id\""));
    snprintf(s.store->prefix, sizeof s.store->prefix, "/kedge/");
    snprintf(s.store_id, sizeof s.store_id, "5a");
    ck_assert_int_eq(ask("GET", "/v1/metaservers", ""), 200);
    ck_assert(says("\"prefix\":\"/kedge/\",\"id\":\"5a\""));
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_table_awaited 2\n"));
    s.tokens_needed = true;
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    ck_assert(!says("nodes ok")); /* a stranger hears of nobody */
    s.tokens_needed = false;
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/n1", ""), 204);
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    ck_assert(!says("nodes ok"));
    end();
}
END_TEST

/* Of a store that others share: as many as ask, however often, cost it one transaction a second. */
START_TEST(who_asks_costs_a_shared_store_a_transaction_a_second)
{
    begin();
    s.hearing.shared = true;
    s.hearing.heard_ns = now;
    world.store.stands_still = true;
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(begin_to_ask("GET", "/readyz", ""), META_SERVICE_LATER);
    awaited = NULL;
    const uint64_t before = base_latency_count(&s.count.store_took);
    world.store.stands_still = false;
    settle();
    ck_assert_int_eq(replies, 20);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(reply[i].status, 200);
    for (int i = 0; i < 9; i++) {
        now += BASE_NS_PER_S / 10;
        ck_assert_int_eq(begin_to_ask("GET", "/readyz", ""), 200);
    }
    ck_assert_uint_eq(base_latency_count(&s.count.store_took) - before, 1);
    now += BASE_NS_PER_S / 10;
    fail = EIO;
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    ck_assert_uint_eq(base_latency_count(&s.count.store_took) - before, 2);
    ck_assert_int_eq(begin_to_ask("GET", "/readyz", ""), 503);
    fail = 0;
    now += BASE_NS_PER_S;
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    ck_assert_uint_eq(base_latency_count(&s.count.store_took) - before, 3);
    end();
}
END_TEST

START_TEST(strangers_hear_that_it_is_not_ready_and_not_why)
{
    begin();
    s.tokens_needed = true;
    snprintf(s.table_why, sizeof s.table_why, "the device has lost the GID fd00::1");
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    ck_assert(says("store ok\n") && says("device failed: show a token of the scope reader"));
    ck_assert(!says("fd00::1"));
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    ck_assert(says("show a token of the scope reader") && !says("fd00::1"));
    make("probe", "{\"scope\":\"reader\"}");
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask_as("GET", "/readyz", ""), 503);
    ck_assert(says("device failed: the device has lost the GID fd00::1"));
    end();
}
END_TEST

START_TEST(it_lives_while_its_loop_turns_whatever_the_disk_does)
{
    begin();
    fail = EIO;
    ck_assert_int_eq(ask("GET", "/livez", ""), 200);
    fail = 0;
    world.store.stands_still = true;
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(begin_to_ask("GET", "/readyz", ""), META_SERVICE_LATER);
    awaited = NULL;
    ck_assert_int_eq(begin_to_ask("GET", "/livez", ""), 200);
    now += 2 * BASE_NS_PER_S;
    meta_service_advance(&s, now);
    ck_assert_int_eq(replies, 1);
    ck_assert_int_eq(reply[0].status, 503);
    ck_assert_str_eq(reply[0].text, "store failed: the store has not answered for 2000 ms\ndevice "
                                    "ok\ntable ok\n");
    world.store.stands_still = false;
    settle();
    end();
}
END_TEST

START_TEST(agents_hear_where_it_stands)
{
    begin();
    register_node(1);
    ck_assert(!says("\"behind\"") && !says("\"store\"") && !says("\"zone\""));
    s.hearing.shared = true; /* and nothing was heard of it yet */
    s.zone = "rack7";
    snprintf(s.store_id, sizeof s.store_id, "0123456789abcdef");
    ck_assert_int_eq(ask("POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    static const char where[] = "\"behind\":true,\"store\":\"0123456789abcdef\",\"zone\":\"rack7\"";
    ck_assert(says(where));
    s.hearing.shared = false;
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/n1", ""), 204);
    register_node(1);
    ck_assert(!says("\"behind\"") && says("\"store\":\"0123456789abcdef\",\"zone\":\"rack7\""));
    end();
}
END_TEST

/* Agents ask the others, from its first renewal on, until the store takes what it is given. */
START_TEST(agents_hear_that_nothing_is_written_here)
{
    static const char renewal[] = "{\"incarnation\":5}";
    begin();
    register_node(1);
    ck_assert(!says("\"read_only\""));
    fail = EIO;
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    ck_assert(says("store failed: "));
    ck_assert_int_eq(ask("POST", "/v1/nodes/n1/renew", renewal), 200);
    ck_assert(says("\"read_only\":true") && !says("\"behind\""));
    fail = 0; /* and nobody asks any more */
    for (int i = 0; i < 60; i++) {
        now += BASE_NS_PER_S / 10;
        meta_service_tick(&s, now, wall_ms);
        settle();
    }
    ck_assert_int_eq(ask("POST", "/v1/nodes/n1/renew", renewal), 200);
    ck_assert(!says("\"read_only\""));
    end();
}
END_TEST

/* The memory says of nothing where it stands: what is put into it is as what a shared store has
 * already. */
START_TEST(what_needs_no_write_does_not_say_that_the_store_takes_them)
{
    begin();
    s.store->shared = true;
    fail = EIO;
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 503);
    fail = -EIO; /* what is only read succeeds */
    ck_assert_int_eq(ask("GET", "/readyz", ""), 503);
    fail = 0;
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    register_node(1);
    ck_assert(says("\"read_only\":true"));
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    ck_assert_int_eq(ask("POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    ck_assert(!says("\"read_only\""));
    end();
}
END_TEST

START_TEST(what_is_one_requests_fault_stops_no_other)
{
    begin();
    register_node(1);
    fail = -EUCLEAN;
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 503);
    ck_assert(says("told to fail"));
    ck_assert_int_eq(ask("POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    ck_assert(!says("\"read_only\""));
    end();
}
END_TEST

/* An etcd that is gone is no failed write, if nobody writes. */
START_TEST(metrics_say_how_long_the_store_has_not_been_heard)
{
    begin();
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_store_behind 0\n") && says("_store_heard_seconds 0\n"));
    ck_assert(says("\nkedge_metad_metaservers 1\n"));
    s.hearing.shared = true;
    s.hearing.member_count = 3;
    s.hearing.heard_ns = now;
    now += 20 * BASE_NS_PER_S;
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_store_behind 1\n") && says("_store_heard_seconds 20\n"));
    ck_assert(says("\nkedge_metad_metaservers 3\n") && says("_store_failing 0\n"));
    s.hearing.heard_ns = 0; /* it never was */
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_store_behind 1\n") && says("_store_heard_seconds 0\n"));
    end();
}
END_TEST

/* An etcd on a network that takes what it is told without a password or a certificate. */
START_TEST(a_store_that_everybody_may_write_is_said_to_be_one)
{
    begin();
    s.hearing.shared = s.hearing.shown_nothing = true;
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_store_open 0\n")); /* it was not heard: it may take nothing */
    s.hearing.heard_ns = now;
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_store_open 1\n"));
    ck_assert_int_eq(ask("GET", "/v1/metaservers", ""), 200);
    ck_assert(says("\"warning\":\"whoever reaches etcd may write the store"));
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    ck_assert(says("store ok\n") && says("\nstore ok: whoever reaches etcd may write"));
    s.hearing.shown_nothing = false;
    query(META_PARAMETER_VERBOSE, "");
    ck_assert_int_eq(ask("GET", "/readyz", ""), 200);
    ck_assert(says("store ok\n") && !says("whoever reaches etcd"));
    ck_assert_int_eq(ask("GET", "/v1/metaservers", ""), 200);
    ck_assert(!says("\"warning\""));
    end();
}
END_TEST

/* What the others have registered needs no write here, so nobody would find out. */
START_TEST(a_shared_store_that_takes_nothing_is_found_out_at_once)
{
    begin();
    register_node(1);
    s.writes.did_ns = 0; /* by another one, that is */
    s.hearing.shared = true;
    s.hearing.heard_ns = now;
    fail = EBUSY;
    meta_service_tick(&s, now, wall_ms);
    settle();
    ck_assert_int_eq(ask("POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    ck_assert(says("\"read_only\":true"));
    fail = 0;
    end();
}
END_TEST

/* As one would whose check ends by what is stored of one thing. */
START_TEST(a_store_that_neither_fails_nor_does_it_is_probed_now_and_then)
{
    begin();
    s.writes.did_ns = 0;
    s.hearing.shared = true;
    s.hearing.heard_ns = now;
    fail = EUCLEAN;
    const uint64_t before = base_latency_count(&s.count.store_took);
    for (int i = 0; i < 110; i++, now += BASE_NS_PER_S / 10) {
        meta_service_tick(&s, now, wall_ms);
        settle();
    }
    ck_assert_uint_eq(base_latency_count(&s.count.store_took) - before, 3); /* in 11 s */
    fail = 0;
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_asks_for_it_hears_of_each_check_alone)                                                   \
    T(who_asks_hears_of_those_who_are_to_register_here_still)                                      \
    T(who_asks_costs_a_shared_store_a_transaction_a_second)                                        \
    T(strangers_hear_that_it_is_not_ready_and_not_why)                                             \
    T(it_lives_while_its_loop_turns_whatever_the_disk_does)                                        \
    T(agents_hear_where_it_stands)                                                                 \
    T(what_needs_no_write_does_not_say_that_the_store_takes_them)                                  \
    T(what_is_one_requests_fault_stops_no_other)                                                   \
    T(agents_hear_that_nothing_is_written_here)                                                    \
    T(metrics_say_how_long_the_store_has_not_been_heard)                                           \
    T(a_store_that_everybody_may_write_is_said_to_be_one)                                          \
    T(a_shared_store_that_takes_nothing_is_found_out_at_once)                                      \
    T(a_store_that_neither_fails_nor_does_it_is_probed_now_and_then)
KEDGE_CHECK_MAIN("metaserver readiness", TESTS)
