/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that come, expire and go, as those are told who watch the trail. */
#include <stdlib.h>

#include "resources_world.h"

#define LEASE (1000 * BASE_NS_PER_S) /* of resources_world.h */

static void begin(void)
{
    setup();
    s.liveness = meta_liveness_new(64, 0x77);
}

static void end(void)
{
    meta_liveness_free(s.liveness);
    teardown();
}

/* Nodes come from their stores, and what is remembered of them does not. */
static void restart_metaserver(uint64_t generation)
{
    struct meta_store *store = s.store;
    close_service();
    meta_liveness_free(s.liveness);
    open_service(store);
    s.liveness = meta_liveness_new(64, generation);
}

static void pass(uint64_t ns)
{
    now += ns;
    wall_ms += ns / BASE_NS_PER_MS;
    meta_service_tick(&s, now, wall_ms);
    settle();
}

static int register_node(const char *id, unsigned incarnation)
{
    char path[64], json[256];
    snprintf(path, sizeof path, "/v1/nodes/%s", id);
    snprintf(json, sizeof json,
             "{\"incarnation\":%u,\"endpoints\":[{\"gid\":\"fd00::%x\",\"pool\":1,\"transports\":"
             "[\"dc\"],\"dct_number\":77,\"dc_key\":\"00000000000000aa\",\"mtu\":4096}]}",
             incarnation, (unsigned)id[0] << 8 | (unsigned)id[1]);
    return ask("PUT", path, json);
}

static struct meta_watch *watch(const char *kind, const char *position)
{
    query(META_PARAMETER_WATCH, "1");
    if (kind != NULL)
        query(META_PARAMETER_KIND, kind);
    if (position != NULL)
        query(META_PARAMETER_POSITION, position);
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert_ptr_nonnull(answer.watch);
    return answer.watch;
}

/* What there is for it now. */
static const char *piece(struct meta_watch *w)
{
    static char text[1 << 16];
    const char *bytes = NULL;
    size_t length, used = 0;
    do {
        ck_assert_int_eq(meta_watch_next(w, now, &bytes, &length), 0);
        ck_assert_uint_lt(used + length, sizeof text);
        if (length > 0)
            memcpy(text + used, bytes, length);
        used += length;
    } while (length > 0);
    text[used] = '\0';
    return text;
}

