/* SPDX-License-Identifier: Apache-2.0 */
/* The trail of changes, and the streams of it and of the configuration, without sockets. */
#include "resources_world.h"

/* Of a node of which nothing is set. */
#define END   ",\"node\":{\"labels\":{},\"cordoned\":false,\"draining\":false},\"pools\":[]}\n"
#define EMPTY "{\"revision\":0,\"tenants\":[],\"windows\":[]" END

START_TEST(the_trail_says_who_changed_what)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/windows/w", "{\"scope\":\"device\",\"ops\":1}"), 201);
    ck_assert_int_eq(ask("PUT", "/v1/windows/w", "{\"scope\":\"device\",\"ops\":2}"), 200);
    ck_assert_int_eq(ask("DELETE", "/v1/windows/w", ""), 204);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/w", "{\"uids\":[]}"), 201);
    query(META_PARAMETER_KIND, "window");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert_str_eq(
        base_text_str(&body),
        "{\"revision\":4,\"events\":[\n"
        "{\"revision\":1,\"time\":\"2025-11-21T15:43:28.123Z\",\"who\":\"uid 7\","
        "\"kind\":\"window\",\"name\":\"w\",\"from\":null,"
        "\"to\":{\"scope\":\"device\",\"bytes\":0,\"ops\":1}},\n"
        "{\"revision\":2,\"time\":\"2025-11-21T15:43:28.123Z\",\"who\":\"uid 7\","
        "\"kind\":\"window\",\"name\":\"w\",\"from\":{\"scope\":\"device\",\"bytes\":0,\"ops\":1},"
        "\"to\":{\"scope\":\"device\",\"bytes\":0,\"ops\":2}},\n"
        "{\"revision\":3,\"time\":\"2025-11-21T15:43:28.123Z\",\"who\":\"uid 7\","
        "\"kind\":\"window\",\"name\":\"w\",\"from\":{\"scope\":\"device\",\"bytes\":0,\"ops\":2},"
        "\"to\":null}]}\n");
    query(META_PARAMETER_LIMIT, "2");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(says("\"next_cursor\":\"Mg\"") && !says("\"revision\":3"));
    query(META_PARAMETER_CURSOR, "Mg");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(says("[\n{\"revision\":3") && !says("next_cursor"));
    query(META_PARAMETER_KIND, "planet");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 400);
    query(META_PARAMETER_NAME, "W");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 400);
    query(META_PARAMETER_CURSOR, "d2Vi"); /* web */
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 400);
    teardown();
}
END_TEST

static struct meta_watch *watch(const char *path, const char *revision)
{
    query(META_PARAMETER_WATCH, "1");
    query(META_PARAMETER_REVISION, revision);
    ck_assert_int_eq(ask("GET", path, ""), 200);
    ck_assert_str_eq(answer.content_type, "application/jsonl");
    ck_assert_ptr_nonnull(answer.watch);
    return answer.watch;
}

/* What comes next, as a text of whole lines; "" for nothing. */
static const char *piece(struct meta_watch *w)
{
    static char text[1 << 19];
    const char *bytes = NULL;
    size_t length, used = 0;
    do {
        ck_assert_int_eq(meta_watch_next(w, now, &bytes, &length), 0);
        ck_assert_uint_lt(used + length, sizeof text);
        if (length > 0) /* else there are no bytes either */
            memcpy(text + used, bytes, length);
        used += length;
    } while (length > 0 && text[used - 1] != '\n');
    text[used] = '\0';
    return text;
}

static void register_node(void)
{
    ck_assert_int_eq(ask("PUT", "/v1/nodes/n1",
                         "{\"incarnation\":5,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":1,"
                         "\"transports\":[\"dc\"],\"dct_number\":77,"
                         "\"dc_key\":\"00000000000000aa\",\"mtu\":4096}]}"),
                     201);
}

