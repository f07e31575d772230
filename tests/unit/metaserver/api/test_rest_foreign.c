/* SPDX-License-Identifier: Apache-2.0 */
/* A store with entries of the trail that a newer metaserver wrote. */
#include "resources_world.h"

static const struct meta_store_change newer[] = {
    {.revision = 2, .kind = "eclipse", .name = "Moon/1", .before = "{\n\"of\": [1, \"\\n\"]\r\n}"},
    {.revision = 3, .kind = "lease", .name = "n1", .before = "{\"lease\":\"ab-1\",\"partly\":3}"},
    {.revision = 9, .kind = "eclipse", .name = "sun", .before = "{}"}, /* 4 to 8: never used */
};

#define EVENT(revision, said)                                                                      \
    "{\"revision\":" revision ",\"time\":\"1970-01-01T00:00:00.500Z\",\"who\":\"uid 9\"," said "}"
#define FIRST                                                                                      \
    EVENT(                                                                                         \
        "2",                                                                                       \
        "\"kind\":\"eclipse\",\"name\":\"Moon/1\",\"from\":{ \"of\": [1, \"\\n\"]  },\"to\":null")
#define SECOND                                                                                     \
    EVENT("3", "\"kind\":\"lease\",\"name\":\"n1\",\"from\":{\"lease\":\"ab-1\",\"partly\":3},"    \
               "\"to\":null")
#define THIRD EVENT("9", "\"kind\":\"eclipse\",\"name\":\"sun\",\"from\":{},\"to\":null")

static void add_to_store(const struct meta_store_change *change)
{
    struct meta_store_change own = *change;
    struct base_errbuf err;
    own.who = "uid 9";
    own.time_ms = 500;
    ck_assert_int_eq(meta_store_change(s.store, &own, &err), 0);
}

static void restart(void)
{
    struct meta_store *store = s.store;
    close_service();
    open_service(store);
}

/* A metaserver that has set a tenant, and then was a newer one for a while. */
static void setup_newer(void)
{
    setup();
    ck_assert_int_eq(ask("PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++)
        add_to_store(&newer[i]);
    restart();
}

START_TEST(what_a_newer_metaserver_wrote_into_the_trail_is_shown_as_it_is)
{
    setup_newer();
    for (int times = 0; times < 2; times++) {
        ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
        ck_assert_msg(says(",\n" FIRST ",\n" SECOND ",\n" THIRD "]}\n"), "%s",
                      base_text_str(&body));
        ck_assert(says("{\"revision\":9,\"events\":[\n{\"revision\":1,"));
        restart();
    }
    query(META_PARAMETER_KIND, "lease,tenant");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(says("\"name\":\"web\"") && says(",\n" SECOND "]}\n") && !says("eclipse"));
    query(META_PARAMETER_KIND, "eclipse");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 400);
    query(META_PARAMETER_KIND, "liveness");
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(says("\"events\":[]"));
    teardown();
}
END_TEST

START_TEST(changes_go_on_behind_it_and_push_it_out_of_the_trail)
{
    char path[32];
    setup_newer();
    for (int i = 0; i < TRAIL; i++) {
        ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
        ck_assert_int_eq(says(THIRD) ? 1 : 0, 1);
        snprintf(path, sizeof path, "/v1/windows/w%d", i);
        ck_assert_int_eq(ask("PUT", path, "{\"scope\":\"device\"}"), 201);
        ck_assert_uint_eq(answer.revision, 10u + (unsigned)i);
    }
    ck_assert_int_eq(ask("GET", "/v1/events", ""), 200);
    ck_assert(!says("eclipse"));
    ck_assert(says("\"events\":[\n{\"revision\":10,"));
    teardown();
}
END_TEST

/* One can tell from no entry of its kind whether revisions are missing; of the others one can. */
START_TEST(a_trail_that_is_damaged_is_still_not_believed)
{
    static const struct meta_store_change damaged[] = {
        {.revision = 10, .kind = "eclipse", .name = "x", .before = "{"},
        {.revision = 10, .kind = "eclipse", .name = "x", .before = "[]"},
        {.revision = 10, .kind = "lease", .name = "n1", .before = "lease"},
        {.revision = 11, .kind = "lease", .name = "n1", .before = "{\"partly\":3}"},
    };
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        struct base_errbuf err;
        setup_newer();
        add_to_store(&damaged[i]);
        struct meta_resources *old = s.resources;
        s.resources = meta_resources_new(TRAIL);
        ck_assert_msg(meta_service_load(&s, now, &err) < 0, "case %zu", i);
        ck_assert_ptr_nonnull(strstr(err.text, "restore it from a backup"));
        meta_resources_free(old);
        teardown();
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_a_newer_metaserver_wrote_into_the_trail_is_shown_as_it_is)                              \
    T(changes_go_on_behind_it_and_push_it_out_of_the_trail)                                        \
    T(a_trail_that_is_damaged_is_still_not_believed)
KEDGE_CHECK_MAIN("metaserver rest foreign", TESTS)