START_TEST(a_node_that_comes_and_expires_is_told_once_with_times)
{
    begin();
    struct meta_watch *w = watch(NULL, NULL);
    ck_assert_int_eq(register_node("n1", 5), 201);
    ck_assert_int_eq(register_node("n1", 5), 200); /* the same again: no news */
    ck_assert_int_eq(ask("POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    ck_assert_int_eq(woken, 0); /* a storm of registrations looks at no watch */
    pass(0);
    ck_assert_int_eq(woken, 1);
    ck_assert_str_eq(
        piece(w), "{\"revision\":0,\"time\":\"2025-11-21T15:43:28.123Z\",\"who\":\"kedge-metad\","
                  "\"kind\":\"liveness\",\"name\":\"n1\",\"id\":\"n1/5/live\","
                  "\"position\":\"0000000000000077-1\",\"times\":1,\"from\":null,"
                  "\"to\":{\"incarnation\":5,\"state\":\"live\"}}\n");
    pass(LEASE - 1);
    ck_assert_str_eq(piece(w), "\n"); /* a heartbeat */
    now++;
    pass(0);
    pass(BASE_NS_PER_S);
    ck_assert_str_eq(
        piece(w), "{\"revision\":0,\"time\":\"2025-11-21T16:00:08.122Z\",\"who\":\"kedge-metad\","
                  "\"kind\":\"liveness\",\"name\":\"n1\",\"id\":\"n1/5/expired\","
                  "\"position\":\"0000000000000077-2\",\"times\":1,"
                  "\"from\":{\"incarnation\":5,\"state\":\"live\"},"
                  "\"to\":{\"incarnation\":5,\"state\":\"expired\","
                  "\"last_heard\":\"2025-11-21T15:43:28.122Z\"}}\n");
    ck_assert_int_eq(register_node("n1", 6), 200);
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/n1", ""), 204);
    ck_assert_uint_eq(meta_service_due(&s), 0); /* who watches is told at the next tick */
    pass(0);
    ck_assert_uint_ne(meta_service_due(&s), 0);
    const char *text = piece(w);
    ck_assert_ptr_nonnull(strstr(text, "\"id\":\"n1/6/live\""));
    ck_assert_ptr_nonnull(strstr(text, "\"from\":{\"incarnation\":5,\"state\":\"expired\"}"));
    ck_assert_ptr_nonnull(strstr(text, "\"who\":\"uid 7\",\"kind\":\"liveness\",\"name\":\"n1\","
                                       "\"id\":\"n1/6/removed\""));
    meta_watch_free(w);
    end();
}
END_TEST

START_TEST(liveness_is_filtered_by_kind_and_name)
{
    begin();
    struct meta_watch *alone = watch("liveness", NULL), *both = watch("node,liveness", NULL);
    struct meta_watch *tenants = watch("tenant", NULL);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    ck_assert_int_eq(register_node("n1", 5), 201);
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1/settings", "{\"cordoned\":true}"), 201);
    ck_assert_ptr_null(strstr(piece(tenants), "liveness"));
    ck_assert_ptr_null(strstr(piece(alone), "cordoned"));
    const char *text = piece(both);
    ck_assert_ptr_nonnull(strstr(text, "n1/5/live"));
    ck_assert_ptr_nonnull(strstr(strstr(text, "n1/5/live"), "cordoned"));
    ck_assert_ptr_null(strstr(text, "tenant"));
    meta_watch_free(alone);
    meta_watch_free(both);
    meta_watch_free(tenants);
    ck_assert_int_eq(register_node("n2", 5), 201);
    query(META_PARAMETER_NAME, "n2");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(says("n2/5/live") && !says("n1/5/live") && !says("cordoned"));
    query(META_PARAMETER_KIND, "liveness,");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 400);
    query(META_PARAMETER_KIND, "");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 400);
    end();
}
END_TEST

#define DAY_S (24 * 3600)

static void look_at_certificate(enum meta_certificate_use of, int64_t expires_s)
{
    meta_service_certificate(&s, of, expires_s, 14 * DAY_S, now);
    pass(5 * BASE_NS_PER_S);
}

static int count_events(const char *word)
{
    int count = 0;
    query(META_PARAMETER_KIND, "certificate");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    for (const char *at = base_text_str(&body); (at = strstr(at, word)) != NULL; at++)
        count++;
    return count;
}

/* Looked at every few seconds, and by a clock that may be set back. */
START_TEST(a_certificate_that_ends_soon_has_ended_and_is_renewed_is_told_once_each)
{
    begin();
    const int64_t ends = (int64_t)(wall_ms / 1000) + 15 * DAY_S;
    snprintf(s.hearing.self.name, sizeof s.hearing.self.name, "n1");
    pass(0);
    struct meta_watch *w = watch("certificate", NULL), *nodes = watch("liveness", NULL);
    ck_assert_int_eq(register_node("n1", 5), 201); /* a node may be called so too */
    look_at_certificate(META_CERTIFICATE_API, ends);
    ck_assert_ptr_null(strstr(piece(w), "certificate"));
    pass(DAY_S * BASE_NS_PER_S);
    woken = 0;
    for (int i = 0; i < 20; i++)
        look_at_certificate(META_CERTIFICATE_API, ends);
    ck_assert_int_ge(woken, 1);
    const char *text = piece(w);
    ck_assert_str_eq(/* after a heartbeat */
                     strchr(text, '{'),
                     "{\"revision\":0,\"time\":\"2025-11-22T15:43:33.123Z\",\"who\":\"kedge-"
                     "metad\","
                     "\"kind\":\"certificate\",\"name\":\"n1\","
                     "\"id\":\"n1/api/2025-12-06T15:43:28.000Z/expiring\","
                     "\"position\":\"0000000000000077-3\",\"times\":1,\"from\":null,\"to\":{"
                     "\"of\":\"api\",\"state\":\"expiring\",\"ends\":\"2025-12-06T15:43:28.000Z\"}}"
                     "\n");
    ck_assert_ptr_null(strstr(piece(nodes), "certificate"));
    look_at_certificate(META_CERTIFICATE_ETCD, ends); /* another one */
    ck_assert_int_eq(count_events("/etcd/2025-12-06T15:43:28.000Z/expiring"), 1);
    ck_assert_int_eq(count_events("\"kind\""), 2);
    pass(14 * DAY_S * BASE_NS_PER_S);
    look_at_certificate(META_CERTIFICATE_API, ends);
    wall_ms -= UINT64_C(1000) * DAY_S;
    pass(0);
    look_at_certificate(META_CERTIFICATE_API, ends);
    ck_assert_int_eq(count_events("/api/2025-12-06T15:43:28.000Z/expired"), 1);
    ck_assert_int_eq(count_events("\"kind\""), 3);
    look_at_certificate(META_CERTIFICATE_API, ends + 365 * DAY_S);
    ck_assert_int_eq(count_events("/api/2026-12-06T15:43:28.000Z/renewed"), 1);
    ck_assert_int_eq(count_events("\"kind\""), 4);
    ck_assert_int_eq(ask("GET", "/metrics", ""), 200);
    ck_assert(says("\nkedge_metad_tls_certificate_expiry_timestamp_seconds 1796571808\n"));
    ck_assert(says("\nkedge_metad_store_certificate_expiry_timestamp_seconds 1765035808\n"));
    meta_watch_free(w);
    meta_watch_free(nodes);
    end();
}
END_TEST