START_TEST(a_node_is_told_its_configuration_whenever_it_changes)
{
    setup();
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 404);
    register_node();
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 200);
    ck_assert_str_eq(base_text_str(&body), EMPTY);
    struct meta_watch *fresh = watch("/v1/nodes/n1/configuration", NULL);
    struct meta_watch *knows = watch("/v1/nodes/n1/configuration", "0");
    struct meta_watch *strays = watch("/v1/nodes/n1/configuration", "7");
    ck_assert_str_eq(piece(fresh), EMPTY);
    ck_assert_str_eq(piece(fresh), "");
    ck_assert_str_eq(piece(knows), "");
    ck_assert_str_eq(piece(strays), EMPTY);
    query(META_PARAMETER_WATCH, "1");
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 503);
    ck_assert(says("too-many-watches") && says("max_watches"));
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    ck_assert_int_eq(woken, 3);
    ck_assert_int_eq(ask("PUT", "/v1/windows/w", "{\"scope\":\"device\",\"ops\":1}"), 201);
    const char *newest = "{\"revision\":2,\"tenants\":[{\"name\":\"web\",\"revision\":1,"
                         "\"uids\":[5],\"sessions\":0,\"vqps\":0,\"mrs\":0,\"memory_bytes\":0,"
                         "\"window_bytes\":0,\"window_ops\":0,\"control_ops_per_s\":0}],"
                         "\"windows\":[{\"name\":\"w\","
                         "\"revision\":2,\"scope\":\"device\",\"bytes\":0,\"ops\":1}]" END;
    ck_assert_str_eq(piece(knows), newest);
    ck_assert_str_eq(piece(fresh), newest);
    ck_assert_int_eq(ask("DELETE", "/v1/windows/w", ""), 204); /* while those are being sent */
    ck_assert_ptr_nonnull(strstr(piece(strays), "{\"revision\":3,"));
    ck_assert_ptr_nonnull(strstr(piece(knows), "{\"revision\":3,"));
    ck_assert_str_eq(piece(knows), "");
    meta_watch_free(fresh);
    meta_watch_free(strays);
    const char *bytes;
    size_t length;
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/n1", ""), 204);
    ck_assert_int_eq(meta_watch_next(knows, now, &bytes, &length), -ECANCELED);
    meta_watch_free(knows);
    teardown();
}
END_TEST

/* Of an agent that follows another metaserver's configuration. */
START_TEST(a_stream_for_queries_alone_has_no_configuration_and_ends_with_its_node)
{
    const char *bytes;
    size_t length;
    setup();
    register_node();
    query(META_PARAMETER_ANSWERS, "only");
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 400);
    query(META_PARAMETER_ANSWERS, "only");
    struct meta_watch *w = watch("/v1/nodes/n1/configuration", NULL);
    ck_assert_str_eq(piece(w), "");
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    ck_assert_str_eq(piece(w), "");
    ck_assert_ptr_eq(meta_watch_of_agent(&s, "n1"), w);
    meta_watch_ask_renewal(&s, "n1");
    ck_assert_str_eq(piece(w), "{\"renew\":true}\n");
    now += META_WATCH_BEAT_NS;
    ck_assert_str_eq(piece(w), "\n");
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/n1", ""), 204);
    ck_assert_int_eq(meta_watch_next(w, now, &bytes, &length), -ECANCELED);
    meta_watch_free(w);
    teardown();
}
END_TEST

START_TEST(streams_of_others_leave_room_for_agents)
{
    struct meta_watch *held[4], *agent[4];
    const char *bytes;
    size_t length;
    setup();
    s.max_watches = 8;
    s.reader_watches = 4;
    register_node();
    for (int i = 0; i < 4; i++)
        held[i] = watch(i % 2 == 0 ? "/v1/events" : "/v1/nodes/n1/configuration", NULL);
    query(META_PARAMETER_WATCH, "1");
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 503);
    ck_assert(says("too-many-watches") && says("reader_watches"));
    for (int i = 0; i < 4; i++) {
        query(META_PARAMETER_ANSWERS, "1");
        agent[i] = watch("/v1/nodes/n1/configuration", NULL);
        ck_assert_ptr_eq(meta_watch_of_agent(&s, "n1"), agent[i]);
        /* Of one agent so many at a time that it can begin anew. */
        for (int k = 0; k <= i; k++)
            if (k < i - 1)
                ck_assert_int_eq(meta_watch_next(agent[k], now, &bytes, &length), -ECANCELED);
            else
                ck_assert_int_eq(meta_watch_next(agent[k], now, &bytes, &length), 0);
    }
    for (int i = 0; i < 4; i++) {
        meta_watch_free(held[i]);
        meta_watch_free(agent[i]);
    }
    ck_assert_uint_eq(s.agent_watches, 0);
    teardown();
}
END_TEST

START_TEST(an_agent_is_told_on_its_newest_stream_to_renew_and_nobody_else)
{
    setup();
    register_node();
    meta_watch_ask_renewal(&s, "n1"); /* it has no stream here */
    struct meta_watch *reader = watch("/v1/nodes/n1/configuration", "0");
    query(META_PARAMETER_ANSWERS, "1");
    struct meta_watch *agent = watch("/v1/nodes/n1/configuration", NULL);
    ck_assert_str_eq(piece(agent), EMPTY);
    const int before = woken;
    meta_watch_ask_renewal(&s, "n1");
    meta_watch_ask_renewal(&s, "n2");
    ck_assert_int_eq(woken, before + 1);
    ck_assert_str_eq(piece(agent), "{\"renew\":true}\n");
    ck_assert_str_eq(piece(agent), "");
    ck_assert_str_eq(piece(reader), "");
    meta_watches_ask_renewals(&s);
    ck_assert_int_eq(woken, before + 2);
    ck_assert_str_eq(piece(agent), "{\"renew\":\"soon\"}\n");
    ck_assert_str_eq(piece(reader), "");
    meta_watch_free(reader);
    meta_watch_free(agent);
    teardown();
}
END_TEST

static int register_with(const char *id, unsigned incarnation, const char *gids[2])
{
    char path[64], json[512];
    size_t used =
        (size_t)snprintf(json, sizeof json, "{\"incarnation\":%u,\"endpoints\":[", incarnation);
    snprintf(path, sizeof path, "/v1/nodes/%s", id);
    for (int i = 0; i < 2 && gids[i] != NULL; i++)
        used += (size_t)snprintf(json + used, sizeof json - used,
                                 "%s{\"gid\":\"%s\",\"pool\":%d,\"transports\":[\"dc\"],"
                                 "\"dct_number\":77,\"dc_key\":\"00000000000000aa\",\"mtu\":4096}",
                                 i > 0 ? "," : "", gids[i], i);
    snprintf(json + used, sizeof json - used, "]}");
    return ask("PUT", path, json);
}