START_TEST(pages_have_changes_and_nodes_in_one_order)
{
    char cursor[128], seen[512] = "";
    begin();
    ck_assert_int_eq(register_node("n1", 5), 201);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    ck_assert_int_eq(register_node("n2", 5), 201);
    ck_assert_int_eq(register_node("n3", 5), 201);
    ck_assert_int_eq(ask("DELETE", "/v1/tenants/web", ""), 204);
    for (int page = 0; page < 5; page++) {
        query(META_PARAMETER_LIMIT, "1");
        if (page > 0)
            query(META_PARAMETER_CURSOR, cursor);
        ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
        ck_assert(says("{\"revision\":2,\"position\":\"0000000000000077-3\",\"events\":["));
        const char *name = strstr(base_text_str(&body), "\"name\":\"");
        strncat(seen, name + 8, 3);
        const char *next = strstr(name, "\"next_cursor\":\"");
        ck_assert_int_eq(next != NULL, page < 4);
        if (next != NULL)
            snprintf(cursor, sizeof cursor, "%.*s", (int)strcspn(next + 15, "\""), next + 15);
    }
    ck_assert_str_eq(seen, "n1\"webn2\"n3\"web");
    query(META_PARAMETER_CURSOR,
          "Mi4wMDAwMDAwMDAwMDAwMDc4LTI"); /* 2.0000000000000078-2: in another life */
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(says("n1/5/live") && says("n2/5/live") && !says("web"));
    static const char *const wrong[] = {
        "Mi43", "Mi54LTE", "LjAwMDAwMDAwMDAwMDAwNzctMQ"}; /* 2.7, 2.x-1, .0000000000000077-1 */
    for (int i = 0; i < 3; i++) {
        query(META_PARAMETER_CURSOR, wrong[i]);
        ck_assert_int_eq(ask("GET", "/v1/events", ""), 400);
        ck_assert(says("\"field\":\"cursor\""));
    }
    end();
}
END_TEST