/* Told within one tick, and the revision is the same. */
START_TEST(a_node_is_told_where_the_nodes_are_that_windows_name)
{
    setup();
    register_node();
    ck_assert_int_eq(
        ask("PUT", "/v1/windows/w", "{\"scope\":\"destination\",\"node\":\"n2\",\"ops\":5}"), 201);
    ck_assert(!says("gids"));
    struct meta_watch *w = watch("/v1/nodes/n1/configuration", NULL);
    ck_assert_ptr_nonnull(strstr(piece(w), "\"node\":\"n2\",\"bytes\":0,\"ops\":5,\"gids\":[]}"));
    meta_service_tick(&s, now, wall_ms);
    ck_assert_str_eq(piece(w), "");
    ck_assert_int_eq(register_with("n2", 3, (const char *[2]){"fd00::2"}), 201);
    ck_assert_int_eq(register_with("n3", 3, (const char *[2]){"fd00::3"}), 201);
    woken = 0;
    ck_assert_uint_eq(meta_service_due(&s), 0);
    meta_service_tick(&s, now, wall_ms);
    ck_assert_uint_gt(meta_service_due(&s), now);
    ck_assert_int_eq(woken, 1);
    const char *text = piece(w);
    ck_assert_ptr_nonnull(strstr(text, "{\"revision\":1,"));
    ck_assert_ptr_nonnull(strstr(text, "\"gids\":[\"fd00::2\"]}"));
    ck_assert_int_eq(ask("GET", "/v1/nodes/n1/configuration", ""), 200);
    ck_assert(says("\"gids\":[\"fd00::2\"]}"));
    ck_assert_str_eq(piece(w), "");
    /* What concerns no window wakes nobody; nor does the same place in another life. */
    ck_assert_int_eq(register_with("n3", 4, (const char *[2]){"fd00::4"}), 200);
    ck_assert_int_eq(register_with("n2", 4, (const char *[2]){"fd00::2"}), 200);
    meta_service_tick(&s, now, wall_ms);
    ck_assert_int_eq(woken, 1);
    /* Another place, in two pools; a GID that both have is said once. */
    ck_assert_int_eq(register_with("n2", 5, (const char *[2]){"fd00::7", "fd00::7"}), 200);
    meta_service_tick(&s, now, wall_ms);
    ck_assert_ptr_nonnull(strstr(piece(w), "\"gids\":[\"fd00::7\"]}"));
    ck_assert_int_eq(ask("DELETE", "/v1/nodes/n2", ""), 204);
    ck_assert_uint_eq(meta_service_due(&s), 0);
    meta_service_tick(&s, now, wall_ms);
    ck_assert_ptr_nonnull(strstr(piece(w), "\"gids\":[]}"));
    ck_assert_int_eq(register_with("n2", 6, (const char *[2]){"fd00::7", "fd00::8"}), 201);
    meta_service_tick(&s, now, wall_ms);
    ck_assert_ptr_nonnull(strstr(piece(w), "\"fd00::8\""));
    /* One that has the revision already may have missed that. */
    struct meta_watch *knows = watch("/v1/nodes/n1/configuration", "1");
    ck_assert_ptr_nonnull(strstr(piece(knows), "\"fd00::8\""));
    ck_assert_str_eq(piece(knows), "");
    meta_watch_free(knows);
    meta_watch_free(w);
    teardown();
}
END_TEST

START_TEST(who_hears_nothing_for_long_gets_an_empty_line)
{
    setup();
    register_node();
    struct meta_watch *w = watch("/v1/nodes/n1/configuration", "0");
    meta_service_tick(&s, now, wall_ms);
    ck_assert_int_eq(woken, 0);
    ck_assert_uint_eq(meta_service_due(&s), now + META_WATCH_BEAT_NS);
    now += META_WATCH_BEAT_NS;
    meta_service_tick(&s, now, wall_ms);
    ck_assert_int_eq(woken, 1);
    ck_assert_str_eq(piece(w), "\n");
    ck_assert_str_eq(piece(w), "");
    ck_assert_uint_eq(meta_service_due(&s), now + META_WATCH_BEAT_NS);
    meta_service_tick(&s, now + META_WATCH_BEAT_NS - 1, wall_ms);
    ck_assert_int_eq(woken, 1);
    meta_watch_free(w);
    teardown();
}
END_TEST

/* The agent has heard something meanwhile, and the other one has not. */
START_TEST(who_is_told_to_renew_keeps_nobody_else_from_its_empty_line)
{
    setup();
    register_node();
    query(META_PARAMETER_ANSWERS, "1");
    struct meta_watch *agent = watch("/v1/nodes/n1/configuration", "0");
    struct meta_watch *reader = watch("/v1/nodes/n1/configuration", "0");
    const uint64_t due_ns = now + META_WATCH_BEAT_NS;
    now += META_WATCH_BEAT_NS / 2;
    meta_watch_ask_renewal(&s, "n1");
    ck_assert_str_eq(piece(agent), "{\"renew\":true}\n");
    ck_assert_uint_eq(meta_service_due(&s), due_ns);
    now = due_ns;
    meta_service_tick(&s, now, wall_ms);
    ck_assert_str_eq(piece(agent), "");
    ck_assert_str_eq(piece(reader), "\n");
    meta_watch_free(reader);
    meta_watch_free(agent);
    teardown();
}
END_TEST

static struct meta_watch *stream_of(const char *node)
{
    struct meta_watch *w = NULL;
    ck_assert_int_eq(
        meta_watch_configuration(&s, node, META_ANSWERS_ALONE, false, 0, &tokens[0], now, &w), 0);
    return w;
}

/* However many there are, and in whatever order they end. */
START_TEST(each_of_many_agents_is_found_by_its_node)
{
    enum { NODES = 700 };
    static struct meta_watch *old[NODES], *newest[NODES];
    char node[16];
    setup();
    s.max_watches = 2 * NODES;
    for (int i = 0; i < NODES; i++) {
        snprintf(node, sizeof node, "n%d", i);
        ck_assert_ptr_null(meta_watch_of_agent(&s, node));
        old[i] = stream_of(node);
    }
    for (int i = NODES - 1; i >= 0; i--) {
        snprintf(node, sizeof node, "n%d", i);
        newest[i] = stream_of(node);
    }
    for (int i = 0; i < NODES; i++) {
        snprintf(node, sizeof node, "n%d", i);
        ck_assert_ptr_eq(meta_watch_of_agent(&s, node), newest[i]);
        meta_watch_free(i % 3 == 0 ? old[i] : newest[i]);
        ck_assert_ptr_eq(meta_watch_of_agent(&s, node), i % 3 == 0 ? newest[i] : old[i]);
    }
    for (int i = 0; i < NODES; i++) {
        snprintf(node, sizeof node, "n%d", i);
        meta_watch_free(i % 3 == 0 ? newest[i] : old[i]);
        ck_assert_ptr_null(meta_watch_of_agent(&s, node));
    }
    ck_assert_uint_eq(s.watch_count, 0);
    teardown();
}
END_TEST

/* Nor does a tick come back at once for one whose client takes nothing. */
START_TEST(a_tick_wakes_those_alone_that_were_silent_for_long)
{
    setup();
    register_node();
    struct meta_watch *slow = watch("/v1/nodes/n1/configuration", "0");
    now += META_WATCH_BEAT_NS / 2;
    struct meta_watch *later = watch("/v1/nodes/n1/configuration", "0");
    now += META_WATCH_BEAT_NS / 2;
    woken = 0;
    meta_service_tick(&s, now, wall_ms);
    ck_assert_int_eq(woken, 1);
    ck_assert_str_eq(piece(later), "");
    ck_assert_uint_eq(meta_service_due(&s), now + META_WATCH_BEAT_NS / 2);
    now += META_WATCH_BEAT_NS / 2;
    meta_service_tick(&s, now, wall_ms);
    ck_assert_int_eq(woken, 2);
    ck_assert_str_eq(piece(later), "\n");
    ck_assert_str_eq(piece(slow), "\n");
    ck_assert_str_eq(piece(slow), "");
    meta_watch_free(slow);
    meta_watch_free(later);
    teardown();
}
END_TEST