START_TEST(a_watch_goes_on_where_it_was)
{
    begin();
    ck_assert_int_eq(register_node("n1", 5), 201);
    ck_assert_int_eq(register_node("n2", 5), 201);
    struct meta_watch *w = watch("liveness", "0000000000000077-1");
    ck_assert_ptr_null(strstr(piece(w), "n1/5/live"));
    meta_watch_free(w);
    w = watch("liveness", NULL); /* from now on */
    ck_assert_str_eq(piece(w), "");
    meta_watch_free(w);
    /* Of another metaserver, or of a former life: all that there is. */
    w = watch("liveness", "0000000000000078-9");
    ck_assert_ptr_nonnull(strstr(piece(w), "n1/5/live"));
    meta_watch_free(w);
    for (int i = 0; i < 70; i++) {
        char name[8];
        snprintf(name, sizeof name, "%c%c", 'a' + i % 26, 'a' + i / 26);
        struct meta_liveness_event e = {.incarnation = 1};
        snprintf(e.node, sizeof e.node, "%s", name);
        meta_liveness_add(s.liveness, &e);
    }
    query(META_PARAMETER_WATCH, "1");
    query(META_PARAMETER_POSITION, "0000000000000077-1");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 410);
    ck_assert(says("\"field\":\"position\"") && says("list the nodes"));
    query(META_PARAMETER_WATCH, "1");
    query(META_PARAMETER_POSITION, "0000000000000077-1");
    query(META_PARAMETER_KIND, "tenant"); /* has nothing to do with it */
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    meta_watch_free(answer.watch);
    static const char *const wrong[] = {
        "", "1", "0000000000000077", "0000000000000077-", "x", "0000000000000077-1x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        query(META_PARAMETER_WATCH, "1");
        query(META_PARAMETER_POSITION, wrong[i]);
        ck_assert_int_eq(ask("GET", "/v1/events", ""), 400);
    }
    end();
}
END_TEST

START_TEST(whoever_falls_behind_the_events_of_nodes_is_cut_off)
{
    const char *bytes;
    size_t length;
    begin();
    struct meta_watch *w = watch("liveness", NULL), *others = watch("tenant", NULL);
    for (uint32_t i = 0; i < 100; i++) {
        struct meta_liveness_event e = {.incarnation = 1};
        snprintf(e.node, sizeof e.node, "n%u", i);
        meta_liveness_add(s.liveness, &e);
    }
    ck_assert_int_eq(meta_watch_next(w, now, &bytes, &length), -ECANCELED);
    ck_assert_int_eq(meta_watch_next(others, now, &bytes, &length), 0);
    meta_watch_free(w);
    meta_watch_free(others);
    end();
}
END_TEST

START_TEST(after_a_restart_nodes_are_told_under_the_ids_of_before)
{
    begin();
    ck_assert_int_eq(register_node("n1", 5), 201);
    ck_assert_int_eq(register_node("n2", 5), 201);
    restart_metaserver(0x88);
    struct meta_watch *w = watch("liveness", "0000000000000077-2");
    ck_assert_str_eq(piece(w), "");
    ck_assert_int_eq(register_node("n1", 5), 200);
    pass(LEASE / 2);
    ck_assert_int_eq(ask("POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}"), 200);
    const char *text = piece(w);
    ck_assert_ptr_nonnull(strstr(text, "\"id\":\"n1/5/live\",\"position\":\"0000000000000088-1\""));
    ck_assert_ptr_nonnull(strstr(text, "\"from\":{\"incarnation\":5,\"state\":\"waiting\"}"));
    pass(LEASE / 2);
    text = piece(w); /* nobody heard of it here, so that no time is made up */
    ck_assert_ptr_nonnull(strstr(text, "\"id\":\"n2/5/expired\""));
    ck_assert_ptr_null(strstr(text, "last_heard"));
    ck_assert_ptr_null(strstr(text, "n1/5/"));
    meta_watch_free(w);
    end();
}
END_TEST

START_TEST(nodes_that_expire_write_no_revision)
{
    begin();
    ck_assert_int_eq(register_node("n1", 5), 201);
    pass(LEASE);
    pass(0);
    ck_assert_uint_eq(meta_resources_revision(s.resources), 0);
    ck_assert_uint_eq(meta_liveness_newest(s.liveness), 2);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_node_that_comes_and_expires_is_told_once_with_times)                                       \
    T(liveness_is_filtered_by_kind_and_name)                                                       \
    T(a_certificate_that_ends_soon_has_ended_and_is_renewed_is_told_once_each)                     \
    T(pages_have_changes_and_nodes_in_one_order)                                                   \
    T(a_watch_goes_on_where_it_was)                                                                \
    T(whoever_falls_behind_the_events_of_nodes_is_cut_off)                                         \
    T(after_a_restart_nodes_are_told_under_the_ids_of_before)                                      \
    T(nodes_that_expire_write_no_revision)
KEDGE_CHECK_MAIN("rest_liveness", TESTS)