START_TEST(the_trail_is_watched_from_a_revision_that_it_has)
{
    char path[32];
    const char *bytes;
    size_t length;
    setup();
    struct meta_watch *slow = watch("/v1/events", "0");
    query(META_PARAMETER_KIND, "tenant");
    struct meta_watch *tenants = watch("/v1/events", NULL);
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    for (int i = 0; i < TRAIL; i++) {
        snprintf(path, sizeof path, "/v1/windows/w%d", i);
        ck_assert_int_eq(ask("PUT", path, "{\"scope\":\"device\"}"), 201);
        if (i == 0)
            ck_assert_ptr_nonnull(strstr(piece(tenants), "{\"revision\":1,"));
    }
    ck_assert_str_eq(piece(tenants), "");
    ck_assert_int_eq(meta_watch_next(slow, now, &bytes, &length), -ECANCELED);
    meta_watch_free(slow);
    query(META_PARAMETER_WATCH, "1");
    query(META_PARAMETER_REVISION, "0");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 410);
    ck_assert(says("urn:kedge:problem:revision-gone") && says("begins with 2 and ends with 17"));
    query(META_PARAMETER_WATCH, "1");
    query(META_PARAMETER_REVISION, "18");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 410);
    struct meta_watch *all = watch("/v1/events", "1");
    int lines = 0;
    for (const char *text = piece(all); *text != '\0'; text = piece(all))
        for (; (text = strchr(text, '\n')) != NULL; text++)
            lines++;
    ck_assert_int_eq(lines, TRAIL);
    meta_watch_free(all);
    meta_watch_free(tenants);
    static const struct {
        const char *watch, *revision;
    } wrong[] = {{"0", NULL}, {"", NULL}, {"1", "x"}, {"1", "-1"}, {NULL, "1"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        query(META_PARAMETER_WATCH, wrong[i].watch);
        query(META_PARAMETER_REVISION, wrong[i].revision);
        ck_assert_int_eq(ask("GET", "/v1/events", ""), 400);
    }
    teardown();
}
END_TEST

START_TEST(the_most_that_can_be_set_fits_into_one_document)
{
    char path[80], json[8192], names[4096];
    setup();
    register_node();
    for (int i = 0; i < RESOURCE_TENANTS_MAX; i++) {
        size_t used = (size_t)snprintf(json, sizeof json, "{\"uids\":[");
        for (int k = 0; k < RESOURCE_UIDS_MAX; k++) {
            unsigned first = 4000000000u + (unsigned)(i * RESOURCE_UIDS_MAX + k) * 4;
            used += (size_t)snprintf(json + used, sizeof json - used, "%s\"%u-%u\"", k ? "," : "",
                                     first, first + 2);
        }
        snprintf(json + used, sizeof json - used,
                 "],\"sessions\":9007199254740992,\"vqps\":9007199254740992}");
        snprintf(path, sizeof path, "/v1/tenants/a-name-of-thirty-one-letters-%02d", i);
        ck_assert_int_eq(ask("PUT", path, json), 201);
    }
    for (int i = 0; i < RESOURCE_WINDOWS_MAX; i++) {
        snprintf(path, sizeof path, "/v1/windows/%060d%03d", 0, i);
        ck_assert_int_eq(ask("PUT", path,
                             "{\"scope\":\"tenant\",\"bytes\":9007199254740992,\"tenant\":"
                             "\"a-name-of-thirty-one-letters-00\",\"ops\":9007199254740992}"),
                         201);
    }
    ck_assert_int_eq(ask("PUT", "/v1/windows/more", "{\"scope\":\"device\"}"), 507);
    const char *label = "0123456789012345678901234567890123456789012345678901234567890";
    for (int i = 0; i < RESOURCE_POOLS_MAX + 1; i++) {
        int length = 0;
        for (int k = 0; k < RESOURCE_TENANTS_MAX; k++)
            length += snprintf(names + length, sizeof names - (size_t)length, "%s\"%031d\"",
                               k > 0 ? "," : "", i * RESOURCE_TENANTS_MAX + k);
        snprintf(json, sizeof json,
                 "{\"%s\":{\"a%s\":\"%s\",\"b%s\":\"%s\",\"c%s\":\"%s\",\"d%s\":\"%s\"}%s%s%s}",
                 i == 0 ? "labels" : "nodes", label, label, label, label, label, label, label,
                 label,
                 i == 0 ? ""
                        : ",\"sessions_ahead\":1024,\"arenas_ahead\":1024,\"ahead_max\":1024,"
                          "\"dcis\":32,\"spares\":32,\"queue_pairs_ahead\":1024,"
                          "\"connections\":8192,\"responders\":65536,"
                          "\"mr_lease_ms\":3600000,\"grace_ms\":9007199254,\"tenants\":[",
                 i == 0 ? "" : names, i == 0 ? "" : "]");
        snprintf(path, sizeof path, i == 0 ? "/v1/nodes/n1/settings" : "/v1/pools/%031d", i);
        ck_assert_int_eq(ask("PUT", path, json), 201);
    }
    struct meta_watch *w = watch("/v1/nodes/n1/configuration", "0");
    const char *text = piece(w);
    ck_assert_uint_gt(strlen(text), 280000);
    ck_assert_uint_lt(strlen(text), 400000);
    ck_assert_ptr_nonnull(strstr(text, "\"name\":\"0000000000000000000000000000064\""));
    meta_watch_free(w);
    teardown();
}
END_TEST

START_TEST(a_page_of_large_changes_ends_early_and_the_next_one_goes_on)
{
    char json[4096] = "", cursor[64];
    int pages = 0, seen = 0;
    setup();
    for (int k = 0; k < RESOURCE_TENANTS_MAX; k++)
        snprintf(json + strlen(json), sizeof json - strlen(json), "%s\"%031d\"",
                 k == 0 ? "{\"nodes\":{},\"tenants\":[" : ",", k);
    snprintf(json + strlen(json), sizeof json - strlen(json), "],\"spares\":0}");
    for (int i = 0; i < TRAIL; i++) {
        json[strlen(json) - 2] = (char)('0' + i % 2); /* spares */
        ck_assert_int_eq(ask("PUT", "/v1/pools/p", json), i == 0 ? 201 : 200);
    }
    for (const char *next = ""; next != NULL; pages++) {
        if (pages > 0)
            query(META_PARAMETER_CURSOR, cursor);
        ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
        ck_assert_uint_lt(body.length, 80000); /* of twice as much */
        for (const char *at = base_text_str(&body); (at = strstr(at, "{\"revision\":")) != NULL;
             at++)
            seen += at != base_text_str(&body);
        next = strstr(base_text_str(&body), "\"next_cursor\":\"");
        if (next != NULL)
            snprintf(cursor, sizeof cursor, "%.*s", (int)strcspn(next + 15, "\""), next + 15);
    }
    ck_assert_int_eq(pages, 2);
    ck_assert_int_eq(seen, TRAIL);
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_agent_is_told_on_its_newest_stream_to_renew_and_nobody_else)                              \
    T(the_trail_says_who_changed_what)                                                             \
    T(a_stream_for_queries_alone_has_no_configuration_and_ends_with_its_node)                      \
    T(streams_of_others_leave_room_for_agents)                                                     \
    T(a_node_is_told_its_configuration_whenever_it_changes)                                        \
    T(a_node_is_told_where_the_nodes_are_that_windows_name)                                        \
    T(who_hears_nothing_for_long_gets_an_empty_line)                                               \
    T(who_is_told_to_renew_keeps_nobody_else_from_its_empty_line)                                  \
    T(each_of_many_agents_is_found_by_its_node)                                                    \
    T(a_tick_wakes_those_alone_that_were_silent_for_long)                                          \
    T(the_trail_is_watched_from_a_revision_that_it_has)                                            \
    T(the_most_that_can_be_set_fits_into_one_document)                                             \
    T(a_page_of_large_changes_ends_early_and_the_next_one_goes_on)
KEDGE_CHECK_MAIN("metaserver rest watch", TESTS)
